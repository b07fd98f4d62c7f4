//! Ops that keep their input's bytes, where no view serves.

use super::rows::{BYTE_SIZED, joined, rows};
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{OpError, OpKind};

pub(super) const BINDINGS: &[KernelBinding] = &joined::<{ 5 * 20 }>(&[
    &rows(OpKind::Reshape, BYTE_SIZED, copy),
    &rows(OpKind::Flatten, BYTE_SIZED, copy),
    &rows(OpKind::Squeeze, BYTE_SIZED, copy),
    &rows(OpKind::Unsqueeze, BYTE_SIZED, copy),
    &rows(OpKind::Identity, BYTE_SIZED, copy),
]);

fn copy(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let from = ctx.bytes(0)?;
    let out = ctx.output::<u8>(0)?;
    if from.len() != out.len() {
        return Err(OpError::shape(format!("an input {} for an output {}", ctx.dims(0)?, ctx.out_dims(0)?)));
    }
    spread(ctx.pool(), out, 1, 0.06, &|at, to| to.copy_from_slice(&from[at..][..to.len()]))
}
