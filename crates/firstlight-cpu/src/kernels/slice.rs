//! Slice.

use super::number::{optional_ints, small_ints};
use super::rows::{INDEXED, rows};
use super::strided::{Strided, copy_strided};
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{Op, OpError, OpKind};
use smallvec::SmallVec;

pub(super) const BINDINGS: &[KernelBinding] = &rows(OpKind::Slice, INDEXED, slice);

fn slice(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::Slice(op) = ctx.op() else { return Err(super::other_op("Slice")) };
    let (starts, ends) = (small_ints(ctx, 1)?, small_ints(ctx, 2)?);
    let (axes, steps) = (optional_ints(ctx, 3)?, optional_ints(ctx, 4)?);
    let x = ctx.dims(0)?;
    let dims = op.geometry(x, &starts, &ends, axes.as_deref(), steps.as_deref())?;
    let to: SmallVec<[usize; 6]> = dims.iter().map(|dim| dim.output).collect();
    if to[..] != ctx.out_dims(0)?[..] {
        return Err(OpError::shape(format!("a slice {to:?} for an output {}", ctx.out_dims(0)?)));
    }
    let mut offset = 0;
    let mut moves: SmallVec<[isize; 6]> = SmallVec::new();
    for (dim, stride) in dims.iter().zip(x.strides()) {
        offset += dim.start * stride;
        moves.push(dim.step * stride as isize);
    }
    copy_strided(ctx, &Strided::new(&to, &moves, offset))
}
