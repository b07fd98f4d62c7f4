//! Floating-point elements as sums and functions of them are computed: 16-bit types in f32, the others in their own.

use super::number::Number;
use firstlight_gemm::{Isa, Unary};
use firstlight_tensor::{bf16, f16};
use std::ops::{Add, Div, Mul, Sub};

/// A type that floating-point elements are computed in.
pub(super) trait Math:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    const ZERO: Self;
    const LOWEST: Self;
    fn of(x: f64) -> Self;
    fn to_f64(self) -> f64;
    fn sqrt(self) -> Self;
    fn magnitude(self) -> Self;
    /// Replaces every value by its exponential.
    fn exp_all(values: &mut [Self]);
}

/// A floating-point element.
pub(super) trait Real: Number {
    type Math: Math;
    fn widen(self) -> Self::Math;
    fn narrow(x: Self::Math) -> Self;
}

impl Math for f32 {
    const ZERO: f32 = 0.0;
    const LOWEST: f32 = f32::NEG_INFINITY;
    fn of(x: f64) -> f32 {
        x as f32
    }
    fn to_f64(self) -> f64 {
        self.into()
    }
    fn sqrt(self) -> f32 {
        self.sqrt()
    }
    fn magnitude(self) -> f32 {
        self.abs()
    }
    fn exp_all(values: &mut [f32]) {
        Isa::detect().unary_in_place(Unary::Exp, values);
    }
}

impl Math for f64 {
    const ZERO: f64 = 0.0;
    const LOWEST: f64 = f64::NEG_INFINITY;
    fn of(x: f64) -> f64 {
        x
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn sqrt(self) -> f64 {
        self.sqrt()
    }
    fn magnitude(self) -> f64 {
        self.abs()
    }
    fn exp_all(values: &mut [f64]) {
        values.iter_mut().for_each(|x| *x = libm::exp(*x));
    }
}

macro_rules! real {
    ($($ty:ident: $math:ident, $widen:expr, $narrow:expr;)*) => { $(
        impl Real for $ty {
            type Math = $math;
            #[inline(always)]
            fn widen(self) -> $math {
                $widen(self)
            }
            #[inline(always)]
            fn narrow(x: $math) -> $ty {
                $narrow(x)
            }
        }
    )* };
}

real! {
    f32: f32, f32::from, f32::from;
    f64: f64, f64::from, f64::from;
    f16: f32, f16::to_f32, f16::from_f32;
    bf16: f32, bf16::to_f32, bf16::from_f32;
}

/// The lanes of a sum of any length, in the order that all sums are taken in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes<M> {
    lanes: [M; 16],
    n: usize,
}

impl<M: Math> Lanes<M> {
    /// The sum of nothing.
    pub(super) fn new() -> Lanes<M> {
        Lanes { lanes: [M::ZERO; 16], n: 0 }
    }

    /// Adds the next value.
    #[inline(always)]
    pub(super) fn add(&mut self, x: M) {
        let lane = &mut self.lanes[self.n % 16];
        *lane = *lane + x;
        self.n += 1;
    }

    /// The sum of what was added.
    pub(super) fn sum(mut self) -> M {
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                self.lanes[i] = self.lanes[i] + self.lanes[i + half];
            }
        }
        self.lanes[0]
    }
}
