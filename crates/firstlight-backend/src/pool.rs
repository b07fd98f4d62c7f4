//! The thread pool of a `Runtime`: tiles claimed one by one, one long job beside them, workers that spin only during a run.
//!
//! The rules that every part of it keeps:
//!
//! - A caller never waits for a worker that has not started a tile. It claims tiles itself until none is left, so a worker that
//!   the system does not schedule costs nothing.
//! - Work and sleep meet in one atomic word (`shared`): a worker that goes to sleep and a caller that announces work order
//!   themselves on it, so a wake-up cannot be lost.
//! - Every lifetime that crosses a thread does so in `slots`, the one file with `unsafe`.

mod recorder;
mod shared;
#[allow(unsafe_code)]
mod slots;
#[cfg(test)]
#[allow(unsafe_code)]
mod tests;
mod wait;

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub use recorder::TileSpan;
use shared::Shared;

/// The most threads that one pool may have.
pub const MAX_THREADS: usize = 1024;

/// Below this much work, sharing costs more than it brings even when a worker is spinning.
const SHARE_NS: u64 = 4_000;
/// A parked worker answers about this late, so less work than this is not worth a wake-up.
const WAKE_NS: u64 = 30_000;
/// This much work run alone because the workers slept, and they are woken for the next.
const WAKE_AFTER_NS: u64 = 60_000;
/// This much work, in one call or in several, and the threads are worth creating.
const SPAWN_AFTER_NS: u64 = 150_000;

/// A fixed number of threads that share tiles, created once per `Runtime` and joined when dropped.
///
/// The threads are created by the first call that can use them, never by [`Pool::new`], and never a second time. If the system
/// refuses some of them the pool works with those it has.
pub struct Pool {
    shared: Arc<Shared>,
    threads: usize,
}

impl Pool {
    /// A pool of `threads` working threads, the caller included; 0 asks the system how many this process may use.
    ///
    /// # Errors
    /// More than [`MAX_THREADS`], or a system that cannot say how many there are.
    pub fn new(threads: usize) -> io::Result<Pool> {
        let threads = match threads {
            0 => std::thread::available_parallelism()?.get().min(MAX_THREADS),
            n if n > MAX_THREADS => {
                let text =
                    format!("a pool of {n} threads: at most {MAX_THREADS}, or 0 for as many as the machine offers");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            n => n,
        };
        Ok(Pool { shared: Arc::new(Shared::new(threads - 1)), threads })
    }

    /// The number of working threads, the caller included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `body(tile)` once for every tile in `0..n_tiles`, on the caller and on every worker that is free, and returns when
    /// all have ended.
    ///
    /// Tiles are claimed one by one, in order, by whoever is free; which thread runs which tile is not fixed. One tile, one
    /// thread, or a call from inside a tile runs on the caller alone. Any number of threads may call at once. Allocates nothing.
    ///
    /// # Errors
    /// The first panic of a tile; the tiles not yet started are skipped then, and the pool stays usable.
    pub fn parallel_for(&self, n_tiles: usize, body: &(dyn Fn(usize) + Sync)) -> Result<(), TilePanic> {
        if n_tiles < 2 || self.threads < 2 || shared::in_tile() {
            return run_inline(n_tiles, body);
        }
        self.shared.ensure_workers();
        self.share(n_tiles, self.threads - 1, body)
    }

    /// [`Pool::parallel_for`] for a caller that knows about how long all tiles together take on one thread.
    ///
    /// Work that is too small to be worth waking (or creating) the workers runs on the caller alone. When such work keeps coming
    /// during a run, the workers are woken, so that the next of it finds them spinning.
    ///
    /// # Errors
    /// As [`Pool::parallel_for`].
    pub fn parallel_for_cost(
        &self,
        n_tiles: usize,
        cost_ns: u64,
        body: &(dyn Fn(usize) + Sync),
    ) -> Result<(), TilePanic> {
        if n_tiles < 2 || self.threads < 2 || cost_ns < SHARE_NS || shared::in_tile() {
            return run_inline(n_tiles, body);
        }
        let helpers = usize::try_from(cost_ns / (WAKE_NS / 3)).unwrap_or(usize::MAX).clamp(1, self.threads - 1);
        let shared = &self.shared;
        if !shared.has_workers() {
            if shared.add_missed(cost_ns) < SPAWN_AFTER_NS {
                return run_inline(n_tiles, body);
            }
            shared.clear_missed();
            shared.ensure_workers();
        } else if cost_ns < WAKE_NS && shared.n_awake() == 0 {
            if shared.guards.load(Relaxed) > 0 && shared.add_missed(cost_ns) >= WAKE_AFTER_NS {
                shared.clear_missed();
                shared.wake(helpers, true);
            }
            return run_inline(n_tiles, body);
        }
        self.share(n_tiles, helpers, body)
    }

    /// Says that a run is in progress for as long as the guard lives: idle workers spin for a short while before they park.
    ///
    /// Without a guard they park at once. Guards count, so runs may nest and overlap. Taking one wakes nobody:
    /// see [`RunGuard::wake`].
    pub fn run_guard(&self) -> RunGuard<'_> {
        self.shared.guards.fetch_add(1, Relaxed);
        RunGuard { pool: self }
    }

    /// Sets a worker aside for one job, or `None` when there is no worker that has no job yet.
    ///
    /// A worker that runs tiles counts as free: it takes the job after its present tile. The worker is given back when the seat
    /// is dropped.
    pub fn reserve_worker(&self) -> Option<WorkerSeat<'_>> {
        if self.threads < 2 || shared::in_tile() {
            return None;
        }
        self.shared.ensure_workers();
        self.shared.take_seat().map(|seat| WorkerSeat { seat })
    }

    /// Runs `job` on a worker while `main` runs on the calling thread, and returns when both have ended.
    ///
    /// [`Pool::reserve_worker`] and [`WorkerSeat::run`] in one call.
    ///
    /// # Errors
    /// `NoWorker`, with neither run, when every worker has a job or the pool has one thread.
    pub fn try_with_job<R>(
        &self,
        job: &mut (dyn FnMut() + Send),
        main: impl FnOnce() -> R,
    ) -> Result<(R, Result<(), TilePanic>), NoWorker> {
        match self.reserve_worker() {
            Some(seat) => Ok(seat.run(job, main)),
            None => Err(NoWorker),
        }
    }

    /// Waits until `done()`, running tiles of whatever parallel work is open meanwhile.
    ///
    /// This is how a job waits. It spins briefly, then parks, for a few milliseconds at most at a time: a change announced with
    /// [`Pool::notify`] (or by unparking the thread) is seen at once, a flag or a clock that nobody announces is seen soon.
    /// `done` is called often and from this thread only; it must be cheap. From inside a tile this only waits.
    pub fn help_until(&self, done: &dyn Fn() -> bool) {
        self.shared.wait_until(done, true);
    }

    /// As [`Pool::help_until`], without running tiles: for a thread that must go on as soon as `done()`.
    pub fn wait_until(&self, done: &dyn Fn() -> bool) {
        self.shared.wait_until(done, false);
    }

    /// Begins or ends to record which thread works on tiles when; recording allocates.
    ///
    /// **Edge cases**: tiles that run on their caller alone, because there are few or no worker is awake, are not recorded.
    pub fn record(&self, on: bool) {
        self.shared.recorder.switch(on);
    }

    /// What was recorded since it was last taken, in the order in which it ended.
    pub fn take_recorded(&self) -> Vec<TileSpan> {
        self.shared.recorder.take()
    }

    /// Makes every thread in [`Pool::help_until`] or [`Pool::wait_until`] look at its condition again.
    ///
    /// Whatever the caller wrote before is visible to those conditions.
    pub fn notify(&self) {
        self.shared.notify();
    }

    /// Runs tiles through a slot; with every slot taken by other callers, on the caller alone.
    fn share(&self, n_tiles: usize, helpers: usize, body: &(dyn Fn(usize) + Sync)) -> Result<(), TilePanic> {
        match slots::run_tiles(&self.shared, n_tiles, helpers.min(n_tiles - 1), body) {
            Some(result) => result,
            None => run_inline(n_tiles, body),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop_and_join();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads).field("started", &self.shared.n_started()).finish()
    }
}

// A panic inside a tile or a job never leaves the pool's own state half written.
impl RefUnwindSafe for Pool {}
impl UnwindSafe for Pool {}

/// While it lives idle workers spin briefly before they park; see [`Pool::run_guard`].
#[derive(Debug)]
#[must_use = "the run ends when the guard is dropped"]
pub struct RunGuard<'p> {
    pool: &'p Pool,
}

impl RunGuard<'_> {
    /// Wakes the parked workers, so that the first small operations of a long run find them spinning.
    ///
    /// Costs the caller a system call when a worker is parked; creates no threads.
    pub fn wake(&self) {
        if self.pool.shared.n_parked() > 0 {
            self.pool.shared.wake(self.pool.threads - 1, true);
        }
    }
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        self.pool.shared.guards.fetch_sub(1, Relaxed);
    }
}

/// A worker set aside for one job; see [`Pool::reserve_worker`].
pub struct WorkerSeat<'p> {
    seat: slots::Seat<'p>,
}

impl WorkerSeat<'_> {
    /// Runs `job` on the worker while `main` runs on the calling thread, and returns when both have ended.
    ///
    /// `main` may wait for the job, and the job for `main`. Whatever one of them waits for must also end when the other panics or
    /// returns early: close the channel between them on drop. If no worker has got to the job when `main` ends, the caller runs
    /// it itself (or skips it, if `main` panicked).
    ///
    /// # Errors
    /// The inner result is the job's panic, if it panicked. A panic of `main` is passed on after the job has ended.
    pub fn run<R>(self, job: &mut (dyn FnMut() + Send), main: impl FnOnce() -> R) -> (R, Result<(), TilePanic>) {
        self.seat.run(job, main)
    }
}

impl fmt::Debug for WorkerSeat<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSeat").finish_non_exhaustive()
    }
}

/// A tile or a job panicked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TilePanic {
    /// The tile that panicked; `None` for a job.
    pub tile: Option<usize>,
    /// The panic's message, when it was a string.
    pub message: String,
}

impl TilePanic {
    fn new(tile: Option<usize>, payload: Box<dyn Any + Send>) -> TilePanic {
        let message = match payload.downcast_ref::<&'static str>() {
            Some(text) => (*text).to_owned(),
            None => match payload.downcast_ref::<String>() {
                Some(text) => text.clone(),
                None => "a panic whose payload is not a string".to_owned(),
            },
        };
        // A payload's own drop may panic; what that throws is leaked, so that it ends here.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(second);
        }
        TilePanic { tile, message }
    }
}

impl fmt::Display for TilePanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tile {
            Some(tile) => write!(f, "tile {tile} panicked: {}", self.message),
            None => write!(f, "a job panicked: {}", self.message),
        }
    }
}

impl std::error::Error for TilePanic {}

/// No worker is free for a job: do the work on the calling thread instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoWorker;

impl fmt::Display for NoWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no worker of the pool is free for a job; run it on the calling thread")
    }
}

impl std::error::Error for NoWorker {}

/// Runs every tile on the calling thread.
fn run_inline(n_tiles: usize, body: &(dyn Fn(usize) + Sync)) -> Result<(), TilePanic> {
    let current = Cell::new(0);
    let run = || {
        for tile in 0..n_tiles {
            current.set(tile);
            body(tile);
        }
    };
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| TilePanic::new(Some(current.get()), payload))
}
