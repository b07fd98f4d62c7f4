//! The windows of a 2-D convolution (1-D: height 1) as panels.
//!
//! A panel's columns are consecutive output pixels, so they fall into runs along the output's rows. For one tap (kh, kw) a run reads
//! one row of the input at the convolution's stride, and the same places in every channel: the runs are laid out once a tap and
//! replayed for each channel of the block. Padding is the masked-out lanes.

use crate::simd::{LANES, Simd};
use crate::src::Src;

/// Channels of a block: the inner part of a convolution's k order.
pub(crate) const CHANNEL_BLOCK: usize = 16;

/// One image of one group, and how a kernel moves over it.
///
/// The output size is the caller's; what windows reach beyond the image counts as +0.
#[derive(Clone, Copy, Debug)]
pub struct ConvInput<'a> {
    pub(crate) src: Src<'a>,
    pub(crate) channels: usize,
    pub(crate) size: [usize; 2],
    pub(crate) geometry: Geometry,
}

/// How a kernel moves: `[height, width]` each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Taps.
    pub kernel: [usize; 2],
    /// Step between output pixels.
    pub stride: [usize; 2],
    /// Step between taps.
    pub dilation: [usize; 2],
    /// Padding before the first row and column.
    pub pad: [usize; 2],
    /// Output size.
    pub out: [usize; 2],
}

/// Bound on every size, so that positions fit in `isize` with room to spare.
pub(crate) const LIMIT: usize = 1 << 31;

impl Geometry {
    /// Whether sizes are small enough for exact positions, and strides and dilations are not zero.
    pub(crate) fn is_sound(&self) -> bool {
        let Geometry { kernel, stride, dilation, pad, out } = self;
        (0..2).all(|i| {
            let reach = kernel[i].checked_mul(dilation[i]);
            let span = out[i].checked_mul(stride[i]);
            let small = [reach, span, Some(pad[i])].iter().all(|x| x.is_some_and(|x| x < LIMIT));
            small && stride[i] > 0 && dilation[i] > 0
        })
    }
}

impl<'a> ConvInput<'a> {
    /// `channels` planes of `size` (height, width), contiguous in `src`; `None` if they do not fit or the geometry is absurd.
    pub fn new(src: Src<'a>, channels: usize, size: [usize; 2], geometry: Geometry) -> Option<Self> {
        let elems = size[0].checked_mul(size[1])?.checked_mul(channels)?;
        let taps = geometry.kernel[0].checked_mul(geometry.kernel[1])?;
        taps.checked_mul(channels)?;
        geometry.out[0].checked_mul(geometry.out[1])?;
        let small = size[0] < LIMIT && size[1] < LIMIT && geometry.is_sound();
        (small && elems <= src.len()).then_some(ConvInput { src, channels, size, geometry })
    }

    /// Number of k-steps: channels times taps.
    pub fn k(&self) -> usize {
        self.channels * self.geometry.kernel[0] * self.geometry.kernel[1]
    }

    /// Number of output pixels.
    pub fn n(&self) -> usize {
        self.geometry.out[0] * self.geometry.out[1]
    }

    /// k-steps of a whole channel block.
    pub(crate) fn steps_per_block(&self) -> usize {
        (self.geometry.kernel[0] * self.geometry.kernel[1]).saturating_mul(CHANNEL_BLOCK)
    }

    /// Fills `offsets` with the place of each k-step in one filter stored `[channel][kh][kw]`: the table for
    /// [`super::super::Lhs::with_offsets`]. `false` if the length is not [`ConvInput::k`] or an offset needs more than 32 bits.
    pub fn filter_offsets(&self, offsets: &mut [u32]) -> bool {
        let taps = self.geometry.kernel[0] * self.geometry.kernel[1];
        if offsets.len() != self.k() || u32::try_from(self.k()).is_err() {
            return false;
        }
        let mut at = offsets.iter_mut();
        for block in (0..self.channels).step_by(CHANNEL_BLOCK) {
            for tap in 0..taps {
                for c in block..self.channels.min(block + CHANNEL_BLOCK) {
                    if let Some(at) = at.next() {
                        *at = (c * taps + tap) as u32;
                    }
                }
            }
        }
        true
    }
}

/// Lanes of `0..n` whose place `start + lane * stride` lies in a row of `width`.
#[inline(always)]
pub(crate) fn lanes_inside(start: isize, width: usize, stride: usize, n: usize) -> (usize, usize) {
    let ceil = |x: isize| match x {
        ..=0 => 0,
        x if stride == 1 => x as usize,
        x => (x as usize).div_ceil(stride),
    };
    let hi = ceil(width as isize - start).min(n);
    (ceil(-start).min(hi), hi)
}

/// Lanes `lo..hi` from `from + lane * stride`, the others +0.
///
/// # Safety
/// The places of lanes `lo..hi`, and what lies between them, are readable; `hi <= 16`.
#[inline(always)]
pub(crate) unsafe fn load_strided<S: Simd>(s: S, from: *const f32, stride: usize, lo: usize, hi: usize) -> S::V {
    // SAFETY: as this function's.
    unsafe {
        match stride {
            1 => s.load_range(from, lo, hi),
            2 => s.load_range_2(from, lo, hi),
            stride => {
                let mut x = [0.0f32; LANES];
                for (lane, x) in x.iter_mut().enumerate().take(hi).skip(lo) {
                    *x = from.wrapping_add(lane * stride).read_unaligned();
                }
                s.load(x.as_ptr())
            }
        }
    }
}

/// Up to 16 columns of a panel that lie in one output row.
#[derive(Clone, Copy, Default)]
struct Run {
    /// First column of the panel.
    column: usize,
    n: usize,
    oh: usize,
    ow: usize,
}

/// A run under one tap: lanes `lo..hi` come from the channel's `start + lane * stride`, the others are +0.
#[derive(Clone, Copy, Default)]
struct Reach {
    start: isize,
    lo: usize,
    hi: usize,
}

/// # Safety
/// As [`super::panel`].
#[inline(always)]
pub(super) unsafe fn windows<S: Simd>(
    s: S,
    input: &ConvInput<'_>,
    k0: usize,
    kc: usize,
    col: usize,
    width: usize,
    to: *mut f32,
) {
    let ConvInput { src, channels, size: [height, in_width], geometry: g } = input;
    let nr = width.div_ceil(LANES) * LANES;

    let mut runs = [Run::default(); super::super::NR];
    let mut n_runs = 0;
    let (mut oh, mut ow, mut column) = (col / g.out[1], col % g.out[1], 0);
    while column < width {
        let n = LANES.min(width - column).min(g.out[1] - ow);
        runs[n_runs] = Run { column, n, oh, ow };
        n_runs += 1;
        column += n;
        ow += n;
        if ow == g.out[1] {
            (oh, ow) = (oh + 1, 0);
        }
    }
    let runs = &runs[..n_runs];

    let taps = g.kernel[0] * g.kernel[1];
    let plane = height * in_width;
    let mut block = k0 / (CHANNEL_BLOCK * taps) * CHANNEL_BLOCK;
    let mut in_block = CHANNEL_BLOCK.min(channels - block);
    let (mut tap, mut c) = ((k0 - block * taps) / in_block, (k0 - block * taps) % in_block);
    let mut k = 0;
    let mut to = to;
    while k < kc {
        let (dh, dw) = (tap / g.kernel[1] * g.dilation[0], tap % g.kernel[1] * g.dilation[1]);
        let mut reaches = [Reach::default(); super::super::NR];
        for (run, reach) in runs.iter().zip(&mut reaches) {
            let ih = (run.oh * g.stride[0] + dh) as isize - g.pad[0] as isize;
            let iw = (run.ow * g.stride[1] + dw) as isize - g.pad[1] as isize;
            if ih >= 0 && ih < *height as isize {
                let (lo, hi) = lanes_inside(iw, *in_width, g.stride[1], run.n);
                *reach = Reach { start: ih * *in_width as isize + iw, lo, hi };
            }
        }
        let n_channels = (in_block - c).min(kc - k);
        let from = src.as_ptr().wrapping_add((block + c) * plane);
        for (run, reach) in runs.iter().zip(&reaches) {
            let from = from.wrapping_offset(reach.start);
            let to = to.wrapping_add(run.column);
            // Whole vectors where what they write too much is overwritten by the next run.
            let room = nr - run.column;
            for c in 0..n_channels {
                let (from, to) = (from.wrapping_add(c * plane), to.wrapping_add(c * nr));
                // SAFETY: lanes lo..hi are positions inside a channel; what is written lies in one step of the panel.
                unsafe {
                    let x = load_strided(s, from, g.stride[1], reach.lo, reach.hi);
                    if room >= LANES { s.store(to, x) } else { s.store_n(to, x, room) }
                }
            }
        }
        // Columns past the last one are +0, so that no junk slows the arithmetic.
        if width < nr {
            for c in 0..n_channels {
                // SAFETY: the rest of one step of the panel.
                unsafe { s.store_n(to.add(c * nr + width), s.splat(0.0), nr - width) };
            }
        }
        to = to.wrapping_add(n_channels * nr);
        k += n_channels;
        c = 0;
        tap += 1;
        if tap == taps {
            tap = 0;
            block += CHANNEL_BLOCK;
            in_block = CHANNEL_BLOCK.min(channels.saturating_sub(block)).max(1);
        }
    }
}
