//! Which thread worked on tiles when: recorded only when asked for.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A stretch of time in which a thread ran tiles of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileSpan {
    /// 0 for the thread that called, or the number of a worker.
    pub thread: usize,
    /// When it took its first tile.
    pub from: Instant,
    /// When its last one had ended.
    pub to: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Recorder {
    is_on: AtomicBool,
    spans: Mutex<Vec<TileSpan>>,
}

impl Recorder {
    pub(super) fn switch(&self, on: bool) {
        self.is_on.store(on, Relaxed);
    }

    pub(super) fn take(&self) -> Vec<TileSpan> {
        std::mem::take(&mut self.spans.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes the time until the guard is dropped.
    pub(super) fn span(&self, thread: impl FnOnce() -> usize) -> Option<Recording<'_>> {
        self.is_on.load(Relaxed).then(|| Recording { recorder: self, thread: thread(), from: Instant::now() })
    }
}

pub(super) struct Recording<'r> {
    recorder: &'r Recorder,
    thread: usize,
    from: Instant,
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        let span = TileSpan { thread: self.thread, from: self.from, to: Instant::now() };
        self.recorder.spans.lock().unwrap_or_else(PoisonError::into_inner).push(span);
    }
}
