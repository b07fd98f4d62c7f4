//! Compress and ReverseSequence.

use super::number::Ints;
use super::rows::{BYTE_SIZED, joined, rows};
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::ops::ReverseSequence;
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::Shape;

pub(super) const BINDINGS: &[KernelBinding] = &joined::<40>(&[
    &rows(OpKind::Compress, BYTE_SIZED, compress),
    &rows(OpKind::ReverseSequence, BYTE_SIZED, reverse_sequence),
]);

fn compress(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::Compress(op) = ctx.op() else { return Err(super::other_op("Compress")) };
    let spec = ctx.spec(0)?;
    let ([outer, size, inner], axis) = op.geometry(&spec.dims)?;
    let (data, condition) = (ctx.bytes(0)?, ctx.bytes(1)?);
    let out = ctx.output::<u8>(0)?;
    let slice = inner * spec.dtype.bits() / 8;
    let chosen = || condition.iter().take(size).enumerate().filter(|(_, is)| **is != 0).map(|(i, _)| i);
    let n = chosen().count();
    let mut to = 0;
    for o in 0..outer {
        for i in chosen() {
            out[to..to + slice].copy_from_slice(&data[(o * size + i) * slice..][..slice]);
            to += slice;
        }
    }
    let mut dims = if op.axis.is_some() { spec.dims.clone() } else { Shape::from([size]) };
    dims[axis] = n;
    ctx.set_dims(0, &dims)
}

fn reverse_sequence(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::ReverseSequence(op) = ctx.op() else { return Err(super::other_op("ReverseSequence")) };
    let spec = ctx.spec(0)?;
    let [item, batch, time] = op.geometry(&spec.dims, ctx.dims(1)?)?;
    let lens = Ints::of(ctx, 1)?;
    for i in 0..lens.len() {
        ReverseSequence::length(lens.get(i), time)?;
    }
    let (data, out) = (ctx.bytes(0)?, ctx.output::<u8>(0)?);
    if data.len() != out.len() {
        return Err(OpError::shape(format!("an input {} for an output {}", spec.dims, ctx.out_dims(0)?)));
    }
    let item = item * spec.dtype.bits() / 8;
    spread(ctx.pool(), out, item, 0.06 + 4.0 / item.max(1) as f32, &|from, out| {
        for (i, to) in out.chunks_exact_mut(item).enumerate() {
            let i = from / item + i;
            let (b, t) = if op.batch_first { (i / time, i % time) } else { (i % batch, i / batch) };
            let source = ReverseSequence::source(t, lens.get(b) as usize);
            let at = if op.batch_first { b * time + source } else { source * batch + b };
            to.copy_from_slice(&data[at * item..][..item]);
        }
    })
}
