//! `Neg`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map1, unlisted};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};

use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;

/// The value with the other sign.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Neg;

const SIGNED: &[DType] =
    &[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::I16, DType::I8];

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Neg",
    doc: "The value with the other sign. NaN stays NaN, zeros change their sign; the least integer of a type stays.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: SIGNED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Neg {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => map1(ctx, |x: f32| -x),
            DType::F64 => map1(ctx, |x: f64| -x),
            DType::F16 => map1(ctx, |x: f16| -x),
            DType::BF16 => map1(ctx, |x: bf16| -x),
            DType::I64 => map1(ctx, |x: i64| x.wrapping_neg()),
            DType::I32 => map1(ctx, |x: i32| x.wrapping_neg()),
            DType::I16 => map1(ctx, |x: i16| x.wrapping_neg()),
            DType::I8 => map1(ctx, |x: i8| x.wrapping_neg()),
            other => Err(unlisted("Neg", other)),
        }
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "signs",
            Neg,
            &[tensor(&[2, 2], &[1.5f32, -2., 1e30, -1e-30])],
            &[tensor(&[2, 2], &[-1.5f32, 2., -1e30, 1e-30])],
        ),
        case(
            "NaN, signed zeros, infinities",
            Neg,
            &[tensor(&[5], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY])],
            &[tensor(&[5], &[f32::NAN, 0., -0., f32::NEG_INFINITY, f32::INFINITY])],
        ),
        case("f64", Neg, &[Tensor::scalar(-2.5f64)], &[Tensor::scalar(2.5f64)]),
        case("f16", Neg, &[Tensor::scalar(f16::from_f32(-2.5))], &[Tensor::scalar(f16::from_f32(2.5))]),
        case("bf16", Neg, &[Tensor::scalar(bf16::from_f32(-2.5))], &[Tensor::scalar(bf16::from_f32(2.5))]),
        case("i64", Neg, &[tensor(&[3], &[i64::MIN, -5, 5])], &[tensor(&[3], &[i64::MIN, 5, -5])]),
        case("i8", Neg, &[tensor(&[2], &[-128i8, 127])], &[tensor(&[2], &[-128i8, -127])]),
        case("empty", Neg, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
