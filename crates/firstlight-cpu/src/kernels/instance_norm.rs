//! InstanceNormalization.

use super::norm::moments;
use super::number::read;
use super::real::Real;
use super::rows::row;
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_gemm::{Isa, Reduce, Src, Unary};
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::{BF16, F16, F32, F64};
use firstlight_tensor::{bf16, f16};

pub(super) const BINDINGS: &[KernelBinding] = &[
    row(OpKind::InstanceNormalization, &[F32], channels_f32),
    row(OpKind::InstanceNormalization, &[F64], channels::<f64>),
    row(OpKind::InstanceNormalization, &[F16], channels::<f16>),
    row(OpKind::InstanceNormalization, &[BF16], channels::<bf16>),
];

/// Channels of an image, elements of a channel, and epsilon.
fn settings(ctx: &KernelCtx<'_>) -> Result<(usize, usize, f32), OpError> {
    let Op::InstanceNormalization(op) = ctx.op() else { return Err(super::other_op("InstanceNormalization")) };
    let (x, scale, bias, y) = (ctx.dims(0)?, ctx.dims(1)?, ctx.dims(2)?, ctx.out_dims(0)?);
    match x.get(1) {
        Some(&n_channels) if [scale, bias].iter().all(|dims| dims.n_elems() == Some(n_channels)) && x == y => {
            // Where a product of some sizes saturates another size is 0, and there is nothing to read.
            Ok((n_channels, x[2..].iter().fold(1usize, |n, &dim| n.saturating_mul(dim)), op.epsilon))
        }
        _ => Err(OpError::shape(format!("an input {x}, scale {scale} and bias {bias} for an output {y}"))),
    }
}

fn channels_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let (n_channels, n, epsilon) = settings(ctx)?;
    let isa = Isa::detect();
    let src = |i: usize| ctx.bytes(i).map(Src::from_bytes);
    let (x, scale, bias) = (src(0)?, src(1)?, src(2)?);
    let y = ctx.output::<f32>(0)?;
    spread(ctx.pool(), y, n, 0.3 + 20.0 / n.max(1) as f32, &|from, y| {
        for (i, y) in y.chunks_exact_mut(n).enumerate() {
            let x = x.slice(from + i * n, n);
            let channel = (from / n + i) % n_channels;
            let mean = isa.reduce(Reduce::Sum, x) / n as f32;
            let inverse = 1.0 / (isa.sum_squared_deviations(x, mean) / n as f32 + epsilon).sqrt();
            let (Some(scale), Some(bias)) = (scale.get(channel), bias.get(channel)) else { continue };
            isa.unary(Unary::Standardize { mean, inverse, scale, bias }, x, y);
        }
    })
}

fn channels<T: Real>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let (n_channels, n, epsilon) = settings(ctx)?;
    let (x, scale, bias) = (ctx.bytes(0)?, ctx.bytes(1)?, ctx.bytes(2)?);
    let at = |bytes: &[u8], i: usize| read::<T>(&bytes[i * size_of::<T>()..][..size_of::<T>()]).widen();
    let y = ctx.output::<T>(0)?;
    spread(ctx.pool(), y, n, 5.0, &|from, y| {
        for (i, y) in y.chunks_exact_mut(n).enumerate() {
            let start = from + i * n;
            let channel = start / n % n_channels;
            let (mean, inverse) = moments(n, epsilon, |i| at(x, start + i));
            let (scale, bias) = (at(scale, channel), at(bias, channel));
            for (j, y) in y.iter_mut().enumerate() {
                *y = T::narrow((at(x, start + j) - mean) * inverse * scale + bias);
            }
        }
    })
}
