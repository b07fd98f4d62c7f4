//! Resize.

use super::number::{optional_ints, read};
use super::rows::{BYTE_SIZED, joined, row, rows};
use super::spread::{STREAM_NS, spread, spread_with_scratch};
use bytemuck::Pod;
use firstlight_backend::{Caps, KernelBinding, KernelCtx, KernelQuery};
use firstlight_graph::ops::nn::resampling::{AxisMap, Coordinates, Filter, Weights, sample_f32};
use firstlight_graph::ops::nn::resize::AxisMaps;
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::F32;
use smallvec::SmallVec;

pub(super) const BINDINGS: &[KernelBinding] = &joined::<21>(&[&MOVED, &[PLANES]]);

/// Neighbours that are moved: the last axis by a table.
const MOVED: [KernelBinding; 20] = {
    let mut all = rows(OpKind::Resize, BYTE_SIZED, moved);
    let mut i = 0;
    while i < all.len() {
        all[i].accepts = is_moved;
        all[i].scratch_bytes = |query| last_dim(query).saturating_mul(size_of::<u32>());
        i += 1;
    }
    all
};

/// Sums of neighbours along the last two axes.
const PLANES: KernelBinding = KernelBinding {
    caps: Caps { unaligned: false, capture_safe: true },
    source: "planes",
    accepts: is_plane,
    scratch_bytes: |query| {
        let table = last_dim(query).saturating_mul(2 * MAX_TAPS);
        table.saturating_add(query.threads.saturating_mul(last_in(query))).saturating_mul(size_of::<f32>())
    },
    ..row(OpKind::Resize, &[F32], planes)
};

/// Neighbours of a cubic curve.
const MAX_TAPS: usize = 4;

fn last_dim(query: &KernelQuery<'_>) -> usize {
    query.outputs.first().and_then(|y| y.dims.last()).copied().unwrap_or(0)
}

fn last_in(query: &KernelQuery<'_>) -> usize {
    query.inputs.first().and_then(Option::as_ref).and_then(|x| x.dims.last()).copied().unwrap_or(0)
}

fn is_moved(query: &KernelQuery<'_>) -> bool {
    let Op::Resize(op) = query.op else { return false };
    op.is_nearest() && op.coordinates != Coordinates::TfCropAndResize
}

fn is_plane(query: &KernelQuery<'_>) -> bool {
    let (Op::Resize(op), [Some(x), ..], [y]) = (query.op, query.inputs, query.outputs) else { return false };
    let leading = x.dims.rank().saturating_sub(2);
    !op.is_nearest()
        && !op.antialias
        && op.coordinates != Coordinates::TfCropAndResize
        && x.dims.rank() > 0
        && x.dims.get(..leading) == y.dims.get(..leading)
}

/// How the axes are sampled, without a region.
fn maps(ctx: &KernelCtx<'_>) -> Result<AxisMaps, OpError> {
    let Op::Resize(op) = ctx.op() else { return Err(super::other_op("Resize")) };
    let scales: Option<SmallVec<[f32; 6]>> = match ctx.has_input(2) {
        true => Some(ctx.bytes(2)?.chunks_exact(size_of::<f32>()).map(read).collect()),
        false => None,
    };
    let scales = scales.filter(|scales| !scales.is_empty());
    let sizes = optional_ints(ctx, 3)?.filter(|sizes| !sizes.is_empty());
    let maps = op.maps(ctx.dims(0)?, None, scales.as_deref(), sizes.as_deref())?;
    match maps.iter().map(|map| map.output).eq(ctx.out_dims(0)?.iter().copied()) {
        true => Ok(maps),
        false => Err(OpError::shape(format!("{} is not resized to {}", ctx.dims(0)?, ctx.out_dims(0)?))),
    }
}

fn moved(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let dtype = ctx.spec(0)?.dtype;
    match dtype.bits() {
        8 => move_words::<u8>(ctx),
        16 => move_words::<u16>(ctx),
        32 => move_words::<u32>(ctx),
        64 => move_words::<u64>(ctx),
        128 => move_words::<[u64; 2]>(ctx),
        _ => Err(OpError::unsupported(format!("elements of {dtype} cannot be moved one by one"))),
    }
}

/// The nearest neighbours, a row of the output at a time. Rows that repeat the row above are copies of it.
fn move_words<W: Pod + Send + Sync>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let maps = maps(ctx)?;
    let (data, width) = (ctx.bytes(0)?, size_of::<W>());
    let out = ctx.output::<W>(0)?;
    let Some((inner, outer)) = maps.split_last() else {
        bytemuck::cast_slice_mut(out).copy_from_slice(data);
        return Ok(());
    };
    if out.is_empty() {
        return Ok(());
    }
    let table = ctx.scratch::<u32>()?;
    let table = table.get_mut(..inner.output).ok_or_else(|| super::other_op("Resize with scratch"))?;
    for (y, to) in table.iter_mut().enumerate() {
        *to = nearest(inner, y) as u32;
    }
    let times = repeats(table, inner.input);
    let ns = STREAM_NS + 8.0 / inner.output as f32;
    spread(ctx.pool(), out, inner.output, ns, &|from, out| {
        let mut before = None;
        for i in 0..out.len() / inner.output {
            let mut rest = from / inner.output + i;
            let (mut source, mut n) = (0, 1);
            for map in outer.iter().rev() {
                source += nearest(map, rest % map.output) * n;
                rest /= map.output;
                n *= map.input;
            }
            let start = i * inner.output;
            if before == Some(source) {
                out.copy_within(start - inner.output..start, start);
                continue;
            }
            before = Some(source);
            let x = &data[source * inner.input * width..][..inner.input * width];
            let out = &mut out[start..start + inner.output];
            match times {
                1 => bytemuck::cast_slice_mut(out).copy_from_slice(x),
                2 => repeat::<W, 2>(x, out),
                4 => repeat::<W, 4>(x, out),
                _ => {
                    for (to, &at) in out.iter_mut().zip(&*table) {
                        *to = read(&x[at as usize * width..][..width]);
                    }
                }
            }
        }
    })
}

fn nearest(map: &AxisMap, y: usize) -> usize {
    if map.is_identity() { y } else { map.nearest(y).unwrap_or(0) }
}

/// How many times every element comes, one after the other; 0 where it is not the same for all.
fn repeats(table: &[u32], n: usize) -> usize {
    let times = table.len() / n.max(1);
    let is_repeated = times * n == table.len() && table.iter().enumerate().all(|(y, &at)| at as usize == y / times);
    if is_repeated { times } else { 0 }
}

fn repeat<W: Pod, const N: usize>(x: &[u8], out: &mut [W]) {
    for (to, x) in out.as_chunks_mut::<N>().0.iter_mut().zip(x.chunks_exact(size_of::<W>())) {
        *to = [read(x); N];
    }
}

/// Sums of neighbours: rows of the input into one row, whose elements then make a row of the output.
fn planes(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let maps = maps(ctx)?;
    let (leading, last) = maps.split_at(maps.len().saturating_sub(2));
    if !leading.iter().all(AxisMap::is_identity) {
        sample_f32(&maps, ctx.input::<f32>(0)?, ctx.output::<f32>(0)?);
        return Ok(());
    }
    let (high, wide) = match *last {
        [wide] => (AxisMap { input: 1, output: 1, scale: 1.0, ..wide }, wide),
        [high, wide] => (high, wide),
        _ => return Err(super::other_op("Resize of planes")),
    };
    let x = ctx.input::<f32>(0)?;
    let out = ctx.output::<f32>(0)?;
    if out.is_empty() {
        return Ok(());
    }
    let n_taps = match wide.filter {
        Filter::Cubic(_) => MAX_TAPS,
        _ => 2,
    };
    let (row, is_wide) = (wide.output, !wide.is_identity());
    let scratch = ctx.scratch::<f32>()?;
    let short = || super::other_op("Resize with scratch");
    let (table, lanes) = scratch.split_at_mut_checked(row * 2 * MAX_TAPS).ok_or_else(short)?;
    let (indices, weights) = table.split_at_mut(row * MAX_TAPS);
    let mut of_one = Weights::new();
    for y in (0..row).filter(|_| is_wide) {
        let first = wide.taps(y, &mut of_one).unwrap_or(0);
        for (tap, &weight) in of_one.iter().enumerate().take(n_taps) {
            indices[y * n_taps + tap] = f32::from_bits(wide.clamp(first + tap as i64) as u32);
            weights[y * n_taps + tap] = weight as f32;
        }
    }
    let table = (&*indices, &*weights);
    let ns = 0.4 * (1 + n_taps) as f32;
    spread_with_scratch(ctx.pool(), out, row, ns, (lanes, wide.input), &|from, out, lane| {
        let mut of_row = Weights::new();
        for (i, out) in out.chunks_exact_mut(row).enumerate() {
            let at = from / row + i;
            let plane = &x[at / high.output * high.input * wide.input..][..high.input * wide.input];
            let y = at % high.output;
            if high.is_identity() {
                let x = &plane[y * wide.input..][..wide.input];
                if is_wide {
                    along_row(x, table, n_taps, out)
                } else {
                    out.copy_from_slice(x)
                }
                continue;
            }
            let first = high.taps(y, &mut of_row).unwrap_or(0);
            let to = if is_wide { &mut lane[..wide.input] } else { &mut *out };
            for (tap, &weight) in of_row.iter().enumerate() {
                let x = &plane[high.clamp(first + tap as i64) * wide.input..][..wide.input];
                let weight = weight as f32;
                match tap {
                    0 => to.iter_mut().zip(x).for_each(|(to, &x)| *to = x * weight),
                    _ => to.iter_mut().zip(x).for_each(|(to, &x)| *to += x * weight),
                }
            }
            if is_wide {
                along_row(&lane[..wide.input], table, n_taps, out);
            }
        }
    })
}

/// Sums of a row's elements, as a table of their indices and weights says.
fn along_row(x: &[f32], (indices, weights): (&[f32], &[f32]), n_taps: usize, out: &mut [f32]) {
    fn sums<const N: usize>(x: &[f32], indices: &[f32], weights: &[f32], out: &mut [f32]) {
        let taps = indices.as_chunks::<N>().0.iter().zip(weights.as_chunks::<N>().0);
        for (to, (indices, weights)) in out.iter_mut().zip(taps) {
            let term = |tap: usize| x[indices[tap].to_bits() as usize] * weights[tap];
            *to = (1..N).fold(term(0), |sum, tap| sum + term(tap));
        }
    }
    match n_taps {
        2 => sums::<2>(x, indices, weights, out),
        _ => sums::<MAX_TAPS>(x, indices, weights, out),
    }
}
