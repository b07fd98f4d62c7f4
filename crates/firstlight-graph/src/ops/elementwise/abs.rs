//! `Abs`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map1, unlisted};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;

/// The value without its sign.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Abs;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Abs",
    doc: "The value without its sign. NaN stays NaN; the least integer of a type stays.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: NUMERIC }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Abs {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => map1(ctx, |x: f32| x.abs()),
            DType::F64 => map1(ctx, |x: f64| x.abs()),
            DType::F16 => map1(ctx, |x: f16| f16::from_bits(x.to_bits() & 0x7fff)),
            DType::BF16 => map1(ctx, |x: bf16| bf16::from_bits(x.to_bits() & 0x7fff)),
            DType::I64 => map1(ctx, |x: i64| x.wrapping_abs()),
            DType::I32 => map1(ctx, |x: i32| x.wrapping_abs()),
            DType::I16 => map1(ctx, |x: i16| x.wrapping_abs()),
            DType::I8 => map1(ctx, |x: i8| x.wrapping_abs()),
            DType::U64 => map1(ctx, |x: u64| x),
            DType::U32 => map1(ctx, |x: u32| x),
            DType::U16 => map1(ctx, |x: u16| x),
            DType::U8 => map1(ctx, |x: u8| x),
            other => Err(unlisted("Abs", other)),
        }
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "signs",
            Abs,
            &[tensor(&[2, 2], &[1.5f32, -2., 1e30, -1e-30])],
            &[tensor(&[2, 2], &[1.5f32, 2., 1e30, 1e-30])],
        ),
        case(
            "NaN, signed zeros, infinities",
            Abs,
            &[tensor(&[5], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY])],
            &[tensor(&[5], &[f32::NAN, 0., 0., f32::INFINITY, f32::INFINITY])],
        ),
        case("f64", Abs, &[Tensor::scalar(-2.5f64)], &[Tensor::scalar(2.5f64)]),
        case("f16", Abs, &[Tensor::scalar(f16::from_f32(-2.5))], &[Tensor::scalar(f16::from_f32(2.5))]),
        case("bf16", Abs, &[Tensor::scalar(bf16::from_f32(-2.5))], &[Tensor::scalar(bf16::from_f32(2.5))]),
        case("i32", Abs, &[tensor(&[3], &[i32::MIN, -5, 5])], &[tensor(&[3], &[i32::MIN, 5, 5])]),
        case("i8", Abs, &[tensor(&[2], &[-128i8, -127])], &[tensor(&[2], &[-128i8, 127])]),
        case("u64", Abs, &[Tensor::scalar(u64::MAX)], &[Tensor::scalar(u64::MAX)]),
        case("empty", Abs, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
