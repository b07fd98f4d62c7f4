//! `Softplus`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_float, operations};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// `ln(1 + e^x)`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Softplus;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Softplus",
    doc: "`ln(1 + e^x)`, without overflow. NaN stays NaN; infinities give 0 and infinity.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Softplus {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_float(ctx, "Softplus", |x| x.max(0.0) + libm::log1p(libm::exp(-x.abs())))
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 25)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Softplus,
            &[tensor(&[2, 2], &[1f32, -1., 3., -8.])],
            &[tensor(&[2, 2], &[1.313_261_6f32, 0.313_261_7, 3.048_587_3, 0.000_335_406_37])],
        ),
        case(
            "NaN, signed zeros, infinities",
            Softplus,
            &[tensor(&[7], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY, 100., -100.])],
            &[tensor(
                &[7],
                &[f32::NAN, std::f32::consts::LN_2, std::f32::consts::LN_2, f32::INFINITY, 0., 100., 3.8e-44],
            )],
        ),
        case("f64", Softplus, &[Tensor::scalar(-2f64)], &[Tensor::scalar(0.126_928_011_042_972_5f64)]),
        case("f16", Softplus, &[Tensor::scalar(f16::from_f32(-2.))], &[Tensor::scalar(f16::from_f32(0.126_928_02))]),
        case("bf16", Softplus, &[Tensor::scalar(bf16::from_f32(-2.))], &[Tensor::scalar(bf16::from_f32(0.126_928_02))]),
        case("empty", Softplus, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
