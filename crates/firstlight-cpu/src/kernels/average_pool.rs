//! AveragePool.

use super::number::read;
use super::pool::{Taps, check_out, each_row, is_plane, planes, planes_scratch};
use super::real::{Math, Real};
use super::rows::row;
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_gemm::Window;
use firstlight_graph::ops::nn::pooling::PoolGeometry;
use firstlight_graph::ops::nn::window::WindowDim;
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::{BF16, F16, F32, F64};
use firstlight_tensor::{bf16, f16};
use smallvec::SmallVec;

pub(super) const BINDINGS: &[KernelBinding] = &[
    KernelBinding {
        source: "windows",
        accepts: is_plane,
        scratch_bytes: planes_scratch,
        ..row(OpKind::AveragePool, &[F32], average_planes)
    },
    row(OpKind::AveragePool, &[F32], average::<f32>),
    row(OpKind::AveragePool, &[F64], average::<f64>),
    row(OpKind::AveragePool, &[F16], average::<f16>),
    row(OpKind::AveragePool, &[BF16], average::<bf16>),
];

fn average_planes(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::AveragePool(op) = ctx.op() else { return Err(super::other_op("AveragePool")) };
    let geometry = op.geometry(ctx.dims(0)?)?;
    planes(ctx, &geometry, |[high, wide]| Window::Average {
        counted_pad_end: op.count_include_pad.then_some([high.pad_end, wide.pad_end]),
    })
}

/// Columns whose sums are kept at once.
const COLUMNS: usize = 128;

fn average<T: Real>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::AveragePool(op) = ctx.op() else { return Err(super::other_op("AveragePool")) };
    let n_taps = |dim: &WindowDim, window: usize| match op.count_include_pad {
        true => dim.n_padded_taps(window),
        false => dim.taps(window).len(),
    };
    let mean = |sum, n_taps: f64| sum / T::Math::of(n_taps);
    sum_windows::<T>(ctx, &op.geometry(ctx.dims(0)?)?, |x| x, n_taps, mean)
}

/// Fills the output with `last` of the sum of `term` over each window's elements and of its number of taps, the product of
/// `n_taps` of all dimensions. Some columns of an output row at a time: the taps are met in order, all those columns'
/// windows at once.
pub(super) fn sum_windows<T: Real>(
    ctx: &KernelCtx<'_>,
    geometry: &PoolGeometry,
    term: impl Fn(T::Math) -> T::Math + Sync,
    n_taps: impl Fn(&WindowDim, usize) -> usize + Sync,
    last: impl Fn(T::Math, f64) -> T::Math + Sync,
) -> Result<(), OpError> {
    check_out(ctx, geometry)?;
    let Some((along, outer)) = geometry.spatial.split_last() else { return Err(super::other_op("pooling")) };
    let x = ctx.bytes(0)?;
    let out = ctx.output::<T>(0)?;
    let all_taps: f32 = geometry.spatial.iter().map(|dim| dim.kernel as f32).product();
    let plane: usize = geometry.spatial.iter().map(|dim| dim.input).product();
    let row_bytes = along.input * size_of::<T>();
    let ns = all_taps + 10.0 / along.output.max(1) as f32;
    spread(ctx.pool(), out, along.output, ns, &|from, out| {
        for (i, out) in out.chunks_exact_mut(along.output).enumerate() {
            let mut rest = from / along.output + i;
            let mut taps: SmallVec<[Taps; 3]> = SmallVec::new();
            let mut outer_taps = 1.0;
            for dim in outer.iter().rev() {
                taps.push(Taps::of(dim, rest % dim.output));
                outer_taps *= n_taps(dim, rest % dim.output) as f64;
                rest /= dim.output;
            }
            taps.reverse();
            let first_row = rest * plane / along.input.max(1);
            for (block, out) in out.chunks_mut(COLUMNS).enumerate() {
                let first = block * COLUMNS;
                let mut sums = [T::Math::ZERO; COLUMNS];
                let sums = &mut sums[..out.len()];
                each_row(&taps, first_row, &mut |row| {
                    let x = &x[row * row_bytes..][..row_bytes];
                    along.each_tap_of(first..first + sums.len(), |tap| add_tap::<T>(along, tap, x, first, sums, &term));
                });
                for (j, (out, sum)) in out.iter_mut().zip(sums).enumerate() {
                    *out = T::narrow(last(*sum, outer_taps * n_taps(along, first + j) as f64));
                }
            }
        }
    })
}

/// Adds `term` of the elements of a row `x` under one tap of the windows from `first` on to their sums.
fn add_tap<T: Real>(
    dim: &WindowDim,
    tap: usize,
    x: &[u8],
    first: usize,
    sums: &mut [T::Math],
    term: impl Fn(T::Math) -> T::Math,
) {
    let reach = tap * dim.dilation;
    // Windows whose tap lies in the input.
    let start = dim.pad_begin.saturating_sub(reach).div_ceil(dim.stride).max(first);
    let end = (dim.pad_begin + dim.input).saturating_sub(reach).div_ceil(dim.stride).min(first + sums.len());
    if start >= end {
        return;
    }
    let x = &x[(start * dim.stride + reach - dim.pad_begin) * size_of::<T>()..];
    let x = x.chunks_exact(size_of::<T>()).step_by(dim.stride);
    for (sum, x) in sums[start - first..end - first].iter_mut().zip(x) {
        *sum = *sum + term(read::<T>(x).widen());
    }
}
