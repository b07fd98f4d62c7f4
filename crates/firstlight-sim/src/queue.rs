//! The in-order queue of a deferred device: work is done when it is waited for.

use crate::work::Work;
use firstlight_graph::{OpError, OpErrorKind};
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// Work that nobody has waited for yet, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Work>,
    /// Events named so far: the last one's number, the first being 1.
    last: u64,
    /// The events of the last failed work and of what was queued behind it, with what went wrong.
    failed: Option<(RangeInclusive<u64>, OpError)>,
}

impl Queue {
    /// Queues work and names its event.
    pub(crate) fn push(&mut self, work: Work) -> u64 {
        self.waiting.push_back(work);
        self.last += 1;
        self.last
    }

    /// The last event named.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The oldest work, when it is due by `event`.
    ///
    /// **Errors**: an event that was never named, or whose work failed or was dropped behind work that did.
    pub(crate) fn pop(&mut self, event: u64) -> Result<Option<Work>, OpError> {
        if event > self.last {
            let message = format!("event {event} was never named; the last is {}", self.last);
            return Err(OpError::new(OpErrorKind::Device, message));
        }
        match &self.failed {
            Some((events, error)) if events.contains(&event) => Err(error.clone()),
            _ if self.oldest() <= event => Ok(self.waiting.pop_front()),
            _ => Ok(None),
        }
    }

    /// Drops what is queued behind the work just popped, which failed: it may read what that work left unwritten.
    pub(crate) fn fail(&mut self, error: OpError) {
        self.failed = Some((self.oldest() - 1..=self.last, error));
        self.waiting.clear();
    }

    /// The oldest waiting work's event.
    fn oldest(&self) -> u64 {
        self.last + 1 - self.waiting.len() as u64
    }
}
