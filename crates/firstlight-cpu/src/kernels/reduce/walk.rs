//! Where the elements of each result of a reduction lie.

use super::super::number::optional_ints;
use super::super::runs::Dims;
use super::super::strided::Strided;
use firstlight_backend::KernelCtx;
use firstlight_gemm::FoldColumns;
use firstlight_graph::ops::reduce::along::Along;
use firstlight_graph::{OpError, normalise_axis};
use smallvec::SmallVec;

/// The axes of an input, neighbours of one kind joined.
#[derive(Debug)]
pub(in super::super) struct Reduction {
    /// Where the first element of each result lies.
    starts: Strided,
    /// Where the elements of a result lie from its first.
    elements: Strided,
    /// Elements that one result is made from.
    pub(in super::super) n: usize,
    /// Step from a result's first element to the next result's, along the innermost kept axis.
    pub(super) step: usize,
    /// Step from one element of a run to the next.
    stride: usize,
    /// True when neighbouring results lie side by side: the innermost axis is kept.
    pub(super) is_by_rows: bool,
    /// True when the elements of a result are one run.
    is_one_run: bool,
    /// True when there is nothing to read.
    is_empty: bool,
}

impl Reduction {
    /// The reduction of a launch whose op names axes by its second input.
    ///
    /// **Errors**: another op; an output that does not fit.
    pub(super) fn of(ctx: &KernelCtx<'_>) -> Result<Reduction, OpError> {
        let Some(along) = Along::of(ctx.op()) else { return Err(super::super::other_op("a reduction along axes")) };
        let dims = ctx.dims(0)?;
        let axes = optional_ints(ctx, 1)?.unwrap_or_default();
        let mut reduced: SmallVec<[bool; 6]> =
            SmallVec::from_elem(axes.is_empty() && !along.noop_with_empty_axes, dims.rank());
        for &axis in &axes {
            reduced[normalise_axis(axis, dims.rank())?] = true;
        }
        let (reduction, n_results) = Reduction::over(dims, &reduced);
        match ctx.out_dims(0)?.n_elems() == Some(n_results) {
            true => Ok(reduction),
            false => Err(OpError::shape(format!("{dims} reduced over {axes:?} is not {}", ctx.out_dims(0)?))),
        }
    }

    /// The reduction of the axes of which `reduced` holds, and how many results it has.
    pub(in super::super) fn over(dims: &[usize], reduced: &[bool]) -> (Reduction, usize) {
        let mut joined: SmallVec<[(usize, bool); 6]> = SmallVec::new();
        let (mut n, mut n_kept) = (1usize, 1usize);
        for (&dim, &is) in dims.iter().zip(reduced) {
            // A size that saturates goes with one of 0: there is nothing to read then.
            let total = if is { &mut n } else { &mut n_kept };
            *total = total.saturating_mul(dim);
            match joined.last_mut() {
                _ if dim == 1 => {}
                Some((size, kind)) if *kind == is => *size = size.saturating_mul(dim),
                _ => joined.push((dim, is)),
            }
        }
        let group = |wanted: bool| {
            let (mut dims, mut steps): (Dims, SmallVec<[isize; 6]>) = Default::default();
            let mut stride = 1isize;
            for &(dim, is) in joined.iter().rev() {
                if is == wanted {
                    dims.push(dim);
                    steps.push(stride);
                }
                stride = stride.saturating_mul(dim as isize);
            }
            dims.reverse();
            steps.reverse();
            Strided::new(&dims, &steps, 0)
        };
        let (starts, elements) = (group(false), group(true));
        let reduction = Reduction {
            step: starts.inner_step() as usize,
            stride: elements.inner_step() as usize,
            starts,
            elements,
            n,
            is_by_rows: joined.last().is_some_and(|&(_, is)| !is),
            is_one_run: joined.iter().filter(|(_, is)| *is).count() <= 1,
            is_empty: n == 0 || n_kept == 0,
        };
        (reduction, n_kept)
    }

    /// About how long a result takes.
    pub(super) fn ns(&self) -> f32 {
        match self.is_by_rows {
            true => 0.1 * self.n as f32 + 0.5,
            false => 0.08 * self.n as f32 + 8.0,
        }
    }

    /// Calls `f(at, block)` for blocks of `out`, which are results from number `from` on; the first elements of a block's
    /// results lie at `at`, `at + step`, ...
    pub(super) fn blocks<T>(&self, from: usize, out: &mut [T], mut f: impl FnMut(usize, &mut [T])) {
        if self.is_empty {
            return out.chunks_mut(FoldColumns::MOST).for_each(|block| f(0, block));
        }
        self.starts.for_each(from, out.len(), |part, at| {
            for (i, block) in out[part].chunks_mut(FoldColumns::MOST).enumerate() {
                f(at + i * FoldColumns::MOST * self.step, block);
            }
        });
    }

    /// Calls `f(at, n, stride)` for the runs of elements of a result, in order: from its first, `n` elements `stride`
    /// apart.
    pub(super) fn runs(&self, mut f: impl FnMut(usize, usize, usize)) {
        match (self.is_empty, self.is_one_run) {
            (true, _) => {}
            (_, true) => f(0, self.n, self.stride),
            _ => self.elements.for_each(0, self.n, |part, at| f(at, part.len(), self.stride)),
        }
    }
}
