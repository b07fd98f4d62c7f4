//! Ops on bits of integers, on bools, and PRelu.

use super::elementwise::{map1, map2};
use super::number::Number;
use super::rows::{joined, row};
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::Bool;
use firstlight_tensor::{bf16, f16};
use std::marker::PhantomData;
use std::ops::{BitAnd, BitOr, BitXor, Not};

pub(super) const BINDINGS: &[KernelBinding] = &joined::<{ 2 + 8 * 5 + 8 }>(&[
    &[
        row(OpKind::Or, &[Bool], |ctx| map2(ctx, |a: u8, b: u8| u8::from((a != 0) | (b != 0)))),
        row(OpKind::Xor, &[Bool], |ctx| map2(ctx, |a: u8, b: u8| u8::from((a != 0) != (b != 0)))),
    ],
    &Rows::<i64>::BITS,
    &Rows::<i32>::BITS,
    &Rows::<i16>::BITS,
    &Rows::<i8>::BITS,
    &Rows::<u64>::BITS,
    &Rows::<u32>::BITS,
    &Rows::<u16>::BITS,
    &Rows::<u8>::BITS,
    &[
        Rows::<f32>::P_RELU,
        Rows::<f64>::P_RELU,
        Rows::<f16>::P_RELU,
        Rows::<bf16>::P_RELU,
        Rows::<i64>::P_RELU,
        Rows::<i32>::P_RELU,
        Rows::<u64>::P_RELU,
        Rows::<u32>::P_RELU,
    ],
]);

struct Rows<T>(PhantomData<T>);

impl<T: Bits> Rows<T> {
    const BITS: [KernelBinding; 5] = [
        row(OpKind::BitwiseAnd, &[T::TYPE], |ctx| map2(ctx, |a: T, b: T| a & b)),
        row(OpKind::BitwiseOr, &[T::TYPE], |ctx| map2(ctx, |a: T, b: T| a | b)),
        row(OpKind::BitwiseXor, &[T::TYPE], |ctx| map2(ctx, |a: T, b: T| a ^ b)),
        row(OpKind::BitwiseNot, &[T::TYPE], |ctx| map1(ctx, 0.2, |x: T| !x)),
        row(OpKind::BitShift, &[T::TYPE], shift::<T>),
    ];
}

impl<T: Number> Rows<T> {
    const P_RELU: KernelBinding = row(OpKind::PRelu, &[T::TYPE], |ctx| {
        map2(ctx, |x: T, slope: T| if x < T::zeroed() { x.mul(slope) } else { x })
    });
}

fn shift<T: Bits>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    match ctx.op() {
        Op::BitShift(op) if op.right => map2(ctx, T::right),
        Op::BitShift(_) => map2(ctx, T::left),
        _ => Err(super::other_op("BitShift")),
    }
}

/// An integer whose bits are moved; by a number of bits that it does not have, all of them go.
trait Bits: Number + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self> {
    fn left(self, by: Self) -> Self;
    fn right(self, by: Self) -> Self;
}

macro_rules! bits {
    ($($int:ident)*) => { $(
        impl Bits for $int {
            #[inline(always)]
            fn left(self, by: $int) -> $int {
                if (0..$int::BITS as $int).contains(&by) { self << by } else { 0 }
            }
            #[inline(always)]
            fn right(self, by: $int) -> $int {
                let last = $int::BITS as $int - 1;
                // Two shifts, the first by all bits but one, leave nothing but copies of the sign.
                if (0..=last).contains(&by) { self >> by } else { (self >> last) >> 1 }
            }
        }
    )* };
}

bits!(i64 i32 i16 i8 u64 u32 u16 u8);
