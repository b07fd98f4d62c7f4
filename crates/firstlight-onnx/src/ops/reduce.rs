//! Reductions and normalisations.

use super::layout::with_axes;
use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};
use firstlight_graph::ops;

/// Moments are kept in f32: the only stash type that is not a rounding of its own.
pub(super) fn layer_normalization(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let axis = ctx.int("axis")?.unwrap_or(-1);
    let epsilon = ctx.float("epsilon")?.unwrap_or(1e-5);
    match ctx.int("stash_type")? {
        None | Some(1) => ctx.emit(ops::LayerNormalization { axis, epsilon }),
        Some(other) => Err(ctx.unsupported(format!("stash_type {other} is not supported, 1 (f32) is"))),
    }
}

/// The axes were an attribute up to opset 17.
pub(super) fn reduce_mean(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let keepdims = ctx.flag("keepdims", true)?;
    let noop_with_empty_axes = ctx.opset >= 18 && ctx.flag("noop_with_empty_axes", false)?;
    with_axes(ctx, ops::ReduceMean { keepdims, noop_with_empty_axes }, 18)
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
