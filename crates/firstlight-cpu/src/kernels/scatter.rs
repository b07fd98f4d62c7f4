//! ScatterND and ScatterElements: the data are copied over the pool, updates are applied in their order by one thread.

use super::number::{Ints, Number, read};
use super::rows::{BYTE_SIZED, INDEXED, joined, rows};
use super::spread::spread;
use super::strided::Strided;
use super::tuples::Tuples;
use bytemuck::Pod;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::ops::layout::scatter::Reduction;
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::{DType, bf16, f16};
use smallvec::SmallVec;

pub(super) const BINDINGS: &[KernelBinding] =
    &joined::<60>(&[&rows(OpKind::ScatterND, BYTE_SIZED, scatter), &rows(OpKind::ScatterElements, INDEXED, scatter)]);

fn scatter(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let reduction = match ctx.op() {
        Op::ScatterND(op) => op.reduction,
        Op::ScatterElements(op) => op.reduction,
        _ => return Err(super::other_op("ScatterND or ScatterElements")),
    };
    let dtype = ctx.spec(0)?.dtype;
    reduction.check(dtype)?;
    if reduction == Reduction::None {
        return match dtype.bits() {
            8 => update::<u8>(ctx, |_, new| new),
            16 => update::<u16>(ctx, |_, new| new),
            32 => update::<u32>(ctx, |_, new| new),
            64 => update::<u64>(ctx, |_, new| new),
            128 => update::<[u64; 2]>(ctx, |_, new| new),
            _ => Err(OpError::unsupported(format!("elements of {dtype} cannot be moved one by one"))),
        };
    }
    match dtype {
        DType::F32 => reduce::<f32>(ctx, reduction),
        DType::F64 => reduce::<f64>(ctx, reduction),
        DType::F16 => reduce::<f16>(ctx, reduction),
        DType::BF16 => reduce::<bf16>(ctx, reduction),
        DType::I64 => reduce::<i64>(ctx, reduction),
        DType::I32 => reduce::<i32>(ctx, reduction),
        DType::I16 => reduce::<i16>(ctx, reduction),
        DType::I8 => reduce::<i8>(ctx, reduction),
        DType::U64 => reduce::<u64>(ctx, reduction),
        DType::U32 => reduce::<u32>(ctx, reduction),
        DType::U16 => reduce::<u16>(ctx, reduction),
        DType::U8 => reduce::<u8>(ctx, reduction),
        other => Err(OpError::dtype(format!("elements of {other} are not reduced"))),
    }
}

fn reduce<T: Number>(ctx: &mut KernelCtx<'_>, reduction: Reduction) -> Result<(), OpError> {
    match reduction {
        Reduction::None => update::<T>(ctx, |_, new| new),
        Reduction::Add => update::<T>(ctx, T::add),
        Reduction::Mul => update::<T>(ctx, T::mul),
        Reduction::Max => update::<T>(ctx, super::ordered::max),
        Reduction::Min => update::<T>(ctx, super::ordered::min),
    }
}

/// Copies the data and replaces each element that an update meets by `f` of both.
fn update<T: Pod + Send>(ctx: &mut KernelCtx<'_>, f: impl Fn(T, T) -> T) -> Result<(), OpError> {
    let width = size_of::<T>();
    let (data, updates) = (ctx.bytes(0)?, ctx.bytes(2)?);
    let (shape, dims) = (ctx.dims(0)?, ctx.dims(1)?);
    let new = |i: usize| read::<T>(&updates[i * width..][..width]);
    let out = ctx.output::<T>(0)?;
    if data.len() != size_of_val(out) {
        return Err(OpError::shape(format!("an input {shape} for an output {}", ctx.out_dims(0)?)));
    }
    let copy = |out: &mut [T]| {
        spread(ctx.pool(), out, 1, 0.06 * width as f32, &|at, to| {
            let to = bytemuck::cast_slice_mut::<T, u8>(to);
            to.copy_from_slice(&data[at * width..][..to.len()]);
        })
    };
    match ctx.op() {
        Op::ScatterND(op) => {
            let geometry = op.geometry(shape, dims, ctx.dims(2)?)?;
            let n_tuples = dims[..dims.rank() - 1].iter().product();
            let tuples = Tuples::checked(&geometry, ctx.bytes(1)?, n_tuples)?;
            copy(out)?;
            let slice = geometry.slice;
            for i in 0..if slice == 0 { 0 } else { n_tuples } {
                for (j, out) in out[tuples.start(i)..][..slice].iter_mut().enumerate() {
                    *out = f(*out, new(i * slice + j));
                }
            }
        }
        Op::ScatterElements(op) => {
            let axis = op.axis_of(shape, dims, ctx.dims(2)?)?;
            let indices = Ints::of(ctx, 1)?;
            indices.check_indices(shape[axis])?;
            copy(out)?;
            let mut steps: SmallVec<[isize; 6]> = shape.strides().iter().map(|&stride| stride as isize).collect();
            let along = std::mem::replace(&mut steps[axis], 0) as usize;
            let starts = Strided::new(dims, &steps, 0);
            let step = starts.inner_step() as usize;
            starts.for_each(0, indices.len(), |part, start| {
                for (i, update) in part.enumerate() {
                    let at = start + i * step + indices.index(update, shape[axis]) * along;
                    out[at] = f(out[at], new(update));
                }
            });
        }
        _ => return Err(super::other_op("ScatterND or ScatterElements")),
    }
    Ok(())
}
