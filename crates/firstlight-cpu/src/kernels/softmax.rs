//! Softmax.

use super::number::read;
use super::real::{Lanes, Math, Real};
use super::rows::row;
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_gemm::{Binary, Isa, Reduce, Src, Unary};
use firstlight_graph::{Op, OpError, OpKind, normalise_axis};
use firstlight_tensor::DType::{BF16, F16, F32, F64};
use firstlight_tensor::{bf16, f16};

pub(super) const BINDINGS: &[KernelBinding] = &[
    row(OpKind::Softmax, &[F32], softmax_f32),
    row(OpKind::Softmax, &[F64], softmax::<f64>),
    row(OpKind::Softmax, &[F16], softmax::<f16>),
    row(OpKind::Softmax, &[BF16], softmax::<bf16>),
];

/// Columns that are normalised together when the axis is not the innermost one.
const COLUMNS: usize = 128;

/// Size of the axis, and number of elements inside it.
fn sizes(ctx: &KernelCtx<'_>) -> Result<(usize, usize), OpError> {
    let Op::Softmax(op) = ctx.op() else { return Err(super::other_op("Softmax")) };
    let dims = ctx.dims(0)?;
    if dims != ctx.out_dims(0)? {
        return Err(OpError::shape(format!("an input {dims} for an output {}", ctx.out_dims(0)?)));
    }
    let axis = normalise_axis(op.axis, dims.rank())?;
    Ok((dims[axis], dims[axis + 1..].iter().product()))
}

fn softmax_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let (n, inner) = sizes(ctx)?;
    let isa = Isa::detect();
    let x = Src::from_bytes(ctx.bytes(0)?);
    let out = ctx.output::<f32>(0)?;
    if inner == 1 {
        let ns = 0.5 + 20.0 / n.max(1) as f32;
        return spread(ctx.pool(), out, n, ns, &|from, out| {
            for (i, out) in out.chunks_exact_mut(n).enumerate() {
                isa.softmax_row(x.slice(from + i * n, n), out);
            }
        });
    }
    spread(ctx.pool(), out, n * inner, 0.8, &|from, out| {
        for (i, out) in out.chunks_exact_mut(n * inner).enumerate() {
            let x = x.slice(from + i * n * inner, n * inner);
            for column in (0..inner).step_by(COLUMNS) {
                columns(isa, x, out, n, inner, column..inner.min(column + COLUMNS));
            }
        }
    })
}

/// Softmax over the rows of some columns of an `n` x `inner` plane.
fn columns(isa: Isa, x: Src<'_>, out: &mut [f32], n: usize, inner: usize, columns: std::ops::Range<usize>) {
    let (start, width) = (columns.start, columns.len());
    let span = (n - 1) * inner + width;
    let mut buffer = [0f32; COLUMNS];
    let along = &mut buffer[..width];
    isa.reduce_rows(Reduce::Max, x.slice(start, span), n, inner, along);
    for i in 0..n {
        let to = &mut out[i * inner + start..][..width];
        isa.binary(Binary::Sub, x.slice(i * inner + start, width), &*along, to);
        isa.unary_in_place(Unary::Exp, to);
    }
    isa.reduce_rows(Reduce::Sum, &out[start..][..span], n, inner, along);
    for i in 0..n {
        isa.binary_in_place(Binary::Div, &mut out[i * inner + start..][..width], &*along);
    }
}

fn softmax<T: Real>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    const TILE: usize = 64;
    let (n, inner) = sizes(ctx)?;
    let width = size_of::<T>();
    let x = ctx.bytes(0)?;
    let out = ctx.output::<T>(0)?;
    spread(ctx.pool(), out, n * inner, 10.0, &|from, out| {
        for (i, out) in out.chunks_exact_mut((n * inner).max(1)).enumerate() {
            for column in 0..inner {
                let start = from + i * n * inner + column;
                let at = |j: usize| read::<T>(&x[(start + j * inner) * width..][..width]).widen();
                // NaN is never the largest here; it makes the sum NaN below.
                let max = (0..n).map(at).fold(T::Math::LOWEST, |max, x| if x > max { x } else { max });
                // The exponentials of a tile, so that none need be kept.
                let exps = |from: usize, tile: &mut [T::Math; TILE]| {
                    let len = TILE.min(n - from);
                    tile[..len].iter_mut().enumerate().for_each(|(j, e)| *e = at(from + j) - max);
                    T::Math::exp_all(&mut tile[..len]);
                    len
                };
                let mut tile = [T::Math::ZERO; TILE];
                let mut lanes = Lanes::new();
                for from in (0..n).step_by(TILE) {
                    let len = exps(from, &mut tile);
                    tile[..len].iter().for_each(|&e| lanes.add(e));
                }
                let sum = lanes.sum();
                for from in (0..n).step_by(TILE) {
                    let len = exps(from, &mut tile);
                    for (j, &e) in tile[..len].iter().enumerate() {
                        out[(from + j) * inner + column] = T::narrow(e / sum);
                    }
                }
            }
        }
    })
}
