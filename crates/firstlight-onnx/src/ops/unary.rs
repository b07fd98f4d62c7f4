//! Functions of one tensor, element by element.

use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};
use firstlight_graph::{Op, ValueId, ops};
use firstlight_tensor::{DType, Tensor, f16};

/// A unary op without attributes, but for a hint that the first opsets had.
pub(super) fn unary(ctx: &mut NodeCtx<'_, '_>, op: impl Into<Op>) -> Result<Values, LoadError> {
    if ctx.opset < 6 {
        ctx.ignore("consumed_inputs");
    }
    ctx.emit(op)
}

pub(super) fn exp(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Exp)
}

pub(super) fn reciprocal(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Reciprocal)
}

pub(super) fn tanh(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Tanh)
}

pub(super) fn hard_sigmoid(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let default = ops::HardSigmoid::default();
    let alpha = ctx.float("alpha")?.unwrap_or(default.alpha);
    let beta = ctx.float("beta")?.unwrap_or(default.beta);
    unary(ctx, ops::HardSigmoid { alpha, beta })
}

pub(super) fn hard_swish(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::HardSwish)
}

/// The bounds were attributes up to opset 10.
pub(super) fn clip(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    if ctx.opset >= 11 {
        return ctx.emit(ops::Clip);
    }
    if ctx.opset < 6 {
        ctx.ignore("consumed_inputs");
    }
    let x = ctx.needed(0)?;
    let (min, max) = (bound(ctx, x, "min")?, bound(ctx, x, "max")?);
    ctx.emit_with(ops::Clip, &[Some(x), min, max])
}

/// An attribute of Clip as a constant of the element type of `x`; one that is not given does not bound.
fn bound(ctx: &mut NodeCtx<'_, '_>, x: ValueId, name: &str) -> Result<Option<ValueId>, LoadError> {
    let Some(value) = ctx.float(name)? else { return Ok(None) };
    let tensor = match ctx.dtype(x) {
        Some(DType::F64) => Tensor::scalar(f64::from(value)),
        Some(DType::F16) => Tensor::scalar(f16::from_f32(value)),
        Some(DType::F32) | None => Tensor::scalar(value),
        Some(other) => return Err(ctx.error(format!("up to opset 10 it clips floating point, not {other}"))),
    };
    Ok(Some(ctx.constant(name, tensor)))
}
