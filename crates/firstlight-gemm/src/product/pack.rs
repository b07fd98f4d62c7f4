//! Panels: some k-steps of some columns of the right operand, each step's columns contiguous and zero-filled to whole vectors.

mod conv;

/// Rows between a row's use and its prefetch.
const AHEAD: usize = 16;

use super::{Matrix, Rhs};
use crate::simd::{LANES, Simd};
pub use conv::{ConvInput, Geometry};
pub(crate) use conv::{LIMIT, lanes_inside, load_strided};

/// Packs k-steps `k0..k0 + kc` of columns `col..col + width` to `to`, `width` rounded up to whole vectors a step.
///
/// # Safety
/// The range lies in `rhs`; `to` is writable for `kc` steps and one vector more.
#[inline(always)]
pub(crate) unsafe fn panel<S: Simd>(s: S, rhs: &Rhs<'_>, k0: usize, kc: usize, col: usize, width: usize, to: *mut f32) {
    // SAFETY: as this function's.
    unsafe {
        match rhs {
            Rhs::RowMajor(b) => row_major(s, b, k0, kc, col, width, to),
            Rhs::Transposed(b) => transposed(s, b, k0, kc, col, width, to),
            Rhs::Conv(input) => conv::windows(s, input, k0, kc, col, width, to),
        }
    }
}

/// # Safety
/// As [`panel`].
#[inline(always)]
unsafe fn row_major<S: Simd>(s: S, b: &Matrix<'_>, k0: usize, kc: usize, col: usize, width: usize, to: *mut f32) {
    let nr = width.div_ceil(LANES) * LANES;
    for k in 0..kc {
        let from = b.src.as_ptr().wrapping_add((k0 + k) * b.row_stride + col);
        let to = to.wrapping_add(k * nr);
        let mut c = 0;
        while c < width {
            // SAFETY: columns below `width` of row k0 + k; a whole vector of step k of the panel.
            unsafe {
                let x = if width - c >= LANES { s.load(from.add(c)) } else { s.load_n(from.add(c), width - c) };
                s.store(to.add(c), x);
            }
            s.prefetch(from.wrapping_add(AHEAD * b.row_stride + c));
            c += LANES;
        }
    }
}

/// # Safety
/// As [`panel`].
#[inline(always)]
unsafe fn transposed<S: Simd>(s: S, b: &Matrix<'_>, k0: usize, kc: usize, col: usize, width: usize, to: *mut f32) {
    let nr = width.div_ceil(LANES) * LANES;
    let mut c = 0;
    while c < width {
        let columns = Columns::new(b, col + c, LANES.min(width - c));
        let mut k = 0;
        while k + 4 <= kc {
            // SAFETY: four steps of columns of the matrix; a whole vector of each of steps k..k + 4 of the panel.
            unsafe {
                for (i, x) in columns.four(s, k0 + k).into_iter().enumerate() {
                    s.store(to.add((k + i) * nr + c), x);
                }
            }
            k += 4;
        }
        while k < kc {
            // SAFETY: as above, for one step.
            unsafe { s.store(to.add(k * nr + c), columns.one(s, k0 + k)) };
            k += 1;
        }
        c += LANES;
    }
}

/// Up to 16 columns of a transposed operand, each contiguous in k. Lanes past the last column repeat it.
#[derive(Clone, Copy)]
pub(crate) struct Columns {
    ptr: *const f32,
    stride: usize,
    last: usize,
}

impl Columns {
    /// `n` columns (1 to 16) from `col` on.
    #[inline(always)]
    pub(crate) fn new(b: &Matrix<'_>, col: usize, n: usize) -> Self {
        Columns { ptr: b.src.as_ptr().wrapping_add(col * b.row_stride), stride: b.row_stride, last: n.max(1) - 1 }
    }

    /// `n` rows (1 to 16) from `ptr` on, `stride` apart.
    #[inline(always)]
    pub(crate) fn of_rows(ptr: *const f32, stride: usize, n: usize) -> Self {
        Columns { ptr, stride, last: n.max(1) - 1 }
    }

    #[inline(always)]
    fn at(&self, lane: usize, k: usize) -> *const f32 {
        self.ptr.wrapping_add(lane.min(self.last) * self.stride + k)
    }

    /// Steps `k..k + 4`, one vector each.
    ///
    /// # Safety
    /// All the columns have these steps.
    #[inline(always)]
    pub(crate) unsafe fn four<S: Simd>(&self, s: S, k: usize) -> [S::V; 4] {
        let mut rows = [s.splat(0.0); 4];
        for (j, row) in rows.iter_mut().enumerate() {
            let p = [self.at(j, k), self.at(j + 4, k), self.at(j + 8, k), self.at(j + 12, k)];
            // SAFETY: four steps of existing columns.
            *row = unsafe { s.load_4x4(p) };
        }
        s.transpose4(rows)
    }

    /// Step `k`.
    ///
    /// # Safety
    /// All the columns have this step.
    #[inline(always)]
    pub(crate) unsafe fn one<S: Simd>(&self, s: S, k: usize) -> S::V {
        // SAFETY: a step of existing columns, then a whole array.
        unsafe {
            let x: [f32; LANES] = std::array::from_fn(|lane| self.at(lane, k).read_unaligned());
            s.load(x.as_ptr())
        }
    }
}
