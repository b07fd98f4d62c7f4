//! Gather and GatherElements.

use super::number::{Ints, read};
use super::rows::{INDEXED, rows};
use super::spread::spread;
use super::strided::Strided;
use bytemuck::Pod;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{Op, OpError, OpKind};
use smallvec::SmallVec;

pub(super) const BINDINGS: &[KernelBinding] = &rows(OpKind::Gather, INDEXED, gather);
pub(super) const ELEMENTS: &[KernelBinding] = &rows(OpKind::GatherElements, INDEXED, gather_elements);

fn gather(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::Gather(op) = ctx.op() else { return Err(super::other_op("Gather")) };
    let spec = ctx.spec(0)?;
    let indices = Ints::of(ctx, 1)?;
    let geometry = op.geometry(&spec.dims, ctx.dims(1)?)?;
    if geometry.dims != *ctx.out_dims(0)? {
        return Err(OpError::shape(format!("an output {}, expected {}", ctx.out_dims(0)?, geometry.dims)));
    }
    indices.check_indices(geometry.size)?;
    let data = ctx.bytes(0)?;
    let out = ctx.output::<u8>(0)?;
    let slice = geometry.inner * spec.dtype.bits() / 8;
    let block = geometry.size * slice;
    let ns_per_byte = 0.06 + 3.0 / slice.max(1) as f32;
    spread(ctx.pool(), out, slice, ns_per_byte, &|from, out| {
        let (mut outer, mut i) = (from / slice / indices.len(), from / slice % indices.len());
        for to in out.chunks_exact_mut(slice) {
            let at = outer * block + indices.index(i, geometry.size) * slice;
            to.copy_from_slice(&data[at..][..slice]);
            i += 1;
            if i == indices.len() {
                (outer, i) = (outer + 1, 0);
            }
        }
    })
}

fn gather_elements(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let dtype = ctx.spec(0)?.dtype;
    match dtype.bits() {
        8 => elements::<u8>(ctx),
        16 => elements::<u16>(ctx),
        32 => elements::<u32>(ctx),
        64 => elements::<u64>(ctx),
        128 => elements::<[u64; 2]>(ctx),
        _ => Err(OpError::unsupported(format!("elements of {dtype} cannot be moved one by one"))),
    }
}

fn elements<W: Pod + Send>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::GatherElements(op) = ctx.op() else { return Err(super::other_op("GatherElements")) };
    let (shape, dims) = (ctx.dims(0)?, ctx.dims(1)?);
    let axis = op.axis_of(shape, dims)?;
    if dims != ctx.out_dims(0)? {
        return Err(OpError::shape(format!("an output {}, expected {dims}", ctx.out_dims(0)?)));
    }
    let indices = Ints::of(ctx, 1)?;
    indices.check_indices(shape[axis])?;
    let data = ctx.bytes(0)?;
    let out = ctx.output::<W>(0)?;
    // Where each output element's slice starts: its position over the data's strides, without the axis.
    let mut steps: SmallVec<[isize; 6]> = shape.strides().iter().map(|&stride| stride as isize).collect();
    let along = std::mem::replace(&mut steps[axis], 0) as usize;
    let starts = Strided::new(dims, &steps, 0);
    let (step, width) = (starts.inner_step() as usize, size_of::<W>());
    spread(ctx.pool(), out, 1, 2.0, &|from, out| {
        starts.for_each(from, out.len(), |part, start| {
            for (i, out) in out[part.clone()].iter_mut().enumerate() {
                let at = start + i * step + indices.index(from + part.start + i, shape[axis]) * along;
                *out = read(&data[at * width..][..width]);
            }
        });
    })
}
