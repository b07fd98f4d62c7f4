//! Functions of one tensor, element by element.

use super::elementwise::{map1, zip1};
use super::number::{Float, Number, read};
use super::other_op;
use super::real::{Math, Real};
use super::rows::{joined, row};
use super::spread::STREAM_NS;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_gemm::{Isa, Src, Unary};
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::*;
use firstlight_tensor::{DType, bf16, f16};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};
use std::marker::PhantomData;

/// The functions of floating point that have a vector form.
const FUNCTIONS: &[OpKind; 21] = &[
    OpKind::Ceil,
    OpKind::Celu,
    OpKind::Elu,
    OpKind::Erf,
    OpKind::Exp,
    OpKind::Floor,
    OpKind::Gelu,
    OpKind::HardSigmoid,
    OpKind::HardSwish,
    OpKind::LeakyRelu,
    OpKind::Log,
    OpKind::Mish,
    OpKind::Reciprocal,
    OpKind::Round,
    OpKind::Selu,
    OpKind::Sigmoid,
    OpKind::Softplus,
    OpKind::Softsign,
    OpKind::Sqrt,
    OpKind::Tanh,
    OpKind::ThresholdedRelu,
];

pub(super) const BINDINGS: &[KernelBinding] = &joined::<{ 4 * 21 + 4 + 2 * 4 + 7 * 3 + 4 * 2 + 12 + 16 }>(&[
    &of_all(FUNCTIONS, &[F32], in_f32),
    &of_all(FUNCTIONS, &[F64], in_f64),
    &of_all(FUNCTIONS, &[F16], narrow::<f16>),
    &of_all(FUNCTIONS, &[BF16], narrow::<bf16>),
    &of_all(SIGNS, &[F32], in_f32),
    &[row(OpKind::Relu, &[F32], in_f32)],
    &Rows::<f32>::ANGLES,
    &Rows::<f64>::ANGLES,
    &Rows::<f16>::ANGLES,
    &Rows::<bf16>::ANGLES,
    &Rows::<f64>::SIGNS,
    &Rows::<f16>::SIGNS,
    &Rows::<bf16>::SIGNS,
    &Rows::<i64>::SIGNS,
    &Rows::<i32>::SIGNS,
    &Rows::<i16>::SIGNS,
    &Rows::<i8>::SIGNS,
    &Rows::<u64>::UNSIGNED,
    &Rows::<u32>::UNSIGNED,
    &Rows::<u16>::UNSIGNED,
    &Rows::<u8>::UNSIGNED,
    &[
        row(OpKind::Clip, &[F32], clip_f32),
        row(OpKind::Clip, &[F64], clip::<f64>),
        row(OpKind::Clip, &[F16], clip::<f16>),
        row(OpKind::Clip, &[BF16], clip::<bf16>),
        row(OpKind::Clip, &[I64], clip::<i64>),
        row(OpKind::Clip, &[I32], clip::<i32>),
        row(OpKind::Clip, &[I16], clip::<i16>),
        row(OpKind::Clip, &[I8], clip::<i8>),
        row(OpKind::Clip, &[U64], clip::<u64>),
        row(OpKind::Clip, &[U32], clip::<u32>),
        row(OpKind::Clip, &[U16], clip::<u16>),
        row(OpKind::Clip, &[U8], clip::<u8>),
    ],
    &[
        row(OpKind::IsNaN, &[F32], |ctx| map1(ctx, STREAM_NS, |x: f32| u8::from(x.is_nan()))),
        row(OpKind::IsNaN, &[F64], |ctx| map1(ctx, STREAM_NS, |x: f64| u8::from(x.is_nan()))),
        row(OpKind::IsNaN, &[F16], |ctx| map1(ctx, STREAM_NS, |x: f16| u8::from(x.is_nan()))),
        row(OpKind::IsNaN, &[BF16], |ctx| map1(ctx, STREAM_NS, |x: bf16| u8::from(x.is_nan()))),
        row(OpKind::IsNaN, &[F8E4M3FN], |ctx| map1(ctx, STREAM_NS, |x: u8| u8::from(x & 0x7f == 0x7f))),
        row(OpKind::IsNaN, &[F8E5M2], |ctx| map1(ctx, STREAM_NS, |x: u8| u8::from(x & 0x7f > 0x7c))),
        row(OpKind::IsNaN, &[F8E4M3FNUZ], |ctx| map1(ctx, STREAM_NS, |x: u8| u8::from(x == 0x80))),
        row(OpKind::IsNaN, &[F8E5M2FNUZ], |ctx| map1(ctx, STREAM_NS, |x: u8| u8::from(x == 0x80))),
        row(OpKind::IsInf, &[F32], |ctx| is_inf(ctx, f32::NEG_INFINITY, f32::INFINITY)),
        row(OpKind::IsInf, &[F64], |ctx| is_inf(ctx, f64::NEG_INFINITY, f64::INFINITY)),
        row(OpKind::IsInf, &[F16], |ctx| is_inf(ctx, f16::NEG_INFINITY, f16::INFINITY)),
        row(OpKind::IsInf, &[BF16], |ctx| is_inf(ctx, bf16::NEG_INFINITY, bf16::INFINITY)),
        row(OpKind::IsInf, &[F8E5M2], |ctx| is_inf(ctx, 0xfcu8, 0x7c)),
        row(OpKind::IsInf, &[F8E4M3FN], no_inf),
        row(OpKind::IsInf, &[F8E4M3FNUZ], no_inf),
        row(OpKind::IsInf, &[F8E5M2FNUZ], no_inf),
    ],
]);

/// What concerns the sign alone.
const SIGNS: &[OpKind; 3] = &[OpKind::Abs, OpKind::Neg, OpKind::Sign];

struct Rows<T>(PhantomData<T>);

impl<T: Real> Rows<T> {
    const ANGLES: [KernelBinding; 2] = [
        row(OpKind::Sin, &[T::TYPE], |ctx| map1(ctx, 20.0, |x: T| through_f64(x, libm::sin))),
        row(OpKind::Cos, &[T::TYPE], |ctx| map1(ctx, 20.0, |x: T| through_f64(x, libm::cos))),
    ];
}

impl<T: Signed> Rows<T> {
    const SIGNS: [KernelBinding; 3] = [
        row(OpKind::Abs, &[T::TYPE], |ctx| map1(ctx, STREAM_NS, T::abs)),
        row(OpKind::Neg, &[T::TYPE], |ctx| map1(ctx, STREAM_NS, T::neg)),
        row(OpKind::Sign, &[T::TYPE], |ctx| map1(ctx, STREAM_NS, T::sign)),
    ];
}

impl<T: Number + PartialOrd> Rows<T> {
    const UNSIGNED: [KernelBinding; 2] = [
        row(OpKind::Abs, &[T::TYPE], |ctx| map1(ctx, STREAM_NS, |x: T| x)),
        row(OpKind::Sign, &[T::TYPE], |ctx| {
            // A number that is not 0 divided by itself is 1, and 0 by 0 is 0.
            map1(ctx, STREAM_NS, |x: T| x.div(x))
        }),
    ];
}

fn through_f64<T: Real>(x: T, f: impl Fn(f64) -> f64) -> T {
    T::narrow(T::Math::of(f(x.widen().to_f64())))
}

/// A number with a sign.
trait Signed: Number {
    fn abs(self) -> Self;
    fn neg(self) -> Self;
    /// 1, 0 or -1; NaN stays.
    fn sign(self) -> Self;
}

macro_rules! signed {
    ($($int:ident)*; $($float:ident, $bits:ident, $zero:expr, $one:expr;)*) => {
        $(impl Signed for $int {
            fn abs(self) -> $int {
                self.wrapping_abs()
            }
            fn neg(self) -> $int {
                self.wrapping_neg()
            }
            fn sign(self) -> $int {
                self.signum()
            }
        })*
        $(impl Signed for $float {
            fn abs(self) -> $float {
                $float::from_bits(self.to_bits() & ($bits::MAX >> 1))
            }
            fn neg(self) -> $float {
                -self
            }
            fn sign(self) -> $float {
                if self > $zero {
                    $one
                } else if self < $zero {
                    -$one
                } else if self == $zero {
                    $zero
                } else {
                    self
                }
            }
        })*
    };
}

signed! {
    i64 i32 i16 i8;
    f64, u64, 0.0, 1.0;
    f16, u16, f16::ZERO, f16::ONE;
    bf16, u16, bf16::ZERO, bf16::ONE;
}

fn is_inf<T: bytemuck::Pod + PartialEq + Sync>(
    ctx: &mut KernelCtx<'_>,
    negative: T,
    positive: T,
) -> Result<(), OpError> {
    let Op::IsInf(op) = ctx.op() else { return Err(other_op("IsInf")) };
    map1(ctx, STREAM_NS, |x: T| u8::from((op.negative && x == negative) || (op.positive && x == positive)))
}

fn no_inf(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    map1(ctx, STREAM_NS, |_: u8| 0u8)
}

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
        Op::Abs(_) => Unary::Abs,
        Op::Ceil(_) => Unary::Ceil,
        Op::Celu(op) => Unary::Celu { alpha: op.alpha },
        Op::Elu(op) => Unary::Elu { alpha: op.alpha },
        Op::Erf(_) => Unary::Erf,
        Op::Exp(_) => Unary::Exp,
        Op::Floor(_) => Unary::Floor,
        Op::Gelu(op) => {
            if op.tanh {
                Unary::GeluTanh
            } else {
                Unary::Gelu
            }
        }
        Op::HardSigmoid(op) => Unary::HardSigmoid { alpha: op.alpha, beta: op.beta },
        Op::HardSwish(_) => Unary::HardSwish,
        Op::LeakyRelu(op) => Unary::LeakyRelu { alpha: op.alpha },
        Op::Log(_) => Unary::Log,
        Op::Mish(_) => Unary::Mish,
        Op::Neg(_) => Unary::Neg,
        Op::Reciprocal(_) => Unary::Reciprocal,
        Op::Relu(_) => Unary::Relu,
        Op::Round(_) => Unary::Round,
        Op::Selu(op) => Unary::Selu { alpha: op.alpha, gamma: op.gamma },
        Op::Sigmoid(_) => Unary::Sigmoid,
        Op::Sign(_) => Unary::Sign,
        Op::Softplus(_) => Unary::Softplus,
        Op::Softsign(_) => Unary::Softsign,
        Op::Sqrt(_) => Unary::Sqrt,
        Op::Tanh(_) => Unary::Tanh,
        Op::ThresholdedRelu(op) => Unary::ThresholdedRelu { alpha: op.alpha },
        _ => return None,
    })
}

/// About how long a function takes for an element that is in the cache.
pub(super) fn function_ns(function: Unary) -> f32 {
    match function {
        Unary::Softplus | Unary::Mish | Unary::Gelu | Unary::GeluTanh => 0.8,
        Unary::Sigmoid | Unary::Erf | Unary::Tanh | Unary::Exp | Unary::Log => 0.4,
        Unary::Elu { .. } | Unary::Selu { .. } | Unary::Celu { .. } => 0.4,
        Unary::Sqrt | Unary::Reciprocal | Unary::Softsign => 0.2,
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
    let elu = |x: f64, alpha: f64| if x < 0.0 { alpha * libm::expm1(x) } else { x };
    match ctx.op() {
        Op::Ceil(_) => map1(ctx, 1.0, f64::ceil),
        Op::Celu(op) => {
            let alpha = f64::from(op.alpha);
            map1(ctx, 10.0, |x: f64| if x < 0.0 { alpha * libm::expm1(x / alpha) } else { x })
        }
        Op::Elu(op) => map1(ctx, 10.0, |x| elu(x, op.alpha.into())),
        Op::Erf(_) => map1(ctx, 10.0, libm::erf),
        Op::Exp(_) => map1(ctx, 10.0, libm::exp),
        Op::Floor(_) => map1(ctx, 1.0, f64::floor),
        Op::Gelu(op) if op.tanh => map1(ctx, 20.0, |x: f64| {
            // sqrt(2 / pi) = 2 / sqrt(pi) / sqrt(2)
            0.5 * x * (1.0 + libm::tanh(FRAC_2_SQRT_PI / SQRT_2 * (x + 0.044715 * (x * x * x))))
        }),
        Op::Gelu(_) => map1(ctx, 20.0, |x: f64| 0.5 * x * (1.0 + libm::erf(x * FRAC_1_SQRT_2))),
        Op::HardSigmoid(op) => {
            let (alpha, beta) = (op.alpha.into(), op.beta.into());
            map1(ctx, 1.0, move |x| hard_sigmoid(x, alpha, beta))
        }
        Op::HardSwish(_) => map1(ctx, 1.0, |x: f64| x * hard_sigmoid(x, 1.0 / 6.0, 0.5)),
        Op::LeakyRelu(op) => {
            let alpha = f64::from(op.alpha);
            map1(ctx, 1.0, |x: f64| if x < 0.0 { alpha * x } else { x })
        }
        Op::Log(_) => map1(ctx, 10.0, libm::log),
        Op::Mish(_) => map1(ctx, 30.0, |x: f64| x * libm::tanh(softplus(x))),
        Op::Reciprocal(_) => map1(ctx, 1.0, |x: f64| 1.0 / x),
        Op::Round(_) => map1(ctx, 1.0, f64::round_ties_even),
        Op::Selu(op) => map1(ctx, 10.0, |x| f64::from(op.gamma) * elu(x, op.alpha.into())),
        Op::Sigmoid(_) => map1(ctx, 10.0, sigmoid),
        Op::Softplus(_) => map1(ctx, 20.0, softplus),
        Op::Softsign(_) => map1(ctx, 1.0, |x: f64| x / (1.0 + x.abs())),
        Op::Sqrt(_) => map1(ctx, 2.0, f64::sqrt),
        Op::Tanh(_) => map1(ctx, 10.0, libm::tanh),
        Op::ThresholdedRelu(op) => {
            let alpha = f64::from(op.alpha);
            map1(ctx, 1.0, |x: f64| if x > alpha { x } else { 0.0 })
        }
        _ => Err(other_op("a function of f64")),
    }
}

fn sigmoid(x: f64) -> f64 {
    let e = libm::exp(-x.abs());
    if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
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
