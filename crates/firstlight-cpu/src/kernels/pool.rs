//! MaxPool, GlobalAveragePool, and what pooling kernels share.

use super::number::{Number, read};
use super::real::{Lanes, Math, Real};
use super::rows::row;
use super::spread::{spread, spread_with_scratch};
use firstlight_backend::{Caps, KernelBinding, KernelCtx, KernelQuery};
use firstlight_gemm::{Geometry, Isa, Reduce, Src, WINDOW_SCRATCH_ELEMS, Window, WindowPlan};
use firstlight_graph::ops::nn::pooling::PoolGeometry;
use firstlight_graph::ops::nn::window::WindowDim;
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::{BF16, F16, F32, F64, I8, U8};
use firstlight_tensor::{DType, bf16, f16};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) const BINDINGS: &[KernelBinding] = &[
    KernelBinding {
        source: "windows",
        accepts: is_plane,
        scratch_bytes: planes_scratch,
        ..row(OpKind::MaxPool, &[F32], max_pool_f32)
    },
    max_row(&[F32], |ctx| max_pool(ctx, f32::NEG_INFINITY)),
    max_row(&[F64], |ctx| max_pool(ctx, f64::NEG_INFINITY)),
    max_row(&[F16], |ctx| max_pool(ctx, f16::NEG_INFINITY)),
    max_row(&[BF16], |ctx| max_pool(ctx, bf16::NEG_INFINITY)),
    max_row(&[I8], |ctx| max_pool(ctx, i8::MIN)),
    max_row(&[U8], |ctx| max_pool(ctx, u8::MIN)),
    row(OpKind::GlobalAveragePool, &[F32], average_f32),
    row(OpKind::GlobalAveragePool, &[F64], average::<f64>),
    row(OpKind::GlobalAveragePool, &[F16], average::<f16>),
    row(OpKind::GlobalAveragePool, &[BF16], average::<bf16>),
];

/// A row that gives no indices and takes aligned inputs.
const fn max_row(types: &'static [DType], kernel: firstlight_backend::KernelFn) -> KernelBinding {
    KernelBinding {
        caps: Caps { unaligned: false, capture_safe: true },
        accepts: |query| query.outputs.len() == 1,
        ..row(OpKind::MaxPool, types, kernel)
    }
}

/// One or two spatial dimensions: windows along rows and columns, and how planes are gone over. `None` where windows over
/// planes are not made for them.
fn planes_of(geometry: &PoolGeometry) -> Option<([WindowDim; 2], WindowPlan)> {
    let line = WindowDim { input: 1, kernel: 1, stride: 1, dilation: 1, pad_begin: 0, pad_end: 0, output: 1 };
    let [high, wide] = match geometry.spatial[..] {
        [wide] => [line, wide],
        [high, wide] => [high, wide],
        _ => return None,
    };
    let windows = Geometry {
        kernel: [high.kernel, wide.kernel],
        stride: [high.stride, wide.stride],
        dilation: [high.dilation, wide.dilation],
        pad: [high.pad_begin, wide.pad_begin],
        out: [high.output, wide.output],
    };
    Some(([high, wide], WindowPlan::new([high.input, wide.input], windows)?))
}

/// Windows over planes give no indices.
pub(super) fn is_plane(query: &KernelQuery<'_>) -> bool {
    let Some(Some(x)) = query.inputs.first() else { return false };
    let geometry = match query.op {
        Op::MaxPool(op) => op.geometry(&x.dims),
        Op::AveragePool(op) => op.geometry(&x.dims),
        Op::LpPool(op) => op.geometry(&x.dims),
        _ => return false,
    };
    query.outputs.len() == 1 && geometry.is_ok_and(|geometry| planes_of(&geometry).is_some())
}

/// Scratch of [`planes`].
pub(super) fn planes_scratch(query: &KernelQuery<'_>) -> usize {
    query.threads.saturating_mul(WINDOW_SCRATCH_ELEMS * 4)
}

fn max_pool_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::MaxPool(op) = ctx.op() else { return Err(super::other_op("MaxPool")) };
    planes(ctx, &op.geometry(ctx.dims(0)?)?, |_| Window::Max)
}

/// Pools planes in f32, some rows of the output at a time. `window` says how, given the windows along rows and columns.
pub(super) fn planes(
    ctx: &KernelCtx<'_>,
    geometry: &PoolGeometry,
    window: impl FnOnce([WindowDim; 2]) -> Window<'static>,
) -> Result<(), OpError> {
    check_out(ctx, geometry)?;
    let other = || super::other_op("pooling of planes");
    let (dims, plan) = planes_of(geometry).ok_or_else(other)?;
    let window = window(dims);
    let [out_h, out_w] = plan.out();
    let taps: f32 = geometry.spatial.iter().map(|dim| dim.kernel as f32).product();
    let failed = AtomicBool::new(false);
    let (isa, x) = (Isa::detect(), Src::from_bytes(ctx.bytes(0)?));
    let (out, scratch) = (ctx.output::<f32>(0)?, ctx.scratch::<f32>()?);
    let ns = 0.1 + 0.03 * taps;
    spread_with_scratch(ctx.pool(), out, out_w, ns, (scratch, WINDOW_SCRATCH_ELEMS), &|from, out, scratch| {
        let mut rest = out;
        let mut row = from / out_w;
        while !rest.is_empty() {
            let first = row % out_h;
            let rows = (out_h - first).min(rest.len() / out_w);
            let (now, later) = rest.split_at_mut(rows * out_w);
            let x = x.slice((row / out_h).saturating_mul(plan.in_elems()), plan.in_elems());
            if !isa.window_rows(&plan, &window, x, first..first + rows, now, scratch) {
                failed.store(true, Ordering::Relaxed);
            }
            (rest, row) = (later, row + rows);
        }
    })?;
    if failed.into_inner() { Err(other()) } else { Ok(()) }
}

/// Checks that the output has the shape that a pooling gives.
pub(super) fn check_out(ctx: &KernelCtx<'_>, geometry: &PoolGeometry) -> Result<(), OpError> {
    let (shape, out) = (geometry.out_shape(), ctx.out_dims(0)?);
    match shape == *out {
        true => Ok(()),
        false => Err(OpError::shape(format!("an output {out}, expected {shape}"))),
    }
}

/// The largest elements of windows, a row of the output at a time: the taps are met in order, all windows of the row at
/// once. NaN is passed over.
fn max_pool<T: Number>(ctx: &mut KernelCtx<'_>, least: T) -> Result<(), OpError> {
    let Op::MaxPool(op) = ctx.op() else { return Err(super::other_op("MaxPool")) };
    let geometry = op.geometry(ctx.dims(0)?)?;
    check_out(ctx, &geometry)?;
    let Some((along, outer)) = geometry.spatial.split_last() else { return Err(super::other_op("MaxPool")) };
    let x = ctx.input::<T>(0)?;
    let out = ctx.output::<T>(0)?;
    let n_taps: f32 = geometry.spatial.iter().map(|dim| dim.kernel as f32).product();
    let plane: usize = geometry.spatial.iter().map(|dim| dim.input).product();
    let ns = 0.4 * n_taps + 10.0 / along.output.max(1) as f32;
    spread(ctx.pool(), out, along.output, ns, &|from, out| {
        for (i, out) in out.chunks_exact_mut(along.output).enumerate() {
            let mut rest = from / along.output + i;
            let mut taps: SmallVec<[Taps; 3]> = SmallVec::new();
            for dim in outer.iter().rev() {
                taps.push(Taps::of(dim, rest % dim.output));
                rest /= dim.output;
            }
            taps.reverse();
            out.fill(least);
            each_row(&taps, rest * plane / along.input.max(1), &mut |row| {
                let x = &x[row * along.input..][..along.input];
                along.each_tap_of(0..along.output, |tap| raise(along, tap, x, out));
            });
        }
    })
}

/// The input indices under a window's taps along one dimension.
pub(super) struct Taps {
    first: usize,
    n: usize,
    dilation: usize,
    /// Size of the dimension.
    size: usize,
}

impl Taps {
    pub(super) fn of(dim: &WindowDim, window: usize) -> Taps {
        let Range { start, end } = dim.taps(window);
        let first = dim.at(window, start).unwrap_or(0);
        Taps { first, n: end - start, dilation: dim.dilation, size: dim.input }
    }
}

/// Calls `f` for the input's rows under the taps of all dimensions but the last, in order.
pub(super) fn each_row(taps: &[Taps], base: usize, f: &mut dyn FnMut(usize)) {
    let Some((taps, rest)) = taps.split_first() else { return f(base) };
    let inner: usize = rest.iter().map(|taps| taps.size).product();
    for i in 0..taps.n {
        each_row(rest, base + (taps.first + i * taps.dilation) * inner, f);
    }
}

/// Raises every window's largest element to the element under one of its taps, where that lies in the input.
fn raise<T: Number>(dim: &WindowDim, tap: usize, x: &[T], out: &mut [T]) {
    let reach = tap * dim.dilation;
    // Windows whose tap lies in the input, and where the first of them reads.
    let first = dim.pad_begin.saturating_sub(reach).div_ceil(dim.stride);
    let end = (dim.pad_begin + dim.input).saturating_sub(reach).div_ceil(dim.stride).min(out.len());
    if first >= end {
        return;
    }
    let x = &x[first * dim.stride + reach - dim.pad_begin..];
    let out = &mut out[first..end];
    let larger = |out: &mut T, x: T| *out = if x > *out { x } else { *out };
    match dim.stride {
        1 => out.iter_mut().zip(x).for_each(|(out, &x)| larger(out, x)),
        2 => {
            // The last window's element may have none behind it.
            if let Some((last, out)) = out.split_last_mut() {
                out.iter_mut().zip(x.chunks_exact(2)).for_each(|(out, x)| larger(out, x[0]));
                larger(last, x[2 * out.len()]);
            }
        }
        stride => out.iter_mut().zip(x.iter().step_by(stride)).for_each(|(out, &x)| larger(out, x)),
    }
}

/// Elements of a channel.
fn positions(ctx: &KernelCtx<'_>) -> Result<usize, OpError> {
    let (dims, out) = (ctx.dims(0)?, ctx.out_dims(0)?);
    match dims.rank() >= 2 && out.n_elems() == dims[0].checked_mul(dims[1]) {
        true => Ok(dims[2..].iter().fold(1usize, |n, &dim| n.saturating_mul(dim))),
        false => Err(OpError::shape(format!("the channels of {dims} are not {out}"))),
    }
}

fn average_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let n = positions(ctx)?;
    let isa = Isa::detect();
    let x = Src::from_bytes(ctx.bytes(0)?);
    let out = ctx.output::<f32>(0)?;
    spread(ctx.pool(), out, 1, 5.0 + 0.08 * n as f32, &|from, out| {
        for (i, out) in out.iter_mut().enumerate() {
            *out = isa.reduce(Reduce::Sum, x.slice((from + i).saturating_mul(n), n)) / n as f32;
        }
    })
}

fn average<T: Real>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let n = positions(ctx)?;
    let x = ctx.bytes(0)?;
    let width = size_of::<T>();
    let out = ctx.output::<T>(0)?;
    spread(ctx.pool(), out, 1, 2.0 * n as f32, &|from, out| {
        for (i, out) in out.iter_mut().enumerate() {
            let mut lanes = Lanes::new();
            let channel = x.get((from + i) * n * width..).unwrap_or_default();
            channel.chunks_exact(width).take(n).for_each(|x| lanes.add(read::<T>(x).widen()));
            *out = T::narrow(lanes.sum() / T::Math::of(n as f64));
        }
    })
}
