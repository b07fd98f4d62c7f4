//! `GatherElements`.

use super::{MoveWords, case_tensor, check_output, normalise_index, view_ints};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::{BYTE_SIZED, INDICES};
use crate::{InferCtx, OpError, OutInfo, normalise_axis};
use firstlight_tensor::{Layout, Shape, SymShape, Tensor};
use smallvec::SmallVec;

/// Elements of a tensor, each chosen along one axis by the index at its place.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct GatherElements {
    /// The axis that the indices index; negative counts from the last.
    pub axis: i64,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "GatherElements",
    doc: "Elements of a tensor, each chosen along one axis by the index at its place. The output has the indices' \
          shape. Negative indices count from the end; one outside the axis is an error.",
    attributes: &[AttrDoc { name: "axis", doc: "the axis that the indices index; negative counts from the last" }],
    inputs: &[
        Param { name: "data", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "indices", ty: TypeRef::Var(1), arity: Arity::One },
    ],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }, TypeVar { name: "Tind", allowed: INDICES }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for GatherElements {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("axis", AttrValue::Int(self.axis))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (data, indices) = (ctx.dims(0)?, ctx.dims(1)?);
        let axis = normalise_axis(self.axis, data.rank())?;
        let beyond = |d: usize| matches!((data[d].known(), indices[d].known()), (Some(a), Some(b)) if b > a);
        if data.rank() != indices.rank() || (0..data.rank()).any(|d| d != axis && beyond(d)) {
            return Err(misfit(data, indices, axis));
        }
        Ok(OutInfo::new(ctx.dtype(0)?, indices.clone()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.move_elements(ctx)
    }
}

impl GatherElements {
    /// The axis, with the shapes of data and indices checked against each other.
    ///
    /// **Errors**: an axis that the data lacks; ranks that differ; more indices than data along another axis.
    pub fn axis_of(&self, data: &[usize], indices: &[usize]) -> Result<usize, OpError> {
        let axis = normalise_axis(self.axis, data.len())?;
        let fits = data.len() == indices.len() && (0..data.len()).all(|d| d == axis || indices[d] <= data[d]);
        match fits {
            true => Ok(axis),
            false => Err(misfit(&SymShape::from(&data.into()), &SymShape::from(&indices.into()), axis)),
        }
    }
}

fn misfit(data: &SymShape, indices: &SymShape, axis: usize) -> OpError {
    OpError::shape(format!("indices {indices} do not fit data {data}: only along axis {axis} may they be more"))
}

impl MoveWords for GatherElements {
    fn move_words<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let (data, indices) = (ctx.input(0)?, ctx.input(1)?);
        let (shape, dims): (&Shape, &Shape) = (data.shape(), indices.shape());
        let axis = self.axis_of(shape, dims)?;
        check_output(ctx, 0, dims)?;
        let at = view_ints(&indices)?;
        let output = ctx.output(0)?.words_mut::<W>()?;
        if output.is_empty() {
            return Ok(());
        }
        let words = data.words::<W>()?;
        // Where each output element's slice starts: the indices' positions over the data's strides, without the axis.
        let mut strides: SmallVec<[isize; 6]> = shape.strides().iter().map(|&stride| stride as isize).collect();
        let along = std::mem::replace(&mut strides[axis], 0) as usize;
        let starts = Layout::strided(dims, &strides, 0, words.len());
        let starts = starts.ok_or_else(|| OpError::shape("the indices reach beyond the data"))?;
        for ((to, start), &index) in output.iter_mut().zip(starts.positions()).zip(&at) {
            *to = words[start + normalise_index(index, shape[axis])? * along];
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let case = |name, axis, data: Tensor, indices: Tensor, output: Tensor| Case {
        name,
        op: GatherElements { axis }.into(),
        inputs: vec![Some(data), Some(indices)],
        outputs: vec![output],
    };
    let t = case_tensor::<f32>;
    let i = case_tensor::<i64>;
    let data = t(&[3, 3], &[1., 2., 3., 4., 5., 6., 7., 8., 9.]);
    vec![
        case(
            "axis 0, fewer rows",
            0,
            data.clone(),
            i(&[2, 3], &[1, 2, 0, 2, 0, 0]),
            t(&[2, 3], &[4., 8., 3., 7., 2., 3.]),
        ),
        case("axis 1, negative indices", -1, data.clone(), i(&[2, 2], &[-1, 0, 1, -3]), t(&[2, 2], &[3., 1., 5., 4.])),
        case("more along the axis", 0, t(&[1, 2], &[5., 6.]), i(&[3, 1], &[0, -1, 0]), t(&[3, 1], &[5., 5., 5.])),
        case("i32 indices", 0, t(&[2], &[7., 8.]), case_tensor::<i32>(&[2], &[1, 0]), t(&[2], &[8., 7.])),
        case("no index", 1, data, i(&[3, 0], &[]), t(&[3, 0], &[])),
    ]
}
