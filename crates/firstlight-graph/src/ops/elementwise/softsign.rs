//! `Softsign`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_compute, operations};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// `x / (1 + |x|)`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Softsign;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Softsign",
    doc: "`x / (1 + |x|)`, sum and quotient rounded one by one. NaN and zeros stay; infinities give NaN.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Softsign {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_compute(ctx, "Softsign", |x| x / (1.0 + x.abs()), |x| x / (1.0 + x.abs()))
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 3)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Softsign,
            &[tensor(&[2, 2], &[1f32, -1., 3., -7.])],
            &[tensor(&[2, 2], &[0.5f32, -0.5, 0.75, -0.875])],
        ),
        case(
            "NaN, signed zeros, infinities",
            Softsign,
            &[tensor(&[5], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY])],
            &[tensor(&[5], &[f32::NAN, -0., 0., f32::NAN, f32::NAN])],
        ),
        case("f64", Softsign, &[Tensor::scalar(-3f64)], &[Tensor::scalar(-0.75f64)]),
        case("f16", Softsign, &[Tensor::scalar(f16::from_f32(-3.))], &[Tensor::scalar(f16::from_f32(-0.75))]),
        case("bf16", Softsign, &[Tensor::scalar(bf16::from_f32(-3.))], &[Tensor::scalar(bf16::from_f32(-0.75))]),
        case("empty", Softsign, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
