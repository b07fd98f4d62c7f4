//! LRN.

use super::number::read;
use super::real::{Math, Real};
use super::rows::row;
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_gemm::{Binary, Isa, Src, Unary};
use firstlight_graph::ops::LRN;
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::{BF16, F16, F32, F64};
use firstlight_tensor::{bf16, f16};

pub(super) const BINDINGS: &[KernelBinding] = &[
    row(OpKind::LRN, &[F32], lrn_f32),
    row(OpKind::LRN, &[F64], lrn::<f64>),
    row(OpKind::LRN, &[F16], lrn::<f16>),
    row(OpKind::LRN, &[BF16], lrn::<bf16>),
];

/// The op, channels of an image, and elements of a channel.
fn settings<'a>(ctx: &KernelCtx<'a>) -> Result<(&'a LRN, usize, usize), OpError> {
    let Op::LRN(op) = ctx.op() else { return Err(super::other_op("LRN")) };
    let (x, y) = (ctx.dims(0)?, ctx.out_dims(0)?);
    match x.get(1) {
        // Where a product of some sizes saturates another size is 0, and there is nothing to read.
        Some(&channels) if x == y => Ok((op, channels, x[2..].iter().fold(1usize, |n, &dim| n.saturating_mul(dim)))),
        _ => Err(OpError::shape(format!("an input {x} for an output {y}"))),
    }
}

fn lrn_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    /// Elements that stay in the first-level cache from the first square to the quotient.
    const BLOCK: usize = 1024;
    let (op, channels, plane) = settings(ctx)?;
    let isa = Isa::detect();
    let factor = op.alpha / op.size as f64 as f32;
    let x = Src::from_bytes(ctx.bytes(0)?);
    let out = ctx.output::<f32>(0)?;
    let power_ns = if [0.5, 0.75, 1.0].contains(&op.beta) { 0.5 } else { 40.0 };
    let ns = power_ns + 0.15 * op.region(channels / 2, channels).len() as f32 + 40.0 / plane.max(1) as f32;
    spread(ctx.pool(), out, 1, ns, &|from, out| {
        let mut block = [0f32; BLOCK];
        let mut done = 0;
        while done < out.len() {
            let at = from + done;
            // To the end of the plane, of the block or of the chunk.
            let len = (plane - at % plane).min(BLOCK).min(out.len() - done);
            let (y, power) = (&mut out[done..done + len], &mut block[..len]);
            let channel = at / plane % channels;
            y.fill(0.0);
            for other in op.region(channel, channels) {
                isa.unary(Unary::Square, x.slice(at - channel * plane + other * plane, len), power);
                isa.binary_in_place(Binary::Add, y, &*power);
            }
            isa.binary_scalar_in_place(Binary::Mul, y, factor);
            isa.binary_scalar_in_place(Binary::Add, y, op.bias);
            match op.beta {
                0.5 => isa.unary(Unary::Sqrt, &*y, power),
                0.75 => {
                    isa.unary(Unary::Sqrt, &*y, power);
                    isa.unary(Unary::Sqrt, &*power, y);
                    isa.binary_in_place(Binary::Mul, power, &*y);
                }
                1.0 => power.copy_from_slice(y),
                beta => power.iter_mut().zip(&*y).for_each(|(power, &base)| *power = raised(base, beta)),
            }
            isa.binary(Binary::Div, x.slice(at, len), &*power, y);
            done += len;
        }
    })
}

/// A power, taken in f64 and rounded.
fn raised<M: Math>(base: M, beta: f32) -> M {
    M::of(libm::pow(base.to_f64(), beta.into()))
}

fn lrn<T: Real>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let (op, channels, plane) = settings(ctx)?;
    let x = ctx.bytes(0)?;
    let at = |i: usize| read::<T>(&x[i * size_of::<T>()..][..size_of::<T>()]).widen();
    let out = ctx.output::<T>(0)?;
    spread(ctx.pool(), out, 1, 40.0, &|from, out| {
        let factor = T::Math::of(op.alpha.into()) / T::Math::of(op.size as f64);
        for (i, y) in out.iter_mut().enumerate() {
            let i = from + i;
            let channel = i / plane % channels;
            let mut sum = T::Math::ZERO;
            for other in op.region(channel, channels) {
                let x = at(i - channel * plane + other * plane);
                sum = sum + x * x;
            }
            let base = T::Math::of(op.bias.into()) + factor * sum;
            let power = match op.beta {
                0.5 => base.sqrt(),
                0.75 => base.sqrt() * base.sqrt().sqrt(),
                1.0 => base,
                beta => raised(base, beta),
            };
            *y = T::narrow(at(i) / power);
        }
    })
}
