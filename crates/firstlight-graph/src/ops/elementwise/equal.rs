//! `Equal`.

use super::{BINARY_INPUTS, BOOL_OUTPUT, compare, infer_binary, map_bools, unlisted};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{bools, case, tensor};
use crate::ops::types::NUMERIC_OR_BOOL;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;

/// Whether elements are equal, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Equal;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Equal",
    doc: "Whether elements are equal, with broadcasting. NaN equals nothing; -0 equals 0.",
    attributes: &[],
    inputs: BINARY_INPUTS,
    outputs: BOOL_OUTPUT,
    types: &[TypeVar { name: "T", allowed: NUMERIC_OR_BOOL }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Equal {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, Some(DType::Bool))
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => compare(ctx, |a: f32, b: f32| a == b),
            DType::F64 => compare(ctx, |a: f64, b: f64| a == b),
            DType::F16 => compare(ctx, |a: f16, b: f16| a == b),
            DType::BF16 => compare(ctx, |a: bf16, b: bf16| a == b),
            DType::I64 => compare(ctx, |a: i64, b: i64| a == b),
            DType::I32 => compare(ctx, |a: i32, b: i32| a == b),
            DType::I16 => compare(ctx, |a: i16, b: i16| a == b),
            DType::I8 => compare(ctx, |a: i8, b: i8| a == b),
            DType::U64 => compare(ctx, |a: u64, b: u64| a == b),
            DType::U32 => compare(ctx, |a: u32, b: u32| a == b),
            DType::U16 => compare(ctx, |a: u16, b: u16| a == b),
            DType::U8 => compare(ctx, |a: u8, b: u8| a == b),
            DType::Bool => map_bools(ctx, |a, b| a == b),
            other => Err(unlisted("Equal", other)),
        }
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "broadcast",
            Equal,
            &[tensor(&[2, 1], &[1i64, 2]), tensor(&[3], &[1i64, 2, 3])],
            &[bools(&[2, 3], &[true, false, false, false, true, false])],
        ),
        case(
            "NaN, signed zero and infinity",
            Equal,
            &[tensor(&[4], &[f32::NAN, -0., f32::INFINITY, 1.]), tensor(&[4], &[f32::NAN, 0., f32::INFINITY, -1.])],
            &[bools(&[4], &[false, true, true, false])],
        ),
        case(
            "bools",
            Equal,
            &[bools(&[4], &[false, false, true, true]), bools(&[4], &[false, true, false, true])],
            &[bools(&[4], &[true, false, false, true])],
        ),
        case("empty", Equal, &[tensor::<u8>(&[0], &[]), tensor(&[1], &[1u8])], &[bools(&[0], &[])]),
        case("rank 0", Equal, &[Tensor::scalar(u64::MAX), Tensor::scalar(u64::MAX)], &[bools(&[], &[true])]),
        case("f16", Equal, &[Tensor::scalar(f16::NEG_ZERO), Tensor::scalar(f16::ZERO)], &[bools(&[], &[true])]),
        case("bf16", Equal, &[Tensor::scalar(bf16::NAN), Tensor::scalar(bf16::NAN)], &[bools(&[], &[false])]),
    ]
}
