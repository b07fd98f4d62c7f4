//! Work over the pool: how outputs are cut into chunks.

use firstlight_backend::{Pool, for_chunks_mut_cost, for_chunks_with_scratch_cost};
use firstlight_graph::OpError;

/// About how long a kernel that only streams takes for an element of four bytes.
pub(super) const STREAM_NS: f32 = 0.15;

/// About how long one chunk should take.
const CHUNK_NS: u64 = 8_000;

/// Calls `body(at, chunk)` for chunks of whole units of `unit` elements that start at element `at`; on the caller alone
/// where the work is small. What a chunk computes may not depend on where it starts.
///
/// **Errors**: what a panicking body said.
pub(super) fn spread<T: Send>(
    pool: &Pool,
    out: &mut [T],
    unit: usize,
    ns_per_elem: f32,
    body: &(dyn Fn(usize, &mut [T]) + Sync),
) -> Result<(), OpError> {
    let (chunk, cost_ns) = chunk_elems(pool, out.len(), unit, ns_per_elem);
    if chunk >= out.len() {
        if !out.is_empty() {
            body(0, out);
        }
        return Ok(());
    }
    for_chunks_mut_cost(pool, out, chunk, cost_ns, &|i, part| body(i * chunk, part))
}

/// [`spread`] for a body that wants `lane_elems` elements of scratch for each thread.
///
/// **Errors**: too little scratch; what a panicking body said.
#[allow(clippy::type_complexity)]
pub(super) fn spread_with_scratch<T: Send>(
    pool: &Pool,
    out: &mut [T],
    unit: usize,
    ns_per_elem: f32,
    (scratch, lane_elems): (&mut [f32], usize),
    body: &(dyn Fn(usize, &mut [T], &mut [f32]) + Sync),
) -> Result<(), OpError> {
    let (chunk, cost_ns) = chunk_elems(pool, out.len(), unit, ns_per_elem);
    for_chunks_with_scratch_cost(pool, out, chunk, scratch, lane_elems, cost_ns, &|i, part, lane| {
        body(i * chunk, part, lane);
    })
}

/// Elements of a chunk, and about how long all chunks take on one thread.
fn chunk_elems(pool: &Pool, len: usize, unit: usize, ns_per_elem: f32) -> (usize, u64) {
    let cost_ns = (len as f32 * ns_per_elem) as u64;
    let n_chunks = match pool.threads() {
        1 => 1,
        threads => (cost_ns / CHUNK_NS).clamp(1, 8 * threads as u64) as usize,
    };
    if n_chunks == 1 {
        return (len.max(1), cost_ns);
    }
    // Chunks of many single elements end on cache lines.
    let unit = if unit <= 1 && len >= 64 * n_chunks { 64 } else { unit.max(1) };
    (len.div_ceil(unit).div_ceil(n_chunks) * unit, cost_ns)
}
