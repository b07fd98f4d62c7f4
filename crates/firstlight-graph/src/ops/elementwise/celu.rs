//! `Celu`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_float, operations};
use crate::op::{AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// `x` where it is not below 0, else `alpha * (e^(x / alpha) - 1)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Celu {
    /// What `x` is divided by, and `e^(x / alpha) - 1` multiplied by.
    pub alpha: f32,
}

impl Default for Celu {
    fn default() -> Celu {
        Celu { alpha: 1.0 }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Celu",
    doc: "`x` where it is not below 0, else `alpha * (e^(x / alpha) - 1)`. NaN and zeros stay; negative infinity gives `-alpha`.",
    attributes: &[AttrDoc { name: "alpha", doc: "what `x` is divided by, and `e^(x / alpha) - 1` multiplied by" }],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Celu {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("alpha", AttrValue::Float(self.alpha))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let alpha = f64::from(self.alpha);
        map_float(ctx, "Celu", |x| if x < 0.0 { alpha * libm::expm1(x / alpha) } else { x })
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 14)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Celu { alpha: 2.0 },
            &[tensor(&[2, 2], &[1f32, -1., 3., -8.])],
            &[tensor(&[2, 2], &[1f32, -0.786_938_67, 3., -1.963_368_8])],
        ),
        case(
            "NaN, signed zeros, infinities",
            Celu { alpha: 2.0 },
            &[tensor(&[5], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY])],
            &[tensor(&[5], &[f32::NAN, -0., 0., f32::INFINITY, -2.])],
        ),
        case("f64", Celu { alpha: 2.0 }, &[Tensor::scalar(-2f64)], &[Tensor::scalar(-1.264_241_117_657_115_3f64)]),
        case(
            "f16",
            Celu { alpha: 2.0 },
            &[Tensor::scalar(f16::from_f32(-2.))],
            &[Tensor::scalar(f16::from_f32(-1.264_241_1))],
        ),
        case(
            "bf16",
            Celu { alpha: 2.0 },
            &[Tensor::scalar(bf16::from_f32(-2.))],
            &[Tensor::scalar(bf16::from_f32(-1.264_241_1))],
        ),
        case("empty", Celu { alpha: 2.0 }, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
