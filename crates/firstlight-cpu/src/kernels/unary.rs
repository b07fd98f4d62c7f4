//! Functions of one tensor, element by element.

use super::elementwise::{map1, zip1};
use super::number::{Float, Number, read};
use super::other_op;
use super::rows::{joined, row};
use super::spread::STREAM_NS;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_gemm::{Isa, Src, Unary};
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::{BF16, F16, F32, F64};
use firstlight_tensor::{DType, bf16, f16};

/// The functions of floating point that have a vector form.
const FUNCTIONS: &[OpKind; 8] = &[
    OpKind::Erf,
    OpKind::Exp,
    OpKind::HardSigmoid,
    OpKind::HardSwish,
    OpKind::Reciprocal,
    OpKind::Sigmoid,
    OpKind::Sqrt,
    OpKind::Tanh,
];

pub(super) const BINDINGS: &[KernelBinding] = &joined::<{ 4 * 8 + 13 }>(&[
    &of_all(FUNCTIONS, &[F32], in_f32),
    &of_all(FUNCTIONS, &[F64], in_f64),
    &of_all(FUNCTIONS, &[F16], narrow::<f16>),
    &of_all(FUNCTIONS, &[BF16], narrow::<bf16>),
    &[
        row(OpKind::Relu, &[F32], in_f32),
        row(OpKind::Clip, &[F32], clip_f32),
        row(OpKind::Clip, &[F64], clip::<f64>),
        row(OpKind::Clip, &[F16], clip::<f16>),
        row(OpKind::Clip, &[BF16], clip::<bf16>),
        row(OpKind::Clip, &[i64::TYPE], clip::<i64>),
        row(OpKind::Clip, &[i32::TYPE], clip::<i32>),
        row(OpKind::Clip, &[i16::TYPE], clip::<i16>),
        row(OpKind::Clip, &[i8::TYPE], clip::<i8>),
        row(OpKind::Clip, &[u64::TYPE], clip::<u64>),
        row(OpKind::Clip, &[u32::TYPE], clip::<u32>),
        row(OpKind::Clip, &[u16::TYPE], clip::<u16>),
        row(OpKind::Clip, &[u8::TYPE], clip::<u8>),
    ],
]);

/// One kernel's rows for several ops.
const fn of_all<const N: usize>(
    ops: &[OpKind; N],
    types: &'static [DType],
    kernel: firstlight_backend::KernelFn,
) -> [KernelBinding; N] {
    let mut rows = [row(ops[0], types, kernel); N];
    let mut i = 0;
    while i < N {
        rows[i].op = ops[i];
        i += 1;
    }
    rows
}

/// The vector form of an op that has one operand; the same for plain and fused kernels.
pub(super) fn function(op: &Op) -> Option<Unary> {
    Some(match op {
        Op::Erf(_) => Unary::Erf,
        Op::Exp(_) => Unary::Exp,
        Op::HardSigmoid(op) => Unary::HardSigmoid { alpha: op.alpha, beta: op.beta },
        Op::HardSwish(_) => Unary::HardSwish,
        Op::Reciprocal(_) => Unary::Reciprocal,
        Op::Relu(_) => Unary::Relu,
        Op::Sigmoid(_) => Unary::Sigmoid,
        Op::Sqrt(_) => Unary::Sqrt,
        Op::Tanh(_) => Unary::Tanh,
        _ => return None,
    })
}

/// About how long a function takes for an element that is in the cache.
pub(super) fn function_ns(function: Unary) -> f32 {
    match function {
        Unary::Sigmoid | Unary::Erf | Unary::Tanh | Unary::Exp => 0.4,
        Unary::Sqrt | Unary::Reciprocal => 0.2,
        _ => 0.04,
    }
}

fn in_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let function = function(ctx.op()).ok_or_else(|| other_op("a function of f32"))?;
    run_f32(ctx, function)
}

fn run_f32(ctx: &mut KernelCtx<'_>, function: Unary) -> Result<(), OpError> {
    let isa = Isa::detect();
    zip1::<f32>(ctx, 4, STREAM_NS + function_ns(function), &|x, out| isa.unary(function, Src::from_bytes(x), out))
}

fn in_f64(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    match ctx.op() {
        Op::Erf(_) => map1(ctx, 10.0, libm::erf),
        Op::Exp(_) => map1(ctx, 10.0, libm::exp),
        Op::HardSigmoid(op) => {
            let (alpha, beta) = (op.alpha.into(), op.beta.into());
            map1(ctx, 1.0, move |x| hard_sigmoid(x, alpha, beta))
        }
        Op::HardSwish(_) => map1(ctx, 1.0, |x: f64| x * hard_sigmoid(x, 1.0 / 6.0, 0.5)),
        Op::Reciprocal(_) => map1(ctx, 1.0, |x: f64| 1.0 / x),
        Op::Sigmoid(_) => map1(ctx, 10.0, sigmoid),
        Op::Sqrt(_) => map1(ctx, 2.0, f64::sqrt),
        Op::Tanh(_) => map1(ctx, 10.0, libm::tanh),
        _ => Err(other_op("a function of f64")),
    }
}

fn sigmoid(x: f64) -> f64 {
    let e = libm::exp(-x.abs());
    if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

fn hard_sigmoid(x: f64, alpha: f64, beta: f64) -> f64 {
    (alpha * x + beta).clamp(0.0, 1.0)
}

/// A function of 16-bit floats through f32, a tile at a time.
fn narrow<T: Float>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    const TILE: usize = 128;
    let function = function(ctx.op()).ok_or_else(|| other_op("a function of 16-bit floats"))?;
    let isa = Isa::detect();
    let width = size_of::<T>();
    zip1::<T>(ctx, width, 4.0, &|x, out| {
        for (x, out) in x.chunks(TILE * width).zip(out.chunks_mut(TILE)) {
            let mut wide = [0f32; TILE];
            for (wide, x) in wide.iter_mut().zip(x.chunks_exact(width)) {
                *wide = read::<T>(x).to_f32();
            }
            isa.unary_in_place(function, &mut wide[..out.len()]);
            for (out, wide) in out.iter_mut().zip(wide) {
                *out = T::from_f32(wide);
            }
        }
    })
}

fn clip_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let min = bound(ctx, 1)?.unwrap_or(f32::NEG_INFINITY);
    let max = bound(ctx, 2)?.unwrap_or(f32::INFINITY);
    run_f32(ctx, Unary::Clip { min, max })
}

fn clip<T: Number + PartialOrd>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let (min, max) = (bound::<T>(ctx, 1)?, bound::<T>(ctx, 2)?);
    map1(ctx, STREAM_NS * 2.0, |x: T| {
        let x = min.filter(|min| x < *min).unwrap_or(x);
        max.filter(|max| x > *max).unwrap_or(x)
    })
}

/// The one element of an input, where it is given.
fn bound<T: Number>(ctx: &KernelCtx<'_>, i: usize) -> Result<Option<T>, OpError> {
    if !ctx.has_input(i) {
        return Ok(None);
    }
    let bytes = ctx.bytes(i)?;
    match bytes.len() == size_of::<T>() {
        true => Ok(Some(read(bytes))),
        false => Err(OpError::shape(format!("a bound has shape {}, expected one element", ctx.dims(i)?))),
    }
}
