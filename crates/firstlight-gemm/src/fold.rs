//! Reductions in pieces: accumulators that elements enter run by run or row by row, in the order of `docs/numerics.md`.
//!
//! Elements are numbered as they come, whatever the pieces: number `i` enters accumulator `i % 16`.

use crate::isa::Isa;
use crate::math;
use crate::simd::{LANES, Simd};
use crate::src::Src;

/// What is accumulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// The sum; +0 for no elements.
    Sum,
    /// The sum of the absolute values; +0 for no elements.
    SumAbs,
    /// The sum of the rounded squares of the rounded differences from a shift; +0 for no elements.
    SumSquares,
    /// The sum of the exponentials of the rounded differences from a shift; +0 for no elements.
    SumExps,
    /// The product; 1 for no elements.
    Product,
    /// The greatest; NaN wins; -inf for no elements.
    Max,
    /// The least; NaN wins; +inf for no elements.
    Min,
}

impl Fold {
    /// What accumulators start from.
    pub fn start(self) -> f32 {
        match self {
            Fold::Sum | Fold::SumAbs | Fold::SumSquares | Fold::SumExps => 0.0,
            Fold::Product => 1.0,
            Fold::Max => f32::NEG_INFINITY,
            Fold::Min => f32::INFINITY,
        }
    }
}

/// The accumulators of one result, whose elements come in contiguous runs.
#[derive(Clone, Copy, Debug)]
pub struct FoldLanes {
    fold: Fold,
    shift: f32,
    lanes: [f32; LANES],
    next: usize,
}

impl FoldLanes {
    /// Accumulators of no elements; `shift` matters to the folds that subtract one.
    pub fn new(fold: Fold, shift: f32) -> FoldLanes {
        FoldLanes { fold, shift, lanes: [fold.start(); LANES], next: 0 }
    }

    /// Takes the next elements.
    pub fn add<'a>(&mut self, isa: Isa, x: impl Into<Src<'a>>) {
        let x = x.into();
        // SAFETY: `isa` exists only where the CPU has the features; `next` is below 16.
        unsafe { (isa.table.fold_run)(self.fold, self.shift, x.as_ptr(), x.len(), self.lanes.as_mut_ptr(), self.next) }
        self.next = (self.next + x.len()) % LANES;
    }

    /// The result.
    pub fn finish(&self) -> f32 {
        let mut lanes = self.lanes;
        let mut half = LANES / 2;
        while half > 0 {
            for i in 0..half {
                lanes[i] = combined(self.fold, lanes[i], lanes[i + half]);
            }
            half /= 2;
        }
        lanes[0]
    }
}

fn combined(fold: Fold, a: f32, b: f32) -> f32 {
    match fold {
        Fold::Sum | Fold::SumAbs | Fold::SumSquares | Fold::SumExps => a + b,
        Fold::Product => a * b,
        Fold::Max => {
            if b > a || b.is_nan() {
                b
            } else {
                a
            }
        }
        Fold::Min => {
            if b < a || b.is_nan() {
                b
            } else {
                a
            }
        }
    }
}

/// The accumulators of up to [`FoldColumns::MOST`] results side by side, whose elements come in rows.
#[derive(Clone, Debug)]
pub struct FoldColumns {
    fold: Fold,
    shifts: [f32; FoldColumns::MOST],
    lanes: [[f32; FoldColumns::MOST]; LANES],
    width: usize,
    next: usize,
}

impl FoldColumns {
    /// Results that are kept side by side at most.
    pub const MOST: usize = 64;

    /// Accumulators of no elements for `width` results; `shifts` matter to the folds that subtract one, and where there
    /// are fewer than results the others are 0.
    pub fn new(fold: Fold, width: usize, shifts: &[f32]) -> FoldColumns {
        let width = width.min(FoldColumns::MOST);
        let lanes = [[fold.start(); FoldColumns::MOST]; LANES];
        let mut columns = FoldColumns { fold, shifts: [0.0; FoldColumns::MOST], lanes, width, next: 0 };
        columns.shifts.iter_mut().zip(shifts).for_each(|(to, &shift)| *to = shift);
        columns
    }

    /// Takes the next `rows` elements of each result: `x[i * stride + j]` for result `j`. Rows of `x` that do not lie in
    /// it whole are left out.
    pub fn add<'a>(&mut self, isa: Isa, x: impl Into<Src<'a>>, rows: usize, stride: usize) {
        let x = x.into();
        let fits = match x.len().checked_sub(self.width) {
            None => 0,
            Some(_) if stride == 0 => rows,
            Some(spare) => rows.min(spare / stride + 1),
        };
        let (shifts, lanes) = (self.shifts.as_ptr(), self.lanes.as_mut_ptr().cast());
        let x = Rows { x: x.as_ptr(), rows: fits, stride, width: self.width };
        // SAFETY: `isa` exists only where the CPU has the features; the last row that fits ends within x, the width is
        // at most `MOST`, for which shifts and lanes have room, and `next` is below 16.
        unsafe { (isa.table.fold_rows)(self.fold, shifts, &x, lanes, self.next) }
        self.next = (self.next + fits) % LANES;
    }

    /// Writes the results.
    pub fn finish(&self, isa: Isa, out: &mut [f32]) {
        let n = self.width.min(out.len());
        // SAFETY: `isa` exists only where the CPU has the features; the lanes have `MOST` columns and `out` has n.
        unsafe { (isa.table.fold_finish)(self.fold, self.lanes.as_ptr().cast(), out.as_mut_ptr(), n) }
    }
}

/// Calls a macro's arm for each fold, so that the match is outside the loops.
macro_rules! each_fold {
    ($fold:expr, $arm:ident) => {
        match $fold {
            Fold::Sum => $arm!(Sum),
            Fold::SumAbs => $arm!(SumAbs),
            Fold::SumSquares => $arm!(SumSquares),
            Fold::SumExps => $arm!(SumExps),
            Fold::Product => $arm!(Product),
            Fold::Max => $arm!(Max),
            Fold::Min => $arm!(Min),
        }
    };
}

#[inline(always)]
fn step<S: Simd>(s: S, fold: Fold, acc: S::V, x: S::V, shift: S::V) -> S::V {
    match fold {
        Fold::Sum => s.add(acc, x),
        Fold::SumAbs => s.add(acc, s.abs(x)),
        Fold::SumSquares => {
            let difference = s.sub(x, shift);
            s.add(acc, s.mul(difference, difference))
        }
        Fold::SumExps => s.add(acc, math::exp(s, s.sub(x, shift))),
        Fold::Product => s.mul(acc, x),
        Fold::Max => math::max_step(s, acc, x),
        Fold::Min => math::min_step(s, acc, x),
    }
}

#[inline(always)]
fn combine<S: Simd>(s: S, fold: Fold, a: S::V, b: S::V) -> S::V {
    match fold {
        Fold::Sum | Fold::SumAbs | Fold::SumSquares | Fold::SumExps => s.add(a, b),
        Fold::Product => s.mul(a, b),
        Fold::Max => math::max_step(s, a, b),
        Fold::Min => math::min_step(s, a, b),
    }
}

/// Takes `n` elements, the first of which enters lane `first`.
///
/// # Safety
/// `x` is readable for `n` f32, `lanes` for 16 and writable; `first` is below 16.
#[inline(always)]
pub(crate) unsafe fn fold_run<S: Simd>(
    s: S,
    fold: Fold,
    shift: f32,
    x: *const f32,
    n: usize,
    lanes: *mut f32,
    first: usize,
) {
    macro_rules! arm {
        ($fold:ident) => {
            // SAFETY: the caller's promise is this call's.
            unsafe { run(s, Fold::$fold, s.splat(shift), x, n, lanes, first) }
        };
    }
    each_fold!(fold, arm)
}

/// # Safety
/// As [`fold_run`].
#[inline(always)]
unsafe fn run<S: Simd>(s: S, fold: Fold, shift: S::V, x: *const f32, n: usize, lanes: *mut f32, first: usize) {
    let mut i = (LANES - first) % LANES;
    // SAFETY: every access is to elements below n, lanes `first..` of the head included, and to the 16 lanes.
    unsafe {
        let mut acc = s.load(lanes);
        if first > 0 {
            i = i.min(n);
            let head = s.load_range(x.wrapping_sub(first), first, first + i);
            acc = part(s, fold, acc, head, shift, first, first + i);
        }
        while i + LANES <= n {
            acc = step(s, fold, acc, s.load(x.add(i)), shift);
            i += LANES;
        }
        if i < n {
            acc = part(s, fold, acc, s.load_n(x.add(i), n - i), shift, 0, n - i);
        }
        s.store(lanes, acc);
    }
}

/// A step of lanes `lo..hi`; the others of `x` are +0.
#[inline(always)]
fn part<S: Simd>(s: S, fold: Fold, acc: S::V, x: S::V, shift: S::V, lo: usize, hi: usize) -> S::V {
    let next = step(s, fold, acc, x, shift);
    if matches!(fold, Fold::Sum | Fold::SumAbs) {
        // A lane of a sum is never -0, so that +0 leaves it as it is.
        return next;
    }
    let (mut lanes, next) = (s.to_array(acc), s.to_array(next));
    lanes[lo..hi].copy_from_slice(&next[lo..hi]);
    // SAFETY: the array holds 16 f32.
    unsafe { s.load(lanes.as_ptr()) }
}

/// Rows of `width` f32, `stride` apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    x: *const f32,
    rows: usize,
    stride: usize,
    width: usize,
}

/// Takes an element of each column from each row, the first of which enter row `first` of the accumulators.
///
/// # Safety
/// The rows are readable, `shifts` for [`FoldColumns::MOST`] f32, which is no less than the width; `lanes` holds 16
/// writable rows of as many; `first` is below 16.
#[inline(always)]
pub(crate) unsafe fn fold_rows<S: Simd>(s: S, fold: Fold, shifts: *const f32, x: &Rows, lanes: *mut f32, first: usize) {
    let Rows { x, rows, stride, width } = *x;
    macro_rules! arm {
        ($fold:ident) => {
            for i in 0..rows {
                // SAFETY: row (first + i) % 16 of the accumulators, and row i of x.
                let (row, x) = unsafe { (lanes.add((first + i) % LANES * FoldColumns::MOST), x.add(i * stride)) };
                let mut j = 0;
                while j < width {
                    let n = LANES.min(width - j);
                    // SAFETY: `width` is at most MOST, a multiple of 16, so that 16 columns from j on are there; of x
                    // only columns below the width are read.
                    unsafe {
                        let x = if n == LANES { s.load(x.add(j)) } else { s.load_n(x.add(j), n) };
                        s.store(row.add(j), step(s, Fold::$fold, s.load(row.add(j)), x, s.load(shifts.add(j))));
                    }
                    j += LANES;
                }
            }
        };
    }
    each_fold!(fold, arm)
}

/// Combines the 16 accumulators of each of `n` columns.
///
/// # Safety
/// `lanes` holds 16 rows of [`FoldColumns::MOST`] f32, which is no less than `n`; `out` is writable for `n`.
#[inline(always)]
pub(crate) unsafe fn fold_finish<S: Simd>(s: S, fold: Fold, lanes: *const f32, out: *mut f32, n: usize) {
    let mut j = 0;
    while j < n {
        let mut acc = [s.splat(0.0); LANES];
        for (i, acc) in acc.iter_mut().enumerate() {
            // SAFETY: MOST is a multiple of 16, so that 16 columns from j on are there.
            *acc = unsafe { s.load(lanes.add(i * FoldColumns::MOST + j)) };
        }
        let mut half = LANES / 2;
        while half > 0 {
            for i in 0..half {
                acc[i] = combine(s, fold, acc[i], acc[i + half]);
            }
            half /= 2;
        }
        // SAFETY: columns j.. below n of the output.
        unsafe { s.store_n(out.add(j), acc[0], LANES.min(n - j)) };
        j += LANES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IsaKind;

    const FOLDS: [Fold; 7] =
        [Fold::Sum, Fold::SumAbs, Fold::SumSquares, Fold::SumExps, Fold::Product, Fold::Max, Fold::Min];

    fn values(n: usize) -> Vec<f32> {
        let value = |i: usize| ((i * 7919 + 13) % 1009) as f32 / 311.0 - 1.5;
        (0..n).map(value).collect()
    }

    /// The definition, element by element.
    fn plain(fold: Fold, shift: f32, x: impl Iterator<Item = f32>) -> f32 {
        let mut lanes = FoldLanes::new(fold, shift);
        for (i, x) in x.enumerate() {
            let difference = x - shift;
            let mut exp = [difference];
            Isa::portable().unary_in_place(crate::Unary::Exp, &mut exp);
            let entry = match fold {
                Fold::SumAbs => x.abs(),
                Fold::SumSquares => difference * difference,
                Fold::SumExps => exp[0],
                _ => x,
            };
            lanes.lanes[i % LANES] = combined(fold, lanes.lanes[i % LANES], entry);
        }
        lanes.finish()
    }

    #[test]
    fn pieces_and_instruction_sets_make_no_difference() {
        for isa in IsaKind::ALL.into_iter().filter_map(Isa::of) {
            for fold in FOLDS {
                for n in [0, 1, 7, 16, 17, 40, 131] {
                    let x = values(n);
                    let want = plain(fold, 0.5, x.iter().copied());
                    for piece in [1, 3, 16, 21, 200] {
                        let mut lanes = FoldLanes::new(fold, 0.5);
                        x.chunks(piece).for_each(|x| lanes.add(isa, x));
                        let got = lanes.finish();
                        assert_eq!(got.to_bits(), want.to_bits(), "{isa:?} {fold:?} {n} by {piece}: {got} {want}");
                    }
                }
            }
        }
    }

    #[test]
    fn columns_are_what_runs_are() {
        for isa in IsaKind::ALL.into_iter().filter_map(Isa::of) {
            for fold in FOLDS {
                for (rows, width, stride) in [(0, 3, 3), (1, 64, 64), (5, 17, 20), (40, 33, 33), (35, 1, 2)] {
                    let x = values(40 * 64);
                    let shifts: Vec<f32> = (0..width).map(|j| j as f32 * 0.1).collect();
                    let mut columns = FoldColumns::new(fold, width, &shifts);
                    let half = rows / 2;
                    columns.add(isa, &x, half, stride);
                    columns.add(isa, &x[half * stride..], rows - half, stride);
                    let mut out = vec![0.0; width];
                    columns.finish(isa, &mut out);
                    for (j, got) in out.iter().enumerate() {
                        let want = plain(fold, shifts[j], (0..rows).map(|i| x[i * stride + j]));
                        assert_eq!(got.to_bits(), want.to_bits(), "{isa:?} {fold:?} {rows}x{width}, {j}");
                    }
                }
            }
        }
    }

    #[test]
    fn nan_wins_and_no_elements_give_the_start() {
        let isa = Isa::detect();
        for fold in [Fold::Max, Fold::Min] {
            for at in 0..20 {
                let mut x = values(20);
                x[at] = f32::NAN;
                let mut lanes = FoldLanes::new(fold, 0.0);
                lanes.add(isa, &x);
                assert!(lanes.finish().is_nan());
            }
        }
        for fold in FOLDS {
            assert_eq!(FoldLanes::new(fold, 0.0).finish(), fold.start());
        }
        // Rows that do not lie in the source whole are left out.
        let mut columns = FoldColumns::new(Fold::Sum, 2, &[]);
        columns.add(isa, &[1.0, 2.0, 3.0], 5, 2);
        let mut out = [0.0; 2];
        columns.finish(isa, &mut out);
        assert_eq!(out, [1.0, 2.0]);
    }
}
