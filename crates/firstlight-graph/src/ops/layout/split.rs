//! `Split`.

use super::{MoveWords, case_tensor, check_output, optional_ints, product};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo, normalise_axis};
use firstlight_tensor::{DType, Dim, Tensor};
use smallvec::SmallVec;

/// A tensor cut into parts along one axis.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Split {
    /// The axis to cut; negative counts from the last.
    pub axis: i64,
}

/// Sizes of parts along the axis.
pub type Sizes = SmallVec<[usize; 8]>;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Split",
    doc: "A tensor cut into parts along one axis, one an output. Without sizes the parts are as large as can be and \
          equal, but for the last, which may be smaller; it is an error if nothing is left for the last to be cut from.",
    attributes: &[AttrDoc { name: "axis", doc: "the axis to cut; negative counts from the last" }],
    inputs: &[
        Param { name: "input", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "split", ty: TypeRef::Fixed(DType::I64), arity: Arity::Optional },
    ],
    outputs: &[Param { name: "outputs", ty: TypeRef::Var(0), arity: Arity::Variadic(1) }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Split {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("axis", AttrValue::Int(self.axis))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (dtype, dims) = (ctx.dtype(0)?, ctx.dims(0)?);
        let axis = normalise_axis(self.axis, dims.rank())?;
        let given = if ctx.has(1) { Some(ctx.ints(1)?) } else { None };
        let part = |size: Dim| {
            let mut dims = dims.clone();
            dims.0[axis] = size;
            OutInfo::new(dtype, dims)
        };
        match (dims[axis].known(), given) {
            (Some(size), given) => {
                let sizes = sizes(size, given.as_deref(), ctx.n_outputs())?;
                Ok(sizes.into_iter().map(|size| part(Dim::Known(size))).collect())
            }
            (None, Some(given)) => {
                let sizes: Option<Sizes> = given.iter().map(|&size| usize::try_from(size).ok()).collect();
                match sizes.filter(|sizes| sizes.len() == ctx.n_outputs()) {
                    Some(sizes) => Ok(sizes.into_iter().map(|size| part(Dim::Known(size))).collect()),
                    None => Err(misfit(&given, None, ctx.n_outputs())),
                }
            }
            (None, None) if ctx.n_outputs() == 1 => Ok(part(dims[axis].clone()).one()),
            (None, None) => Ok((0..ctx.n_outputs()).map(|_| part(Dim::Unknown)).collect()),
        }
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.move_elements(ctx)
    }
}

impl Split {
    /// The axis, and the size of each of `n` parts along it, of an input of given dimensions.
    ///
    /// **Errors**: an axis that the input lacks; given sizes that are not `n` or do not add up to the axis; an axis that
    /// is too short for `n` parts of one size but the last.
    pub fn geometry(&self, dims: &[usize], given: Option<&[i64]>, n: usize) -> Result<(usize, Sizes), OpError> {
        let axis = normalise_axis(self.axis, dims.len())?;
        Ok((axis, sizes(dims[axis], given, n)?))
    }
}

fn sizes(size: usize, given: Option<&[i64]>, n: usize) -> Result<Sizes, OpError> {
    let Some(given) = given else {
        let part = size.div_ceil(n.max(1));
        let last = n.checked_sub(1).and_then(|n| size.checked_sub(part.checked_mul(n)?));
        let last =
            last.ok_or_else(|| OpError::shape(format!("an axis of {size} is not cut into {n} parts of {part}")))?;
        let mut sizes = Sizes::from_elem(part, n);
        sizes[n - 1] = last;
        return Ok(sizes);
    };
    let sizes: Option<Sizes> = given.iter().map(|&size| usize::try_from(size).ok()).collect();
    let fits = |sizes: &Sizes| {
        let sum = sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
        sizes.len() == n && sum == Some(size)
    };
    sizes.filter(fits).ok_or_else(|| misfit(given, Some(size), n))
}

fn misfit(given: &[i64], size: Option<usize>, n: usize) -> OpError {
    let given = &given[..given.len().min(16)];
    let size = size.map_or(String::new(), |size| format!(" that add up to {size}"));
    OpError::value(format!("`split` holds {given:?}, expected {n} sizes{size}"))
}

impl MoveWords for Split {
    fn move_words<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let input = ctx.input(0)?;
        let given = optional_ints(ctx, 1)?;
        let (axis, sizes) = self.geometry(input.shape(), given.as_deref(), ctx.n_outputs())?;
        for (i, &size) in sizes.iter().enumerate() {
            let mut dims = input.shape().clone();
            dims[axis] = size;
            check_output(ctx, i, &dims)?;
        }
        let inner = product(&input.shape()[axis + 1..])?;
        let row = product(&input.shape()[axis..])?;
        let words = input.words::<W>()?;
        let mut start = 0;
        for (i, &size) in sizes.iter().enumerate() {
            let len = size * inner;
            let output = ctx.output(i)?.words_mut::<W>()?;
            if !output.is_empty() {
                for (to, from) in output.chunks_exact_mut(len).zip(words.chunks_exact(row)) {
                    to.copy_from_slice(&from[start..start + len]);
                }
            }
            start += len;
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let case = |name, axis, input: Tensor, split: Option<&[i64]>, outputs: &[Tensor]| Case {
        name,
        op: Split { axis }.into(),
        inputs: match split {
            Some(split) => vec![Some(input), Some(case_tensor(&[split.len()], split))],
            None => vec![Some(input)],
        },
        outputs: outputs.to_vec(),
    };
    let t = case_tensor::<f32>;
    vec![
        case("equal parts", 0, t(&[4], &[1., 2., 3., 4.]), None, &[t(&[2], &[1., 2.]), t(&[2], &[3., 4.])]),
        case(
            "the last part is smaller",
            -1,
            t(&[2, 3], &[1., 2., 3., 4., 5., 6.]),
            None,
            &[t(&[2, 2], &[1., 2., 4., 5.]), t(&[2, 1], &[3., 6.])],
        ),
        case(
            "given sizes, one of them 0",
            1,
            t(&[2, 3], &[1., 2., 3., 4., 5., 6.]),
            Some(&[1, 0, 2]),
            &[t(&[2, 1], &[1., 4.]), t(&[2, 0], &[]), t(&[2, 2], &[2., 3., 5., 6.])],
        ),
        case("one part", 0, t(&[2], &[1., 2.]), None, &[t(&[2], &[1., 2.])]),
        case("empty axis", 0, t(&[0, 2], &[]), None, &[t(&[0, 2], &[]), t(&[0, 2], &[])]),
        case("another axis is empty", 1, t(&[0, 2], &[]), None, &[t(&[0, 1], &[]), t(&[0, 1], &[])]),
        case(
            "bytes, middle axis",
            1,
            case_tensor::<u8>(&[2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8]),
            None,
            &[case_tensor::<u8>(&[2, 1, 2], &[1, 2, 5, 6]), case_tensor::<u8>(&[2, 1, 2], &[3, 4, 7, 8])],
        ),
    ]
}
