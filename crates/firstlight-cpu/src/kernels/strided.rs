//! Dense outputs from strided inputs: the engine of Transpose, Slice and Expand.

use super::number::read;
use super::runs::Dims;
use super::spread::{STREAM_NS, spread};
use bytemuck::Pod;
use firstlight_backend::KernelCtx;
use firstlight_graph::OpError;
use smallvec::SmallVec;
use std::ops::Range;

/// Edge of the squares in which planes are transposed.
const BLOCK: usize = 16;

/// A view of a dense input: output dimensions with the input's steps in elements, neighbouring dimensions joined.
#[derive(Debug)]
pub(super) struct Strided {
    dims: Dims,
    steps: SmallVec<[isize; 6]>,
    offset: usize,
}

/// Fills output 0 with a view of input 0.
///
/// **Errors**: operands that do not fit; an element type without a width in whole bytes.
pub(super) fn copy_strided(ctx: &mut KernelCtx<'_>, view: &Strided) -> Result<(), OpError> {
    copy_strided_to(ctx, view, 0)
}

/// Fills output `i` with a view of input 0.
///
/// **Errors**: operands that do not fit; an element type without a width in whole bytes.
pub(super) fn copy_strided_to(ctx: &mut KernelCtx<'_>, view: &Strided, i: usize) -> Result<(), OpError> {
    let dtype = ctx.spec(0)?.dtype;
    match dtype.bits() {
        8 => view.fill::<u8>(ctx, i),
        16 => view.fill::<u16>(ctx, i),
        32 => view.fill::<u32>(ctx, i),
        64 => view.fill::<u64>(ctx, i),
        128 => view.fill::<[u64; 2]>(ctx, i),
        _ => Err(OpError::unsupported(format!("elements of {dtype} cannot be moved one by one"))),
    }
}

impl Strided {
    /// A view of given output dimensions, steps and first element.
    pub(super) fn new(dims: &[usize], steps: &[isize], offset: usize) -> Strided {
        let mut view = Strided { dims: Dims::new(), steps: SmallVec::new(), offset };
        for (&dim, &step) in dims.iter().zip(steps) {
            match (view.dims.last_mut(), view.steps.last_mut()) {
                _ if dim == 1 => {}
                (Some(outer), Some(outer_step)) if *outer_step == step.wrapping_mul(dim as isize) => {
                    *outer *= dim;
                    *outer_step = step;
                }
                _ => {
                    view.dims.push(dim);
                    view.steps.push(step);
                }
            }
        }
        view
    }

    /// Step from one element of a run to the next.
    pub(super) fn inner_step(&self) -> isize {
        self.steps.last().copied().unwrap_or(1)
    }

    /// Calls `f(part, at)` for the runs along the innermost dimension that make up output elements `from..from + n`:
    /// `part` of those elements, and the input's element at which it starts.
    pub(super) fn for_each(&self, from: usize, n: usize, mut f: impl FnMut(Range<usize>, usize)) {
        let rank = self.dims.len();
        let len = self.dims.last().copied().unwrap_or(1).max(1);
        let inner_step = self.inner_step();
        let mut index: Dims = SmallVec::from_elem(0, rank);
        let mut rest = from / len;
        let mut within = from % len;
        let outer = rank.saturating_sub(1);
        let mut at = self.offset as isize;
        for d in (0..outer).rev() {
            index[d] = rest % self.dims[d].max(1);
            rest /= self.dims[d].max(1);
            at += index[d] as isize * self.steps[d];
        }
        let mut done = 0;
        while done < n {
            let part = (len - within).min(n - done);
            f(done..done + part, (at + within as isize * inner_step) as usize);
            done += part;
            within = 0;
            for d in (0..outer).rev() {
                index[d] += 1;
                at += self.steps[d];
                if index[d] < self.dims[d] {
                    break;
                }
                at -= index[d] as isize * self.steps[d];
                index[d] = 0;
            }
        }
    }

    /// The dimension along which the input is contiguous, where that is not the innermost one.
    fn contiguous_dim(&self) -> Option<usize> {
        match self.inner_step() {
            0 | 1 => None,
            _ => self.steps.iter().position(|&step| step == 1),
        }
    }

    fn fill<W: Pod + Send>(&self, ctx: &mut KernelCtx<'_>, i: usize) -> Result<(), OpError> {
        let input = ctx.bytes(0)?;
        let out = ctx.output::<W>(i)?;
        let ns = STREAM_NS * 0.25 * size_of::<W>() as f32;
        match self.contiguous_dim() {
            Some(d) => {
                let row = self.dims[d + 1..].iter().product();
                spread(ctx.pool(), out, row, ns + 0.5, &|from, out| self.planes(d, row, input, from / row, out))
            }
            None if matches!(self.inner_step(), 0 | 1) => {
                spread(ctx.pool(), out, 1, ns, &|from, out| self.runs(input, from, out))
            }
            None => spread(ctx.pool(), out, 1, ns + 0.5, &|from, out| self.runs(input, from, out)),
        }
    }

    /// Fills output elements from `from` on, run by run.
    fn runs<W: Pod>(&self, input: &[u8], from: usize, out: &mut [W]) {
        let width = size_of::<W>();
        let step = self.inner_step();
        self.for_each(from, out.len(), |part, at| {
            let n = part.len();
            let out = &mut out[part];
            match step {
                1 => bytemuck::cast_slice_mut(out).copy_from_slice(&input[at * width..][..n * width]),
                0 => out.fill(read(&input[at * width..][..width])),
                2.. => {
                    let from = input[at * width..].chunks(step as usize * width);
                    for (out, from) in out.iter_mut().zip(from) {
                        *out = read(&from[..width]);
                    }
                }
                _ => {
                    let back = step.unsigned_abs();
                    for (i, out) in out.iter_mut().enumerate() {
                        *out = read(&input[(at - i * back) * width..][..width]);
                    }
                }
            }
        });
    }

    /// Fills rows of the output from row `from` on, where a row is all dimensions inside dimension `d`, along which the
    /// input is contiguous: transposes the planes of dimension `d` and the innermost one.
    fn planes<W: Pod>(&self, d: usize, row: usize, input: &[u8], from: usize, out: &mut [W]) {
        let inner = self.dims.last().copied().unwrap_or(1);
        let between = d + 1..self.dims.len() - 1;
        let n_rows = out.len() / row.max(1);
        let mut done = 0;
        while done < n_rows {
            let (outer, first) = ((from + done) / self.dims[d], (from + done) % self.dims[d]);
            let rows = (self.dims[d] - first).min(n_rows - done);
            let base = self.offset as isize + self.distance(0..d, outer) + first as isize;
            for (i, start) in (0..row).step_by(inner.max(1)).enumerate() {
                let at = base + self.distance(between.clone(), i);
                let out = &mut out[done * row + start..];
                transpose(input, at as usize, self.inner_step(), out, row, rows, inner);
            }
            done += rows;
        }
    }

    /// How far into the input element `i` of some dimensions lies, counted in row-major order.
    fn distance(&self, dims: Range<usize>, mut i: usize) -> isize {
        let mut distance = 0;
        for d in dims.rev() {
            distance += (i % self.dims[d]) as isize * self.steps[d];
            i /= self.dims[d];
        }
        distance
    }
}

/// `out[r * row + c] = input[at + r + c * step]` for `rows` x `cols` elements.
fn transpose<W: Pod>(input: &[u8], at: usize, step: isize, out: &mut [W], row: usize, rows: usize, cols: usize) {
    let width = size_of::<W>();
    let column = |r: usize, c: usize| {
        let from = ((at + r) as isize + c as isize * step) as usize;
        &input[from * width..]
    };
    for r in (0..rows).step_by(BLOCK) {
        for c in (0..cols).step_by(BLOCK) {
            if r + BLOCK <= rows && c + BLOCK <= cols {
                let columns: [[W; BLOCK]; BLOCK] = std::array::from_fn(|i| read(&column(r, c + i)[..BLOCK * width]));
                for i in 0..BLOCK {
                    let to: [W; BLOCK] = std::array::from_fn(|j| columns[j][i]);
                    out[(r + i) * row + c..][..BLOCK].copy_from_slice(&to);
                }
                continue;
            }
            for c in c..cols.min(c + BLOCK) {
                let n = BLOCK.min(rows - r);
                let to = out[r * row + c..].iter_mut().step_by(row.max(1));
                for (to, from) in to.zip(column(r, c)[..n * width].chunks_exact(width)) {
                    *to = read(from);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_tensor::{Layout, Shape};

    fn check(input: usize, dims: &[usize], steps: &[isize], offset: usize) {
        let values: Vec<u32> = (0..input as u32).collect();
        let bytes = bytemuck::cast_slice(&values);
        let layout = Layout::strided(&Shape::from(dims), steps, offset, input).unwrap();
        let expected: Vec<u32> = layout.positions().map(|at| values[at]).collect();
        let view = Strided::new(dims, steps, offset);
        let mut out = vec![u32::MAX; expected.len()];
        view.runs(bytes, 0, &mut out);
        assert_eq!(out, expected);
        let Some(d) = view.contiguous_dim() else {
            for from in 0..expected.len() {
                view.runs(bytes, from, &mut out[from..]);
                assert_eq!(out, expected);
            }
            return;
        };
        let row: usize = view.dims[d + 1..].iter().product();
        for from in 0..expected.len() / row {
            out.fill(u32::MAX);
            view.planes(d, row, bytes, from, &mut out[from * row..]);
            assert_eq!(out[from * row..], expected[from * row..]);
        }
    }

    #[test]
    fn views_are_copied() {
        check(24, &[2, 3, 4], &[12, 4, 1], 0);
        check(24, &[4, 3, 2], &[1, 4, 12], 0);
        check(24, &[2, 4, 3], &[12, 1, 4], 0);
        check(24, &[3, 2, 4], &[4, 12, 1], 0);
        check(24, &[3, 4, 2], &[4, 1, 12], 0);
        check(6, &[2, 3, 2], &[0, 2, 0], 1);
        check(24, &[3, 4], &[-8, -2], 23);
        check(24, &[3, 4], &[8, -1], 7);
        check(40 * 33, &[33, 40], &[1, 33], 0);
        check(2 * 3 * 20 * 17, &[2, 17, 3, 20], &[1020, 1, 340, 17], 0);
        check(1, &[], &[], 0);
        check(30, &[5, 3], &[1, 10], 2);
    }
}
