//! Reductions along axes that an input names, and over the positions of a channel.
//!
//! `walk` finds where the elements of each result lie, `plain` computes in any type; f32 goes through vectors here.

pub(super) mod plain;
pub(super) mod walk;

use super::rows::{joined, row};
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_gemm::{Binary, Fold, FoldColumns, FoldLanes, Isa, Src, Unary};
use firstlight_graph::{OpError, OpKind};
use firstlight_tensor::DType::F32;
use walk::Reduction;

pub(super) const BINDINGS: &[KernelBinding] = &joined::<{ 10 + plain::N_ROWS }>(&[
    &[
        row(OpKind::ReduceL1, &[F32], |ctx| reduce(ctx, Fold::SumAbs, Last::Nothing)),
        row(OpKind::ReduceL2, &[F32], |ctx| reduce(ctx, Fold::SumSquares, Last::Root)),
        row(OpKind::ReduceLogSum, &[F32], |ctx| reduce(ctx, Fold::Sum, Last::Log)),
        row(OpKind::ReduceLogSumExp, &[F32], log_sum_exp),
        row(OpKind::ReduceMax, &[F32], |ctx| reduce(ctx, Fold::Max, Last::Nothing)),
        row(OpKind::ReduceMean, &[F32], |ctx| reduce(ctx, Fold::Sum, Last::Mean)),
        row(OpKind::ReduceMin, &[F32], |ctx| reduce(ctx, Fold::Min, Last::Nothing)),
        row(OpKind::ReduceProd, &[F32], |ctx| reduce(ctx, Fold::Product, Last::Nothing)),
        row(OpKind::ReduceSum, &[F32], |ctx| reduce(ctx, Fold::Sum, Last::Nothing)),
        row(OpKind::ReduceSumSquare, &[F32], |ctx| reduce(ctx, Fold::SumSquares, Last::Nothing)),
    ],
    plain::ROWS,
]);

/// What happens to what was accumulated.
#[derive(Clone, Copy, Debug)]
enum Last {
    Nothing,
    Mean,
    Root,
    Log,
}

fn reduce(ctx: &mut KernelCtx<'_>, fold: Fold, last: Last) -> Result<(), OpError> {
    let isa = Isa::detect();
    let reduction = Reduction::of(ctx)?;
    let data = Src::from_bytes(ctx.bytes(0)?);
    let out = ctx.output::<f32>(0)?;
    spread(ctx.pool(), out, 1, reduction.ns(), &|from, out| {
        reduction.blocks(from, out, |at, out| fold_block(isa, &reduction, data, fold, &[], at, out));
        match last {
            Last::Nothing => {}
            Last::Mean => isa.binary_scalar_in_place(Binary::Div, out, reduction.n as f32),
            Last::Root => isa.unary_in_place(Unary::Sqrt, out),
            Last::Log => out.iter_mut().for_each(|x| *x = log(*x)),
        }
    })
}

fn log_sum_exp(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let isa = Isa::detect();
    let reduction = Reduction::of(ctx)?;
    let data = Src::from_bytes(ctx.bytes(0)?);
    let out = ctx.output::<f32>(0)?;
    spread(ctx.pool(), out, 1, 8.0 * reduction.ns(), &|from, out| {
        reduction.blocks(from, out, |at, out| {
            let mut shifts = [0f32; FoldColumns::MOST];
            let shifts = &mut shifts[..out.len()];
            fold_block(isa, &reduction, data, Fold::Max, &[], at, shifts);
            shifts.iter_mut().filter(|shift| !shift.is_finite()).for_each(|shift| *shift = 0.0);
            fold_block(isa, &reduction, data, Fold::SumExps, shifts, at, out);
            out.iter_mut().zip(&*shifts).for_each(|(x, shift)| *x = log(*x) + shift);
        });
    })
}

/// The nearest f32 of the natural logarithm.
fn log(x: f32) -> f32 {
    libm::log(x.into()) as f32
}

/// Fills a block of results, the first of whose elements lie at `at`, `at + step`, ...
fn fold_block(isa: Isa, reduction: &Reduction, data: Src<'_>, fold: Fold, shifts: &[f32], at: usize, out: &mut [f32]) {
    let width = out.len();
    if reduction.is_by_rows {
        let mut columns = FoldColumns::new(fold, width, shifts);
        reduction.runs(|from, rows, stride| {
            columns.add(isa, data.slice(at + from, (rows - 1) * stride + width), rows, stride);
        });
        columns.finish(isa, out);
        return;
    }
    for (i, out) in out.iter_mut().enumerate() {
        let mut lanes = FoldLanes::new(fold, shifts.get(i).copied().unwrap_or(0.0));
        let at = at + i * reduction.step;
        reduction.runs(|from, n, _| lanes.add(isa, data.slice(at + from, n)));
        *out = lanes.finish();
    }
}
