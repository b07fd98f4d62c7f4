//! Work over the pool: how outputs are cut into chunks.

use firstlight_backend::{Pool, for_chunks_mut_cost};
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
    if out.is_empty() {
        return Ok(());
    }
    let cost_ns = (out.len() as f32 * ns_per_elem) as u64;
    let n_chunks = match pool.threads() {
        1 => 1,
        threads => (cost_ns / CHUNK_NS).clamp(1, 8 * threads as u64) as usize,
    };
    if n_chunks == 1 {
        body(0, out);
        return Ok(());
    }
    // Chunks of many single elements end on cache lines.
    let unit = if unit <= 1 && out.len() >= 64 * n_chunks { 64 } else { unit.max(1) };
    let chunk = out.len().div_ceil(unit).div_ceil(n_chunks) * unit;
    for_chunks_mut_cost(pool, out, chunk, cost_ns, &|i, part| body(i * chunk, part))
}
