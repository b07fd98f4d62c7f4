//! Element types.

use half::{bf16, f16};
use std::fmt;

/// The element type of a value.
///
/// Names follow the field: `f32`, `i64`, `bool`. Sub-byte types stay packed, low bits first. A string tensor is host
/// bytes: see [`Tensor::from_strings`](crate::Tensor::from_strings).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// IEEE 754 half precision.
    F16,
    /// The upper half of an `f32`: 8 bits of exponent, 7 of fraction.
    BF16,
    /// 8 bits, 4 of exponent and 3 of fraction; no infinities, one NaN for each sign.
    F8E4M3FN,
    /// 8 bits, 4 of exponent and 3 of fraction; no infinities, one NaN, one zero.
    F8E4M3FNUZ,
    /// 8 bits, 5 of exponent and 2 of fraction, with infinities and NaN as IEEE 754 has them.
    F8E5M2,
    /// 8 bits, 5 of exponent and 2 of fraction; no infinities, one NaN, one zero.
    F8E5M2FNUZ,
    /// 8 bits, all of them exponent: a power of two, or NaN; the scale of a block.
    F8E8M0,
    /// 6 bits, 2 of exponent and 3 of fraction; finite numbers only.
    F6E2M3,
    /// 6 bits, 3 of exponent and 2 of fraction; finite numbers only.
    F6E3M2,
    /// 4 bits, 2 of exponent and 1 of fraction; finite numbers only.
    F4E2M1,
    /// Signed, 64 bits.
    I64,
    /// Signed, 32 bits.
    I32,
    /// Signed, 16 bits.
    I16,
    /// Signed, 8 bits.
    I8,
    /// Signed, 4 bits, two to a byte.
    I4,
    /// Signed, 2 bits, four to a byte.
    I2,
    /// Unsigned, 64 bits.
    U64,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 4 bits, two to a byte.
    U4,
    /// Unsigned, 2 bits, four to a byte.
    U2,
    /// A byte that is 0 or 1.
    Bool,
    /// UTF-8 text of any length.
    String,
    /// Two `f32`: real part, then imaginary part.
    Complex64,
    /// Two `f64`: real part, then imaginary part.
    Complex128,
}

/// The family an element type belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers with an exponent, of any width.
    Float,
    /// Whole numbers in two's complement.
    SignedInt,
    /// Whole numbers from 0 on.
    UnsignedInt,
    /// Truth values.
    Bool,
    /// Text.
    String,
    /// Pairs of floats.
    Complex,
}

impl DType {
    /// Every element type.
    pub const ALL: [DType; 28] = [
        DType::F32,
        DType::F64,
        DType::F16,
        DType::BF16,
        DType::F8E4M3FN,
        DType::F8E4M3FNUZ,
        DType::F8E5M2,
        DType::F8E5M2FNUZ,
        DType::F8E8M0,
        DType::F6E2M3,
        DType::F6E3M2,
        DType::F4E2M1,
        DType::I64,
        DType::I32,
        DType::I16,
        DType::I8,
        DType::I4,
        DType::I2,
        DType::U64,
        DType::U32,
        DType::U16,
        DType::U8,
        DType::U4,
        DType::U2,
        DType::Bool,
        DType::String,
        DType::Complex64,
        DType::Complex128,
    ];

    /// The short name that messages, the text form and command lines use.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F8E4M3FN => "f8e4m3fn",
            DType::F8E4M3FNUZ => "f8e4m3fnuz",
            DType::F8E5M2 => "f8e5m2",
            DType::F8E5M2FNUZ => "f8e5m2fnuz",
            DType::F8E8M0 => "f8e8m0",
            DType::F6E2M3 => "f6e2m3",
            DType::F6E3M2 => "f6e3m2",
            DType::F4E2M1 => "f4e2m1",
            DType::I64 => "i64",
            DType::I32 => "i32",
            DType::I16 => "i16",
            DType::I8 => "i8",
            DType::I4 => "i4",
            DType::I2 => "i2",
            DType::U64 => "u64",
            DType::U32 => "u32",
            DType::U16 => "u16",
            DType::U8 => "u8",
            DType::U4 => "u4",
            DType::U2 => "u2",
            DType::Bool => "bool",
            DType::String => "string",
            DType::Complex64 => "complex64",
            DType::Complex128 => "complex128",
        }
    }

    /// Bits an element takes; 0 for strings, whose size is not fixed.
    pub const fn bits(self) -> usize {
        match self {
            DType::I2 | DType::U2 => 2,
            DType::I4 | DType::U4 | DType::F4E2M1 => 4,
            DType::F6E2M3 | DType::F6E3M2 => 6,
            DType::F8E4M3FN | DType::F8E4M3FNUZ | DType::F8E5M2 | DType::F8E5M2FNUZ | DType::F8E8M0 => 8,
            DType::I8 | DType::U8 | DType::Bool => 8,
            DType::F16 | DType::BF16 | DType::I16 | DType::U16 => 16,
            DType::F32 | DType::I32 | DType::U32 => 32,
            DType::F64 | DType::I64 | DType::U64 | DType::Complex64 => 64,
            DType::Complex128 => 128,
            DType::String => 0,
        }
    }

    /// Bytes that `n_elems` packed elements take, or `None` on overflow or for strings.
    pub fn size_bytes(self, n_elems: usize) -> Option<usize> {
        match self {
            DType::String => None,
            _ => (n_elems as u128 * self.bits() as u128).div_ceil(8).try_into().ok(),
        }
    }

    /// The family of the element type.
    pub const fn kind(self) -> Kind {
        match self {
            DType::F32
            | DType::F64
            | DType::F16
            | DType::BF16
            | DType::F8E4M3FN
            | DType::F8E4M3FNUZ
            | DType::F8E5M2
            | DType::F8E5M2FNUZ
            | DType::F8E8M0
            | DType::F6E2M3
            | DType::F6E3M2
            | DType::F4E2M1 => Kind::Float,
            DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::I4 | DType::I2 => Kind::SignedInt,
            DType::U64 | DType::U32 | DType::U16 | DType::U8 | DType::U4 | DType::U2 => Kind::UnsignedInt,
            DType::Bool => Kind::Bool,
            DType::String => Kind::String,
            DType::Complex64 | DType::Complex128 => Kind::Complex,
        }
    }

    /// True for whole-number types (not bool).
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::SignedInt | Kind::UnsignedInt)
    }

    /// The type of that short name.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type whose bytes are those of a [`DType`].
///
/// Bool tensors hold one byte an element (0 or 1) and are read and written as `u8` through
/// [`Tensor::from_bools`](crate::Tensor::from_bools), since not every byte is a Rust `bool`.
pub trait Element: bytemuck::Pod + fmt::Debug + PartialEq + PartialOrd + Send + Sync + 'static {
    /// The matching element type.
    const DTYPE: DType;
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;
}
impl Element for f64 {
    const DTYPE: DType = DType::F64;
}
impl Element for f16 {
    const DTYPE: DType = DType::F16;
}
impl Element for bf16 {
    const DTYPE: DType = DType::BF16;
}
impl Element for i8 {
    const DTYPE: DType = DType::I8;
}
impl Element for i16 {
    const DTYPE: DType = DType::I16;
}
impl Element for i32 {
    const DTYPE: DType = DType::I32;
}
impl Element for i64 {
    const DTYPE: DType = DType::I64;
}
impl Element for u8 {
    const DTYPE: DType = DType::U8;
}
impl Element for u16 {
    const DTYPE: DType = DType::U16;
}
impl Element for u32 {
    const DTYPE: DType = DType::U32;
}
impl Element for u64 {
    const DTYPE: DType = DType::U64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found_again() {
        for dtype in DType::ALL {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
        }
    }

    #[test]
    fn packed_sizes_round_up() {
        assert_eq!(DType::I4.size_bytes(3), Some(2));
        assert_eq!(DType::U2.size_bytes(5), Some(2));
        assert_eq!(DType::F6E2M3.size_bytes(5), Some(4));
        assert_eq!(DType::F32.size_bytes(usize::MAX), None);
        assert_eq!(DType::Complex128.size_bytes(2), Some(32));
    }
}
