//! ArgMax and ArgMin.

use super::number::{Number, read};
use super::rows::{joined, row};
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_gemm::{Isa, Reduce, Src};
use firstlight_graph::ops::reduce::arg::Arg;
use firstlight_graph::{Op, OpError, OpKind, normalise_axis};
use firstlight_tensor::DType::F32;
use firstlight_tensor::{bf16, f16};

pub(super) const BINDINGS: &[KernelBinding] = &joined::<24>(&[
    &[row(OpKind::ArgMax, &[F32], in_rows), row(OpKind::ArgMin, &[F32], in_rows)],
    &both::<f64>(),
    &both::<f16>(),
    &both::<bf16>(),
    &both::<i64>(),
    &both::<i32>(),
    &both::<i16>(),
    &both::<i8>(),
    &both::<u64>(),
    &both::<u32>(),
    &both::<u16>(),
    &both::<u8>(),
]);

/// Results that are searched for side by side.
const COLUMNS: usize = 64;

struct Typed<T>(std::marker::PhantomData<T>);

impl<T: Number> Typed<T> {
    const TYPES: &'static [firstlight_tensor::DType] = &[T::TYPE];
}

const fn both<T: Number + PartialOrd>() -> [KernelBinding; 2] {
    [row(OpKind::ArgMax, Typed::<T>::TYPES, in_columns::<T>), row(OpKind::ArgMin, Typed::<T>::TYPES, in_columns::<T>)]
}

/// A search: what is searched for, elements along the axis and inside it.
struct Search {
    greatest: bool,
    last: bool,
    n: usize,
    inner: usize,
}

impl Search {
    fn of(ctx: &KernelCtx<'_>) -> Result<Search, OpError> {
        let (arg, greatest): (Arg, bool) = match ctx.op() {
            Op::ArgMax(op) => (op.arg(), true),
            Op::ArgMin(op) => (op.arg(), false),
            _ => return Err(super::other_op("ArgMax")),
        };
        let (dims, out) = (ctx.dims(0)?, ctx.out_dims(0)?);
        let axis = normalise_axis(arg.axis, dims.rank())?;
        let n = dims[axis];
        let n_results = out.n_elems().unwrap_or(0);
        if n_results > 0 && (n == 0 || n_results.checked_mul(n) != dims.n_elems()) {
            return Err(OpError::shape(format!("a search along axis {axis} of {dims} does not give {out}")));
        }
        let inner = dims[axis + 1..].iter().fold(1usize, |n, &dim| n.saturating_mul(dim));
        Ok(Search { greatest, last: arg.select_last_index, n, inner })
    }

    /// Whether `x` takes the place of what is held.
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn wins<T: Copy + PartialOrd>(&self, x: T, held: T) -> bool {
        // Only NaN differs from itself.
        let better = if self.greatest { x > held } else { x < held };
        let equal = x == held || (x != x && held != held);
        ((better || x != x) && held == held) || (equal && self.last)
    }
}

/// f32 along the innermost axis: the extreme value first, by vectors, then its place.
fn in_rows(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let search = Search::of(ctx)?;
    if search.inner != 1 {
        return in_columns::<f32>(ctx);
    }
    let (isa, n) = (Isa::detect(), search.n);
    let x = Src::from_bytes(ctx.bytes(0)?);
    let out = ctx.output::<i64>(0)?;
    let fold = if search.greatest { Reduce::Max } else { Reduce::Min };
    spread(ctx.pool(), out, 1, 0.5 * n as f32 + 5.0, &|from, out| {
        for (i, out) in out.iter_mut().enumerate() {
            let row = x.slice((from + i) * n, n);
            let best = isa.reduce(fold, row);
            let is = |i: &usize| row.get(*i).is_some_and(|x| x == best || (x.is_nan() && best.is_nan()));
            let at = if search.last { (0..n).rev().find(is) } else { (0..n).find(is) };
            *out = at.unwrap_or(0) as i64;
        }
    })
}

/// Any type along any axis: some columns at a time, row by row.
fn in_columns<T: Number + PartialOrd>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let search = Search::of(ctx)?;
    let (n, inner) = (search.n, search.inner);
    let x = ctx.bytes(0)?;
    let out = ctx.output::<i64>(0)?;
    let at = |i: usize| read::<T>(&x[i * size_of::<T>()..][..size_of::<T>()]);
    spread(ctx.pool(), out, 1, 1.0 * n as f32, &|from, out| {
        let mut done = 0;
        while done < out.len() {
            let (outer, column) = ((from + done) / inner, (from + done) % inner);
            let width = (inner - column).min(out.len() - done).min(COLUMNS);
            let start = outer * n * inner + column;
            let mut held = [T::zeroed(); COLUMNS];
            let to = &mut out[done..done + width];
            for (j, held) in held[..width].iter_mut().enumerate() {
                *held = at(start + j);
            }
            to.fill(0);
            for i in 1..n {
                for (j, (held, to)) in held[..width].iter_mut().zip(&mut *to).enumerate() {
                    let x = at(start + i * inner + j);
                    let wins = search.wins(x, *held);
                    *held = if wins { x } else { *held };
                    *to = if wins { i as i64 } else { *to };
                }
            }
            done += width;
        }
    })
}
