//! Max and Min.

use super::elementwise::{binary_f32, map2};
use super::number::Number;
use super::rows::{joined, row};
use firstlight_backend::KernelBinding;
use firstlight_gemm::Binary;
use firstlight_graph::OpKind;
use firstlight_tensor::DType::F32;
use firstlight_tensor::{bf16, f16};
use std::marker::PhantomData;

pub(super) const BINDINGS: &[KernelBinding] = &joined::<{ 2 + 11 * 2 }>(&[
    &[
        row(OpKind::Max, &[F32], |ctx| binary_f32(ctx, Binary::Max)),
        row(OpKind::Min, &[F32], |ctx| binary_f32(ctx, Binary::Min)),
    ],
    &Rows::<f64>::ALL,
    &Rows::<f16>::ALL,
    &Rows::<bf16>::ALL,
    &Rows::<i64>::ALL,
    &Rows::<i32>::ALL,
    &Rows::<i16>::ALL,
    &Rows::<i8>::ALL,
    &Rows::<u64>::ALL,
    &Rows::<u32>::ALL,
    &Rows::<u16>::ALL,
    &Rows::<u8>::ALL,
]);

struct Rows<T>(PhantomData<T>);

impl<T: Number> Rows<T> {
    const ALL: [KernelBinding; 2] = [
        row(OpKind::Max, &[T::TYPE], |ctx| map2(ctx, |a: T, b: T| if b > a || is_nan(b) { b } else { a })),
        row(OpKind::Min, &[T::TYPE], |ctx| map2(ctx, |a: T, b: T| if b < a || is_nan(b) { b } else { a })),
    ];
}

#[inline(always)]
#[allow(clippy::eq_op)]
fn is_nan<T: Number>(x: T) -> bool {
    x != x
}
