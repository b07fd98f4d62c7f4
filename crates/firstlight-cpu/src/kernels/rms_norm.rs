//! RMSNormalization.

use super::number::read;
use super::real::{Lanes, Math, Real};
use super::rows::row;
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx, KernelFn};
use firstlight_gemm::{Binary, Fold, FoldLanes, Isa, Src};
use firstlight_graph::{Op, OpError, OpKind, normalise_axis};
use firstlight_tensor::DType::{self, BF16, F16, F32, F64};
use firstlight_tensor::{bf16, f16};

pub(super) const BINDINGS: &[KernelBinding] = &[
    binding(&[F32, F32], rms_norm_f32),
    binding(&[F32, F64], rms_norm::<f32, f64>),
    binding(&[F32, F16], rms_norm::<f32, f16>),
    binding(&[F32, BF16], rms_norm::<f32, bf16>),
    binding(&[F64, F32], rms_norm::<f64, f32>),
    binding(&[F64, F64], rms_norm::<f64, f64>),
    binding(&[F64, F16], rms_norm::<f64, f16>),
    binding(&[F64, BF16], rms_norm::<f64, bf16>),
    binding(&[F16, F32], rms_norm::<f16, f32>),
    binding(&[F16, F64], rms_norm::<f16, f64>),
    binding(&[F16, F16], rms_norm::<f16, f16>),
    binding(&[F16, BF16], rms_norm::<f16, bf16>),
    binding(&[BF16, F32], rms_norm::<bf16, f32>),
    binding(&[BF16, F64], rms_norm::<bf16, f64>),
    binding(&[BF16, F16], rms_norm::<bf16, f16>),
    binding(&[BF16, BF16], rms_norm::<bf16, bf16>),
];

const fn binding(types: &'static [DType], kernel: KernelFn) -> KernelBinding {
    KernelBinding { accepts: super::norm::accepts, ..row(OpKind::RMSNormalization, types, kernel) }
}

/// Elements of a row, and epsilon.
fn settings(ctx: &KernelCtx<'_>) -> Result<(usize, f32), OpError> {
    let Op::RMSNormalization(op) = ctx.op() else { return Err(super::other_op("RMSNormalization")) };
    let dims = ctx.dims(0)?;
    let axis = normalise_axis(op.axis, dims.rank())?;
    Ok((dims[axis..].iter().fold(1usize, |n, &dim| n.saturating_mul(dim)), op.epsilon))
}

fn rms_norm_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let (n, epsilon) = settings(ctx)?;
    let isa = Isa::detect();
    let x = Src::from_bytes(ctx.bytes(0)?);
    let scale = Src::from_bytes(ctx.bytes(1)?);
    let y = ctx.output::<f32>(0)?;
    spread(ctx.pool(), y, n, 0.25 + 20.0 / n.max(1) as f32, &|from, y| {
        for (i, y) in y.chunks_exact_mut(n).enumerate() {
            let x = x.slice(from + i * n, n);
            let mut squares = FoldLanes::new(Fold::SumSquares, 0.0);
            squares.add(isa, x);
            let inverse = 1.0 / (squares.finish() / n as f32 + epsilon).sqrt();
            isa.binary_scalar(Binary::Mul, x, inverse, y);
            isa.binary_in_place(Binary::Mul, y, scale);
        }
    })
}

fn rms_norm<T: Real, V: Real>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let (n, epsilon) = settings(ctx)?;
    let (x, scale) = (ctx.bytes(0)?, ctx.bytes(1)?);
    let at = |i: usize| read::<T>(&x[i * size_of::<T>()..][..size_of::<T>()]).widen();
    let scale = |i: usize| T::Math::of(read::<V>(&scale[i * size_of::<V>()..][..size_of::<V>()]).widen().to_f64());
    let y = ctx.output::<V>(0)?;
    spread(ctx.pool(), y, n, 4.0, &|from, y| {
        for (row, y) in y.chunks_exact_mut(n).enumerate() {
            let start = from + row * n;
            let mut squares = Lanes::new();
            (start..start + n).for_each(|i| squares.add(at(i) * at(i)));
            let mean = squares.sum() / T::Math::of(n as f64) + T::Math::of(epsilon.into());
            let inverse = T::Math::of(1.0) / mean.sqrt();
            for (i, y) in y.iter_mut().enumerate() {
                let scaled = at(start + i) * inverse * scale(i);
                *y = V::narrow(V::Math::of(scaled.to_f64()));
            }
        }
    })
}
