//! `Ceil`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_compute, operations};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// The least integer that is not below `x`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Ceil;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Ceil",
    doc: "The least integer that is not below `x`. NaN, infinities and -0 stay; between -1 and 0 it is -0.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Ceil {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_compute(ctx, "Ceil", |x| x.ceil(), |x| x.ceil())
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 1)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Ceil,
            &[tensor(&[2, 3], &[1.5f32, -1.5, 2., -0.25, 0.25, -7.])],
            &[tensor(&[2, 3], &[2f32, -1., 2., -0., 1., -7.])],
        ),
        case(
            "NaN, signed zeros, infinities",
            Ceil,
            &[tensor(&[6], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY, -1e9])],
            &[tensor(&[6], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY, -1e9])],
        ),
        case("f64", Ceil, &[Tensor::scalar(2.5f64)], &[Tensor::scalar(3f64)]),
        case("f16", Ceil, &[Tensor::scalar(f16::from_f32(2.5))], &[Tensor::scalar(f16::from_f32(3.))]),
        case("bf16", Ceil, &[Tensor::scalar(bf16::from_f32(2.5))], &[Tensor::scalar(bf16::from_f32(3.))]),
        case("empty", Ceil, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
