//! Products of element types without a fast row: plain loops in the written order, no allocation.

use super::matmul_tiles::{Sizes, misfit};
use firstlight_backend::{Pool, Words, for_chunks_mut_cost};
use firstlight_graph::OpError;
use firstlight_tensor::{Element, bf16, f16};

/// Sums that are kept at once.
const BLOCK: usize = 64;
/// Steps a nanosecond, about.
const STEPS_PER_NS: u64 = 1;

/// An element with the arithmetic of products: 16-bit floats compute in f32, integers wrap.
pub(super) trait Plain: Element {
    type Sum: Copy + Send + Sync;
    const ZERO: Self::Sum;
    fn widen(self) -> Self::Sum;
    fn narrow(sum: Self::Sum) -> Self;
    /// `a * b + sum`, rounded once.
    fn fused(a: Self::Sum, b: Self::Sum, sum: Self::Sum) -> Self::Sum;
    fn plus(a: Self::Sum, b: Self::Sum) -> Self::Sum;
    fn times(a: Self::Sum, b: Self::Sum) -> Self::Sum;
    /// An attribute's value; `None` if the type has no such number.
    fn from_attribute(value: f32) -> Option<Self::Sum>;
}

macro_rules! floats {
    ($($t:ident: $sum:ident, $widen:expr, $narrow:expr;)*) => { $(
        impl Plain for $t {
            type Sum = $sum;
            const ZERO: $sum = 0.0;
            fn widen(self) -> $sum {
                $widen(self)
            }
            fn narrow(sum: $sum) -> $t {
                $narrow(sum)
            }
            fn fused(a: $sum, b: $sum, sum: $sum) -> $sum {
                a.mul_add(b, sum)
            }
            fn plus(a: $sum, b: $sum) -> $sum {
                a + b
            }
            fn times(a: $sum, b: $sum) -> $sum {
                a * b
            }
            fn from_attribute(value: f32) -> Option<$sum> {
                Some(value.into())
            }
        }
    )* };
}
floats! {
    f64: f64, std::convert::identity, std::convert::identity;
    f16: f32, f16::to_f32, f16::from_f32;
    bf16: f32, bf16::to_f32, bf16::from_f32;
}

macro_rules! integers {
    ($($t:ident)*) => { $(
        impl Plain for $t {
            type Sum = $t;
            const ZERO: $t = 0;
            fn widen(self) -> $t {
                self
            }
            fn narrow(sum: $t) -> $t {
                sum
            }
            fn fused(a: $t, b: $t, sum: $t) -> $t {
                sum.wrapping_add(a.wrapping_mul(b))
            }
            fn plus(a: $t, b: $t) -> $t {
                a.wrapping_add(b)
            }
            fn times(a: $t, b: $t) -> $t {
                a.wrapping_mul(b)
            }
            fn from_attribute(value: f32) -> Option<$t> {
                let whole = value as $t;
                (whole as f32 == value).then_some(whole)
            }
        }
    )* };
}
integers!(i32 i64 u32 u64);

/// Where the operands of a product lie; strides from row to row and from column to column.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainProduct {
    pub(super) a_start: usize,
    pub(super) a_strides: (usize, usize),
    pub(super) b_start: usize,
    pub(super) b_strides: (usize, usize),
}

/// Writes products below each other; `finish(sum, row, col)` makes an element of a sum.
///
/// **Errors**: operands that do not fit the sizes; what a panicking row said.
pub(super) fn run<T: Plain>(
    pool: &Pool,
    sizes: Sizes,
    (a, b): (Words<'_, T>, Words<'_, T>),
    out: &mut [T],
    product: &(dyn Fn(usize) -> PlainProduct + Sync),
    finish: &(dyn Fn(T::Sum, usize, usize) -> T + Sync),
) -> Result<(), OpError> {
    let Sizes { n_products, m, k, n } = sizes;
    if out.is_empty() {
        return Ok(());
    }
    if n_products.checked_mul(m).and_then(|rows| rows.checked_mul(n)) != Some(out.len()) {
        return Err(misfit());
    }
    let row = |row: usize, out: &mut [T]| {
        let (at, row) = (product(row / m), row % m);
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let mut sums = [T::ZERO; BLOCK];
            for i in 0..k {
                let factor = a.get(at.a_start + row * at.a_strides.0 + i * at.a_strides.1).widen();
                let from = at.b_start + i * at.b_strides.0 + block * BLOCK * at.b_strides.1;
                for (j, sum) in sums.iter_mut().enumerate().take(out.len()) {
                    *sum = T::fused(factor, b.get(from + j * at.b_strides.1).widen(), *sum);
                }
            }
            for (j, (out, sum)) in out.iter_mut().zip(sums).enumerate() {
                *out = finish(sum, row, block * BLOCK + j);
            }
        }
    };
    let cost_ns = (out.len() as u64).saturating_mul(k as u64) / STEPS_PER_NS;
    for_chunks_mut_cost(pool, out, n, cost_ns, &row)
}
