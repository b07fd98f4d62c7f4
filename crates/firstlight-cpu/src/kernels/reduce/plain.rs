//! Reductions in any element type, element by element.

use super::super::number::{Number, read};
use super::super::real::{Lanes, Math, Real};
use super::super::rows::{joined, row};
use super::super::spread::spread;
use super::walk::Reduction;
use bytemuck::Pod;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{OpError, OpKind};
use firstlight_tensor::DType::{BF16, Bool, F16, F64, I8, I32, I64, U8, U32, U64};
use firstlight_tensor::{bf16, f16};
use std::marker::PhantomData;

pub(super) const N_ROWS: usize = 8 * 7 + 2 * 10;

/// Rows of all types but f32.
pub(super) const ROWS: &[KernelBinding] = &joined::<N_ROWS>(&[
    &arithmetic::<L1>(),
    &arithmetic::<L2>(),
    &arithmetic::<LogSum>(),
    &arithmetic::<LogSumExp>(),
    &arithmetic::<Mean>(),
    &arithmetic::<Product>(),
    &arithmetic::<Sum>(),
    &arithmetic::<SumSquare>(),
    &ordered::<Greatest>(),
    &ordered::<Least>(),
]);

/// A reduction by arithmetic.
trait Rule {
    const OP: OpKind;
    fn of_floats<T: Real>(elements: &Elements<'_, T>) -> T::Math;
    fn of_ints<T: Int>(elements: &Elements<'_, T>) -> T;
}

const fn arithmetic<R: Rule>() -> [KernelBinding; 7] {
    [
        row(R::OP, &[F64], |ctx| fill(ctx, |x| f64::narrow(R::of_floats::<f64>(x)))),
        row(R::OP, &[F16], |ctx| fill(ctx, |x| f16::narrow(R::of_floats::<f16>(x)))),
        row(R::OP, &[BF16], |ctx| fill(ctx, |x| bf16::narrow(R::of_floats::<bf16>(x)))),
        row(R::OP, &[I64], |ctx| fill(ctx, R::of_ints::<i64>)),
        row(R::OP, &[I32], |ctx| fill(ctx, R::of_ints::<i32>)),
        row(R::OP, &[U64], |ctx| fill(ctx, R::of_ints::<u64>)),
        row(R::OP, &[U32], |ctx| fill(ctx, R::of_ints::<u32>)),
    ]
}

/// A reduction by comparison.
trait Choice {
    const OP: OpKind;
    /// Whether `x` takes the place of `acc`.
    fn wins<T: PartialOrd>(x: T, acc: T) -> bool;
    /// What every element takes the place of.
    fn start<T: Ordered>() -> T;
    fn of_bools(elements: &Elements<'_, u8>) -> bool;
}

const fn ordered<C: Choice>() -> [KernelBinding; 10] {
    [
        row(C::OP, &[F64], |ctx| fill(ctx, chosen::<C, f64>)),
        row(C::OP, &[F16], |ctx| fill(ctx, chosen::<C, f16>)),
        row(C::OP, &[BF16], |ctx| fill(ctx, chosen::<C, bf16>)),
        row(C::OP, &[I64], |ctx| fill(ctx, chosen::<C, i64>)),
        row(C::OP, &[I32], |ctx| fill(ctx, chosen::<C, i32>)),
        row(C::OP, &[U64], |ctx| fill(ctx, chosen::<C, u64>)),
        row(C::OP, &[U32], |ctx| fill(ctx, chosen::<C, u32>)),
        row(C::OP, &[I8], |ctx| fill(ctx, chosen::<C, i8>)),
        row(C::OP, &[U8], |ctx| fill(ctx, chosen::<C, u8>)),
        row(C::OP, &[Bool], |ctx| fill(ctx, |x| u8::from(C::of_bools(x)))),
    ]
}

/// The elements that one result is made from.
pub(in super::super) struct Elements<'a, T> {
    reduction: &'a Reduction,
    data: &'a [u8],
    start: usize,
    ty: PhantomData<T>,
}

impl<T: Pod> Elements<'_, T> {
    fn n(&self) -> usize {
        self.reduction.n
    }

    #[inline(always)]
    fn each(&self, mut f: impl FnMut(T)) {
        self.reduction.runs(|at, n, stride| {
            for i in 0..n {
                f(read(&self.data[(self.start + at + i * stride) * size_of::<T>()..][..size_of::<T>()]));
            }
        });
    }
}

/// Fills the output with `f` of each result's elements.
fn fill<T: Pod + Send>(ctx: &mut KernelCtx<'_>, f: impl Fn(&Elements<'_, T>) -> T + Sync) -> Result<(), OpError> {
    let reduction = Reduction::of(ctx)?;
    fill_over(ctx, &reduction, f)
}

/// [`fill`] along the axes of a reduction.
pub(in super::super) fn fill_over<T: Pod + Send>(
    ctx: &mut KernelCtx<'_>,
    reduction: &Reduction,
    f: impl Fn(&Elements<'_, T>) -> T + Sync,
) -> Result<(), OpError> {
    let data = ctx.bytes(0)?;
    let out = ctx.output::<T>(0)?;
    spread(ctx.pool(), out, 1, 2.0 * reduction.n as f32, &|from, out| {
        reduction.blocks(from, out, |at, out| {
            for (i, out) in out.iter_mut().enumerate() {
                *out = f(&Elements { reduction, data, start: at + i * reduction.step, ty: PhantomData });
            }
        });
    })
}

/// The sum of a function of floats, in lanes.
fn lanes<T: Real>(elements: &Elements<'_, T>, f: impl Fn(T::Math) -> T::Math) -> T::Math {
    let mut lanes = Lanes::new();
    elements.each(|x| lanes.add(f(x.widen())));
    lanes.sum()
}

/// The wrapping sum of a function of integers.
fn total<T: Int>(elements: &Elements<'_, T>, f: impl Fn(T) -> T) -> T {
    let mut sum = T::of_real(0.0);
    elements.each(|x| sum = sum.add(f(x)));
    sum
}

fn log<M: Math>(x: M) -> M {
    M::of(libm::log(x.to_f64()))
}

struct Sum;

impl Rule for Sum {
    const OP: OpKind = OpKind::ReduceSum;
    fn of_floats<T: Real>(elements: &Elements<'_, T>) -> T::Math {
        lanes(elements, |x| x)
    }
    fn of_ints<T: Int>(elements: &Elements<'_, T>) -> T {
        total(elements, |x| x)
    }
}

struct Mean;

impl Rule for Mean {
    const OP: OpKind = OpKind::ReduceMean;
    fn of_floats<T: Real>(elements: &Elements<'_, T>) -> T::Math {
        lanes(elements, |x| x) / T::Math::of(elements.n() as f64)
    }
    fn of_ints<T: Int>(elements: &Elements<'_, T>) -> T {
        let mut sum = 0i128;
        elements.each(|x| sum += x.wide());
        T::of_wide(sum.checked_div(elements.n() as i128).unwrap_or(0))
    }
}

struct L1;

impl Rule for L1 {
    const OP: OpKind = OpKind::ReduceL1;
    fn of_floats<T: Real>(elements: &Elements<'_, T>) -> T::Math {
        lanes(elements, Math::magnitude)
    }
    fn of_ints<T: Int>(elements: &Elements<'_, T>) -> T {
        let zero = T::of_real(0.0);
        total(elements, |x| if x < zero { zero.sub(x) } else { x })
    }
}

struct SumSquare;

impl Rule for SumSquare {
    const OP: OpKind = OpKind::ReduceSumSquare;
    fn of_floats<T: Real>(elements: &Elements<'_, T>) -> T::Math {
        lanes(elements, |x| x * x)
    }
    fn of_ints<T: Int>(elements: &Elements<'_, T>) -> T {
        total(elements, |x| x.mul(x))
    }
}

struct L2;

impl Rule for L2 {
    const OP: OpKind = OpKind::ReduceL2;
    fn of_floats<T: Real>(elements: &Elements<'_, T>) -> T::Math {
        SumSquare::of_floats(elements).sqrt()
    }
    fn of_ints<T: Int>(elements: &Elements<'_, T>) -> T {
        T::of_real(SumSquare::of_ints(elements).real().sqrt())
    }
}

struct LogSum;

impl Rule for LogSum {
    const OP: OpKind = OpKind::ReduceLogSum;
    fn of_floats<T: Real>(elements: &Elements<'_, T>) -> T::Math {
        log(Sum::of_floats(elements))
    }
    fn of_ints<T: Int>(elements: &Elements<'_, T>) -> T {
        T::of_real(libm::log(Sum::of_ints(elements).real()))
    }
}

struct LogSumExp;

/// `log(sum(exp(x - m))) + m` with `m` the greatest element, or 0 where that is not finite.
fn log_sum_exp<M: Math>(each: impl Fn(&mut dyn FnMut(M))) -> M {
    let mut max = M::LOWEST;
    each(&mut |x| max = if x > max { x } else { max });
    let shift = if max.to_f64().is_finite() { max } else { M::ZERO };
    let mut lanes = Lanes::new();
    each(&mut |x| {
        let mut exp = [x - shift];
        M::exp_all(&mut exp);
        lanes.add(exp[0]);
    });
    log(lanes.sum()) + shift
}

impl Rule for LogSumExp {
    const OP: OpKind = OpKind::ReduceLogSumExp;
    fn of_floats<T: Real>(elements: &Elements<'_, T>) -> T::Math {
        log_sum_exp(|f| elements.each(|x| f(x.widen())))
    }
    fn of_ints<T: Int>(elements: &Elements<'_, T>) -> T {
        T::of_real(log_sum_exp(|f| elements.each(|x| f(x.real()))))
    }
}

struct Product;

impl Rule for Product {
    const OP: OpKind = OpKind::ReduceProd;
    fn of_floats<T: Real>(elements: &Elements<'_, T>) -> T::Math {
        fold(elements, T::Math::of(1.0), Real::widen, |a, b| a * b)
    }
    fn of_ints<T: Int>(elements: &Elements<'_, T>) -> T {
        let mut product = T::of_real(1.0);
        elements.each(|x| product = product.mul(x));
        product
    }
}

/// Elements combined in the 16 lanes of a sum, each of which starts from `start`.
fn fold<T: Pod, M: Copy>(
    elements: &Elements<'_, T>,
    start: M,
    widen: impl Fn(T) -> M,
    combine: impl Fn(M, M) -> M,
) -> M {
    let mut lanes = [start; 16];
    let mut i = 0usize;
    elements.each(|x| {
        lanes[i % 16] = combine(lanes[i % 16], widen(x));
        i += 1;
    });
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] = combine(lanes[i], lanes[i + half]);
        }
    }
    lanes[0]
}

/// The element that wins over all others; NaN does.
pub(in super::super) fn greatest<T: Ordered>(elements: &Elements<'_, T>) -> T {
    chosen::<Greatest, T>(elements)
}

#[allow(clippy::eq_op)]
fn chosen<C: Choice, T: Ordered>(elements: &Elements<'_, T>) -> T {
    // Only NaN differs from itself.
    fold(elements, C::start(), |x| x, |acc, x| if C::wins(x, acc) || x != x { x } else { acc })
}

struct Greatest;

impl Choice for Greatest {
    const OP: OpKind = OpKind::ReduceMax;
    fn wins<T: PartialOrd>(x: T, acc: T) -> bool {
        x > acc
    }
    fn start<T: Ordered>() -> T {
        T::LEAST
    }
    fn of_bools(elements: &Elements<'_, u8>) -> bool {
        let mut any = false;
        elements.each(|x| any |= x != 0);
        any
    }
}

struct Least;

impl Choice for Least {
    const OP: OpKind = OpKind::ReduceMin;
    fn wins<T: PartialOrd>(x: T, acc: T) -> bool {
        x < acc
    }
    fn start<T: Ordered>() -> T {
        T::GREATEST
    }
    fn of_bools(elements: &Elements<'_, u8>) -> bool {
        let mut all = true;
        elements.each(|x| all &= x != 0);
        all
    }
}

/// An integer: what arithmetic beyond its type goes through.
trait Int: Number + PartialOrd {
    fn wide(self) -> i128;
    /// The low bits.
    fn of_wide(x: i128) -> Self;
    /// The nearest f64.
    fn real(self) -> f64;
    /// Toward zero, the nearest value there is; 0 for NaN.
    fn of_real(x: f64) -> Self;
}

/// An element with its ends of the order.
pub(in super::super) trait Ordered: Number + PartialOrd {
    const LEAST: Self;
    const GREATEST: Self;
}

macro_rules! ints {
    ($($int:ident)*) => { $(
        impl Int for $int {
            fn wide(self) -> i128 {
                self.into()
            }
            fn of_wide(x: i128) -> $int {
                x as $int
            }
            fn real(self) -> f64 {
                self as f64
            }
            fn of_real(x: f64) -> $int {
                x as $int
            }
        }
    )* };
}

macro_rules! ordered {
    ($($ty:ident: $least:ident, $greatest:ident;)*) => { $(
        impl Ordered for $ty {
            const LEAST: $ty = $ty::$least;
            const GREATEST: $ty = $ty::$greatest;
        }
    )* };
}

ints!(i64 i32 u64 u32);
ordered! {
    f64: NEG_INFINITY, INFINITY;
    f16: NEG_INFINITY, INFINITY;
    bf16: NEG_INFINITY, INFINITY;
    i64: MIN, MAX;
    i32: MIN, MAX;
    u64: MIN, MAX;
    u32: MIN, MAX;
    i8: MIN, MAX;
    u8: MIN, MAX;
}
