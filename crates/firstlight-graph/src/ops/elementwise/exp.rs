//! `Exp`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_float, operations};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// `e` to the power of `x`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Exp;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Exp",
    doc: "`e` to the power of `x`. NaN stays NaN; infinities give 0 and infinity, as does what is out of range.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Exp {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_float(ctx, "Exp", libm::exp)
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 10)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Exp,
            &[tensor(&[2, 2], &[0f32, 1., -1., 2.5])],
            &[tensor(&[2, 2], &[1f32, std::f32::consts::E, 0.367_879_45, 12.182_494])],
        ),
        case(
            "NaN, signed zero, infinities, out of range, subnormal",
            Exp,
            &[tensor(&[7], &[f32::NAN, -0., f32::INFINITY, f32::NEG_INFINITY, 89., -104., -100.])],
            &[tensor(&[7], &[f32::NAN, 1., f32::INFINITY, 0., f32::INFINITY, 0., 3.784e-44])],
        ),
        case("f64", Exp, &[Tensor::scalar(1f64)], &[Tensor::scalar(std::f64::consts::E)]),
        case("f16", Exp, &[Tensor::scalar(f16::from_f32(12.))], &[Tensor::scalar(f16::INFINITY)]),
        case("bf16", Exp, &[Tensor::scalar(bf16::from_f32(1.))], &[Tensor::scalar(bf16::from_f32(2.718_281_7))]),
        case("empty", Exp, &[tensor::<f64>(&[0], &[])], &[tensor::<f64>(&[0], &[])]),
    ]
}
