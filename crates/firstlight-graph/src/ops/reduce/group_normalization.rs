//! `GroupNormalization`.

use super::instance_normalization::{check_rank, normalise_groups};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::elementwise::{operations, unlisted};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, bf16, f16};
use smallvec::SmallVec;

/// Each group of neighbouring channels of each image shifted and scaled to mean 0 and variance 1, then by scale and bias.
///
/// As [`InstanceNormalization`](super::instance_normalization::InstanceNormalization), with the statistics of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupNormalization {
    /// Added to the variance.
    pub epsilon: f32,
    /// Groups of an image's channels, all of one size.
    pub num_groups: i64,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "GroupNormalization",
    doc: "Each group of neighbouring channels of each image shifted and scaled to mean 0 and variance 1, then by scale \
          and bias, which hold one element for each channel, or one for each group. The deviations from the mean are \
          squared, not the elements. 16-bit floats are computed in f32 and rounded once (ONNX's stash_type 1).",
    attributes: &[
        AttrDoc { name: "epsilon", doc: "added to the variance" },
        AttrDoc { name: "num_groups", doc: "groups of an image's channels, all of one size" },
    ],
    inputs: &[
        Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "scale", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "bias", ty: TypeRef::Var(0), arity: Arity::One },
    ],
    outputs: &[Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for GroupNormalization {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("epsilon", AttrValue::Float(self.epsilon)), ("num_groups", AttrValue::Int(self.num_groups))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let x = ctx.dims(0)?;
        check_rank(x.rank())?;
        let n_groups = self.groups(x[1].known().unwrap_or(0))?;
        for (i, what) in [(1, "scale"), (2, "bias")] {
            let dims = ctx.dims(i)?;
            let fits = match (&dims[..], x[1].known()) {
                ([Dim::Known(n)], Some(channels)) => *n == channels || *n == n_groups,
                ([_], _) => true,
                _ => false,
            };
            if !fits {
                let problem =
                    format!("{what} has shape {dims}, expected [{}] or [{n_groups}], one a channel or a group", x[1]);
                return Err(OpError::shape(problem));
            }
        }
        Ok(OutInfo::new(ctx.dtype(0)?, x.clone()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => normalise_groups::<f32>(ctx, self.epsilon, |channels| self.groups(channels)),
            DType::F64 => normalise_groups::<f64>(ctx, self.epsilon, |channels| self.groups(channels)),
            DType::F16 => normalise_groups::<f16>(ctx, self.epsilon, |channels| self.groups(channels)),
            DType::BF16 => normalise_groups::<bf16>(ctx, self.epsilon, |channels| self.groups(channels)),
            other => Err(unlisted("GroupNormalization", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 8)
    }
}

impl GroupNormalization {
    /// The number of groups.
    ///
    /// **Errors**: there is none, or they do not divide that number of channels.
    pub fn groups(&self, channels: usize) -> Result<usize, OpError> {
        match usize::try_from(self.num_groups) {
            Ok(groups @ 1..) if channels.is_multiple_of(groups) => Ok(groups),
            Ok(1..) => Err(OpError::value(format!("{channels} channels do not make {} groups", self.num_groups))),
            _ => Err(OpError::value(format!("num_groups is {}, expected 1 or more", self.num_groups))),
        }
    }
}

fn cases() -> Vec<Case> {
    let op = |num_groups, epsilon| GroupNormalization { epsilon, num_groups };
    let t = |values: &[f32]| tensor(&[values.len()], values);
    let x = || tensor(&[1, 4, 1], &[1f32, 3., -2., 2.]);
    let halves = |values: &[f32]| values.iter().map(|&value| f16::from_f32(value)).collect::<Vec<_>>();
    let brains = |values: &[f32]| values.iter().map(|&value| bf16::from_f32(value)).collect::<Vec<_>>();
    vec![
        case(
            "two groups, a scale for each channel",
            op(2, 0.),
            &[x(), t(&[1., 2., 3., 4.]), t(&[0., 1., 0., -1.])],
            &[tensor(&[1, 4, 1], &[-1f32, 3., -3., 3.])],
        ),
        case(
            "a scale for each group",
            op(2, 0.),
            &[x(), t(&[2., 3.]), t(&[0.5, -1.])],
            &[tensor(&[1, 4, 1], &[-1.5f32, 2.5, -4., 2.])],
        ),
        case(
            "one group, two images, planes",
            op(1, 0.),
            &[tensor(&[2, 2, 1, 2], &[1f32, 1., 3., 3., 10., 30., 30., 10.]), t(&[2., 1.]), t(&[1., 0.])],
            &[tensor(&[2, 2, 1, 2], &[-1f32, -1., 1., 1., -1., 3., 1., -1.])],
        ),
        case(
            "a group for each channel",
            op(2, 0.),
            &[tensor(&[1, 2, 2], &[1f32, 3., -2., 2.]), t(&[1., 3.]), t(&[0.5, -1.])],
            &[tensor(&[1, 2, 2], &[-0.5f32, 1.5, -4., 2.])],
        ),
        case(
            "no spatial dimension",
            op(1, 3.),
            &[tensor(&[2, 2], &[1f32, 3., 5., 7.]), t(&[1., 2.]), t(&[0., 0.])],
            &[tensor(&[2, 2], &[-0.5f32, 1., -0.5, 1.])],
        ),
        case(
            "NaN stays in its group",
            op(2, 0.),
            &[tensor(&[1, 4], &[f32::NAN, 3., -2., 2.]), t(&[1.; 4]), t(&[0.; 4])],
            &[tensor(&[1, 4], &[f32::NAN, f32::NAN, -1., 1.])],
        ),
        case(
            "no image",
            op(2, 1e-5),
            &[tensor::<f32>(&[0, 2, 3], &[]), t(&[1., 1.]), t(&[0., 0.])],
            &[tensor::<f32>(&[0, 2, 3], &[])],
        ),
        case(
            "f64",
            op(1, 0.),
            &[tensor(&[1, 2], &[1f64, 3.]), tensor(&[2], &[2f64, 1.]), tensor(&[2], &[1f64, 1.])],
            &[tensor(&[1, 2], &[-1f64, 2.])],
        ),
        case(
            "f16 computes in f32",
            op(1, 0.),
            &[tensor(&[1, 2], &[f16::MAX, f16::MIN]), tensor(&[1], &halves(&[2.])), tensor(&[1], &halves(&[1.]))],
            &[tensor(&[1, 2], &halves(&[3., -1.]))],
        ),
        case(
            "bf16",
            op(1, 0.),
            &[tensor(&[1, 2], &brains(&[1., 3.])), tensor(&[2], &brains(&[1.; 2])), tensor(&[2], &brains(&[0.; 2]))],
            &[tensor(&[1, 2], &brains(&[-1., 1.]))],
        ),
    ]
}
