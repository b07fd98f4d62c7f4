//! GatherND.

use super::number::read;
use super::rows::{BYTE_SIZED, rows};
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::ops::layout::gather_nd::TupleGeometry;
use firstlight_graph::{Op, OpError, OpKind};

pub(super) const BINDINGS: &[KernelBinding] = &rows(OpKind::GatherND, BYTE_SIZED, gather_nd);

/// Tuples of indices, eight bytes an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuples<'a> {
    geometry: &'a TupleGeometry,
    indices: &'a [u8],
}

impl<'a> Tuples<'a> {
    /// The tuples that an input of i64 holds, each of them checked.
    ///
    /// **Errors**: an index outside its dimension.
    pub(super) fn checked(
        geometry: &'a TupleGeometry,
        indices: &'a [u8],
        n_tuples: usize,
    ) -> Result<Tuples<'a>, OpError> {
        let tuples = Tuples { geometry, indices };
        for i in 0..n_tuples {
            geometry.start(|j| tuples.index(i, j))?;
        }
        Ok(tuples)
    }

    #[inline]
    fn index(self, i: usize, j: usize) -> i64 {
        read(&self.indices[(i * self.geometry.sizes.len() + j) * 8..][..8])
    }

    /// Where the slice of tuple `i` starts in its batch, in elements.
    #[inline]
    pub(super) fn start(self, i: usize) -> usize {
        let steps = self.geometry.sizes.iter().zip(&self.geometry.steps).enumerate();
        steps.fold(0, |at, (j, (&size, &step))| {
            let index = self.index(i, j);
            at + (if index < 0 { index + size as i64 } else { index }) as usize * step
        })
    }
}

fn gather_nd(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::GatherND(op) = ctx.op() else { return Err(super::other_op("GatherND")) };
    let spec = ctx.spec(0)?;
    let dims = ctx.dims(1)?;
    let geometry = TupleGeometry::new(&spec.dims, dims, op.batch_dims)?;
    if geometry.dims != *ctx.out_dims(0)? {
        return Err(OpError::shape(format!("an output {}, expected {}", ctx.out_dims(0)?, geometry.dims)));
    }
    let n_tuples = dims[..dims.rank() - 1].iter().product();
    let tuples = Tuples::checked(&geometry, ctx.bytes(1)?, n_tuples)?;
    let data = ctx.bytes(0)?;
    let out = ctx.output::<u8>(0)?;
    let width = spec.dtype.bits() / 8;
    let slice = geometry.slice * width;
    let ns_per_byte = 0.06 + 4.0 / slice.max(1) as f32;
    spread(ctx.pool(), out, slice, ns_per_byte, &|from, out| {
        for (i, to) in out.chunks_exact_mut(slice).enumerate() {
            let i = from / slice + i;
            let at = i / geometry.n_tuples * geometry.batch + tuples.start(i);
            to.copy_from_slice(&data[at * width..][..slice]);
        }
    })
}
