//! `GatherND`.

use super::{MoveWords, case_tensor, check_output, normalise_index, product, view_ints};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, Shape, SymShape, Tensor};
use smallvec::SmallVec;

/// Slices of a tensor, each chosen by a tuple of indices.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct GatherND {
    /// How many leading dimensions data and indices share: tuples index the data of their own batch.
    pub batch_dims: usize,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "GatherND",
    doc: "Slices of a tensor, each chosen by a tuple of indices: the last dimension of `indices` holds the tuples, which \
          index the data's dimensions from `batch_dims` on. Negative indices count from the end; one outside its \
          dimension is an error.",
    attributes: &[AttrDoc { name: "batch_dims", doc: "how many leading dimensions data and indices share" }],
    inputs: &[
        Param { name: "data", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "indices", ty: TypeRef::Fixed(DType::I64), arity: Arity::One },
    ],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for GatherND {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("batch_dims", AttrValue::Int(i64::try_from(self.batch_dims).unwrap_or(i64::MAX)))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (data, indices) = (ctx.dims(0)?, ctx.dims(1)?);
        let dims = infer_slices(data, indices, self.batch_dims, 1)?;
        Ok(OutInfo::new(ctx.dtype(0)?, dims).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.move_elements(ctx)
    }
}

/// The shape of the slices that tuples choose.
///
/// **Errors**: ranks that do not fit; `NeedsValue(needed)` where the length of a tuple is not known.
pub(super) fn infer_slices(
    data: &SymShape,
    indices: &SymShape,
    batch_dims: usize,
    needed: usize,
) -> Result<SymShape, OpError> {
    let misfit = || misfit(data, indices, batch_dims);
    let (last, tuples) = indices.split_last().ok_or_else(misfit)?;
    if batch_dims > tuples.len() || batch_dims > data.rank() {
        return Err(misfit());
    }
    let same = |(a, b): (&Dim, &Dim)| a.known().is_none() || b.known().is_none() || a.known() == b.known();
    if !data[..batch_dims].iter().zip(tuples).all(same) {
        return Err(misfit());
    }
    let last = last.known().ok_or_else(|| OpError::needs_value(needed))?;
    let from = batch_dims.checked_add(last).filter(|&from| from <= data.rank()).ok_or_else(misfit)?;
    Ok(tuples.iter().chain(&data[from..]).cloned().collect())
}

fn misfit(data: &SymShape, indices: &SymShape, batch_dims: usize) -> OpError {
    OpError::shape(format!("indices {indices} do not fit data {data} with {batch_dims} shared dimensions"))
}

/// How tuples of indices choose slices of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TupleGeometry {
    /// Shape of the chosen slices.
    pub dims: Shape,
    /// Tuples of one batch.
    pub n_tuples: usize,
    /// Elements of a batch of the data.
    pub batch: usize,
    /// Elements of a slice.
    pub slice: usize,
    /// Sizes of the indexed dimensions.
    pub sizes: SmallVec<[usize; 6]>,
    /// Steps of the indexed dimensions in elements.
    pub steps: SmallVec<[usize; 6]>,
}

impl TupleGeometry {
    /// The geometry of data and indices of given dimensions.
    ///
    /// **Errors**: ranks or shared dimensions that differ; tuples longer than the data has dimensions; sizes that overflow.
    pub fn new(data: &[usize], indices: &[usize], batch_dims: usize) -> Result<TupleGeometry, OpError> {
        let fits = match indices.split_last() {
            Some((&tuple, tuples)) if batch_dims <= tuples.len() && batch_dims <= data.len() => {
                let from = batch_dims.checked_add(tuple).filter(|&from| from <= data.len());
                from.filter(|_| data[..batch_dims] == tuples[..batch_dims]).map(|from| (tuples, from))
            }
            _ => None,
        };
        let (tuples, from) = fits.ok_or_else(|| {
            misfit(&SymShape::from(&Shape::from(data)), &SymShape::from(&Shape::from(indices)), batch_dims)
        })?;
        let dims: Shape = tuples.iter().chain(&data[from..]).copied().collect();
        product(&dims)?;
        let (tuples, slice) = (&tuples[batch_dims..], product(&data[from..])?);
        let mut steps: SmallVec<[usize; 6]> = SmallVec::new();
        let mut step = slice;
        for &size in data[batch_dims..from].iter().rev() {
            steps.push(step);
            step = product(&[step, size])?;
        }
        steps.reverse();
        Ok(TupleGeometry {
            dims,
            n_tuples: product(tuples)?,
            batch: step,
            slice,
            sizes: data[batch_dims..from].into(),
            steps,
        })
    }

    /// Where in its batch the slice of a tuple starts, in elements.
    ///
    /// **Errors**: an index outside its dimension.
    #[inline]
    pub fn start(&self, index: impl Fn(usize) -> i64) -> Result<usize, OpError> {
        let mut at = 0;
        for (i, (&size, &step)) in self.sizes.iter().zip(&self.steps).enumerate() {
            at += normalise_index(index(i), size)? * step;
        }
        Ok(at)
    }
}

impl MoveWords for GatherND {
    fn move_words<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let (data, indices) = (ctx.input(0)?, ctx.input(1)?);
        let geometry = TupleGeometry::new(data.shape(), indices.shape(), self.batch_dims)?;
        check_output(ctx, 0, &geometry.dims)?;
        let at = view_ints(&indices)?;
        let (tuple, slice) = (geometry.sizes.len(), geometry.slice);
        let output = ctx.output(0)?.words_mut::<W>()?;
        let words = if output.is_empty() { Default::default() } else { data.words::<W>()? };
        // Indices are checked even where slices are empty.
        let n = product(&indices.shape()[..indices.shape().rank() - 1])?;
        for i in 0..n {
            let start = geometry.start(|j| at[i * tuple + j])?;
            if !output.is_empty() {
                let start = i / geometry.n_tuples * geometry.batch + start;
                output[i * slice..(i + 1) * slice].copy_from_slice(&words[start..start + slice]);
            }
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let case = |name, batch_dims, data: Tensor, indices: Tensor, output: Tensor| Case {
        name,
        op: GatherND { batch_dims }.into(),
        inputs: vec![Some(data), Some(indices)],
        outputs: vec![output],
    };
    let t = case_tensor::<i32>;
    let i = case_tensor::<i64>;
    let cube = t(&[2, 2, 2], &[0, 1, 2, 3, 4, 5, 6, 7]);
    vec![
        case("elements", 0, t(&[2, 2], &[0, 1, 2, 3]), i(&[2, 2], &[0, 0, -1, 1]), t(&[2], &[0, 3])),
        case("rows", 0, t(&[2, 2], &[0, 1, 2, 3]), i(&[2, 1], &[1, 0]), t(&[2, 2], &[2, 3, 0, 1])),
        case("slices of a cube", 0, cube.clone(), i(&[2, 1, 2], &[0, 1, 1, 0]), t(&[2, 1, 2], &[2, 3, 4, 5])),
        case("a batch", 1, cube.clone(), i(&[2, 1], &[1, 0]), t(&[2, 2], &[2, 3, 4, 5])),
        case("empty tuples", 0, t(&[2], &[5, 6]), i(&[2, 0], &[]), t(&[2, 2], &[5, 6, 5, 6])),
        case("no tuples", 0, cube, i(&[0, 3], &[]), t(&[0], &[])),
        case("bytes", 0, case_tensor(&[3], &[7u8, 8, 9]), i(&[1, 1], &[-1]), case_tensor(&[1], &[9u8])),
    ]
}
