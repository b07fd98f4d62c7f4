//! `IsInf`.

use super::{BOOL_OUTPUT, UNARY_INPUT, test_bits, unlisted};
use crate::op::{AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{bools, case, eight_bits, tensor};
use crate::ops::types::FLOATS_AND_8_BITS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, bf16, f16};
use smallvec::SmallVec;

/// Whether an element is infinite.
#[derive(Clone, Debug, PartialEq)]
pub struct IsInf {
    /// Whether negative infinity counts.
    pub negative: bool,
    /// Whether positive infinity counts.
    pub positive: bool,
}

impl Default for IsInf {
    fn default() -> IsInf {
        IsInf { negative: true, positive: true }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "IsInf",
    doc: "Whether an element is infinite, of a sign that counts. Of the 8-bit types only f8e5m2 has infinities.",
    attributes: &[
        AttrDoc { name: "negative", doc: "whether negative infinity counts" },
        AttrDoc { name: "positive", doc: "whether positive infinity counts" },
    ],
    inputs: UNARY_INPUT,
    outputs: BOOL_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS_AND_8_BITS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for IsInf {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("negative", AttrValue::Bool(self.negative)), ("positive", AttrValue::Bool(self.positive))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        Ok(OutInfo::new(DType::Bool, ctx.dims(0)?.clone()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let IsInf { negative, positive } = *self;
        let counts =
            |is_infinite: bool, is_negative: bool| is_infinite && if is_negative { negative } else { positive };
        match ctx.input(0)?.dtype() {
            DType::F32 => test_bits(ctx, |x: u32| counts(f32::from_bits(x).is_infinite(), x >> 31 == 1)),
            DType::F64 => test_bits(ctx, |x: u64| counts(f64::from_bits(x).is_infinite(), x >> 63 == 1)),
            DType::F16 => test_bits(ctx, |x: u16| counts(f16::from_bits(x).is_infinite(), x >> 15 == 1)),
            DType::BF16 => test_bits(ctx, |x: u16| counts(bf16::from_bits(x).is_infinite(), x >> 15 == 1)),
            DType::F8E5M2 => test_bits(ctx, |x: u8| counts(x & 0x7f == 0x7c, x >> 7 == 1)),
            DType::F8E4M3FN | DType::F8E4M3FNUZ | DType::F8E5M2FNUZ => test_bits(ctx, |_: u8| false),
            other => Err(unlisted("IsInf", other)),
        }
    }
}

fn cases() -> Vec<Case> {
    let edges = tensor(&[5], &[f32::NAN, -0., 1., f32::INFINITY, f32::NEG_INFINITY]);
    let both = IsInf::default();
    let eighths = |dtype| eight_bits(dtype, &[0x7c, 0xfc, 0x7f, 0x80]);
    vec![
        case(
            "NaN, infinities",
            both.clone(),
            std::slice::from_ref(&edges),
            &[bools(&[5], &[false, false, false, true, true])],
        ),
        case(
            "positive",
            IsInf { negative: false, positive: true },
            std::slice::from_ref(&edges),
            &[bools(&[5], &[false, false, false, true, false])],
        ),
        case(
            "negative",
            IsInf { negative: true, positive: false },
            std::slice::from_ref(&edges),
            &[bools(&[5], &[false, false, false, false, true])],
        ),
        case("neither", IsInf { negative: false, positive: false }, &[edges], &[bools(&[5], &[false; 5])]),
        case("f64", both.clone(), &[tensor(&[2], &[f64::INFINITY, 1.])], &[bools(&[2], &[true, false])]),
        case("f16", both.clone(), &[tensor(&[2], &[f16::NEG_INFINITY, f16::MAX])], &[bools(&[2], &[true, false])]),
        case("bf16", both.clone(), &[tensor(&[2], &[bf16::INFINITY, bf16::NAN])], &[bools(&[2], &[true, false])]),
        case("f8e5m2", both.clone(), &[eighths(DType::F8E5M2)], &[bools(&[4], &[true, true, false, false])]),
        case("f8e4m3fn", both.clone(), &[eighths(DType::F8E4M3FN)], &[bools(&[4], &[false; 4])]),
        case("f8e4m3fnuz", both.clone(), &[eighths(DType::F8E4M3FNUZ)], &[bools(&[4], &[false; 4])]),
        case("f8e5m2fnuz", both.clone(), &[eighths(DType::F8E5M2FNUZ)], &[bools(&[4], &[false; 4])]),
        case("empty", both, &[tensor::<f32>(&[0, 2], &[])], &[bools(&[0, 2], &[])]),
    ]
}
