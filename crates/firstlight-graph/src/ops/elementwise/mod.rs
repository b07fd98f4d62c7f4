//! Ops that compute each element from the elements at the same place, and what they share.

pub mod add;
pub mod relu;

use crate::infer::broadcast_dims;
use crate::op::{Arity, Param, RefCtx, TypeRef};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Element, Layout, Shape, TensorView};
use smallvec::SmallVec;

/// Inputs of a binary op whose operands have one type.
pub(crate) const BINARY_INPUTS: &[Param] = &[
    Param { name: "A", ty: TypeRef::Var(0), arity: Arity::One },
    Param { name: "B", ty: TypeRef::Var(0), arity: Arity::One },
];

/// Output of an op whose result has its operands' type.
pub(crate) const SAME_OUTPUT: &[Param] = &[Param { name: "C", ty: TypeRef::Var(0), arity: Arity::One }];

/// Output of a comparison.
pub(crate) const BOOL_OUTPUT: &[Param] = &[Param { name: "C", ty: TypeRef::Fixed(DType::Bool), arity: Arity::One }];

/// Input of a unary op.
pub(crate) const UNARY_INPUT: &[Param] = &[Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One }];

/// Infers a binary op that keeps its operands' type, or gives `dtype`.
pub(crate) fn infer_binary(ctx: &InferCtx<'_>, dtype: Option<DType>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
    let dims = broadcast_dims(ctx.dims(0)?, ctx.dims(1)?)?;
    Ok(OutInfo::new(dtype.unwrap_or(ctx.dtype(0)?), dims).one())
}

/// Infers a unary op that keeps its operand's shape and type.
pub(crate) fn infer_unary(ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
    Ok(OutInfo::new(ctx.dtype(0)?, ctx.dims(0)?.clone()).one())
}

/// A view of `input` broadcast to `shape`.
pub(crate) fn broadcast_view<'a>(input: &TensorView<'a>, shape: &Shape) -> Result<TensorView<'a>, OpError> {
    let from = input.shape();
    let misfit = || OpError::shape(format!("shape {from} does not broadcast to {shape}"));
    let lead = shape.rank().checked_sub(from.rank()).ok_or_else(misfit)?;
    let mut strides: SmallVec<[isize; 6]> = SmallVec::from_elem(0, shape.rank());
    for (i, (&dim, &stride)) in from.iter().zip(input.layout().strides()).enumerate() {
        match dim {
            _ if dim == shape[lead + i] => strides[lead + i] = stride,
            1 => {}
            _ => return Err(misfit()),
        }
    }
    let n_elems = input.raw().len() * 8 / input.dtype().bits().max(1);
    let layout = Layout::strided(shape, &strides, input.layout().offset(), n_elems).ok_or_else(misfit)?;
    Ok(TensorView::new(input.dtype(), layout, input.raw()))
}

/// Fills the output with `f` of the broadcast operands.
pub(crate) fn map2<T: Element, U: Element>(ctx: &mut RefCtx<'_>, f: impl Fn(T, T) -> U) -> Result<(), OpError> {
    let (a, b) = (ctx.input(0)?, ctx.input(1)?);
    let output = ctx.output(0)?;
    let shape = output.shape().clone();
    let (a, b) = (broadcast_view(&a, &shape)?, broadcast_view(&b, &shape)?);
    let (a, b) = (a.values::<T>()?, b.values::<T>()?);
    for ((out, &a), &b) in output.words_mut::<U>()?.iter_mut().zip(a.iter()).zip(b.iter()) {
        *out = f(a, b);
    }
    Ok(())
}

/// Fills the output with `f` of the operand.
pub(crate) fn map1<T: Element>(ctx: &mut RefCtx<'_>, f: impl Fn(T) -> T) -> Result<(), OpError> {
    let input = ctx.input(0)?;
    for (out, &x) in ctx.output(0)?.values_mut::<T>()?.iter_mut().zip(input.values::<T>()?.iter()) {
        *out = f(x);
    }
    Ok(())
}

/// The error of a reference that meets an element type its declaration does not list.
pub(crate) fn unlisted(op: &str, dtype: DType) -> OpError {
    OpError::dtype(format!("{op} does not take elements of {dtype}"))
}
