//! `ThresholdedRelu`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_compute, operations};
use crate::op::{AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// `x` where it is above `alpha`, else 0.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdedRelu {
    /// What `x` is compared with.
    pub alpha: f32,
}

impl Default for ThresholdedRelu {
    fn default() -> ThresholdedRelu {
        ThresholdedRelu { alpha: 1.0 }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ThresholdedRelu",
    doc: "`x` where it is above `alpha`, else 0. NaN gives 0.",
    attributes: &[AttrDoc { name: "alpha", doc: "what `x` is compared with" }],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for ThresholdedRelu {
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
            "ThresholdedRelu",
            |x| if x > alpha { x } else { 0.0 },
            |x| {
                let alpha = f64::from(alpha);
                if x > alpha { x } else { 0.0 }
            },
        )
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 1)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "both sides",
            ThresholdedRelu { alpha: 0.5 },
            &[tensor(&[2, 2], &[1f32, -1., 0.5, 0.75])],
            &[tensor(&[2, 2], &[1f32, 0., 0., 0.75])],
        ),
        case(
            "NaN, signed zeros, infinities",
            ThresholdedRelu { alpha: 0.5 },
            &[tensor(&[5], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY])],
            &[tensor(&[5], &[0f32, 0., 0., f32::INFINITY, 0.])],
        ),
        case("f64", ThresholdedRelu { alpha: 0.5 }, &[Tensor::scalar(3f64)], &[Tensor::scalar(3f64)]),
        case(
            "f16",
            ThresholdedRelu { alpha: 0.5 },
            &[Tensor::scalar(f16::from_f32(3.))],
            &[Tensor::scalar(f16::from_f32(3.))],
        ),
        case(
            "bf16",
            ThresholdedRelu { alpha: 0.5 },
            &[Tensor::scalar(bf16::from_f32(3.))],
            &[Tensor::scalar(bf16::from_f32(3.))],
        ),
        case("empty", ThresholdedRelu { alpha: 0.5 }, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
