//! MatMul.

use super::epilogue::{self, Tail};
use super::matmul_plain::{self, Plain, PlainProduct};
use super::matmul_tiles::{Sizes, lane_elems, lanes_bytes, misfit, run, src};
use firstlight_backend::{Caps, KernelBinding, KernelCtx, KernelQuery, ROW};
use firstlight_gemm::{Epilogue, Lhs, Product, Rhs};
use firstlight_graph::ops::MatMul;
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::{DType, Shape, bf16, f16};
use smallvec::SmallVec;

const MATMUL: KernelBinding =
    KernelBinding { op: OpKind::MatMul, caps: Caps { unaligned: true, capture_safe: true }, source: "plain", ..ROW };

pub(super) const BINDINGS: &[KernelBinding] = &[
    KernelBinding { types: &[DType::F32], kernel: matmul_f32, scratch_bytes: scratch_f32, source: "tiles", ..MATMUL },
    KernelBinding {
        op: OpKind::Fused,
        types: &[DType::F32],
        kernel: matmul_f32,
        accepts: |query| epilogue::accepts(query, |op| matches!(op, Op::MatMul(_)), true),
        scratch_bytes: scratch_f32,
        source: "matmul-tiles",
        ..MATMUL
    },
    KernelBinding { types: &[DType::F64], kernel: matmul::<f64>, ..MATMUL },
    KernelBinding { types: &[DType::F16], kernel: matmul::<f16>, ..MATMUL },
    KernelBinding { types: &[DType::BF16], kernel: matmul::<bf16>, ..MATMUL },
    KernelBinding { types: &[DType::I32], kernel: matmul::<i32>, ..MATMUL },
    KernelBinding { types: &[DType::I64], kernel: matmul::<i64>, ..MATMUL },
    KernelBinding { types: &[DType::U32], kernel: matmul::<u32>, ..MATMUL },
    KernelBinding { types: &[DType::U64], kernel: matmul::<u64>, ..MATMUL },
];

/// Which matrices are multiplied: NumPy's rules.
#[derive(Debug)]
struct Batches {
    sizes: Sizes,
    /// Broadcast leading dimensions.
    batch: Shape,
    /// For each of them, how many matrices lie from one place to the next.
    a_steps: SmallVec<[usize; 4]>,
    b_steps: SmallVec<[usize; 4]>,
}

impl Batches {
    fn new(op: &MatMul, a: &[usize], b: &[usize]) -> Option<Batches> {
        let (a_batch, m, k) = match a {
            [batch @ .., m, k] => (batch, *m, *k),
            [k] => (&[][..], 1, *k),
            [] => return None,
        };
        let (b_batch, b_k, n) = match b {
            [batch @ .., n, k] if op.transpose_b => (batch, *k, *n),
            [batch @ .., k, n] => (batch, *k, *n),
            [k] => (&[][..], *k, 1),
            [] => return None,
        };
        let batch = Shape::broadcast(a_batch, b_batch)?;
        let steps = |dims: &[usize]| {
            let mut steps: SmallVec<[usize; 4]> = SmallVec::from_elem(0, batch.rank());
            let lead = batch.rank() - dims.len();
            let mut step = 1;
            for (i, dim) in dims.iter().enumerate().rev() {
                steps[lead + i] = if *dim == 1 { 0 } else { step };
                step *= dim;
            }
            steps
        };
        let (a_steps, b_steps) = (steps(a_batch), steps(b_batch));
        let sizes = Sizes { n_products: batch.n_elems()?, m, k, n };
        (k == b_k).then_some(Batches { sizes, batch, a_steps, b_steps }.folded())
    }

    /// Rows of all matrices of A as one where they follow each other and B is one matrix for all.
    fn folded(self) -> Batches {
        let Sizes { n_products, m, .. } = self.sizes;
        let dense = self.batch.strides();
        let places = self.batch.iter().zip(&self.a_steps).zip(&self.b_steps).zip(&dense);
        let fold = places.into_iter().all(|(((dim, a), b), dense)| *dim == 1 || (*b == 0 && a == dense));
        match m.checked_mul(n_products).filter(|_| fold) {
            Some(m) => Batches {
                sizes: Sizes { n_products: 1, m, ..self.sizes },
                batch: Shape::scalar(),
                a_steps: SmallVec::new(),
                b_steps: SmallVec::new(),
            },
            None => self,
        }
    }

    /// Which matrix of A and which of B make product `i`.
    fn matrices(&self, i: usize) -> (usize, usize) {
        let (mut rest, mut a, mut b) = (i, 0, 0);
        for (d, size) in self.batch.iter().enumerate().rev() {
            let at = rest % size;
            rest /= size;
            a += at * self.a_steps[d];
            b += at * self.b_steps[d];
        }
        (a, b)
    }
}

/// Rows that a tile has: a column on the right is taken as a row on the left of the transposed matrix.
fn tile_rows(sizes: &Sizes) -> usize {
    if sizes.n == 1 { 1 } else { sizes.m }
}

fn scratch_f32(query: &KernelQuery<'_>) -> usize {
    let (Op::MatMul(op), [Some(a), Some(b), ..]) = (epilogue::base(query.op), query.inputs) else { return 0 };
    Batches::new(op, &a.dims, &b.dims).map_or(0, |batches| lanes_bytes(query.threads, tile_rows(&batches.sizes), true))
}

/// Tiles of packed panels of B; few rows, and a column on the right, read their matrix in place.
fn matmul_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::MatMul(op) = epilogue::base(ctx.op()) else { return Err(misfit()) };
    let batches = Batches::new(op, ctx.dims(0)?, ctx.dims(1)?).ok_or_else(misfit)?;
    let (a, b) = (src(ctx, 0)?, src(ctx, 1)?);
    let (out, scratch) = (ctx.output::<f32>(0)?, ctx.scratch::<f32>()?);
    let Sizes { m, k, n, .. } = batches.sizes;
    let lane = lane_elems(tile_rows(&batches.sizes), true);
    let sizes = if n == 1 { Sizes { m: 1, n: m, ..batches.sizes } } else { batches.sizes };
    let tail = Tail::new(ctx)?;
    let product = |i: usize| {
        let (a_at, b_at) = batches.matrices(i);
        let (a, b) = (a.slice(a_at * m * k, m * k), b.slice(b_at * k * n, k * n));
        let (lhs, rhs) = match n {
            1 => (Lhs::strided(b, 1, k, k, 1)?, Rhs::transposed(a, k, m, k)?),
            _ if op.transpose_b => (Lhs::strided(a, m, k, k, 1)?, Rhs::transposed(b, k, n, k)?),
            _ => (Lhs::strided(a, m, k, k, 1)?, Rhs::row_major(b, k, n, n)?),
        };
        let epilogue = Epilogue { residual: tail.residual(i, &sizes), relu: tail.relu, ..Epilogue::default() };
        Some(Product { lhs, rhs, epilogue })
    };
    run(ctx.pool(), sizes, out, scratch, lane, &product, tail.chain.as_ref())
}

/// One row of the output after the other.
fn matmul<T: Plain>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::MatMul(op) = epilogue::base(ctx.op()) else { return Err(misfit()) };
    let batches = Batches::new(op, ctx.dims(0)?, ctx.dims(1)?).ok_or_else(misfit)?;
    let (a, b, out) = (ctx.words::<T>(0)?, ctx.words::<T>(1)?, ctx.output::<T>(0)?);
    let Sizes { m, k, n, .. } = batches.sizes;
    let b_strides = if op.transpose_b { (1, k) } else { (n, 1) };
    let product = |i: usize| {
        let (a_at, b_at) = batches.matrices(i);
        PlainProduct { a_start: a_at * m * k, a_strides: (k, 1), b_start: b_at * k * n, b_strides }
    };
    matmul_plain::run(ctx.pool(), batches.sizes, (a, b), out, &product, &|sum, _, _| T::narrow(sum))
}

#[cfg(test)]
#[path = "matmul_tests.rs"]
pub(super) mod tests;
