//! `GreaterOrEqual`.

use super::{BINARY_INPUTS, BOOL_OUTPUT, compare, infer_binary, unlisted};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{bools, case, tensor};
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;

/// Whether elements of the first tensor are at least those of the second, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct GreaterOrEqual;

pub const INFO: OpInfo = OpInfo {
    name: "GreaterOrEqual",
    doc: "Whether elements of the first tensor are at least those of the second, with broadcasting. False where either is NaN; -0 equals 0.",
    attributes: &[],
    inputs: BINARY_INPUTS,
    outputs: BOOL_OUTPUT,
    types: &[TypeVar { name: "T", allowed: NUMERIC }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for GreaterOrEqual {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, Some(DType::Bool))
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => compare(ctx, |a: f32, b: f32| a >= b),
            DType::F64 => compare(ctx, |a: f64, b: f64| a >= b),
            DType::F16 => compare(ctx, |a: f16, b: f16| a >= b),
            DType::BF16 => compare(ctx, |a: bf16, b: bf16| a >= b),
            DType::I64 => compare(ctx, |a: i64, b: i64| a >= b),
            DType::I32 => compare(ctx, |a: i32, b: i32| a >= b),
            DType::I16 => compare(ctx, |a: i16, b: i16| a >= b),
            DType::I8 => compare(ctx, |a: i8, b: i8| a >= b),
            DType::U64 => compare(ctx, |a: u64, b: u64| a >= b),
            DType::U32 => compare(ctx, |a: u32, b: u32| a >= b),
            DType::U16 => compare(ctx, |a: u16, b: u16| a >= b),
            DType::U8 => compare(ctx, |a: u8, b: u8| a >= b),
            other => Err(unlisted("GreaterOrEqual", other)),
        }
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "broadcast",
            GreaterOrEqual,
            &[tensor(&[2, 1], &[1i64, 2]), tensor(&[3], &[1i64, 2, 3])],
            &[bools(&[2, 3], &[true, false, false, true, true, false])],
        ),
        case(
            "NaN, signed zero and infinity",
            GreaterOrEqual,
            &[
                tensor(&[5], &[f32::NAN, 1., -0., f32::NEG_INFINITY, f32::INFINITY]),
                tensor(&[5], &[1f32, f32::NAN, 0., f32::MIN, f32::INFINITY]),
            ],
            &[bools(&[5], &[false, false, true, false, true])],
        ),
        case("signed", GreaterOrEqual, &[Tensor::scalar(-1i8), Tensor::scalar(1i8)], &[bools(&[], &[false])]),
        case("unsigned", GreaterOrEqual, &[Tensor::scalar(255u8), Tensor::scalar(1u8)], &[bools(&[], &[true])]),
        case("empty", GreaterOrEqual, &[tensor::<f64>(&[0], &[]), Tensor::scalar(1f64)], &[bools(&[0], &[])]),
        case("f16", GreaterOrEqual, &[Tensor::scalar(f16::ONE), Tensor::scalar(f16::ONE)], &[bools(&[], &[true])]),
        case("bf16", GreaterOrEqual, &[Tensor::scalar(bf16::ZERO), Tensor::scalar(bf16::ONE)], &[bools(&[], &[false])]),
    ]
}
