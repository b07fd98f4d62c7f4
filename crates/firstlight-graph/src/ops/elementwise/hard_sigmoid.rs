//! `HardSigmoid`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_compute, operations};
use crate::op::{AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::float::Compute;
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// `alpha * x + beta`, not above 1 and not below 0.
#[derive(Clone, Debug, PartialEq)]
pub struct HardSigmoid {
    /// What `x` is multiplied by.
    pub alpha: f32,
    /// What is added to the product.
    pub beta: f32,
}

impl Default for HardSigmoid {
    fn default() -> HardSigmoid {
        HardSigmoid { alpha: 0.2, beta: 0.5 }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "HardSigmoid",
    doc: "`alpha * x + beta`, product and sum rounded one by one, not above 1 and not below 0. NaN stays NaN; infinities \
          give 0 and 1.",
    attributes: &[
        AttrDoc { name: "alpha", doc: "what `x` is multiplied by" },
        AttrDoc { name: "beta", doc: "what is added to the product" },
    ],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for HardSigmoid {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("alpha", AttrValue::Float(self.alpha)), ("beta", AttrValue::Float(self.beta))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let (alpha, beta) = (self.alpha, self.beta);
        map_compute(
            ctx,
            "HardSigmoid",
            |x| hard_sigmoid(x, alpha, beta),
            |x| hard_sigmoid(x, alpha.into(), beta.into()),
        )
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 4)
    }
}

/// `alpha * x + beta`, not above 1 and not below 0, in the type that the elements are computed in.
pub(super) fn hard_sigmoid<C: Compute>(x: C, alpha: C, beta: C) -> C {
    let (zero, one) = (C::from_f64(0.0), C::from_f64(1.0));
    match alpha * x + beta {
        y if y < zero => zero,
        y if y > one => one,
        y => y,
    }
}

fn cases() -> Vec<Case> {
    let quarter = HardSigmoid { alpha: 0.25, beta: 0.5 };
    vec![
        case(
            "both sides",
            quarter.clone(),
            &[tensor(&[2, 3], &[0f32, 1., -1., 2., -2., 7.])],
            &[tensor(&[2, 3], &[0.5f32, 0.75, 0.25, 1., 0., 1.])],
        ),
        case(
            "NaN, signed zeros, infinities",
            HardSigmoid::default(),
            &[tensor(&[5], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY])],
            &[tensor(&[5], &[f32::NAN, 0.5, 0.5, 1., 0.])],
        ),
        case(
            "product and sum are rounded one by one",
            HardSigmoid { alpha: 0.1, beta: 0.2 },
            &[Tensor::scalar(0.7f32)],
            &[Tensor::scalar(0.1f32 * 0.7 + 0.2)],
        ),
        case("f64", quarter.clone(), &[Tensor::scalar(0.5f64)], &[Tensor::scalar(0.625f64)]),
        case("f16", quarter.clone(), &[Tensor::scalar(f16::from_f32(0.5))], &[Tensor::scalar(f16::from_f32(0.625))]),
        case("bf16", quarter, &[Tensor::scalar(bf16::from_f32(0.5))], &[Tensor::scalar(bf16::from_f32(0.625))]),
        case("empty", HardSigmoid::default(), &[tensor::<f32>(&[0], &[])], &[tensor::<f32>(&[0], &[])]),
    ]
}
