//! `Range`.

use super::check_n_elems;
use crate::op::{Arity, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::checks::expect_dtype;
use crate::ops::elementwise::unlisted;
use crate::ops::float::{Compute, Float};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Element, Tensor, TensorView, bf16, f16};
use smallvec::SmallVec;

/// Numbers from a start up to and without a limit, in equal steps.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Range;

const TYPES: &[DType] = &[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::I16];

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Range",
    doc: "`start + i * delta` for each `i` below `ceil((limit - start) / delta)`; nothing where that is negative. \
          16-bit floats are computed in f32. For floats the quotient is taken in f64.",
    attributes: &[],
    inputs: &[
        Param { name: "start", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "limit", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "delta", ty: TypeRef::Var(0), arity: Arity::One },
    ],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: TYPES }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Range {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        for (i, name) in ["start", "limit", "delta"].iter().enumerate() {
            if let Some(shape) = ctx.dims(i)?.known().filter(|shape| shape.n_elems() != Some(1)) {
                return Err(OpError::shape(format!("{name} has shape {shape}, expected a scalar")));
            }
        }
        let dtype = ctx.dtype(0)?;
        let n = n_elems(&[ctx.value(0)?.view(), ctx.value(1)?.view(), ctx.value(2)?.view()])?;
        Ok(OutInfo::known(dtype, [n]).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let inputs = [ctx.input(0)?, ctx.input(1)?, ctx.input(2)?];
        let n = n_elems(&inputs)?;
        let output = ctx.output(0)?;
        if **output.shape() != [n] {
            return Err(OpError::shape(format!("output 0 has shape {}, expected [{n}]", output.shape())));
        }
        expect_dtype("output 0", inputs[0].dtype(), output.dtype())?;
        match output.dtype() {
            DType::F32 => fill(output.values_mut()?, &inputs, float_at::<f32>),
            DType::F64 => fill(output.values_mut()?, &inputs, float_at::<f64>),
            DType::F16 => fill(output.values_mut()?, &inputs, float_at::<f16>),
            DType::BF16 => fill(output.values_mut()?, &inputs, float_at::<bf16>),
            // An index that is cut off wraps as the product does, and no element lies beyond the limit.
            DType::I64 => {
                fill(output.values_mut()?, &inputs, |a: i64, d, i| a.wrapping_add((i as i64).wrapping_mul(d)))
            }
            DType::I32 => {
                fill(output.values_mut()?, &inputs, |a: i32, d, i| a.wrapping_add((i as i32).wrapping_mul(d)))
            }
            DType::I16 => {
                fill(output.values_mut()?, &inputs, |a: i16, d, i| a.wrapping_add((i as i16).wrapping_mul(d)))
            }
            other => Err(unlisted("Range", other)),
        }
    }
}

/// Length of the result of start, limit and delta.
fn n_elems(inputs: &[TensorView<'_>; 3]) -> Result<usize, OpError> {
    let dtype = inputs[0].dtype();
    let n = match dtype {
        DType::F32 => n_floats::<f32>(inputs),
        DType::F64 => n_floats::<f64>(inputs),
        DType::F16 => n_floats::<f16>(inputs),
        DType::BF16 => n_floats::<bf16>(inputs),
        DType::I64 => n_ints::<i64>(inputs),
        DType::I32 => n_ints::<i32>(inputs),
        DType::I16 => n_ints::<i16>(inputs),
        other => Err(unlisted("Range", other)),
    }?;
    check_n_elems(dtype, Some(n), "Range")?;
    Ok(n)
}

fn n_floats<T: Float>(inputs: &[TensorView<'_>; 3]) -> Result<usize, OpError> {
    let [start, limit, delta] = scalars::<T>(inputs)?.map(T::widen);
    let n = ((limit - start).to_f64() / delta.to_f64()).ceil();
    if delta == T::Compute::default() || n.is_nan() {
        let [start, limit, delta] = [start, limit, delta].map(Compute::to_f64);
        return Err(OpError::value(format!("no range goes from {start} to {limit} in steps of {delta}")));
    }
    // The conversion saturates: what is too large stays so.
    Ok(n as usize)
}

fn n_ints<T: Element + Into<i128>>(inputs: &[TensorView<'_>; 3]) -> Result<usize, OpError> {
    let [start, limit, delta] = scalars::<T>(inputs)?.map(Into::<i128>::into);
    let (length, step) = if delta < 0 { (start - limit, -delta) } else { (limit - start, delta) };
    match step {
        0 => Err(OpError::value(format!("no range goes from {start} to {limit} in steps of 0"))),
        _ => Ok(usize::try_from((length.max(0) + step - 1) / step).unwrap_or(usize::MAX)),
    }
}

fn scalars<T: Element>(inputs: &[TensorView<'_>; 3]) -> Result<[T; 3], OpError> {
    let scalar = |i: usize| match &inputs[i].values::<T>()?[..] {
        [value] => Ok(*value),
        other => Err(OpError::shape(format!("input {i} has {} elements, expected a scalar", other.len()))),
    };
    Ok([scalar(0)?, scalar(1)?, scalar(2)?])
}

fn fill<T: Element>(
    output: &mut [T],
    inputs: &[TensorView<'_>; 3],
    at: impl Fn(T, T, usize) -> T,
) -> Result<(), OpError> {
    let [start, _, delta] = scalars::<T>(inputs)?;
    for (i, out) in output.iter_mut().enumerate() {
        *out = at(start, delta, i);
    }
    Ok(())
}

fn float_at<T: Float>(start: T, delta: T, i: usize) -> T {
    T::narrow(start.widen() + T::Compute::from_f64(i as f64) * delta.widen())
}

fn cases() -> Vec<Case> {
    fn range<T: Element>(name: &'static str, [start, limit, delta]: [T; 3], values: &[T]) -> Case {
        let inputs = [Tensor::scalar(start), Tensor::scalar(limit), Tensor::scalar(delta)];
        case(name, Range, &inputs, &[tensor(&[values.len()], values)])
    }
    vec![
        range("up", [3i64, 9, 3], &[3, 6]),
        range("down", [10i64, 4, -2], &[10, 8, 6]),
        range("the last step is cut", [0i32, 5, 2], &[0, 2, 4]),
        range("wrong way", [0i64, 5, -1], &[]),
        range("nothing", [5i64, 5, 1], &[]),
        range("across the whole type", [i64::MIN, i64::MAX, i64::MAX], &[i64::MIN, -1, i64::MAX - 1]),
        range("i16 at its edge", [32_000i16, 32_767, 500], &[32_000, 32_500]),
        range("floats", [1f32, 2.25, 0.5], &[1., 1.5, 2.]),
        range("floats down", [1f64, -1., -1.], &[1., 0.]),
        range("infinite step", [1f32, 2., f32::INFINITY], &[]),
        range(
            "f16 counts in f32",
            [f16::from_f32(2048.), f16::from_f32(2052.), f16::from_f32(2.)],
            &[f16::from_f32(2048.), f16::from_f32(2050.)],
        ),
        range(
            "bf16",
            [bf16::from_f32(0.), bf16::from_f32(1.), bf16::from_f32(0.5)],
            &[bf16::from_f32(0.), bf16::from_f32(0.5)],
        ),
        case(
            "one-element vectors",
            Range,
            &[tensor(&[1], &[0i64]), tensor(&[1], &[2i64]), tensor(&[1], &[1i64])],
            &[tensor(&[2], &[0i64, 1])],
        ),
    ]
}
