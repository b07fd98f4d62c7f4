//! Ops that move elements or change shapes.

use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};
use firstlight_graph::ops::layout::pad::PadMode;
use firstlight_graph::{Op, ops};
use firstlight_tensor::{DType, Tensor, f16};

pub(super) fn concat(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    // Opset 1 joined along axis 1 when not told.
    let axis = match ctx.int("axis")? {
        None if ctx.opset < 4 => 1,
        given => ctx.required("axis", given)?,
    };
    ctx.emit(ops::Concat { axis })
}

pub(super) fn expand(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    ctx.emit(ops::Expand)
}

pub(super) fn flatten(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let axis = ctx.int("axis")?.unwrap_or(1);
    ctx.emit(ops::Flatten { axis })
}

pub(super) fn gather(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let axis = ctx.int("axis")?.unwrap_or(0);
    ctx.emit(ops::Gather { axis })
}

pub(super) fn gather_elements(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let axis = ctx.int("axis")?.unwrap_or(0);
    ctx.emit(ops::GatherElements { axis })
}

/// Pads and value were attributes up to opset 10, the pads under another name in opset 1.
pub(super) fn pad(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let mode = match ctx.text("mode")?.unwrap_or("constant") {
        "constant" => PadMode::Constant,
        "reflect" => PadMode::Reflect,
        "edge" => PadMode::Edge,
        "wrap" if ctx.opset >= 19 => PadMode::Wrap,
        other => return Err(ctx.error(format!("mode {other:?} is unknown at opset {}", ctx.opset))),
    };
    if ctx.opset >= 11 {
        return ctx.emit(ops::Pad { mode });
    }
    let data = ctx.needed(0)?;
    let name = if ctx.opset < 2 { "paddings" } else { "pads" };
    let pads = ctx.ints(name)?;
    let pads = ctx.list("pads", ctx.required(name, pads)?)?;
    let value = match ctx.float("value")? {
        None | Some(0.0) => None,
        Some(value) => {
            let tensor = match ctx.dtype(data) {
                Some(DType::F64) => Tensor::scalar(f64::from(value)),
                Some(DType::F16) => Tensor::scalar(f16::from_f32(value)),
                Some(DType::F32) | None => Tensor::scalar(value),
                Some(other) => return Err(ctx.error(format!("up to opset 10 it pads floating point, not {other}"))),
            };
            Some(ctx.constant("value", tensor))
        }
    };
    ctx.emit_with(ops::Pad { mode }, &[Some(data), Some(pads), value])
}

/// The shape was an attribute up to opset 4.
pub(super) fn reshape(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    if ctx.opset < 5 {
        ctx.ignore("consumed_inputs");
        let shape = ctx.ints("shape")?;
        let shape = ctx.list("shape", ctx.required("shape", shape)?)?;
        return ctx.emit_with(ops::Reshape { allow_zero: false }, &[ctx.input(0), Some(shape)]);
    }
    let allow_zero = ctx.opset >= 14 && ctx.flag("allowzero", false)?;
    ctx.emit(ops::Reshape { allow_zero })
}

/// Bounds and axes were attributes up to opset 9.
pub(super) fn slice(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    if ctx.opset >= 10 {
        return ctx.emit(ops::Slice);
    }
    let (starts, ends, axes) = (ctx.ints("starts")?, ctx.ints("ends")?, ctx.ints("axes")?);
    let starts = ctx.list("starts", ctx.required("starts", starts)?)?;
    let ends = ctx.list("ends", ctx.required("ends", ends)?)?;
    let axes = axes.map(|axes| ctx.list("axes", axes)).transpose()?;
    ctx.emit_with(ops::Slice, &[ctx.input(0), Some(starts), Some(ends), axes])
}

/// Sizes were an attribute up to opset 12; opset 1 also took them as an input of the data's type.
pub(super) fn split(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let axis = ctx.int("axis")?.unwrap_or(0);
    let n = ctx.n_outputs();
    let sizes = match ctx.opset {
        13.. => ctx.input(1),
        _ => match (ctx.ints("split")?, ctx.input(1)) {
            (Some(sizes), _) => Some(ctx.list("split", sizes)?),
            (None, Some(sizes)) if ctx.opset < 2 => Some(ctx.step(ops::Cast { to: DType::I64 }, &[sizes])?),
            (None, Some(_)) => return Err(ctx.error("it has one input at this opset, two are given")),
            (None, None) => None,
        },
    };
    if ctx.opset >= 18
        && let Some(told) = ctx.int("num_outputs")?
    {
        if sizes.is_some() {
            return Err(ctx.error("both input `split` and attribute `num_outputs` are given"));
        }
        if usize::try_from(told) != Ok(n) {
            return Err(ctx.error(format!("attribute `num_outputs` is {told}, the node has {n} outputs")));
        }
    }
    // Outputs that nothing reads count too: they are parts of the axis.
    let inputs = [ctx.input(0), sizes];
    let n_inputs = if sizes.is_some() { 2 } else { 1 };
    ctx.emit_all(ops::Split { axis }, &inputs[..n_inputs], &[])
}

pub(super) fn squeeze(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    with_axes(ctx, ops::Squeeze, 13)
}

pub(super) fn transpose(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let perm = ctx.ints("perm")?.map(<[i64]>::to_vec);
    ctx.emit(ops::Transpose { perm })
}

pub(super) fn unsqueeze(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    if ctx.opset < 13 && !ctx.has("axes") {
        return Err(ctx.error("attribute `axes` is missing"));
    }
    with_axes(ctx, ops::Unsqueeze, 13)
}

/// Appends an op whose second input, the axes, was an attribute before opset `since`.
pub(super) fn with_axes(ctx: &mut NodeCtx<'_, '_>, op: impl Into<Op>, since: i64) -> Result<Values, LoadError> {
    if ctx.opset >= since {
        return ctx.emit(op);
    }
    let axes = ctx.ints("axes")?;
    let axes = axes.map(|axes| ctx.list("axes", axes)).transpose()?;
    ctx.emit_with(op, &[ctx.input(0), axes])
}
