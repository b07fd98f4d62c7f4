//! `Sqrt`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_float};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// The square root.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Sqrt;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Sqrt",
    doc: "The square root, correctly rounded. Negative elements give NaN; -0 stays -0.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Sqrt {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        // A root rounded to f64 and then to a narrower type is the root rounded once: f64 has more than twice its bits.
        map_float(ctx, "Sqrt", f64::sqrt)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "squares and between",
            Sqrt,
            &[tensor(&[2, 2], &[4f32, 2., 0.25, 0.])],
            &[tensor(&[2, 2], &[2f32, std::f32::consts::SQRT_2, 0.5, 0.])],
        ),
        case(
            "NaN, negative, signed zero, infinities",
            Sqrt,
            &[tensor(&[5], &[f32::NAN, -1., -0., f32::INFINITY, f32::NEG_INFINITY])],
            &[tensor(&[5], &[f32::NAN, f32::NAN, -0., f32::INFINITY, f32::NAN])],
        ),
        case("f64", Sqrt, &[Tensor::scalar(2f64)], &[Tensor::scalar(std::f64::consts::SQRT_2)]),
        case("f16", Sqrt, &[Tensor::scalar(f16::from_f32(2.))], &[Tensor::scalar(f16::from_bits(0x3da8))]),
        case("bf16", Sqrt, &[Tensor::scalar(bf16::from_f32(2.))], &[Tensor::scalar(bf16::from_bits(0x3fb5))]),
        case("empty", Sqrt, &[tensor::<f64>(&[0], &[])], &[tensor::<f64>(&[0], &[])]),
    ]
}
