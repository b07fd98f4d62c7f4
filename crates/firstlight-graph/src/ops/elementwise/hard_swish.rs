//! `HardSwish`.

use super::hard_sigmoid::hard_sigmoid;
use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_compute, operations};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// `x` times its `HardSigmoid` with 1/6 and 1/2.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct HardSwish;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "HardSwish",
    doc: "`x` times `x / 6 + 1 / 2`, the latter not above 1 and not below 0; `x / 6` is a product with the nearest number \
          to 1/6, and each step is rounded. NaN stays NaN; what is below -3 gives -0, but negative infinity, which is \
          multiplied by 0, NaN.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for HardSwish {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_compute(ctx, "HardSwish", |x| x * hard_sigmoid(x, 1.0 / 6.0, 0.5), |x| x * hard_sigmoid(x, 1.0 / 6.0, 0.5))
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 5)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            HardSwish,
            &[tensor(&[2, 3], &[0f32, 3., -4., 1.5, -1.5, 7.])],
            &[tensor(&[2, 3], &[0f32, 3., -0., 1.125, -0.375, 7.])],
        ),
        case(
            "NaN, signed zeros, infinities",
            HardSwish,
            &[tensor(&[5], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY])],
            &[tensor(&[5], &[f32::NAN, -0., 0., f32::INFINITY, f32::NAN])],
        ),
        case("f64", HardSwish, &[Tensor::scalar(1.5f64)], &[Tensor::scalar(1.125f64)]),
        case("f16", HardSwish, &[Tensor::scalar(f16::from_f32(1.5))], &[Tensor::scalar(f16::from_f32(1.125))]),
        case("bf16", HardSwish, &[Tensor::scalar(bf16::from_f32(1.5))], &[Tensor::scalar(bf16::from_f32(1.125))]),
        case("empty", HardSwish, &[tensor::<f32>(&[0], &[])], &[tensor::<f32>(&[0], &[])]),
    ]
}
