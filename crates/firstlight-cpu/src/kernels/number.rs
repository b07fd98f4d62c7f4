//! Element types as kernels compute with them.

use firstlight_backend::KernelCtx;
use firstlight_graph::OpError;
use firstlight_tensor::{DType, Element, bf16, f16};
use smallvec::SmallVec;

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

/// Parameters read from an input; on the stack up to 12 of them.
pub(super) type SmallInts = SmallVec<[i64; 12]>;

/// The i64 or i32 elements of an input, at any alignment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ints<'a> {
    bytes: &'a [u8],
    is_i64: bool,
}

impl<'a> Ints<'a> {
    /// The elements of input `i`.
    ///
    /// **Errors**: the input is omitted or has elements of another type.
    pub(super) fn of(ctx: &KernelCtx<'a>, i: usize) -> Result<Ints<'a>, OpError> {
        let dtype = ctx.spec(i)?.dtype;
        match dtype {
            DType::I64 | DType::I32 => Ok(Ints { bytes: ctx.bytes(i)?, is_i64: dtype == DType::I64 }),
            _ => Err(OpError::dtype(format!("input {i} has elements of {dtype}, expected i64 or i32"))),
        }
    }

    /// Number of elements.
    pub(super) fn len(self) -> usize {
        self.bytes.len() / if self.is_i64 { 8 } else { 4 }
    }

    /// Element `i`.
    #[inline]
    pub(super) fn get(self, i: usize) -> i64 {
        match self.is_i64 {
            true => read::<i64>(&self.bytes[i * 8..][..8]),
            false => read::<i32>(&self.bytes[i * 4..][..4]).into(),
        }
    }

    /// Checks that every element indexes an axis of a size, counted from the end where it is negative.
    ///
    /// **Errors**: one that does not.
    pub(super) fn check_indices(self, size: usize) -> Result<(), OpError> {
        let size_i64 = size as i64;
        let outside = |index: i64| index < -size_i64 || index >= size_i64;
        match (0..self.len()).map(|i| self.get(i)).find(|&index| outside(index)) {
            Some(index) => Err(OpError::value(format!("index {index} is outside -{size}..{size}"))),
            None => Ok(()),
        }
    }

    /// Element `i` as an index of an axis of that size, which [`Ints::check_indices`] accepted.
    #[inline]
    pub(super) fn index(self, i: usize, size: usize) -> usize {
        let index = self.get(i);
        (if index < 0 { index + size as i64 } else { index }) as usize
    }
}

/// The i64 or i32 elements of input `i`.
///
/// **Errors**: the input is omitted or has elements of another type.
pub(super) fn small_ints(ctx: &KernelCtx<'_>, i: usize) -> Result<SmallInts, OpError> {
    let ints = Ints::of(ctx, i)?;
    Ok((0..ints.len()).map(|i| ints.get(i)).collect())
}

/// [`small_ints`] of an input that may be omitted.
///
/// **Errors**: the input has elements of another type.
pub(super) fn optional_ints(ctx: &KernelCtx<'_>, i: usize) -> Result<Option<SmallInts>, OpError> {
    if ctx.has_input(i) { small_ints(ctx, i).map(Some) } else { Ok(None) }
}
