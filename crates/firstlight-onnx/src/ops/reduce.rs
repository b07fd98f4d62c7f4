//! Reductions and normalisations.

use super::layout::with_axes;
use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};
use firstlight_graph::{Op, ValueId, ops};
use firstlight_tensor::{DType, Tensor};

pub(super) fn global_max_pool(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    ctx.emit(ops::GlobalMaxPool)
}

/// Moments are kept in f32: the only stash type that is not a rounding of its own.
pub(super) fn layer_normalization(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let axis = ctx.int("axis")?.unwrap_or(-1);
    let epsilon = ctx.float("epsilon")?.unwrap_or(1e-5);
    match ctx.int("stash_type")? {
        None | Some(1) => ctx.emit(ops::LayerNormalization { axis, epsilon }),
        Some(other) => Err(ctx.unsupported(format!("stash_type {other} is not supported, 1 (f32) is"))),
    }
}

/// The attributes that reductions share. The axes were an attribute before opset `since`, and none meant all.
fn along(ctx: &mut NodeCtx<'_, '_>, since: i64, op: fn(bool, bool) -> Op) -> Result<Values, LoadError> {
    let keepdims = ctx.flag("keepdims", true)?;
    let noop_with_empty_axes = ctx.opset >= since && ctx.flag("noop_with_empty_axes", false)?;
    with_axes(ctx, op(keepdims, noop_with_empty_axes), since)
}

pub(super) fn reduce_l1(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    along(ctx, 18, |keepdims, noop_with_empty_axes| ops::ReduceL1 { keepdims, noop_with_empty_axes }.into())
}

pub(super) fn reduce_l2(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    along(ctx, 18, |keepdims, noop_with_empty_axes| ops::ReduceL2 { keepdims, noop_with_empty_axes }.into())
}

pub(super) fn reduce_log_sum(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    along(ctx, 18, |keepdims, noop_with_empty_axes| ops::ReduceLogSum { keepdims, noop_with_empty_axes }.into())
}

pub(super) fn reduce_log_sum_exp(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    along(ctx, 18, |keepdims, noop_with_empty_axes| ops::ReduceLogSumExp { keepdims, noop_with_empty_axes }.into())
}

pub(super) fn reduce_max(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    along(ctx, 18, |keepdims, noop_with_empty_axes| ops::ReduceMax { keepdims, noop_with_empty_axes }.into())
}

pub(super) fn reduce_mean(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    along(ctx, 18, |keepdims, noop_with_empty_axes| ops::ReduceMean { keepdims, noop_with_empty_axes }.into())
}

pub(super) fn reduce_min(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    along(ctx, 18, |keepdims, noop_with_empty_axes| ops::ReduceMin { keepdims, noop_with_empty_axes }.into())
}

pub(super) fn reduce_prod(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    along(ctx, 18, |keepdims, noop_with_empty_axes| ops::ReduceProd { keepdims, noop_with_empty_axes }.into())
}

pub(super) fn reduce_sum(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    along(ctx, 13, |keepdims, noop_with_empty_axes| ops::ReduceSum { keepdims, noop_with_empty_axes }.into())
}

pub(super) fn reduce_sum_square(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    along(ctx, 18, |keepdims, noop_with_empty_axes| ops::ReduceSumSquare { keepdims, noop_with_empty_axes }.into())
}

/// Up to opset 12 the axes from `axis` on are one: the tensor is taken as a matrix and given its shape back.
fn along_row(ctx: &mut NodeCtx<'_, '_>, op: fn(i64) -> Op) -> Result<Values, LoadError> {
    if ctx.opset >= 13 {
        let axis = ctx.int("axis")?.unwrap_or(-1);
        return ctx.emit(op(axis));
    }
    let axis = ctx.int("axis")?.unwrap_or(1);
    let x = ctx.needed(0)?;
    if axis == -1 || ctx.rank(x).is_some_and(|rank| axis == rank as i64 - 1) {
        return ctx.emit(op(-1));
    }
    let shape = ctx.step(ops::Shape::default(), &[x])?;
    let matrix = ctx.step(ops::Flatten { axis }, &[x])?;
    let rows = ctx.step(op(-1), &[matrix])?;
    ctx.emit_with(ops::Reshape { allow_zero: true }, &[Some(rows), Some(shape)])
}

pub(super) fn softmax(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    along_row(ctx, |axis| ops::Softmax { axis }.into())
}

pub(super) fn log_softmax(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    along_row(ctx, |axis| ops::LogSoftmax { axis }.into())
}

/// Axis, whether it stays, and whether the last of equal elements is taken, which opset 12 brought.
fn arg(ctx: &mut NodeCtx<'_, '_>) -> Result<(i64, bool, bool), LoadError> {
    let axis = ctx.int("axis")?.unwrap_or(0);
    let keepdims = ctx.flag("keepdims", true)?;
    Ok((axis, keepdims, ctx.opset >= 12 && ctx.flag("select_last_index", false)?))
}

pub(super) fn arg_max(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let (axis, keepdims, select_last_index) = arg(ctx)?;
    ctx.emit(ops::ArgMax { axis, keepdims, select_last_index })
}

pub(super) fn arg_min(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let (axis, keepdims, select_last_index) = arg(ctx)?;
    ctx.emit(ops::ArgMin { axis, keepdims, select_last_index })
}

/// K was an attribute up to opset 9; opset 11 brought the least elements and those in no order.
pub(super) fn top_k(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let axis = ctx.int("axis")?.unwrap_or(-1);
    if ctx.opset < 10 {
        let k = ctx.int("k")?;
        let k = ctx.list("k", &[ctx.required("k", k)?])?;
        let x = ctx.needed(0)?;
        return ctx.emit_with(ops::TopK { axis, ..ops::TopK::default() }, &[Some(x), Some(k)]);
    }
    let (largest, sorted) =
        if ctx.opset < 11 { (true, true) } else { (ctx.flag("largest", true)?, ctx.flag("sorted", true)?) };
    ctx.emit(ops::TopK { axis, largest, sorted })
}

/// The exponent of a norm, which was a float in opset 1; one that is not whole is not supported.
pub(super) fn exponent(ctx: &mut NodeCtx<'_, '_>) -> Result<i64, LoadError> {
    let p = match ctx.opset {
        ..2 => match ctx.float("p")?.unwrap_or(2.0) {
            p if p.fract() == 0.0 && p.abs() < 1e6 => p as i64,
            p => return Err(ctx.unsupported(format!("p is {p}, only whole numbers are supported"))),
        },
        _ => ctx.int("p")?.unwrap_or(2),
    };
    match p {
        1.. => Ok(p),
        _ => Err(ctx.error(format!("p is {p}, expected 1 or more"))),
    }
}

pub(super) fn global_lp_pool(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let p = exponent(ctx)?;
    ctx.emit(ops::GlobalLpPool { p })
}

pub(super) fn rms_normalization(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let axis = ctx.int("axis")?.unwrap_or(-1);
    let epsilon = ctx.float("epsilon")?.unwrap_or(1e-5);
    match ctx.int("stash_type")? {
        None | Some(1) => ctx.emit(ops::RMSNormalization { axis, epsilon }),
        Some(other) => Err(ctx.unsupported(format!("stash_type {other} is not supported, 1 (f32) is"))),
    }
}

/// Input 0 in the type that floats are computed in, and a scalar of that type.
fn computed(ctx: &mut NodeCtx<'_, '_>) -> Result<(ValueId, impl Fn(f32) -> Tensor + use<>), LoadError> {
    let x = ctx.needed(0)?;
    let dtype = ctx.dtype(x);
    let x = match dtype {
        Some(DType::F16 | DType::BF16) => ctx.step(ops::Cast { to: DType::F32 }, &[x])?,
        _ => x,
    };
    let scalar = move |value: f32| match dtype {
        Some(DType::F64) => Tensor::scalar(f64::from(value)),
        _ => Tensor::scalar(value),
    };
    Ok((x, scalar))
}

/// Appends the node's last op, and for 16-bit floats the one rounding of the result.
fn rounded(ctx: &mut NodeCtx<'_, '_>, op: impl Into<Op>, inputs: [ValueId; 2]) -> Result<Values, LoadError> {
    match ctx.input(0).and_then(|x| ctx.dtype(x)) {
        Some(to @ (DType::F16 | DType::BF16)) => {
            let wide = ctx.step(op, &inputs)?;
            ctx.emit_typed(ops::Cast { to }, &[Some(wide)], &[Some(to)])
        }
        _ => ctx.emit_with(op, &inputs.map(Some)),
    }
}

/// The elements divided by a norm along one axis; where that is 0, by 1.
pub(super) fn lp_normalization(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let axis = ctx.int("axis")?.unwrap_or(-1);
    let (keepdims, noop_with_empty_axes) = (true, false);
    let norm: Op = match ctx.int("p")?.unwrap_or(2) {
        1 => ops::ReduceL1 { keepdims, noop_with_empty_axes }.into(),
        2 => ops::ReduceL2 { keepdims, noop_with_empty_axes }.into(),
        p => return Err(ctx.error(format!("p is {p}, expected 1 or 2"))),
    };
    let (x, scalar) = computed(ctx)?;
    let axes = ctx.list("axes", &[axis])?;
    let (zero, one) = (ctx.constant("zero", scalar(0.0)), ctx.constant("one", scalar(1.0)));
    let norm = ctx.step(norm, &[x, axes])?;
    let is_zero = ctx.step(ops::Equal, &[norm, zero])?;
    let norm = ctx.step(ops::Where, &[is_zero, one, norm])?;
    rounded(ctx, ops::Div, [x, norm])
}

/// `d / (sqrt(mean(d * d)) + 1e-9)` with `d = x - mean(x)`: the deviations are squared, not the elements.
pub(super) fn mean_variance_normalization(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let axes = ctx.ints("axes")?.unwrap_or(&[0, 2, 3]);
    let (x, scalar) = computed(ctx)?;
    let axes = ctx.list("axes", axes)?;
    let epsilon = ctx.constant("epsilon", scalar(1e-9));
    let mean = ctx.step(ops::ReduceMean::default(), &[x, axes])?;
    let deviations = ctx.step(ops::Sub, &[x, mean])?;
    let squares = ctx.step(ops::Mul, &[deviations, deviations])?;
    let variance = ctx.step(ops::ReduceMean::default(), &[squares, axes])?;
    let deviation = ctx.step(ops::Sqrt, &[variance])?;
    let deviation = ctx.step(ops::Add, &[deviation, epsilon])?;
    rounded(ctx, ops::Div, [deviations, deviation])
}
