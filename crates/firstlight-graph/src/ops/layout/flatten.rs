//! `Flatten`.

use super::{case_tensor, product};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Dim, SymShape};
use smallvec::SmallVec;

/// The same elements as a matrix: the dimensions before an axis, and the others, each multiplied out.
#[derive(Clone, Debug, PartialEq)]
pub struct Flatten {
    /// The first dimension of the matrix's columns, from 0 to the rank; negative counts from the rank.
    pub axis: i64,
}

impl Default for Flatten {
    fn default() -> Flatten {
        Flatten { axis: 1 }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Flatten",
    doc: "The same elements as a matrix: dimensions before an axis, and the others, multiplied out. No dimensions give 1.",
    attributes: &[AttrDoc { name: "axis", doc: "the first dimension of the columns; negative counts from the rank" }],
    inputs: &[Param { name: "input", ty: TypeRef::Var(0), arity: Arity::One }],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Flatten {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("axis", AttrValue::Int(self.axis))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let dims = ctx.dims(0)?;
        let axis = self.split(dims.rank())?;
        let dims = SymShape(vec![multiply_out(&dims[..axis])?, multiply_out(&dims[axis..])?]);
        Ok(OutInfo::new(ctx.dtype(0)?, dims).one())
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

impl Flatten {
    /// The axis counted from the first.
    ///
    /// **Errors**: the axis is outside `-rank..=rank`.
    pub fn split(&self, rank: usize) -> Result<usize, OpError> {
        let from_start = if self.axis < 0 { self.axis as i128 + rank as i128 } else { self.axis as i128 };
        usize::try_from(from_start).ok().filter(|&axis| axis <= rank).ok_or_else(|| {
            OpError::value(format!("axis {} is outside -{rank}..={rank} of a rank-{rank} input", self.axis))
        })
    }
}

fn multiply_out(dims: &[Dim]) -> Result<Dim, OpError> {
    if dims.contains(&Dim::Known(0)) {
        return Ok(Dim::Known(0));
    }
    let mut others = dims.iter().filter(|&dim| *dim != Dim::Known(1));
    match (others.next(), others.next()) {
        (None, _) => Ok(Dim::Known(1)),
        (Some(only), None) => Ok(only.clone()),
        _ => match dims.iter().map(Dim::known).collect::<Option<Vec<_>>>() {
            Some(sizes) => Ok(Dim::Known(product(&sizes)?)),
            None => Ok(Dim::Unknown),
        },
    }
}

fn cases() -> Vec<Case> {
    let values = [1f32, 2., 3., 4., 5., 6., 7., 8.];
    let case = |name, axis, dims: &[usize], to: &[usize]| {
        let n = dims.iter().product::<usize>();
        Case {
            name,
            op: Flatten { axis }.into(),
            inputs: vec![Some(case_tensor(dims, &values[..n]))],
            outputs: vec![case_tensor(to, &values[..n])],
        }
    };
    vec![
        case("axis 1", 1, &[2, 2, 2], &[2, 4]),
        case("axis 0", 0, &[2, 2, 2], &[1, 8]),
        case("axis at the rank", 3, &[2, 2, 2], &[8, 1]),
        case("negative axis", -1, &[2, 2, 2], &[4, 2]),
        case("rank 0", 0, &[], &[1, 1]),
        case("empty", 1, &[0, 3], &[0, 3]),
    ]
}
