//! Concat.

use super::rows::{BYTE_SIZED, rows};
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{Op, OpError, OpKind, normalise_axis};

pub(super) const BINDINGS: &[KernelBinding] = &rows(OpKind::Concat, BYTE_SIZED, concat);

/// About how long a byte takes to copy.
const NS_PER_BYTE: f32 = 0.06;

fn concat(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::Concat(op) = ctx.op() else { return Err(super::other_op("Concat")) };
    let joined = ctx.out_dims(0)?;
    let axis = normalise_axis(op.axis, joined.rank())?;
    let width = ctx.spec(0)?.dtype.bits() / 8;
    let out = ctx.output::<u8>(0)?;
    let row: usize = joined[axis..].iter().product::<usize>() * width;
    if out.is_empty() {
        return Ok(());
    }
    let mut start = 0;
    for i in 0..ctx.n_inputs() {
        let (dims, from) = (ctx.dims(i)?, ctx.bytes(i)?);
        let fits = dims.rank() == joined.rank() && (0..dims.rank()).all(|d| d == axis || dims[d] == joined[d]);
        let len = if fits { dims[axis..].iter().product::<usize>() * width } else { usize::MAX };
        if len > row - start {
            return Err(OpError::shape(format!("cannot join {dims} (input {i}) to {joined} along axis {axis}")));
        }
        if len == 0 {
            continue;
        }
        if row == out.len() {
            let copy = |at: usize, to: &mut [u8]| to.copy_from_slice(&from[at..][..to.len()]);
            spread(ctx.pool(), &mut out[start..start + len], 1, NS_PER_BYTE, &copy)?;
        } else {
            let ns = NS_PER_BYTE * len as f32 / row as f32 + 3.0 / row as f32;
            spread(ctx.pool(), out, row, ns, &|at, to| {
                let from = from[at / row * len..].chunks_exact(len);
                for (to, from) in to.chunks_exact_mut(row).zip(from) {
                    to[start..start + len].copy_from_slice(from);
                }
            })?;
        }
        start += len;
    }
    match start == row {
        true => Ok(()),
        false => Err(OpError::shape(format!("the inputs do not fill {joined} along axis {axis}"))),
    }
}
