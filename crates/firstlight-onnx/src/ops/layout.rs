//! Ops that move elements or change shapes.

use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};
use firstlight_graph::ops;

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
