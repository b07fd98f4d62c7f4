//! `Selu`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_float, operations};
use crate::op::{AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// `gamma` times `x` where it is not below 0, else `gamma` times `alpha * (e^x - 1)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Selu {
    /// What `e^x - 1` is multiplied by.
    pub alpha: f32,
    /// What the result is multiplied by.
    pub gamma: f32,
}

impl Default for Selu {
    fn default() -> Selu {
        Selu { alpha: 1.673_263_2, gamma: 1.050_701 }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Selu",
    doc: "`gamma` times `x` where it is not below 0, else `gamma` times `alpha * (e^x - 1)`. NaN and zeros stay; negative infinity gives `-gamma * alpha`.",
    attributes: &[
        AttrDoc { name: "alpha", doc: "what `e^x - 1` is multiplied by" },
        AttrDoc { name: "gamma", doc: "what the result is multiplied by" },
    ],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Selu {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("alpha", AttrValue::Float(self.alpha)), ("gamma", AttrValue::Float(self.gamma))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let alpha = f64::from(self.alpha);
        let gamma = f64::from(self.gamma);
        map_float(ctx, "Selu", |x| gamma * if x < 0.0 { alpha * libm::expm1(x) } else { x })
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 13)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            Selu { alpha: 2.0, gamma: 3.0 },
            &[tensor(&[2, 2], &[1f32, -1., 3., -8.])],
            &[tensor(&[2, 2], &[3f32, -3.792_723_4, 9., -5.997_987_3])],
        ),
        case(
            "NaN, signed zeros, infinities",
            Selu { alpha: 2.0, gamma: 3.0 },
            &[tensor(&[5], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY])],
            &[tensor(&[5], &[f32::NAN, -0., 0., f32::INFINITY, -6.])],
        ),
        case(
            "f64",
            Selu { alpha: 2.0, gamma: 3.0 },
            &[Tensor::scalar(-2f64)],
            &[Tensor::scalar(-5.187_988_300_580_324f64)],
        ),
        case(
            "f16",
            Selu { alpha: 2.0, gamma: 3.0 },
            &[Tensor::scalar(f16::from_f32(-2.))],
            &[Tensor::scalar(f16::from_f32(-5.187_988_3))],
        ),
        case(
            "bf16",
            Selu { alpha: 2.0, gamma: 3.0 },
            &[Tensor::scalar(bf16::from_f32(-2.))],
            &[Tensor::scalar(bf16::from_f32(-5.187_988_3))],
        ),
        case("empty", Selu { alpha: 2.0, gamma: 3.0 }, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
