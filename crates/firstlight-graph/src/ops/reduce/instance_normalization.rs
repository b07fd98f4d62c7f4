//! `InstanceNormalization`.

use super::layer_normalization::moments;
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::checks::{expect_dtype, expect_shape};
use crate::ops::elementwise::{operations, unlisted};
use crate::ops::float::Float;
use crate::ops::layout::same_dim;
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Shape, bf16, f16};
use smallvec::SmallVec;

/// Each channel of each image shifted and scaled to mean 0 and variance 1, then by the channel's scale and bias.
///
/// As [`LayerNormalization`](super::layer_normalization::LayerNormalization) of a channel's elements: with `d = x - mean`,
/// `inverse = 1 / sqrt(sum(d * d) / n + epsilon)` and `y = d * inverse * scale + bias`, left to right, each operation
/// rounded to the type that it is computed in.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceNormalization {
    /// Added to the variance.
    pub epsilon: f32,
}

impl Default for InstanceNormalization {
    fn default() -> InstanceNormalization {
        InstanceNormalization { epsilon: 1e-5 }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "InstanceNormalization",
    doc: "Each channel of each image shifted and scaled to mean 0 and variance 1, then by the channel's scale and bias. \
          The deviations from the mean are squared, not the elements. 16-bit floats are computed in f32 and rounded \
          once.",
    attributes: &[AttrDoc { name: "epsilon", doc: "added to the variance" }],
    inputs: &[
        Param { name: "input", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "scale", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "B", ty: TypeRef::Var(0), arity: Arity::One },
    ],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for InstanceNormalization {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("epsilon", AttrValue::Float(self.epsilon))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let x = ctx.dims(0)?;
        check_rank(x.rank())?;
        for (i, what) in [(1, "scale"), (2, "B")] {
            let dims = ctx.dims(i)?;
            if dims.rank() != 1 || same_dim(&dims[0], &x[1]).is_none() {
                return Err(OpError::shape(format!("{what} has shape {dims}, expected [{}], one a channel", x[1])));
            }
        }
        Ok(OutInfo::new(ctx.dtype(0)?, x.clone()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => normalise_groups::<f32>(ctx, self.epsilon, Ok),
            DType::F64 => normalise_groups::<f64>(ctx, self.epsilon, Ok),
            DType::F16 => normalise_groups::<f16>(ctx, self.epsilon, Ok),
            DType::BF16 => normalise_groups::<bf16>(ctx, self.epsilon, Ok),
            other => Err(unlisted("InstanceNormalization", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 8)
    }
}

pub(super) fn check_rank(rank: usize) -> Result<(), OpError> {
    match rank < 2 {
        true => Err(OpError::shape(format!("it takes batch, channels and spatial dimensions; got {rank} dimensions"))),
        false => Ok(()),
    }
}

/// Normalises each group of channels of each image; `groups` says how many there are of a number of channels. Scale and
/// bias hold one element for each channel or one for each group.
pub(super) fn normalise_groups<T: Float>(
    ctx: &mut RefCtx<'_>,
    epsilon: f32,
    groups: impl Fn(usize) -> Result<usize, OpError>,
) -> Result<(), OpError> {
    let (x, scale, bias) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    let shape = x.shape().clone();
    check_rank(shape.rank())?;
    let channels = shape[1];
    let n_groups = groups(channels)?;
    for (what, view) in [("scale", &scale), ("bias", &bias)] {
        if view.shape()[..] != [n_groups] {
            expect_shape(what, &Shape::from([channels]), view.shape())?;
        }
    }
    expect_dtype("output 0", x.dtype(), ctx.output(0)?.dtype())?;
    expect_shape("output 0", &shape, ctx.output(0)?.shape())?;
    let (x, scale, bias) = (x.values::<T>()?, scale.values::<T>()?, bias.values::<T>()?);
    let y = ctx.output(0)?.values_mut::<T>()?;
    if x.is_empty() {
        return Ok(());
    }
    let (plane, per_group) = (shape[2..].iter().product::<usize>(), channels / n_groups);
    let row = plane * per_group;
    for (i, (x, y)) in x.chunks_exact(row).zip(y.chunks_exact_mut(row)).enumerate() {
        let (mean, inverse) = moments(x, epsilon);
        let group = i % n_groups;
        for (j, (x, y)) in x.iter().zip(y).enumerate() {
            let of = |values: &[T]| match values.len() == channels {
                true => values[group * per_group + j / plane].widen(),
                false => values[group].widen(),
            };
            *y = T::narrow((x.widen() - mean) * inverse * of(&scale) + of(&bias));
        }
    }
    Ok(())
}

fn cases() -> Vec<Case> {
    let op = |epsilon| InstanceNormalization { epsilon };
    let t = |values: &[f32]| tensor(&[values.len()], values);
    let halves = |values: &[f32]| values.iter().map(|&value| f16::from_f32(value)).collect::<Vec<_>>();
    let brains = |values: &[f32]| values.iter().map(|&value| bf16::from_f32(value)).collect::<Vec<_>>();
    vec![
        case(
            "two channels",
            op(0.),
            &[tensor(&[1, 2, 1, 2], &[1f32, 3., -2., 2.]), t(&[1., 3.]), t(&[0.5, -1.])],
            &[tensor(&[1, 2, 1, 2], &[-0.5f32, 1.5, -4., 2.])],
        ),
        case(
            "each image has its own statistics",
            op(0.),
            &[tensor(&[2, 1, 4], &[1f32, 1., 3., 3., 10., 30., 30., 10.]), t(&[2.]), t(&[1.])],
            &[tensor(&[2, 1, 4], &[-1f32, -1., 3., 3., -1., 3., 3., -1.])],
        ),
        case(
            "three spatial dimensions",
            op(0.),
            &[tensor(&[1, 1, 2, 1, 2], &[5f32, 7., 5., 7.]), t(&[1.]), t(&[0.])],
            &[tensor(&[1, 1, 2, 1, 2], &[-1f32, 1., -1., 1.])],
        ),
        case(
            "no spatial dimension leaves the bias",
            op(0.25),
            &[tensor(&[2, 2], &[1f32, 2., 3., 4.]), t(&[1., 2.]), t(&[7., 8.])],
            &[tensor(&[2, 2], &[7f32, 8., 7., 8.])],
        ),
        case(
            "epsilon is added to the variance",
            op(3.),
            &[tensor(&[1, 1, 2], &[1f32, 3.]), t(&[1.]), t(&[0.])],
            &[tensor(&[1, 1, 2], &[-0.5f32, 0.5])],
        ),
        case(
            "a large mean does not drown the variance",
            op(0.),
            &[tensor(&[1, 1, 2], &[16_777_214f32, 16_777_216.]), t(&[1.]), t(&[0.])],
            &[tensor(&[1, 1, 2], &[-1f32, 1.])],
        ),
        case(
            "NaN stays in its channel",
            op(0.),
            &[tensor(&[1, 2, 2], &[f32::NAN, 3., -2., 2.]), t(&[1., 1.]), t(&[0., 0.])],
            &[tensor(&[1, 2, 2], &[f32::NAN, f32::NAN, -1., 1.])],
        ),
        case(
            "no image",
            op(1e-5),
            &[tensor::<f32>(&[0, 2, 3], &[]), t(&[1., 1.]), t(&[0., 0.])],
            &[tensor::<f32>(&[0, 2, 3], &[])],
        ),
        case(
            "images of nothing",
            op(1e-5),
            &[tensor::<f32>(&[2, 1, 0], &[]), t(&[1.]), t(&[0.])],
            &[tensor::<f32>(&[2, 1, 0], &[])],
        ),
        case(
            "f64",
            op(0.),
            &[tensor(&[1, 1, 2], &[1f64, 3.]), tensor(&[1], &[2f64]), tensor(&[1], &[1f64])],
            &[tensor(&[1, 1, 2], &[-1f64, 3.])],
        ),
        case(
            "f16 computes in f32",
            op(0.),
            &[tensor(&[1, 1, 2], &[f16::MAX, f16::MIN]), tensor(&[1], &halves(&[2.])), tensor(&[1], &halves(&[1.]))],
            &[tensor(&[1, 1, 2], &halves(&[3., -1.]))],
        ),
        case(
            "bf16",
            op(0.),
            &[tensor(&[1, 1, 2], &brains(&[1., 3.])), tensor(&[1], &brains(&[1.])), tensor(&[1], &brains(&[0.]))],
            &[tensor(&[1, 1, 2], &brains(&[-1., 1.]))],
        ),
    ]
}
