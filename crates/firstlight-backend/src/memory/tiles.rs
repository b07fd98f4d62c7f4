//! Mutable slices spread over the pool.

use super::internal;
use crate::pool::Pool;
use firstlight_graph::{OpError, OpErrorKind};
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// Calls `body(i, chunk)` for each chunk of `chunk_elems` elements (the last may be shorter), spread over the pool.
///
/// **Errors**: what a panicking body said.
pub fn for_chunks_mut<T: Send>(
    pool: &Pool,
    data: &mut [T],
    chunk_elems: usize,
    body: &(dyn Fn(usize, &mut [T]) + Sync),
) -> Result<(), OpError> {
    for_chunks_mut_cost(pool, data, chunk_elems, u64::MAX, body)
}

/// [`for_chunks_mut`] for a caller that knows about how long all chunks take on one thread: too little work wakes nobody.
///
/// **Errors**: what a panicking body said.
pub fn for_chunks_mut_cost<T: Send>(
    pool: &Pool,
    data: &mut [T],
    chunk_elems: usize,
    cost_ns: u64,
    body: &(dyn Fn(usize, &mut [T]) + Sync),
) -> Result<(), OpError> {
    let chunks = Chunks::new(data, chunk_elems);
    let (n_tiles, chunks) = (chunks.n_chunks(), &chunks);
    // SAFETY: the pool calls each i below n_tiles once.
    let tile = move |i: usize| body(i, unsafe { chunks.chunk(i) });
    let ran = match cost_ns {
        u64::MAX => pool.parallel_for(n_tiles, &tile),
        cost_ns => pool.parallel_for_cost(n_tiles, cost_ns, &tile),
    };
    ran.map_err(|panic| OpError::new(OpErrorKind::Panic, panic.to_string()))
}

/// Calls `body(i, chunk, lane)` for each chunk of `chunk_elems` elements (the last may be shorter), spread over the pool, where
/// `lane` is a part of `scratch` of `lane_elems` elements that no other chunk uses meanwhile. `cost_ns` is about how long all
/// chunks take on one thread.
///
/// **Edge cases**: `scratch` must hold a lane for each working thread of the pool.
///
/// **Errors**: too little scratch; what a panicking body said.
#[allow(clippy::type_complexity)]
pub fn for_chunks_with_scratch_cost<T: Send, U: Send>(
    pool: &Pool,
    data: &mut [T],
    chunk_elems: usize,
    scratch: &mut [U],
    lane_elems: usize,
    cost_ns: u64,
    body: &(dyn Fn(usize, &mut [T], &mut [U]) + Sync),
) -> Result<(), OpError> {
    let chunks = Chunks::new(data, chunk_elems);
    let chunks = &chunks;
    for_tiles_with_scratch_cost(pool, chunks.n_chunks(), scratch, lane_elems, cost_ns, &move |i, lane| {
        // SAFETY: the pool calls each i below n_tiles once.
        let chunk = unsafe { chunks.chunk(i) };
        body(i, chunk, lane);
    })
}

/// A slice in chunks that are handed out one by one; it is borrowed mutably throughout.
struct Chunks<'a, T> {
    start: *mut T,
    len: usize,
    step: usize,
    lifetime: PhantomData<&'a mut [T]>,
}

// SAFETY: `chunk`'s callers take each chunk once, and chunks are disjoint.
unsafe impl<T: Send> Sync for Chunks<'_, T> {}

impl<'a, T> Chunks<'a, T> {
    fn new(data: &'a mut [T], chunk_elems: usize) -> Chunks<'a, T> {
        Chunks { start: data.as_mut_ptr(), len: data.len(), step: chunk_elems.max(1), lifetime: PhantomData }
    }

    fn n_chunks(&self) -> usize {
        self.len.div_ceil(self.step)
    }

    /// # Safety
    /// `i` is below [`Chunks::n_chunks`], and no chunk is taken twice.
    #[allow(clippy::mut_from_ref)]
    unsafe fn chunk(&self, i: usize) -> &'a mut [T] {
        let from = i * self.step;
        let n = self.step.min(self.len - from);
        // SAFETY: the chunk lies inside the slice and nobody else has it.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), n) }
    }
}

/// Calls `body(tile, lane)` for each tile, spread over the pool, where `lane` is a part of `scratch` of `lane_elems`
/// elements that no other tile uses meanwhile.
///
/// **Edge cases**: `scratch` must hold a lane for each working thread of the pool.
///
/// **Errors**: too little scratch; what a panicking body said.
pub fn for_tiles_with_scratch<T: Send>(
    pool: &Pool,
    n_tiles: usize,
    scratch: &mut [T],
    lane_elems: usize,
    body: &(dyn Fn(usize, &mut [T]) + Sync),
) -> Result<(), OpError> {
    for_tiles_with_scratch_cost(pool, n_tiles, scratch, lane_elems, u64::MAX, body)
}

/// [`for_tiles_with_scratch`] for a caller that knows about how long all tiles take on one thread: too little work wakes
/// nobody.
///
/// **Errors**: too little scratch; what a panicking body said.
pub fn for_tiles_with_scratch_cost<T: Send>(
    pool: &Pool,
    n_tiles: usize,
    scratch: &mut [T],
    lane_elems: usize,
    cost_ns: u64,
    body: &(dyn Fn(usize, &mut [T]) + Sync),
) -> Result<(), OpError> {
    struct Lanes<T> {
        start: *mut T,
        free: SmallVec<[AtomicU64; 16]>,
    }
    // SAFETY: a lane is used only by the thread that claimed its bit, and `scratch` is borrowed mutably throughout.
    unsafe impl<T: Send> Sync for Lanes<T> {}
    let n_lanes = pool.threads().min(n_tiles.max(1));
    if lane_elems.checked_mul(n_lanes).is_none_or(|needed| needed > scratch.len()) {
        return Err(internal("less scratch than a lane for each thread"));
    }
    let bits = |word: usize| {
        let n = (n_lanes - word * 64).min(64);
        AtomicU64::new(if n == 64 { u64::MAX } else { (1 << n) - 1 })
    };
    let lanes = Lanes { start: scratch.as_mut_ptr(), free: (0..n_lanes.div_ceil(64)).map(bits).collect() };
    let lanes = &lanes;
    let claim = move || {
        loop {
            for (i, word) in lanes.free.iter().enumerate() {
                let free = word.load(Ordering::Relaxed);
                let bit = free & free.wrapping_neg();
                // Acquire: what the lane's last user wrote happens before this use of it.
                if bit != 0 && word.compare_exchange(free, free & !bit, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return (i, bit);
                }
            }
            std::hint::spin_loop();
        }
    };
    struct Claimed<'a>(&'a AtomicU64, u64);
    impl Drop for Claimed<'_> {
        fn drop(&mut self) {
            self.0.fetch_or(self.1, Ordering::Release);
        }
    }
    let tile = move |i: usize| {
        let (word, bit) = claim();
        let _claimed = Claimed(&lanes.free[word], bit);
        let at = (word * 64 + bit.trailing_zeros() as usize) * lane_elems;
        // SAFETY: the claimed bit gives this thread alone the lane until `_claimed` is dropped; `at + lane_elems` is
        // inside the scratch, as checked above.
        let lane = unsafe { std::slice::from_raw_parts_mut(lanes.start.add(at), lane_elems) };
        body(i, lane);
    };
    let ran = match cost_ns {
        u64::MAX => pool.parallel_for(n_tiles, &tile),
        cost_ns => pool.parallel_for_cost(n_tiles, cost_ns, &tile),
    };
    ran.map_err(|panic| OpError::new(OpErrorKind::Panic, panic.to_string()))
}
