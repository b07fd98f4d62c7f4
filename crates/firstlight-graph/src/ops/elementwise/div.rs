//! `Div`.

use super::{BINARY_INPUTS, SAME_OUTPUT, infer_binary, map2, unlisted};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;

/// Quotient of two tensors, element by element, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Div;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Div",
    doc: "Quotient of two tensors, element by element, with broadcasting. Integers round toward zero; `x / 0` of integers is 0, and the lowest value divided by -1 wraps to itself.",
    attributes: &[],
    inputs: BINARY_INPUTS,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: NUMERIC }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Div {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, None)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => map2(ctx, |a: f32, b: f32| a / b),
            DType::F64 => map2(ctx, |a: f64, b: f64| a / b),
            DType::F16 => map2(ctx, |a: f16, b: f16| f16::from_f32(a.to_f32() / b.to_f32())),
            DType::BF16 => map2(ctx, |a: bf16, b: bf16| bf16::from_f32(a.to_f32() / b.to_f32())),
            DType::I64 => map2(ctx, |a: i64, b: i64| if b == 0 { 0 } else { a.wrapping_div(b) }),
            DType::I32 => map2(ctx, |a: i32, b: i32| if b == 0 { 0 } else { a.wrapping_div(b) }),
            DType::I16 => map2(ctx, |a: i16, b: i16| if b == 0 { 0 } else { a.wrapping_div(b) }),
            DType::I8 => map2(ctx, |a: i8, b: i8| if b == 0 { 0 } else { a.wrapping_div(b) }),
            DType::U64 => map2(ctx, |a: u64, b: u64| a.checked_div(b).unwrap_or(0)),
            DType::U32 => map2(ctx, |a: u32, b: u32| a.checked_div(b).unwrap_or(0)),
            DType::U16 => map2(ctx, |a: u16, b: u16| a.checked_div(b).unwrap_or(0)),
            DType::U8 => map2(ctx, |a: u8, b: u8| a.checked_div(b).unwrap_or(0)),
            other => Err(unlisted("Div", other)),
        }
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "broadcast",
            Div,
            &[tensor(&[2, 2], &[1f32, 2., 3., 4.]), tensor(&[2, 1], &[2f32, -4.])],
            &[tensor(&[2, 2], &[0.5f32, 1., -0.75, -1.])],
        ),
        case(
            "floats by zero and infinity",
            Div,
            &[tensor(&[5], &[1f32, -1., 0., 1., -1.]), tensor(&[5], &[0f32, 0., 0., -0., f32::INFINITY])],
            &[tensor(&[5], &[f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::NEG_INFINITY, -0.])],
        ),
        case(
            "integers round toward zero",
            Div,
            &[tensor(&[4], &[7i64, -7, 7, -7]), tensor(&[4], &[2i64, 2, -2, -2])],
            &[tensor(&[4], &[3i64, -3, -3, 3])],
        ),
        case(
            "integers by zero give 0, the lowest by -1 wraps",
            Div,
            &[tensor(&[4], &[5i64, -5, 0, i64::MIN]), tensor(&[4], &[0i64, 0, 0, -1])],
            &[tensor(&[4], &[0i64, 0, 0, i64::MIN])],
        ),
        case(
            "unsigned integers",
            Div,
            &[tensor(&[3], &[255u8, 7, 1]), tensor(&[3], &[2u8, 7, 0])],
            &[tensor(&[3], &[127u8, 1, 0])],
        ),
        case("empty", Div, &[tensor::<i32>(&[0], &[]), tensor(&[1], &[0i32])], &[tensor::<i32>(&[0], &[])]),
        case("rank 0", Div, &[Tensor::scalar(1f64), Tensor::scalar(8f64)], &[Tensor::scalar(0.125f64)]),
        case(
            "f16 rounds once",
            Div,
            &[Tensor::scalar(f16::from_f32(1.)), Tensor::scalar(f16::from_f32(3.))],
            &[Tensor::scalar(f16::from_bits(0x3555))],
        ),
        case(
            "bf16",
            Div,
            &[Tensor::scalar(bf16::from_f32(1.)), Tensor::scalar(bf16::from_f32(3.))],
            &[Tensor::scalar(bf16::from_bits(0x3eab))],
        ),
    ]
}
