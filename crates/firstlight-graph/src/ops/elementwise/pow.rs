//! `Pow`.

use super::{infer_binary, map_pair, operations, unlisted};
use crate::op::{Arity, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::float::{Compute, Float};
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Element, Tensor, bf16, f16};
use smallvec::SmallVec;

/// The first tensor to the power of the second, element by element, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Pow;

const BASES: &[DType] = &[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32];

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Pow",
    doc: "X to the power of Y, element by element, with broadcasting; the result has X's type. Integers wrap; an \
          integer to a negative power rounds toward zero, and 0 to a negative power is 0. An integer to a floating \
          power is computed in f64 and rounds toward zero; out of range it takes the nearest value, NaN gives 0.",
    attributes: &[],
    inputs: &[
        Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "Y", ty: TypeRef::Var(1), arity: Arity::One },
    ],
    outputs: &[Param { name: "Z", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BASES }, TypeVar { name: "T1", allowed: NUMERIC }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Pow {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, None)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(1)?.dtype() {
            DType::F32 => raise(ctx, |y: f32| Exponent::Float(y.into())),
            DType::F64 => raise(ctx, Exponent::Float),
            DType::F16 => raise(ctx, |y: f16| Exponent::Float(y.into())),
            DType::BF16 => raise(ctx, |y: bf16| Exponent::Float(y.into())),
            DType::I64 => raise(ctx, |y: i64| Exponent::Int(y.into())),
            DType::I32 => raise(ctx, |y: i32| Exponent::Int(y.into())),
            DType::I16 => raise(ctx, |y: i16| Exponent::Int(y.into())),
            DType::I8 => raise(ctx, |y: i8| Exponent::Int(y.into())),
            DType::U64 => raise(ctx, |y: u64| Exponent::Int(y.into())),
            DType::U32 => raise(ctx, |y: u32| Exponent::Int(y.into())),
            DType::U16 => raise(ctx, |y: u16| Exponent::Int(y.into())),
            DType::U8 => raise(ctx, |y: u8| Exponent::Int(y.into())),
            other => Err(unlisted("Pow", other)),
        }
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 30)
    }
}

#[derive(Clone, Copy)]
enum Exponent {
    Float(f64),
    Int(i128),
}

impl Exponent {
    fn to_f64(self) -> f64 {
        match self {
            Exponent::Float(y) => y,
            Exponent::Int(y) => y as f64,
        }
    }
}

fn raise<V: Element>(ctx: &mut RefCtx<'_>, exponent: impl Fn(V) -> Exponent) -> Result<(), OpError> {
    match ctx.input(0)?.dtype() {
        DType::F32 => map_pair(ctx, |x: f32, y| float_pow(x, exponent(y))),
        DType::F64 => map_pair(ctx, |x: f64, y| float_pow(x, exponent(y))),
        DType::F16 => map_pair(ctx, |x: f16, y| float_pow(x, exponent(y))),
        DType::BF16 => map_pair(ctx, |x: bf16, y| float_pow(x, exponent(y))),
        DType::I64 => map_pair(ctx, |x: i64, y| match exponent(y) {
            Exponent::Int(y) => int_pow(x, y),
            Exponent::Float(y) => libm::pow(x as f64, y) as i64,
        }),
        DType::I32 => map_pair(ctx, |x: i32, y| match exponent(y) {
            // Powers that wrap at 64 bits and are cut to 32 have wrapped at 32.
            Exponent::Int(y) => int_pow(x.into(), y) as i32,
            Exponent::Float(y) => libm::pow(x.into(), y) as i32,
        }),
        other => Err(unlisted("Pow", other)),
    }
}

fn float_pow<T: Float>(x: T, y: Exponent) -> T {
    T::narrow(T::Compute::from_f64(libm::pow(x.widen().to_f64(), y.to_f64())))
}

fn int_pow(x: i64, y: i128) -> i64 {
    if y < 0 {
        return match x {
            1 => 1,
            -1 => 1 - 2 * (y & 1) as i64,
            _ => 0,
        };
    }
    let (mut result, mut square, mut left) = (1i64, x, y);
    while left > 0 {
        if left & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        left >>= 1;
    }
    result
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "broadcast",
            Pow,
            &[tensor(&[2, 1], &[2f32, 9.]), tensor(&[3], &[2f32, 0.5, -1.])],
            &[tensor(&[2, 3], &[4f32, std::f32::consts::SQRT_2, 0.5, 81., 3., 0.111_111_11])],
        ),
        case(
            "zeros, NaN, infinity, negative bases",
            Pow,
            &[
                tensor(&[8], &[0f32, f32::NAN, 1., f32::INFINITY, -2., -8., -0., 0.]),
                tensor(&[8], &[0f32, 0., f32::NAN, -1., 3., 0.5, -1., 2.]),
            ],
            &[tensor(&[8], &[1f32, 1., 1., 0., -8., f32::NAN, f32::NEG_INFINITY, 0.])],
        ),
        case(
            "float to an integer power",
            Pow,
            &[tensor(&[3], &[1.5f32, -2., 10.]), tensor(&[3], &[2i64, 3, -1])],
            &[tensor(&[3], &[2.25f32, -8., 0.1])],
        ),
        case(
            "integers wrap",
            Pow,
            &[tensor(&[4], &[3i32, 2, -2, 0]), tensor(&[4], &[4i32, 32, 31, 0])],
            &[tensor(&[4], &[81i32, 0, i32::MIN, 1])],
        ),
        case(
            "integers to negative powers",
            Pow,
            &[tensor(&[5], &[1i64, -1, -1, 2, 0]), tensor(&[5], &[-5i64, -3, -2, -1, -1])],
            &[tensor(&[5], &[1i64, -1, 1, 0, 0])],
        ),
        case(
            "integers to floating powers",
            Pow,
            &[tensor(&[5], &[2i64, 10, 2, -8, 10]), tensor(&[5], &[0.5f32, 2., -1., 0.5, 30.])],
            &[tensor(&[5], &[1i64, 100, 0, 0, i64::MAX])],
        ),
        case(
            "unsigned exponent",
            Pow,
            &[Tensor::scalar(3i64), Tensor::scalar(u64::MAX)],
            &[
                // 3 has order 2^62 modulo 2^64, and u64::MAX is -1 modulo that: the inverse of 3.
                Tensor::scalar(0xaaaa_aaaa_aaaa_aaabu64 as i64),
            ],
        ),
        case("f64", Pow, &[Tensor::scalar(2f64), Tensor::scalar(0.5f64)], &[Tensor::scalar(std::f64::consts::SQRT_2)]),
        case(
            "f16",
            Pow,
            &[Tensor::scalar(f16::from_f32(300.)), Tensor::scalar(f16::from_f32(2.))],
            &[Tensor::scalar(f16::INFINITY)],
        ),
        case(
            "bf16",
            Pow,
            &[Tensor::scalar(bf16::from_f32(3.)), Tensor::scalar(2u8)],
            &[Tensor::scalar(bf16::from_f32(9.))],
        ),
        case("empty", Pow, &[tensor::<f32>(&[0], &[]), Tensor::scalar(2i8)], &[tensor::<f32>(&[0], &[])]),
    ]
}
