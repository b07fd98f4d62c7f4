//! Ops that choose, rearrange or repeat elements.

use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};
use firstlight_graph::ops::layout::depth_to_space::BlockOrder;
use firstlight_graph::ops::layout::scatter::Reduction;
use firstlight_graph::{ValueId, ops};
use firstlight_tensor::pb::dtype_of;
use firstlight_tensor::{DType, Tensor};

/// Opset 1 took a count and an axis, in the data's type, where later opsets take a list of repeats.
pub(super) fn tile(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    if ctx.opset >= 6 {
        return ctx.emit(ops::Tile);
    }
    let (data, tiles, axis) = (ctx.needed(0)?, ctx.needed(1)?, ctx.needed(2)?);
    let one = ctx.list("one", &[1i64])?;
    let whole = |ctx: &mut NodeCtx<'_, '_>, value: ValueId| {
        let value = ctx.step(ops::Cast { to: DType::I64 }, &[value])?;
        ctx.step(ops::Reshape { allow_zero: false }, &[value, one])
    };
    let (tiles, axis) = (whole(ctx, tiles)?, whole(ctx, axis)?);
    let shape = ctx.step(ops::Shape::default(), &[data])?;
    let rank = ctx.step(ops::Shape::default(), &[shape])?;
    let once = ctx.step(ops::Expand, &[one, rank])?;
    let repeats = ctx.step(ops::ScatterElements::default(), &[once, axis, tiles])?;
    ctx.emit_with(ops::Tile, &[Some(data), Some(repeats)])
}

pub(super) fn trilu(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let upper = ctx.flag("upper", true)?;
    ctx.emit(ops::Trilu { upper })
}

/// Edge of a block, and how its channels are ordered where the opset lets one choose.
fn blocks(ctx: &mut NodeCtx<'_, '_>, order_since: i64) -> Result<(usize, BlockOrder), LoadError> {
    let blocksize = ctx.int("blocksize")?;
    let blocksize = ctx.required("blocksize", blocksize)?;
    let edge = usize::try_from(blocksize).ok().filter(|&edge| edge > 0);
    let edge = edge.ok_or_else(|| ctx.error(format!("attribute `blocksize` should be positive, it is {blocksize}")))?;
    let mode = if ctx.opset >= order_since { ctx.text("mode")? } else { None };
    let order = match mode.unwrap_or("DCR") {
        "DCR" => BlockOrder::DepthFirst,
        "CRD" => BlockOrder::DepthLast,
        other => return Err(ctx.error(format!("attribute `mode` should be DCR or CRD, it is {other:?}"))),
    };
    Ok((edge, order))
}

pub(super) fn depth_to_space(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let (blocksize, order) = blocks(ctx, 11)?;
    ctx.emit(ops::DepthToSpace { blocksize, order })
}

pub(super) fn space_to_depth(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let (blocksize, order) = blocks(ctx, 28)?;
    ctx.emit(ops::SpaceToDepth { blocksize, order })
}

pub(super) fn gather_nd(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let batch_dims = if ctx.opset >= 12 { ctx.int("batch_dims")?.unwrap_or(0) } else { 0 };
    let batch_dims = usize::try_from(batch_dims)
        .map_err(|_| ctx.error(format!("attribute `batch_dims` should be 0 or more, it is {batch_dims}")))?;
    ctx.emit(ops::GatherND { batch_dims })
}

/// Updates replaced elements up to opset 15; greatest and least came with opset 18.
fn reduction(ctx: &mut NodeCtx<'_, '_>) -> Result<Reduction, LoadError> {
    let name = if ctx.opset >= 16 { ctx.text("reduction")? } else { None };
    match name.unwrap_or("none") {
        "none" => Ok(Reduction::None),
        "add" => Ok(Reduction::Add),
        "mul" => Ok(Reduction::Mul),
        "max" if ctx.opset >= 18 => Ok(Reduction::Max),
        "min" if ctx.opset >= 18 => Ok(Reduction::Min),
        other => Err(ctx.error(format!("reduction {other:?} is unknown at opset {}", ctx.opset))),
    }
}

pub(super) fn scatter_nd(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let reduction = reduction(ctx)?;
    ctx.emit(ops::ScatterND { reduction })
}

pub(super) fn scatter_elements(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let axis = ctx.int("axis")?.unwrap_or(0);
    let reduction = reduction(ctx)?;
    ctx.emit(ops::ScatterElements { axis, reduction })
}

/// The name of ScatterElements up to opset 10; later opsets keep it without reductions.
pub(super) fn scatter(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let axis = ctx.int("axis")?.unwrap_or(0);
    ctx.emit(ops::ScatterElements { axis, reduction: Reduction::None })
}

/// Indices and depth may have any number's type; they are cast to whole numbers.
pub(super) fn one_hot(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let axis = ctx.int("axis")?.unwrap_or(-1);
    let whole = |ctx: &mut NodeCtx<'_, '_>, i: usize| {
        let value = ctx.needed(i)?;
        match ctx.dtype(value) {
            Some(DType::I64) => Ok(value),
            _ => ctx.step(ops::Cast { to: DType::I64 }, &[value]),
        }
    };
    let (indices, depth) = (whole(ctx, 0)?, whole(ctx, 1)?);
    ctx.emit_with(ops::OneHot { axis }, &[Some(indices), Some(depth), ctx.input(2)])
}

/// A matrix of ones of which two triangles leave one diagonal.
pub(super) fn eye_like(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let like = ctx.needed(0)?;
    let dtype = match ctx.int("dtype")? {
        Some(number) => i32::try_from(number).ok().and_then(dtype_of),
        None => ctx.dtype(like),
    };
    let to = dtype.ok_or_else(|| ctx.error("neither attribute `dtype` nor its input tell an element type"))?;
    let k = ctx.int("k")?.unwrap_or(0);
    let k = ctx.constant("k", Tensor::scalar(k));
    let one = ctx.constant("one", Tensor::scalar(1u8));
    let one = ctx.step(ops::Cast { to }, &[one])?;
    let shape = ctx.step(ops::Shape::default(), &[like])?;
    let ones = ctx.step(ops::Expand, &[one, shape])?;
    let upper = ctx.step(ops::Trilu { upper: true }, &[ones, k])?;
    ctx.emit_with(ops::Trilu { upper: false }, &[Some(upper), Some(k)])
}

pub(super) fn compress(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let axis = ctx.int("axis")?;
    ctx.emit(ops::Compress { axis })
}

pub(super) fn reverse_sequence(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let axes = (ctx.int("batch_axis")?.unwrap_or(1), ctx.int("time_axis")?.unwrap_or(0));
    let batch_first = match axes {
        (0, 1) => true,
        (1, 0) => false,
        (batch, time) => {
            let problem =
                format!("`batch_axis` and `time_axis` should be 0 and 1 in some order, they are {batch} and {time}");
            return Err(ctx.error(problem));
        }
    };
    ctx.emit(ops::ReverseSequence { batch_first })
}

pub(super) fn cum_sum(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let (exclusive, reverse) = (ctx.flag("exclusive", false)?, ctx.flag("reverse", false)?);
    ctx.emit(ops::CumSum { exclusive, reverse })
}
