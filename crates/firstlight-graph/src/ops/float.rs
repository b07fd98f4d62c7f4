//! Floating-point element types and the types that references compute them in.

use firstlight_tensor::{Element, bf16, f16};
use std::ops::{Add, Div, Mul, Sub};

/// A floating-point element and the type its arithmetic is done in: `f32` for 16-bit types, else its own.
pub(crate) trait Float: Element {
    type Compute: Compute;

    /// The value in the type it is computed in; exact.
    fn widen(self) -> Self::Compute;

    /// The nearest element.
    fn narrow(value: Self::Compute) -> Self;

    /// `f` of the element, computed in `f64` and rounded to the type it is computed in, then to the element.
    fn through_f64(self, f: impl Fn(f64) -> f64) -> Self {
        Self::narrow(Self::Compute::from_f64(f(self.widen().to_f64())))
    }
}

/// A type that floating-point elements are computed in.
pub(crate) trait Compute:
    Copy + Default + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
}

impl Compute for f32 {
    fn from_f64(value: f64) -> f32 {
        value as f32
    }

    fn to_f64(self) -> f64 {
        self.into()
    }
}

impl Compute for f64 {
    fn from_f64(value: f64) -> f64 {
        value
    }

    fn to_f64(self) -> f64 {
        self
    }
}

impl Float for f32 {
    type Compute = f32;

    fn widen(self) -> f32 {
        self
    }

    fn narrow(value: f32) -> f32 {
        value
    }
}

impl Float for f64 {
    type Compute = f64;

    fn widen(self) -> f64 {
        self
    }

    fn narrow(value: f64) -> f64 {
        value
    }
}

impl Float for f16 {
    type Compute = f32;

    fn widen(self) -> f32 {
        self.to_f32()
    }

    fn narrow(value: f32) -> f16 {
        f16::from_f32(value)
    }
}

impl Float for bf16 {
    type Compute = f32;

    fn widen(self) -> f32 {
        self.to_f32()
    }

    fn narrow(value: f32) -> bf16 {
        bf16::from_f32(value)
    }
}
