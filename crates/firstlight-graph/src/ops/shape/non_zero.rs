//! `NonZero`.

use crate::op::{Arity, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{bools, case, tensor};
use crate::ops::elementwise::{operations, unlisted};
use crate::ops::types::NUMERIC_OR_BOOL;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, Element, Shape, SymShape, Tensor, TensorView, bf16, f16};
use smallvec::SmallVec;

/// The places of the elements that are not zero.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct NonZero;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "NonZero",
    doc: "The indices of the elements that are not zero (or not false), in row-major order: one row a dimension, one \
          column an element. NaN is not zero, -0 is. A scalar gives no rows, and one column where it is not zero.",
    attributes: &[],
    inputs: &[Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One }],
    outputs: &[Param { name: "Y", ty: TypeRef::Fixed(DType::I64), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: NUMERIC_OR_BOOL }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for NonZero {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let dims = ctx.dims(0)?;
        let too_large = |shape| OpError::shape(format!("the number of elements of {shape} overflows"));
        let bound = match dims.known() {
            Some(shape) => Dim::Known(shape.n_elems().ok_or_else(|| too_large(shape))?),
            None => Dim::Unknown,
        };
        let dims = SymShape(vec![Dim::Known(dims.rank()), bound]);
        Ok(OutInfo { data_sized: true, ..OutInfo::new(DType::I64, dims) }.one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let input = ctx.input(0)?;
        let places = match input.dtype() {
            DType::F32 => places::<f32>(&input),
            DType::F64 => places::<f64>(&input),
            DType::F16 => places::<f16>(&input),
            DType::BF16 => places::<bf16>(&input),
            DType::I64 => places::<i64>(&input),
            DType::I32 => places::<i32>(&input),
            DType::I16 => places::<i16>(&input),
            DType::I8 => places::<i8>(&input),
            DType::U64 => places::<u64>(&input),
            DType::U32 => places::<u32>(&input),
            DType::U16 => places::<u16>(&input),
            DType::U8 => places::<u8>(&input),
            DType::Bool => Ok(positions(input.bools()?)),
            other => Err(unlisted("NonZero", other)),
        }?;
        let (shape, strides, n) = (input.shape(), input.shape().strides(), places.len());
        let output = ctx.output(0)?;
        output.set_shape(Shape::from([shape.rank(), n]));
        for (i, out) in output.values_mut::<i64>()?.iter_mut().enumerate() {
            // Row `axis` holds each place's index along that axis.
            let (axis, place) = (i / n, places[i % n]);
            *out = (place / strides[axis] % shape[axis]) as i64;
        }
        Ok(())
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs, 1)
    }
}

fn places<T: Element + Default>(view: &TensorView<'_>) -> Result<Vec<usize>, OpError> {
    Ok(positions(view.values::<T>()?.iter().map(|x| *x != T::default())))
}

fn positions(truths: impl IntoIterator<Item = bool>) -> Vec<usize> {
    truths.into_iter().enumerate().filter(|&(_, truth)| truth).map(|(i, _)| i).collect()
}

fn cases() -> Vec<Case> {
    let places = |name, x: Tensor, dims: [usize; 2], y: &[i64]| case(name, NonZero, &[x], &[tensor(&dims, y)]);
    vec![
        places("matrix", tensor(&[2, 3], &[1i64, 0, 2, 0, 3, 0]), [2, 3], &[0, 0, 1, 0, 2, 1]),
        places("NaN and signed zero", tensor(&[4], &[f32::NAN, -0., 0., -1e-45]), [1, 2], &[0, 3]),
        places("bools", bools(&[2, 2], &[false, false, true, true]), [2, 2], &[1, 1, 0, 1]),
        places("none", tensor(&[2, 2], &[0u8; 4]), [2, 0], &[]),
        places("empty", tensor::<f64>(&[0, 4], &[]), [2, 0], &[]),
        places("a scalar that is not zero", Tensor::scalar(5i32), [0, 1], &[]),
        places("a scalar that is zero", Tensor::scalar(0i32), [0, 0], &[]),
        places("f16", tensor(&[2], &[f16::NEG_ZERO, f16::ONE]), [1, 1], &[1]),
        places("bf16", tensor(&[2], &[bf16::ONE, bf16::ZERO]), [1, 1], &[0]),
    ]
}
