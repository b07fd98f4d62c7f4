//! Ops whose results follow from shapes and a few values: ConstantOfShape, NonZero, Range, Shape, Size.

use super::number::{Number, read};
use super::real::{Math, Real};
use super::rows::{BYTE_SIZED, joined, row, rows};
use super::runs::Dims;
use super::spread::{STREAM_NS, spread};
use bytemuck::Pod;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType;
use firstlight_tensor::DType::*;
use firstlight_tensor::{bf16, f16};
use std::marker::PhantomData;

pub(super) const BINDINGS: &[KernelBinding] = &joined::<{ 20 + 13 + 7 + 26 + 26 }>(&[
    &rows(OpKind::ConstantOfShape, BYTE_SIZED, constant_of_shape),
    &[
        Places::<f32>::ROW,
        Places::<f64>::ROW,
        Places::<f16>::ROW,
        Places::<bf16>::ROW,
        Places::<i64>::ROW,
        Places::<i32>::ROW,
        Places::<i16>::ROW,
        Places::<i8>::ROW,
        Places::<u64>::ROW,
        Places::<u32>::ROW,
        Places::<u16>::ROW,
        Places::<u8>::ROW,
        row(OpKind::NonZero, &[Bool], |ctx| non_zero(ctx, |x: u8| x != 0)),
    ],
    &[
        row(OpKind::Range, &[F32], float_range::<f32>),
        row(OpKind::Range, &[F64], float_range::<f64>),
        row(OpKind::Range, &[F16], float_range::<f16>),
        row(OpKind::Range, &[BF16], float_range::<bf16>),
        row(OpKind::Range, &[I64], |ctx| int_range(ctx, |i| i as i64)),
        row(OpKind::Range, &[I32], |ctx| int_range(ctx, |i| i as i32)),
        row(OpKind::Range, &[I16], |ctx| int_range(ctx, |i| i as i16)),
    ],
    &rows(OpKind::Shape, ALL, shape),
    &rows(OpKind::Size, ALL, size),
]);

const ALL: &[&[DType]; 26] = &[
    &[F32],
    &[F64],
    &[F16],
    &[BF16],
    &[F8E4M3FN],
    &[F8E4M3FNUZ],
    &[F8E5M2],
    &[F8E5M2FNUZ],
    &[F8E8M0],
    &[F4E2M1],
    &[I64],
    &[I32],
    &[I16],
    &[I8],
    &[I4],
    &[I2],
    &[U64],
    &[U32],
    &[U16],
    &[U8],
    &[U4],
    &[U2],
    &[Bool],
    &[String],
    &[Complex64],
    &[Complex128],
];

struct Places<T>(PhantomData<T>);

impl<T: Number> Places<T> {
    const ROW: KernelBinding = row(OpKind::NonZero, &[T::TYPE], |ctx| non_zero(ctx, |x: T| x != T::zeroed()));
}

fn constant_of_shape(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::ConstantOfShape(op) = ctx.op() else { return Err(super::other_op("ConstantOfShape")) };
    let value = op.value.as_bytes();
    match value.len() {
        1 => fill::<u8>(ctx, value),
        2 => fill::<u16>(ctx, value),
        4 => fill::<u32>(ctx, value),
        8 => fill::<u64>(ctx, value),
        16 => fill::<[u64; 2]>(ctx, value),
        n => Err(OpError::value(format!("the value takes {n} bytes, expected one element"))),
    }
}

fn fill<W: Pod + Send + Sync>(ctx: &mut KernelCtx<'_>, value: &[u8]) -> Result<(), OpError> {
    let value: W = read(value);
    spread(ctx.pool(), ctx.output::<W>(0)?, 1, STREAM_NS, &|_, out| out.fill(value))
}

fn non_zero<T: Pod>(ctx: &mut KernelCtx<'_>, is_not: impl Fn(T) -> bool) -> Result<(), OpError> {
    let (dims, data) = (ctx.dims(0)?, ctx.bytes(0)?);
    let out = ctx.output::<i64>(0)?;
    let words = || data.chunks_exact(size_of::<T>()).map(|bytes| is_not(read(bytes)));
    let n = words().filter(|&is| is).count();
    let mut index: Dims = Dims::from_elem(0, dims.rank());
    let mut found = 0;
    for is in words() {
        if is {
            for (d, &i) in index.iter().enumerate() {
                out[d * n + found] = i as i64;
            }
            found += 1;
        }
        for d in (0..index.len()).rev() {
            index[d] += 1;
            if index[d] < dims[d] {
                break;
            }
            index[d] = 0;
        }
    }
    ctx.set_dims(0, &[dims.rank(), n])
}

fn float_range<T: Real>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let (start, delta) = (read::<T>(ctx.bytes(0)?).widen().to_f64(), read::<T>(ctx.bytes(2)?).widen().to_f64());
    let (start, delta) = (T::Math::of(start), T::Math::of(delta));
    range::<T>(ctx, |i| T::narrow(start + T::Math::of(i as f64) * delta))
}

/// Whole numbers: `cast` cuts an index off, which wraps as the product does.
fn int_range<T: Number>(ctx: &mut KernelCtx<'_>, cast: impl Fn(usize) -> T) -> Result<(), OpError> {
    let (start, delta) = (read::<T>(ctx.bytes(0)?), read::<T>(ctx.bytes(2)?));
    range(ctx, |i| start.add(cast(i).mul(delta)))
}

fn range<T: Number>(ctx: &mut KernelCtx<'_>, at: impl Fn(usize) -> T) -> Result<(), OpError> {
    for (i, out) in ctx.output::<T>(0)?.iter_mut().enumerate() {
        *out = at(i);
    }
    Ok(())
}

fn shape(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::Shape(op) = ctx.op() else { return Err(super::other_op("Shape")) };
    let dims = ctx.dims(0)?;
    let rank = dims.rank() as i64;
    let start = (if op.start < 0 { op.start.saturating_add(rank) } else { op.start }).clamp(0, rank) as usize;
    let out = ctx.output::<i64>(0)?;
    let sizes = dims.get(start..start + out.len());
    let sizes = sizes.ok_or_else(|| OpError::shape(format!("{} sizes of {dims} from {start} on", out.len())))?;
    for (out, &size) in out.iter_mut().zip(sizes) {
        *out = size as i64;
    }
    Ok(())
}

fn size(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let n = ctx.dims(0)?.n_elems().ok_or_else(|| OpError::shape("the number of elements overflows"))?;
    ctx.output::<i64>(0)?.fill(n as i64);
    Ok(())
}
