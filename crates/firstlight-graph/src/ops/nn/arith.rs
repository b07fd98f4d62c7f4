//! Arithmetic of the references: which type an element type computes in, and sums in the orders that kernels share.

use crate::OpError;
use firstlight_tensor::{Element, TensorView, bf16, f16};

/// An element type with the type its arithmetic is done in: 16-bit floats compute in f32 and round once at the end.
pub(crate) trait Stored: Element {
    /// The type of the arithmetic.
    type Math: Math;
    /// The exact value.
    fn widen(self) -> Self::Math;
    /// The nearest value.
    fn narrow(math: Self::Math) -> Self;
}

/// Numbers that matrix products are made of; integers wrap.
pub(crate) trait Math: Copy + Send + Sync {
    const ZERO: Self;
    const IS_INT: bool;
    /// `self * factor + sum` in one rounding.
    fn fused(self, factor: Self, sum: Self) -> Self;
    /// Sum, rounded.
    fn plus(self, other: Self) -> Self;
    /// Product, rounded.
    fn times(self, other: Self) -> Self;
    /// Absolute value; that of the least integer wraps.
    fn magnitude(self) -> Self;
    /// The nearest f64.
    fn to_real(self) -> f64;
    /// The nearest float; the integer toward zero, the nearest there is, 0 for NaN.
    fn cast_f64(value: f64) -> Self;
    /// An attribute's value in this type; `None` where it has none.
    fn from_attribute(value: f32) -> Option<Self>;
}

/// Floating point numbers.
pub(crate) trait Real: Math + PartialOrd {
    fn to_f64(self) -> f64;
    fn from_f64(value: f64) -> Self;
    /// Quotient, rounded.
    fn over(self, other: Self) -> Self;
}

macro_rules! real {
    ($math:ty: $($stored:ty, $widen:expr, $narrow:expr;)+) => {
        impl Math for $math {
            const ZERO: $math = 0.0;
            const IS_INT: bool = false;
            fn magnitude(self) -> $math {
                self.abs()
            }
            fn to_real(self) -> f64 {
                self.into()
            }
            fn cast_f64(value: f64) -> $math {
                value as $math
            }
            fn fused(self, factor: $math, sum: $math) -> $math {
                self.mul_add(factor, sum)
            }
            fn plus(self, other: $math) -> $math {
                self + other
            }
            fn times(self, other: $math) -> $math {
                self * other
            }
            fn from_attribute(value: f32) -> Option<$math> {
                Some(value.into())
            }
        }
        impl Real for $math {
            fn to_f64(self) -> f64 {
                self.into()
            }
            fn from_f64(value: f64) -> $math {
                value as $math
            }
            fn over(self, other: $math) -> $math {
                self / other
            }
        }
        $(impl Stored for $stored {
            type Math = $math;
            fn widen(self) -> $math {
                $widen(self)
            }
            fn narrow(math: $math) -> $stored {
                $narrow(math)
            }
        })+
    };
}
real!(f32: f32, std::convert::identity, std::convert::identity; f16, f16::to_f32, f16::from_f32; bf16, bf16::to_f32, bf16::from_f32;);
real!(f64: f64, std::convert::identity, std::convert::identity;);

macro_rules! integer {
    ($($int:ty)+) => {
        $(impl Math for $int {
            const ZERO: $int = 0;
            const IS_INT: bool = true;
            fn magnitude(self) -> $int {
                if self < Self::ZERO { Self::ZERO.wrapping_sub(self) } else { self }
            }
            fn to_real(self) -> f64 {
                self as f64
            }
            fn cast_f64(value: f64) -> $int {
                value as $int
            }
            fn fused(self, factor: $int, sum: $int) -> $int {
                sum.wrapping_add(self.wrapping_mul(factor))
            }
            fn plus(self, other: $int) -> $int {
                self.wrapping_add(other)
            }
            fn times(self, other: $int) -> $int {
                self.wrapping_mul(other)
            }
            fn from_attribute(value: f32) -> Option<$int> {
                let whole = value as $int;
                (whole as f32 == value).then_some(whole)
            }
        }
        impl Stored for $int {
            type Math = $int;
            fn widen(self) -> $int {
                self
            }
            fn narrow(math: $int) -> $int {
                math
            }
        })+
    };
}
integer!(i32 i64 u32 u64);

/// The elements of a view, widened, in logical order.
pub(crate) fn widened<T: Stored>(view: &TensorView<'_>) -> Result<Vec<T::Math>, OpError> {
    Ok(view.values::<T>()?.iter().map(|&value| value.widen()).collect())
}

/// A matrix as rows and columns over a slice: element `(i, j)` lies at `i * row + j * column`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a, M> {
    pub values: &'a [M],
    pub row: usize,
    pub column: usize,
}

/// Adds the matrix product of `a` (m by k) and `b` (k by n) to `sums` (m by n), k ascending, one fused multiply-add each.
///
/// The caller has checked that the matrices hold those elements.
pub(crate) fn add_product<M: Math>(a: Matrix<'_, M>, b: Matrix<'_, M>, k: usize, n: usize, sums: &mut [M]) {
    if n == 0 {
        return;
    }
    for (i, row) in sums.chunks_exact_mut(n).enumerate() {
        for p in 0..k {
            let factor = a.values[i * a.row + p * a.column];
            for (j, sum) in row.iter_mut().enumerate() {
                *sum = factor.fused(b.values[p * b.row + j * b.column], *sum);
            }
        }
    }
}

/// The sum of a slice in 16 lanes: lane `i` adds elements `i`, `i + 16`, ... to 0, then lanes are added pairwise, 8
/// apart, then 4, 2, 1.
pub(crate) fn lane_sum<M: Math>(values: &[M]) -> M {
    lane_fold(values.iter().copied(), M::ZERO, M::plus)
}

/// Values combined in the 16 lanes of [`lane_sum`], each of which starts from `start`.
pub(crate) fn lane_fold<M: Copy>(values: impl Iterator<Item = M>, start: M, combine: impl Fn(M, M) -> M) -> M {
    let mut lanes = [start; 16];
    for (i, value) in values.enumerate() {
        lanes[i % 16] = combine(lanes[i % 16], value);
    }
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] = combine(lanes[i], lanes[i + half]);
        }
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_add_in_their_order() {
        // 1e8 swallows a 4, and takes two of them only once they have met in lanes 1 and 9.
        let mut values = [0f32; 33];
        (values[0], values[16], values[32]) = (1e8, 4.0, 4.0);
        assert_eq!(lane_sum(&values), 1e8);
        (values[16], values[32], values[9], values[17]) = (0.0, 0.0, 4.0, 4.0);
        assert_eq!(lane_sum(&values), 100_000_008.0);
    }

    #[test]
    fn attributes_of_integers_must_be_whole() {
        assert_eq!(i32::from_attribute(-2.0), Some(-2));
        assert_eq!(u32::from_attribute(-2.0), None);
        assert_eq!(i64::from_attribute(0.5), None);
    }
}
