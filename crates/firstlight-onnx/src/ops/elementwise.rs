//! Ops that compute each element from the elements at the same place.

use super::unary::unary;
use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};
use firstlight_graph::{Op, ValueId, ops};
use firstlight_tensor::pb::dtype_of;

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
        ctx.unsupported(
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

pub(super) fn and(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    binary(ctx, ops::And)
}

/// The type was a name up to opset 5. Saturation and rounding mode concern 8-bit floats only.
pub(super) fn cast(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let number = if ctx.opset < 6 {
        let name = ctx.text("to")?;
        let name = ctx.required("to", name)?;
        let named = TYPE_NAMES.iter().position(|n| n.eq_ignore_ascii_case(name));
        named.map(|i| i as i64).ok_or_else(|| ctx.error(format!("attribute `to` names no element type: {name:?}")))?
    } else {
        let number = ctx.int("to")?;
        ctx.required("to", number)?
    };
    if ctx.opset >= 19 {
        ctx.flag("saturate", true)?;
    }
    if ctx.opset >= 24 {
        ctx.text("round_mode")?;
    }
    let dtype = i32::try_from(number).ok().and_then(dtype_of);
    let to = dtype.ok_or_else(|| ctx.error(format!("attribute `to` is {number}, which is no element type")))?;
    let op = Op::from(ops::Cast { to });
    if !op.info().types.iter().any(|var| var.allowed.contains(&to)) {
        return Err(ctx.unsupported(format!("casts to {to} are not supported")));
    }
    let inputs = std::mem::take(&mut ctx.inputs);
    ctx.emit_typed(op, &inputs, &[Some(to)])
}

/// Names of the `TensorProto.DataType` numbers that models of opset 1 to 5 may use.
const TYPE_NAMES: [&str; 16] = [
    "UNDEFINED",
    "FLOAT",
    "UINT8",
    "INT8",
    "UINT16",
    "INT16",
    "INT32",
    "INT64",
    "STRING",
    "BOOL",
    "FLOAT16",
    "DOUBLE",
    "UINT32",
    "UINT64",
    "COMPLEX64",
    "COMPLEX128",
];

pub(super) fn div(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    binary(ctx, ops::Div)
}

pub(super) fn equal(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    binary(ctx, ops::Equal)
}

pub(super) fn erf(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Erf)
}

pub(super) fn greater(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    binary(ctx, ops::Greater)
}

pub(super) fn greater_or_equal(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    ctx.emit(ops::GreaterOrEqual)
}

pub(super) fn identity(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Identity)
}

pub(super) fn less(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    binary(ctx, ops::Less)
}

pub(super) fn less_or_equal(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    ctx.emit(ops::LessOrEqual)
}

/// An op of any number of inputs that comes down to one of two: taken from left to right.
fn variadic(ctx: &mut NodeCtx<'_, '_>, op: impl Into<Op>) -> Result<Values, LoadError> {
    if ctx.opset < 6 {
        ctx.ignore("consumed_inputs");
    }
    let op = op.into();
    match ctx.inputs.len() {
        1 => ctx.emit(ops::Identity),
        n => {
            let mut so_far = ctx.needed(0)?;
            for i in 1..n.saturating_sub(1) {
                let next = ctx.needed(i)?;
                so_far = ctx.step(op.clone(), &[so_far, next])?;
            }
            let last = ctx.needed(n.saturating_sub(1))?;
            ctx.emit_with(op, &[Some(so_far), Some(last)])
        }
    }
}

pub(super) fn max(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    variadic(ctx, ops::Max)
}

pub(super) fn min(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    variadic(ctx, ops::Min)
}

pub(super) fn mod_(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let fmod = ctx.flag("fmod", false)?;
    ctx.emit(ops::Mod { fmod })
}

pub(super) fn mul(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    binary(ctx, ops::Mul)
}

pub(super) fn not(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Not)
}

pub(super) fn pow(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    binary(ctx, ops::Pow)
}

pub(super) fn sigmoid(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Sigmoid)
}

pub(super) fn sqrt(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    unary(ctx, ops::Sqrt)
}

pub(super) fn sub(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    binary(ctx, ops::Sub)
}

pub(super) fn where_(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    ctx.emit(ops::Where)
}
