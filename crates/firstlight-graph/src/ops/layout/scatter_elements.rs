//! `ScatterElements`.

use super::gather_elements::GatherElements;
use super::scatter::{REDUCTION, Reduction, apply};
use super::{case_tensor, check_output, normalise_index, same_dim, view_ints};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::{BYTE_SIZED, INDICES};
use crate::{InferCtx, OpError, OutInfo, normalise_axis};
use firstlight_tensor::{Layout, Shape, Tensor};
use smallvec::SmallVec;

/// A tensor with elements updated, each chosen along one axis by the index at its update's place.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ScatterElements {
    /// The axis that the indices index; negative counts from the last.
    pub axis: i64,
    /// What becomes of an element that an update meets.
    pub reduction: Reduction,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ScatterElements",
    doc: "A tensor with elements updated, each chosen along one axis by the index at its update's place. Updates are \
          applied in their order, one by one. Negative indices count from the end; one outside the axis is an error.",
    attributes: &[
        AttrDoc { name: "axis", doc: "the axis that the indices index; negative counts from the last" },
        REDUCTION,
    ],
    inputs: &[
        Param { name: "data", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "indices", ty: TypeRef::Var(1), arity: Arity::One },
        Param { name: "updates", ty: TypeRef::Var(0), arity: Arity::One },
    ],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }, TypeVar { name: "Tind", allowed: INDICES }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for ScatterElements {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("axis", AttrValue::Int(self.axis)), ("reduction", AttrValue::Text(self.reduction.name().into()))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (data, indices, updates) = (ctx.dims(0)?, ctx.dims(1)?, ctx.dims(2)?);
        self.reduction.check(ctx.dtype(0)?)?;
        let axis = normalise_axis(self.axis, data.rank())?;
        let beyond = |d: usize| matches!((data[d].known(), indices[d].known()), (Some(a), Some(b)) if b > a);
        if data.rank() != indices.rank() || (0..data.rank()).any(|d| d != axis && beyond(d)) {
            return Err(OpError::shape(format!("indices {indices} do not fit data {data} along axis {axis}")));
        }
        let fits = updates.rank() == indices.rank();
        if !fits || indices.iter().zip(updates.iter()).any(|(a, b)| same_dim(a, b).is_none()) {
            return Err(OpError::shape(format!(
                "updates have shape {updates}, expected that of the indices, {indices}"
            )));
        }
        Ok(OutInfo::new(ctx.dtype(0)?, data.clone()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let (data, indices, updates) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        let (shape, dims): (&Shape, &Shape) = (data.shape(), indices.shape());
        let axis = self.axis_of(shape, dims, updates.shape())?;
        check_output(ctx, 0, shape)?;
        let at = view_ints(&indices)?;
        let mut strides: SmallVec<[isize; 6]> = shape.strides().iter().map(|&stride| stride as isize).collect();
        let along = std::mem::replace(&mut strides[axis], 0) as usize;
        let mut targets = Vec::with_capacity(at.len());
        if !at.is_empty() {
            let starts = Layout::strided(dims, &strides, 0, data.n_elems());
            let starts = starts.ok_or_else(|| OpError::shape("the indices reach beyond the data"))?;
            for (start, &index) in starts.positions().zip(&at) {
                targets.push(start + normalise_index(index, shape[axis])? * along);
            }
        }
        apply(ctx, self.reduction, &targets)
    }
}

impl ScatterElements {
    /// The axis, with the shapes of the operands checked against each other.
    ///
    /// **Errors**: an axis that the data lacks; shapes that do not fit.
    pub fn axis_of(&self, data: &[usize], indices: &[usize], updates: &[usize]) -> Result<usize, OpError> {
        let axis = GatherElements { axis: self.axis }.axis_of(data, indices)?;
        match indices == updates {
            true => Ok(axis),
            false => {
                let (updates, indices) = (Shape::from(updates), Shape::from(indices));
                Err(OpError::shape(format!("updates have shape {updates}, expected that of the indices, {indices}")))
            }
        }
    }
}

fn cases() -> Vec<Case> {
    let case = |name, axis, reduction, data: Tensor, indices: Tensor, updates: Tensor, output: Tensor| Case {
        name,
        op: ScatterElements { axis, reduction }.into(),
        inputs: vec![Some(data), Some(indices), Some(updates)],
        outputs: vec![output],
    };
    let t = case_tensor::<f32>;
    let i = case_tensor::<i64>;
    vec![
        case(
            "rows",
            0,
            Reduction::None,
            t(&[3, 3], &[0.; 9]),
            i(&[2, 3], &[1, 0, 2, 0, 2, 1]),
            t(&[2, 3], &[1., 1.1, 1.2, 2., 2.1, 2.2]),
            t(&[3, 3], &[2., 1.1, 0., 1., 0., 2.2, 0., 2.1, 1.2]),
        ),
        case(
            "columns, negative indices of i32",
            -1,
            Reduction::None,
            t(&[1, 5], &[1., 2., 3., 4., 5.]),
            case_tensor(&[1, 2], &[1i32, -2]),
            t(&[1, 2], &[1.5, 2.5]),
            t(&[1, 5], &[1., 1.5, 3., 2.5, 5.]),
        ),
        case(
            "sums at one place",
            1,
            Reduction::Add,
            t(&[1, 3], &[1., 2., 3.]),
            i(&[1, 2], &[1, 1]),
            t(&[1, 2], &[1., 2.]),
            t(&[1, 3], &[1., 5., 3.]),
        ),
        case(
            "products wrap",
            0,
            Reduction::Mul,
            case_tensor(&[2], &[200u8, 3]),
            i(&[2], &[0, 1]),
            case_tensor(&[2], &[2u8, 5]),
            case_tensor(&[2], &[144u8, 15]),
        ),
        case("maxima", 0, Reduction::Max, t(&[2], &[1., 2.]), i(&[2], &[0, 1]), t(&[2], &[2., 1.]), t(&[2], &[2., 2.])),
        case(
            "minima, NaN stays",
            0,
            Reduction::Min,
            t(&[2], &[f32::NAN, 2.]),
            i(&[2], &[0, 1]),
            t(&[2], &[2., 1.]),
            t(&[2], &[f32::NAN, 1.]),
        ),
        case("no updates", 0, Reduction::None, t(&[2], &[1., 2.]), i(&[0], &[]), t(&[0], &[]), t(&[2], &[1., 2.])),
        case("empty", 0, Reduction::Add, t(&[0, 2], &[]), i(&[0, 2], &[]), t(&[0, 2], &[]), t(&[0, 2], &[])),
    ]
}
