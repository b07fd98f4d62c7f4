//! `GlobalLpPool`.

use super::arith::{Math, Real, Stored, lane_fold, widened};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::elementwise::unlisted;
use crate::ops::layout::{case_tensor, check_output, product};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, Shape, SymShape, Tensor, bf16, f16};
use smallvec::SmallVec;

/// The p-norm of each channel over all spatial dimensions.
///
/// `|x|^p` of each element, rounded, added in 16 lanes, and the root of the sum, rounded; powers and roots other than
/// those of p = 1 and 2 are taken in f64.
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalLpPool {
    /// The norm's exponent, 1 or more.
    pub p: i64,
}

impl Default for GlobalLpPool {
    fn default() -> GlobalLpPool {
        GlobalLpPool { p: 2 }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "GlobalLpPool",
    doc: "The p-norm of each channel over all spatial dimensions, whose sizes become 1. The norm of nothing is 0.",
    attributes: &[AttrDoc { name: "p", doc: "the norm's exponent, 1 or more" }],
    inputs: &[Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One }],
    outputs: &[Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for GlobalLpPool {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("p", AttrValue::Int(self.p))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        check_p(self.p)?;
        let dims = ctx.dims(0)?;
        check_rank(dims.rank())?;
        let pooled: SymShape =
            dims.iter().enumerate().map(|(d, dim)| if d < 2 { dim.clone() } else { Dim::Known(1) }).collect();
        Ok(OutInfo::new(ctx.dtype(0)?, pooled).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.compute::<f32>(ctx),
            DType::F64 => self.compute::<f64>(ctx),
            DType::F16 => self.compute::<f16>(ctx),
            DType::BF16 => self.compute::<bf16>(ctx),
            other => Err(unlisted("GlobalLpPool", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        inputs.first().map_or(0, |x| x.iter().fold(1u64, |n, &dim| n.saturating_mul(dim as u64)))
    }
}

fn check_rank(rank: usize) -> Result<(), OpError> {
    match rank < 2 {
        true => Err(OpError::shape(format!("GlobalLpPool takes batch, channels and spatial dimensions; got {rank}"))),
        false => Ok(()),
    }
}

impl GlobalLpPool {
    fn compute<T: Stored>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError>
    where
        T::Math: Real,
    {
        check_p(self.p)?;
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
        let values = widened::<T>(&x)?;
        for (i, to) in output.iter_mut().enumerate() {
            let channel = values[i * positions..(i + 1) * positions].iter().map(|&x| power(self.p, x));
            *to = T::narrow(root(self.p, lane_fold(channel, T::Math::ZERO, Math::plus)));
        }
        Ok(())
    }
}

/// Checks a norm's exponent.
pub(super) fn check_p(p: i64) -> Result<(), OpError> {
    match p {
        1.. => Ok(()),
        _ => Err(OpError::value(format!("p is {p}, expected 1 or more"))),
    }
}

/// `|x|^p`, rounded.
pub(super) fn power<M: Real>(p: i64, x: M) -> M {
    match p {
        1 => x.magnitude(),
        2 => x.times(x),
        _ => M::from_f64(libm::pow(x.magnitude().to_f64(), p as f64)),
    }
}

/// The p-th root, rounded.
pub(super) fn root<M: Real>(p: i64, sum: M) -> M {
    match p {
        1 => sum,
        2 => M::from_f64(sum.to_f64().sqrt()),
        _ => M::from_f64(libm::pow(sum.to_f64(), 1.0 / p as f64)),
    }
}

fn cases() -> Vec<Case> {
    let case = |name, p, x: Tensor, y: Tensor| Case {
        name,
        op: GlobalLpPool { p }.into(),
        inputs: vec![Some(x)],
        outputs: vec![y],
    };
    let t = case_tensor::<f32>;
    vec![
        case("two dimensions", 2, t(&[1, 2, 2, 2], &[1., -1., 1., 1., 0., 3., 4., 0.]), t(&[1, 2, 1, 1], &[2., 5.])),
        case("p = 1", 1, t(&[1, 1, 3], &[1., -2., 3.]), t(&[1, 1, 1], &[6.])),
        case("p = 3", 3, t(&[1, 1, 3], &[-3., 4., 5.]), t(&[1, 1, 1], &[6.])),
        case("no spatial dimension", 2, t(&[1, 2], &[1., -2.]), t(&[1, 2], &[1., 2.])),
        case("NaN", 2, t(&[1, 1, 3], &[1., f32::NAN, 2.]), t(&[1, 1, 1], &[f32::NAN])),
        case("of nothing", 2, t(&[1, 1, 0], &[]), t(&[1, 1, 1], &[0.])),
        case("no image", 2, t(&[0, 3, 2], &[]), t(&[0, 3, 1], &[])),
        case("f64", 2, case_tensor(&[1, 1, 2], &[3f64, 4.]), case_tensor(&[1, 1, 1], &[5f64])),
        case("f16", 1, case_tensor(&[1, 1, 2], &[f16::ONE, f16::ZERO]), case_tensor(&[1, 1, 1], &[f16::ONE])),
        case("bf16", 2, case_tensor(&[1, 1, 2], &[bf16::ONE, bf16::ZERO]), case_tensor(&[1, 1, 1], &[bf16::ONE])),
    ]
}
