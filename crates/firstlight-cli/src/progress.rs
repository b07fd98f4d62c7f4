//! How far work has come, on one line of standard error.
//!
//! Nothing is shown where standard error is no terminal, nor of work that is done within a second.

use firstlight::core::Op;
use firstlight::{Event, EventSink, Session};
use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Work that takes no longer shows nothing.
const QUIET: Duration = Duration::from_secs(1);
/// Time between two changes of the line.
const PACE: Duration = Duration::from_millis(100);

/// How many nodes of a model compute something.
pub(crate) fn n_nodes(session: &Session) -> usize {
    let is_value = |op: &Op| matches!(op, Op::Const(_) | Op::Input(_));
    session.graph().nodes().iter().filter(|node| !is_value(&node.op)).count()
}

/// A line that tells how much is done; gone when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    /// What is being done.
    verb: &'static str,
    is_shown: bool,
    since: Instant,
    n_done: AtomicUsize,
    n_all: usize,
    drawn: Mutex<Option<Instant>>,
}

impl Progress {
    /// Of so many pieces of work; 0 where nobody knows how many there are.
    pub(crate) fn new(verb: &'static str, n_all: usize) -> Progress {
        let (is_shown, since) = (stderr().is_terminal(), Instant::now());
        Progress { verb, is_shown, since, n_done: AtomicUsize::new(0), n_all, drawn: Mutex::new(None) }
    }

    /// Of the first run of a session: nodes compiled.
    pub(crate) fn of_first_run(session: &Session) -> Progress {
        Progress::new("compiling and running", n_nodes(session))
    }

    /// The sink to give to a run; none where nothing would be shown, so that the run tells nothing.
    pub(crate) fn events(&self) -> Option<&dyn EventSink> {
        self.is_shown.then_some(self as &dyn EventSink)
    }

    /// So many of so many are done.
    pub(crate) fn set_of(&self, n_done: usize, n_all: usize) {
        self.draw(n_done, n_all, "");
    }

    fn draw(&self, n_done: usize, n_all: usize, what: &str) {
        if !self.is_shown || self.since.elapsed() < QUIET {
            return;
        }
        let Ok(mut drawn) = self.drawn.try_lock() else { return };
        if drawn.is_some_and(|at| at.elapsed() < PACE) {
            return;
        }
        *drawn = Some(Instant::now());
        let _ = write!(stderr().lock(), "\r{}\x1b[K", line(self.verb, n_done, n_all, what));
    }
}

/// The line: what is done, how much of how many, and the piece at hand.
fn line(verb: &str, n_done: usize, n_all: usize, what: &str) -> String {
    let mut line = format!("{verb} {n_done}");
    if n_all >= n_done && n_all > 0 {
        line.push_str(&format!("/{n_all}"));
    }
    line.extend([" "].into_iter().filter(|_| !what.is_empty()));
    line.extend(what.chars().filter(|c| !c.is_control()));
    line.chars().take(79).collect()
}

impl EventSink for Progress {
    fn event(&self, event: &Event<'_>) -> Result<(), String> {
        if let Event::Compiled { node, .. } = event {
            let n_done = self.n_done.fetch_add(1, Ordering::Relaxed) + 1;
            self.draw(n_done, self.n_all, node);
        }
        Ok(())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.get_mut().unwrap_or_else(PoisonError::into_inner).is_some() {
            let _ = write!(stderr().lock(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_and_cannot_move_the_cursor() {
        assert_eq!(line("compiling", 3, 10, "conv"), "compiling 3/10 conv");
        assert_eq!(line("compiling", 3, 0, ""), "compiling 3");
        // A loop's body is compiled besides the nodes that were counted.
        assert_eq!(line("compiling", 11, 10, "x\x1b[2Jy"), "compiling 11 x[2Jy");
        assert_eq!(line("compiling", 1, 1, &"x".repeat(200)).len(), 79);
    }
}
