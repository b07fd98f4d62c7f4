//! `Mod`.

use super::{BINARY_INPUTS, SAME_OUTPUT, infer_binary, map_ints, map2, operations};
use crate::op::{AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::float::{Compute, Float};
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;

/// Remainder of a division, element by element, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Mod {
    /// Whether the quotient is rounded toward zero, so that the remainder has the dividend's sign; otherwise it is
    /// rounded down, and the remainder has the divisor's sign.
    pub fmod: bool,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Mod",
    doc: "Remainder of a division, element by element, with broadcasting. An integer modulo 0 is 0; a float modulo 0 and \
          an infinity modulo anything are NaN; a finite float modulo an infinity is itself, or the infinity where \
          `fmod` is false and the signs differ.",
    attributes: &[AttrDoc {
        name: "fmod",
        doc: "whether the quotient is rounded toward zero, so that the remainder has the dividend's sign; otherwise it \
              is rounded down, and the remainder has the divisor's sign",
    }],
    inputs: BINARY_INPUTS,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: NUMERIC }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Mod {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("fmod", AttrValue::Bool(self.fmod))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, None)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => map2(ctx, |a: f32, b: f32| self.floats(a, b)),
            DType::F64 => map2(ctx, |a: f64, b: f64| self.floats(a, b)),
            DType::F16 => map2(ctx, |a: f16, b: f16| self.floats(a, b)),
            DType::BF16 => map2(ctx, |a: bf16, b: bf16| self.floats(a, b)),
            _ => map_ints(ctx, "Mod", |a, b| self.ints(a, b)),
        }
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 8)
    }
}

impl Mod {
    fn ints(&self, a: i128, b: i128) -> i128 {
        let rest = a.checked_rem(b).unwrap_or(0);
        if !self.fmod && rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
    }

    /// In f64, where the remainder of narrower types is exact and the sum with the divisor rounds as in f32.
    fn floats<T: Float>(&self, a: T, b: T) -> T {
        let (a, b) = (a.widen().to_f64(), b.widen().to_f64());
        let rest = a % b;
        let rest = match (self.fmod, rest == 0.0) {
            (false, true) => 0f64.copysign(b),
            (false, false) if (rest < 0.0) != (b < 0.0) => rest + b,
            _ => rest,
        };
        T::narrow(T::Compute::from_f64(rest))
    }
}

fn cases() -> Vec<Case> {
    const DOWN: Mod = Mod { fmod: false };
    const TOWARD_ZERO: Mod = Mod { fmod: true };
    const INF: f32 = f32::INFINITY;
    vec![
        case(
            "the divisor's sign",
            DOWN,
            &[tensor(&[6], &[-4i32, 7, 5, 4, -7, 8]), tensor(&[6], &[2i32, -3, 8, -2, 3, 5])],
            &[tensor(&[6], &[0i32, -2, 5, 0, 2, 3])],
        ),
        case(
            "the dividend's sign",
            TOWARD_ZERO,
            &[tensor(&[6], &[-4i64, 7, 5, 4, -7, 8]), tensor(&[6], &[2i64, -3, 8, -2, 3, 5])],
            &[tensor(&[6], &[0i64, 1, 5, 0, -1, 3])],
        ),
        case(
            "by zero, and the least integer by -1",
            DOWN,
            &[tensor(&[3], &[5i8, 0, i8::MIN]), tensor(&[3], &[0i8, 0, -1])],
            &[tensor(&[3], &[0i8, 0, 0])],
        ),
        case(
            "unsigned, broadcast",
            DOWN,
            &[tensor(&[2, 1], &[u64::MAX, 7]), tensor(&[2], &[10u64, 4])],
            &[tensor(&[2, 2], &[5u64, 3, 7, 3])],
        ),
        case(
            "floats toward zero",
            TOWARD_ZERO,
            &[tensor(&[4], &[-4.25f32, 7.5, 5., -0.5]), tensor(&[4], &[2f32, -3., INF, -INF])],
            &[tensor(&[4], &[-0.25f32, 1.5, 5., -0.5])],
        ),
        case(
            "floats down",
            DOWN,
            &[tensor(&[6], &[-4.25f32, 7.5, 5., -0.5, -4., 4.]), tensor(&[6], &[2f32, -3., INF, INF, 2., -2.])],
            &[tensor(&[6], &[1.75f32, -1.5, 5., INF, 0., -0.])],
        ),
        case(
            "floats by zero, infinities, NaN",
            TOWARD_ZERO,
            &[tensor(&[4], &[1f32, INF, f32::NAN, 1.]), tensor(&[4], &[0f32, 2., 2., f32::NAN])],
            &[tensor(&[4], &[f32::NAN; 4])],
        ),
        case("f64", TOWARD_ZERO, &[Tensor::scalar(5.25f64), Tensor::scalar(-2f64)], &[Tensor::scalar(1.25f64)]),
        case(
            "f16",
            DOWN,
            &[Tensor::scalar(f16::from_f32(-1.)), Tensor::scalar(f16::from_f32(3.))],
            &[Tensor::scalar(f16::from_f32(2.))],
        ),
        case(
            "bf16",
            TOWARD_ZERO,
            &[Tensor::scalar(bf16::from_f32(-7.)), Tensor::scalar(bf16::from_f32(3.))],
            &[Tensor::scalar(bf16::from_f32(-1.))],
        ),
        case("empty", DOWN, &[tensor::<i64>(&[0], &[]), Tensor::scalar(0i64)], &[tensor::<i64>(&[0], &[])]),
    ]
}
