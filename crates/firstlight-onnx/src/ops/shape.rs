//! Ops about shapes, and ops whose result's shape is a matter of values.

use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};
use firstlight_graph::ops;
use firstlight_tensor::Tensor;

pub(super) fn constant_of_shape(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let value = ctx.tensor("value")?.unwrap_or_else(|| Tensor::scalar(0f32));
    if value.n_elems() != 1 {
        return Err(ctx.error(format!("attribute `value` should hold one element, it is {}", value.shape())));
    }
    let dtype = value.dtype();
    let inputs = std::mem::take(&mut ctx.inputs);
    ctx.emit_typed(ops::ConstantOfShape { value }, &inputs, &[Some(dtype)])
}

pub(super) fn non_zero(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    ctx.emit(ops::NonZero)
}

/// 16-bit floats are computed in f32, which is what stash type 1 asks for and what earlier opsets leave open.
pub(super) fn range(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    if ctx.opset >= 27
        && let Some(other) = ctx.int("stash_type")?.filter(|ty| *ty != 1)
    {
        return Err(ctx.unsupported(format!("stash_type {other} is not supported, 1 (f32) is")));
    }
    ctx.emit(ops::Range)
}

pub(super) fn shape(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let (start, end) = match ctx.opset >= 15 {
        true => (ctx.int("start")?.unwrap_or(0), ctx.int("end")?),
        false => (0, None),
    };
    ctx.emit(ops::Shape { start, end })
}

pub(super) fn size(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    ctx.emit(ops::Size)
}
