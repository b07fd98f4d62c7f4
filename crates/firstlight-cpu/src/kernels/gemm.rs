//! Gemm.

use super::epilogue::{self, Tail};
use super::matmul_plain::{self, Plain, PlainProduct};
use super::matmul_tiles::{Sizes, lane_elems, lanes_bytes, misfit, run, src};
use firstlight_backend::{Caps, KernelBinding, KernelCtx, KernelQuery, ROW};
use firstlight_gemm::{Addend, Epilogue, Lhs, Product, Rhs};
use firstlight_graph::ops::Gemm;
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::{DType, bf16, f16};

const GEMM: KernelBinding =
    KernelBinding { op: OpKind::Gemm, caps: Caps { unaligned: true, capture_safe: true }, source: "plain", ..ROW };

pub(super) const BINDINGS: &[KernelBinding] = &[
    KernelBinding { types: &[DType::F32], kernel: gemm_f32, scratch_bytes: scratch_f32, source: "tiles", ..GEMM },
    KernelBinding {
        op: OpKind::Fused,
        types: &[DType::F32],
        kernel: gemm_f32,
        accepts: |query| epilogue::accepts(query, |op| matches!(op, Op::Gemm(_)), true),
        scratch_bytes: scratch_f32,
        source: "gemm-tiles",
        ..GEMM
    },
    KernelBinding { types: &[DType::F64], kernel: gemm::<f64>, ..GEMM },
    KernelBinding { types: &[DType::F16], kernel: gemm::<f16>, ..GEMM },
    KernelBinding { types: &[DType::BF16], kernel: gemm::<bf16>, ..GEMM },
    KernelBinding { types: &[DType::I32], kernel: gemm::<i32>, ..GEMM },
    KernelBinding { types: &[DType::I64], kernel: gemm::<i64>, ..GEMM },
    KernelBinding { types: &[DType::U32], kernel: gemm::<u32>, ..GEMM },
    KernelBinding { types: &[DType::U64], kernel: gemm::<u64>, ..GEMM },
];

/// Sizes and strides of one Gemm.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    sizes: Sizes,
    a_strides: (usize, usize),
    b_strides: (usize, usize),
}

impl Geometry {
    fn new(op: &Gemm, a: &[usize], b: &[usize]) -> Option<Geometry> {
        let ([a0, a1], [b0, b1]) = (a, b) else { return None };
        let (m, k, a_strides) = if op.trans_a { (*a1, *a0, (1, *a1)) } else { (*a0, *a1, (*a1, 1)) };
        let (b_k, n, b_strides) = if op.trans_b { (*b1, *b0, (1, *b1)) } else { (*b0, *b1, (*b1, 1)) };
        (k == b_k).then_some(Geometry { sizes: Sizes { n_products: 1, m, k, n }, a_strides, b_strides })
    }
}

/// Steps of C from row to row and from column to column of the output.
fn c_strides(c: &[usize]) -> Option<(usize, usize)> {
    let step = |dim: usize, stride: usize| if dim == 1 { 0 } else { stride };
    match c {
        [] => Some((0, 0)),
        [n] => Some((0, step(*n, 1))),
        [m, n] => Some((step(*m, *n), step(*n, 1))),
        _ => None,
    }
}

fn scratch_f32(query: &KernelQuery<'_>) -> usize {
    let (Op::Gemm(op), [Some(a), Some(b), ..]) = (epilogue::base(query.op), query.inputs) else { return 0 };
    Geometry::new(op, &a.dims, &b.dims).map_or(0, |at| lanes_bytes(query.threads, at.sizes.m, true))
}

/// Tiles with `alpha` and `beta C` applied on the way out; few rows read B in place, transposed or not.
fn gemm_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::Gemm(op) = epilogue::base(ctx.op()) else { return Err(misfit()) };
    let Geometry { sizes, a_strides, .. } = Geometry::new(op, ctx.dims(0)?, ctx.dims(1)?).ok_or_else(misfit)?;
    let Sizes { m, k, n, .. } = sizes;
    let (a, b) = (src(ctx, 0)?, src(ctx, 1)?);
    let bias = match ctx.has_input(2) {
        true => {
            let (row_stride, col_stride) = c_strides(ctx.dims(2)?).ok_or_else(misfit)?;
            Some(Addend { src: src(ctx, 2)?, row_stride, col_stride, scale: op.beta })
        }
        false => None,
    };
    let tail = Tail::new(ctx)?;
    let epilogue =
        Epilogue { alpha: op.alpha, bias, residual: tail.residual(0, &sizes), relu: tail.relu, finish: None };
    let product = |_| {
        let lhs = Lhs::strided(a, m, a_strides.0, k, a_strides.1)?;
        let rhs = if op.trans_b { Rhs::transposed(b, k, n, k)? } else { Rhs::row_major(b, k, n, n)? };
        Some(Product { lhs, rhs, epilogue })
    };
    let (out, scratch) = (ctx.output::<f32>(0)?, ctx.scratch::<f32>()?);
    run(ctx.pool(), sizes, out, scratch, lane_elems(m, true), &product, tail.chain.as_ref())
}

/// One row of the output after the other.
fn gemm<T: Plain>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::Gemm(op) = ctx.op() else { return Err(misfit()) };
    let at = Geometry::new(op, ctx.dims(0)?, ctx.dims(1)?).ok_or_else(misfit)?;
    let factor = |name: &str, value: f32| {
        let wrong = || OpError::value(format!("{name} is {value}, which is no number of {}", T::DTYPE));
        T::from_attribute(value).ok_or_else(wrong)
    };
    let (alpha, beta) = (factor("alpha", op.alpha)?, factor("beta", op.beta)?);
    let c = match ctx.has_input(2) {
        true => Some((ctx.words::<T>(2)?, c_strides(ctx.dims(2)?).ok_or_else(misfit)?)),
        false => None,
    };
    let finish = |sum: T::Sum, row: usize, col: usize| {
        let scaled = T::times(sum, alpha);
        T::narrow(match &c {
            Some((c, (by_row, by_col))) => T::plus(scaled, T::times(c.get(row * by_row + col * by_col).widen(), beta)),
            None => scaled,
        })
    };
    let product = |_| PlainProduct { a_start: 0, a_strides: at.a_strides, b_start: 0, b_strides: at.b_strides };
    let (a, b, out) = (ctx.words::<T>(0)?, ctx.words::<T>(1)?, ctx.output::<T>(0)?);
    matmul_plain::run(ctx.pool(), at.sizes, (a, b), out, &product, &finish)
}

#[cfg(test)]
#[path = "gemm_tests.rs"]
mod tests;
