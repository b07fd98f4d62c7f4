//! `Sub`.

use super::{BINARY_INPUTS, SAME_OUTPUT, infer_binary, map2, unlisted};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;

/// Difference of two tensors, element by element, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Sub;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Sub",
    doc: "Difference of two tensors, element by element, with broadcasting. Integers wrap.",
    attributes: &[],
    inputs: BINARY_INPUTS,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: NUMERIC }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Sub {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, None)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => map2(ctx, |a: f32, b: f32| a - b),
            DType::F64 => map2(ctx, |a: f64, b: f64| a - b),
            DType::F16 => map2(ctx, |a: f16, b: f16| f16::from_f32(a.to_f32() - b.to_f32())),
            DType::BF16 => map2(ctx, |a: bf16, b: bf16| bf16::from_f32(a.to_f32() - b.to_f32())),
            DType::I64 => map2(ctx, i64::wrapping_sub),
            DType::I32 => map2(ctx, i32::wrapping_sub),
            DType::I16 => map2(ctx, i16::wrapping_sub),
            DType::I8 => map2(ctx, i8::wrapping_sub),
            DType::U64 => map2(ctx, u64::wrapping_sub),
            DType::U32 => map2(ctx, u32::wrapping_sub),
            DType::U16 => map2(ctx, u16::wrapping_sub),
            DType::U8 => map2(ctx, u8::wrapping_sub),
            other => Err(unlisted("Sub", other)),
        }
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "broadcast both ways",
            Sub,
            &[tensor(&[2, 1], &[1f32, 2.]), tensor(&[2], &[10f32, -20.])],
            &[tensor(&[2, 2], &[-9f32, 21., -8., 22.])],
        ),
        case(
            "infinity, NaN and signed zero",
            Sub,
            &[tensor(&[4], &[f32::INFINITY, f32::NAN, -0., 0.]), tensor(&[4], &[f32::INFINITY, 1., 0., 0.])],
            &[tensor(&[4], &[f32::NAN, f32::NAN, -0., 0.])],
        ),
        case("empty", Sub, &[tensor::<i32>(&[0], &[]), tensor(&[1], &[1i32])], &[tensor::<i32>(&[0], &[])]),
        case("rank 0", Sub, &[Tensor::scalar(1f64), Tensor::scalar(0.25f64)], &[Tensor::scalar(0.75f64)]),
        case(
            "signed integers wrap",
            Sub,
            &[Tensor::scalar(i64::MIN), Tensor::scalar(1i64)],
            &[Tensor::scalar(i64::MAX)],
        ),
        case("unsigned integers wrap", Sub, &[Tensor::scalar(0u8), Tensor::scalar(1u8)], &[Tensor::scalar(255u8)]),
        case(
            "f16 rounds once, to even",
            Sub,
            &[Tensor::scalar(f16::from_f32(2048.)), Tensor::scalar(f16::from_f32(-1.))],
            &[Tensor::scalar(f16::from_f32(2048.))],
        ),
        case(
            "bf16",
            Sub,
            &[Tensor::scalar(bf16::from_f32(3.)), Tensor::scalar(bf16::from_f32(0.5))],
            &[Tensor::scalar(bf16::from_f32(2.5))],
        ),
    ]
}
