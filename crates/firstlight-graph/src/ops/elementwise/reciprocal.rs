//! `Reciprocal`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_float, operations};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// `1 / x`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Reciprocal;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Reciprocal",
    doc: "`1 / x`, correctly rounded. NaN stays NaN, zeros give infinities of their sign.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Reciprocal {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        // A quotient rounded to f64 and then to a narrower type is the quotient rounded once: f64 has more than twice its bits.
        map_float(ctx, "Reciprocal", |x| 1.0 / x)
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 1)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Reciprocal,
            &[tensor(&[2, 2], &[1f32, 3., -0.25, -10.])],
            &[tensor(&[2, 2], &[1f32, 0.333_333_34, -4., -0.1])],
        ),
        case(
            "NaN, signed zeros, infinities, overflow",
            Reciprocal,
            &[tensor(&[6], &[f32::NAN, 0., -0., f32::INFINITY, f32::NEG_INFINITY, 1e-45])],
            &[tensor(&[6], &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0., -0., f32::INFINITY])],
        ),
        case("f64", Reciprocal, &[Tensor::scalar(3f64)], &[Tensor::scalar(1.0f64 / 3.0)]),
        case("f16", Reciprocal, &[Tensor::scalar(f16::from_f32(3.))], &[Tensor::scalar(f16::from_bits(0x3555))]),
        case("bf16", Reciprocal, &[Tensor::scalar(bf16::from_f32(3.))], &[Tensor::scalar(bf16::from_bits(0x3eab))]),
        case("empty", Reciprocal, &[tensor::<f32>(&[0], &[])], &[tensor::<f32>(&[0], &[])]),
    ]
}
