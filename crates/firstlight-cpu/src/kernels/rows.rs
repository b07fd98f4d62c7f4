//! Rows of many element types from one kernel.

use firstlight_backend::{Caps, KernelBinding, KernelFn, ROW};
use firstlight_graph::OpKind;
use firstlight_tensor::DType;
use firstlight_tensor::DType::*;

/// A row of a kernel that reads its inputs as bytes, so that mapped weights need not be aligned.
pub(super) const fn row(op: OpKind, types: &'static [DType], kernel: KernelFn) -> KernelBinding {
    KernelBinding { op, types, kernel, caps: Caps { unaligned: true, capture_safe: true }, source: "portable", ..ROW }
}

/// Rows of one kernel, one for each list of types.
pub(super) const fn rows<const N: usize>(
    op: OpKind,
    types: &[&'static [DType]; N],
    kernel: KernelFn,
) -> [KernelBinding; N] {
    let mut rows = [row(op, &[], kernel); N];
    let mut i = 0;
    while i < N {
        rows[i].types = types[i];
        i += 1;
    }
    rows
}

/// Every element type of whole bytes: what a data mover takes.
pub(super) const BYTE_SIZED: &[&[DType]; 20] = &[
    &[F32],
    &[F64],
    &[F16],
    &[BF16],
    &[I64],
    &[I32],
    &[I16],
    &[I8],
    &[U64],
    &[U32],
    &[U16],
    &[U8],
    &[Bool],
    &[F8E4M3FN],
    &[F8E4M3FNUZ],
    &[F8E5M2],
    &[F8E5M2FNUZ],
    &[F8E8M0],
    &[Complex64],
    &[Complex128],
];
