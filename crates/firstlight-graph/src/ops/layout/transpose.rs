//! `Transpose`.

use super::{case_tensor, check_output, copy_view};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Layout, Shape, SymShape, Tensor, TensorView};
use smallvec::SmallVec;

/// A tensor with its axes in another order.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Transpose {
    /// For each axis of the result the axis of the input; the reverse order when omitted.
    pub perm: Option<Vec<i64>>,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Transpose",
    doc: "A tensor with its axes in another order.",
    attributes: &[AttrDoc {
        name: "perm",
        doc: "for each axis of the result the axis of the input; reversed when omitted",
    }],
    inputs: &[Param { name: "data", ty: TypeRef::Var(0), arity: Arity::One }],
    outputs: &[Param { name: "transposed", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Transpose {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        self.perm.iter().map(|perm| ("perm", AttrValue::Ints(perm.clone()))).collect()
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let dims = ctx.dims(0)?;
        let dims: SymShape = self.axes(dims.rank())?.iter().map(|&axis| dims[axis].clone()).collect();
        Ok(OutInfo::new(ctx.dtype(0)?, dims).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let input = ctx.input(0)?;
        let (dims, strides) = (input.shape(), input.layout().strides());
        let axes = self.axes(dims.rank())?;
        let shape: Shape = axes.iter().map(|&axis| dims[axis]).collect();
        check_output(ctx, 0, &shape)?;
        let strides: SmallVec<[isize; 6]> = axes.iter().map(|&axis| strides[axis]).collect();
        let n_elems = input.raw().len() * 8 / input.dtype().bits().max(1);
        let layout = Layout::strided(&shape, &strides, input.layout().offset(), n_elems);
        let layout = layout.ok_or_else(|| OpError::shape(format!("an input {dims} reaches beyond its bytes")))?;
        copy_view(ctx, &TensorView::new(input.dtype(), layout, input.raw()))
    }
}

impl Transpose {
    /// For each axis of the result the axis of an input of that rank.
    ///
    /// **Errors**: the permutation has another rank, an axis twice, or one that the input lacks.
    pub fn axes(&self, rank: usize) -> Result<SmallVec<[usize; 6]>, OpError> {
        let Some(perm) = &self.perm else { return Ok((0..rank).rev().collect()) };
        let misfit = || OpError::value(format!("perm {perm:?} is no permutation of the axes 0..{rank}"));
        let mut seen: SmallVec<[bool; 6]> = SmallVec::from_elem(false, rank);
        if perm.len() != rank {
            return Err(misfit());
        }
        let axis = |&axis: &i64| {
            let axis = usize::try_from(axis).ok().filter(|&axis| axis < rank).ok_or_else(misfit)?;
            if std::mem::replace(&mut seen[axis], true) { Err(misfit()) } else { Ok(axis) }
        };
        perm.iter().map(axis).collect()
    }
}

fn cases() -> Vec<Case> {
    let case = |name, perm: Option<&[i64]>, x: Tensor, y: Tensor| Case {
        name,
        op: Transpose { perm: perm.map(<[i64]>::to_vec) }.into(),
        inputs: vec![Some(x)],
        outputs: vec![y],
    };
    let t = case_tensor::<f32>;
    let cube = t(&[2, 1, 3], &[1., 2., 3., 4., 5., 6.]);
    vec![
        case("a matrix", None, t(&[2, 3], &[1., 2., 3., 4., 5., 6.]), t(&[3, 2], &[1., 4., 2., 5., 3., 6.])),
        case("reversed", None, cube.clone(), t(&[3, 1, 2], &[1., 4., 2., 5., 3., 6.])),
        case("given order", Some(&[1, 0, 2]), cube.clone(), t(&[1, 2, 3], &[1., 2., 3., 4., 5., 6.])),
        case("rotation", Some(&[2, 0, 1]), cube, t(&[3, 2, 1], &[1., 4., 2., 5., 3., 6.])),
        case("rank 0", Some(&[]), t(&[], &[1.]), t(&[], &[1.])),
        case("empty", None, t(&[0, 2], &[]), t(&[2, 0], &[])),
        case(
            "halves of words",
            None,
            case_tensor::<u16>(&[2, 2], &[1, 2, 3, 4]),
            case_tensor::<u16>(&[2, 2], &[1, 3, 2, 4]),
        ),
    ]
}
