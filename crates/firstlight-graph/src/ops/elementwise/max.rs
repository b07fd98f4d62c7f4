//! `Max`.

use super::{BINARY_INPUTS, SAME_OUTPUT, infer_binary, prefer};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// The greater of two elements, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Max;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Max",
    doc: "The greater of two elements, with broadcasting. NaN wins; of zeros of both signs the first operand's is kept.",
    attributes: &[],
    inputs: BINARY_INPUTS,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: NUMERIC }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Max {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, None)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        prefer(ctx, "Max", Ordering::Less)
    }
}

fn cases() -> Vec<Case> {
    const NAN: f32 = f32::NAN;
    vec![
        case(
            "broadcast",
            Max,
            &[tensor(&[2, 1], &[1f32, 3.]), tensor(&[2], &[2f32, -2.])],
            &[tensor(&[2, 2], &[2f32, 1., 3., 3.])],
        ),
        case(
            "NaN on either side",
            Max,
            &[tensor(&[3], &[NAN, 1., NAN]), tensor(&[3], &[1., NAN, NAN])],
            &[tensor(&[3], &[NAN; 3])],
        ),
        case(
            "signed zero and infinities",
            Max,
            &[tensor(&[4], &[-0f32, 0., f32::NEG_INFINITY, 1.]), tensor(&[4], &[0f32, -0., f32::MIN, f32::INFINITY])],
            &[tensor(&[4], &[-0f32, 0., f32::MIN, f32::INFINITY])],
        ),
        case("signed", Max, &[Tensor::scalar(-1i8), Tensor::scalar(1i8)], &[Tensor::scalar(1i8)]),
        case("unsigned", Max, &[Tensor::scalar(u64::MAX), Tensor::scalar(1u64)], &[Tensor::scalar(u64::MAX)]),
        case(
            "f64 and a scalar",
            Max,
            &[tensor(&[2], &[0.5f64, 2.]), Tensor::scalar(1f64)],
            &[tensor(&[2], &[1f64, 2.])],
        ),
        case("f16", Max, &[Tensor::scalar(f16::NAN), Tensor::scalar(f16::ONE)], &[Tensor::scalar(f16::NAN)]),
        case("bf16", Max, &[Tensor::scalar(bf16::ZERO), Tensor::scalar(bf16::ONE)], &[Tensor::scalar(bf16::ONE)]),
        case("empty", Max, &[tensor::<i32>(&[0, 2], &[]), Tensor::scalar(1i32)], &[tensor::<i32>(&[0, 2], &[])]),
    ]
}
