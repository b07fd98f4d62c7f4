//! OneHot.

use super::number::{Ints, read, small_ints};
use super::rows::{BYTE_SIZED, rows};
use super::spread::spread;
use bytemuck::Pod;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{Op, OpError, OpKind};

pub(super) const BINDINGS: &[KernelBinding] = &rows(OpKind::OneHot, BYTE_SIZED, one_hot);

fn one_hot(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let dtype = ctx.spec(2)?.dtype;
    match dtype.bits() {
        8 => fill::<u8>(ctx),
        16 => fill::<u16>(ctx),
        32 => fill::<u32>(ctx),
        64 => fill::<u64>(ctx),
        128 => fill::<[u64; 2]>(ctx),
        _ => Err(OpError::unsupported(format!("elements of {dtype} cannot be moved one by one"))),
    }
}

fn fill<W: Pod + Send + Sync>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::OneHot(op) = ctx.op() else { return Err(super::other_op("OneHot")) };
    let geometry = op.geometry(ctx.dims(0)?, &small_ints(ctx, 1)?)?;
    let (indices, values, width) = (Ints::of(ctx, 0)?, ctx.bytes(2)?, size_of::<W>());
    if geometry.dims != *ctx.out_dims(0)? || values.len() != 2 * width {
        return Err(OpError::shape(format!("an output {}, expected {}", ctx.out_dims(0)?, geometry.dims)));
    }
    let (off, on): (W, W) = (read(&values[..width]), read(&values[width..]));
    let (depth, inner) = (geometry.depth, geometry.inner);
    let block = depth * inner;
    spread(ctx.pool(), ctx.output::<W>(0)?, block, 0.06 * width as f32, &|from, out| {
        out.fill(off);
        for (o, out) in out.chunks_exact_mut(block).enumerate() {
            for i in 0..inner {
                if let Some(place) = geometry.place(indices.get((from / block + o) * inner + i)) {
                    out[place * inner + i] = on;
                }
            }
        }
    })
}
