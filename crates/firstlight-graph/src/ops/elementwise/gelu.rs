//! `Gelu`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map_float, operations};
use crate::op::{AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

/// `x / 2 * (1 + erf(x / sqrt(2)))`, or an approximation of it.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Gelu {
    /// Whether it is approximated as `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`.
    pub tanh: bool,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Gelu",
    doc: "`x / 2 * (1 + erf(x / sqrt(2)))`, or an approximation of it. NaN and zeros stay; infinity gives infinity, \
          negative infinity, which is multiplied by 0, NaN.",
    attributes: &[AttrDoc {
        name: "tanh",
        doc: "whether it is approximated as `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`",
    }],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Gelu {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("tanh", AttrValue::Bool(self.tanh))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match self.tanh {
            false => map_float(ctx, "Gelu", |x| 0.5 * x * (1.0 + libm::erf(x * FRAC_1_SQRT_2))),
            // sqrt(2 / pi) = 2 / sqrt(pi) / sqrt(2)
            true => map_float(ctx, "Gelu", |x| {
                0.5 * x * (1.0 + libm::tanh(FRAC_2_SQRT_PI / SQRT_2 * (x + 0.044715 * (x * x * x))))
            }),
        }
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 25)
    }
}

fn cases() -> Vec<Case> {
    let (exact, tanh) = (Gelu { tanh: false }, Gelu { tanh: true });
    let edges = [f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY];
    let at_edges = [f32::NAN, -0., 0., f32::INFINITY, f32::NAN];
    vec![
        case(
            "both sides",
            exact.clone(),
            &[tensor(&[2, 2], &[1f32, -1., 3., -0.5])],
            &[tensor(&[2, 2], &[0.841_344_8f32, -0.158_655_26, 2.995_950_2, -0.154_268_77])],
        ),
        case("NaN, signed zeros, infinities", exact.clone(), &[tensor(&[5], &edges)], &[tensor(&[5], &at_edges)]),
        case(
            "tanh: both sides",
            tanh.clone(),
            &[tensor(&[2, 2], &[1f32, -1., 3., -0.5])],
            &[tensor(&[2, 2], &[0.841_192f32, -0.158_808_01, 2.996_362_7, -0.154_286])],
        ),
        case("tanh: NaN, signed zeros, infinities", tanh.clone(), &[tensor(&[5], &edges)], &[tensor(&[5], &at_edges)]),
        case("f64", exact.clone(), &[Tensor::scalar(1f64)], &[Tensor::scalar(0.841_344_746_068_542_9f64)]),
        case("tanh: f64", tanh, &[Tensor::scalar(1f64)], &[Tensor::scalar(0.841_191_990_608_276_8f64)]),
        case("f16", exact.clone(), &[Tensor::scalar(f16::from_f32(1.))], &[Tensor::scalar(f16::from_f32(0.841_344_8))]),
        case(
            "bf16",
            exact.clone(),
            &[Tensor::scalar(bf16::from_f32(1.))],
            &[Tensor::scalar(bf16::from_f32(0.841_344_8))],
        ),
        case("empty", exact, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
