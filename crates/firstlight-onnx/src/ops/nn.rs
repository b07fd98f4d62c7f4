//! Matrix products, convolution and recurrent ops.

use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};
use firstlight_graph::ops;
use firstlight_graph::ops::nn::activation::Activation;
use firstlight_graph::ops::nn::lstm::Direction;
use firstlight_graph::ops::nn::window::AutoPad;

pub(super) fn auto_pad(ctx: &mut NodeCtx<'_, '_>) -> Result<AutoPad, LoadError> {
    match ctx.text("auto_pad")? {
        None | Some("NOTSET" | "") => Ok(AutoPad::NotSet),
        Some("SAME_UPPER") => Ok(AutoPad::SameUpper),
        Some("SAME_LOWER") => Ok(AutoPad::SameLower),
        Some("VALID") => Ok(AutoPad::Valid),
        Some(other) => Err(ctx.error(format!("auto_pad {other:?} is unknown"))),
    }
}

/// A list of integers, empty where the node gives none.
pub(super) fn list(ctx: &mut NodeCtx<'_, '_>, name: &str) -> Result<Vec<i64>, LoadError> {
    Ok(ctx.ints(name)?.unwrap_or(&[]).to_vec())
}

pub(super) fn conv(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let op = ops::Conv {
        auto_pad: auto_pad(ctx)?,
        dilations: list(ctx, "dilations")?,
        group: ctx.int("group")?.unwrap_or(1),
        kernel_shape: list(ctx, "kernel_shape")?,
        pads: list(ctx, "pads")?,
        strides: list(ctx, "strides")?,
    };
    ctx.emit(op)
}

/// Up to opset 6 the addend broadcast only when told; a full one is the same either way.
pub(super) fn gemm(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    if ctx.opset < 7 {
        ctx.flag("broadcast", false)?;
    }
    let op = ops::Gemm {
        alpha: ctx.float("alpha")?.unwrap_or(1.0),
        beta: ctx.float("beta")?.unwrap_or(1.0),
        trans_a: ctx.int("transA")?.unwrap_or(0) != 0,
        trans_b: ctx.int("transB")?.unwrap_or(0) != 0,
    };
    ctx.emit(op)
}

pub(super) fn global_average_pool(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    ctx.emit(ops::GlobalAveragePool)
}

pub(super) fn lstm(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    if ctx.opset < 7 {
        // Whether Y is asked for, which the node's outputs tell.
        ctx.ignore("output_sequence");
    }
    let direction = match ctx.text("direction")? {
        None | Some("forward") => Direction::Forward,
        Some("reverse") => Direction::Reverse,
        Some("bidirectional") => Direction::Bidirectional,
        Some(other) => return Err(ctx.error(format!("direction {other:?} is unknown"))),
    };
    let (alphas, betas) = (ctx.floats("activation_alpha")?, ctx.floats("activation_beta")?);
    let names = ctx.texts("activations")?.unwrap_or_default();
    let activations = Activation::list(&names, alphas.unwrap_or(&[]), betas.unwrap_or(&[]));
    let op = ops::LSTM {
        activations: activations.map_err(|e| ctx.error(e.to_string()))?,
        batch_first: ctx.opset >= 14 && ctx.flag("layout", false)?,
        clip: ctx.float("clip")?,
        direction,
        hidden_size: ctx.int("hidden_size")?,
        input_forget: ctx.flag("input_forget", false)?,
    };
    ctx.emit(op)
}

pub(super) fn matmul(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    ctx.emit(ops::MatMul::default())
}
