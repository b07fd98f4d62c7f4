//! MaxUnpool: zeros are written over the pool, the elements are put into them in their order by one thread.

use super::number::{Ints, optional_ints, read};
use super::rows::row;
use super::spread::{STREAM_NS, spread};
use bytemuck::Pod;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::{BF16, F16, F32, F64};

pub(super) const BINDINGS: &[KernelBinding] = &[
    row(OpKind::MaxUnpool, &[F32], unpool::<u32>),
    row(OpKind::MaxUnpool, &[F64], unpool::<u64>),
    row(OpKind::MaxUnpool, &[F16], unpool::<u16>),
    row(OpKind::MaxUnpool, &[BF16], unpool::<u16>),
];

fn unpool<W: Pod + Send>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::MaxUnpool(op) = ctx.op() else { return Err(super::other_op("MaxUnpool")) };
    let geometry = op.geometry(ctx.dims(0)?, optional_ints(ctx, 2)?.as_deref())?;
    let (x, indices) = (ctx.bytes(0)?, Ints::of(ctx, 1)?);
    if geometry.out != *ctx.out_dims(0)? || indices.len() != x.len() / size_of::<W>() {
        return Err(OpError::shape(format!(
            "an input {} with indices {} for an output {}",
            ctx.dims(0)?,
            ctx.dims(1)?,
            ctx.out_dims(0)?
        )));
    }
    let out = ctx.output::<W>(0)?;
    spread(ctx.pool(), out, 1, STREAM_NS, &|_, out| out.fill(W::zeroed()))?;
    for (i, x) in x.chunks_exact(size_of::<W>()).enumerate() {
        out[geometry.place(indices.get(i))?] = read(x);
    }
    Ok(())
}
