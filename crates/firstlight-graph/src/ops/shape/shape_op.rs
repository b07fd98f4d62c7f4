//! `Shape`.

use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, Tensor};
use smallvec::SmallVec;
use std::ops::Range;

/// The sizes of the input's dimensions.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Shape {
    /// The first dimension asked for; counts from the end when negative.
    pub start: i64,
    /// The dimension behind the last one asked for; counts from the end when negative; none: all from `start` on.
    pub end: Option<i64>,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Shape",
    doc: "The sizes of the input's dimensions from `start` up to and without `end`. Both are cut to the rank; the \
          result is empty where they cross.",
    attributes: &[
        AttrDoc { name: "start", doc: "the first dimension asked for; counts from the end when negative" },
        AttrDoc { name: "end", doc: "the dimension behind the last one asked for; all where it is missing" },
    ],
    inputs: &[Param { name: "data", ty: TypeRef::Var(0), arity: Arity::One }],
    outputs: &[Param { name: "shape", ty: TypeRef::Fixed(DType::I64), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: &DType::ALL }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Shape {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        let end = self.end.map(|end| ("end", AttrValue::Int(end)));
        [("start", AttrValue::Int(self.start))].into_iter().chain(end).collect()
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let dims = ctx.dims(0)?;
        let dims = &dims[self.range(dims.rank())];
        let known: Option<Vec<usize>> = dims.iter().map(Dim::known).collect();
        let mut info = OutInfo::known(DType::I64, [dims.len()]);
        if let Some(sizes) = known {
            info.value = Some(Tensor::from_slice([sizes.len()], &to_i64s(&sizes)?)?);
        }
        Ok(info.one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let input = ctx.input(0)?;
        let sizes = to_i64s(&input.shape()[self.range(input.shape().rank())])?;
        let output = ctx.output(0)?;
        let got = output.shape().clone();
        match output.values_mut::<i64>()? {
            out if out.len() == sizes.len() => out.copy_from_slice(&sizes),
            _ => return Err(OpError::shape(format!("output 0 has shape {got}, expected [{}]", sizes.len()))),
        }
        Ok(())
    }

    fn n_operations(&self, _inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        0
    }
}

impl Shape {
    /// The dimensions asked for of an input of a rank.
    fn range(&self, rank: usize) -> Range<usize> {
        let n = rank as i64;
        let cut = |at: i64| (if at < 0 { at.saturating_add(n) } else { at }).clamp(0, n) as usize;
        let start = cut(self.start);
        start..self.end.map_or(rank, cut).max(start)
    }
}

fn to_i64s(sizes: &[usize]) -> Result<Vec<i64>, OpError> {
    let too_large = |size| OpError::shape(format!("a dimension of {size} does not fit i64"));
    sizes.iter().map(|&size| i64::try_from(size).map_err(|_| too_large(size))).collect()
}

fn cases() -> Vec<Case> {
    let shape = |name, start, end, dims: &[usize], sizes: &[i64]| {
        let x = Tensor::zeros(DType::F32, dims).unwrap_or_else(|error| panic!("{error}"));
        case(name, Shape { start, end }, &[x], &[tensor(&[sizes.len()], sizes)])
    };
    vec![
        shape("all", 0, None, &[2, 3, 4], &[2, 3, 4]),
        shape("from the end", -1, None, &[2, 3, 4], &[4]),
        shape("up to the last", 0, Some(-1), &[2, 3, 4], &[2, 3]),
        shape("middle", 1, Some(2), &[2, 3, 4], &[3]),
        shape("cut to the rank", -9, Some(9), &[2, 3, 4], &[2, 3, 4]),
        shape("far beyond the rank", i64::MIN, Some(i64::MAX), &[2, 3], &[2, 3]),
        shape("crossed", 2, Some(1), &[2, 3, 4], &[]),
        shape("empty input", 0, None, &[0, 3], &[0, 3]),
        shape("rank 0", 0, None, &[], &[]),
        case(
            "strings",
            Shape::default(),
            &[Tensor::from_strings([2], &["a", "bc"]).unwrap_or_else(|error| panic!("{error}"))],
            &[tensor(&[1], &[2i64])],
        ),
    ]
}
