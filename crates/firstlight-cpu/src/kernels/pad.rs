//! Pad.

use super::number::{optional_ints, read, small_ints};
use super::rows::{INDEXED, rows};
use super::spread::{STREAM_NS, spread};
use bytemuck::Pod;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::ops::layout::pad::PadMode;
use firstlight_graph::{Op, OpError, OpKind};

pub(super) const BINDINGS: &[KernelBinding] = &rows(OpKind::Pad, INDEXED, pad);

fn pad(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let dtype = ctx.spec(0)?.dtype;
    match dtype.bits() {
        8 => pad_words::<u8>(ctx),
        16 => pad_words::<u16>(ctx),
        32 => pad_words::<u32>(ctx),
        64 => pad_words::<u64>(ctx),
        128 => pad_words::<[u64; 2]>(ctx),
        _ => Err(OpError::unsupported(format!("elements of {dtype} cannot be moved one by one"))),
    }
}

fn pad_words<W: Pod + Send + Sync>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::Pad(op) = ctx.op() else { return Err(super::other_op("Pad")) };
    let (pads, axes) = (small_ints(ctx, 1)?, optional_ints(ctx, 3)?);
    let x = ctx.dims(0)?;
    let dims = op.geometry(x, &pads, axes.as_deref())?;
    if !dims.iter().map(|dim| dim.output).eq(ctx.out_dims(0)?.iter().copied()) {
        return Err(OpError::shape(format!("{x} is not padded to {}", ctx.out_dims(0)?)));
    }
    let width = size_of::<W>();
    let fill: W = match ctx.has_input(2) {
        true if ctx.bytes(2)?.len() == width => read(ctx.bytes(2)?),
        true => return Err(OpError::shape(format!("constant_value has shape {}, expected one element", ctx.dims(2)?))),
        false => W::zeroed(),
    };
    let data = ctx.bytes(0)?;
    let out = ctx.output::<W>(0)?;
    let strides = x.strides();
    let (Some((inner, outer)), mode) = (dims.split_last(), op.mode) else {
        bytemuck::cast_slice_mut(out).copy_from_slice(data);
        return Ok(());
    };
    let row = inner.output;
    let (begin, end) = (inner.before.min(row), (inner.before + inner.kept).min(row));
    let ns = STREAM_NS + 5.0 / row.max(1) as f32;
    spread(ctx.pool(), out, row, ns, &|from, out| {
        for (i, out) in out.chunks_exact_mut(row).enumerate() {
            // The input's row that this row repeats.
            let mut rest = from / row + i;
            let mut at = Some(0);
            for (dim, stride) in outer.iter().zip(&strides).rev() {
                let source = dim.source(rest % dim.output, mode);
                at = at.zip(source).map(|(at, source)| at + source * stride);
                rest /= dim.output;
            }
            let Some(at) = at else {
                out.fill(fill);
                continue;
            };
            let kept = &data[(at + inner.skipped) * width..][..(end - begin) * width];
            bytemuck::cast_slice_mut(&mut out[begin..end]).copy_from_slice(kept);
            if mode == PadMode::Constant {
                out[..begin].fill(fill);
                out[end..].fill(fill);
                continue;
            }
            for i in (0..begin).chain(end..row) {
                let source = at + inner.source(i, mode).unwrap_or(inner.skipped);
                out[i] = read(&data[source * width..][..width]);
            }
        }
    })
}
