//! References of ops that order numbers.

use super::{compare, map2, unlisted};
use crate::OpError;
use crate::op::RefCtx;
use firstlight_tensor::{DType, Element, bf16, f16};
use std::cmp::Ordering;

/// Fills the output with the second operand where the first compares to it as `when` or the second is NaN, otherwise
/// with the first.
pub(crate) fn prefer(ctx: &mut RefCtx<'_>, op: &str, when: Ordering) -> Result<(), OpError> {
    fn of<T: Element + PartialOrd>(ctx: &mut RefCtx<'_>, when: Ordering) -> Result<(), OpError> {
        map2(ctx, |a: T, b: T| match a.partial_cmp(&b) {
            Some(order) if order == when => b,
            None if b.partial_cmp(&b).is_none() => b,
            _ => a,
        })
    }
    match ctx.input(0)?.dtype() {
        DType::F32 => of::<f32>(ctx, when),
        DType::F64 => of::<f64>(ctx, when),
        DType::F16 => of::<f16>(ctx, when),
        DType::BF16 => of::<bf16>(ctx, when),
        DType::I64 => of::<i64>(ctx, when),
        DType::I32 => of::<i32>(ctx, when),
        DType::I16 => of::<i16>(ctx, when),
        DType::I8 => of::<i8>(ctx, when),
        DType::U64 => of::<u64>(ctx, when),
        DType::U32 => of::<u32>(ctx, when),
        DType::U16 => of::<u16>(ctx, when),
        DType::U8 => of::<u8>(ctx, when),
        other => Err(unlisted(op, other)),
    }
}

/// Fills the bool output with `holds` of how the broadcast operands compare; `None` where either is NaN.
pub(crate) fn compare_numbers(
    ctx: &mut RefCtx<'_>,
    op: &str,
    holds: fn(Option<Ordering>) -> bool,
) -> Result<(), OpError> {
    fn of<T: Element + PartialOrd>(ctx: &mut RefCtx<'_>, holds: fn(Option<Ordering>) -> bool) -> Result<(), OpError> {
        compare(ctx, |a: T, b: T| holds(a.partial_cmp(&b)))
    }
    match ctx.input(0)?.dtype() {
        DType::F32 => of::<f32>(ctx, holds),
        DType::F64 => of::<f64>(ctx, holds),
        DType::F16 => of::<f16>(ctx, holds),
        DType::BF16 => of::<bf16>(ctx, holds),
        DType::I64 => of::<i64>(ctx, holds),
        DType::I32 => of::<i32>(ctx, holds),
        DType::I16 => of::<i16>(ctx, holds),
        DType::I8 => of::<i8>(ctx, holds),
        DType::U64 => of::<u64>(ctx, holds),
        DType::U32 => of::<u32>(ctx, holds),
        DType::U16 => of::<u16>(ctx, holds),
        DType::U8 => of::<u8>(ctx, holds),
        other => Err(unlisted(op, other)),
    }
}
