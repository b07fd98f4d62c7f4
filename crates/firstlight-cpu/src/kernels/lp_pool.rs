//! LpPool.

use super::average_pool::sum_windows;
use super::pool::{is_plane, planes, planes_scratch};
use super::real::{Math, Real};
use super::rows::row;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_gemm::Window;
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::{BF16, F16, F32, F64};
use firstlight_tensor::{bf16, f16};

pub(super) const BINDINGS: &[KernelBinding] = &[
    KernelBinding {
        source: "windows",
        accepts: |query| matches!(query.op, Op::LpPool(op) if op.p <= 2) && is_plane(query),
        scratch_bytes: planes_scratch,
        ..row(OpKind::LpPool, &[F32], norm_planes)
    },
    row(OpKind::LpPool, &[F32], norm::<f32>),
    row(OpKind::LpPool, &[F64], norm::<f64>),
    row(OpKind::LpPool, &[F16], norm::<f16>),
    row(OpKind::LpPool, &[BF16], norm::<bf16>),
];

fn norm_planes(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::LpPool(op) = ctx.op() else { return Err(super::other_op("LpPool")) };
    let window = if op.p == 1 { Window::L1 } else { Window::L2 };
    planes(ctx, &op.geometry(ctx.dims(0)?)?, |_| window)
}

fn norm<T: Real>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::LpPool(op) = ctx.op() else { return Err(super::other_op("LpPool")) };
    let geometry = op.geometry(ctx.dims(0)?)?;
    match op.p {
        1 => sum_windows::<T>(ctx, &geometry, Math::magnitude, |_, _| 1, |sum, _| sum),
        2 => sum_windows::<T>(ctx, &geometry, |x| x * x, |_, _| 1, |sum, _| sum.sqrt()),
        p => {
            let power = |x: T::Math| T::Math::of(libm::pow(x.magnitude().to_f64(), p as f64));
            let root = |sum: T::Math, _| T::Math::of(libm::pow(sum.to_f64(), 1.0 / p as f64));
            sum_windows::<T>(ctx, &geometry, power, |_, _| 1, root)
        }
    }
}
