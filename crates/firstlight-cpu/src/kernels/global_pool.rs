//! GlobalMaxPool.

use super::reduce::plain::{fill_over, greatest};
use super::reduce::walk::Reduction;
use super::rows::row;
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_gemm::{Isa, Reduce, Src};
use firstlight_graph::{OpError, OpKind};
use firstlight_tensor::DType::{BF16, F16, F32, F64};
use firstlight_tensor::{bf16, f16};

pub(super) const BINDINGS: &[KernelBinding] = &[
    row(OpKind::GlobalMaxPool, &[F32], max_f32),
    row(OpKind::GlobalMaxPool, &[F64], |ctx| fill_over(ctx, &positions(ctx)?, greatest::<f64>)),
    row(OpKind::GlobalMaxPool, &[F16], |ctx| fill_over(ctx, &positions(ctx)?, greatest::<f16>)),
    row(OpKind::GlobalMaxPool, &[BF16], |ctx| fill_over(ctx, &positions(ctx)?, greatest::<bf16>)),
];

/// The reduction of a channel's positions.
fn positions(ctx: &KernelCtx<'_>) -> Result<Reduction, OpError> {
    let (dims, out) = (ctx.dims(0)?, ctx.out_dims(0)?);
    let reduced: smallvec::SmallVec<[bool; 6]> = (0..dims.rank()).map(|axis| axis >= 2).collect();
    let (reduction, n_results) = Reduction::over(dims, &reduced);
    match dims.rank() >= 2 && out.n_elems() == Some(n_results) {
        true => Ok(reduction),
        false => Err(OpError::shape(format!("the channels of {dims} are not {out}"))),
    }
}

fn max_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let n = positions(ctx)?.n;
    let isa = Isa::detect();
    let x = Src::from_bytes(ctx.bytes(0)?);
    let out = ctx.output::<f32>(0)?;
    spread(ctx.pool(), out, 1, 5.0 + 0.08 * n as f32, &|from, out| {
        for (i, out) in out.iter_mut().enumerate() {
            *out = isa.reduce(Reduce::Max, x.slice((from + i).saturating_mul(n), n));
        }
    })
}
