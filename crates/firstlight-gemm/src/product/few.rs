//! Few columns: lanes run over the rows of `lhs`, 16 at a time, turned round in registers.
//!
//! A panel of few columns leaves most of a vector idle; here only the turning costs, and each factor of `lhs` is read once. Where
//! k-steps are offsets, the stretch of the rows that they lie in is turned into a small table of vectors first.

use super::micro::{MicroOut, Part, Slab, SlabA};
use super::pack::Columns;
use super::{Addend, KC};
use crate::math;
use crate::simd::{LANES, Simd};

/// Most columns.
pub(crate) const FEW: usize = 4;

/// Whether the part is for [`few_columns`].
#[inline(always)]
pub(crate) fn takes<S: Simd>(slab: &Slab, part: &Part) -> bool {
    !S::NARROW && part.width <= FEW && part.n_rows >= LANES / 2 && (!slab.a.table.is_null() || slab.a.k_stride == 1)
}

/// All rows of a part of up to [`FEW`] columns; `false`, with nothing written, if the offsets of the slab lie too far apart.
///
/// # Safety
/// As [`super::micro::rows`].
#[inline(always)]
pub(crate) unsafe fn few_columns<S: Simd>(s: S, slab: &Slab, out: &MicroOut<'_>, part: Part) -> bool {
    // SAFETY: as this function's.
    unsafe {
        match part.width {
            1 => groups::<S, 1>(s, slab, out, part),
            2 => groups::<S, 2>(s, slab, out, part),
            3 => groups::<S, 3>(s, slab, out, part),
            _ => groups::<S, FEW>(s, slab, out, part),
        }
    }
}

/// # Safety
/// As [`few_columns`], with `N` columns.
#[inline(always)]
unsafe fn groups<S: Simd, const N: usize>(s: S, slab: &Slab, out: &MicroOut<'_>, part: Part) -> bool {
    // SAFETY: a table has kc offsets.
    let Some((first, len)) = (unsafe { stretch(&slab.a, slab.kc) }) else { return false };
    let mut turned = [s.splat(0.0); KC];
    let mut row = 0;
    while row < part.n_rows {
        let n = LANES.min(part.n_rows - row);
        let lhs = Columns::of_rows(slab.a.ptr.wrapping_add(row * slab.a.row_stride), slab.a.row_stride, n);
        let c = out.ptr.wrapping_add((part.row + row) * out.row_stride + part.col);
        let mut acc = [s.splat(0.0); N];
        // SAFETY: the rows have all steps of the slab, which lie in first..first + len; the panel has kc steps of a vector of which N
        // columns are used; the output and the epilogue's operands have n rows and N columns from here.
        unsafe {
            if !slab.first {
                for (j, acc) in acc.iter_mut().enumerate() {
                    *acc = lanes(s, n, |lane| c.wrapping_add(lane * out.row_stride + j));
                }
            }
            turn(s, &lhs, first, &mut turned[..len]);
            let mut b = slab.b;
            for k in 0..slab.kc {
                let step = if slab.a.table.is_null() { k } else { *slab.a.table.add(k) as usize - first };
                let a = *turned.get_unchecked(step);
                for (j, acc) in acc.iter_mut().enumerate() {
                    *acc = s.fma(a, s.load1(b.add(j)), *acc);
                }
                b = b.wrapping_add(LANES);
            }
            for (j, acc) in acc.into_iter().enumerate() {
                let x = if slab.last { finish(s, acc, out, part.row + row, part.col + j, n) } else { acc };
                for (lane, x) in s.to_array(x).into_iter().enumerate().take(n) {
                    c.wrapping_add(lane * out.row_stride + j).write(x);
                }
            }
        }
        row += n;
    }
    true
}

/// First element, from a row's pointer, and length of the stretch that the slab's steps lie in; `None` if it is longer than a slab.
///
/// # Safety
/// A table has `kc` offsets.
#[inline(always)]
unsafe fn stretch(a: &SlabA, kc: usize) -> Option<(usize, usize)> {
    if a.table.is_null() {
        return Some((0, kc));
    }
    // SAFETY: as this function's.
    let offsets = unsafe { std::slice::from_raw_parts(a.table, kc) };
    let (min, max) = offsets.iter().fold((u32::MAX, 0), |(min, max), x| (min.min(*x), max.max(*x)));
    let len = (max as usize + 1).checked_sub(min as usize)?;
    (len <= KC).then_some((min as usize, len))
}

/// Vector `i` of `to` = element `first + i` of each row.
///
/// # Safety
/// The rows have these elements.
#[inline(always)]
unsafe fn turn<S: Simd>(s: S, rows: &Columns, first: usize, to: &mut [S::V]) {
    let mut i = 0;
    // SAFETY: as this function's; i stays below the length.
    unsafe {
        while i + 4 <= to.len() {
            let four = rows.four(s, first + i);
            to[i..i + 4].copy_from_slice(&four);
            i += 4;
        }
        while i < to.len() {
            to[i] = rows.one(s, first + i);
            i += 1;
        }
    }
}

/// Lane `i` from `at(i)` for `i < n`, the others +0.
///
/// # Safety
/// The pointers are readable.
#[inline(always)]
unsafe fn lanes<S: Simd>(s: S, n: usize, at: impl Fn(usize) -> *const f32) -> S::V {
    let mut x = [0.0f32; LANES];
    for (lane, x) in x.iter_mut().enumerate().take(n) {
        // SAFETY: as this function's.
        *x = unsafe { at(lane).read_unaligned() };
    }
    // SAFETY: a whole array.
    unsafe { s.load(x.as_ptr()) }
}

/// The epilogue on column `col` of rows `row..row + n`.
///
/// # Safety
/// The epilogue's operands cover them.
#[inline(always)]
unsafe fn finish<S: Simd>(s: S, x: S::V, out: &MicroOut<'_>, row: usize, col: usize, n: usize) -> S::V {
    let epilogue = out.epilogue;
    let mut x = if epilogue.alpha != 1.0 { s.mul(x, s.splat(epilogue.alpha)) } else { x };
    if let Some(bias) = &epilogue.bias {
        // SAFETY: as this function's.
        x = unsafe { add(s, x, bias, row, col, n) };
    }
    if let Some(residual) = &epilogue.residual {
        // SAFETY: as this function's.
        x = unsafe { add(s, x, residual, row, col, n) };
    }
    if epilogue.relu { math::relu(s, x) } else { x }
}

/// # Safety
/// The addend covers column `col` of rows `row..row + n`.
#[inline(always)]
unsafe fn add<S: Simd>(s: S, x: S::V, addend: &Addend<'_>, row: usize, col: usize, n: usize) -> S::V {
    let p = addend.src.as_ptr().wrapping_add(row * addend.row_stride + col * addend.col_stride);
    // SAFETY: as this function's.
    let values = unsafe { lanes(s, n, |lane| p.wrapping_add(lane * addend.row_stride)) };
    s.add(x, s.mul(s.splat(addend.scale), values))
}
