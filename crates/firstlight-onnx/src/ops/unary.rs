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

pub(super) fn abs(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Abs)
}

pub(super) fn ceil(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Ceil)
}

pub(super) fn cos(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Cos)
}

pub(super) fn floor(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Floor)
}

pub(super) fn is_nan(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::IsNaN)
}

pub(super) fn log(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Log)
}

pub(super) fn mish(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Mish)
}

pub(super) fn neg(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Neg)
}

pub(super) fn round(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Round)
}

pub(super) fn sign(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Sign)
}

pub(super) fn sin(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Sin)
}

pub(super) fn softplus(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Softplus)
}

pub(super) fn softsign(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Softsign)
}

pub(super) fn celu(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let alpha = ctx.float("alpha")?.unwrap_or(ops::Celu::default().alpha);
    unary(ctx, ops::Celu { alpha })
}

pub(super) fn elu(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let alpha = ctx.float("alpha")?.unwrap_or(ops::Elu::default().alpha);
    unary(ctx, ops::Elu { alpha })
}

pub(super) fn leaky_relu(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let alpha = ctx.float("alpha")?.unwrap_or(ops::LeakyRelu::default().alpha);
    unary(ctx, ops::LeakyRelu { alpha })
}

pub(super) fn thresholded_relu(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let alpha = ctx.float("alpha")?.unwrap_or(ops::ThresholdedRelu::default().alpha);
    unary(ctx, ops::ThresholdedRelu { alpha })
}

/// The defaults had fewer digits up to opset 5.
pub(super) fn selu(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let default = match ctx.opset {
        ..6 => ops::Selu { alpha: 1.6732, gamma: 1.0507 },
        _ => ops::Selu::default(),
    };
    let alpha = ctx.float("alpha")?.unwrap_or(default.alpha);
    let gamma = ctx.float("gamma")?.unwrap_or(default.gamma);
    unary(ctx, ops::Selu { alpha, gamma })
}

pub(super) fn gelu(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let tanh = match ctx.text("approximate")? {
        None | Some("none") => false,
        Some("tanh") => true,
        Some(other) => return Err(ctx.error(format!("attribute `approximate` is {other:?}, expected none or tanh"))),
    };
    ctx.emit(ops::Gelu { tanh })
}

pub(super) fn is_inf(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let negative = ctx.flag("detect_negative", true)?;
    let positive = ctx.flag("detect_positive", true)?;
    ctx.emit(ops::IsInf { negative, positive })
}
