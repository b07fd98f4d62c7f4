//! `Log`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_float, operations};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// The natural logarithm.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Log;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Log",
    doc: "The natural logarithm. NaN stays NaN, zeros give negative infinity, what is below 0 NaN, infinity infinity.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Log {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_float(ctx, "Log", libm::log)
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 12)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Log,
            &[tensor(&[2, 2], &[1f32, 2.5, 0.25, 3.])],
            &[tensor(&[2, 2], &[0f32, 0.916_290_76, -1.386_294_4, 1.098_612_3])],
        ),
        case(
            "NaN, signed zeros, infinities",
            Log,
            &[tensor(&[7], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY, -1., 1e-45])],
            &[tensor(
                &[7],
                &[f32::NAN, f32::NEG_INFINITY, f32::NEG_INFINITY, f32::INFINITY, f32::NAN, f32::NAN, -103.278_93],
            )],
        ),
        case("f64", Log, &[Tensor::scalar(2.5f64)], &[Tensor::scalar(0.916_290_731_874_155_1f64)]),
        case("f16", Log, &[Tensor::scalar(f16::from_f32(2.5))], &[Tensor::scalar(f16::from_f32(0.916_290_76))]),
        case("bf16", Log, &[Tensor::scalar(bf16::from_f32(2.5))], &[Tensor::scalar(bf16::from_f32(0.916_290_76))]),
        case("empty", Log, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
