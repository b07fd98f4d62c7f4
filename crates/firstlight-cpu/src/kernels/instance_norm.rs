//! InstanceNormalization and GroupNormalization.

use super::norm::moments;
use super::number::read;
use super::real::Real;
use super::rows::row;
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_gemm::{Isa, Reduce, Src, Unary};
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::{BF16, F16, F32, F64};
use firstlight_tensor::{Shape, bf16, f16};

pub(super) const BINDINGS: &[KernelBinding] = &[
    row(OpKind::InstanceNormalization, &[F32], groups_f32),
    row(OpKind::InstanceNormalization, &[F64], groups::<f64>),
    row(OpKind::InstanceNormalization, &[F16], groups::<f16>),
    row(OpKind::InstanceNormalization, &[BF16], groups::<bf16>),
    row(OpKind::GroupNormalization, &[F32], groups_f32),
    row(OpKind::GroupNormalization, &[F64], groups::<f64>),
    row(OpKind::GroupNormalization, &[F16], groups::<f16>),
    row(OpKind::GroupNormalization, &[BF16], groups::<bf16>),
];

/// Groups of channels that are normalised together; each channel is one for InstanceNormalization.
struct Groups {
    channels: usize,
    n_groups: usize,
    per_group: usize,
    /// Elements of a channel.
    plane: usize,
    epsilon: f32,
}

impl Groups {
    fn of(ctx: &KernelCtx<'_>) -> Result<Groups, OpError> {
        let (x, scale, bias, y) = (ctx.dims(0)?, ctx.dims(1)?, ctx.dims(2)?, ctx.out_dims(0)?);
        let misfit = || OpError::shape(format!("an input {x}, scale {scale} and bias {bias} for an output {y}"));
        let channels = x.get(1).copied().ok_or_else(misfit)?;
        let (n_groups, epsilon) = match ctx.op() {
            Op::InstanceNormalization(op) => (channels, op.epsilon),
            Op::GroupNormalization(op) => (op.groups(channels)?, op.epsilon),
            _ => return Err(super::other_op("InstanceNormalization or GroupNormalization")),
        };
        let fits = |dims: &Shape| dims.n_elems().is_some_and(|n| n == channels || n == n_groups);
        if x != y || !fits(scale) || !fits(bias) {
            return Err(misfit());
        }
        // Where a product of some sizes saturates another size is 0, and there is nothing to read.
        let plane = x[2..].iter().fold(1usize, |n, &dim| n.saturating_mul(dim));
        Ok(Groups { channels, n_groups, per_group: channels / n_groups.max(1), plane, epsilon })
    }

    /// Elements of a group.
    fn n_elems(&self) -> usize {
        self.per_group.saturating_mul(self.plane)
    }

    /// Which of `n` parameters, one a channel or one a group, is that of channel `channel` of the group with number `row`.
    fn parameter(&self, n: usize, row: usize, channel: usize) -> usize {
        let group = row % self.n_groups;
        if n == self.channels { group * self.per_group + channel } else { group }
    }
}

fn groups_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let groups = Groups::of(ctx)?;
    let n = groups.n_elems();
    let isa = Isa::detect();
    let src = |i: usize| ctx.bytes(i).map(Src::from_bytes);
    let (x, scale, bias) = (src(0)?, src(1)?, src(2)?);
    let y = ctx.output::<f32>(0)?;
    spread(ctx.pool(), y, n, 0.3 + 20.0 / n.max(1) as f32, &|from, y| {
        for (i, y) in y.chunks_exact_mut(n).enumerate() {
            let x = x.slice(from + i * n, n);
            let mean = isa.reduce(Reduce::Sum, x) / n as f32;
            let inverse = 1.0 / (isa.sum_squared_deviations(x, mean) / n as f32 + groups.epsilon).sqrt();
            for (channel, y) in y.chunks_exact_mut(groups.plane).enumerate() {
                let of = |values: Src<'_>| values.get(groups.parameter(values.len(), from / n + i, channel));
                let (Some(scale), Some(bias)) = (of(scale), of(bias)) else { continue };
                let x = x.slice(channel * groups.plane, groups.plane);
                isa.unary(Unary::Standardize { mean, inverse, scale, bias }, x, y);
            }
        }
    })
}

fn groups<T: Real>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let groups = Groups::of(ctx)?;
    let n = groups.n_elems();
    let (x, scale, bias) = (ctx.bytes(0)?, ctx.bytes(1)?, ctx.bytes(2)?);
    let at = |bytes: &[u8], i: usize| read::<T>(&bytes[i * size_of::<T>()..][..size_of::<T>()]).widen();
    let y = ctx.output::<T>(0)?;
    spread(ctx.pool(), y, n, 5.0, &|from, y| {
        for (i, y) in y.chunks_exact_mut(n).enumerate() {
            let start = from + i * n;
            let (mean, inverse) = moments(n, groups.epsilon, |i| at(x, start + i));
            for (channel, y) in y.chunks_exact_mut(groups.plane).enumerate() {
                let start = start + channel * groups.plane;
                let of =
                    |bytes: &[u8]| at(bytes, groups.parameter(bytes.len() / size_of::<T>(), from / n + i, channel));
                let (scale, bias) = (of(scale), of(bias));
                for (j, y) in y.iter_mut().enumerate() {
                    *y = T::narrow((at(x, start + j) - mean) * inverse * scale + bias);
                }
            }
        }
    })
}
