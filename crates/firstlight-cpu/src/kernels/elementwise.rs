//! Elementwise kernels: each output element from the input elements at the same place, with broadcasting.

use super::number::{Number, read};
use super::rows::{joined, row};
use super::runs::Runs;
use super::spread::{STREAM_NS, spread};
use bytemuck::Pod;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_gemm::{Binary, Isa, Src};
use firstlight_graph::{OpError, OpKind};
use firstlight_tensor::DType::{Bool, F32};
use firstlight_tensor::{bf16, f16};
use std::marker::PhantomData;

pub(super) const BINDINGS: &[KernelBinding] = &[
    row(OpKind::Add, &[F32], |ctx| binary_f32(ctx, Binary::Add)),
    row(OpKind::Sub, &[F32], |ctx| binary_f32(ctx, Binary::Sub)),
    row(OpKind::Mul, &[F32], |ctx| binary_f32(ctx, Binary::Mul)),
    row(OpKind::Div, &[F32], |ctx| binary_f32(ctx, Binary::Div)),
    row(OpKind::And, &[Bool], |ctx| map2(ctx, |a: u8, b: u8| u8::from((a != 0) & (b != 0)))),
    row(OpKind::Not, &[Bool], |ctx| map1(ctx, 0.1, |x: u8| u8::from(x == 0))),
    row(OpKind::Equal, &[Bool], |ctx| map2(ctx, |a: u8, b: u8| u8::from((a != 0) == (b != 0)))),
];

/// Rows of the other numbers.
pub(super) const NUMBERS: &[KernelBinding] = &joined::<{ 11 * 5 + 12 * 5 }>(&[
    &Rows::<f64>::ARITHMETIC,
    &Rows::<f16>::ARITHMETIC,
    &Rows::<bf16>::ARITHMETIC,
    &Rows::<i64>::ARITHMETIC,
    &Rows::<i32>::ARITHMETIC,
    &Rows::<i16>::ARITHMETIC,
    &Rows::<i8>::ARITHMETIC,
    &Rows::<u64>::ARITHMETIC,
    &Rows::<u32>::ARITHMETIC,
    &Rows::<u16>::ARITHMETIC,
    &Rows::<u8>::ARITHMETIC,
    &Rows::<f32>::COMPARE,
    &Rows::<f64>::COMPARE,
    &Rows::<f16>::COMPARE,
    &Rows::<bf16>::COMPARE,
    &Rows::<i64>::COMPARE,
    &Rows::<i32>::COMPARE,
    &Rows::<i16>::COMPARE,
    &Rows::<i8>::COMPARE,
    &Rows::<u64>::COMPARE,
    &Rows::<u32>::COMPARE,
    &Rows::<u16>::COMPARE,
    &Rows::<u8>::COMPARE,
]);

struct Rows<T>(PhantomData<T>);

impl<T: Number> Rows<T> {
    const ARITHMETIC: [KernelBinding; 5] = [
        row(OpKind::Add, &[T::TYPE], |ctx| map2(ctx, T::add)),
        row(OpKind::Sub, &[T::TYPE], |ctx| map2(ctx, T::sub)),
        row(OpKind::Mul, &[T::TYPE], |ctx| map2(ctx, T::mul)),
        row(OpKind::Div, &[T::TYPE], |ctx| map2(ctx, T::div)),
        row(OpKind::Relu, &[T::TYPE], |ctx| {
            map1(ctx, STREAM_NS, |x: T| if x <= T::zeroed() { T::zeroed() } else { x })
        }),
    ];
    const COMPARE: [KernelBinding; 5] = [
        row(OpKind::Equal, &[T::TYPE], |ctx| map2(ctx, |a: T, b: T| u8::from(a == b))),
        row(OpKind::GreaterOrEqual, &[T::TYPE], |ctx| map2(ctx, |a: T, b: T| u8::from(a >= b))),
        row(OpKind::Greater, &[T::TYPE], |ctx| map2(ctx, |a: T, b: T| u8::from(a > b))),
        row(OpKind::Less, &[T::TYPE], |ctx| map2(ctx, |a: T, b: T| u8::from(a < b))),
        row(OpKind::LessOrEqual, &[T::TYPE], |ctx| map2(ctx, |a: T, b: T| u8::from(a <= b))),
    ];
}

/// What [`zip2`] does to a run of each input and the output.
type OnRuns<'a, U> = dyn Fn(&[u8], &[u8], &mut [U]) + Sync + 'a;

/// An output from two broadcast inputs whose elements take `widths` bytes. `f` is handed runs: as many elements as the
/// output has, or one element that stands for all.
///
/// **Errors**: operands that do not fit.
pub(super) fn zip2<U: Pod + Send>(
    ctx: &mut KernelCtx<'_>,
    widths: [usize; 2],
    ns_per_elem: f32,
    f: &OnRuns<'_, U>,
) -> Result<(), OpError> {
    let (a, b) = (ctx.bytes(0)?, ctx.bytes(1)?);
    let (dims_a, dims_b, dims) = (ctx.dims(0)?, ctx.dims(1)?, ctx.out_dims(0)?);
    let out = ctx.output::<U>(0)?;
    // Most launches need no runs: one shape, or a scalar.
    let step = |of: &_, bytes: &[u8], width| if of == dims { Some(1) } else { (bytes.len() == width).then_some(0) };
    if let (Some(step_a), Some(step_b)) = (step(dims_a, a, widths[0]), step(dims_b, b, widths[1])) {
        return spread(ctx.pool(), out, 1, ns_per_elem, &|at, out| {
            let n = out.len();
            f(stretch(a, widths[0], step_a, at * step_a, n), stretch(b, widths[1], step_b, at * step_b, n), out);
        });
    }
    let runs = Runs::broadcast(dims, [dims_a, dims_b])?;
    let [step_a, step_b] = runs.steps();
    spread(ctx.pool(), out, 1, ns_per_elem, &|from, out| {
        runs.for_each(from, out.len(), |part, [at_a, at_b]| {
            let n = part.len();
            let (a, b) = (stretch(a, widths[0], step_a, at_a, n), stretch(b, widths[1], step_b, at_b, n));
            f(a, b, &mut out[part]);
        });
    })
}

/// The bytes of `n` elements from element `at` on, or of that element alone when `step` is 0.
#[inline]
pub(super) fn stretch(bytes: &[u8], width: usize, step: usize, at: usize, n: usize) -> &[u8] {
    match step {
        0 => &bytes[at * width..][..width],
        _ => &bytes[at * width..][..n * width],
    }
}

/// An output from one input of the same shape, whose elements take `width` bytes.
///
/// **Errors**: operands that do not fit.
pub(super) fn zip1<U: Pod + Send>(
    ctx: &mut KernelCtx<'_>,
    width: usize,
    ns_per_elem: f32,
    f: &(dyn Fn(&[u8], &mut [U]) + Sync),
) -> Result<(), OpError> {
    let x = ctx.bytes(0)?;
    let out = ctx.output::<U>(0)?;
    if x.len() != out.len() * width {
        return Err(OpError::shape(format!("an input {} for an output {}", ctx.dims(0)?, ctx.out_dims(0)?)));
    }
    spread(ctx.pool(), out, 1, ns_per_elem, &|at, out| f(&x[at * width..][..out.len() * width], out))
}

/// A vectorised function of two f32 inputs.
///
/// **Errors**: operands that do not fit.
pub(super) fn binary_f32(ctx: &mut KernelCtx<'_>, op: Binary) -> Result<(), OpError> {
    let isa = Isa::detect();
    zip2::<f32>(ctx, [4, 4], STREAM_NS, &|a, b, out| match (a.len(), b.len()) {
        (_, 4) => isa.binary_scalar(op, Src::from_bytes(a), read(b), out),
        (4, _) => isa.scalar_binary(op, read(a), Src::from_bytes(b), out),
        _ => isa.binary(op, Src::from_bytes(a), Src::from_bytes(b), out),
    })
}

/// `f` of every pair of elements.
///
/// **Errors**: operands that do not fit.
pub(super) fn map2<T: Pod, U: Pod + Send>(
    ctx: &mut KernelCtx<'_>,
    f: impl Fn(T, T) -> U + Sync,
) -> Result<(), OpError> {
    let width = size_of::<T>();
    zip2::<U>(ctx, [width, width], STREAM_NS * 2.0, &|a, b, out| pairs(a, b, out, &f))
}

/// `f` of every pair of elements of two runs, either of which may be one element.
#[inline(always)]
pub(super) fn pairs<T: Pod, V: Pod, U>(a: &[u8], b: &[u8], out: &mut [U], f: impl Fn(T, V) -> U) {
    let (wide_a, wide_b) = (size_of::<T>(), size_of::<V>());
    if b.len() == wide_b {
        let b = read(b);
        if a.len() == wide_a {
            let a = read(a);
            out.iter_mut().for_each(|out| *out = f(a, b));
            return;
        }
        for (out, a) in out.iter_mut().zip(a.chunks_exact(wide_a)) {
            *out = f(read(a), b);
        }
    } else if a.len() == wide_a {
        let a = read(a);
        for (out, b) in out.iter_mut().zip(b.chunks_exact(wide_b)) {
            *out = f(a, read(b));
        }
    } else {
        for ((out, a), b) in out.iter_mut().zip(a.chunks_exact(wide_a)).zip(b.chunks_exact(wide_b)) {
            *out = f(read(a), read(b));
        }
    }
}

/// `f` of every element.
pub(super) fn map1<T: Pod, U: Pod + Send>(
    ctx: &mut KernelCtx<'_>,
    ns_per_elem: f32,
    f: impl Fn(T) -> U + Sync,
) -> Result<(), OpError> {
    let width = size_of::<T>();
    zip1::<U>(ctx, width, ns_per_elem, &|x, out| {
        for (out, x) in out.iter_mut().zip(x.chunks_exact(width)) {
            *out = f(read(x));
        }
    })
}
