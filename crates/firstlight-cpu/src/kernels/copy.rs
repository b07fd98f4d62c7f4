//! Ops that keep their input's bytes, where no view serves.

use super::rows::{BYTE_SIZED, rows};
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{OpError, OpKind};

pub(super) const RESHAPE: &[KernelBinding] = &rows(OpKind::Reshape, BYTE_SIZED, copy);
pub(super) const FLATTEN: &[KernelBinding] = &rows(OpKind::Flatten, BYTE_SIZED, copy);
pub(super) const SQUEEZE: &[KernelBinding] = &rows(OpKind::Squeeze, BYTE_SIZED, copy);
pub(super) const UNSQUEEZE: &[KernelBinding] = &rows(OpKind::Unsqueeze, BYTE_SIZED, copy);

fn copy(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let from = ctx.bytes(0)?;
    let out = ctx.output::<u8>(0)?;
    if from.len() != out.len() {
        return Err(OpError::shape(format!("an input {} for an output {}", ctx.dims(0)?, ctx.out_dims(0)?)));
    }
    spread(ctx.pool(), out, 1, 0.06, &|at, to| to.copy_from_slice(&from[at..][..to.len()]))
}
