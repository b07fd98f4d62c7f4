//! `Min`.

use super::{BINARY_INPUTS, SAME_OUTPUT, infer_binary, prefer};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// The lesser of two elements, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Min;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Min",
    doc: "The lesser of two elements, with broadcasting. NaN wins; of zeros of both signs the first operand's is kept.",
    attributes: &[],
    inputs: BINARY_INPUTS,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: NUMERIC }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Min {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, None)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        prefer(ctx, "Min", Ordering::Greater)
    }
}

fn cases() -> Vec<Case> {
    const NAN: f32 = f32::NAN;
    vec![
        case(
            "broadcast",
            Min,
            &[tensor(&[2, 1], &[1f32, 3.]), tensor(&[2], &[2f32, -2.])],
            &[tensor(&[2, 2], &[1f32, -2., 2., -2.])],
        ),
        case(
            "NaN on either side",
            Min,
            &[tensor(&[3], &[NAN, 1., NAN]), tensor(&[3], &[1., NAN, NAN])],
            &[tensor(&[3], &[NAN; 3])],
        ),
        case(
            "signed zero and infinities",
            Min,
            &[tensor(&[4], &[-0f32, 0., f32::NEG_INFINITY, 1.]), tensor(&[4], &[0f32, -0., f32::MIN, f32::INFINITY])],
            &[tensor(&[4], &[-0f32, 0., f32::NEG_INFINITY, 1.])],
        ),
        case("signed", Min, &[Tensor::scalar(-1i8), Tensor::scalar(1i8)], &[Tensor::scalar(-1i8)]),
        case("unsigned", Min, &[Tensor::scalar(u64::MAX), Tensor::scalar(1u64)], &[Tensor::scalar(1u64)]),
        case(
            "f64 and a scalar",
            Min,
            &[tensor(&[2], &[0.5f64, 2.]), Tensor::scalar(1f64)],
            &[tensor(&[2], &[0.5f64, 1.])],
        ),
        case("f16", Min, &[Tensor::scalar(f16::NAN), Tensor::scalar(f16::ONE)], &[Tensor::scalar(f16::NAN)]),
        case("bf16", Min, &[Tensor::scalar(bf16::ZERO), Tensor::scalar(bf16::ONE)], &[Tensor::scalar(bf16::ZERO)]),
        case("empty", Min, &[tensor::<i32>(&[0, 2], &[]), Tensor::scalar(1i32)], &[tensor::<i32>(&[0, 2], &[])]),
    ]
}
