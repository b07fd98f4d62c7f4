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
