//! Tile, DepthToSpace and SpaceToDepth: outputs that are views of their input.

use super::number::small_ints;
use super::rows::{BYTE_SIZED, joined, rows};
use super::strided::{Strided, copy_strided};
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{Op, OpError, OpKind};

pub(super) const BINDINGS: &[KernelBinding] = &joined::<{ 3 * 20 }>(&[
    &rows(OpKind::Tile, BYTE_SIZED, tile),
    &rows(OpKind::DepthToSpace, BYTE_SIZED, blocks),
    &rows(OpKind::SpaceToDepth, BYTE_SIZED, blocks),
]);

fn tile(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::Tile(op) = ctx.op() else { return Err(super::other_op("Tile")) };
    let geometry = op.geometry(ctx.dims(0)?, &small_ints(ctx, 1)?)?;
    expect_output(ctx, &geometry.dims)?;
    copy_strided(ctx, &Strided::new(&geometry.view, &geometry.steps, 0))
}

fn blocks(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let geometry = match ctx.op() {
        Op::DepthToSpace(op) => op.geometry(ctx.dims(0)?)?,
        Op::SpaceToDepth(op) => op.geometry(ctx.dims(0)?)?,
        _ => return Err(super::other_op("DepthToSpace or SpaceToDepth")),
    };
    expect_output(ctx, &geometry.dims)?;
    copy_strided(ctx, &Strided::new(&geometry.view, &geometry.steps, 0))
}

fn expect_output(ctx: &KernelCtx<'_>, dims: &[usize]) -> Result<(), OpError> {
    let out = ctx.out_dims(0)?;
    match out[..] == *dims {
        true => Ok(()),
        false => Err(OpError::shape(format!("an output {out}, expected {dims:?}"))),
    }
}
