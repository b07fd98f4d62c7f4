//! `Elu`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_float, operations};
use crate::op::{AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// `x` where it is not below 0, else `alpha * (e^x - 1)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Elu {
    /// What `e^x - 1` is multiplied by.
    pub alpha: f32,
}

impl Default for Elu {
    fn default() -> Elu {
        Elu { alpha: 1.0 }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Elu",
    doc: "`x` where it is not below 0, else `alpha * (e^x - 1)`. NaN and zeros stay; negative infinity gives `-alpha`.",
    attributes: &[AttrDoc { name: "alpha", doc: "what `e^x - 1` is multiplied by" }],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Elu {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("alpha", AttrValue::Float(self.alpha))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let alpha = f64::from(self.alpha);
        map_float(ctx, "Elu", |x| if x < 0.0 { alpha * libm::expm1(x) } else { x })
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 12)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Elu { alpha: 2.0 },
            &[tensor(&[2, 2], &[1f32, -1., 3., -8.])],
            &[tensor(&[2, 2], &[1f32, -1.264_241_1, 3., -1.999_329_1])],
        ),
        case(
            "NaN, signed zeros, infinities",
            Elu { alpha: 2.0 },
            &[tensor(&[6], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY, -1e-30])],
            &[tensor(&[6], &[f32::NAN, -0., 0., f32::INFINITY, -2., -2e-30])],
        ),
        case("f64", Elu { alpha: 2.0 }, &[Tensor::scalar(-2f64)], &[Tensor::scalar(-1.729_329_433_526_774_6f64)]),
        case(
            "f16",
            Elu { alpha: 2.0 },
            &[Tensor::scalar(f16::from_f32(-2.))],
            &[Tensor::scalar(f16::from_f32(-1.729_329_5))],
        ),
        case(
            "bf16",
            Elu { alpha: 2.0 },
            &[Tensor::scalar(bf16::from_f32(-2.))],
            &[Tensor::scalar(bf16::from_f32(-1.729_329_5))],
        ),
        case("empty", Elu { alpha: 2.0 }, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
