//! `Round`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_compute, operations};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// The nearest integer, the even one of two.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Round;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Round",
    doc: "The nearest integer, the even one of two. NaN, infinities and -0 stay; from -0.5 to 0 it is -0.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Round {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_compute(ctx, "Round", |x| x.round_ties_even(), |x| x.round_ties_even())
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 1)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Round,
            &[tensor(&[2, 3], &[0.5f32, 1.5, -1.5, -2.5, 2.75, -0.25])],
            &[tensor(&[2, 3], &[0f32, 2., -2., -2., 3., -0.])],
        ),
        case(
            "NaN, signed zeros, infinities",
            Round,
            &[tensor(&[6], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY, 8388609.])],
            &[tensor(&[6], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY, 8388609.])],
        ),
        case("f64", Round, &[Tensor::scalar(2.5f64)], &[Tensor::scalar(2f64)]),
        case("f16", Round, &[Tensor::scalar(f16::from_f32(2.5))], &[Tensor::scalar(f16::from_f32(2.))]),
        case("bf16", Round, &[Tensor::scalar(bf16::from_f32(2.5))], &[Tensor::scalar(bf16::from_f32(2.))]),
        case("empty", Round, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
