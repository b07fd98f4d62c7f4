//! `Erf`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_float, operations};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// The error function.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Erf;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Erf",
    doc: "The error function. NaN stays NaN, -0 stays -0, infinities give -1 and 1.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Erf {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_float(ctx, "Erf", libm::erf)
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 20)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Erf,
            &[tensor(&[2, 3], &[0f32, 0.5, 1., -0.5, -1., 2.])],
            &[tensor(&[2, 3], &[0f32, 0.520_499_9, 0.842_700_8, -0.520_499_9, -0.842_700_8, 0.995_322_3])],
        ),
        case(
            "NaN, signed zero, infinities, tiny",
            Erf,
            &[tensor(&[5], &[f32::NAN, -0., f32::INFINITY, f32::NEG_INFINITY, 1e-30])],
            &[tensor(&[5], &[f32::NAN, -0., 1., -1., 1.128_379_2e-30])],
        ),
        case("f64", Erf, &[Tensor::scalar(0.5f64)], &[Tensor::scalar(0.520_499_877_813_046_5f64)]),
        case("f16", Erf, &[Tensor::scalar(f16::from_f32(1.))], &[Tensor::scalar(f16::from_f32(0.842_700_8))]),
        case("bf16", Erf, &[Tensor::scalar(bf16::from_f32(1.))], &[Tensor::scalar(bf16::from_f32(0.842_700_8))]),
        case("empty", Erf, &[tensor::<f32>(&[0], &[])], &[tensor::<f32>(&[0], &[])]),
    ]
}
