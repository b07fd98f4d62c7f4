//! `Compress`.

use super::{MoveWords, case_tensor, product};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo, normalise_axis};
use firstlight_tensor::{DType, Dim, Shape, SymShape, Tensor};
use smallvec::SmallVec;

/// The slices of a tensor along one axis, or its elements, for which a condition holds.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Compress {
    /// The axis of the slices; negative counts from the last. Without it elements are selected.
    pub axis: Option<i64>,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Compress",
    doc: "The slices of a tensor along one axis, or its elements in order, for which a condition holds. What the \
          condition does not reach is left out.",
    attributes: &[AttrDoc {
        name: "axis",
        doc: "the axis of the slices; negative counts from the last; without it elements are selected",
    }],
    inputs: &[
        Param { name: "input", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "condition", ty: TypeRef::Fixed(DType::Bool), arity: Arity::One },
    ],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Compress {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        self.axis.map(|axis| ("axis", AttrValue::Int(axis))).into_iter().collect()
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (dims, condition) = (ctx.dims(0)?, ctx.dims(1)?);
        if condition.rank() != 1 {
            return Err(OpError::shape(format!("the condition has shape {condition}, expected one dimension")));
        }
        let most = |size: Dim| match (size, condition[0].known()) {
            (Dim::Known(size), Some(n)) => Dim::Known(size.min(n)),
            _ => Dim::Unknown,
        };
        let dims = match self.axis {
            Some(axis) => {
                let axis = normalise_axis(axis, dims.rank())?;
                let mut dims = dims.clone();
                dims.0[axis] = most(dims[axis].clone());
                dims
            }
            None => {
                let size = dims.known().map(|shape| product(&shape)).transpose()?;
                SymShape(vec![most(size.map_or(Dim::Unknown, Dim::Known))])
            }
        };
        Ok(OutInfo { data_sized: true, ..OutInfo::new(ctx.dtype(0)?, dims) }.one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.move_elements(ctx)
    }
}

impl Compress {
    /// The input as `outer` blocks of `size` slices of `inner` elements, and the axis of the slices in the output.
    ///
    /// **Errors**: an axis that the input lacks; sizes that overflow.
    pub fn geometry(&self, dims: &[usize]) -> Result<([usize; 3], usize), OpError> {
        match self.axis {
            None => Ok(([1, product(dims)?, 1], 0)),
            Some(axis) => {
                let axis = normalise_axis(axis, dims.len())?;
                Ok(([product(&dims[..axis])?, dims[axis], product(&dims[axis + 1..])?], axis))
            }
        }
    }
}

impl MoveWords for Compress {
    fn move_words<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let (input, condition) = (ctx.input(0)?, ctx.input(1)?.bools()?);
        let ([_, size, inner], axis) = self.geometry(input.shape())?;
        let chosen: Vec<usize> = (0..size).filter(|&i| condition.get(i) == Some(&true)).collect();
        let mut dims = if self.axis.is_some() { input.shape().clone() } else { Shape::from([size]) };
        dims[axis] = chosen.len();
        let output = ctx.output(0)?;
        output.set_shape(dims);
        let output = output.words_mut::<W>()?;
        if output.is_empty() {
            return Ok(());
        }
        // The output is not empty, so neither sizes nor slices are.
        let words = input.words::<W>()?;
        for (to, block) in output.chunks_exact_mut(chosen.len() * inner).zip(words.chunks_exact(size * inner)) {
            for (to, &i) in to.chunks_exact_mut(inner).zip(&chosen) {
                to.copy_from_slice(&block[i * inner..(i + 1) * inner]);
            }
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let case = |name, axis, input: Tensor, condition: &[bool], output: Tensor| Case {
        name,
        op: Compress { axis }.into(),
        inputs: vec![Some(input), Some(crate::ops::cases::bools(&[condition.len()], condition))],
        outputs: vec![output],
    };
    let t = case_tensor::<f32>;
    let matrix = t(&[3, 2], &[1., 2., 3., 4., 5., 6.]);
    vec![
        case("rows", Some(0), matrix.clone(), &[false, true, true], t(&[2, 2], &[3., 4., 5., 6.])),
        case("columns", Some(-1), matrix.clone(), &[false, true], t(&[3, 1], &[2., 4., 6.])),
        case("elements", None, matrix.clone(), &[false, true, false, false, true], t(&[2], &[2., 5.])),
        case("a short condition", Some(0), matrix.clone(), &[true], t(&[1, 2], &[1., 2.])),
        case("nothing", Some(1), matrix, &[false, false], t(&[3, 0], &[])),
        case("empty", None, t(&[0, 2], &[]), &[true], t(&[0], &[])),
        case("bytes", None, case_tensor(&[2], &[1u8, 2]), &[true, true, true], case_tensor(&[2], &[1u8, 2])),
    ]
}
