//! Expand.

use super::rows::{BYTE_SIZED, rows};
use super::strided::{Strided, copy_strided};
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{OpError, OpKind};
use smallvec::SmallVec;

pub(super) const BINDINGS: &[KernelBinding] = &rows(OpKind::Expand, BYTE_SIZED, expand);

fn expand(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let (from, to) = (ctx.dims(0)?, ctx.out_dims(0)?);
    let misfit = || OpError::shape(format!("shape {from} does not broadcast to {to}"));
    let lead = to.rank().checked_sub(from.rank()).ok_or_else(misfit)?;
    let mut steps: SmallVec<[isize; 6]> = SmallVec::from_elem(0, to.rank());
    for (d, (&dim, stride)) in from.iter().zip(from.strides()).enumerate() {
        match dim {
            1 => {}
            _ if dim == to[lead + d] => steps[lead + d] = stride as isize,
            _ => return Err(misfit()),
        }
    }
    copy_strided(ctx, &Strided::new(to, &steps, 0))
}
