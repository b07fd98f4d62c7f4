//! Sets of element types that ops declare.

use firstlight_tensor::DType;
use firstlight_tensor::DType::*;

/// Floating point types of 16 to 64 bits.
pub const FLOATS: &[DType] = &[F32, F64, F16, BF16];

/// Floating point types of 8 to 64 bits that ONNX computes with.
pub const FLOATS_AND_8_BITS: &[DType] = &[F32, F64, F16, BF16, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ];

/// Integers of 8 to 64 bits.
pub const INTS: &[DType] = &[I64, I32, I16, I8, U64, U32, U16, U8];

/// Floating point types of 16 to 64 bits and integers of 8 to 64 bits.
pub const NUMERIC: &[DType] = &[F32, F64, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8];

/// Numeric types and bool.
pub const NUMERIC_OR_BOOL: &[DType] = &[F32, F64, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, Bool];

/// Types whose elements take whole bytes of a fixed size: what data movers take.
pub const BYTE_SIZED: &[DType] = &[
    F32, F64, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, Bool, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0,
    Complex64, Complex128,
];

/// Integers that index.
pub const INDICES: &[DType] = &[I64, I32];
