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

/// The rows of several lists in one.
pub(super) const fn joined<const N: usize>(lists: &[&[KernelBinding]]) -> [KernelBinding; N] {
    let mut all = [ROW; N];
    let (mut n, mut i) = (0, 0);
    while i < lists.len() {
        let mut j = 0;
        while j < lists[i].len() {
            all[n] = lists[i][j];
            (n, j) = (n + 1, j + 1);
        }
        i += 1;
    }
    assert!(n == N, "as many rows as the lists hold");
    all
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

/// [`BYTE_SIZED`] with the types of an index.
pub(super) const INDEXED: &[&[DType]; 40] = &[
    &[F32, I64],
    &[F64, I64],
    &[F16, I64],
    &[BF16, I64],
    &[I64, I64],
    &[I32, I64],
    &[I16, I64],
    &[I8, I64],
    &[U64, I64],
    &[U32, I64],
    &[U16, I64],
    &[U8, I64],
    &[Bool, I64],
    &[F8E4M3FN, I64],
    &[F8E4M3FNUZ, I64],
    &[F8E5M2, I64],
    &[F8E5M2FNUZ, I64],
    &[F8E8M0, I64],
    &[Complex64, I64],
    &[Complex128, I64],
    &[F32, I32],
    &[F64, I32],
    &[F16, I32],
    &[BF16, I32],
    &[I64, I32],
    &[I32, I32],
    &[I16, I32],
    &[I8, I32],
    &[U64, I32],
    &[U32, I32],
    &[U16, I32],
    &[U8, I32],
    &[Bool, I32],
    &[F8E4M3FN, I32],
    &[F8E4M3FNUZ, I32],
    &[F8E5M2, I32],
    &[F8E5M2FNUZ, I32],
    &[F8E8M0, I32],
    &[Complex64, I32],
    &[Complex128, I32],
];
