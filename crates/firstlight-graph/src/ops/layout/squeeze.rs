//! `Squeeze`.

use super::case_tensor;
use crate::op::{Arity, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo, normalise_axis};
use firstlight_tensor::{DType, Dim, SymShape};
use smallvec::SmallVec;

/// The same elements without some axes of size 1.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Squeeze;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Squeeze",
    doc: "The same elements without the given axes, whose sizes must be 1; without all axes of size 1 when none are given.",
    attributes: &[],
    inputs: &[
        Param { name: "data", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "axes", ty: TypeRef::Fixed(DType::I64), arity: Arity::Optional },
    ],
    outputs: &[Param { name: "squeezed", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Squeeze {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let dims = ctx.dims(0)?;
        let axes = match ctx.has(1) {
            true => ctx.ints(1)?,
            false => {
                let shape = ctx.shape(0)?;
                (0..shape.rank()).filter(|&d| shape[d] == 1).map(|d| d as i64).collect()
            }
        };
        Ok(OutInfo::new(ctx.dtype(0)?, squeezed(dims, &axes)?).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        super::copy_elements(ctx)
    }

    fn is_view(&self) -> bool {
        true
    }

    fn n_operations(&self, _inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        0
    }
}

fn squeezed(dims: &SymShape, axes: &[i64]) -> Result<SymShape, OpError> {
    let mut dropped: SmallVec<[bool; 6]> = SmallVec::from_elem(false, dims.rank());
    for &axis in axes {
        let axis = normalise_axis(axis, dims.rank())?;
        if std::mem::replace(&mut dropped[axis], true) {
            return Err(OpError::value(format!("axis {axis} is squeezed twice")));
        }
        if dims[axis].known().is_some_and(|size| size != 1) {
            return Err(OpError::shape(format!("cannot squeeze axis {axis} of {dims}: its size is not 1")));
        }
    }
    let kept = dims.iter().zip(dropped).filter(|(_, dropped)| !dropped);
    Ok(kept.map(|(dim, _)| Dim::clone(dim)).collect())
}

fn cases() -> Vec<Case> {
    let case = |name, dims: &[usize], axes: Option<&[i64]>, to: &[usize]| {
        let values = [1f32, 2., 3., 4.];
        let n = dims.iter().product::<usize>();
        let mut inputs = vec![Some(case_tensor(dims, &values[..n]))];
        inputs.extend(axes.map(|axes| Some(case_tensor(&[axes.len()], axes))));
        Case { name, op: Squeeze.into(), inputs, outputs: vec![case_tensor(to, &values[..n])] }
    };
    vec![
        case("one axis", &[1, 3, 1], Some(&[0]), &[3, 1]),
        case("a negative axis", &[1, 3, 1], Some(&[-1]), &[1, 3]),
        case("all of size 1", &[1, 3, 1], None, &[3]),
        case("to rank 0", &[1, 1], Some(&[1, 0]), &[]),
        case("rank 0", &[], None, &[]),
        case("no axis", &[1, 2], Some(&[]), &[1, 2]),
        case("empty", &[0, 1], Some(&[1]), &[0]),
    ]
}
