//! `Sign`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map1, unlisted};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::ops::Neg;

/// 1, 0 or -1, as `x` is above, at or below 0.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Sign;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Sign",
    doc: "1, 0 or -1, as `x` is above, at or below 0. NaN stays NaN; zeros give 0.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: NUMERIC }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Sign {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => map1(ctx, |x: f32| sign(x, 0.0, 1.0)),
            DType::F64 => map1(ctx, |x: f64| sign(x, 0.0, 1.0)),
            DType::F16 => map1(ctx, |x: f16| sign(x, f16::ZERO, f16::ONE)),
            DType::BF16 => map1(ctx, |x: bf16| sign(x, bf16::ZERO, bf16::ONE)),
            DType::I64 => map1(ctx, |x: i64| x.signum()),
            DType::I32 => map1(ctx, |x: i32| x.signum()),
            DType::I16 => map1(ctx, |x: i16| x.signum()),
            DType::I8 => map1(ctx, |x: i8| x.signum()),
            DType::U64 => map1(ctx, |x: u64| x.min(1)),
            DType::U32 => map1(ctx, |x: u32| x.min(1)),
            DType::U16 => map1(ctx, |x: u16| x.min(1)),
            DType::U8 => map1(ctx, |x: u8| x.min(1)),
            other => Err(unlisted("Sign", other)),
        }
    }
}

fn sign<T: PartialOrd + Neg<Output = T>>(x: T, zero: T, one: T) -> T {
    match x.partial_cmp(&zero) {
        Some(Ordering::Greater) => one,
        Some(Ordering::Less) => -one,
        Some(Ordering::Equal) => zero,
        None => x,
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "signs",
            Sign,
            &[tensor(&[2, 2], &[1.5f32, -2., 1e30, -1e-30])],
            &[tensor(&[2, 2], &[1f32, -1., 1., -1.])],
        ),
        case(
            "NaN, signed zeros, infinities",
            Sign,
            &[tensor(&[5], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY])],
            &[tensor(&[5], &[f32::NAN, 0., 0., 1., -1.])],
        ),
        case("f64", Sign, &[Tensor::scalar(-2.5f64)], &[Tensor::scalar(-1.0f64)]),
        case("f16", Sign, &[Tensor::scalar(f16::from_f32(-2.5))], &[Tensor::scalar(f16::from_f32(-1.0))]),
        case("bf16", Sign, &[Tensor::scalar(bf16::from_f32(-2.5))], &[Tensor::scalar(bf16::from_f32(-1.0))]),
        case("i32", Sign, &[tensor(&[3], &[i32::MIN, 0, 5])], &[tensor(&[3], &[-1i32, 0, 1])]),
        case("u8", Sign, &[tensor(&[2], &[0u8, 200])], &[tensor(&[2], &[0u8, 1])]),
        case("empty", Sign, &[tensor::<f32>(&[0, 2], &[])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
