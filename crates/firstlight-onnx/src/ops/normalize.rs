//! Normalisation by statistics of channels.

use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};
use firstlight_graph::ops;

/// Inference alone: up to opset 6 `is_test` says so, then the number of outputs, from 14 on `training_mode`.
pub(super) fn batch_normalization(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    // How training would update the statistics.
    ctx.ignore("momentum");
    if ctx.opset < 6 {
        ctx.ignore("consumed_inputs");
    }
    let trains = match ctx.opset {
        ..7 => !ctx.flag("is_test", false)?,
        7..14 => false,
        _ => ctx.flag("training_mode", false)?,
    };
    if trains {
        let told = if ctx.opset < 7 { "is_test 0" } else { "training_mode 1" };
        return Err(ctx.unsupported(format!("{told} trains, which is not supported; export the model for inference")));
    }
    if ctx.n_named_outputs() > 1 {
        let problem = format!(
            "it has {} outputs, the statistics of training among them, which is not supported; export the model for \
             inference",
            ctx.n_named_outputs()
        );
        return Err(ctx.unsupported(problem));
    }
    let op = ops::BatchNormalization {
        epsilon: ctx.float("epsilon")?.unwrap_or(1e-5),
        spatial: ctx.opset >= 9 || ctx.flag("spatial", true)?,
    };
    ctx.emit(op)
}

pub(super) fn instance_normalization(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    if ctx.opset < 6 {
        ctx.ignore("consumed_inputs");
    }
    let epsilon = ctx.float("epsilon")?.unwrap_or(1e-5);
    ctx.emit(ops::InstanceNormalization { epsilon })
}

/// Scale and bias are for groups up to opset 20 and for channels from 21 on; the op takes both.
pub(super) fn group_normalization(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let num_groups = ctx.int("num_groups")?;
    let num_groups = ctx.required("num_groups", num_groups)?;
    let epsilon = ctx.float("epsilon")?.unwrap_or(1e-5);
    let stash_type = if ctx.opset >= 21 { ctx.int("stash_type")? } else { None };
    match stash_type {
        None | Some(1) => ctx.emit(ops::GroupNormalization { epsilon, num_groups }),
        Some(other) => Err(ctx.unsupported(format!("stash_type {other} is not supported, 1 (f32) is"))),
    }
}

pub(super) fn lrn(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let size = ctx.int("size")?;
    let op = ops::LRN {
        alpha: ctx.float("alpha")?.unwrap_or(1e-4),
        beta: ctx.float("beta")?.unwrap_or(0.75),
        bias: ctx.float("bias")?.unwrap_or(1.0),
        size: ctx.required("size", size)?,
    };
    ctx.emit(op)
}
