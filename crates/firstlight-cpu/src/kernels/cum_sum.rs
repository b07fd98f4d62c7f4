//! CumSum: one running sum an element, blocks of the outer dimensions spread over the pool.

use super::number::{Number, read, small_ints};
use super::rows::{joined, row};
use super::spread::spread;
use bytemuck::Zeroable;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::{I32, I64};
use firstlight_tensor::{bf16, f16};
use std::marker::PhantomData;

pub(super) const BINDINGS: &[KernelBinding] = &joined::<16>(&[
    &Rows::<f32>::ALL,
    &Rows::<f64>::ALL,
    &Rows::<f16>::ALL,
    &Rows::<bf16>::ALL,
    &Rows::<i64>::ALL,
    &Rows::<i32>::ALL,
    &Rows::<u64>::ALL,
    &Rows::<u32>::ALL,
]);

struct Rows<T>(PhantomData<T>);

impl<T: Summed> Rows<T> {
    const ALL: [KernelBinding; 2] =
        [row(OpKind::CumSum, &[T::TYPE, I64], cum_sum::<T>), row(OpKind::CumSum, &[T::TYPE, I32], cum_sum::<T>)];
}

/// An element and the type it is summed in.
trait Summed: Number {
    type Sum: Number;
    fn widen(self) -> Self::Sum;
    fn narrow(sum: Self::Sum) -> Self;
}

macro_rules! summed {
    ($($ty:ident: $sum:ident, $widen:expr, $narrow:expr;)*) => { $(
        impl Summed for $ty {
            type Sum = $sum;
            #[inline(always)]
            fn widen(self) -> $sum {
                $widen(self)
            }
            #[inline(always)]
            fn narrow(sum: $sum) -> $ty {
                $narrow(sum)
            }
        }
    )* };
}

summed! {
    f32: f32, std::convert::identity, std::convert::identity;
    f64: f64, std::convert::identity, std::convert::identity;
    f16: f32, f16::to_f32, f16::from_f32;
    bf16: f32, bf16::to_f32, bf16::from_f32;
    i64: i64, std::convert::identity, std::convert::identity;
    i32: i32, std::convert::identity, std::convert::identity;
    u64: u64, std::convert::identity, std::convert::identity;
    u32: u32, std::convert::identity, std::convert::identity;
}

/// Running sums kept at a time where neighbouring elements belong to different ones.
const LANES: usize = 64;

fn cum_sum<T: Summed>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::CumSum(op) = ctx.op() else { return Err(super::other_op("CumSum")) };
    let [_, size, inner] = op.geometry(ctx.dims(0)?, &small_ints(ctx, 1)?)?;
    let width = size_of::<T>();
    let (x, out) = (ctx.bytes(0)?, ctx.output::<T>(0)?);
    if x.len() != size_of_val(out) {
        return Err(OpError::shape(format!("an input {} for an output {}", ctx.dims(0)?, ctx.out_dims(0)?)));
    }
    let block = size * inner;
    spread(ctx.pool(), out, block, 1.0, &|from, out| {
        let x = &x[from * width..][..size_of_val(out)];
        for (x, out) in x.chunks_exact(block * width).zip(out.chunks_exact_mut(block)) {
            for lane in (0..inner).step_by(LANES) {
                let n = LANES.min(inner - lane);
                let mut sums = [T::Sum::zeroed(); LANES];
                for step in 0..size {
                    let at = (if op.reverse { size - 1 - step } else { step }) * inner + lane;
                    let x = x[at * width..][..n * width].chunks_exact(width);
                    for ((sum, x), out) in sums.iter_mut().zip(x).zip(&mut out[at..at + n]) {
                        let next = sum.add(read::<T>(x).widen());
                        *out = T::narrow(if op.exclusive { *sum } else { next });
                        *sum = next;
                    }
                }
            }
        }
    })
}
