//! BatchNormalization.
//!
//! The factor and offset of each channel are computed once, into scratch; then elements are streamed.

use super::number::read;
use super::real::{Math, Real};
use super::rows::row;
use super::spread::{STREAM_NS, spread};
use firstlight_backend::{Caps, KernelBinding, KernelCtx, KernelFn, KernelQuery};
use firstlight_gemm::{Binary, Isa, Src};
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::{self, BF16, F16, F32, F64};
use firstlight_tensor::{bf16, f16};

pub(super) const BINDINGS: &[KernelBinding] = &[
    KernelBinding { source: "planes", ..norm_row(&[F32, F32, F32], planes_f32) },
    norm_row(&[F32, F32, F32], norm::<f32>),
    norm_row(&[F64, F64, F64], norm::<f64>),
    norm_row(&[F16, F16, F16], norm::<f16>),
    norm_row(&[F16, F16, F32], norm::<f16>),
    norm_row(&[F16, F32, F32], norm::<f16>),
    norm_row(&[BF16, BF16, BF16], norm::<bf16>),
    norm_row(&[BF16, BF16, F32], norm::<bf16>),
    norm_row(&[BF16, F32, F32], norm::<bf16>),
];

/// A row with a factor and an offset a parameter as scratch. Elements of other types run the reference.
const fn norm_row(types: &'static [DType], kernel: KernelFn) -> KernelBinding {
    let caps = Caps { unaligned: true, capture_safe: true };
    KernelBinding { caps, scratch_bytes, ..row(OpKind::BatchNormalization, types, kernel) }
}

fn scratch_bytes(query: &KernelQuery<'_>) -> usize {
    let (Op::BatchNormalization(op), Some(Some(x))) = (query.op, query.inputs.first()) else { return 0 };
    let width = if x.dtype == F64 { 8 } else { 4 };
    op.planes(&x.dims).0.saturating_mul(2 * width)
}

/// Number of parameters of each kind, of neighbouring elements that share one, and what is added to the variance.
fn sizes(ctx: &KernelCtx<'_>) -> Result<(usize, usize, f32), OpError> {
    let Op::BatchNormalization(op) = ctx.op() else { return Err(super::other_op("BatchNormalization")) };
    let dims = ctx.dims(0)?;
    let (n, plane) = op.planes(dims);
    for i in 1..5 {
        if ctx.dims(i)?.n_elems() != Some(n) {
            return Err(OpError::shape(format!("a parameter of shape {} for an input {dims}", ctx.dims(i)?)));
        }
    }
    match dims == ctx.out_dims(0)? {
        true => Ok((n, plane, op.epsilon)),
        false => Err(OpError::shape(format!("an input {dims} for an output {}", ctx.out_dims(0)?))),
    }
}

/// The two halves of the scratch: a factor and an offset for each parameter.
fn halves<M>(scratch: &mut [M], n: usize) -> Result<(&mut [M], &mut [M]), OpError> {
    let misfit = || OpError::shape(format!("less scratch than {n} factors and offsets"));
    let (factors, rest) = scratch.split_at_mut_checked(n).ok_or_else(misfit)?;
    Ok((factors, rest.get_mut(..n).ok_or_else(misfit)?))
}

fn planes_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    /// Elements that stay in the first-level cache between product and sum.
    const BLOCK: usize = 2048;
    let (n, plane, epsilon) = sizes(ctx)?;
    let isa = Isa::detect();
    let src = |i: usize| ctx.bytes(i).map(Src::from_bytes);
    let (x, scale, bias, mean, var) = (src(0)?, src(1)?, src(2)?, src(3)?, src(4)?);
    let out = ctx.output::<f32>(0)?;
    if out.is_empty() {
        return Ok(());
    }
    let (factors, offsets) = halves(ctx.scratch::<f32>()?, n)?;
    for (factor, var) in factors.iter_mut().zip((0..n).filter_map(|i| var.get(i))) {
        *factor = (var + epsilon).sqrt();
    }
    isa.binary(Binary::Div, scale, &*factors, offsets);
    factors.copy_from_slice(offsets);
    isa.binary(Binary::Mul, mean, &*factors, offsets);
    for (offset, bias) in offsets.iter_mut().zip((0..n).filter_map(|i| bias.get(i))) {
        *offset = bias - *offset;
    }
    let (factors, offsets) = (&*factors, &*offsets);
    if plane == 1 {
        // Parameters lie along the elements.
        return spread(ctx.pool(), out, n, 2.0 * STREAM_NS, &|from, out| {
            for (i, out) in out.chunks_exact_mut(n).enumerate() {
                isa.binary(Binary::Mul, x.slice(from + i * n, n), factors, out);
                isa.binary_in_place(Binary::Add, out, offsets);
            }
        });
    }
    let unit = if plane < BLOCK { plane } else { 1 };
    spread(ctx.pool(), out, unit, 2.0 * STREAM_NS + 5.0 / plane as f32, &|from, out| {
        let mut done = 0;
        while done < out.len() {
            let at = from + done;
            // To the end of the plane, of the block or of the chunk.
            let len = (plane - at % plane).min(BLOCK).min(out.len() - done);
            let channel = at / plane % n;
            let part = &mut out[done..done + len];
            isa.binary_scalar(Binary::Mul, x.slice(at, len), factors[channel], part);
            isa.binary_scalar_in_place(Binary::Add, part, offsets[channel]);
            done += len;
        }
    })
}

fn norm<T: Real>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError>
where
    T::Math: bytemuck::Pod + Send + Sync,
{
    let (n, plane, epsilon) = sizes(ctx)?;
    let x = ctx.bytes(0)?;
    let out = ctx.output::<T>(0)?;
    if out.is_empty() {
        return Ok(());
    }
    let mut parameters = [(&[][..], F32); 4];
    for (i, parameter) in parameters.iter_mut().enumerate() {
        *parameter = (ctx.bytes(i + 1)?, ctx.spec(i + 1)?.dtype);
    }
    let (factors, offsets) = halves(ctx.scratch::<T::Math>()?, n)?;
    for (i, (factor, offset)) in factors.iter_mut().zip(offsets.iter_mut()).enumerate() {
        let [scale, bias, mean, var] = parameters.map(|(bytes, dtype)| T::Math::of(element(bytes, dtype, i)));
        *factor = scale / (var + T::Math::of(epsilon.into())).sqrt();
        *offset = bias - mean * *factor;
    }
    let (factors, offsets) = (&*factors, &*offsets);
    spread(ctx.pool(), out, 1, 2.0, &|from, out| {
        let x = x.chunks_exact(size_of::<T>()).skip(from);
        for (i, (out, x)) in out.iter_mut().zip(x).enumerate() {
            let channel = (from + i) / plane % n;
            *out = T::narrow(read::<T>(x).widen() * factors[channel] + offsets[channel]);
        }
    })
}

/// Element `i` of a parameter; 0 of a type that no row lists.
fn element(bytes: &[u8], dtype: DType, i: usize) -> f64 {
    let width = dtype.bits() / 8;
    let at = &bytes[i * width..][..width];
    match dtype {
        F32 => read::<f32>(at).into(),
        F64 => read::<f64>(at),
        F16 => read::<f16>(at).into(),
        BF16 => read::<bf16>(at).into(),
        _ => 0.0,
    }
}
