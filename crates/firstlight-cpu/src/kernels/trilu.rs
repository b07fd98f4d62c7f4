//! Trilu.

use super::number::optional_ints;
use super::rows::{BYTE_SIZED, rows};
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::ops::Trilu;
use firstlight_graph::{Op, OpError, OpKind};

pub(super) const BINDINGS: &[KernelBinding] = &rows(OpKind::Trilu, BYTE_SIZED, trilu);

fn trilu(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::Trilu(op) = ctx.op() else { return Err(super::other_op("Trilu")) };
    let k = Trilu::diagonal(optional_ints(ctx, 1)?.as_deref())?;
    let spec = ctx.spec(0)?;
    let (data, out) = (ctx.bytes(0)?, ctx.output::<u8>(0)?);
    let [.., rows, cols] = spec.dims[..] else {
        return Err(OpError::shape(format!("an input {} holds no matrices", spec.dims)));
    };
    if data.len() != out.len() {
        return Err(OpError::shape(format!("an input {} for an output {}", spec.dims, ctx.out_dims(0)?)));
    }
    let width = spec.dtype.bits() / 8;
    let line = cols * width;
    spread(ctx.pool(), out, line, 0.06, &|from, out| {
        for (i, to) in out.chunks_exact_mut(line).enumerate() {
            let i = from / line + i;
            let kept = op.kept(i % rows, cols, k);
            let kept = kept.start * width..kept.end * width;
            to[..kept.start].fill(0);
            to[kept.end..].fill(0);
            to[kept.clone()].copy_from_slice(&data[i * line..][kept]);
        }
    })
}
