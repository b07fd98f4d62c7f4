//! `DepthToSpace`.

use super::{case_tensor, check_output, copy_view, dense_bytes, product};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Dim, Layout, Shape, SymShape, Tensor, TensorView};
use smallvec::SmallVec;

/// Blocks of channels laid out as squares of pixels.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DepthToSpace {
    /// Edge of a square of pixels.
    pub blocksize: usize,
    /// How channels are ordered.
    pub order: BlockOrder,
}

/// How channels are ordered within a pixel's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BlockOrder {
    /// Row, column, channel ("DCR"): neighbouring channels belong to neighbouring channels.
    #[default]
    DepthFirst,
    /// Channel, row, column ("CRD"): neighbouring channels belong to neighbouring pixels.
    DepthLast,
}

impl BlockOrder {
    /// The name that ONNX has for it.
    pub fn name(self) -> &'static str {
        match self {
            BlockOrder::DepthFirst => "DCR",
            BlockOrder::DepthLast => "CRD",
        }
    }
}

pub(super) const BLOCK_ATTRIBUTES: &[AttrDoc] = &[
    AttrDoc { name: "blocksize", doc: "edge of a square of pixels" },
    AttrDoc { name: "mode", doc: "how channels are ordered: DCR (row, column, channel) or CRD (channel, row, column)" },
];

/// An output as a view of its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockGeometry {
    /// Shape of the output.
    pub dims: [usize; 4],
    /// The output with its blocks apart.
    pub view: [usize; 6],
    /// Steps of the view in elements of the input.
    pub steps: [isize; 6],
}

/// The four dimensions of an image batch.
pub(super) fn four(dims: &[usize]) -> Result<[usize; 4], OpError> {
    let sizes = product(dims)?.max(product(dims.get(1..).unwrap_or(&[]))?);
    if isize::try_from(sizes).is_err() {
        return Err(OpError::shape(format!("{} is larger than the address space", Shape::from(dims))));
    }
    dims.try_into()
        .map_err(|_| OpError::shape(format!("expected a rank-4 input [N, C, H, W], got {}", Shape::from(dims))))
}

pub(super) fn misfit(dims: &[usize], blocksize: usize) -> OpError {
    OpError::shape(format!("{} does not divide into blocks of {blocksize} by {blocksize}", Shape::from(dims)))
}

/// Infers an op whose output shape a function of known dimensions tells.
pub(super) fn infer_blocks(
    ctx: &InferCtx<'_>,
    geometry: impl Fn(&[usize]) -> Result<BlockGeometry, OpError>,
) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
    let dims = ctx.dims(0)?;
    let out = match dims.known() {
        Some(shape) => SymShape::from(&Shape::from(&geometry(&shape)?.dims[..])),
        None if dims.rank() == 4 => [dims[0].clone(), Dim::Unknown, Dim::Unknown, Dim::Unknown].into_iter().collect(),
        None => return Err(OpError::shape(format!("expected a rank-4 input [N, C, H, W], got {dims}"))),
    };
    Ok(OutInfo::new(ctx.dtype(0)?, out).one())
}

/// Fills the output with the blocks of the input.
pub(super) fn copy_blocks(ctx: &mut RefCtx<'_>, geometry: &BlockGeometry) -> Result<(), OpError> {
    check_output(ctx, 0, &geometry.dims)?;
    let input = ctx.input(0)?;
    if input.n_elems() == 0 {
        return Ok(());
    }
    let bytes = dense_bytes(&input)?;
    let layout = Layout::strided(&Shape::from(&geometry.view[..]), &geometry.steps, 0, input.n_elems());
    let layout = layout.ok_or_else(|| OpError::shape("the blocks reach beyond the input"))?;
    copy_view(ctx, &TensorView::new(input.dtype(), layout, &bytes))
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "DepthToSpace",
    doc: "Blocks of channels laid out as squares of pixels. The inverse of SpaceToDepth.",
    attributes: BLOCK_ATTRIBUTES,
    inputs: &[Param { name: "input", ty: TypeRef::Var(0), arity: Arity::One }],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for DepthToSpace {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        let blocksize = i64::try_from(self.blocksize).unwrap_or(i64::MAX);
        vec![("blocksize", AttrValue::Int(blocksize)), ("mode", AttrValue::Text(self.order.name().into()))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_blocks(ctx, |dims| self.geometry(dims))
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let geometry = self.geometry(ctx.input(0)?.shape())?;
        copy_blocks(ctx, &geometry)
    }
}

impl DepthToSpace {
    /// How an input of given dimensions is rearranged.
    ///
    /// **Errors**: an input that is not of rank 4 or that blocks do not divide; sizes that overflow.
    pub fn geometry(&self, input: &[usize]) -> Result<BlockGeometry, OpError> {
        let [n, c, h, w] = four(input)?;
        let b = self.blocksize;
        let square = b.checked_mul(b).filter(|&square| square > 0 && c.is_multiple_of(square));
        let depth = square.map(|square| c / square);
        let depth = depth.ok_or_else(|| misfit(input, b))?;
        let overflow = || misfit(input, b);
        let dims = [n, depth, h.checked_mul(b).ok_or_else(overflow)?, w.checked_mul(b).ok_or_else(overflow)?];
        let plane = (h * w) as isize;
        // Steps along the rows and columns of a block, and along the output's channels.
        let (row, column, channel) = match self.order {
            BlockOrder::DepthFirst => ((b * depth) as isize * plane, depth as isize * plane, plane),
            BlockOrder::DepthLast => (b as isize * plane, plane, (b * b) as isize * plane),
        };
        let view = [n, depth, h, b, w, b];
        let steps = [c as isize * plane, channel, w as isize, row, 1, column];
        Ok(BlockGeometry { dims, view, steps })
    }
}

fn cases() -> Vec<Case> {
    use BlockOrder::{DepthFirst, DepthLast};
    let case = |name, order, input: Tensor, output: Tensor| Case {
        name,
        op: DepthToSpace { blocksize: 2, order }.into(),
        inputs: vec![Some(input)],
        outputs: vec![output],
    };
    let x = case_tensor(&[1, 8, 1, 2], &(0..16).map(|i| i as f32).collect::<Vec<_>>());
    vec![
        case(
            "depth first",
            DepthFirst,
            x.clone(),
            case_tensor(&[1, 2, 2, 4], &[0f32, 4., 1., 5., 8., 12., 9., 13., 2., 6., 3., 7., 10., 14., 11., 15.]),
        ),
        case(
            "depth last",
            DepthLast,
            x,
            case_tensor(&[1, 2, 2, 4], &[0f32, 2., 1., 3., 4., 6., 5., 7., 8., 10., 9., 11., 12., 14., 13., 15.]),
        ),
        case("empty", DepthFirst, case_tensor::<u8>(&[0, 4, 1, 1], &[]), case_tensor::<u8>(&[0, 1, 2, 2], &[])),
    ]
}
