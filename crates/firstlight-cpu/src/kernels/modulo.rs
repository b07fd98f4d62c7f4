//! Mod.

use super::elementwise::map2;
use super::number::Float;
use super::rows::{joined, row};
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::{Element, bf16, f16};
use std::marker::PhantomData;

pub(super) const BINDINGS: &[KernelBinding] = &joined::<12>(&[&[
    Row::<f32>::MOD,
    Row::<f64>::MOD,
    Row::<f16>::MOD,
    Row::<bf16>::MOD,
    Row::<i64>::MOD,
    Row::<i32>::MOD,
    Row::<i16>::MOD,
    Row::<i8>::MOD,
    Row::<u64>::MOD,
    Row::<u32>::MOD,
    Row::<u16>::MOD,
    Row::<u8>::MOD,
]]);

struct Row<T>(PhantomData<T>);

impl<T: Remainder> Row<T> {
    const MOD: KernelBinding = row(OpKind::Mod, const { &[T::DTYPE] }, modulo::<T>);
}

fn modulo<T: Remainder>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    match ctx.op() {
        Op::Mod(op) if op.fmod => map2(ctx, T::toward_zero),
        Op::Mod(_) => map2(ctx, T::down),
        _ => Err(super::other_op("Mod")),
    }
}

/// An element with the remainders of its type: integers by 0 give 0, 16-bit floats compute in f32 and round once.
trait Remainder: Element {
    /// The remainder with the dividend's sign.
    fn toward_zero(self, divisor: Self) -> Self;
    /// The remainder with the divisor's sign.
    fn down(self, divisor: Self) -> Self;
}

macro_rules! integers {
    ($($int:ident)*) => { $(
        impl Remainder for $int {
            #[inline(always)]
            fn toward_zero(self, divisor: $int) -> $int {
                if divisor == 0 { 0 } else { self.wrapping_rem(divisor) }
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn down(self, divisor: $int) -> $int {
                let rest = self.toward_zero(divisor);
                if rest != 0 && (rest < 0) != (divisor < 0) { rest.wrapping_add(divisor) } else { rest }
            }
        }
    )* };
}

macro_rules! floats {
    ($($float:ident)*) => { $(
        impl Remainder for $float {
            #[inline(always)]
            fn toward_zero(self, divisor: $float) -> $float {
                self % divisor
            }
            #[inline(always)]
            fn down(self, divisor: $float) -> $float {
                let rest = self % divisor;
                if rest == 0.0 {
                    $float::copysign(0.0, divisor)
                } else if (rest < 0.0) != (divisor < 0.0) {
                    rest + divisor
                } else {
                    rest
                }
            }
        }
    )* };
}

macro_rules! narrow_floats {
    ($($float:ident)*) => { $(
        impl Remainder for $float {
            #[inline(always)]
            fn toward_zero(self, divisor: $float) -> $float {
                Float::from_f32(Float::to_f32(self).toward_zero(Float::to_f32(divisor)))
            }
            #[inline(always)]
            fn down(self, divisor: $float) -> $float {
                Float::from_f32(Float::to_f32(self).down(Float::to_f32(divisor)))
            }
        }
    )* };
}

integers!(i64 i32 i16 i8 u64 u32 u16 u8);
floats!(f32 f64);
narrow_floats!(f16 bf16);
