//! The register tile: MR rows by NV vectors of columns, over the k-steps of one slab.
//!
//! All `MR x NV` sums stay in registers while k ascends, one FMA a step. Between slabs they rest in the output, unrounded
//! beyond f32, so slabs do not change a bit. After the last slab the epilogue runs on the registers.

use super::{Addend, Epilogue};
use crate::math;
use crate::simd::{LANES, Simd};
use std::ops::Range;

/// k-steps between a panel's use and its prefetch.
const AHEAD: usize = 8;

/// Some rows of `lhs` from some k-step on.
#[derive(Clone, Copy)]
pub(crate) struct SlabA {
    /// The first row's start if there is a table, else the first factor.
    pub(crate) ptr: *const f32,
    pub(crate) row_stride: usize,
    pub(crate) k_stride: usize,
    /// Offset of each k-step from the row's start, or null.
    pub(crate) table: *const u32,
    /// About where the factors of the first step lie; only prefetched.
    pub(crate) near: *const f32,
}

/// Factors of `kc` k-steps.
#[derive(Clone, Copy)]
pub(crate) struct Slab {
    pub(crate) a: SlabA,
    /// A packed panel.
    pub(crate) b: *const f32,
    pub(crate) kc: usize,
    /// Whether sums start here at +0, or continue from the output.
    pub(crate) first: bool,
    /// Whether sums end here.
    pub(crate) last: bool,
}

/// Where sums rest and results go.
#[derive(Clone, Copy)]
pub(crate) struct MicroOut<'a> {
    pub(crate) ptr: *mut f32,
    pub(crate) row_stride: usize,
    pub(crate) epilogue: &'a Epilogue<'a>,
}

/// Part of the output: rows from `row`, columns from `col` on.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) row: usize,
    pub(crate) n_rows: usize,
    pub(crate) col: usize,
    pub(crate) width: usize,
}

/// All rows of a part that is one panel wide.
///
/// # Safety
/// `slab.a` has `part.n_rows` rows and `slab.b` whole vectors for `part.width` columns, both over `slab.kc` steps; the part lies
/// within the output and the epilogue's operands.
#[inline(always)]
pub(crate) unsafe fn rows<S: Simd>(s: S, slab: &Slab, out: &MicroOut<'_>, part: Part) {
    let table = s.table();
    // SAFETY: as this function's; the token vouches for the features.
    unsafe {
        match part.width.div_ceil(LANES) {
            0 | 1 => (table.rows_1)(slab, out, part),
            2 => (table.rows_2)(slab, out, part),
            _ => (table.rows_3)(slab, out, part),
        }
    }
}

/// # Safety
/// As [`rows`], one vector wide.
#[inline(always)]
pub(crate) unsafe fn rows_1<S: Simd>(s: S, slab: &Slab, out: &MicroOut<'_>, part: Part) {
    // SAFETY: as this function's.
    unsafe { rows_nv::<S, 1>(s, slab, out, part) }
}

/// # Safety
/// As [`rows`], two vectors wide.
#[inline(always)]
pub(crate) unsafe fn rows_2<S: Simd>(s: S, slab: &Slab, out: &MicroOut<'_>, part: Part) {
    // SAFETY: as this function's.
    unsafe { rows_nv::<S, 2>(s, slab, out, part) }
}

/// # Safety
/// As [`rows`], three vectors wide.
#[inline(always)]
pub(crate) unsafe fn rows_3<S: Simd>(s: S, slab: &Slab, out: &MicroOut<'_>, part: Part) {
    // SAFETY: as this function's.
    unsafe { rows_nv::<S, 3>(s, slab, out, part) }
}

/// # Safety
/// As [`rows`], `NV` vectors wide.
#[inline(always)]
unsafe fn rows_nv<S: Simd, const NV: usize>(s: S, slab: &Slab, out: &MicroOut<'_>, part: Part) {
    // SAFETY: as this function's; with few registers, one vector of columns at a time.
    unsafe {
        match (slab.a.table.is_null(), S::WIDE) {
            (true, true) => column::<S, NV, false>(s, slab, NV * LANES, out, part),
            (false, true) => column::<S, NV, true>(s, slab, NV * LANES, out, part),
            (by_stride, false) => {
                let mut done = 0;
                while done < part.width {
                    let width = LANES.min(part.width - done);
                    let part = Part { col: part.col + done, width, ..part };
                    let slab = Slab { b: slab.b.wrapping_add(done), ..*slab };
                    if by_stride {
                        column::<S, 1, false>(s, &slab, NV * LANES, out, part);
                    } else {
                        column::<S, 1, true>(s, &slab, NV * LANES, out, part);
                    }
                    done += width;
                }
            }
        }
    }
}

/// # Safety
/// As [`rows`], with steps of `b_stride` columns, of which `NV` vectors are used.
#[inline(always)]
unsafe fn column<S: Simd, const NV: usize, const TABLE: bool>(
    s: S,
    slab: &Slab,
    b_stride: usize,
    out: &MicroOut<'_>,
    part: Part,
) {
    let Part { row, n_rows, col, width } = part;
    let mut slab = *slab;
    let mut i = 0;
    macro_rules! step {
        ($mr:literal) => {{
            // SAFETY: $mr rows are left; the rest as this function's.
            unsafe { tile::<S, $mr, NV, TABLE>(s, &slab, b_stride, out, row + i, col, width) };
            i += $mr;
            slab.a.ptr = slab.a.ptr.wrapping_add($mr * slab.a.row_stride);
            slab.a.near = slab.a.near.wrapping_add($mr * slab.a.row_stride);
        }};
    }
    if S::WIDE {
        if NV == 1 {
            while n_rows - i >= 16 {
                step!(16);
            }
        }
        if NV == 2 {
            while n_rows - i >= 12 {
                step!(12);
            }
        }
        while n_rows - i >= 8 {
            step!(8);
        }
        if n_rows - i >= 4 {
            step!(4);
        }
    } else if !S::NARROW {
        while n_rows - i >= 6 {
            step!(6);
        }
        if n_rows - i >= 3 {
            step!(3);
        }
    }
    if !S::NARROW && n_rows - i >= 2 {
        step!(2);
    }
    while n_rows > i {
        step!(1);
    }
}

/// # Safety
/// As [`column`], with exactly `MR` rows.
#[inline(always)]
unsafe fn tile<S: Simd, const MR: usize, const NV: usize, const TABLE: bool>(
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
    // SAFETY: the caller vouches for MR rows and `width` columns of the output, MR rows and kc steps of `a`, and kc steps of NV
    // vectors of `b`.
    unsafe {
        if !slab.first {
            load_tile(s, &mut acc, c, out.row_stride, width);
        }
        let rs = slab.a.row_stride;
        let mut a = slab.a.ptr;
        let mut b = slab.b;
        let mut near = slab.a.near;
        for k in 0..slab.kc {
            // The next rows of `lhs`, one line of one row a step.
            s.prefetch(near.wrapping_add((MR + (k & 7)) * rs));
            near = near.wrapping_add(if TABLE { 1 } else { slab.a.k_stride });
            let at = if TABLE { a.wrapping_add(*slab.a.table.add(k) as usize) } else { a };
            let mut bv = [s.splat(0.0); NV];
            for (v, bv) in bv.iter_mut().enumerate() {
                *bv = s.load(b.add(v * LANES));
                s.prefetch(b.wrapping_add(AHEAD * b_stride + v * LANES));
            }
            for (r, acc) in acc.iter_mut().enumerate() {
                let av = s.load1(at.add(r * rs));
                for (acc, bv) in acc.iter_mut().zip(bv) {
                    *acc = s.fma(av, bv, *acc);
                }
            }
            b = b.wrapping_add(b_stride);
            if !TABLE {
                a = a.wrapping_add(slab.a.k_stride);
            }
        }
        if slab.last {
            finish(s, &mut acc, out.epilogue, row, col, width);
        }
        store_tile(s, &acc, c, out.row_stride, width);
    }
}

/// # Safety
/// `MR` rows of `width` values, `row_stride` apart, are readable at `c`; `width <= NV * 16`.
#[inline(always)]
pub(crate) unsafe fn load_tile<S: Simd, const MR: usize, const NV: usize>(
    s: S,
    acc: &mut [[S::V; NV]; MR],
    c: *const f32,
    row_stride: usize,
    width: usize,
) {
    // SAFETY: each load covers columns below `width` only.
    unsafe {
        for (r, acc) in acc.iter_mut().enumerate() {
            let c = c.wrapping_add(r * row_stride);
            for (v, acc) in acc.iter_mut().enumerate() {
                *acc = load_some(s, c.wrapping_add(v * LANES), width, v);
            }
        }
    }
}

/// # Safety
/// `MR` rows of `width` values, `row_stride` apart, are writable at `c`; `width <= NV * 16`.
#[inline(always)]
pub(crate) unsafe fn store_tile<S: Simd, const MR: usize, const NV: usize>(
    s: S,
    acc: &[[S::V; NV]; MR],
    c: *mut f32,
    row_stride: usize,
    width: usize,
) {
    // SAFETY: each store covers columns below `width` only.
    unsafe {
        if width == NV * LANES {
            for (r, acc) in acc.iter().enumerate() {
                for (v, acc) in acc.iter().enumerate() {
                    s.store(c.wrapping_add(r * row_stride + v * LANES), *acc);
                }
            }
        } else {
            for (r, acc) in acc.iter().enumerate() {
                for (v, acc) in acc.iter().enumerate() {
                    let lanes = width.saturating_sub(v * LANES).min(LANES);
                    s.store_n(c.wrapping_add(r * row_stride + v * LANES), *acc, lanes);
                }
            }
        }
    }
}

/// Vector `v` of a row that ends at `width`.
///
/// # Safety
/// The lanes below `width` are readable.
#[inline(always)]
pub(crate) unsafe fn load_some<S: Simd>(s: S, p: *const f32, width: usize, v: usize) -> S::V {
    let lanes = width.saturating_sub(v * LANES).min(LANES);
    // SAFETY: as this function's.
    unsafe { if lanes == LANES { s.load(p) } else { s.load_n(p, lanes) } }
}

/// The epilogue, on the sums of rows from `row` and columns from `col` on.
///
/// # Safety
/// The epilogue's operands cover `MR` rows and `width` columns from there.
#[inline(always)]
pub(crate) unsafe fn finish<S: Simd, const MR: usize, const NV: usize>(
    s: S,
    acc: &mut [[S::V; NV]; MR],
    epilogue: &Epilogue<'_>,
    row: usize,
    col: usize,
    width: usize,
) {
    if epilogue.alpha != 1.0 {
        let alpha = s.splat(epilogue.alpha);
        for acc in acc.iter_mut() {
            for acc in acc.iter_mut() {
                *acc = s.mul(*acc, alpha);
            }
        }
    }
    if let Some(bias) = &epilogue.bias {
        // SAFETY: as this function's.
        unsafe { add(s, acc, bias, row, col, width) };
    }
    if let Some(residual) = &epilogue.residual {
        // SAFETY: as this function's.
        unsafe { add(s, acc, residual, row, col, width) };
    }
    if epilogue.relu {
        for acc in acc.iter_mut() {
            for acc in acc.iter_mut() {
                *acc = math::relu(s, *acc);
            }
        }
    }
}

/// # Safety
/// The addend covers `MR` rows and `width` columns from (row, col) on.
#[inline(always)]
unsafe fn add<S: Simd, const MR: usize, const NV: usize>(
    s: S,
    acc: &mut [[S::V; NV]; MR],
    addend: &Addend<'_>,
    row: usize,
    col: usize,
    width: usize,
) {
    let p = addend.src.as_ptr().wrapping_add(row * addend.row_stride + col * addend.col_stride);
    let scale = s.splat(addend.scale);
    for (r, acc) in acc.iter_mut().enumerate() {
        let p = p.wrapping_add(r * addend.row_stride);
        if addend.col_stride == 0 {
            // SAFETY: row r of the addend has this one value.
            let x = s.mul(scale, unsafe { s.load1(p) });
            for acc in acc.iter_mut() {
                *acc = s.add(*acc, x);
            }
        } else {
            for (v, acc) in acc.iter_mut().enumerate() {
                // SAFETY: only columns below `width` are read.
                let x = unsafe { load_some(s, p.wrapping_add(v * LANES), width, v) };
                *acc = s.add(*acc, s.mul(scale, x));
            }
        }
    }
}

/// Results of empty sums.
///
/// # Safety
/// The range lies within the output and the epilogue's operands.
#[inline(always)]
pub(crate) unsafe fn finish_empty<S: Simd>(s: S, out: &MicroOut<'_>, rows: Range<usize>, cols: Range<usize>) {
    for row in rows {
        let mut col = cols.start;
        while col < cols.end {
            let width = LANES.min(cols.end - col);
            let mut acc = [[s.splat(0.0)]];
            // SAFETY: one row of `width` columns within the range.
            unsafe {
                finish(s, &mut acc, out.epilogue, row, col, width);
                store_tile(s, &acc, out.ptr.wrapping_add(row * out.row_stride + col), out.row_stride, width);
            }
            col += width;
        }
    }
}
