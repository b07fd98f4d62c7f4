//! Pow.

use super::elementwise::{pairs, zip2};
use super::number::{Number, read};
use super::real::{Math, Real};
use super::rows::{joined, row};
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_gemm::{Isa, Src, Unary};
use firstlight_graph::{OpError, OpKind};
use firstlight_tensor::DType::{F32, I32, I64};
use firstlight_tensor::{bf16, f16};
use std::marker::PhantomData;

pub(super) const BINDINGS: &[KernelBinding] = &joined::<{ 4 * 6 + 4 }>(&[
    &Powers::<f32>::ROWS,
    &Powers::<f64>::ROWS,
    &Powers::<f16>::ROWS,
    &Powers::<bf16>::ROWS,
    &[
        row(OpKind::Pow, &[I64, I64], |ctx| int(ctx, |x: i64, y: i64| int_pow(x, y))),
        row(OpKind::Pow, &[I64, I32], |ctx| int(ctx, |x: i64, y: i32| int_pow(x, y.into()))),
        // Powers that wrap at 64 bits and are cut to 32 have wrapped at 32.
        row(OpKind::Pow, &[I32, I64], |ctx| int(ctx, |x: i32, y: i64| int_pow(x.into(), y) as i32)),
        row(OpKind::Pow, &[I32, I32], |ctx| int(ctx, |x: i32, y: i32| int_pow(x.into(), y.into()) as i32)),
    ],
]);

struct Powers<T>(PhantomData<T>);

impl<T: Real> Powers<T> {
    const ROWS: [KernelBinding; 6] = [
        Power::<T, f32>::ROW,
        Power::<T, f64>::ROW,
        Power::<T, f16>::ROW,
        Power::<T, bf16>::ROW,
        Power::<T, i64>::ROW,
        Power::<T, i32>::ROW,
    ];
}

struct Power<T, Y>(PhantomData<(T, Y)>);

impl<T: Real, Y: Exponent> Power<T, Y> {
    const ROW: KernelBinding = row(OpKind::Pow, &[T::TYPE, Y::TYPE], float::<T, Y>);
}

trait Exponent: Number {
    fn to_f64(self) -> f64;
}

macro_rules! exponents {
    ($($ty:ident: $to:expr;)*) => { $(
        impl Exponent for $ty {
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $to(self)
            }
        }
    )* };
}

exponents! {
    f32: f64::from;
    f64: f64::from;
    f16: f64::from;
    bf16: f64::from;
    i64: |y| y as f64;
    i32: f64::from;
}

/// Floats to any power, in f64; the powers that models take of a whole tensor without a call.
fn float<T: Real, Y: Exponent>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let isa = Isa::detect();
    let to_f64 = |x: T| x.widen().to_f64();
    let narrow = |x: f64| T::narrow(T::Math::of(x));
    let one = ctx.bytes(1)?;
    let small = one.len() == size_of::<Y>() && [1.0, 2.0, 3.0].contains(&read::<Y>(one).to_f64());
    zip2::<T>(ctx, [size_of::<T>(), size_of::<Y>()], if small { 0.5 } else { 25.0 }, &|x, y, out| {
        let power = if y.len() == size_of::<Y>() { read::<Y>(y).to_f64() } else { f64::NAN };
        if power == 2.0 && T::TYPE == F32 {
            return isa.unary(Unary::Square, Src::from_bytes(x), bytemuck::cast_slice_mut(out));
        }
        match power {
            1.0 => pairs(x, y, out, |x: T, _: Y| x),
            2.0 => pairs(x, y, out, |x: T, _: Y| narrow(to_f64(x) * to_f64(x))),
            3.0 => pairs(x, y, out, |x: T, _: Y| narrow(to_f64(x) * to_f64(x) * to_f64(x))),
            _ => pairs(x, y, out, |x: T, y: Y| narrow(libm::pow(to_f64(x), y.to_f64()))),
        }
    })
}

fn int<T: Number, Y: Number>(ctx: &mut KernelCtx<'_>, f: impl Fn(T, Y) -> T + Sync) -> Result<(), OpError> {
    zip2::<T>(ctx, [size_of::<T>(), size_of::<Y>()], 5.0, &|x, y, out| pairs(x, y, out, &f))
}

/// Wraps; to a negative power rounds toward zero, and 0 gives 0.
fn int_pow(x: i64, y: i64) -> i64 {
    if y < 0 {
        return match x {
            1 => 1,
            -1 => 1 - 2 * (y & 1),
            _ => 0,
        };
    }
    let (mut result, mut square, mut left) = (1i64, x, y);
    while left > 0 {
        if left & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        left >>= 1;
    }
    result
}
