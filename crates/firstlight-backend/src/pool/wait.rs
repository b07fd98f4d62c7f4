//! Waiting: spin briefly, then park until somebody notifies.

#![forbid(unsafe_code)]

use std::hint::spin_loop;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::shared::{Shared, in_tile};

/// How long an idle worker spins during a run.
const SPIN_IN_RUN: Duration = Duration::from_micros(75);
/// How long a thread spins that waits for one thing, when no run keeps it warm.
const SPIN_FOR_ONE: Duration = Duration::from_micros(20);
/// Looks at the clock once in so many looks at the condition.
const LOOKS_PER_CLOCK: u32 = 32;
/// The longest a waiting thread sleeps before it looks again. Unit tests sleep for as long as it takes, so a lost wake-up hangs them.
const PARK_BOUND: Option<Duration> = if cfg!(test) { None } else { Some(Duration::from_millis(5)) };

/// Measures how long a thread has had nothing to do.
pub(super) struct SpinClock {
    idle_since: Option<Instant>,
}

impl SpinClock {
    pub(super) fn new() -> SpinClock {
        SpinClock { idle_since: None }
    }

    pub(super) fn restart(&mut self) {
        self.idle_since = None;
    }

    /// [`SpinClock::spin`] for an idle worker during a run.
    ///
    /// The worker offers its core now and then. On a busy machine a woken worker may have been put on the caller's own core, and
    /// would otherwise hold the caller up for as long as it spins. (A thread that waits for one thing does not do this: the offer
    /// may cost it a whole time slice.)
    pub(super) fn spin_in_run(&mut self, look: &dyn Fn() -> bool) -> bool {
        let spun = self.spin(SPIN_IN_RUN, look);
        if spun && !look() {
            thread::yield_now();
        }
        spun
    }

    /// Spins for a microsecond or two, or until `look()`. False, at once, if the thread has been idle for longer than `window`.
    fn spin(&mut self, window: Duration, look: &dyn Fn() -> bool) -> bool {
        let now = Instant::now();
        let since = *self.idle_since.get_or_insert(now);
        if now.saturating_duration_since(since) >= window {
            return false;
        }
        for _ in 0..LOOKS_PER_CLOCK {
            if look() {
                break;
            }
            spin_loop();
        }
        true
    }
}

/// The threads that are parked until [`Shared::notify`].
pub(super) struct Waiters {
    n: AtomicUsize,
    threads: Mutex<Vec<Thread>>,
}

impl Waiters {
    pub(super) fn new(n_workers: usize) -> Waiters {
        // Room for all workers and some callers; with still more callers waiting at once the list grows.
        Waiters { n: AtomicUsize::new(0), threads: Mutex::new(Vec::with_capacity(n_workers + 16)) }
    }

    fn register(&self) -> Registered<'_> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread::current());
        self.n.fetch_add(1, AcqRel);
        Registered { waiters: self }
    }
}

struct Registered<'w> {
    waiters: &'w Waiters,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let me = thread::current().id();
        let mut threads = self.waiters.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = threads.iter().position(|thread| thread.id() == me) {
            threads.swap_remove(at);
        }
        self.waiters.n.fetch_sub(1, AcqRel);
    }
}

/// Undoes [`Shared::begin_helping_park`].
struct HelpingPark<'s> {
    shared: &'s Shared,
    index: usize,
}

impl Drop for HelpingPark<'_> {
    fn drop(&mut self) {
        self.shared.end_helping_park(self.index);
    }
}

impl Shared {
    /// Wakes every thread that is parked in [`Shared::wait_until`].
    ///
    /// The counter is read by a read-modify-write, as it is raised. If the waiter's comes first, this one reads the count and
    /// unparks the waiter. If this one comes first, the waiter's reads what this one released, so all that the caller wrote before
    /// is visible when the waiter calls `done()` after it, before it sleeps.
    pub(super) fn notify(&self) {
        if self.waiters.n.fetch_add(0, AcqRel) > 0 {
            let threads = self.waiters.threads.lock().unwrap_or_else(PoisonError::into_inner);
            threads.iter().for_each(Thread::unpark);
        }
    }

    /// Returns once `done()`; runs tiles meanwhile if `help`.
    pub(super) fn wait_until(&self, done: &dyn Fn() -> bool, help: bool) {
        if done() {
            return;
        }
        let help = help && !in_tile();
        let worker = if help { self.worker_index() } else { None };
        let _ready = worker.map(|_| self.pause_job());
        let mut clock = SpinClock::new();
        loop {
            if done() {
                return;
            }
            if help && self.help_with_tiles(worker.unwrap_or(0), done) {
                clock.restart();
                continue;
            }
            let window = if self.guards.load(Relaxed) > 0 { SPIN_IN_RUN } else { SPIN_FOR_ONE };
            if !clock.spin(window, &|| done() || (help && self.tiles_open())) {
                self.park_until(done, worker);
                clock.restart();
            }
        }
    }

    /// Parks until `done()`, or until a worker is wanted for tiles.
    fn park_until(&self, done: &dyn Fn() -> bool, worker: Option<usize>) {
        let _registered = self.waiters.register();
        let parked = worker.map(|index| {
            let tiles_open = self.begin_helping_park(index);
            (HelpingPark { shared: self, index }, tiles_open)
        });
        if parked.as_ref().is_some_and(|(_, tiles_open)| *tiles_open) {
            return;
        }
        // An unpark that comes between the look and the sleep is kept by the thread's token and ends the sleep at once.
        while !done() && worker.is_none_or(|index| !self.woken_to_help(index)) {
            match PARK_BOUND {
                Some(bound) => thread::park_timeout(bound),
                None => thread::park(),
            }
        }
    }
}
