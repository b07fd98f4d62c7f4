//! Transpose.

use super::rows::{BYTE_SIZED, rows};
use super::strided::{Strided, copy_strided};
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{Op, OpError, OpKind};
use smallvec::SmallVec;

pub(super) const BINDINGS: &[KernelBinding] = &rows(OpKind::Transpose, BYTE_SIZED, transpose);

fn transpose(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::Transpose(op) = ctx.op() else { return Err(super::other_op("Transpose")) };
    let strides = ctx.dims(0)?.strides();
    let steps: SmallVec<[isize; 6]> = op.axes(strides.len())?.iter().map(|&axis| strides[axis] as isize).collect();
    copy_strided(ctx, &Strided::new(ctx.out_dims(0)?, &steps, 0))
}
