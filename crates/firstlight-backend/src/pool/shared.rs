//! What all threads of a pool see: the control word, the workers' flags, the worker's loop.
//!
//! # The control word
//! `control` holds the open tile slots, the waiting jobs, the stop bit and the number of parked workers. Whoever announces work
//! sets a bit in it, whoever parks raises the count in it, both by read-modify-write. All such operations on one word have a
//! single order, and each reads the value that the one before it left. So of an announcement and a parking one comes first:
//! either the worker reads the bit and does not sleep, or the announcer reads the count, and everything that the worker wrote
//! before (its flag) is visible to the announcer, which wakes it. No fence and no sequentially consistent order is needed.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle, Thread};

use super::recorder::Recorder;
use super::slots::{JobSlot, Seat, TileSlot};
use super::wait::{SpinClock, Waiters};

/// How many callers can share tiles at once; another one runs its tiles alone.
pub(super) const N_TILE_SLOTS: usize = 16;
/// How many jobs can wait or run at once.
pub(super) const N_JOB_SLOTS: usize = 16;

const TILE_BITS: u64 = (1 << N_TILE_SLOTS) - 1;
const JOB_SHIFT: usize = 16;
const JOB_BITS: u64 = ((1 << N_JOB_SLOTS) - 1) << JOB_SHIFT;
const STOP: u64 = 1 << 32;
const PARKED_SHIFT: u32 = 48;
const PARKED_ONE: u64 = 1 << PARKED_SHIFT;

/// A thread wakes at most this many others at once; those wake the rest.
const WAKE_FAN_OUT: usize = 2;

const AWAKE: u32 = 0;
const PARKED_IDLE: u32 = 1;
const PARKED_HELPING: u32 = 2;

thread_local! {
    static IN_TILE: Cell<bool> = const { Cell::new(false) };
    /// Address of the `Shared` that this thread works for, and its index there.
    static WORKER: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Is the calling thread inside a tile of any pool?
pub(super) fn in_tile() -> bool {
    IN_TILE.get()
}

/// Marks the calling thread as being inside a tile until it is dropped.
pub(super) struct InTile {
    before: bool,
}

impl InTile {
    pub(super) fn enter() -> InTile {
        InTile { before: IN_TILE.replace(true) }
    }
}

impl Drop for InTile {
    fn drop(&mut self) {
        IN_TILE.set(self.before);
    }
}

pub(super) struct Shared {
    control: Control,
    /// Runs in progress.
    pub(super) guards: AtomicUsize,
    /// Jobs that may wait or run at once: no more than there are workers.
    n_seats: AtomicUsize,
    /// Workers whose thread has started.
    started: AtomicUsize,
    /// Workers inside a job that do not wait in it.
    in_job: AtomicUsize,
    /// Expected cost of what ran alone because no worker was awake.
    missed_ns: AtomicU64,
    spawned: AtomicBool,
    handles: Mutex<Vec<JoinHandle<()>>>,
    workers: Box<[Worker]>,
    pub(super) waiters: Waiters,
    pub(super) recorder: Recorder,
    pub(super) tile_slots: [TileSlot; N_TILE_SLOTS],
    pub(super) job_slots: [JobSlot; N_JOB_SLOTS],
}

/// On cache lines of its own: idle workers poll it.
#[repr(align(128))]
struct Control(AtomicU64);

#[derive(Default)]
#[repr(align(128))]
struct Worker {
    flag: AtomicU32,
    /// Set by the worker before it first parks.
    thread: OnceLock<Thread>,
}

impl Shared {
    pub(super) fn new(n_workers: usize) -> Shared {
        Shared {
            control: Control(AtomicU64::new(0)),
            guards: AtomicUsize::new(0),
            n_seats: AtomicUsize::new(0),
            started: AtomicUsize::new(0),
            in_job: AtomicUsize::new(0),
            missed_ns: AtomicU64::new(0),
            spawned: AtomicBool::new(false),
            handles: Mutex::new(Vec::new()),
            workers: (0..n_workers).map(|_| Worker::default()).collect(),
            waiters: Waiters::new(n_workers),
            recorder: Recorder::default(),
            tile_slots: Default::default(),
            job_slots: Default::default(),
        }
    }

    pub(super) fn n_started(&self) -> usize {
        self.started.load(Relaxed)
    }

    pub(super) fn n_parked(&self) -> usize {
        n_parked(self.control.0.load(Relaxed))
    }

    /// About how many workers would see tiles without being woken.
    pub(super) fn n_awake(&self) -> usize {
        self.awake_of(self.control.0.load(Relaxed))
    }

    fn awake_of(&self, control: u64) -> usize {
        self.started.load(Relaxed).saturating_sub(n_parked(control)).saturating_sub(self.in_job.load(Relaxed))
    }

    pub(super) fn add_missed(&self, cost_ns: u64) -> u64 {
        // Each addend is below `SPAWN_AFTER_NS` or resets the sum, so this does not wrap.
        self.missed_ns.fetch_add(cost_ns.min(u64::from(u32::MAX)), Relaxed).saturating_add(cost_ns)
    }

    pub(super) fn clear_missed(&self) {
        self.missed_ns.store(0, Relaxed);
    }

    // ---- workers' threads

    pub(super) fn has_workers(&self) -> bool {
        self.spawned.load(Relaxed)
    }

    /// Creates the threads, the first time it is called.
    ///
    /// The caller creates one; each worker creates two more, so a caller with many threads to come pays for one.
    pub(super) fn ensure_workers(self: &Arc<Self>) {
        if !self.spawned.load(Relaxed) && !self.spawned.swap(true, Relaxed) {
            self.spawn(0);
        }
    }

    fn spawn(self: &Arc<Self>, index: usize) {
        if index >= self.workers.len() || self.control.0.load(Relaxed) & STOP != 0 {
            return;
        }
        let shared = Arc::clone(self);
        let builder = thread::Builder::new().name(format!("firstlight-{}", index + 1));
        // A thread that the system refuses is one helper less: callers run all tiles that nobody else takes.
        if let Ok(handle) = builder.spawn(move || shared.work(index)) {
            self.handles.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
            // Not before: a job that got a seat relies on a worker that will come.
            if index < N_JOB_SLOTS {
                self.n_seats.fetch_add(1, Relaxed);
            }
        }
    }

    /// Ends all workers. A worker's handle is in the list before the thread that created it ends, and the first one's before any
    /// other exists; so when the list is empty after a join, all have been joined.
    pub(super) fn stop_and_join(&self) {
        self.control.0.fetch_or(STOP, AcqRel);
        self.wake(usize::MAX, true);
        loop {
            let handle = self.handles.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match handle {
                // A worker catches the panics of what it runs; its own end carries nothing.
                Some(handle) => drop(handle.join()),
                None => return,
            }
        }
    }

    /// The worker's loop: a job if one waits, else tiles, else spin for a while during a run, else park.
    fn work(self: Arc<Self>, index: usize) {
        WORKER.set((Arc::as_ptr(&self).addr(), index));
        let Some(worker) = self.workers.get(index) else { return };
        // It is set here and nowhere else, so it is not set yet.
        let _ = worker.thread.set(thread::current());
        self.started.fetch_add(1, Relaxed);
        self.spawn(2 * index + 1);
        self.spawn(2 * index + 2);
        let mut clock = SpinClock::new();
        loop {
            let control = self.control.0.load(Acquire);
            if control & STOP != 0 {
                return;
            }
            let worked = (control & JOB_BITS != 0 && self.run_waiting_job(control))
                || (control & TILE_BITS != 0 && self.help_with_tiles(index, &|| self.job_waits()));
            let spun = !worked && self.guards.load(Relaxed) > 0 && clock.spin_in_run(&|| self.something_open());
            if !worked && !spun {
                self.park_idle(worker);
            }
            if !spun {
                clock.restart();
            }
        }
    }

    pub(super) fn tiles_open(&self) -> bool {
        self.control.0.load(Relaxed) & TILE_BITS != 0
    }

    fn something_open(&self) -> bool {
        self.control.0.load(Relaxed) & (TILE_BITS | JOB_BITS | STOP) != 0
    }

    fn job_waits(&self) -> bool {
        self.control.0.load(Relaxed) & JOB_BITS != 0
    }

    fn park_idle(&self, worker: &Worker) {
        // Release: whoever swaps the flag back has then seen `thread`, also one who did not come by the control word.
        worker.flag.store(PARKED_IDLE, Release);
        let control = self.control.0.fetch_add(PARKED_ONE, AcqRel);
        if control & (TILE_BITS | JOB_BITS | STOP) == 0 {
            while worker.flag.load(Acquire) == PARKED_IDLE {
                thread::park();
            }
        }
        worker.flag.store(AWAKE, Relaxed);
        self.control.0.fetch_sub(PARKED_ONE, AcqRel);
    }

    /// For a worker that waits inside its job: raises the count, and says whether tiles are open already.
    pub(super) fn begin_helping_park(&self, index: usize) -> bool {
        if let Some(worker) = self.workers.get(index) {
            // Release: as in `park_idle`.
            worker.flag.store(PARKED_HELPING, Release);
        }
        self.control.0.fetch_add(PARKED_ONE, AcqRel) & TILE_BITS != 0
    }

    /// Has somebody woken this worker to help?
    pub(super) fn woken_to_help(&self, index: usize) -> bool {
        self.workers.get(index).is_none_or(|worker| worker.flag.load(Acquire) != PARKED_HELPING)
    }

    pub(super) fn end_helping_park(&self, index: usize) {
        if let Some(worker) = self.workers.get(index) {
            worker.flag.store(AWAKE, Relaxed);
        }
        self.control.0.fetch_sub(PARKED_ONE, AcqRel);
    }

    /// Wakes up to `n` parked workers; those that wait inside a job only if `helping_too`.
    ///
    /// A caller that has read the parked count by a read-modify-write of the control word misses none of those it counts: their
    /// flags were set before. Swapping the flag obliges to unpark, and only who swaps it does: the worker sleeps until then.
    pub(super) fn wake(&self, n: usize, helping_too: bool) {
        let mut left = n;
        for worker in &self.workers {
            if left == 0 {
                return;
            }
            let flag = worker.flag.load(Relaxed);
            let wanted = flag == PARKED_IDLE || (helping_too && flag == PARKED_HELPING);
            if wanted && worker.flag.compare_exchange(flag, AWAKE, AcqRel, Relaxed).is_ok() {
                if let Some(thread) = worker.thread.get() {
                    thread.unpark();
                }
                left -= 1;
            }
        }
    }

    /// Workers that sleep and that nobody has woken yet.
    #[cfg(test)]
    pub(super) fn n_asleep(&self) -> usize {
        self.workers.iter().filter(|worker| worker.flag.load(Acquire) != AWAKE).count()
    }

    /// The calling thread's index, if it is a worker of this pool.
    pub(super) fn worker_index(&self) -> Option<usize> {
        let (shared, index) = WORKER.get();
        (shared == std::ptr::from_ref(self).addr()).then_some(index)
    }

    // ---- tiles

    /// Makes slot `slot` visible and wakes up to `helpers` workers that are not awake anyway.
    pub(super) fn announce_tiles(&self, slot: usize, helpers: usize) {
        let control = self.control.0.fetch_or(1 << slot, AcqRel);
        let parked = n_parked(control);
        if parked > 0 {
            let missing = helpers.saturating_sub(self.awake_of(control)).min(parked);
            let now = missing.min(WAKE_FAN_OUT);
            if let Some(slot) = self.tile_slots.get(slot) {
                slot.set_to_wake(missing - now);
            }
            self.wake(now, true);
        }
    }

    /// No tile of slot `slot` is left to claim.
    pub(super) fn retract_tiles(&self, slot: usize) {
        if self.control.0.load(Relaxed) & (1 << slot) != 0 {
            self.control.0.fetch_and(!(1 << slot), AcqRel);
        }
    }

    /// A worker has joined the slot: it wakes some of those that are still wanted.
    pub(super) fn pass_wake_on(&self, slot: &TileSlot) {
        let n = slot.take_to_wake(WAKE_FAN_OUT);
        if n > 0 {
            self.wake(n, true);
        }
    }

    /// Runs tiles of the open slots until none is left or `leave()`; false if there was none.
    pub(super) fn help_with_tiles(&self, first: usize, leave: &dyn Fn() -> bool) -> bool {
        let open = self.control.0.load(Acquire) & TILE_BITS;
        if open == 0 {
            return false;
        }
        // Workers start at different slots, so that no caller is served last by all of them.
        (0..N_TILE_SLOTS)
            .map(|i| (first + i) % N_TILE_SLOTS)
            .any(|slot| open & (1 << slot) != 0 && self.tile_slots.get(slot).is_some_and(|s| s.help(self, slot, leave)))
    }

    // ---- jobs

    /// Sets a worker aside for a job, if one has none.
    pub(super) fn take_seat(&self) -> Option<Seat<'_>> {
        Seat::take(self, self.n_seats.load(Relaxed))
    }

    /// Makes job slot `slot` visible and wakes an idle worker.
    ///
    /// There is one: jobs hold no more seats than there are workers, so at least one worker has no job. It reads the bit before
    /// it parks, or is found parked here, or has just been woken by somebody else and then reads the bit.
    pub(super) fn announce_job(&self, slot: usize) {
        let control = self.control.0.fetch_or(1 << (JOB_SHIFT + slot), AcqRel);
        if n_parked(control) > 0 {
            self.wake(1, false);
        }
    }

    pub(super) fn retract_job(&self, slot: usize) {
        self.control.0.fetch_and(!(1 << (JOB_SHIFT + slot)), AcqRel);
    }

    fn run_waiting_job(&self, control: u64) -> bool {
        let waiting = (control & JOB_BITS) >> JOB_SHIFT;
        let mut slots = self.job_slots.iter().enumerate();
        slots.any(|(index, slot)| waiting & (1 << index) != 0 && slot.run_if_waiting(self, index))
    }

    /// Counts the calling worker as busy until the guard is dropped.
    pub(super) fn enter_job(&self) -> InJob<'_> {
        self.in_job.fetch_add(1, Relaxed);
        InJob { shared: self }
    }

    /// Counts the calling worker, which is in a job, as ready for tiles until the guard is dropped.
    pub(super) fn pause_job(&self) -> PausedJob<'_> {
        self.in_job.fetch_sub(1, Relaxed);
        PausedJob { shared: self }
    }
}

pub(super) struct InJob<'s> {
    shared: &'s Shared,
}

impl Drop for InJob<'_> {
    fn drop(&mut self) {
        self.shared.in_job.fetch_sub(1, Relaxed);
    }
}

pub(super) struct PausedJob<'s> {
    shared: &'s Shared,
}

impl Drop for PausedJob<'_> {
    fn drop(&mut self) {
        self.shared.in_job.fetch_add(1, Relaxed);
    }
}

fn n_parked(control: u64) -> usize {
    (control >> PARKED_SHIFT) as usize
}
