//! `ScatterND`.

use super::gather_nd::{TupleGeometry, infer_slices};
use super::scatter::{REDUCTION, Reduction, apply};
use super::{case_tensor, check_output, product, same_dim, view_ints};
use crate::op::{Arity, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Shape, SymShape, Tensor};
use smallvec::SmallVec;

/// A tensor with slices updated, each chosen by a tuple of indices.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ScatterND {
    /// What becomes of an element that an update meets.
    pub reduction: Reduction,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ScatterND",
    doc: "A tensor with slices updated, each chosen by a tuple of indices, which the last dimension of `indices` holds. \
          Updates are applied in their order, one by one. Negative indices count from the end; one outside its \
          dimension is an error.",
    attributes: &[REDUCTION],
    inputs: &[
        Param { name: "data", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "indices", ty: TypeRef::Fixed(DType::I64), arity: Arity::One },
        Param { name: "updates", ty: TypeRef::Var(0), arity: Arity::One },
    ],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for ScatterND {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("reduction", AttrValue::Text(self.reduction.name().into()))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (data, indices, updates) = (ctx.dims(0)?, ctx.dims(1)?, ctx.dims(2)?);
        self.reduction.check(ctx.dtype(0)?)?;
        match infer_slices(data, indices, 0, 1) {
            Ok(slices) => check_updates(&slices, updates)?,
            Err(error) if matches!(error.kind(), crate::OpErrorKind::NeedsValue(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(OutInfo::new(ctx.dtype(0)?, data.clone()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let (data, indices, updates) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        let geometry = self.geometry(data.shape(), indices.shape(), updates.shape())?;
        check_output(ctx, 0, data.shape())?;
        let at = view_ints(&indices)?;
        let tuple = geometry.sizes.len();
        let n = product(&indices.shape()[..indices.shape().rank() - 1])?;
        let mut targets = Vec::new();
        for i in 0..n {
            let start = geometry.start(|j| at[i * tuple + j])?;
            targets.extend(start..start + geometry.slice);
        }
        apply(ctx, self.reduction, &targets)
    }
}

impl ScatterND {
    /// How operands of given dimensions fit together.
    ///
    /// **Errors**: they do not.
    pub fn geometry(&self, data: &[usize], indices: &[usize], updates: &[usize]) -> Result<TupleGeometry, OpError> {
        let geometry = TupleGeometry::new(data, indices, 0)?;
        if geometry.dims[..] != *updates {
            check_updates(&SymShape::from(&geometry.dims), &SymShape::from(&Shape::from(updates)))?;
        }
        Ok(geometry)
    }
}

fn check_updates(slices: &SymShape, updates: &SymShape) -> Result<(), OpError> {
    let fits =
        slices.rank() == updates.rank() && slices.iter().zip(updates.iter()).all(|(a, b)| same_dim(a, b).is_some());
    match fits {
        true => Ok(()),
        false => Err(OpError::shape(format!("updates have shape {updates}, expected {slices}"))),
    }
}

fn cases() -> Vec<Case> {
    let case = |name, reduction, data: Tensor, indices: Tensor, updates: Tensor, output: Tensor| Case {
        name,
        op: ScatterND { reduction }.into(),
        inputs: vec![Some(data), Some(indices), Some(updates)],
        outputs: vec![output],
    };
    let t = case_tensor::<f32>;
    let i = case_tensor::<i64>;
    let ones = t(&[2, 2], &[1., 2., 3., 4.]);
    vec![
        case(
            "elements",
            Reduction::None,
            t(&[4], &[1., 2., 3., 4.]),
            i(&[2, 1], &[3, -4]),
            t(&[2], &[9., 8.]),
            t(&[4], &[8., 2., 3., 9.]),
        ),
        case(
            "rows",
            Reduction::None,
            ones.clone(),
            i(&[1, 1], &[1]),
            t(&[1, 2], &[7., 8.]),
            t(&[2, 2], &[1., 2., 7., 8.]),
        ),
        case(
            "the last update stays",
            Reduction::None,
            t(&[2], &[0., 0.]),
            i(&[2, 1], &[1, 1]),
            t(&[2], &[5., 6.]),
            t(&[2], &[0., 6.]),
        ),
        case(
            "sums",
            Reduction::Add,
            ones.clone(),
            i(&[3, 1], &[0, 0, 1]),
            t(&[3, 2], &[1., 1., 2., 2., 0.5, 0.5]),
            t(&[2, 2], &[4., 5., 3.5, 4.5]),
        ),
        case(
            "products",
            Reduction::Mul,
            ones.clone(),
            i(&[1, 2], &[1, 0]),
            t(&[1], &[-2.]),
            t(&[2, 2], &[1., 2., -6., 4.]),
        ),
        case(
            "maxima, NaN wins",
            Reduction::Max,
            ones.clone(),
            i(&[2, 1], &[0, 1]),
            t(&[2, 2], &[3., 0., f32::NAN, 5.]),
            t(&[2, 2], &[3., 2., f32::NAN, 5.]),
        ),
        case(
            "minima of integers",
            Reduction::Min,
            case_tensor(&[2], &[-5i8, 5]),
            i(&[2, 1], &[0, 1]),
            case_tensor(&[2], &[-6i8, 6]),
            case_tensor(&[2], &[-6i8, 5]),
        ),
        case("no updates", Reduction::Add, ones.clone(), i(&[0, 1], &[]), t(&[0, 2], &[]), ones),
        case("empty", Reduction::None, t(&[0], &[]), i(&[0, 1], &[]), t(&[0], &[]), t(&[0], &[])),
    ]
}
