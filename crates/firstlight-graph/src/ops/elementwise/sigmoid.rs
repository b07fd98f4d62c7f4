//! `Sigmoid`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_float, operations};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// `1 / (1 + exp(-x))`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Sigmoid;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Sigmoid",
    doc: "`1 / (1 + exp(-x))`. NaN stays NaN; infinities give 0 and 1.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Sigmoid {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_float(ctx, "Sigmoid", sigmoid)
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 12)
    }
}

fn sigmoid(x: f64) -> f64 {
    // The exponential of a number that is not positive cannot overflow.
    let e = libm::exp(-x.abs());
    if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Sigmoid,
            &[tensor(&[5], &[0f32, 1., -1., 10., -10.])],
            &[tensor(&[5], &[0.5f32, 0.731_058_6, 0.268_941_43, 0.999_954_6, 4.539_787e-5])],
        ),
        case(
            "NaN, signed zero, infinities, large",
            Sigmoid,
            &[tensor(&[6], &[f32::NAN, -0., f32::INFINITY, f32::NEG_INFINITY, 1000., -1000.])],
            &[tensor(&[6], &[f32::NAN, 0.5, 1., 0., 1., 0.])],
        ),
        case("f64", Sigmoid, &[Tensor::scalar(1f64)], &[Tensor::scalar(0.731_058_578_630_004_9f64)]),
        case("f16", Sigmoid, &[Tensor::scalar(f16::from_f32(1.))], &[Tensor::scalar(f16::from_f32(0.731_058_6))]),
        case("bf16", Sigmoid, &[Tensor::scalar(bf16::from_f32(1.))], &[Tensor::scalar(bf16::from_f32(0.731_058_6))]),
        case("empty", Sigmoid, &[tensor::<f32>(&[2, 0], &[])], &[tensor::<f32>(&[2, 0], &[])]),
    ]
}
