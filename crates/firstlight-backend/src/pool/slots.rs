//! The slots through which borrowed work reaches other threads. All of the pool's `unsafe` is here.
//!
//! A slot has one owner at a time: the caller that claimed it. The owner puts a pointer to its borrowed closure into the slot,
//! opens it, and does not return (nor unwind) before no other thread can use the pointer any more. Which thread may touch the
//! pointer follows from the slot's `state` alone.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

use super::TilePanic;
use super::shared::{InTile, Shared};

type Body = dyn Fn(usize) + Sync + 'static;
type Job = dyn FnMut() + Send + 'static;

// ---- tiles

/// Tiles not yet claimed: bits 0..44.
const LEFT: u64 = (1 << 44) - 1;
/// Threads other than the owner that are inside a tile: bits 44..60. There are fewer than 2^16 workers.
const RUNNING_SHIFT: u32 = 44;
const RUNNING_ONE: u64 = 1 << RUNNING_SHIFT;
const RUNNING: u64 = 0xffff << RUNNING_SHIFT;
/// A tile has panicked.
const PANICKED: u64 = 1 << 61;
/// The owner sleeps, or is about to, until nobody runs.
const WAITING: u64 = 1 << 62;
/// Somebody owns the slot.
const OWNED: u64 = 1 << 63;
const FREE: u64 = 0;

/// One call's tiles.
///
/// Owner: `FREE -> OWNED` (claim), `OWNED -> OWNED | n` (open), then tiles are claimed, `-> OWNED` with none left and none running,
/// `-> FREE`. Another thread's first claim is one step of `state`: it takes a tile *and* counts itself as running, and only does
/// so while tiles are left. So a thread either has a tile, and then the owner waits for it, or has nothing and touches nothing.
/// A thread that read the state long ago and claims now claims from the present owner, whoever that is: it has read nothing else.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct TileSlot {
    state: AtomicU64,
    /// How many more workers those that join should wake. A hint: nothing depends on it.
    to_wake: AtomicU32,
    work: UnsafeCell<Work>,
    panic: Mutex<Option<TilePanic>>,
}

#[derive(Clone, Copy)]
struct Work {
    body: *const Body,
    n_tiles: u64,
}

impl Default for Work {
    fn default() -> Work {
        let nothing: &'static Body = &|_| {};
        Work { body: nothing, n_tiles: 0 }
    }
}

// SAFETY: `work` is written by the owner alone, while the slot is `OWNED` with no tile left and nobody running, so that no other
// thread reads it; it is read by the owner and by threads counted in `RUNNING` (see `TileSlot`). The claim that counts a thread
// acquires what the owner released when it opened the slot. The closure behind the pointer is `Sync`.
unsafe impl Sync for TileSlot {}
// SAFETY: the pointer is only used under the protocol above, which does not depend on the thread that holds the slot.
unsafe impl Send for TileSlot {}

/// Runs all tiles through a free slot of `shared`; `None`, with nothing run, if there is no free slot.
pub(super) fn run_tiles(
    shared: &Arc<Shared>,
    n_tiles: usize,
    helpers: usize,
    body: &(dyn Fn(usize) + Sync),
) -> Option<Result<(), TilePanic>> {
    let n_tiles = u64::try_from(n_tiles).ok().filter(|n| *n <= LEFT)?;
    let is_free = |slot: &TileSlot| {
        // Acquire pairs with the release of the last owner's `FREE`: its accesses to `work` come before ours.
        slot.state.load(Relaxed) == FREE && slot.state.compare_exchange(FREE, OWNED, Acquire, Relaxed).is_ok()
    };
    let (index, slot) = shared.tile_slots.iter().enumerate().find(|(_, slot)| is_free(slot))?;
    Some(slot.own(shared, index, n_tiles, helpers, body))
}

impl TileSlot {
    /// The owner's part; the slot has been claimed.
    fn own(
        &self,
        shared: &Shared,
        index: usize,
        n_tiles: u64,
        helpers: usize,
        body: &(dyn Fn(usize) + Sync),
    ) -> Result<(), TilePanic> {
        // From here on the slot is closed again whatever happens, before `body` can go out of scope.
        let close = Close { slot: self, shared, index };
        // SAFETY: only the lifetime is changed. The pointer is used by threads that have claimed a tile and are counted as
        // running; `close` ends the claims, and waits for those threads, before this function returns or unwinds.
        let erased: *const Body =
            unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const Body>(std::ptr::from_ref(body)) };
        // SAFETY: this thread owns the slot, no tile is left and nobody runs, so no other thread accesses `work`.
        unsafe { *self.work.get() = Work { body: erased, n_tiles } };
        self.to_wake.store(0, Relaxed);
        // Release: a thread that claims a tile sees `work`. Claims are read-modify-writes, so this also holds for the later ones.
        self.state.store(OWNED | n_tiles, Release);
        shared.announce_tiles(index, helpers);

        let in_tile = InTile::enter();
        let recording = shared.recorder.span(|| 0);
        while let Some(left) = self.claim(shared, index, 0) {
            self.run_tile(shared, index, n_tiles - left, body);
        }
        drop(recording);
        drop(in_tile);
        close.finish()
    }

    /// A worker's part: runs tiles until none is left or `leave()`; false if it got none.
    pub(super) fn help(&self, shared: &Shared, index: usize, leave: &dyn Fn() -> bool) -> bool {
        let Some(mut left) = self.claim(shared, index, RUNNING_ONE) else { return false };
        let running = Running { slot: self, shared };
        let _in_tile = InTile::enter();
        let recording = shared.recorder.span(|| shared.worker_index().map_or(0, |index| index + 1));
        shared.pass_wake_on(self);
        // SAFETY: this thread is counted as running until `running` is dropped, so the owner does not write `work`; the claim
        // acquired the owner's write.
        let Work { body, n_tiles } = unsafe { *self.work.get() };
        loop {
            // SAFETY: this thread is counted as running, so the owner has not returned and `body` is still borrowed by it.
            self.run_tile(shared, index, n_tiles - left, unsafe { &*body });
            if leave() {
                break;
            }
            match self.claim(shared, index, 0) {
                Some(next) => left = next,
                None => break,
            }
        }
        drop(recording);
        drop(running);
        true
    }

    /// Takes the next tile and adds `joining` to the state in the same step; gives the number of tiles that were left.
    fn claim(&self, shared: &Shared, index: usize, joining: u64) -> Option<u64> {
        let mut state = self.state.load(Relaxed);
        while state & LEFT != 0 {
            // Acquire: see `work`. Release: not needed for a claim itself.
            match self.state.compare_exchange_weak(state, state - 1 + joining, Acquire, Relaxed) {
                Ok(_) => {
                    if state & LEFT == 1 {
                        shared.retract_tiles(index);
                    }
                    return Some(state & LEFT);
                }
                Err(now) => state = now,
            }
        }
        None
    }

    fn run_tile(&self, shared: &Shared, index: usize, tile: u64, body: &(dyn Fn(usize) + Sync)) {
        // It was a `usize` before it became a count of tiles left.
        let tile = tile as usize;
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| body(tile))) {
            self.panic
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(TilePanic::new(Some(tile), payload));
            // Skips the rest. The caller of this function is the owner or is counted as running, so the slot is still this call's.
            let _ = self.state.fetch_update(AcqRel, Relaxed, |state| Some((state & !LEFT) | PANICKED));
            shared.retract_tiles(index);
        }
    }

    pub(super) fn set_to_wake(&self, n: usize) {
        self.to_wake.store(u32::try_from(n).unwrap_or(u32::MAX), Relaxed);
    }

    /// Takes up to `most` of the wake-ups that are still to do.
    pub(super) fn take_to_wake(&self, most: usize) -> usize {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        if self.to_wake.load(Relaxed) == 0 {
            return 0;
        }
        let before = self.to_wake.fetch_update(Relaxed, Relaxed, |n| Some(n.saturating_sub(most)));
        before.map_or(0, |n| n.min(most)) as usize
    }
}

/// A thread counted as running in a slot.
struct Running<'s> {
    slot: &'s TileSlot,
    shared: &'s Shared,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Release: what the tiles wrote is visible to the owner when it sees the count. After this step the slot may have a new
        // owner, so nothing of it is touched any more.
        let before = self.slot.state.fetch_sub(RUNNING_ONE, AcqRel);
        if before & WAITING != 0 && before & RUNNING == RUNNING_ONE {
            self.shared.notify();
        }
    }
}

/// Gives the slot back once nobody can use its `work`.
struct Close<'s> {
    slot: &'s TileSlot,
    shared: &'s Shared,
    index: usize,
}

impl Close<'_> {
    fn finish(self) -> Result<(), TilePanic> {
        self.end_claims_and_wait();
        let result = if self.slot.state.load(Relaxed) & PANICKED == 0 {
            Ok(())
        } else {
            let panic = self.slot.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
            panic.map_or(Ok(()), Err)
        };
        drop(self);
        result
    }

    fn end_claims_and_wait(&self) {
        let state = &self.slot.state;
        // Only after an unwind are tiles left here.
        if state.load(Relaxed) & LEFT != 0 {
            state.fetch_and(!LEFT, AcqRel);
        }
        self.shared.retract_tiles(self.index);
        // Acquire, here and below: what the tiles wrote on other threads comes before this call's return. Each of their
        // read-modify-writes continues the release sequence of those before, so the last value seen stands for all.
        if state.load(Acquire) & RUNNING != 0 && state.fetch_or(WAITING, AcqRel) & RUNNING != 0 {
            self.shared.wait_until(&|| state.load(Acquire) & RUNNING == 0, false);
        }
    }
}

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.end_claims_and_wait();
        self.slot.state.store(FREE, Release);
    }
}

// ---- jobs

const JOB_FREE: u32 = 0;
/// A caller owns the slot; nobody else may touch it.
const JOB_OWNED: u32 = 1;
/// The job waits for a worker.
const JOB_WAITING: u32 = 2;
/// A worker runs the job.
const JOB_RUNNING: u32 = 3;
/// The job has ended and the worker is done with the slot.
const JOB_DONE: u32 = 4;

/// One job.
///
/// `FREE -> OWNED` (owner claims) `-> WAITING` (owner), then either `-> RUNNING -> DONE` (a worker) or `-> OWNED` (the owner takes
/// the job back), then `-> FREE` (owner).
#[derive(Default)]
#[repr(align(128))]
pub(super) struct JobSlot {
    state: AtomicU32,
    job: UnsafeCell<Option<*mut Job>>,
    panic: Mutex<Option<TilePanic>>,
}

// SAFETY: `job` is accessed by the owner while `OWNED`, and by the one worker that moved the state from `WAITING` to `RUNNING`
// until it stores `DONE`. Each step acquires what the step before released. The closure behind the pointer is `Send`.
unsafe impl Sync for JobSlot {}
// SAFETY: the pointer is only used under the protocol above, which does not depend on the thread that holds the slot.
unsafe impl Send for JobSlot {}

/// A job slot that the holder owns, and with it a worker that will come for the job.
pub(super) struct Seat<'s> {
    shared: &'s Shared,
    slot: &'s JobSlot,
    index: usize,
}

impl<'s> Seat<'s> {
    /// Takes one of the first `n_seats` slots, if one is free.
    pub(super) fn take(shared: &'s Shared, n_seats: usize) -> Option<Seat<'s>> {
        // Acquire pairs with the release of the last owner's `FREE`: its accesses to `job` come before ours.
        let is_free = |slot: &JobSlot| slot.state.compare_exchange(JOB_FREE, JOB_OWNED, Acquire, Relaxed).is_ok();
        let mut slots = shared.job_slots.iter().enumerate().take(n_seats);
        slots.find(|(_, slot)| is_free(slot)).map(|(index, slot)| Seat { shared, slot, index })
    }

    /// Runs `job` on a worker and `main` here, and returns when both have ended.
    pub(super) fn run<R>(self, job: &mut (dyn FnMut() + Send), main: impl FnOnce() -> R) -> (R, Result<(), TilePanic>) {
        // SAFETY: only the lifetime is changed. A worker uses the pointer between `WAITING` and `DONE`; dropping `self` takes the
        // job back or waits for `DONE`, before this function returns or unwinds.
        let erased: *mut Job =
            unsafe { std::mem::transmute::<*mut (dyn FnMut() + Send + '_), *mut Job>(std::ptr::from_mut(job)) };
        // SAFETY: the slot is `OWNED` by this thread.
        unsafe { *self.slot.job.get() = Some(erased) };
        // Release: the worker that takes the job sees the pointer, and what the job borrows.
        self.slot.state.store(JOB_WAITING, Release);
        let from_main = catch_unwind(AssertUnwindSafe(|| {
            self.announce();
            main()
        }));
        if from_main.is_ok() && self.take_back() {
            // No worker has got to it: both have to run, so it runs here.
            // SAFETY: the slot is `OWNED` by this thread again, and no worker has seen the pointer.
            self.slot.run(unsafe { &mut *erased });
        }
        self.wait();
        let panic = self.slot.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(self);
        match from_main {
            Ok(value) => (value, panic.map_or(Ok(()), Err)),
            Err(payload) => resume_unwind(payload),
        }
    }

    fn announce(&self) {
        self.shared.announce_job(self.index);
        // A worker that still saw the bit of the slot's last job may have taken this one before it was announced, and removed a
        // bit that was not there yet. Its removal comes after its `RUNNING`; so if it came before our announcement, which then
        // read what it released, we see `RUNNING` here. If we do not, the removal is still to come.
        if self.slot.state.load(Acquire) != JOB_WAITING {
            self.shared.retract_job(self.index);
        }
    }

    /// Takes a job back that no worker has begun.
    fn take_back(&self) -> bool {
        let taken = self.slot.state.compare_exchange(JOB_WAITING, JOB_OWNED, Acquire, Relaxed).is_ok();
        if taken {
            self.shared.retract_job(self.index);
        }
        taken
    }

    /// Takes the job back or waits for its end.
    fn wait(&self) {
        self.take_back();
        // Nobody but this thread leaves `OWNED`, and nobody leaves `DONE`.
        let ended = || matches!(self.slot.state.load(Acquire), JOB_OWNED | JOB_DONE);
        self.shared.wait_until(&ended, true);
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.wait();
        self.slot.state.store(JOB_FREE, Release);
    }
}

impl JobSlot {
    /// A worker's part: runs the job if it still waits.
    pub(super) fn run_if_waiting(&self, shared: &Shared, index: usize) -> bool {
        if self.state.compare_exchange(JOB_WAITING, JOB_RUNNING, Acquire, Relaxed).is_err() {
            return false;
        }
        // Before the job ends: after that the slot, and its bit, may be somebody else's.
        shared.retract_job(index);
        let busy = shared.enter_job();
        // SAFETY: this thread moved the slot from `WAITING` to `RUNNING`, so it alone may access it; the owner keeps the job
        // borrowed, and does not touch it, until `DONE`.
        if let Some(job) = unsafe { *self.job.get() } {
            // SAFETY: as above.
            self.run(unsafe { &mut *job });
        }
        drop(busy);
        // Release: what the job wrote is visible to the owner. After this step the slot is not touched any more.
        self.state.store(JOB_DONE, Release);
        shared.notify();
        true
    }

    fn run(&self, job: &mut (dyn FnMut() + Send)) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(job)) {
            *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(TilePanic::new(None, payload));
        }
    }
}
