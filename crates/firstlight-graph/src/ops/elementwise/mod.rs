//! Ops that compute each element from the elements at the same place, and what they share.

pub mod add;
pub mod and;
pub mod cast;
pub mod chain;
pub mod clip;
pub mod div;
pub mod equal;
pub mod erf;
pub mod exp;
pub mod greater;
pub mod greater_or_equal;
pub mod hard_sigmoid;
pub mod hard_swish;
pub mod identity;
pub mod less;
pub mod less_or_equal;
pub mod max;
pub mod min;
pub mod mod_op;
pub mod mul;
pub mod not;
mod ordered;
pub mod pow;
pub mod reciprocal;
pub mod relu;
pub mod sigmoid;
pub mod sqrt;
pub mod sub;
pub mod tanh;
pub mod where_op;

use crate::infer::broadcast_dims;
use crate::op::{Arity, Param, RefCtx, TypeRef};
use crate::ops::checks::{expect_dtype, expect_shape};
use crate::ops::float::Float;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Element, Layout, Shape, TensorView, bf16, f16};
use smallvec::SmallVec;

pub(crate) use ordered::{compare_numbers, prefer};

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
    map_pair(ctx, f)
}

/// Fills the output with `f` of the broadcast operands, whose types may differ.
pub(crate) fn map_pair<T: Element, V: Element, U: Element>(
    ctx: &mut RefCtx<'_>,
    f: impl Fn(T, V) -> U,
) -> Result<(), OpError> {
    let (a, b) = (ctx.input(0)?, ctx.input(1)?);
    let output = ctx.output(0)?;
    let shape = output.shape().clone();
    let output = output.values_mut::<U>()?;
    let (a, b) = (broadcast_view(&a, &shape)?, broadcast_view(&b, &shape)?);
    let (a, b) = (a.values::<T>()?, b.values::<V>()?);
    for ((out, &a), &b) in output.iter_mut().zip(a.iter()).zip(b.iter()) {
        *out = f(a, b);
    }
    Ok(())
}

/// Fills the bool output with `f` of the broadcast operands.
pub(crate) fn compare<T: Element>(ctx: &mut RefCtx<'_>, f: impl Fn(T, T) -> bool) -> Result<(), OpError> {
    let (a, b) = (ctx.input(0)?, ctx.input(1)?);
    let output = ctx.output(0)?;
    expect_dtype("output 0", DType::Bool, output.dtype())?;
    let shape = output.shape().clone();
    let output = output.words_mut::<u8>()?;
    let (a, b) = (broadcast_view(&a, &shape)?, broadcast_view(&b, &shape)?);
    let (a, b) = (a.values::<T>()?, b.values::<T>()?);
    for ((out, a), b) in output.iter_mut().zip(a.iter()).zip(b.iter()) {
        *out = f(*a, *b).into();
    }
    Ok(())
}

/// Fills the bool output with `f` of the broadcast bool operands.
pub(crate) fn map_bools(ctx: &mut RefCtx<'_>, f: impl Fn(bool, bool) -> bool) -> Result<(), OpError> {
    let (a, b) = (ctx.input(0)?, ctx.input(1)?);
    let output = ctx.output(0)?;
    expect_dtype("output 0", DType::Bool, output.dtype())?;
    let shape = output.shape().clone();
    let output = output.words_mut::<u8>()?;
    let (a, b) = (broadcast_view(&a, &shape)?.bools()?, broadcast_view(&b, &shape)?.bools()?);
    for ((out, a), b) in output.iter_mut().zip(a).zip(b) {
        *out = f(a, b).into();
    }
    Ok(())
}

/// Fills the output with `f` of the operand.
pub(crate) fn map1<T: Element>(ctx: &mut RefCtx<'_>, f: impl Fn(T) -> T) -> Result<(), OpError> {
    let input = ctx.input(0)?;
    let output = ctx.output(0)?;
    expect_shape("output 0", input.shape(), output.shape())?;
    for (out, &x) in output.values_mut::<T>()?.iter_mut().zip(input.values::<T>()?.iter()) {
        *out = f(x);
    }
    Ok(())
}

/// Fills the output with `f` of the floating-point operand, computed in `f64`.
pub(crate) fn map_float(ctx: &mut RefCtx<'_>, op: &str, f: impl Fn(f64) -> f64) -> Result<(), OpError> {
    match ctx.input(0)?.dtype() {
        DType::F32 => map1(ctx, |x: f32| x.through_f64(&f)),
        DType::F64 => map1(ctx, |x: f64| x.through_f64(&f)),
        DType::F16 => map1(ctx, |x: f16| x.through_f64(&f)),
        DType::BF16 => map1(ctx, |x: bf16| x.through_f64(&f)),
        other => Err(unlisted(op, other)),
    }
}

/// Fills the output with a function of the floating-point operand, computed in `f64` for that type, else in `f32`, and
/// rounded to the element at the end.
pub(crate) fn map_compute(
    ctx: &mut RefCtx<'_>,
    op: &str,
    f: impl Fn(f32) -> f32,
    f64: impl Fn(f64) -> f64,
) -> Result<(), OpError> {
    match ctx.input(0)?.dtype() {
        DType::F32 => map1(ctx, f),
        DType::F64 => map1(ctx, f64),
        DType::F16 => map1(ctx, |x: f16| f16::narrow(f(x.widen()))),
        DType::BF16 => map1(ctx, |x: bf16| bf16::narrow(f(x.widen()))),
        other => Err(unlisted(op, other)),
    }
}

/// Operations of an op that takes `each` of them an output element.
pub(crate) fn operations(outputs: &[&[usize]], each: u64) -> u64 {
    let elems = |dims: &&[usize]| dims.iter().fold(1u64, |n, &dim| n.saturating_mul(dim as u64));
    outputs.iter().map(elems).fold(0u64, u64::saturating_add).saturating_mul(each)
}

/// The error of a reference that meets an element type its declaration does not list.
pub(crate) fn unlisted(op: &str, dtype: DType) -> OpError {
    OpError::dtype(format!("{op} does not take elements of {dtype}"))
}
