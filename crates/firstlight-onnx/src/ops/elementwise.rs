//! Ops that compute each element from the elements at the same place.

use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};
use firstlight_graph::{Op, ValueId, ops};

/// A unary op without attributes, but for a hint that the first opsets had.
fn unary(ctx: &mut NodeCtx<'_, '_>, op: impl Into<Op>) -> Result<Values, LoadError> {
    if ctx.opset < 6 {
        ctx.ignore("consumed_inputs");
    }
    ctx.emit(op)
}

/// A binary op. Up to opset 6 the second operand broadcasts only when told, and may be lined up at an axis.
fn binary(ctx: &mut NodeCtx<'_, '_>, op: impl Into<Op>) -> Result<Values, LoadError> {
    if ctx.opset >= 7 {
        return ctx.emit(op);
    }
    if ctx.opset < 6 {
        ctx.ignore("consumed_inputs");
    }
    let broadcast = ctx.flag("broadcast", false)?;
    let axis = ctx.int("axis")?;
    match axis.filter(|_| broadcast) {
        None => ctx.emit(op),
        Some(axis) => {
            let (a, b) = (ctx.needed(0)?, ctx.needed(1)?);
            let b = line_up(ctx, a, b, axis)?;
            ctx.emit_with(op, &[Some(a), Some(b)])
        }
    }
}

/// Gives the second operand trailing dimensions of 1, so that its first dimension lies at `axis` of the first operand.
fn line_up(ctx: &mut NodeCtx<'_, '_>, a: ValueId, b: ValueId, axis: i64) -> Result<ValueId, LoadError> {
    let ranks = ctx.rank(a).zip(ctx.rank(b));
    let (rank_a, rank_b) = ranks.ok_or_else(|| {
        ctx.error(
            "it broadcasts at an axis, and the ranks of its operands are not declared; convert the model to opset 7",
        )
    })?;
    let axis = if axis < 0 { axis.saturating_add_unsigned(rank_a as u64) } else { axis };
    let trailing = usize::try_from(axis).ok().and_then(|axis| rank_a.checked_sub(axis.checked_add(rank_b)?));
    let trailing =
        trailing.ok_or_else(|| ctx.error(format!("axis {axis} does not line up ranks {rank_a} and {rank_b}")))?;
    if trailing == 0 {
        return Ok(b);
    }
    let axes: Vec<i64> = (rank_b..rank_b + trailing).map(|axis| axis as i64).collect();
    let axes = ctx.list("axes", &axes)?;
    ctx.step(ops::Unsqueeze, &[b, axes])
}

pub(super) fn add(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    binary(ctx, ops::Add)
}

pub(super) fn relu(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Relu)
}
