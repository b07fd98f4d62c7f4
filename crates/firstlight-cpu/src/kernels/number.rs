//! Element types as kernels compute with them.

use firstlight_tensor::{DType, Element, bf16, f16};

/// An element with the arithmetic of its type: integers wrap, 16-bit floats compute in f32 and round once.
pub(super) trait Number: Element {
    /// The matching element type, for rows.
    const TYPE: DType = Self::DTYPE;

    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// Integers round toward zero; `x / 0` of integers is 0.
    fn div(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($int:ident)*) => { $(
        impl Number for $int {
            #[inline(always)]
            fn add(self, other: $int) -> $int {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: $int) -> $int {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: $int) -> $int {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn div(self, other: $int) -> $int {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
        }
    )* };
}

macro_rules! floats {
    ($($float:ident: $to:expr, $from:expr;)*) => { $(
        impl Number for $float {
            #[inline(always)]
            fn add(self, other: $float) -> $float {
                $from($to(self) + $to(other))
            }
            #[inline(always)]
            fn sub(self, other: $float) -> $float {
                $from($to(self) - $to(other))
            }
            #[inline(always)]
            fn mul(self, other: $float) -> $float {
                $from($to(self) * $to(other))
            }
            #[inline(always)]
            fn div(self, other: $float) -> $float {
                $from($to(self) / $to(other))
            }
        }
    )* };
}

integers!(i64 i32 i16 i8 u64 u32 u16 u8);
floats! {
    f32: f32::from, f32::from;
    f64: f64::from, f64::from;
    f16: f16::to_f32, f16::from_f32;
    bf16: bf16::to_f32, bf16::from_f32;
}

/// One element of a type from its bytes, at any alignment.
#[inline(always)]
pub(super) fn read<T: bytemuck::Pod>(bytes: &[u8]) -> T {
    bytemuck::pod_read_unaligned(bytes)
}

/// A 16-bit float that functions are computed for in f32.
pub(super) trait Float: Number {
    fn to_f32(self) -> f32;
    fn from_f32(x: f32) -> Self;
}

impl Float for f16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self.to_f32()
    }
    #[inline(always)]
    fn from_f32(x: f32) -> f16 {
        f16::from_f32(x)
    }
}

impl Float for bf16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self.to_f32()
    }
    #[inline(always)]
    fn from_f32(x: f32) -> bf16 {
        bf16::from_f32(x)
    }
}
