//! References of ops on integers.

use super::{map1, map2, unlisted};
use crate::OpError;
use crate::op::RefCtx;
use firstlight_tensor::DType;

/// Fills the output with `f` of the broadcast integers, cut to their type.
pub(crate) fn map_ints(ctx: &mut RefCtx<'_>, op: &str, f: impl Fn(i128, i128) -> i128) -> Result<(), OpError> {
    match ctx.input(0)?.dtype() {
        DType::I64 => map2(ctx, |a: i64, b: i64| f(a.into(), b.into()) as i64),
        DType::I32 => map2(ctx, |a: i32, b: i32| f(a.into(), b.into()) as i32),
        DType::I16 => map2(ctx, |a: i16, b: i16| f(a.into(), b.into()) as i16),
        DType::I8 => map2(ctx, |a: i8, b: i8| f(a.into(), b.into()) as i8),
        DType::U64 => map2(ctx, |a: u64, b: u64| f(a.into(), b.into()) as u64),
        DType::U32 => map2(ctx, |a: u32, b: u32| f(a.into(), b.into()) as u32),
        DType::U16 => map2(ctx, |a: u16, b: u16| f(a.into(), b.into()) as u16),
        DType::U8 => map2(ctx, |a: u8, b: u8| f(a.into(), b.into()) as u8),
        other => Err(unlisted(op, other)),
    }
}

/// Fills the output with the complement of the integers.
pub(crate) fn complement(ctx: &mut RefCtx<'_>, op: &str) -> Result<(), OpError> {
    match ctx.input(0)?.dtype() {
        DType::I64 => map1(ctx, |x: i64| !x),
        DType::I32 => map1(ctx, |x: i32| !x),
        DType::I16 => map1(ctx, |x: i16| !x),
        DType::I8 => map1(ctx, |x: i8| !x),
        DType::U64 => map1(ctx, |x: u64| !x),
        DType::U32 => map1(ctx, |x: u32| !x),
        DType::U16 => map1(ctx, |x: u16| !x),
        DType::U8 => map1(ctx, |x: u8| !x),
        other => Err(unlisted(op, other)),
    }
}
