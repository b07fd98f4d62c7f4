//! LayerNormalization.

use super::number::read;
use super::real::{Lanes, Math, Real};
use super::rows::row;
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx, KernelQuery, OperandSpec};
use firstlight_gemm::{Isa, Reduce, Src};
use firstlight_graph::{Op, OpError, OpKind, normalise_axis};
use firstlight_tensor::DType::{BF16, F16, F32, F64};
use firstlight_tensor::{bf16, f16};

pub(super) const BINDINGS: &[KernelBinding] = &[
    KernelBinding { accepts, ..row(OpKind::LayerNormalization, &[F32], layer_norm_f32) },
    KernelBinding { accepts, ..row(OpKind::LayerNormalization, &[F64], layer_norm::<f64>) },
    KernelBinding { accepts, ..row(OpKind::LayerNormalization, &[F16], layer_norm::<f16>) },
    KernelBinding { accepts, ..row(OpKind::LayerNormalization, &[BF16], layer_norm::<bf16>) },
];

/// Scale and bias hold one element for each of a row, as they nearly always do.
pub(super) fn accepts(query: &KernelQuery<'_>) -> bool {
    let axis = match query.op {
        Op::LayerNormalization(op) => op.axis,
        Op::RMSNormalization(op) => op.axis,
        _ => return false,
    };
    let Some(Some(x)) = query.inputs.first() else { return false };
    let Ok(axis) = normalise_axis(axis, x.dims.rank()) else { return false };
    let is_row = |spec: &OperandSpec| {
        let row = &x.dims[axis..];
        let lead = spec.dims.rank().checked_sub(row.len());
        lead.is_some_and(|lead| spec.dims[lead..] == *row && spec.dims[..lead].iter().all(|&dim| dim == 1))
    };
    query.inputs.iter().skip(1).flatten().all(is_row)
}

/// Elements of a row.
fn row_len(ctx: &KernelCtx<'_>) -> Result<usize, OpError> {
    let Op::LayerNormalization(op) = ctx.op() else { return Err(super::other_op("LayerNormalization")) };
    let dims = ctx.dims(0)?;
    let axis = normalise_axis(op.axis, dims.rank())?;
    // Where a product of some sizes saturates another size is 0, and there is nothing to read.
    Ok(dims[axis..].iter().fold(1usize, |n, &dim| n.saturating_mul(dim)))
}

fn epsilon(ctx: &KernelCtx<'_>) -> Result<f32, OpError> {
    match ctx.op() {
        Op::LayerNormalization(op) => Ok(op.epsilon),
        _ => Err(super::other_op("LayerNormalization")),
    }
}

fn layer_norm_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let (n, eps) = (row_len(ctx)?, epsilon(ctx)?);
    let isa = Isa::detect();
    let x = Src::from_bytes(ctx.bytes(0)?);
    let scale = Src::from_bytes(ctx.bytes(1)?);
    let bias = if ctx.has_input(2) { Some(Src::from_bytes(ctx.bytes(2)?)) } else { None };
    let y = ctx.output::<f32>(0)?;
    let ns = 0.3 + 20.0 / n.max(1) as f32;
    spread(ctx.pool(), y, n, ns, &|from, y| {
        for (i, y) in y.chunks_exact_mut(n).enumerate() {
            isa.layer_norm_row(x.slice(from + i * n, n), scale, bias, eps, y);
        }
    })?;
    // The moments are asked for in training graphs only, so they are computed again.
    for i in 1..ctx.n_outputs() {
        let out = ctx.output::<f32>(i)?;
        spread(ctx.pool(), out, 1, 0.2 * n as f32, &|from, out| {
            for (j, out) in out.iter_mut().enumerate() {
                let x = x.slice((from + j).saturating_mul(n), n);
                let mean = isa.reduce(Reduce::Sum, x) / n as f32;
                let inverse = || 1.0 / (isa.sum_squared_deviations(x, mean) / n as f32 + eps).sqrt();
                *out = if i == 1 { mean } else { inverse() };
            }
        })?;
    }
    Ok(())
}

fn layer_norm<T: Real>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let (n, eps) = (row_len(ctx)?, epsilon(ctx)?);
    let width = size_of::<T>();
    let (x, scale) = (ctx.bytes(0)?, ctx.bytes(1)?);
    let bias = if ctx.has_input(2) { Some(ctx.bytes(2)?) } else { None };
    let at = |bytes: &[u8], i: usize| read::<T>(&bytes[i * width..][..width]).widen();
    let moments = |row: usize| moments(if x.is_empty() { 0 } else { n }, eps, |i| at(x, row * n + i));
    let y = ctx.output::<T>(0)?;
    spread(ctx.pool(), y, n, 5.0, &|from, y| {
        for (row, y) in y.chunks_exact_mut(n).enumerate() {
            let row = from / n + row;
            let (mean, inverse) = moments(row);
            for (i, y) in y.iter_mut().enumerate() {
                let scaled = (at(x, row * n + i) - mean) * inverse * at(scale, i);
                *y = T::narrow(bias.map_or(scaled, |bias| scaled + at(bias, i)));
            }
        }
    })?;
    for i in 1..ctx.n_outputs() {
        for (row, out) in ctx.output::<f32>(i)?.iter_mut().enumerate() {
            let (mean, inverse) = moments(row);
            *out = if i == 1 { mean } else { inverse }.to_f64() as f32;
        }
    }
    Ok(())
}

/// Mean and the reciprocal of the standard deviation of `n` elements.
pub(super) fn moments<M: Math>(n: usize, epsilon: f32, at: impl Fn(usize) -> M) -> (M, M) {
    let count = M::of(n as f64);
    let mut sum = Lanes::new();
    (0..n).for_each(|i| sum.add(at(i)));
    let mean = sum.sum() / count;
    let mut squares = Lanes::new();
    for i in 0..n {
        let deviation = at(i) - mean;
        squares.add(deviation * deviation);
    }
    (mean, M::of(1.0) / (squares.sum() / count + M::of(epsilon.into())).sqrt())
}
