//! Windows over one plane: depthwise convolution, max and average pooling.
//!
//! Lanes run along an output row; four output rows share each tap's place and weight. What lies in the padding is a masked-out
//! lane: +0 for a convolution (its product is accumulated) and for a mean, absent for a maximum.

use crate::isa::Isa;
use crate::math;
use crate::product::ConvInput;
use crate::simd::{LANES, Simd};
use crate::src::Src;
use std::ops::Range;

/// Output rows of a block.
const ROWS: usize = 4;
/// Taps along a row whose places are laid out at once.
const TAPS: usize = 16;

/// What windows compute.
#[derive(Clone, Copy, Debug)]
pub enum Window<'a> {
    /// One channel of a depthwise convolution.
    Depthwise {
        /// `kh * kw` weights.
        filter: Src<'a>,
        /// Added to the sum.
        bias: Option<f32>,
        /// A plane like the output, added next. It must not overlap the output.
        residual: Option<Src<'a>>,
        /// Whether results that are not greater than 0 become +0 at the end.
        relu: bool,
    },
    /// The greatest value under the window; NaN and padding are passed over; -inf where there is nothing.
    Max,
    /// The mean of the values under the window: their sum, taken in order, divided by how many they are.
    Average {
        /// How far the padding reaches below and to the right of the plane, where its zeros count as values.
        counted_pad_end: Option<[usize; 2]>,
    },
}

impl Isa {
    /// Output rows `rows` of one plane to `out`, which holds just those. `input` has one channel.
    ///
    /// Gives `false`, and writes nothing, if operands do not fit each other.
    #[must_use]
    pub fn window_rows(self, window: &Window<'_>, input: &ConvInput<'_>, rows: Range<usize>, out: &mut [f32]) -> bool {
        let [out_h, out_w] = input.geometry.out;
        let [kh, kw] = input.geometry.kernel;
        let operands_fit = match window {
            Window::Max | Window::Average { .. } => true,
            Window::Depthwise { filter, residual, .. } => {
                filter.len() == kh * kw && residual.is_none_or(|r| r.len() == out_h * out_w)
            }
        };
        let ok = input.channels == 1
            && rows.start <= rows.end
            && rows.end <= out_h
            && out.len() == rows.len() * out_w
            && operands_fit;
        if ok {
            // SAFETY: `self` exists only where the CPU has the features; the sizes were checked.
            unsafe { (self.table.window_rows)(window, input, rows, out.as_mut_ptr()) }
        }
        ok
    }
}

/// A vector's place under one tap of a row.
#[derive(Clone, Copy)]
struct Tap<V> {
    start: isize,
    lo: usize,
    hi: usize,
    /// -0 in lanes `lo..hi`, -inf in the others; adding it changes nothing but absent lanes.
    fill: V,
}

/// # Safety
/// As [`Isa::window_rows`], with its conditions checked; `out` is writable for the rows.
#[inline(always)]
pub(crate) unsafe fn window_rows<S: Simd>(
    s: S,
    window: &Window<'_>,
    input: &ConvInput<'_>,
    rows: Range<usize>,
    out: *mut f32,
) {
    let mut row = rows.start;
    while row < rows.end {
        let to = out.wrapping_add((row - rows.start) * input.geometry.out[1]);
        // SAFETY: the rows lie in the output; the rest as this function's.
        unsafe {
            if rows.end - row >= ROWS {
                block::<S, ROWS>(s, window, input, row, to);
                row += ROWS;
            } else {
                block::<S, 1>(s, window, input, row, to);
                row += 1;
            }
        }
    }
}

/// `N` output rows from `row` on.
///
/// # Safety
/// As [`window_rows`]; `out` is writable for `N` rows.
#[inline(always)]
unsafe fn block<S: Simd, const N: usize>(s: S, window: &Window<'_>, input: &ConvInput<'_>, row: usize, out: *mut f32) {
    let g = &input.geometry;
    let [kh, kw] = g.kernel;
    let start = match window {
        Window::Depthwise { .. } | Window::Average { .. } => 0.0,
        Window::Max => f32::NEG_INFINITY,
    };
    let mut ow = 0;
    while ow < g.out[1] {
        let n = LANES.min(g.out[1] - ow);
        let mut acc = [s.splat(start); N];
        if kw <= TAPS {
            let taps = lay_out(s, input, ow, n, 0);
            for th in 0..kh {
                // SAFETY: as this function's; the taps are those of this vector.
                unsafe { along(s, window, input, &mut acc, row, th, 0, &taps[..kw]) };
            }
        } else {
            for th in 0..kh {
                let mut first = 0;
                while first < kw {
                    let taps = lay_out(s, input, ow, n, first);
                    // SAFETY: as this function's; the taps are those of this vector.
                    unsafe { along(s, window, input, &mut acc, row, th, first, &taps[..TAPS.min(kw - first)]) };
                    first += TAPS;
                }
            }
        }
        let columns = match window {
            Window::Average { counted_pad_end } => counts(s, input, counted_pad_end.as_ref(), ow, n),
            Window::Depthwise { .. } | Window::Max => s.splat(1.0),
        };
        for (r, acc) in acc.into_iter().enumerate() {
            let mut x = acc;
            if let Window::Average { counted_pad_end } = window {
                let n_rows = count(input, 0, counted_pad_end.as_ref(), row + r);
                x = s.div(x, s.mul(columns, s.splat(n_rows as f32)));
            }
            if let Window::Depthwise { bias, residual, relu, .. } = window {
                if let Some(bias) = bias {
                    x = s.add(x, s.splat(*bias));
                }
                if let Some(residual) = residual {
                    // SAFETY: n lanes of row `row + r` of a plane like the output.
                    x = s.add(x, unsafe { s.load_n(residual.as_ptr().add((row + r) * g.out[1] + ow), n) });
                }
                if *relu {
                    x = math::relu(s, x);
                }
            }
            // SAFETY: n lanes of row r of the output.
            unsafe { s.store_n(out.add(r * g.out[1] + ow), x, n) };
        }
        ow += n;
    }
}

/// The places of up to [`TAPS`] taps from `first` on, for `n` output columns from `ow` on.
#[inline(always)]
fn lay_out<S: Simd>(s: S, input: &ConvInput<'_>, ow: usize, n: usize, first: usize) -> [Tap<S::V>; TAPS] {
    let g = &input.geometry;
    let mut taps = [Tap { start: 0, lo: 0, hi: 0, fill: s.splat(-0.0) }; TAPS];
    for (i, tap) in taps.iter_mut().enumerate().take(g.kernel[1].saturating_sub(first)) {
        let start = (ow * g.stride[1] + (first + i) * g.dilation[1]) as isize - g.pad[1] as isize;
        let (lo, hi) = input.lanes_inside(start, n);
        *tap = Tap { start, lo, hi, fill: s.splat(-0.0) };
        if lo > 0 || hi < LANES {
            let fill: [f32; LANES] = std::array::from_fn(|i| if lo <= i && i < hi { -0.0 } else { f32::NEG_INFINITY });
            // SAFETY: a whole array.
            tap.fill = unsafe { s.load(fill.as_ptr()) };
        }
    }
    taps
}

/// How many taps of a window lie in the plane along dimension `d`, or in the plane and its padding.
#[inline(always)]
fn count(input: &ConvInput<'_>, d: usize, pad_end: Option<&[usize; 2]>, window: usize) -> usize {
    let g = &input.geometry;
    let (size, pad) = (input.size[d], g.pad[d]);
    let (lo, hi) = pad_end.map_or((pad, pad + size), |pad_end| (0, (pad + size).saturating_add(pad_end[d])));
    let from = window * g.stride[d];
    // Taps before a place.
    let before = |place: usize| match g.dilation[d] {
        1 => place.saturating_sub(from),
        dilation => place.saturating_sub(from).div_ceil(dilation),
    };
    before(hi).min(g.kernel[d]).saturating_sub(before(lo))
}

/// [`count`] along a row of `n` windows from `ow` on.
#[inline(always)]
fn counts<S: Simd>(s: S, input: &ConvInput<'_>, pad_end: Option<&[usize; 2]>, ow: usize, n: usize) -> S::V {
    let kernel = input.geometry.kernel[1];
    let of = |window: usize| count(input, 1, pad_end, window);
    // Windows between two whole ones are whole.
    if of(ow) == kernel && of(ow + n - 1) == kernel {
        return s.splat(kernel as f32);
    }
    let counts: [f32; LANES] = std::array::from_fn(|i| if i < n { of(ow + i) as f32 } else { 1.0 });
    // SAFETY: a whole array.
    unsafe { s.load(counts.as_ptr()) }
}

/// Accumulates taps `first..` of kernel row `th` for `N` output rows.
///
/// # Safety
/// As [`block`]; `taps` are laid out for `input`.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
unsafe fn along<S: Simd, const N: usize>(
    s: S,
    window: &Window<'_>,
    input: &ConvInput<'_>,
    acc: &mut [S::V; N],
    row: usize,
    th: usize,
    first: usize,
    taps: &[Tap<S::V>],
) {
    let g = &input.geometry;
    for (i, tap) in taps.iter().enumerate() {
        let weight = match window {
            // SAFETY: the filter has kh * kw weights.
            Window::Depthwise { filter, .. } => unsafe { s.load1(filter.as_ptr().add(th * g.kernel[1] + first + i)) },
            Window::Max | Window::Average { .. } => s.splat(0.0),
        };
        for (r, acc) in acc.iter_mut().enumerate() {
            let ih = ((row + r) * g.stride[0] + th * g.dilation[0]) as isize - g.pad[0] as isize;
            let inside = ih >= 0 && ih < input.size[0] as isize;
            let x = if inside {
                let from = input.src.as_ptr().wrapping_offset(ih * input.size[1] as isize + tap.start);
                // SAFETY: lanes lo..hi are positions inside row ih.
                unsafe { input.load(s, from, tap.lo, tap.hi) }
            } else {
                s.splat(0.0)
            };
            match window {
                Window::Depthwise { .. } => *acc = s.fma(weight, x, *acc),
                Window::Max if inside => *acc = s.max(s.add(x, tap.fill), *acc),
                Window::Average { .. } if inside => *acc = s.add(*acc, x),
                Window::Max | Window::Average { .. } => {}
            }
        }
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
