//! Reductions and normalisations.

use super::layout::with_axes;
use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};
use firstlight_graph::{Op, ops};

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
pub(super) fn softmax(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    if ctx.opset >= 13 {
        let axis = ctx.int("axis")?.unwrap_or(-1);
        return ctx.emit(ops::Softmax { axis });
    }
    let axis = ctx.int("axis")?.unwrap_or(1);
    let x = ctx.needed(0)?;
    if axis == -1 || ctx.rank(x).is_some_and(|rank| axis == rank as i64 - 1) {
        return ctx.emit(ops::Softmax { axis: -1 });
    }
    let shape = ctx.step(ops::Shape::default(), &[x])?;
    let matrix = ctx.step(ops::Flatten { axis }, &[x])?;
    let rows = ctx.step(ops::Softmax { axis: -1 }, &[matrix])?;
    ctx.emit_with(ops::Reshape { allow_zero: true }, &[Some(rows), Some(shape)])
}
