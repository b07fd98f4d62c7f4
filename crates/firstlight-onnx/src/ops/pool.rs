//! Pooling.

use super::nn::{auto_pad, list};
use super::reduce::exponent;
use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};
use firstlight_graph::ops;
use firstlight_graph::ops::nn::max_pool::StorageOrder;

/// Padding could count from opset 7 on, partial windows from 10 on; dilations came with 19.
pub(super) fn average_pool(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let kernel_shape = ctx.ints("kernel_shape")?;
    let op = ops::AveragePool {
        auto_pad: auto_pad(ctx)?,
        ceil_mode: ctx.opset >= 10 && ctx.flag("ceil_mode", false)?,
        count_include_pad: ctx.opset >= 7 && ctx.flag("count_include_pad", false)?,
        dilations: if ctx.opset >= 19 { list(ctx, "dilations")? } else { Vec::new() },
        kernel_shape: ctx.required("kernel_shape", kernel_shape)?.to_vec(),
        pads: list(ctx, "pads")?,
        strides: list(ctx, "strides")?,
    };
    ctx.emit(op)
}

pub(super) fn max_pool(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let kernel_shape = ctx.ints("kernel_shape")?;
    let op = ops::MaxPool {
        auto_pad: auto_pad(ctx)?,
        ceil_mode: ctx.opset >= 10 && ctx.flag("ceil_mode", false)?,
        dilations: if ctx.opset >= 10 { list(ctx, "dilations")? } else { Vec::new() },
        kernel_shape: ctx.required("kernel_shape", kernel_shape)?.to_vec(),
        pads: list(ctx, "pads")?,
        storage_order: match ctx.opset >= 8 && ctx.flag("storage_order", false)? {
            false => StorageOrder::RowMajor,
            true => StorageOrder::ColumnMajor,
        },
        strides: list(ctx, "strides")?,
    };
    ctx.emit(op)
}

/// Partial windows and dilations came with opset 18.
pub(super) fn lp_pool(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let kernel_shape = ctx.ints("kernel_shape")?;
    let op = ops::LpPool {
        auto_pad: auto_pad(ctx)?,
        ceil_mode: ctx.opset >= 18 && ctx.flag("ceil_mode", false)?,
        dilations: if ctx.opset >= 18 { list(ctx, "dilations")? } else { Vec::new() },
        kernel_shape: ctx.required("kernel_shape", kernel_shape)?.to_vec(),
        p: exponent(ctx)?,
        pads: list(ctx, "pads")?,
        strides: list(ctx, "strides")?,
    };
    ctx.emit(op)
}

pub(super) fn max_unpool(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let kernel_shape = ctx.ints("kernel_shape")?;
    let op = ops::MaxUnpool {
        kernel_shape: ctx.required("kernel_shape", kernel_shape)?.to_vec(),
        pads: list(ctx, "pads")?,
        strides: list(ctx, "strides")?,
    };
    ctx.emit(op)
}
