//! Matrix products: the operands, the tile driver, and what happens to a sum before it is written.
//!
//! `out[m, n] = epilogue(sum over k of lhs[m, k] * rhs[k, n])`, each sum in ascending k with one FMA a step. A caller cuts
//! `out` into tiles, in any way and order, and calls [`Isa::product_tile`] for each; the bits do not depend on the cut.
//!
//! - `micro.rs`: MR x NR register tiles over one packed (or in-place) slab of `rhs`;
//! - `pack.rs`: panels of `rhs`, from row-major, transposed and convolution inputs;
//! - `few.rs`: few columns of `rhs`, `lhs` turned round;
//! - `small.rs`: few rows of `lhs`, `rhs` read in place.

pub(crate) mod few;
pub(crate) mod micro;
pub(crate) mod pack;
pub(crate) mod small;

use crate::isa::Isa;
use crate::simd::{LANES, Simd};
use crate::src::Src;
use micro::{MicroOut, Part, Slab, SlabA};
use std::marker::PhantomData;
use std::ops::Range;

pub use pack::{ConvInput, Geometry};

/// Columns of a full panel.
pub const NR: usize = 48;
/// Most k-steps of a slab: a panel of it about fills the first-level cache. Two channel blocks of 3x3 taps.
pub(crate) const KC: usize = 288;
/// Panels that share one pass over the rows of `lhs`.
pub(crate) const PANELS: usize = 4;
/// Rows that share a slab of panels before the next rows.
const ROW_BLOCK: usize = 48;
/// Rows up to which a matrix on the right is read in place, without scratch.
pub const SMALL_M: usize = 8;

/// f32 of scratch that [`Isa::product_tile`] wants for a tile of any size: panels, the overhang of their last store, alignment.
pub const PRODUCT_SCRATCH_ELEMS: usize = KC * NR * PANELS + 2 * LANES;

/// The left operand: `rows` rows, each with the same sequence of k-steps.
#[derive(Clone, Copy, Debug)]
pub struct Lhs<'a> {
    src: Src<'a>,
    rows: usize,
    row_stride: usize,
    steps: Steps<'a>,
}

/// Where the k-th factor of a row lies, in elements from the row's start.
#[derive(Clone, Copy, Debug)]
enum Steps<'a> {
    Stride { k: usize, stride: usize },
    Table(&'a [u32]),
}

impl<'a> Lhs<'a> {
    /// Element (m, k) at `m * row_stride + k * k_stride` of `src`; `None` if the last one lies outside it.
    pub fn strided(src: Src<'a>, rows: usize, row_stride: usize, k: usize, k_stride: usize) -> Option<Self> {
        let within = fits(src.len(), [(rows, row_stride), (k, k_stride)]);
        within.then_some(Lhs { src, rows, row_stride, steps: Steps::Stride { k, stride: k_stride } })
    }

    /// Element (m, k) at `m * row_stride + offsets[k]` of `src`; `None` if one lies outside it.
    pub fn with_offsets(src: Src<'a>, rows: usize, row_stride: usize, offsets: &'a [u32]) -> Option<Self> {
        let span = offsets.iter().max().map_or(0, |max| *max as usize + 1);
        let within = offsets.is_empty() || fits(src.len(), [(rows, row_stride), (span, 1)]);
        within.then_some(Lhs { src, rows, row_stride, steps: Steps::Table(offsets) })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of k-steps.
    pub fn k(&self) -> usize {
        match self.steps {
            Steps::Stride { k, .. } => k,
            Steps::Table(offsets) => offsets.len(),
        }
    }

    /// Rows from `row` on, k-steps from `k` on; the row must exist if there are any steps.
    fn slab(&self, row: usize, k: usize) -> SlabA {
        let start = self.src.as_ptr().wrapping_add(row * self.row_stride);
        let (ptr, k_stride, table, near) = match self.steps {
            Steps::Stride { stride, .. } => {
                let ptr = start.wrapping_add(k * stride);
                (ptr, stride, std::ptr::null(), ptr)
            }
            Steps::Table(offsets) => (start, 0, offsets.as_ptr().wrapping_add(k), start.wrapping_add(k)),
        };
        SlabA { ptr, row_stride: self.row_stride, k_stride, table, near }
    }
}

/// The right operand.
#[derive(Clone, Copy, Debug)]
pub enum Rhs<'a> {
    /// Row-major, made by [`Rhs::row_major`].
    RowMajor(Matrix<'a>),
    /// Element (k, n) in row n, column k; made by [`Rhs::transposed`].
    Transposed(Matrix<'a>),
    /// The windows of a convolution: k runs over `(channel block of 16, kh, kw, channel)`, n over output pixels.
    Conv(ConvInput<'a>),
}

/// Rows of contiguous values, any distance apart.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    pub(crate) src: Src<'a>,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) row_stride: usize,
}

impl<'a> Matrix<'a> {
    fn new(src: Src<'a>, rows: usize, cols: usize, row_stride: usize) -> Option<Self> {
        fits(src.len(), [(rows, row_stride), (cols, 1)]).then_some(Matrix { src, rows, cols, row_stride })
    }
}

impl<'a> Rhs<'a> {
    /// Element (k, n) at `k * row_stride + n` of `src`; `None` if the last one lies outside it.
    pub fn row_major(src: Src<'a>, k: usize, n: usize, row_stride: usize) -> Option<Self> {
        Matrix::new(src, k, n, row_stride).map(Rhs::RowMajor)
    }

    /// Element (k, n) at `n * row_stride + k` of `src`; `None` if the last one lies outside it.
    pub fn transposed(src: Src<'a>, k: usize, n: usize, row_stride: usize) -> Option<Self> {
        Matrix::new(src, n, k, row_stride).map(Rhs::Transposed)
    }

    /// Number of k-steps.
    pub fn k(&self) -> usize {
        match self {
            Rhs::RowMajor(b) => b.rows,
            Rhs::Transposed(b) => b.cols,
            Rhs::Conv(input) => input.k(),
        }
    }

    /// Number of columns.
    pub fn n(&self) -> usize {
        match self {
            Rhs::RowMajor(b) => b.cols,
            Rhs::Transposed(b) => b.rows,
            Rhs::Conv(input) => input.n(),
        }
    }
}

/// Values added to the product: element (m, n) is `scale * src[m * row_stride + n * col_stride]`.
#[derive(Clone, Copy, Debug)]
pub struct Addend<'a> {
    /// The values.
    pub src: Src<'a>,
    /// Distance between rows; 0 repeats one row.
    pub row_stride: usize,
    /// 1 for a matrix or a row vector, 0 for a column vector or a scalar. Nothing else.
    pub col_stride: usize,
    /// Multiplied first, as a rounding of its own.
    pub scale: f32,
}

/// What happens to a finished sum, in field order; each step rounds by itself.
#[derive(Clone, Copy, Debug)]
pub struct Epilogue<'a> {
    /// Multiplies the sum.
    pub alpha: f32,
    /// Added first: bias, or Gemm's C.
    pub bias: Option<Addend<'a>>,
    /// Added second: a fused Add. It must not overlap the output.
    pub residual: Option<Addend<'a>>,
    /// Whether results that are not greater than 0 become +0.
    pub relu: bool,
    /// What is done to results at the end, as soon as a block of them is complete.
    pub finish: Option<Finish<'a>>,
}

impl Default for Epilogue<'_> {
    fn default() -> Self {
        Epilogue { alpha: 1.0, bias: None, residual: None, relu: false, finish: None }
    }
}

/// A function of finished results, in place. Each result is given once.
#[derive(Clone, Copy)]
pub struct Finish<'a>(pub &'a (dyn Fn(Block<'_>) + Sync));

impl std::fmt::Debug for Finish<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Finish")
    }
}

/// A block of finished results that is read and written in place, part by part: the row and the column of a part's first
/// result, and those that follow it in the output. A part is a row of the block, or all of it where rows are whole.
#[derive(Debug)]
pub struct Block<'a> {
    out: Out<'a>,
    rows: Range<usize>,
    cols: Range<usize>,
}

impl Block<'_> {
    /// The most results of a part.
    pub fn part_len(&self) -> usize {
        let n_rows = if self.cols.len() == self.out.row_stride { self.rows.len() } else { 1 };
        n_rows * self.cols.len()
    }
}

impl<'a> Iterator for Block<'a> {
    type Item = (usize, usize, &'a mut [f32]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rows.is_empty() {
            return None;
        }
        let (row, len) = (self.rows.start, self.part_len());
        let first = self.out.ptr.wrapping_add(row * self.out.row_stride + self.cols.start);
        self.rows.start = if len == self.cols.len() { row + 1 } else { self.rows.end };
        // SAFETY: part of the output, which whoever made the block has to itself; each part is given once.
        Some((row, self.cols.start, unsafe { std::slice::from_raw_parts_mut(first, len) }))
    }
}

impl Epilogue<'_> {
    /// Runs `finish` on a block of the output.
    ///
    /// # Safety
    /// The range lies within the output, and nobody else accesses it.
    unsafe fn finish_block(&self, out: &Out<'_>, rows: Range<usize>, cols: Range<usize>) {
        if let Some(Finish(finish)) = self.finish {
            finish(Block { out: *out, rows, cols });
        }
    }
}

/// A whole product.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// Left operand.
    pub lhs: Lhs<'a>,
    /// Right operand; its k equals that of `lhs`.
    pub rhs: Rhs<'a>,
    /// What is done to each sum.
    pub epilogue: Epilogue<'a>,
}

/// The output of a product: a row-major matrix that tiles are written into, by several threads if they are disjoint.
#[derive(Clone, Copy, Debug)]
pub struct Out<'a> {
    ptr: *mut f32,
    rows: usize,
    cols: usize,
    row_stride: usize,
    lifetime: PhantomData<&'a mut [f32]>,
}

// SAFETY: an `Out` is a pointer that only the unsafe tile functions write through, and they demand disjoint tiles.
unsafe impl Send for Out<'_> {}
// SAFETY: as above.
unsafe impl Sync for Out<'_> {}

impl<'a> Out<'a> {
    /// `rows x cols` values, `row_stride` apart; `None` if they do not fit in `out` or rows overlap.
    pub fn new(out: &'a mut [f32], rows: usize, cols: usize, row_stride: usize) -> Option<Self> {
        let within = fits(out.len(), [(rows, row_stride), (cols, 1)]) && (row_stride >= cols || rows <= 1);
        within.then_some(Out { ptr: out.as_mut_ptr(), rows, cols, row_stride, lifetime: PhantomData })
    }

    /// `n` of the rows, from `start` on; `None` if there are not that many.
    pub fn rows(self, start: usize, n: usize) -> Option<Self> {
        let within = start.checked_add(n).is_some_and(|end| end <= self.rows);
        within.then_some(Out { ptr: self.ptr.wrapping_add(start * self.row_stride), rows: n, ..self })
    }

    /// The same from a pointer.
    ///
    /// # Safety
    /// `rows x cols` values `row_stride` apart from `ptr` are writable for `'a`, and rows do not overlap.
    pub unsafe fn from_raw(ptr: *mut f32, rows: usize, cols: usize, row_stride: usize) -> Self {
        Out { ptr, rows, cols, row_stride, lifetime: PhantomData }
    }
}

/// Whether the last element of a strided block lies below `len`.
fn fits(len: usize, dims: [(usize, usize); 2]) -> bool {
    if dims.iter().any(|(n, _)| *n == 0) {
        return true;
    }
    let last = dims.iter().try_fold(0usize, |sum, (n, stride)| sum.checked_add((n - 1).checked_mul(*stride)?));
    last.is_some_and(|last| last < len)
}

impl Addend<'_> {
    fn covers(&self, rows: usize, cols: usize) -> bool {
        self.col_stride <= 1 && fits(self.src.len(), [(rows, self.row_stride), (cols, self.col_stride)])
    }
}

impl Isa {
    /// Writes a whole product to `out`, row after row; gives `false`, and writes nothing, if the operands, the output or the scratch do
    /// not fit each other. Scratch as for [`Isa::product_tile`].
    #[must_use]
    pub fn product(self, product: &Product<'_>, out: &mut [f32], scratch: &mut [f32]) -> bool {
        let (m, n) = (product.lhs.rows(), product.rhs.n());
        // SAFETY: the output is borrowed mutably, and operands are borrowed too, so that they do not overlap.
        Out::new(out, m, n, n).is_some_and(|out| unsafe { self.product_tile(product, out, 0..m, 0..n, scratch) })
    }

    /// Writes the tile `rows x cols` of `out`; gives `false`, and writes nothing, if the operands, the output or the scratch do not fit
    /// the tile or each other.
    ///
    /// `scratch` holds at least [`PRODUCT_SCRATCH_ELEMS`], whatever their values; none are needed for up to [`SMALL_M`] rows of a product
    /// by a matrix.
    ///
    /// # Safety
    /// During the call nobody else accesses the values of `out` in `rows x cols`, and no operand overlaps them.
    #[must_use]
    pub unsafe fn product_tile(
        self,
        product: &Product<'_>,
        out: Out<'_>,
        rows: Range<usize>,
        cols: Range<usize>,
        scratch: &mut [f32],
    ) -> bool {
        let Product { lhs, rhs, epilogue } = product;
        let addends_fit = [epilogue.bias, epilogue.residual].iter().flatten().all(|a| a.covers(rows.end, cols.end));
        let ok = lhs.k() == rhs.k()
            && rows.end <= lhs.rows.min(out.rows)
            && cols.end <= rhs.n().min(out.cols)
            && addends_fit
            && (scratch.len() >= PRODUCT_SCRATCH_ELEMS || (rows.len() <= SMALL_M && !matches!(rhs, Rhs::Conv(_))));
        if ok && rows.start < rows.end && cols.start < cols.end {
            // SAFETY: `self` exists only where the CPU has the features; the ranges lie in all operands and the output, which the
            // caller has to itself; the scratch is long enough.
            unsafe { (self.table.product_tile)(product, out, rows, cols, scratch.as_mut_ptr()) }
        }
        ok
    }
}

/// k-steps of a slab: equal slabs, and of a convolution whole channel blocks, whose filters lie together.
#[inline(always)]
fn slab_steps(rhs: &Rhs<'_>, k: usize) -> usize {
    let unit = match rhs {
        Rhs::Conv(input) => input.steps_per_block(),
        _ => LANES,
    };
    if unit == 0 || unit > KC {
        return KC;
    }
    k.div_ceil(k.div_ceil(KC / unit * unit)).next_multiple_of(unit)
}

/// # Safety
/// As [`Isa::product_tile`], with its conditions checked and no empty range; `scratch` is writable for
/// [`PRODUCT_SCRATCH_ELEMS`] f32 unless none are needed.
#[inline(always)]
pub(crate) unsafe fn product_tile<S: Simd>(
    s: S,
    product: &Product<'_>,
    out: Out<'_>,
    rows: Range<usize>,
    cols: Range<usize>,
    scratch: *mut f32,
) {
    let Product { lhs, rhs, epilogue } = product;
    let k = lhs.k();
    let micro_out = MicroOut { ptr: out.ptr, row_stride: out.row_stride, epilogue };
    if k == 0 {
        // SAFETY: the range lies within the output.
        unsafe {
            micro::finish_empty(s, &micro_out, rows.clone(), cols.clone());
            return epilogue.finish_block(&out, rows, cols);
        }
    }
    if rows.len() <= SMALL_M {
        // SAFETY: as this function's.
        unsafe {
            let is_done = match rhs {
                Rhs::RowMajor(b) => {
                    (s.table().row_major)(lhs, b, &micro_out, rows.clone(), cols.clone());
                    true
                }
                Rhs::Transposed(b) => {
                    (s.table().transposed)(lhs, b, &micro_out, rows.clone(), cols.clone());
                    true
                }
                Rhs::Conv(_) => false,
            };
            if is_done {
                return epilogue.finish_block(&out, rows, cols);
            }
        }
    }
    let slab_steps = slab_steps(rhs, k);
    // Panels start on a cache line.
    let scratch = scratch.wrapping_add(scratch.align_offset(64).min(LANES));
    let mut col = cols.start;
    while col < cols.end {
        let group = (NR * PANELS).min(cols.end - col);
        let mut k0 = 0;
        while k0 < k {
            let kc = slab_steps.min(k - k0);
            let mut done = 0;
            while done < group {
                let width = NR.min(group - done);
                // SAFETY: the panel starts KC * done into the scratch, and its overhang is within it.
                unsafe { (s.table().panel)(rhs, k0, kc, col + done, width, scratch.add(KC * done)) };
                done += width;
            }
            // Row blocks outside, panels inside: a block of `lhs` stays in the cache for all panels.
            let mut row = rows.start;
            while row < rows.end {
                let n_rows = ROW_BLOCK.min(rows.end - row);
                let mut done = 0;
                while done < group {
                    let width = NR.min(group - done);
                    let slab = Slab {
                        // SAFETY: within the scratch, as above.
                        b: unsafe { scratch.add(KC * done) },
                        a: lhs.slab(row, k0),
                        kc,
                        first: k0 == 0,
                        last: k0 + kc == k,
                    };
                    let part = Part { row, n_rows, col: col + done, width };
                    // SAFETY: the panel has kc steps of whole vectors; the rows and columns lie in the operands and the output.
                    unsafe {
                        if !(few::takes::<S>(&slab, &part) && (s.table().few_columns)(&slab, &micro_out, part)) {
                            micro::rows(s, &slab, &micro_out, part);
                        }
                    }
                    done += width;
                }
                if k0 + kc == k {
                    // SAFETY: the block lies within the tile.
                    unsafe { epilogue.finish_block(&out, row..row + n_rows, col..col + group) };
                }
                row += n_rows;
            }
            k0 += kc;
        }
        col += group;
    }
}

#[cfg(test)]
mod tests;
