//! `Greater`.

use super::{BINARY_INPUTS, BOOL_OUTPUT, compare_numbers, infer_binary};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{bools, case, tensor};
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// Whether elements of the first tensor are greater than those of the second, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Greater;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Greater",
    doc: "Whether elements of the first tensor are greater than those of the second, with broadcasting. False where either is NaN; -0 equals 0.",
    attributes: &[],
    inputs: BINARY_INPUTS,
    outputs: BOOL_OUTPUT,
    types: &[TypeVar { name: "T", allowed: NUMERIC }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Greater {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, Some(DType::Bool))
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        compare_numbers(ctx, "Greater", |order| order.is_some_and(Ordering::is_gt))
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "broadcast",
            Greater,
            &[tensor(&[2, 1], &[1i64, 2]), tensor(&[3], &[1i64, 2, 3])],
            &[bools(&[2, 3], &[false, false, false, true, false, false])],
        ),
        case(
            "NaN, signed zero and infinity",
            Greater,
            &[
                tensor(&[5], &[f32::NAN, 1., -0., f32::NEG_INFINITY, f32::INFINITY]),
                tensor(&[5], &[1f32, f32::NAN, 0., f32::MIN, f32::INFINITY]),
            ],
            &[bools(&[5], &[false, false, false, false, false])],
        ),
        case("signed", Greater, &[Tensor::scalar(-1i8), Tensor::scalar(1i8)], &[bools(&[], &[false])]),
        case("unsigned", Greater, &[Tensor::scalar(255u8), Tensor::scalar(1u8)], &[bools(&[], &[true])]),
        case("empty", Greater, &[tensor::<f64>(&[0], &[]), Tensor::scalar(1f64)], &[bools(&[0], &[])]),
        case("f16", Greater, &[Tensor::scalar(f16::ONE), Tensor::scalar(f16::ONE)], &[bools(&[], &[false])]),
        case("bf16", Greater, &[Tensor::scalar(bf16::ZERO), Tensor::scalar(bf16::ONE)], &[bools(&[], &[false])]),
    ]
}
