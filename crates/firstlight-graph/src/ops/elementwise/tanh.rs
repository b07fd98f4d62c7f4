//! `Tanh`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_float, operations};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// The hyperbolic tangent.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Tanh;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Tanh",
    doc: "The hyperbolic tangent. NaN stays NaN, -0 stays -0, infinities give -1 and 1.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Tanh {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_float(ctx, "Tanh", libm::tanh)
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 12)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Tanh,
            &[tensor(&[2, 3], &[0f32, 0.5, 1., -0.5, -1., 20.])],
            &[tensor(&[2, 3], &[0f32, 0.462_117_16, 0.761_594_2, -0.462_117_16, -0.761_594_2, 1.])],
        ),
        case(
            "NaN, signed zero, infinities, tiny",
            Tanh,
            &[tensor(&[5], &[f32::NAN, -0., f32::INFINITY, f32::NEG_INFINITY, 1e-30])],
            &[tensor(&[5], &[f32::NAN, -0., 1., -1., 1e-30])],
        ),
        case("f64", Tanh, &[Tensor::scalar(0.5f64)], &[Tensor::scalar(0.462_117_157_260_009_74f64)]),
        case("f16", Tanh, &[Tensor::scalar(f16::from_f32(1.))], &[Tensor::scalar(f16::from_f32(0.761_594_2))]),
        case("bf16", Tanh, &[Tensor::scalar(bf16::from_f32(1.))], &[Tensor::scalar(bf16::from_f32(0.761_594_2))]),
        case("empty", Tanh, &[tensor::<f32>(&[0, 3], &[])], &[tensor::<f32>(&[0, 3], &[])]),
    ]
}
