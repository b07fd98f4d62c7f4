//! How far work has come, on one line of standard error.
//!
//! Nothing is shown where standard error is no terminal, nor of work that is done within a second.

use firstlight::core::Op;
use firstlight::{Event, EventSink, Session};
use std::io::{IsTerminal, Write, stderr};
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
    drawn: Mutex<Option<Instant>>,
}

impl Progress {
    pub(crate) fn new(verb: &'static str) -> Progress {
        Progress { verb, is_shown: stderr().is_terminal(), since: Instant::now(), drawn: Mutex::new(None) }
    }

    /// Of the first run of a session: nodes compiled and run.
    pub(crate) fn of_first_run() -> Progress {
        Progress::new("compiling and running")
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
        let left = left(self.since.elapsed(), n_done, n_all);
        let _ = write!(stderr().lock(), "\r{}\x1b[K", line(self.verb, n_done, n_all, what, left));
    }
}

/// About how long the rest takes, where that can be told: as long a piece as those before.
fn left(elapsed: Duration, n_done: usize, n_all: usize) -> Option<Duration> {
    let n_left = n_all.checked_sub(n_done).filter(|_| n_done > 0)?;
    Some(elapsed.mul_f64(n_left as f64 / n_done as f64))
}

/// The line: what is done, how much of how many, how long the rest takes, and the piece at hand.
fn line(verb: &str, n_done: usize, n_all: usize, what: &str, left: Option<Duration>) -> String {
    let mut line = format!("{verb} {n_done}");
    if n_all >= n_done && n_all > 0 {
        line.push_str(&format!("/{n_all}"));
    }
    if let Some(left) = left {
        line.push_str(&format!(", about {:.0} s left", left.as_secs_f64().ceil()));
    }
    line.extend([" "].into_iter().filter(|_| !what.is_empty()));
    line.extend(what.chars().filter(|c| !c.is_control()));
    line.chars().take(79).collect()
}

impl EventSink for Progress {
    fn event(&self, event: &Event<'_>) -> Result<(), String> {
        if let Event::Ran { node, progress, .. } = event {
            self.draw(progress.index as usize, progress.of as usize, node);
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
        assert_eq!(line("compiling", 3, 10, "conv", None), "compiling 3/10 conv");
        assert_eq!(line("compiling", 3, 0, "", None), "compiling 3");
        assert_eq!(line("compiling", 11, 10, "x\x1b[2Jy", None), "compiling 11 x[2Jy");
        assert_eq!(line("compiling", 1, 1, &"x".repeat(200), None).len(), 79);
        let left = left(Duration::from_secs(3), 3, 10);
        assert_eq!(line("compiling", 3, 10, "conv", left), "compiling 3/10, about 7 s left conv");
        assert_eq!(super::left(Duration::from_secs(3), 0, 10), None);
        assert_eq!(super::left(Duration::from_secs(3), 11, 10), None);
    }
}
