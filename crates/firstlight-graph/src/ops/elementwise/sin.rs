//! `Sin`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_float, operations};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// The sine.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Sin;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Sin",
    doc: "The sine of an angle in radians, however large. NaN stays NaN, -0 stays -0, infinities give NaN.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Sin {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_float(ctx, "Sin", libm::sin)
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 20)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Sin,
            &[tensor(&[2, 2], &[0.5f32, 1., -1., 100.])],
            &[tensor(&[2, 2], &[0.479_425_55f32, 0.841_470_96, -0.841_470_96, -0.506_365_66])],
        ),
        case(
            "NaN, signed zeros, infinities",
            Sin,
            &[tensor(&[6], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY, 1e20])],
            &[tensor(&[6], &[f32::NAN, -0., 0., f32::NAN, f32::NAN, 0.656_576_7])],
        ),
        case("f64", Sin, &[Tensor::scalar(2.5f64)], &[Tensor::scalar(0.598_472_144_103_956_5f64)]),
        case("f16", Sin, &[Tensor::scalar(f16::from_f32(2.5))], &[Tensor::scalar(f16::from_f32(0.598_472_1))]),
        case("bf16", Sin, &[Tensor::scalar(bf16::from_f32(2.5))], &[Tensor::scalar(bf16::from_f32(0.598_472_1))]),
        case("empty", Sin, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
