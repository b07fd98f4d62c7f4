//! The bounded channel between the compiler and the executor.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use crate::pool::Pool;

/// A queue bounded in items and in bytes, closed from either side.
///
/// Any number of threads may push and pop; items come out in the order in which they went in. An item larger than the byte bound
/// goes in when the queue is empty, so that nothing can be too large to pass.
pub struct BoundedChannel<T> {
    state: Mutex<State<T>>,
    /// There may be something for a consumer: an item, or the end. What a waiting consumer spins on.
    readable: AtomicBool,
    max_items: usize,
    max_bytes: usize,
}

struct State<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
    closed: bool,
    /// Threads that found the queue full, or empty, and have not been woken since.
    producers: Vec<Thread>,
    consumers: Vec<Thread>,
}

impl<T> BoundedChannel<T> {
    /// A channel for at most `max_items` items (at least one) of at most `max_bytes` together; memory for them is reserved here.
    pub fn new(max_items: usize, max_bytes: usize) -> BoundedChannel<T> {
        let max_items = max_items.max(1);
        let state = State {
            items: VecDeque::with_capacity(max_items),
            bytes: 0,
            closed: false,
            producers: Vec::with_capacity(4),
            consumers: Vec::with_capacity(4),
        };
        BoundedChannel { state: Mutex::new(state), readable: AtomicBool::new(false), max_items, max_bytes }
    }

    /// Puts `item` in, or gives it back when the channel is full or closed.
    ///
    /// # Errors
    /// The item.
    pub fn try_push(&self, item: T, bytes: usize) -> Result<(), T> {
        let mut state = self.lock();
        if state.closed || !self.has_room(&state, bytes) {
            return Err(item);
        }
        state.items.push_back((item, bytes));
        state.bytes = state.bytes.saturating_add(bytes);
        self.readable.store(true, Release);
        self.wake(state, |state| &mut state.consumers);
        Ok(())
    }

    /// Takes the oldest item; `None` when there is none at the moment or any more.
    pub fn try_pop(&self) -> Option<T> {
        let mut state = self.lock();
        let (item, bytes) = state.items.pop_front()?;
        // Sizes are added with saturation, so the sum of what is left is recounted when it is exact again: at zero items.
        state.bytes = if state.items.is_empty() { 0 } else { state.bytes.saturating_sub(bytes) };
        self.readable.store(!state.items.is_empty() || state.closed, Release);
        // A sleeping producer is woken at half: one wake-up then pays for several items. It has room by then, or is woken by
        // one of the pops that follow, at the latest by the one that leaves the queue empty.
        if state.items.len() <= self.max_items / 2 {
            self.wake(state, |state| &mut state.producers);
        }
        Some(item)
    }

    /// Puts `item` in; while there is no room the thread runs the pool's tiles.
    ///
    /// # Errors
    /// The item, once the channel is closed: nobody will take it, so the producer should stop.
    pub fn push(&self, item: T, bytes: usize, pool: &Pool) -> Result<(), T> {
        let mut item = item;
        loop {
            item = match self.try_push(item, bytes) {
                Ok(()) => return Ok(()),
                Err(back) => back,
            };
            if self.is_closed() {
                return Err(item);
            }
            pool.help_until(&|| {
                let mut state = self.lock();
                let ready = state.closed || self.has_room(&state, bytes);
                // Under the lock: whoever makes room after this look finds the thread here.
                note(&mut state.producers, !ready);
                ready
            });
        }
    }

    /// Takes the oldest item, waiting for one; `None` once the channel is closed and empty.
    ///
    /// The thread spins briefly, then parks; it does not run tiles, so that it goes on as soon as there is an item.
    pub fn pop(&self, pool: &Pool) -> Option<T> {
        loop {
            if let Some(item) = self.try_pop() {
                return Some(item);
            }
            if self.ended() {
                return None;
            }
            pool.wait_until(&|| {
                // A thread that is not registered yet must not sleep on this look alone, so the lock follows unless it is true.
                if self.readable.load(Relaxed) {
                    return true;
                }
                let mut state = self.lock();
                let ready = state.closed || !state.items.is_empty();
                note(&mut state.consumers, !ready);
                ready
            });
        }
    }

    /// Ends the channel: every later push gives its item back, every pop after the last item gives `None`. Wakes both sides.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.readable.store(true, Release);
        self.wake(state, |state| &mut state.producers);
        self.wake(self.lock(), |state| &mut state.consumers);
    }

    /// Closes the channel when the guard is dropped, so that a side that fails or panics does not leave the other waiting.
    pub fn close_on_drop(&self) -> CloseOnDrop<'_, T> {
        CloseOnDrop { channel: self }
    }

    /// Has either side closed the channel? Items may still be in it.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// The number of items in the channel now.
    pub fn len(&self) -> usize {
        self.lock().items.len()
    }

    /// Is there no item now?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn ended(&self) -> bool {
        let state = self.lock();
        state.closed && state.items.is_empty()
    }

    fn has_room(&self, state: &State<T>, bytes: usize) -> bool {
        let fits = state.bytes.checked_add(bytes).is_some_and(|sum| sum <= self.max_bytes);
        state.items.is_empty() || (state.items.len() < self.max_items && fits)
    }

    /// Wakes every thread on the list, with the lock released; those that still have to wait put themselves on it again.
    fn wake<'s>(&'s self, state: MutexGuard<'s, State<T>>, list: impl Fn(&mut State<T>) -> &mut Vec<Thread>) {
        let mut state = state;
        for _ in 0..list(&mut state).len() {
            let Some(thread) = list(&mut state).pop() else { return };
            drop(state);
            thread.unpark();
            state = self.lock();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No code of a caller runs under the lock, so a panic cannot leave the state half written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for BoundedChannel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let mut text = f.debug_struct("BoundedChannel");
        text.field("items", &state.items.len()).field("bytes", &state.bytes).field("closed", &state.closed);
        text.field("max_items", &self.max_items).field("max_bytes", &self.max_bytes).finish()
    }
}

/// Closes its channel when dropped; see [`BoundedChannel::close_on_drop`].
#[derive(Debug)]
#[must_use = "the channel is closed when the guard is dropped"]
pub struct CloseOnDrop<'c, T> {
    channel: &'c BoundedChannel<T>,
}

impl<T> Drop for CloseOnDrop<'_, T> {
    fn drop(&mut self) {
        self.channel.close();
    }
}

/// Puts the calling thread on the list, or takes it off.
fn note(list: &mut Vec<Thread>, waits: bool) {
    let me = thread::current();
    let at = list.iter().position(|thread| thread.id() == me.id());
    match (at, waits) {
        (None, true) => list.push(me),
        (Some(at), false) => drop(list.swap_remove(at)),
        (Some(_), true) | (None, false) => {}
    }
}
