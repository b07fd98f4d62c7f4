//! `Tile`.

use super::{case_tensor, check_output, copy_view, dense_bytes, optional_ints, product};
use crate::op::{Arity, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, Layout, Shape, SymShape, Tensor, TensorView};
use smallvec::SmallVec;

/// A tensor repeated along each of its dimensions.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Tile;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Tile",
    doc: "A tensor repeated along each of its dimensions, as often as `repeats` says for it; 0 times gives an empty \
          tensor.",
    attributes: &[],
    inputs: &[
        Param { name: "input", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "repeats", ty: TypeRef::Fixed(DType::I64), arity: Arity::One },
    ],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Tile {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let dims = ctx.dims(0)?;
        let repeats = counts(&ctx.ints(1)?, dims.rank())?;
        let dims: SymShape = dims.iter().zip(repeats).map(|(dim, n)| times(dim, n)).collect::<Result<_, _>>()?;
        Ok(OutInfo::new(ctx.dtype(0)?, dims).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let input = ctx.input(0)?;
        let repeats = optional_ints(ctx, 1)?.unwrap_or_default();
        let geometry = self.geometry(input.shape(), &repeats)?;
        check_output(ctx, 0, &geometry.dims)?;
        // The input's own layout may be strided: its words are taken in order first.
        let dense = dense_bytes(&input)?;
        let layout = Layout::strided(&Shape::from(&geometry.view[..]), &geometry.steps, 0, input.n_elems());
        match layout {
            _ if product(&geometry.dims)? == 0 => Ok(()),
            Some(layout) => copy_view(ctx, &TensorView::new(input.dtype(), layout, &dense)),
            None => Err(OpError::shape(format!("{} repeated {repeats:?} times is out of reach", input.shape()))),
        }
    }
}

/// A tiled output as a view of its input: every dimension preceded by one of its repeats, whose step is 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileGeometry {
    /// Shape of the output.
    pub dims: Shape,
    /// Repeats and sizes of the input in turn.
    pub view: SmallVec<[usize; 12]>,
    /// Steps of the view in elements.
    pub steps: SmallVec<[isize; 12]>,
}

impl Tile {
    /// How an input of given dimensions is repeated.
    ///
    /// **Errors**: not one repeat a dimension, a negative one, sizes that overflow.
    pub fn geometry(&self, input: &[usize], repeats: &[i64]) -> Result<TileGeometry, OpError> {
        let repeats = counts(repeats, input.len())?;
        let overflow = || OpError::shape(format!("{} repeated {repeats:?} times overflows", Shape::from(input)));
        let dims = input.iter().zip(&repeats).map(|(&dim, &n)| dim.checked_mul(n)).collect::<Option<Shape>>();
        let dims = dims.ok_or_else(overflow)?;
        product(&dims)?;
        let view = repeats.iter().zip(input).flat_map(|(&n, &dim)| [n, dim]).collect();
        let steps = Shape::from(input).strides().iter().flat_map(|&step| [0, step as isize]).collect();
        Ok(TileGeometry { dims, view, steps })
    }
}

fn counts(repeats: &[i64], rank: usize) -> Result<SmallVec<[usize; 6]>, OpError> {
    let counts: Option<SmallVec<[usize; 6]>> = repeats.iter().map(|&n| usize::try_from(n).ok()).collect();
    counts.filter(|counts| counts.len() == rank).ok_or_else(|| {
        let shown = &repeats[..repeats.len().min(16)];
        OpError::value(format!("repeats are {shown:?}, expected {rank} numbers, none negative"))
    })
}

fn times(dim: &Dim, n: usize) -> Result<Dim, OpError> {
    match (dim, n) {
        (dim, 1) => Ok(dim.clone()),
        (_, 0) => Ok(Dim::Known(0)),
        (Dim::Known(size), n) => {
            let product = size.checked_mul(n);
            product.map(Dim::Known).ok_or_else(|| OpError::shape(format!("{size} repeated {n} times overflows")))
        }
        _ => Ok(Dim::Unknown),
    }
}

fn cases() -> Vec<Case> {
    let case = |name, input: Tensor, repeats: &[i64], output: Tensor| Case {
        name,
        op: Tile.into(),
        inputs: vec![Some(input), Some(case_tensor(&[repeats.len()], repeats))],
        outputs: vec![output],
    };
    let t = case_tensor::<f32>;
    vec![
        case("rows and columns", t(&[1, 2], &[1., 2.]), &[2, 2], t(&[2, 4], &[1., 2., 1., 2., 1., 2., 1., 2.])),
        case("columns", t(&[2, 2], &[1., 2., 3., 4.]), &[1, 2], t(&[2, 4], &[1., 2., 1., 2., 3., 4., 3., 4.])),
        case("once", t(&[2], &[1., 2.]), &[1], t(&[2], &[1., 2.])),
        case("not at all", t(&[2, 1], &[1., 2.]), &[0, 3], t(&[0, 3], &[])),
        case("empty", t(&[0, 2], &[]), &[2, 2], t(&[0, 4], &[])),
        case("rank 0", t(&[], &[5.]), &[], t(&[], &[5.])),
        case("bytes", case_tensor(&[2], &[1u8, 2]), &[3], case_tensor(&[6], &[1u8, 2, 1, 2, 1, 2])),
    ]
}
