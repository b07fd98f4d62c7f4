//! `LeakyRelu`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_compute, operations};
use crate::op::{AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// `x` where it is not below 0, else `alpha * x`.
#[derive(Clone, Debug, PartialEq)]
pub struct LeakyRelu {
    /// What `x` is multiplied by where it is below 0.
    pub alpha: f32,
}

impl Default for LeakyRelu {
    fn default() -> LeakyRelu {
        LeakyRelu { alpha: 0.01 }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "LeakyRelu",
    doc: "`x` where it is not below 0, else `alpha * x`. NaN, infinities and zeros stay.",
    attributes: &[AttrDoc { name: "alpha", doc: "what `x` is multiplied by where it is below 0" }],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for LeakyRelu {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("alpha", AttrValue::Float(self.alpha))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let alpha = self.alpha;
        map_compute(
            ctx,
            "LeakyRelu",
            |x| if x < 0.0 { alpha * x } else { x },
            |x| {
                let alpha = f64::from(alpha);
                if x < 0.0 { alpha * x } else { x }
            },
        )
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 2)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            LeakyRelu { alpha: 0.25 },
            &[tensor(&[2, 2], &[1f32, -1., 3., -8.])],
            &[tensor(&[2, 2], &[1f32, -0.25, 3., -2.])],
        ),
        case(
            "NaN, signed zeros, infinities",
            LeakyRelu { alpha: 0.25 },
            &[tensor(&[5], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY])],
            &[tensor(&[5], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY])],
        ),
        case("f64", LeakyRelu { alpha: 0.25 }, &[Tensor::scalar(-2f64)], &[Tensor::scalar(-0.5f64)]),
        case(
            "f16",
            LeakyRelu { alpha: 0.25 },
            &[Tensor::scalar(f16::from_f32(-2.))],
            &[Tensor::scalar(f16::from_f32(-0.5))],
        ),
        case(
            "bf16",
            LeakyRelu { alpha: 0.25 },
            &[Tensor::scalar(bf16::from_f32(-2.))],
            &[Tensor::scalar(bf16::from_f32(-0.5))],
        ),
        case("empty", LeakyRelu { alpha: 0.25 }, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
