//! `Cast`.

use super::unlisted;
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{bools, case, tensor};
use crate::ops::checks::{expect_dtype, expect_shape};
use crate::ops::types::NUMERIC_OR_BOOL;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Element, Tensor, TensorView, TensorViewMut, bf16, f16};
use smallvec::SmallVec;

/// The elements converted to another type.
#[derive(Clone, Debug, PartialEq)]
pub struct Cast {
    /// The element type of the result: floating point of 16 to 64 bits, an integer of 8 to 64 bits, or bool.
    pub to: DType,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Cast",
    doc: "The elements converted to another type. Floats round to nearest, ties to even, and overflow to infinity \
          (integers reach 16-bit floats through f32). Floats to integers round toward zero; out of range they take \
          the nearest value, and NaN gives 0. Integers to integers keep the low bits. To bool, all but zero is true.",
    attributes: &[AttrDoc {
        name: "to",
        doc: "the element type of the result: floating point of 16 to 64 bits, an integer of 8 to 64 bits, or bool",
    }],
    inputs: &[Param { name: "input", ty: TypeRef::Var(0), arity: Arity::One }],
    outputs: &[Param { name: "output", ty: TypeRef::Var(1), arity: Arity::One }],
    types: &[TypeVar { name: "T1", allowed: NUMERIC_OR_BOOL }, TypeVar { name: "T2", allowed: NUMERIC_OR_BOOL }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Cast {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("to", AttrValue::DType(self.to))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let from = ctx.dtype(0)?;
        if ![from, self.to].iter().all(|dtype| NUMERIC_OR_BOOL.contains(dtype)) {
            return Err(OpError::unsupported(format!(
                "Cast from {from} to {}: only floats of 16 to 64 bits, integers of 8 to 64 bits and bool are converted",
                self.to
            )));
        }
        Ok(OutInfo::new(self.to, ctx.dims(0)?.clone()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let input = ctx.input(0)?;
        let output = ctx.output(0)?;
        expect_dtype("output 0", self.to, output.dtype())?;
        expect_shape("output 0", input.shape(), output.shape())?;
        let numbers = numbers(&input)?;
        match self.to {
            DType::F32 => fill(output, numbers, Number::to_f32),
            DType::F64 => fill(output, numbers, Number::to_f64),
            DType::F16 => fill(output, numbers, |x| f16::from_f32(x.to_f32_for_narrowing())),
            DType::BF16 => fill(output, numbers, |x| bf16::from_f32(x.to_f32_for_narrowing())),
            DType::I64 => fill(output, numbers, |x| x.to_int(|x| x as i64, |x| x as i64)),
            DType::I32 => fill(output, numbers, |x| x.to_int(|x| x as i32, |x| x as i32)),
            DType::I16 => fill(output, numbers, |x| x.to_int(|x| x as i16, |x| x as i16)),
            DType::I8 => fill(output, numbers, |x| x.to_int(|x| x as i8, |x| x as i8)),
            DType::U64 => fill(output, numbers, |x| x.to_int(|x| x as u64, |x| x as u64)),
            DType::U32 => fill(output, numbers, |x| x.to_int(|x| x as u32, |x| x as u32)),
            DType::U16 => fill(output, numbers, |x| x.to_int(|x| x as u16, |x| x as u16)),
            DType::U8 => fill(output, numbers, |x| x.to_int(|x| x as u8, |x| x as u8)),
            DType::Bool => {
                for (out, x) in output.words_mut::<u8>()?.iter_mut().zip(numbers) {
                    *out = x.to_int(|x| x != 0.0, |x| x != 0).into();
                }
                Ok(())
            }
            other => Err(unlisted("Cast", other)),
        }
    }
}

/// Any element, without loss.
#[derive(Clone, Copy)]
enum Number {
    Float(f64),
    Int(i128),
}

impl Number {
    fn to_f64(self) -> f64 {
        match self {
            Number::Float(x) => x,
            Number::Int(x) => x as f64,
        }
    }

    fn to_f32(self) -> f32 {
        match self {
            Number::Float(x) => x as f32,
            Number::Int(x) => x as f32,
        }
    }

    /// An `f32` that rounds to the 16-bit float which this number rounds to; integers round to `f32` first.
    fn to_f32_for_narrowing(self) -> f32 {
        let nearest = self.to_f32();
        match self {
            // Rounding to odd: whatever lies between two f32 values goes to the one whose last bit is set, so that it
            // is on the right side of every tie of a type with fewer bits.
            Number::Float(x) if f64::from(nearest) != x && !x.is_nan() => {
                let away = f64::from(nearest).abs() > x.abs();
                f32::from_bits((nearest.to_bits() - u32::from(away)) | 1)
            }
            _ => nearest,
        }
    }

    fn to_int<U>(self, from_float: impl Fn(f64) -> U, from_int: impl Fn(i128) -> U) -> U {
        match self {
            Number::Float(x) => from_float(x),
            Number::Int(x) => from_int(x),
        }
    }
}

type Numbers<'a> = Box<dyn Iterator<Item = Number> + 'a>;

fn numbers<'a>(view: &TensorView<'a>) -> Result<Numbers<'a>, OpError> {
    match view.dtype() {
        DType::F32 => read(view, |x: f32| Number::Float(x.into())),
        DType::F64 => read(view, Number::Float),
        DType::F16 => read(view, |x: f16| Number::Float(x.into())),
        DType::BF16 => read(view, |x: bf16| Number::Float(x.into())),
        DType::I64 => read(view, |x: i64| Number::Int(x.into())),
        DType::I32 => read(view, |x: i32| Number::Int(x.into())),
        DType::I16 => read(view, |x: i16| Number::Int(x.into())),
        DType::I8 => read(view, |x: i8| Number::Int(x.into())),
        DType::U64 => read(view, |x: u64| Number::Int(x.into())),
        DType::U32 => read(view, |x: u32| Number::Int(x.into())),
        DType::U16 => read(view, |x: u16| Number::Int(x.into())),
        DType::U8 => read(view, |x: u8| Number::Int(x.into())),
        DType::Bool => Ok(Box::new(view.bools()?.into_iter().map(|x| Number::Int(x.into())))),
        other => Err(unlisted("Cast", other)),
    }
}

fn read<'a, T: Element>(view: &TensorView<'a>, number: impl Fn(T) -> Number + 'a) -> Result<Numbers<'a>, OpError> {
    let values = view.values::<T>()?;
    Ok(Box::new((0..values.len()).map(move |i| number(values[i]))))
}

fn fill<U: Element>(
    output: &mut TensorViewMut<'_>,
    numbers: Numbers<'_>,
    convert: impl Fn(Number) -> U,
) -> Result<(), OpError> {
    for (out, x) in output.values_mut::<U>()?.iter_mut().zip(numbers) {
        *out = convert(x);
    }
    Ok(())
}

fn cases() -> Vec<Case> {
    let cast = |name, input: Tensor, output: Tensor| case(name, Cast { to: output.dtype() }, &[input], &[output]);
    let halves = |bits: &[u16]| bits.iter().map(|&bits| f16::from_bits(bits)).collect::<Vec<_>>();
    vec![
        cast("f32 to i64 rounds toward zero", tensor(&[4], &[1.9f32, -1.9, -0., 3.]), tensor(&[4], &[1i64, -1, 0, 3])),
        cast(
            "floats out of an integer's range take the nearest value",
            tensor(&[6], &[300f32, -300., f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 127.5]),
            tensor(&[6], &[127i8, -128, 127, -128, 0, 127]),
        ),
        cast("negative floats to unsigned give 0", tensor(&[2], &[-1f64, 256.]), tensor(&[2], &[0u8, 255])),
        cast("f64 at the edge of i64", tensor(&[2], &[9.3e18f64, -9.3e18]), tensor(&[2], &[i64::MAX, i64::MIN])),
        cast("integers keep the low bits", tensor(&[3], &[200i16, -1, 256]), tensor(&[3], &[-56i8, -1, 0])),
        cast("sign extends", tensor(&[2], &[-1i8, 5]), tensor(&[2], &[u64::MAX, 5])),
        cast(
            "unsigned 64 bits to f32",
            tensor(&[2], &[u64::MAX, 16_777_217]),
            tensor(&[2], &[1.844_674_4e19f32, 16_777_216.]),
        ),
        cast(
            "floats to bool",
            tensor(&[5], &[0f32, -0., f32::NAN, 1e-40, f32::NEG_INFINITY]),
            bools(&[5], &[false, false, true, true, true]),
        ),
        cast("integers to bool", tensor(&[3], &[0i32, 256, -1]), bools(&[3], &[false, true, true])),
        cast("bool to f32", bools(&[2, 1], &[true, false]), tensor(&[2, 1], &[1f32, 0.])),
        cast("bool to bool", bools(&[2], &[true, false]), bools(&[2], &[true, false])),
        cast("bool to i8", bools(&[2], &[true, false]), tensor(&[2], &[1i8, 0])),
        cast(
            "f32 to f16: ties to even, overflow, subnormal, signed zero",
            tensor(&[7], &[1. + 1. / 2048., 1. + 3. / 2048., 65519., 65520., 6e-8, -0., f32::NEG_INFINITY]),
            tensor(&[7], &halves(&[0x3c00, 0x3c02, 0x7bff, 0x7c00, 0x0001, 0x8000, 0xfc00])),
        ),
        cast(
            "f64 to f16 rounds once",
            tensor(&[3], &[1. + 1. / 2048. + 1e-12, -(1. + 1. / 2048. + 1e-12), 1. + 3. / 2048. - 1e-12]),
            tensor(&[3], &halves(&[0x3c01, 0xbc01, 0x3c01])),
        ),
        cast(
            "f64 to bf16 rounds once, and overflows to infinity",
            tensor(&[3], &[1. + 1. / 256. + 1e-12, 1e300, -1e-300]),
            tensor(&[3], &[bf16::from_bits(0x3f81), bf16::INFINITY, bf16::NEG_ZERO]),
        ),
        cast("f64 to f32 overflows to infinity", tensor(&[2], &[1e39f64, 0.1]), tensor(&[2], &[f32::INFINITY, 0.1])),
        cast("i32 to f16", tensor(&[2], &[2049i32, 70_000]), tensor(&[2], &halves(&[0x6800, 0x7c00]))),
        cast("f16 to f32", tensor(&[2], &halves(&[0x0001, 0x7bff])), tensor(&[2], &[5.960_464_5e-8f32, 65504.])),
        cast("bf16 to u16", Tensor::scalar(bf16::from_f32(-3.)), Tensor::scalar(0u16)),
        cast("same type", tensor(&[2], &[-0f32, f32::INFINITY]), tensor(&[2], &[-0f32, f32::INFINITY])),
        cast("empty", tensor::<f32>(&[0, 2], &[]), tensor::<i32>(&[0, 2], &[])),
    ]
}
