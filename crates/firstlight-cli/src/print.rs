//! Printing that survives a reader who goes away.
//!
//! Colours are those of `anstyle`, written into the text; they are taken out where the stream is no terminal or
//! `NO_COLOR` is set.

use crate::Failure;
use anstyle::{AnsiColor, Style};
use std::io::{ErrorKind, Write};

/// What an error or a bad verdict starts with.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// A good verdict.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();

/// What a warning starts with.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();

/// Writes data to standard output. A reader that has gone away has seen what it wanted.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a JSON value and a line end to standard output.
pub(crate) fn json(value: &serde_json::Value) -> Result<(), Failure> {
    data(&format!("{value:#}\n"))
}

/// Writes a line to standard error.
pub(crate) fn note(text: &str) {
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Writes an error to standard error.
pub(crate) fn error(text: &str) {
    note(&format!("{BAD}error:{BAD:#} {text}"));
}

/// Writes a warning to standard error.
pub(crate) fn warning(text: &str) {
    note(&format!("{WARN}warning:{WARN:#} {text}"));
}

/// A dimension in JSON: a number, a symbol's name, or null.
pub(crate) fn dim_json(dim: &firstlight::Dim) -> serde_json::Value {
    match dim {
        firstlight::Dim::Known(size) => (*size).into(),
        firstlight::Dim::Named(name) => (&**name).into(),
        firstlight::Dim::Unknown => serde_json::Value::Null,
    }
}
