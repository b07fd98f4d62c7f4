//! LogSoftmax.

use super::number::read;
use super::real::{Lanes, Math, Real};
use super::rows::row;
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_gemm::{Binary, Fold, FoldColumns, FoldLanes, Isa, Reduce, Src};
use firstlight_graph::{Op, OpError, OpKind, normalise_axis};
use firstlight_tensor::DType::{BF16, F16, F32, F64};
use firstlight_tensor::{bf16, f16};

pub(super) const BINDINGS: &[KernelBinding] = &[
    row(OpKind::LogSoftmax, &[F32], log_softmax_f32),
    row(OpKind::LogSoftmax, &[F64], log_softmax::<f64>),
    row(OpKind::LogSoftmax, &[F16], log_softmax::<f16>),
    row(OpKind::LogSoftmax, &[BF16], log_softmax::<bf16>),
];

/// Size of the axis, and number of elements inside it.
fn sizes(ctx: &KernelCtx<'_>) -> Result<(usize, usize), OpError> {
    let Op::LogSoftmax(op) = ctx.op() else { return Err(super::other_op("LogSoftmax")) };
    let dims = ctx.dims(0)?;
    if dims != ctx.out_dims(0)? {
        return Err(OpError::shape(format!("an input {dims} for an output {}", ctx.out_dims(0)?)));
    }
    let axis = normalise_axis(op.axis, dims.rank())?;
    Ok((dims[axis], dims[axis + 1..].iter().product()))
}

fn log_softmax_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let (n, inner) = sizes(ctx)?;
    let isa = Isa::detect();
    let x = Src::from_bytes(ctx.bytes(0)?);
    let out = ctx.output::<f32>(0)?;
    if inner == 1 {
        return spread(ctx.pool(), out, n, 0.5 + 30.0 / n.max(1) as f32, &|from, out| {
            for (i, out) in out.chunks_exact_mut(n).enumerate() {
                let x = x.slice(from + i * n, n);
                let max = isa.reduce(Reduce::Max, x);
                let mut sum = FoldLanes::new(Fold::SumExps, max);
                sum.add(isa, x);
                isa.binary_scalar(Binary::Sub, x, max, out);
                isa.binary_scalar_in_place(Binary::Sub, out, log(sum.finish()));
            }
        });
    }
    spread(ctx.pool(), out, n * inner, 0.8, &|from, out| {
        for (i, out) in out.chunks_exact_mut(n * inner).enumerate() {
            let x = x.slice(from + i * n * inner, n * inner);
            for column in (0..inner).step_by(FoldColumns::MOST) {
                columns(isa, x, out, n, inner, column..inner.min(column + FoldColumns::MOST));
            }
        }
    })
}

/// LogSoftmax over the rows of some columns of an `n` x `inner` plane.
fn columns(isa: Isa, x: Src<'_>, out: &mut [f32], n: usize, inner: usize, columns: std::ops::Range<usize>) {
    let (start, width) = (columns.start, columns.len());
    let plane = x.slice(start, (n - 1) * inner + width);
    let (mut max, mut log_sum) = ([0f32; FoldColumns::MOST], [0f32; FoldColumns::MOST]);
    let (max, log_sum) = (&mut max[..width], &mut log_sum[..width]);
    let mut fold = FoldColumns::new(Fold::Max, width, &[]);
    fold.add(isa, plane, n, inner);
    fold.finish(isa, max);
    let mut fold = FoldColumns::new(Fold::SumExps, width, max);
    fold.add(isa, plane, n, inner);
    fold.finish(isa, log_sum);
    log_sum.iter_mut().for_each(|x| *x = log(*x));
    for i in 0..n {
        let to = &mut out[i * inner + start..][..width];
        isa.binary(Binary::Sub, x.slice(i * inner + start, width), &*max, to);
        isa.binary_in_place(Binary::Sub, to, &*log_sum);
    }
}

/// The nearest value of the natural logarithm.
fn log<M: Math>(x: M) -> M {
    M::of(libm::log(x.to_f64()))
}

fn log_softmax<T: Real>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let (n, inner) = sizes(ctx)?;
    let width = size_of::<T>();
    let x = ctx.bytes(0)?;
    let out = ctx.output::<T>(0)?;
    spread(ctx.pool(), out, n * inner, 10.0, &|from, out| {
        for (i, out) in out.chunks_exact_mut((n * inner).max(1)).enumerate() {
            for column in 0..inner {
                let start = from + i * n * inner + column;
                let at = |j: usize| read::<T>(&x[(start + j * inner) * width..][..width]).widen();
                // NaN is never the largest here; it makes the sum NaN below.
                let max = (0..n).map(at).fold(T::Math::LOWEST, |max, x| if x > max { x } else { max });
                let mut lanes = Lanes::new();
                for j in 0..n {
                    let mut exp = [at(j) - max];
                    T::Math::exp_all(&mut exp);
                    lanes.add(exp[0]);
                }
                let log_sum = log(lanes.sum());
                for j in 0..n {
                    out[j * inner + column] = T::narrow(at(j) - max - log_sum);
                }
            }
        }
    })
}
