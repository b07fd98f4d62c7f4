//! `OneHot`.

use super::{MoveWords, case_tensor, check_output, product, view_ints};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo, normalise_axis};
use firstlight_tensor::{DType, Dim, Shape, SymShape, Tensor};
use smallvec::SmallVec;

/// Rows that hold one value at an index and another elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct OneHot {
    /// Where in the output the new axis lies; negative counts from the last.
    pub axis: i64,
}

impl Default for OneHot {
    fn default() -> Self {
        OneHot { axis: -1 }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "OneHot",
    doc: "Rows of `depth` elements, one for each index, along a new axis: `values[1]` at the index, `values[0]` \
          elsewhere. Negative indices count from the end; one outside the row leaves it without.",
    attributes: &[AttrDoc {
        name: "axis",
        doc: "where in the output the new axis lies; negative counts from the last",
    }],
    inputs: &[
        Param { name: "indices", ty: TypeRef::Fixed(DType::I64), arity: Arity::One },
        Param { name: "depth", ty: TypeRef::Fixed(DType::I64), arity: Arity::One },
        Param { name: "values", ty: TypeRef::Var(0), arity: Arity::One },
    ],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for OneHot {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("axis", AttrValue::Int(self.axis))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (indices, values) = (ctx.dims(0)?, ctx.dims(2)?);
        if values.rank() != 1 || values[0].known().is_some_and(|n| n != 2) {
            return Err(OpError::shape(format!("values have shape {values}, expected [2]: off and on")));
        }
        let axis = normalise_axis(self.axis, indices.rank() + 1)?;
        let depth = one_depth(&ctx.ints(1)?)?;
        let mut dims: SymShape = indices.clone();
        dims.0.insert(axis, Dim::Known(depth));
        Ok(OutInfo::new(ctx.dtype(2)?, dims).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.move_elements_of(ctx, 2)
    }
}

/// How rows lie in an output: `outer` blocks of `depth` by `inner` elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneHotGeometry {
    /// Indices before the new axis.
    pub outer: usize,
    /// Size of the new axis.
    pub depth: usize,
    /// Indices after the new axis.
    pub inner: usize,
    /// Shape of the output.
    pub dims: Shape,
}

impl OneHot {
    /// How rows for indices of given dimensions lie.
    ///
    /// **Errors**: an axis that the output lacks; a depth that is not one number above or equal 0; sizes that overflow.
    pub fn geometry(&self, indices: &[usize], depth: &[i64]) -> Result<OneHotGeometry, OpError> {
        let axis = normalise_axis(self.axis, indices.len() + 1)?;
        let depth = one_depth(depth)?;
        let dims: Shape = indices[..axis].iter().chain(&[depth]).chain(&indices[axis..]).copied().collect();
        product(&dims)?;
        Ok(OneHotGeometry { outer: product(&indices[..axis])?, depth, inner: product(&indices[axis..])?, dims })
    }
}

impl OneHotGeometry {
    /// The place in its row that an index has.
    #[inline]
    pub fn place(&self, index: i64) -> Option<usize> {
        let index = if index < 0 { index.checked_add_unsigned(self.depth as u64)? } else { index };
        usize::try_from(index).ok().filter(|&place| place < self.depth)
    }
}

fn one_depth(depth: &[i64]) -> Result<usize, OpError> {
    match depth {
        [depth] => usize::try_from(*depth).map_err(|_| OpError::value(format!("depth is {depth}, expected 0 or more"))),
        other => Err(OpError::shape(format!("depth should be one number, it is {}", other.len()))),
    }
}

impl MoveWords for OneHot {
    fn move_words<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let (indices, depth, values) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        let geometry = self.geometry(indices.shape(), &view_ints(&depth)?)?;
        check_output(ctx, 0, &geometry.dims)?;
        let values = values.words::<W>()?;
        let [off, on] = values[..] else {
            return Err(OpError::shape(format!("{} values, expected 2: off and on", values.len())));
        };
        let at = view_ints(&indices)?;
        let output = ctx.output(0)?.words_mut::<W>()?;
        output.fill(off);
        for (i, &index) in at.iter().enumerate() {
            if let Some(place) = geometry.place(index) {
                let (outer, inner) = (i / geometry.inner, i % geometry.inner);
                output[(outer * geometry.depth + place) * geometry.inner + inner] = on;
            }
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let case = |name, axis, indices: Tensor, depth: i64, values: Tensor, output: Tensor| Case {
        name,
        op: OneHot { axis }.into(),
        inputs: vec![Some(indices), Some(Tensor::scalar(depth)), Some(values)],
        outputs: vec![output],
    };
    let t = case_tensor::<f32>;
    let i = case_tensor::<i64>;
    vec![
        case("last axis", -1, i(&[2], &[0, 2]), 3, t(&[2], &[0., 1.]), t(&[2, 3], &[1., 0., 0., 0., 0., 1.])),
        case("first axis", 0, i(&[2], &[0, 2]), 3, t(&[2], &[5., 7.]), t(&[3, 2], &[7., 5., 5., 5., 5., 7.])),
        case(
            "negative, and outside",
            1,
            i(&[3], &[-1, 2, -3]),
            2,
            t(&[2], &[0., 1.]),
            t(&[3, 2], &[0., 1., 0., 0., 0., 0.]),
        ),
        case("a scalar index", -1, i(&[], &[1]), 2, case_tensor(&[2], &[0u8, 9]), case_tensor(&[2], &[0u8, 9])),
        case("depth 0", -1, i(&[2], &[0, 1]), 0, t(&[2], &[0., 1.]), t(&[2, 0], &[])),
        case("no indices", -1, i(&[0], &[]), 2, t(&[2], &[0., 1.]), t(&[0, 2], &[])),
    ]
}
