//! `GlobalMaxPool`.

use super::arith::{Real, Stored, lane_fold, widened};
use crate::op::{Arity, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::elementwise::unlisted;
use crate::ops::layout::{case_tensor, check_output, product};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, Shape, SymShape, Tensor, bf16, f16};
use smallvec::SmallVec;

/// The greatest element of each channel over all spatial dimensions.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct GlobalMaxPool;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "GlobalMaxPool",
    doc: "The greatest element of each channel over all spatial dimensions, whose sizes become 1. NaN wins over all others, as in ReduceMax. Of nothing it is negative infinity.",
    attributes: &[],
    inputs: &[Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One }],
    outputs: &[Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for GlobalMaxPool {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let dims = ctx.dims(0)?;
        check_rank(dims.rank())?;
        let pooled: SymShape =
            dims.iter().enumerate().map(|(d, dim)| if d < 2 { dim.clone() } else { Dim::Known(1) }).collect();
        Ok(OutInfo::new(ctx.dtype(0)?, pooled).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => compute::<f32>(ctx),
            DType::F64 => compute::<f64>(ctx),
            DType::F16 => compute::<f16>(ctx),
            DType::BF16 => compute::<bf16>(ctx),
            other => Err(unlisted("GlobalMaxPool", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        inputs.first().map_or(0, |x| x.iter().fold(1u64, |n, &dim| n.saturating_mul(dim as u64)))
    }
}

fn check_rank(rank: usize) -> Result<(), OpError> {
    match rank < 2 {
        true => Err(OpError::shape(format!("GlobalMaxPool takes batch, channels and spatial dimensions; got {rank}"))),
        false => Ok(()),
    }
}

fn compute<T: Stored>(ctx: &mut RefCtx<'_>) -> Result<(), OpError>
where
    T::Math: Real,
{
    let x = ctx.input(0)?;
    let dims = x.shape();
    check_rank(dims.rank())?;
    let shape: Shape = dims.iter().enumerate().map(|(d, &size)| if d < 2 { size } else { 1 }).collect();
    check_output(ctx, 0, &shape)?;
    let output = ctx.output(0)?.values_mut::<T>()?;
    if output.is_empty() {
        return Ok(());
    }
    let positions = product(&dims[2..])?;
    let lowest = T::Math::from_f64(f64::NEG_INFINITY);
    let greater = |acc: T::Math, x: T::Math| if x > acc || x.to_f64().is_nan() { x } else { acc };
    let values = widened::<T>(&x)?;
    for (i, to) in output.iter_mut().enumerate() {
        let channel = values[i * positions..(i + 1) * positions].iter().copied();
        *to = T::narrow(lane_fold(channel, lowest, greater));
    }
    Ok(())
}

fn cases() -> Vec<Case> {
    let case =
        |name, x: Tensor, y: Tensor| Case { name, op: GlobalMaxPool.into(), inputs: vec![Some(x)], outputs: vec![y] };
    let t = case_tensor::<f32>;
    let ramp: Vec<f32> = (0..35).map(|i| (i * 11 % 35) as f32).collect();
    vec![
        case("two dimensions", t(&[1, 2, 2, 2], &[1., 2., 3., 6., 0., -1., -2., -1.]), t(&[1, 2, 1, 1], &[6., 0.])),
        case("more than the lanes", t(&[1, 1, 35], &ramp), t(&[1, 1, 1], &[34.])),
        case("no spatial dimension", t(&[1, 2], &[1., 2.]), t(&[1, 2], &[1., 2.])),
        case("NaN wins", t(&[1, 1, 3], &[1., f32::NAN, 2.]), t(&[1, 1, 1], &[f32::NAN])),
        case("of nothing", t(&[1, 1, 0], &[]), t(&[1, 1, 1], &[f32::NEG_INFINITY])),
        case("no image", t(&[0, 3, 2], &[]), t(&[0, 3, 1], &[])),
        case("f64", case_tensor(&[1, 1, 2], &[1f64, 2.]), case_tensor(&[1, 1, 1], &[2f64])),
        case("f16", case_tensor(&[1, 1, 2], &[f16::ONE, f16::ZERO]), case_tensor(&[1, 1, 1], &[f16::ONE])),
        case("bf16", case_tensor(&[1, 1, 2], &[bf16::ONE, bf16::ZERO]), case_tensor(&[1, 1, 1], &[bf16::ONE])),
    ]
}
