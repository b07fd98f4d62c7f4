//! Products cut into tiles over the pool: what MatMul, Gemm and Conv share.
//!
//! A tile's bits depend on its operands alone (`docs/numerics.md`), so the cut follows the pool and the cost.
#![allow(unsafe_code)]

use super::chain::Chain;
use firstlight_backend::{KernelCtx, Pool, for_tiles_with_scratch_cost};
use firstlight_gemm::{Block, Epilogue, Finish, Isa, NR, Out, PRODUCT_SCRATCH_ELEMS, Product, SMALL_M, Src};
use firstlight_graph::{OpError, OpErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Products of one size whose outputs follow each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) n_products: usize,
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
}

/// Operations a nanosecond, about.
const FLOPS_PER_NS: f64 = 100.0;
/// Bytes a nanosecond from memory, about.
const BYTES_PER_NS: f64 = 12.0;
/// About how long a tile should take.
const TILE_NS: f64 = 25_000.0;
/// Columns that share a pass over the rows.
const GROUP: usize = 4 * NR;
/// Fewest rows that are worth packing a panel for.
const MIN_ROWS: usize = 96;

/// Elements of scratch that a thread needs for tiles of `m` rows.
pub(super) fn lane_elems(m: usize, of_matrices: bool) -> usize {
    if of_matrices && m <= SMALL_M { 0 } else { PRODUCT_SCRATCH_ELEMS }
}

/// Bytes of scratch for all threads.
pub(super) fn lanes_bytes(threads: usize, m: usize, of_matrices: bool) -> usize {
    lane_elems(m, of_matrices).saturating_mul(threads).saturating_mul(size_of::<f32>())
}

/// Input `i` as f32 at any alignment.
///
/// **Errors**: the input is omitted.
pub(super) fn src<'a>(ctx: &KernelCtx<'a>, i: usize) -> Result<Src<'a>, OpError> {
    let words = ctx.words::<f32>(i)?;
    // SAFETY: the words are readable for 'a, at any alignment, and outputs do not overlap them.
    Ok(unsafe { Src::from_raw(words.as_ptr(), words.len()) })
}

/// How each product is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    rows: usize,
    cols: usize,
}

/// Writes `sizes.n_products` products to `out`, one below the other; `product(i)` describes the i-th. What `chain` does to
/// the output follows each block of results.
///
/// **Errors**: operands that do not fit the sizes; too little scratch; what a panicking tile said.
pub(super) fn run<'a>(
    pool: &Pool,
    sizes: Sizes,
    out: &mut [f32],
    scratch: &mut [f32],
    lane_elems: usize,
    product: &(dyn Fn(usize) -> Option<Product<'a>> + Sync),
    chain: Option<&Chain<'_>>,
) -> Result<(), OpError> {
    let Sizes { n_products, m, n, .. } = sizes;
    if out.is_empty() {
        return Ok(());
    }
    let rows = n_products.checked_mul(m);
    let n_elems = out.len() as f64;
    let out = rows.and_then(|rows| Out::new(out, rows, n, n)).ok_or_else(misfit)?;
    let cost_ns = sizes.cost_ns() + chain.map_or(0.0, |chain| n_elems * f64::from(chain.ns_per_elem()));
    let cut = sizes.cut(pool.threads(), cost_ns);
    let n_cols = n.div_ceil(cut.cols);
    let per_product = m.div_ceil(cut.rows) * n_cols;
    let isa = Isa::detect();
    let failed = AtomicBool::new(false);
    let tile = |tile: usize, lane: &mut [f32]| {
        let (i, at) = (tile / per_product, tile % per_product);
        let (row, col) = (at / n_cols * cut.rows, at % n_cols * cut.cols);
        let (rows, cols) = (row..m.min(row + cut.rows), col..n.min(col + cut.cols));
        let finish = |block: Block<'_>| {
            if let Some(chain) = chain {
                let longest = block.part_len();
                chain.run_parts(isa, longest, block.map(|(row, col, part)| ((i * m + row) * n + col, part)));
            }
        };
        let finish = chain.map(|_| Finish(&finish));
        let done = match (product(i), out.rows(i * m, m)) {
            // SAFETY: tiles of one cut are disjoint, each is run once, and outputs do not overlap operands.
            (Some(product), Some(out)) => unsafe {
                let epilogue = Epilogue { finish, ..product.epilogue };
                isa.product_tile(&Product { epilogue, ..product }, out, rows, cols, lane)
            },
            _ => false,
        };
        if !done {
            failed.store(true, Ordering::Relaxed);
        }
    };
    for_tiles_with_scratch_cost(pool, n_products * per_product, scratch, lane_elems, cost_ns as u64, &tile)?;
    if failed.into_inner() { Err(misfit()) } else { Ok(()) }
}

pub(super) fn misfit() -> OpError {
    OpError::new(OpErrorKind::Device, "broken plan: the op, operands or scratch of a product do not fit each other")
}

impl Sizes {
    /// About how long everything takes on one thread.
    fn cost_ns(&self) -> f64 {
        let [products, m, k, n] = [self.n_products, self.m, self.k, self.n].map(|x| x as f64);
        // A product is bound by arithmetic, or by reading the larger operand.
        let flops = 2.0 * m * k * n / FLOPS_PER_NS;
        let bytes = 4.0 * (m * k + k * n + m * n) / BYTES_PER_NS;
        products * flops.max(if m <= SMALL_M as f64 { bytes } else { 0.0 })
    }

    fn cut(&self, threads: usize, cost_ns: f64) -> Cut {
        let whole = Cut { rows: self.m.max(1), cols: self.n.max(1) };
        let wanted = (cost_ns / TILE_NS).min(8.0 * threads as f64) as usize;
        let wanted = wanted.div_ceil(self.n_products.max(1));
        if threads == 1 || wanted <= 1 {
            return whole;
        }
        // Columns by whole groups, then rows, then columns by panels.
        let groups = self.n.div_ceil(GROUP);
        let by_groups = wanted.min(groups);
        let cols = groups.div_ceil(by_groups) * GROUP;
        let n_cols = self.n.div_ceil(cols);
        let mut n_rows = wanted.div_ceil(n_cols).min(self.m / MIN_ROWS).max(1);
        if n_rows > threads {
            n_rows -= n_rows % threads;
        }
        let rows = self.m.div_ceil(n_rows).next_multiple_of(8);
        if self.m.div_ceil(rows) * n_cols * self.n_products >= 2 * threads || self.n <= NR {
            return Cut { rows, cols };
        }
        let panels = self.n.div_ceil(NR);
        Cut { rows, cols: panels.div_ceil(wanted.min(panels)) * NR }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_follow_the_threads_and_the_cost() {
        let cut = |threads, n_products, m, k, n| {
            let sizes = Sizes { n_products, m, k, n };
            sizes.cut(threads, sizes.cost_ns())
        };
        assert_eq!(cut(1, 1, 512, 512, 512), Cut { rows: 512, cols: 512 }, "one thread");
        assert_eq!(cut(2, 1, 8, 8, 8), Cut { rows: 8, cols: 8 }, "little work");
        assert_eq!(cut(2, 1, 64, 576, 3136), Cut { rows: 64, cols: 2 * GROUP }, "columns by groups");
        assert_eq!(cut(2, 1, 512, 4608, 49), Cut { rows: 128, cols: GROUP }, "few columns: rows");
        assert_eq!(cut(2, 1, 64, 4608, 49).cols, NR, "few rows and columns: panels");
        assert_eq!(cut(2, 100, 128, 64, 128), Cut { rows: 128, cols: 128 }, "many products");
    }
}
