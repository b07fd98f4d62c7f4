//! ReduceMean.

use super::number::{optional_ints, read};
use super::real::{Lanes, Math, Real};
use super::rows::row;
use super::runs::Dims;
use super::spread::spread;
use super::strided::Strided;
use bytemuck::Pod;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_gemm::{Binary, Isa, Reduce, Src};
use firstlight_graph::{Op, OpError, OpKind, normalise_axis};
use firstlight_tensor::DType::{BF16, F16, F32, F64, I32, I64, U32, U64};
use firstlight_tensor::{bf16, f16};
use smallvec::SmallVec;

pub(super) const BINDINGS: &[KernelBinding] = &[
    row(OpKind::ReduceMean, &[F32], mean_f32),
    row(OpKind::ReduceMean, &[F64], mean_of_floats::<f64>),
    row(OpKind::ReduceMean, &[F16], mean_of_floats::<f16>),
    row(OpKind::ReduceMean, &[BF16], mean_of_floats::<bf16>),
    row(OpKind::ReduceMean, &[I64], |ctx| mean_of_ints(ctx, |x: i64| x.into(), |x| x as i64)),
    row(OpKind::ReduceMean, &[I32], |ctx| mean_of_ints(ctx, |x: i32| x.into(), |x| x as i32)),
    row(OpKind::ReduceMean, &[U64], |ctx| mean_of_ints(ctx, |x: u64| x.into(), |x| x as u64)),
    row(OpKind::ReduceMean, &[U32], |ctx| mean_of_ints(ctx, |x: u32| x.into(), |x| x as u32)),
];

/// The dimensions of an input, neighbours of one kind joined.
#[derive(Debug)]
struct Reduction {
    /// Sizes, and whether each is reduced; no size is 1.
    dims: SmallVec<[(usize, bool); 6]>,
    /// Elements that one output element is made from.
    n: usize,
}

impl Reduction {
    fn of(ctx: &KernelCtx<'_>) -> Result<Reduction, OpError> {
        let Op::ReduceMean(op) = ctx.op() else { return Err(super::other_op("ReduceMean")) };
        let dims = ctx.dims(0)?;
        let axes = optional_ints(ctx, 1)?.unwrap_or_default();
        let mut reduced: SmallVec<[bool; 6]> =
            SmallVec::from_elem(axes.is_empty() && !op.noop_with_empty_axes, dims.rank());
        for &axis in &axes {
            reduced[normalise_axis(axis, dims.rank())?] = true;
        }
        let mut joined: SmallVec<[(usize, bool); 6]> = SmallVec::new();
        let (mut n, mut n_kept) = (1usize, 1usize);
        for (&dim, &is) in dims.iter().zip(&reduced) {
            // A size that saturates goes with one of 0: there is nothing to read then.
            let total = if is { &mut n } else { &mut n_kept };
            *total = total.saturating_mul(dim);
            match joined.last_mut() {
                _ if dim == 1 => {}
                Some((size, kind)) if *kind == is => *size = size.saturating_mul(dim),
                _ => joined.push((dim, is)),
            }
        }
        match ctx.out_dims(0)?.n_elems() == Some(n_kept) {
            true => Ok(Reduction { dims: joined, n }),
            false => Err(OpError::shape(format!("a mean of {dims} over {axes:?} is not {}", ctx.out_dims(0)?))),
        }
    }

    /// Where the first element of each output element lies.
    fn starts(&self) -> Strided {
        self.group(false)
    }

    /// Where the elements of an output element lie from its first.
    fn elements(&self) -> Strided {
        self.group(true)
    }

    fn group(&self, reduced: bool) -> Strided {
        let (mut dims, mut steps): (Dims, SmallVec<[isize; 6]>) = Default::default();
        let mut stride = 1isize;
        for &(dim, is) in self.dims.iter().rev() {
            if is == reduced {
                dims.push(dim);
                steps.push(stride);
            }
            stride = stride.saturating_mul(dim as isize);
        }
        dims.reverse();
        steps.reverse();
        Strided::new(&dims, &steps, 0)
    }

    /// Calls `f(element)` for the elements of the output element whose first lies at `start`, in order.
    fn each<T: Pod>(elements: &Strided, n: usize, data: &[u8], start: usize, mut f: impl FnMut(T)) {
        let (step, width) = (elements.inner_step() as usize, size_of::<T>());
        elements.for_each(0, n, |part, at| {
            for i in 0..part.len() {
                f(read(&data[(start + at + i * step) * width..][..width]));
            }
        });
    }
}

fn mean_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let reduction = Reduction::of(ctx)?;
    let n = reduction.n;
    let isa = Isa::detect();
    let data = Src::from_bytes(ctx.bytes(0)?);
    // Sizes of what is kept outside and inside the reduced dimension, where there is one at most.
    let (inner, ns) = match reduction.dims[..] {
        [] | [(_, true)] | [(_, false), (_, true)] => (1, 0.08 * n as f32 + 5.0),
        [(_, true), (inner, false)] | [(_, false), (_, true), (inner, false)] => (inner, 0.1 * n as f32),
        _ => return mean_of_floats::<f32>(ctx),
    };
    if n == 0 || data.is_empty() {
        return mean_of_floats::<f32>(ctx);
    }
    let out = ctx.output::<f32>(0)?;
    spread(ctx.pool(), out, 1, ns, &|from, out| {
        if inner == 1 {
            for (i, out) in out.iter_mut().enumerate() {
                *out = isa.reduce(Reduce::Sum, data.slice((from + i) * n, n)) / n as f32;
            }
            return;
        }
        let mut done = 0;
        while done < out.len() {
            let (outer, column) = ((from + done) / inner, (from + done) % inner);
            let width = (inner - column).min(out.len() - done);
            let to = &mut out[done..done + width];
            let plane = data.slice(outer * n * inner + column, (n - 1) * inner + width);
            isa.reduce_rows(Reduce::Sum, plane, n, inner, to);
            isa.binary_scalar_in_place(Binary::Div, to, n as f32);
            done += width;
        }
    })
}

fn mean_of_floats<T: Real>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let count = |n: usize| T::Math::of(n as f64);
    mean(ctx, |each, n| {
        let mut lanes = Lanes::new();
        each(&mut |x: T| lanes.add(x.widen()));
        T::narrow(lanes.sum() / count(n))
    })
}

fn mean_of_ints<T: Pod + Send>(
    ctx: &mut KernelCtx<'_>,
    widen: impl Fn(T) -> i128 + Sync,
    narrow: impl Fn(i128) -> T + Sync,
) -> Result<(), OpError> {
    mean(ctx, |each, n| {
        let mut sum = 0i128;
        each(&mut |x: T| sum += widen(x));
        narrow(sum.checked_div(n as i128).unwrap_or(0))
    })
}

/// Fills the output with `f` of its elements' walks: `f` is handed a function that calls another for every element, and
/// how many there are.
fn mean<T: Pod + Send>(
    ctx: &mut KernelCtx<'_>,
    f: impl Fn(&dyn Fn(&mut dyn FnMut(T)), usize) -> T + Sync,
) -> Result<(), OpError> {
    let reduction = Reduction::of(ctx)?;
    let (starts, elements, n) = (reduction.starts(), reduction.elements(), reduction.n);
    let data = ctx.bytes(0)?;
    let out = ctx.output::<T>(0)?;
    if data.is_empty() {
        out.fill(f(&|_| {}, n));
        return Ok(());
    }
    let step = starts.inner_step() as usize;
    spread(ctx.pool(), out, 1, 2.0 * n as f32, &|from, out| {
        starts.for_each(from, out.len(), |part, start| {
            for (i, out) in out[part].iter_mut().enumerate() {
                *out = f(&|each| Reduction::each(&elements, n, data, start + i * step, each), n);
            }
        });
    })
}
