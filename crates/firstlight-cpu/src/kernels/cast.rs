//! Cast: every pair of types, converted as the op's reference does.

use super::elementwise::{map1, zip1};
use super::rows::{joined, row};
use super::spread::STREAM_NS;
use bytemuck::Pod;
use firstlight_backend::KernelBinding;
use firstlight_gemm::{Isa, Src};
use firstlight_graph::OpKind;
use firstlight_tensor::{DType, bf16, f16};
use std::marker::PhantomData;

pub(super) const BINDINGS: &[KernelBinding] = &joined::<{ 13 * 13 }>(&[
    &From::<f32>::ALL,
    &From::<f64>::ALL,
    &From::<f16>::ALL,
    &From::<bf16>::ALL,
    &From::<i64>::ALL,
    &From::<i32>::ALL,
    &From::<i16>::ALL,
    &From::<i8>::ALL,
    &From::<u64>::ALL,
    &From::<u32>::ALL,
    &From::<u16>::ALL,
    &From::<u8>::ALL,
    &From::<Truth>::ALL,
]);

struct From<T>(PhantomData<T>);

impl<T: Convert> From<T> {
    const ALL: [KernelBinding; 13] = [
        Pair::<T, f32>::ROW,
        Pair::<T, f64>::ROW,
        Pair::<T, f16>::ROW,
        Pair::<T, bf16>::ROW,
        Pair::<T, i64>::ROW,
        Pair::<T, i32>::ROW,
        Pair::<T, i16>::ROW,
        Pair::<T, i8>::ROW,
        Pair::<T, u64>::ROW,
        Pair::<T, u32>::ROW,
        Pair::<T, u16>::ROW,
        Pair::<T, u8>::ROW,
        Pair::<T, Truth>::ROW,
    ];
}

struct Pair<T, U>(PhantomData<(T, U)>);

impl<T: Convert, U: Convert> Pair<T, U> {
    const ROW: KernelBinding = row(OpKind::Cast, &[T::TYPE, U::TYPE], |ctx| match (T::TYPE, U::TYPE) {
        (DType::F16, DType::F32) => zip1(ctx, 2, STREAM_NS, &|x, out| Isa::detect().widen_f16(x, out)),
        (DType::BF16, DType::F32) => zip1(ctx, 2, STREAM_NS, &|x, out| Isa::detect().widen_bf16(x, out)),
        (DType::F32, DType::F16) => {
            zip1(ctx, 4, STREAM_NS, &|x, out| Isa::detect().narrow_f16(Src::from_bytes(x), out))
        }
        (DType::F32, DType::BF16) => {
            zip1(ctx, 4, STREAM_NS, &|x, out| Isa::detect().narrow_bf16(Src::from_bytes(x), out))
        }
        _ => {
            let ns = if T::NARROW || U::NARROW { 2.0 } else { 0.3 };
            map1(ctx, ns, |x: T::Word| U::from_wide(T::to_wide(x)))
        }
    });
}

/// Any element, without loss. Which variant it is depends on the type alone, so that the compiler drops the others.
#[derive(Clone, Copy)]
enum Wide {
    F32(f32),
    F64(f64),
    Signed(i64),
    Unsigned(u64),
}

/// An element type that is cast from and to.
trait Convert {
    /// How its elements lie in memory.
    type Word: Pod + Send;
    const TYPE: DType;
    /// True for floats of 16 bits.
    const NARROW: bool = false;
    fn to_wide(x: Self::Word) -> Wide;
    fn from_wide(x: Wide) -> Self::Word;
}

/// Bools, one byte each: any byte but 0 is true.
struct Truth;

macro_rules! convert {
    ($($ty:ty, $word:ty, $dtype:ident, $narrow:expr,
       |$x:ident| $wide:expr, |$f32:ident| $of_f32:expr, |$f64:ident| $of_f64:expr, |$int:ident| $of_int:expr;)*) => { $(
        impl Convert for $ty {
            type Word = $word;
            const TYPE: DType = DType::$dtype;
            const NARROW: bool = $narrow;
            #[inline(always)]
            fn to_wide($x: $word) -> Wide {
                $wide
            }
            #[inline(always)]
            fn from_wide(x: Wide) -> $word {
                match x {
                    Wide::F32($f32) => $of_f32,
                    Wide::F64($f64) => $of_f64,
                    Wide::Signed($int) => $of_int,
                    Wide::Unsigned($int) => $of_int,
                }
            }
        }
    )* };
}

convert! {
    f32, f32, F32, false, |x| Wide::F32(x), |x| x, |x| x as f32, |x| x as f32;
    f64, f64, F64, false, |x| Wide::F64(x), |x| x.into(), |x| x, |x| x as f64;
    f16, f16, F16, true, |x| Wide::F32(x.to_f32()), |x| f16::from_f32(x), |x| f16::from_f32(to_odd(x)), |x| f16::from_f32(x as f32);
    bf16, bf16, BF16, true, |x| Wide::F32(x.to_f32()), |x| bf16::from_f32(x), |x| bf16::from_f32(to_odd(x)), |x| bf16::from_f32(x as f32);
    i64, i64, I64, false, |x| Wide::Signed(x), |x| x as i64, |x| x as i64, |x| x as i64;
    i32, i32, I32, false, |x| Wide::Signed(x.into()), |x| x as i32, |x| x as i32, |x| x as i32;
    i16, i16, I16, false, |x| Wide::Signed(x.into()), |x| x as i16, |x| x as i16, |x| x as i16;
    i8, i8, I8, false, |x| Wide::Signed(x.into()), |x| x as i8, |x| x as i8, |x| x as i8;
    u64, u64, U64, false, |x| Wide::Unsigned(x), |x| x as u64, |x| x as u64, |x| x as u64;
    u32, u32, U32, false, |x| Wide::Unsigned(x.into()), |x| x as u32, |x| x as u32, |x| x as u32;
    u16, u16, U16, false, |x| Wide::Unsigned(x.into()), |x| x as u16, |x| x as u16, |x| x as u16;
    u8, u8, U8, false, |x| Wide::Unsigned(x.into()), |x| x as u8, |x| x as u8, |x| x as u8;
    Truth, u8, Bool, false, |x| Wide::Unsigned(u64::from(x != 0)), |x| u8::from(x != 0.0), |x| u8::from(x != 0.0), |x| u8::from(x != 0);
}

/// The f32 that rounds to the 16-bit float which `x` rounds to: what lies between two f32 goes to the one whose last bit
/// is set, so that it is on the right side of every tie of a type with fewer bits.
#[inline]
fn to_odd(x: f64) -> f32 {
    let nearest = x as f32;
    if f64::from(nearest) == x || x.is_nan() {
        return nearest;
    }
    let away = f64::from(nearest).abs() > x.abs();
    f32::from_bits((nearest.to_bits() - u32::from(away)) | 1)
}
