//! Few rows: the right operand is read once, in place, so nothing is packed.
//!
//! Row-major: a few k-steps at a time over all columns, with the sums resting in the output in between, so that memory is read
//! in a handful of long streams. Transposed: 16 columns at a time, turned round in registers.

use super::micro::{self, MicroOut, Slab, SlabA};
use super::pack::Columns;
use super::{Lhs, Matrix};
use crate::simd::{LANES, Simd};
use std::ops::Range;

/// k-steps of a sweep over the columns.
const SWEEP: usize = 16;

/// # Safety
/// As [`super::product_tile`], with at most 8 rows and at least one k-step.
#[inline(always)]
pub(crate) unsafe fn row_major<S: Simd>(
    s: S,
    lhs: &Lhs<'_>,
    b: &Matrix<'_>,
    out: &MicroOut<'_>,
    rows: Range<usize>,
    cols: Range<usize>,
) {
    macro_rules! sweep {
        ($mr:literal, $wide:literal, $narrow:literal) => {
            // SAFETY: as this function's.
            unsafe {
                if S::WIDE {
                    sweeps::<S, $mr, $wide>(s, lhs, b, out, rows.start, cols)
                } else {
                    sweeps::<S, $mr, $narrow>(s, lhs, b, out, rows.start, cols)
                }
            }
        };
    }
    if S::NARROW {
        for row in rows {
            // SAFETY: as this function's.
            unsafe { sweeps::<S, 1, 1>(s, lhs, b, out, row, cols.clone()) };
        }
        return;
    }
    match rows.len() {
        0 => {}
        1 => sweep!(1, 8, 4),
        2 => sweep!(2, 8, 2),
        3 => sweep!(3, 6, 2),
        4 => sweep!(4, 6, 1),
        5 => sweep!(5, 4, 1),
        6 => sweep!(6, 4, 1),
        7 => sweep!(7, 3, 1),
        _ => sweep!(8, 3, 1),
    }
}

/// # Safety
/// As [`row_major`], with exactly `MR` rows.
#[inline(always)]
unsafe fn sweeps<S: Simd, const MR: usize, const NV: usize>(
    s: S,
    lhs: &Lhs<'_>,
    b: &Matrix<'_>,
    out: &MicroOut<'_>,
    row: usize,
    cols: Range<usize>,
) {
    let k = lhs.k();
    let mut k0 = 0;
    while k0 < k {
        let kc = SWEEP.min(k - k0);
        let a = lhs.slab(row, k0);
        let mut col = cols.start;
        while col < cols.end {
            let width = (NV * LANES).min(cols.end - col);
            let slab = Slab {
                a,
                b: b.src.as_ptr().wrapping_add(k0 * b.row_stride + col),
                kc,
                first: k0 == 0,
                last: k0 + kc == k,
            };
            // SAFETY: the tile lies within the output, the epilogue's operands and `b`.
            unsafe {
                if width == NV * LANES {
                    strip::<S, MR, NV>(s, &slab, b.row_stride, out, row, col, width);
                } else {
                    let mut done = 0;
                    while done < width {
                        let part = LANES.min(width - done);
                        let slab = Slab { b: slab.b.wrapping_add(done), ..slab };
                        strip::<S, MR, 1>(s, &slab, b.row_stride, out, row, col + done, part);
                        done += part;
                    }
                }
            }
            col += width;
        }
        k0 += kc;
    }
}

/// # Safety
/// `slab.b` has `kc` rows of `width` columns, `b_stride` apart; the rest as [`micro::rows`].
#[inline(always)]
unsafe fn strip<S: Simd, const MR: usize, const NV: usize>(
    s: S,
    slab: &Slab,
    b_stride: usize,
    out: &MicroOut<'_>,
    row: usize,
    col: usize,
    width: usize,
) {
    let c = out.ptr.wrapping_add(row * out.row_stride + col);
    let mut acc = [[s.splat(0.0); NV]; MR];
    // SAFETY: as this function's.
    unsafe {
        if !slab.first {
            micro::load_tile(s, &mut acc, c, out.row_stride, width);
        }
        for k in 0..slab.kc {
            let b = slab.b.wrapping_add(k * b_stride);
            let mut bv = [s.splat(0.0); NV];
            for (v, bv) in bv.iter_mut().enumerate() {
                *bv = micro::load_some(s, b.wrapping_add(v * LANES), width, v);
            }
            for (r, acc) in acc.iter_mut().enumerate() {
                let av = s.load1(factor(&slab.a, r, k));
                for (acc, bv) in acc.iter_mut().zip(bv) {
                    *acc = s.fma(av, bv, *acc);
                }
            }
        }
        if slab.last {
            micro::finish(s, &mut acc, out.epilogue, row, col, width);
        }
        micro::store_tile(s, &acc, c, out.row_stride, width);
    }
}

/// Address of factor `k` of row `r`.
///
/// # Safety
/// The table, if there is one, has `k` steps.
#[inline(always)]
unsafe fn factor(a: &SlabA, r: usize, k: usize) -> *const f32 {
    // SAFETY: as this function's.
    let step = if a.table.is_null() { k * a.k_stride } else { unsafe { *a.table.add(k) as usize } };
    a.ptr.wrapping_add(r * a.row_stride + step)
}

/// # Safety
/// As [`super::product_tile`], with at most 8 rows and at least one k-step.
#[inline(always)]
pub(crate) unsafe fn transposed<S: Simd>(
    s: S,
    lhs: &Lhs<'_>,
    b: &Matrix<'_>,
    out: &MicroOut<'_>,
    rows: Range<usize>,
    cols: Range<usize>,
) {
    let mut row = rows.start;
    while row < rows.end {
        // SAFETY: as this function's.
        let done = unsafe {
            match rows.end - row {
                _ if S::NARROW => columns::<S, 1>(s, lhs, b, out, row, cols.clone()),
                1 => columns::<S, 1>(s, lhs, b, out, row, cols.clone()),
                2 => columns::<S, 2>(s, lhs, b, out, row, cols.clone()),
                3 => columns::<S, 3>(s, lhs, b, out, row, cols.clone()),
                4 => columns::<S, 4>(s, lhs, b, out, row, cols.clone()),
                5..=7 if !S::WIDE => columns::<S, 4>(s, lhs, b, out, row, cols.clone()),
                5 => columns::<S, 5>(s, lhs, b, out, row, cols.clone()),
                6 => columns::<S, 6>(s, lhs, b, out, row, cols.clone()),
                7 => columns::<S, 7>(s, lhs, b, out, row, cols.clone()),
                _ if !S::WIDE => columns::<S, 4>(s, lhs, b, out, row, cols.clone()),
                _ => columns::<S, 8>(s, lhs, b, out, row, cols.clone()),
            }
        };
        row += done;
    }
}

/// # Safety
/// As [`transposed`], with exactly `MR` rows from `row` on; gives `MR`.
#[inline(always)]
unsafe fn columns<S: Simd, const MR: usize>(
    s: S,
    lhs: &Lhs<'_>,
    b: &Matrix<'_>,
    out: &MicroOut<'_>,
    row: usize,
    cols: Range<usize>,
) -> usize {
    let k = lhs.k();
    let a = lhs.slab(row, 0);
    let mut col = cols.start;
    while col < cols.end {
        let width = LANES.min(cols.end - col);
        let columns = Columns::new(b, col, width);
        let mut acc = [[s.splat(0.0)]; MR];
        let mut at = 0;
        // SAFETY: steps below k of existing columns and rows; one vector of `width` columns of the output.
        unsafe {
            while at + 4 <= k {
                for (i, bv) in columns.four(s, at).into_iter().enumerate() {
                    for (r, acc) in acc.iter_mut().enumerate() {
                        acc[0] = s.fma(s.load1(factor(&a, r, at + i)), bv, acc[0]);
                    }
                }
                at += 4;
            }
            while at < k {
                let bv = columns.one(s, at);
                for (r, acc) in acc.iter_mut().enumerate() {
                    acc[0] = s.fma(s.load1(factor(&a, r, at)), bv, acc[0]);
                }
                at += 1;
            }
            micro::finish(s, &mut acc, out.epilogue, row, col, width);
            let c = out.ptr.wrapping_add(row * out.row_stride + col);
            micro::store_tile(s, &acc, c, out.row_stride, width);
        }
        col += width;
    }
    MR
}
