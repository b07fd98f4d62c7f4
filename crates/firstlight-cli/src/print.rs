//! Printing that survives a reader who goes away.

use crate::Failure;
use std::io::{self, ErrorKind, Write};

/// Writes data to standard output. A reader that has gone away has seen what it wanted.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard error.
pub(crate) fn note(text: &str) {
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(io::stderr(), "{text}");
}
