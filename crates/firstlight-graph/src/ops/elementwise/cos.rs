//! `Cos`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_float, operations};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// The cosine.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Cos;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Cos",
    doc: "The cosine of an angle in radians, however large. NaN stays NaN, infinities give NaN.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Cos {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_float(ctx, "Cos", libm::cos)
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 20)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Cos,
            &[tensor(&[2, 2], &[0.5f32, 1., -1., 100.])],
            &[tensor(&[2, 2], &[0.877_582_55f32, 0.540_302_3, 0.540_302_3, 0.862_318_9])],
        ),
        case(
            "NaN, signed zeros, infinities",
            Cos,
            &[tensor(&[6], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY, 1e20])],
            &[tensor(&[6], &[f32::NAN, 1., 1., f32::NAN, f32::NAN, 0.754_259_3])],
        ),
        case("f64", Cos, &[Tensor::scalar(2.5f64)], &[Tensor::scalar(-0.801_143_615_546_933_7f64)]),
        case("f16", Cos, &[Tensor::scalar(f16::from_f32(2.5))], &[Tensor::scalar(f16::from_f32(-0.801_143_6))]),
        case("bf16", Cos, &[Tensor::scalar(bf16::from_f32(2.5))], &[Tensor::scalar(bf16::from_f32(-0.801_143_6))]),
        case("empty", Cos, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
