//! `Floor`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_compute, operations};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// The greatest integer that is not above `x`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Floor;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Floor",
    doc: "The greatest integer that is not above `x`. NaN, infinities and -0 stay.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Floor {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_compute(ctx, "Floor", |x| x.floor(), |x| x.floor())
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 1)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Floor,
            &[tensor(&[2, 3], &[1.5f32, -1.5, 2., -0.25, 0.75, -7.])],
            &[tensor(&[2, 3], &[1f32, -2., 2., -1., 0., -7.])],
        ),
        case(
            "NaN, signed zeros, infinities",
            Floor,
            &[tensor(&[6], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY, 1e9])],
            &[tensor(&[6], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY, 1e9])],
        ),
        case("f64", Floor, &[Tensor::scalar(2.5f64)], &[Tensor::scalar(2f64)]),
        case("f16", Floor, &[Tensor::scalar(f16::from_f32(2.5))], &[Tensor::scalar(f16::from_f32(2.))]),
        case("bf16", Floor, &[Tensor::scalar(bf16::from_f32(2.5))], &[Tensor::scalar(bf16::from_f32(2.))]),
        case("empty", Floor, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
