//! `Mish`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_float, operations};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// `x * tanh(ln(1 + e^x))`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Mish;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Mish",
    doc: "`x * tanh(ln(1 + e^x))`, without overflow. NaN, infinity and zeros stay; negative infinity, which is multiplied by 0, gives NaN.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Mish {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_float(ctx, "Mish", |x| x * libm::tanh(x.max(0.0) + libm::log1p(libm::exp(-x.abs()))))
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 20)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Mish,
            &[tensor(&[2, 2], &[1f32, -1., 3., -8.])],
            &[tensor(&[2, 2], &[0.865_098_4f32, -0.303_401_47, 2.986_535, -0.002_683_251])],
        ),
        case(
            "NaN, signed zeros, infinities",
            Mish,
            &[tensor(&[7], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY, 100., -100.])],
            &[tensor(&[7], &[f32::NAN, -0., 0., f32::INFINITY, f32::NAN, 100., -3.72e-42])],
        ),
        case("f64", Mish, &[Tensor::scalar(-2f64)], &[Tensor::scalar(-0.252_501_482_695_708_9f64)]),
        case("f16", Mish, &[Tensor::scalar(f16::from_f32(-2.))], &[Tensor::scalar(f16::from_f32(-0.252_501_5))]),
        case("bf16", Mish, &[Tensor::scalar(bf16::from_f32(-2.))], &[Tensor::scalar(bf16::from_f32(-0.252_501_5))]),
        case("empty", Mish, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
