//! `Mul`.

use super::{BINARY_INPUTS, SAME_OUTPUT, infer_binary, map2, unlisted};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;

/// Product of two tensors, element by element, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Mul;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Mul",
    doc: "Product of two tensors, element by element, with broadcasting. Integers wrap.",
    attributes: &[],
    inputs: BINARY_INPUTS,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: NUMERIC }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Mul {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, None)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => map2(ctx, |a: f32, b: f32| a * b),
            DType::F64 => map2(ctx, |a: f64, b: f64| a * b),
            DType::F16 => map2(ctx, |a: f16, b: f16| f16::from_f32(a.to_f32() * b.to_f32())),
            DType::BF16 => map2(ctx, |a: bf16, b: bf16| bf16::from_f32(a.to_f32() * b.to_f32())),
            DType::I64 => map2(ctx, i64::wrapping_mul),
            DType::I32 => map2(ctx, i32::wrapping_mul),
            DType::I16 => map2(ctx, i16::wrapping_mul),
            DType::I8 => map2(ctx, i8::wrapping_mul),
            DType::U64 => map2(ctx, u64::wrapping_mul),
            DType::U32 => map2(ctx, u32::wrapping_mul),
            DType::U16 => map2(ctx, u16::wrapping_mul),
            DType::U8 => map2(ctx, u8::wrapping_mul),
            other => Err(unlisted("Mul", other)),
        }
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "broadcast both ways",
            Mul,
            &[tensor(&[2, 1], &[2f32, -3.]), tensor(&[3], &[1f32, 0., -0.5])],
            &[tensor(&[2, 3], &[2f32, 0., -1., -3., -0., 1.5])],
        ),
        case(
            "infinity, NaN and signed zero",
            Mul,
            &[tensor(&[4], &[f32::INFINITY, f32::INFINITY, f32::NAN, -0.]), tensor(&[4], &[0f32, -2., 1., 3.])],
            &[tensor(&[4], &[f32::NAN, f32::NEG_INFINITY, f32::NAN, -0.])],
        ),
        case("empty", Mul, &[tensor::<f32>(&[0, 2], &[]), tensor(&[2], &[1f32, 2.])], &[tensor::<f32>(&[0, 2], &[])]),
        case("rank 0", Mul, &[Tensor::scalar(1.5f64), Tensor::scalar(-4f64)], &[Tensor::scalar(-6f64)]),
        case(
            "signed integers wrap",
            Mul,
            &[tensor(&[3], &[i8::MIN, 64, -3]), tensor(&[3], &[-1i8, 2, 5])],
            &[tensor(&[3], &[i8::MIN, i8::MIN, -15])],
        ),
        case(
            "unsigned integers wrap",
            Mul,
            &[Tensor::scalar(1u64 << 63), Tensor::scalar(2u64)],
            &[Tensor::scalar(0u64)],
        ),
        case(
            "f16 rounds once, to even, and overflows to infinity",
            Mul,
            &[
                tensor(&[2], &[f16::from_bits(0x3c01), f16::from_f32(65504.)]),
                tensor(&[2], &[f16::from_bits(0x3c01), f16::from_f32(2.)]),
            ],
            &[tensor(&[2], &[f16::from_bits(0x3c02), f16::INFINITY])],
        ),
        case(
            "bf16",
            Mul,
            &[Tensor::scalar(bf16::from_f32(3.)), Tensor::scalar(bf16::from_f32(-0.25))],
            &[Tensor::scalar(bf16::from_f32(-0.75))],
        ),
    ]
}
