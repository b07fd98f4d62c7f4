//! `Gather`.

use super::{MoveWords, case_tensor, check_output, normalise_index, product, view_ints};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::{BYTE_SIZED, INDICES};
use crate::{InferCtx, OpError, OutInfo, normalise_axis};
use firstlight_tensor::{Shape, SymShape, Tensor};
use smallvec::SmallVec;

/// Slices of a tensor along one axis, chosen by indices.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Gather {
    /// The axis that the indices index; negative counts from the last.
    pub axis: i64,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Gather",
    doc: "Slices of a tensor along one axis, chosen by indices; the indices' dimensions take the axis's place. \
          Negative indices count from the end; one outside the axis is an error.",
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

impl OpDef for Gather {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("axis", AttrValue::Int(self.axis))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (data, indices) = (ctx.dims(0)?, ctx.dims(1)?);
        let axis = normalise_axis(self.axis, data.rank())?;
        let dims: SymShape = data[..axis].iter().chain(indices.iter()).chain(&data[axis + 1..]).cloned().collect();
        Ok(OutInfo::new(ctx.dtype(0)?, dims).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.move_elements(ctx)
    }
}

/// How [`Gather`] walks its data: `outer` blocks of `size` slices of `inner` elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatherGeometry {
    /// Places before the gathered axis.
    pub outer: usize,
    /// Size of the gathered axis.
    pub size: usize,
    /// Elements of a slice: the places after the gathered axis.
    pub inner: usize,
    /// Shape of the output.
    pub dims: Shape,
}

impl Gather {
    /// How data and indices of given shapes are walked.
    ///
    /// **Errors**: an axis that the data lacks; sizes that overflow.
    pub fn geometry(&self, data: &[usize], indices: &[usize]) -> Result<GatherGeometry, OpError> {
        let axis = normalise_axis(self.axis, data.len())?;
        let dims: Shape = data[..axis].iter().chain(indices).chain(&data[axis + 1..]).copied().collect();
        product(&dims)?;
        let (outer, inner) = (product(&data[..axis])?, product(&data[axis + 1..])?);
        Ok(GatherGeometry { outer, size: data[axis], inner, dims })
    }
}

impl MoveWords for Gather {
    fn move_words<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let (data, indices) = (ctx.input(0)?, ctx.input(1)?);
        let geometry = self.geometry(data.shape(), indices.shape())?;
        check_output(ctx, 0, &geometry.dims)?;
        let at: Vec<usize> = view_ints(&indices)?
            .into_iter()
            .map(|index| normalise_index(index, geometry.size))
            .collect::<Result<_, _>>()?;
        let output = ctx.output(0)?.words_mut::<W>()?;
        if output.is_empty() {
            return Ok(());
        }
        // The output is not empty, so there is an index, and with it a block.
        let words = data.words::<W>()?;
        let inner = geometry.inner;
        let blocks = words.chunks_exact(geometry.size * inner);
        for (to, block) in output.chunks_exact_mut(at.len() * inner).zip(blocks) {
            for (slice, &i) in to.chunks_exact_mut(inner).zip(&at) {
                slice.copy_from_slice(&block[i * inner..(i + 1) * inner]);
            }
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let case = |name, axis, data: Tensor, indices: Tensor, output: Tensor| Case {
        name,
        op: Gather { axis }.into(),
        inputs: vec![Some(data), Some(indices)],
        outputs: vec![output],
    };
    let t = case_tensor::<f32>;
    let i = case_tensor::<i64>;
    let data = t(&[3, 2], &[1., 2., 3., 4., 5., 6.]);
    vec![
        case("rows", 0, data.clone(), i(&[2], &[2, 0]), t(&[2, 2], &[5., 6., 1., 2.])),
        case("columns by a matrix", 1, data.clone(), i(&[1, 1], &[1]), t(&[3, 1, 1], &[2., 4., 6.])),
        case("negative indices", -2, data.clone(), i(&[2], &[-1, -3]), t(&[2, 2], &[5., 6., 1., 2.])),
        case("a rank-0 index", 0, data.clone(), i(&[], &[1]), t(&[2], &[3., 4.])),
        case("i32 indices", 0, t(&[2], &[7., 8.]), case_tensor::<i32>(&[3], &[1, 1, 0]), t(&[3], &[8., 8., 7.])),
        case("no index", 0, data, i(&[0], &[]), t(&[0, 2], &[])),
        case("a shape's size", 0, i(&[3], &[4, 5, 6]), i(&[], &[-1]), i(&[], &[6])),
    ]
}
