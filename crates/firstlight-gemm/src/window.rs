//! Windows over one plane: depthwise convolution, max and average pooling.
//!
//! A strip of the plane is packed first: padding included, one sub-plane for each phase of the strides that a tap reads, all with
//! the same pitch. Then every tap is one offset, whatever the row, so that lanes run over the strip's outputs as one line; the
//! columns between two rows of it are computed for nothing and left out when rows are written.

use crate::isa::Isa;
use crate::math;
use crate::product::Geometry;
use crate::product::pack::{LIMIT, lanes_inside, load_strided};
use crate::simd::{LANES, Simd};
use crate::src::Src;
use std::ops::Range;

/// f32 of scratch that [`Isa::window_rows`] wants.
pub const WINDOW_SCRATCH_ELEMS: usize = 10 * 1024;
/// Most taps of a kernel along one dimension.
const MAX_TAPS: usize = 16;
/// What loads and stores of whole vectors reach beyond the last element, and the start of a cache line.
const SLACK: usize = 4 * LANES;

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
    /// The sum of the absolute values under the window, taken in order.
    L1,
    /// The square root of the sum of the rounded squares under the window, taken in order.
    L2,
}

/// How planes of one size are gone over: made once, used for each plane.
#[derive(Clone, Copy, Debug)]
pub struct WindowPlan {
    /// Height and width of an input plane.
    size: [usize; 2],
    geometry: Geometry,
    strip: Strip,
    /// Where each tap reads, from the place of an output in a packed strip.
    offsets: [u32; MAX_TAPS * MAX_TAPS],
}

impl WindowPlan {
    /// For planes of `size` (height, width); `None` where the geometry is absurd, has more than 16 taps along a dimension, or
    /// taps that lie too far from each other.
    pub fn new(size: [usize; 2], geometry: Geometry) -> Option<WindowPlan> {
        let few = geometry.kernel.iter().all(|taps| (1..=MAX_TAPS).contains(taps));
        if !few || !geometry.is_sound() || size.iter().any(|size| *size >= LIMIT) {
            return None;
        }
        size[0].checked_mul(size[1])?;
        geometry.out[0].checked_mul(geometry.out[1])?;
        let strip = Strip::fitting(&geometry)?;
        let mut offsets = [0; MAX_TAPS * MAX_TAPS];
        for (i, offset) in offsets[..strip.n_taps()].iter_mut().enumerate() {
            *offset = u32::try_from(strip.offset(i)).ok()?;
        }
        Some(WindowPlan { size, geometry, strip, offsets })
    }

    /// Elements of an input plane.
    pub fn in_elems(&self) -> usize {
        self.size[0] * self.size[1]
    }

    /// Output height and width.
    pub fn out(&self) -> [usize; 2] {
        self.geometry.out
    }
}

impl Isa {
    /// Output rows `rows` of one plane `input` to `out`, which holds just those. `scratch` holds at least
    /// [`WINDOW_SCRATCH_ELEMS`], whatever their values.
    ///
    /// Gives `false`, and writes nothing, if operands do not fit each other.
    #[must_use]
    pub fn window_rows(
        self,
        plan: &WindowPlan,
        window: &Window<'_>,
        input: Src<'_>,
        rows: Range<usize>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> bool {
        let [out_h, out_w] = plan.geometry.out;
        let operands_fit = match window {
            Window::Max | Window::Average { .. } | Window::L1 | Window::L2 => true,
            Window::Depthwise { filter, residual, .. } => {
                filter.len() == plan.strip.n_taps() && residual.is_none_or(|r| r.len() == out_h * out_w)
            }
        };
        let ok = input.len() == plan.in_elems()
            && rows.start <= rows.end
            && rows.end <= out_h
            && out.len() == rows.len() * out_w
            && operands_fit
            && scratch.len() >= WINDOW_SCRATCH_ELEMS;
        if ok && !out.is_empty() {
            // SAFETY: `self` exists only where the CPU has the features; the sizes were checked.
            unsafe { (self.table.window_rows)(plan, window, input, rows, out.as_mut_ptr(), scratch.as_mut_ptr()) }
        }
        ok
    }
}

/// The taps along one dimension: which phase of the stride each reads, and how many steps further on.
#[derive(Clone, Copy, Debug)]
struct Taps {
    n: usize,
    /// Index of the tap's phase among those that occur, in order of first use.
    phase: [usize; MAX_TAPS],
    /// Whole strides before the tap.
    steps: [usize; MAX_TAPS],
    n_phases: usize,
    /// Where each phase starts, below the stride.
    starts: [usize; MAX_TAPS],
    most_steps: usize,
}

impl Taps {
    fn new(n: usize, stride: usize, dilation: usize) -> Taps {
        let none = [0; MAX_TAPS];
        let mut taps = Taps { n, phase: none, steps: none, n_phases: 0, starts: none, most_steps: 0 };
        for tap in 0..n {
            let (steps, start) = (tap * dilation / stride, tap * dilation % stride);
            let known = taps.starts[..taps.n_phases].iter().position(|other| *other == start);
            taps.phase[tap] = known.unwrap_or_else(|| {
                taps.starts[taps.n_phases] = start;
                taps.n_phases += 1;
                taps.n_phases - 1
            });
            taps.steps[tap] = steps;
            taps.most_steps = taps.most_steps.max(steps);
        }
        taps
    }
}

/// How much of a plane is packed at once, and how.
#[derive(Clone, Copy, Debug)]
struct Strip {
    /// Most output rows and columns.
    rows: usize,
    cols: usize,
    down: Taps,
    along: Taps,
}

impl Strip {
    fn new(g: &Geometry, rows: usize, cols: usize) -> Strip {
        let taps = |i: usize| Taps::new(g.kernel[i], g.stride[i], g.dilation[i]);
        Strip { rows, cols, down: taps(0), along: taps(1) }
    }

    /// As many whole output rows as fit in the scratch, in equal strips; or columns of one row. `None` where not one output's
    /// taps fit.
    fn fitting(g: &Geometry) -> Option<Strip> {
        let mut strip = Strip::new(g, 1, g.out[1].max(1));
        while strip.elems() > WINDOW_SCRATCH_ELEMS {
            if strip.cols == 1 {
                return None;
            }
            strip.cols = strip.cols.div_ceil(2);
        }
        let most = 1 + (WINDOW_SCRATCH_ELEMS - strip.elems()) / ((strip.n_phases() + 1) * strip.pitch());
        let rows = g.out[0].max(1);
        strip.rows = rows.div_ceil(rows.div_ceil(most));
        Some(strip)
    }

    fn n_taps(&self) -> usize {
        self.down.n * self.along.n
    }

    /// Where tap `i` reads for the first output.
    fn offset(&self, i: usize) -> usize {
        let (th, tw) = (i / self.along.n, i % self.along.n);
        let phase = self.down.phase[th] * self.along.n_phases + self.along.phase[tw];
        phase * self.phase_elems() + self.down.steps[th] * self.pitch() + self.along.steps[tw]
    }

    fn n_phases(&self) -> usize {
        self.down.n_phases * self.along.n_phases
    }

    /// Packed columns.
    fn pitch(&self) -> usize {
        self.cols.saturating_add(self.along.most_steps)
    }

    /// Elements of one phase.
    fn phase_elems(&self) -> usize {
        self.rows.saturating_add(self.down.most_steps).saturating_mul(self.pitch())
    }

    /// f32 that the packed phases and the results take.
    fn elems(&self) -> usize {
        let results = self.rows.saturating_mul(self.pitch());
        self.phase_elems().saturating_mul(self.n_phases()).saturating_add(results).saturating_add(2 * SLACK)
    }
}

/// # Safety
/// As [`Isa::window_rows`], with its conditions checked and no empty output; `out` is writable for the rows, `scratch` for
/// [`WINDOW_SCRATCH_ELEMS`].
#[inline(always)]
pub(crate) unsafe fn window_rows<S: Simd>(
    s: S,
    plan: &WindowPlan,
    window: &Window<'_>,
    input: Src<'_>,
    rows: Range<usize>,
    out: *mut f32,
    scratch: *mut f32,
) {
    let WindowPlan { geometry: g, strip, .. } = plan;
    let offsets = &plan.offsets[..strip.n_taps()];
    let packed = scratch.wrapping_add(scratch.align_offset(64).min(LANES));
    let results = packed.wrapping_add(strip.phase_elems() * strip.n_phases() + SLACK);
    for row in rows.clone().step_by(strip.rows) {
        let n_rows = strip.rows.min(rows.end - row);
        for col in (0..g.out[1]).step_by(strip.cols) {
            let n_cols = strip.cols.min(g.out[1] - col);
            let n_vectors = ((n_rows - 1) * strip.pitch() + n_cols).div_ceil(LANES);
            // Equal steps, of as many vectors as there are accumulators.
            let most = if S::ACCUMULATORS > 8 { 8 } else { 4 };
            let step = n_vectors.div_ceil(n_vectors.div_ceil(most));
            // SAFETY: the strip fits in the scratch, the rows and columns lie in the output, and the offsets are those of the taps.
            unsafe {
                pack(s, plan, window, input, [row, col], n_rows, packed);
                let mut at = 0;
                while at < n_vectors {
                    let (from, to) = (packed.add(at * LANES), results.add(at * LANES));
                    at += match step.min(n_vectors - at) {
                        8 if S::ACCUMULATORS > 8 => line::<S, 8>(s, window, offsets, from, to),
                        7 if S::ACCUMULATORS > 8 => line::<S, 7>(s, window, offsets, from, to),
                        6 if S::ACCUMULATORS > 8 => line::<S, 6>(s, window, offsets, from, to),
                        5 if S::ACCUMULATORS > 8 => line::<S, 5>(s, window, offsets, from, to),
                        4.. => line::<S, 4>(s, window, offsets, from, to),
                        3 => line::<S, 3>(s, window, offsets, from, to),
                        2 => line::<S, 2>(s, window, offsets, from, to),
                        _ => line::<S, 1>(s, window, offsets, from, to),
                    };
                }
                for r in 0..n_rows {
                    let to = out.add((row + r - rows.start) * g.out[1] + col);
                    write_row(s, plan, window, results.add(r * strip.pitch()), [row + r, col], n_cols, to);
                }
            }
        }
    }
}

/// Packs what the windows of `n_rows` output rows and a strip's columns from `[row, col]` on read.
///
/// # Safety
/// `input` holds a plane; `to` is writable for the phases of the strip and [`SLACK`].
#[inline(always)]
unsafe fn pack<S: Simd>(
    s: S,
    plan: &WindowPlan,
    window: &Window<'_>,
    input: Src<'_>,
    [row, col]: [usize; 2],
    n_rows: usize,
    to: *mut f32,
) {
    let WindowPlan { size: [height, width], geometry: g, strip, .. } = plan;
    let pitch = strip.pitch();
    let fill = match window {
        Window::Depthwise { .. } | Window::Average { .. } | Window::L1 | Window::L2 => 0.0,
        Window::Max => f32::NEG_INFINITY,
    };
    let n_packed = n_rows + strip.down.most_steps;
    for phase in 0..strip.n_phases() {
        let (down, along) = (phase / strip.along.n_phases, phase % strip.along.n_phases);
        let first = (col * g.stride[1] + strip.along.starts[along]) as isize - g.pad[1] as isize;
        let top = (row * g.stride[0] + strip.down.starts[down]) as isize - g.pad[0] as isize;
        // Packed rows that lie in the plane.
        let inside = |rows: isize| rows.max(0) as usize;
        let low = inside(-top).div_ceil(g.stride[0]).min(n_packed);
        let high = inside(*height as isize - top).div_ceil(g.stride[0]).clamp(low, n_packed);
        let to = to.wrapping_add(phase * strip.phase_elems());
        let mut j = 0;
        while j < pitch {
            let start = first + (j * g.stride[1]) as isize;
            let n = LANES.min(pitch - j);
            let (lo, hi) = lanes_inside(start, *width, g.stride[1], n);
            let to = to.wrapping_add(j);
            // SAFETY: lanes lo..hi of rows low..high are positions inside the plane; n lanes of each row are written, and whole
            // vectors only where they reach no further than the row's own end.
            unsafe {
                for i in (0..low).chain(high..n_packed) {
                    s.store_n(to.add(i * pitch), s.splat(fill), n);
                }
                let mut from =
                    input.as_ptr().wrapping_offset((top + (low * g.stride[0]) as isize) * *width as isize + start);
                for i in low..high {
                    let x = load_strided(s, from, g.stride[1], lo, hi);
                    let to = to.add(i * pitch);
                    if n == LANES {
                        s.store(to, x)
                    } else {
                        s.store_n(to, x, n)
                    }
                    from = from.wrapping_add(g.stride[0] * *width);
                }
                if fill != 0.0 && (lo > 0 || hi < n) {
                    for i in low..high {
                        for lane in (0..lo).chain(hi..n) {
                            *to.add(i * pitch + lane) = fill;
                        }
                    }
                }
            }
            j += LANES;
        }
    }
    // What the last vectors read beyond the packed places.
    let end = to.wrapping_add(strip.phase_elems() * strip.n_phases());
    for i in 0..SLACK / LANES - 1 {
        // SAFETY: within the slack.
        unsafe { s.store(end.add(i * LANES), s.splat(0.0)) };
    }
}

/// `N` vectors of results from `from` on, but for the residual and what follows it; gives `N`.
///
/// # Safety
/// Each tap's `N` vectors from `from` on are readable, and `N` vectors at `to` are writable.
#[inline(always)]
unsafe fn line<S: Simd, const N: usize>(
    s: S,
    window: &Window<'_>,
    offsets: &[u32],
    from: *const f32,
    to: *mut f32,
) -> usize {
    let mut acc;
    match window {
        Window::Depthwise { filter, bias, residual, relu } => {
            acc = [s.splat(0.0); N];
            let mut weight = filter.as_ptr();
            for offset in offsets {
                // SAFETY: there are as many weights as taps; the vectors are readable.
                unsafe {
                    let w = s.load1(weight);
                    weight = weight.add(1);
                    let from = from.add(*offset as usize);
                    for (i, acc) in acc.iter_mut().enumerate() {
                        *acc = s.fma(w, s.load(from.add(i * LANES)), *acc);
                    }
                }
            }
            if let Some(bias) = bias {
                let bias = s.splat(*bias);
                acc.iter_mut().for_each(|acc| *acc = s.add(*acc, bias));
            }
            if residual.is_none() && *relu {
                acc.iter_mut().for_each(|acc| *acc = math::relu(s, *acc));
            }
        }
        Window::Average { .. } => {
            // SAFETY: as this function's.
            acc = unsafe {
                sums(
                    s,
                    offsets,
                    from,
                    #[inline(always)]
                    |x| x,
                )
            };
        }
        Window::L1 => {
            // SAFETY: as this function's.
            acc = unsafe {
                sums(
                    s,
                    offsets,
                    from,
                    #[inline(always)]
                    |x| s.abs(x),
                )
            };
        }
        Window::L2 => {
            // SAFETY: as this function's.
            acc = unsafe {
                sums(
                    s,
                    offsets,
                    from,
                    #[inline(always)]
                    |x| s.mul(x, x),
                )
            };
            acc.iter_mut().for_each(|acc| *acc = s.sqrt(*acc));
        }
        Window::Max => {
            acc = [s.splat(f32::NEG_INFINITY); N];
            for offset in offsets {
                let from = from.wrapping_add(*offset as usize);
                for (i, acc) in acc.iter_mut().enumerate() {
                    // SAFETY: the vectors are readable.
                    *acc = s.max(unsafe { s.load(from.add(i * LANES)) }, *acc);
                }
            }
        }
    }
    for (i, acc) in acc.into_iter().enumerate() {
        // SAFETY: the vectors are writable.
        unsafe { s.store(to.add(i * LANES), acc) };
    }
    N
}

/// `N` vectors of sums of a function of what each tap reads, from +0.
///
/// # Safety
/// Each tap's `N` vectors from `from` on are readable.
#[inline(always)]
unsafe fn sums<S: Simd, const N: usize>(
    s: S,
    offsets: &[u32],
    from: *const f32,
    term: impl Fn(S::V) -> S::V,
) -> [S::V; N] {
    let mut acc = [s.splat(0.0); N];
    for offset in offsets {
        let from = from.wrapping_add(*offset as usize);
        for (i, acc) in acc.iter_mut().enumerate() {
            // SAFETY: the vectors are readable.
            *acc = s.add(*acc, term(unsafe { s.load(from.add(i * LANES)) }));
        }
    }
    acc
}

/// Writes `n` results of one output row, which starts at `[row, col]` of the output's plane.
///
/// # Safety
/// `from` is readable for whole vectors that hold `n`; `to` is writable for `n`; the places lie in the plane.
#[inline(always)]
unsafe fn write_row<S: Simd>(
    s: S,
    plan: &WindowPlan,
    window: &Window<'_>,
    from: *const f32,
    [row, col]: [usize; 2],
    n: usize,
    to: *mut f32,
) {
    let n_rows = match window {
        Window::Average { counted_pad_end } => count(plan, 0, counted_pad_end.as_ref(), row) as f32,
        Window::Depthwise { .. } | Window::Max | Window::L1 | Window::L2 => 1.0,
    };
    let mut at = 0;
    while at < n {
        let left = LANES.min(n - at);
        // SAFETY: as this function's.
        unsafe {
            let mut x = s.load(from.add(at));
            match window {
                Window::Depthwise { residual: Some(residual), relu, .. } => {
                    let place = row * plan.geometry.out[1] + col + at;
                    x = s.add(x, s.load_n(residual.as_ptr().add(place), left));
                    if *relu {
                        x = math::relu(s, x);
                    }
                }
                Window::Average { counted_pad_end } => {
                    let columns = counts(s, plan, counted_pad_end.as_ref(), col + at, left);
                    x = s.div(x, s.mul(columns, s.splat(n_rows)));
                }
                Window::Depthwise { .. } | Window::Max | Window::L1 | Window::L2 => {}
            }
            if left == LANES { s.store(to.add(at), x) } else { s.store_n(to.add(at), x, left) }
        }
        at += left;
    }
}

/// How many taps of a window lie in the plane along dimension `d`, or in the plane and its padding.
#[inline(always)]
fn count(plan: &WindowPlan, d: usize, pad_end: Option<&[usize; 2]>, window: usize) -> usize {
    let g = &plan.geometry;
    let (size, pad) = (plan.size[d], g.pad[d]);
    let (lo, hi) = pad_end.map_or((pad, pad + size), |pad_end| (0, (pad + size).saturating_add(pad_end[d])));
    let from = window * g.stride[d];
    // Taps before a place.
    let before = |place: usize| match g.dilation[d] {
        1 => place.saturating_sub(from),
        dilation => place.saturating_sub(from).div_ceil(dilation),
    };
    before(hi).min(g.kernel[d]).saturating_sub(before(lo))
}

/// [`count`] along a row of `n` windows from `col` on.
#[inline(always)]
fn counts<S: Simd>(s: S, plan: &WindowPlan, pad_end: Option<&[usize; 2]>, col: usize, n: usize) -> S::V {
    let kernel = plan.geometry.kernel[1];
    let of = |window: usize| count(plan, 1, pad_end, window);
    // Windows between two whole ones are whole.
    if of(col) == kernel && of(col + n - 1) == kernel {
        return s.splat(kernel as f32);
    }
    let counts: [f32; LANES] = std::array::from_fn(|i| if i < n { of(col + i) as f32 } else { 1.0 });
    // SAFETY: a whole array.
    unsafe { s.load(counts.as_ptr()) }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
