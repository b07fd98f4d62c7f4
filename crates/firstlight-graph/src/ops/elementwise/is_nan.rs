//! `IsNaN`.

use super::{BOOL_OUTPUT, UNARY_INPUT, test_bits, unlisted};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{bools, case, eight_bits, tensor};
use crate::ops::types::FLOATS_AND_8_BITS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, bf16, f16};
use smallvec::SmallVec;

/// Whether an element is NaN.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct IsNaN;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "IsNaN",
    doc: "Whether an element is NaN, whatever its sign and payload.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: BOOL_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS_AND_8_BITS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for IsNaN {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        Ok(OutInfo::new(DType::Bool, ctx.dims(0)?.clone()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => test_bits(ctx, |x: u32| f32::from_bits(x).is_nan()),
            DType::F64 => test_bits(ctx, |x: u64| f64::from_bits(x).is_nan()),
            DType::F16 => test_bits(ctx, |x: u16| f16::from_bits(x).is_nan()),
            DType::BF16 => test_bits(ctx, |x: u16| bf16::from_bits(x).is_nan()),
            DType::F8E4M3FN => test_bits(ctx, |x: u8| x & 0x7f == 0x7f),
            DType::F8E5M2 => test_bits(ctx, |x: u8| x & 0x7f > 0x7c),
            DType::F8E4M3FNUZ | DType::F8E5M2FNUZ => test_bits(ctx, |x: u8| x == 0x80),
            other => Err(unlisted("IsNaN", other)),
        }
    }
}

fn cases() -> Vec<Case> {
    let eighths = |dtype| eight_bits(dtype, &[0x00, 0x7f, 0xff, 0x7c, 0x7d, 0x80, 0x3c]);
    let of_eighths = |values: &[bool; 7]| [bools(&[7], values)];
    vec![
        case(
            "NaN, signed zeros, infinities",
            IsNaN,
            &[tensor(&[2, 3], &[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY, -f32::NAN])],
            &[bools(&[2, 3], &[true, false, false, false, false, true])],
        ),
        case("f64", IsNaN, &[tensor(&[2], &[f64::NAN, 1.])], &[bools(&[2], &[true, false])]),
        case("f16", IsNaN, &[tensor(&[2], &[f16::NAN, f16::INFINITY])], &[bools(&[2], &[true, false])]),
        case("bf16", IsNaN, &[tensor(&[2], &[bf16::NAN, bf16::INFINITY])], &[bools(&[2], &[true, false])]),
        case(
            "f8e4m3fn",
            IsNaN,
            &[eighths(DType::F8E4M3FN)],
            &of_eighths(&[false, true, true, false, false, false, false]),
        ),
        case(
            "f8e4m3fnuz",
            IsNaN,
            &[eighths(DType::F8E4M3FNUZ)],
            &of_eighths(&[false, false, false, false, false, true, false]),
        ),
        case("f8e5m2", IsNaN, &[eighths(DType::F8E5M2)], &of_eighths(&[false, true, true, false, true, false, false])),
        case(
            "f8e5m2fnuz",
            IsNaN,
            &[eighths(DType::F8E5M2FNUZ)],
            &of_eighths(&[false, false, false, false, false, true, false]),
        ),
        case("empty", IsNaN, &[tensor::<f32>(&[0, 2], &[])], &[bools(&[0, 2], &[])]),
    ]
}
