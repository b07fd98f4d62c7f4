//! Split.

use super::number::optional_ints;
use super::rows::{BYTE_SIZED, rows};
use super::strided::{Strided, copy_strided_to};
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{Op, OpError, OpKind};

pub(super) const BINDINGS: &[KernelBinding] = &rows(OpKind::Split, BYTE_SIZED, split);

fn split(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::Split(op) = ctx.op() else { return Err(super::other_op("Split")) };
    let dims = ctx.dims(0)?;
    let given = optional_ints(ctx, 1)?;
    let (axis, sizes) = op.geometry(dims, given.as_deref(), ctx.n_outputs())?;
    let outer: usize = dims[..axis].iter().product();
    let inner: usize = dims[axis + 1..].iter().product();
    let row = dims[axis] * inner;
    let mut start = 0;
    for (i, &size) in sizes.iter().enumerate() {
        let out = ctx.out_dims(i)?;
        let fits =
            out.rank() == dims.rank() && (0..dims.rank()).all(|d| out[d] == if d == axis { size } else { dims[d] });
        if !fits {
            return Err(OpError::shape(format!("part {i} of {dims} along axis {axis} has size {size}, not {out}")));
        }
        copy_strided_to(ctx, &Strided::new(&[outer, size * inner], &[row as isize, 1], start), i)?;
        start += size * inner;
    }
    Ok(())
}
