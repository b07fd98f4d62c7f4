//! `Unsqueeze`.

use super::case_tensor;
use crate::op::{Arity, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo, normalise_axis};
use firstlight_tensor::{DType, Dim, SymShape};
use smallvec::SmallVec;

/// The same elements with axes of size 1 put in.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Unsqueeze;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Unsqueeze",
    doc: "The same elements with axes of size 1 put in. The axes are those of the result; negative ones count from its last.",
    attributes: &[],
    inputs: &[
        Param { name: "data", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "axes", ty: TypeRef::Fixed(DType::I64), arity: Arity::One },
    ],
    outputs: &[Param { name: "expanded", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Unsqueeze {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (dims, axes) = (ctx.dims(0)?, ctx.ints(1)?);
        let rank = dims.rank() + axes.len();
        let mut added = vec![false; rank];
        for &axis in &axes {
            let axis = normalise_axis(axis, rank)?;
            if std::mem::replace(&mut added[axis], true) {
                return Err(OpError::value(format!("axis {axis} is put in twice")));
            }
        }
        let mut kept = dims.iter();
        let dims: SymShape =
            added.iter().filter_map(|&added| if added { Some(Dim::Known(1)) } else { kept.next().cloned() }).collect();
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

fn cases() -> Vec<Case> {
    let case = |name, dims: &[usize], axes: &[i64], to: &[usize]| {
        let values = [1f32, 2., 3., 4., 5., 6.];
        let n = dims.iter().product::<usize>();
        Case {
            name,
            op: Unsqueeze.into(),
            inputs: vec![Some(case_tensor(dims, &values[..n])), Some(case_tensor(&[axes.len()], axes))],
            outputs: vec![case_tensor(to, &values[..n])],
        }
    };
    vec![
        case("one axis", &[2, 3], &[1], &[2, 1, 3]),
        case("axes out of order", &[2, 3], &[3, 0], &[1, 2, 3, 1]),
        case("negative axes", &[2, 3], &[-1, -4], &[1, 2, 3, 1]),
        case("rank 0", &[], &[0], &[1]),
        case("no axis", &[2], &[], &[2]),
        case("empty", &[0], &[0], &[1, 0]),
    ]
}
