//! `SpaceToDepth`.

use super::case_tensor;
use super::depth_to_space::{BLOCK_ATTRIBUTES, BlockGeometry, BlockOrder, copy_blocks, four, infer_blocks, misfit};
use crate::op::{Arity, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::Tensor;
use smallvec::SmallVec;

/// Squares of pixels laid out as blocks of channels.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SpaceToDepth {
    /// Edge of a square of pixels.
    pub blocksize: usize,
    /// How channels are ordered.
    pub order: BlockOrder,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "SpaceToDepth",
    doc: "Squares of pixels laid out as blocks of channels. The inverse of DepthToSpace.",
    attributes: BLOCK_ATTRIBUTES,
    inputs: &[Param { name: "input", ty: TypeRef::Var(0), arity: Arity::One }],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for SpaceToDepth {
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

impl SpaceToDepth {
    /// How an input of given dimensions is rearranged.
    ///
    /// **Errors**: an input that is not of rank 4 or that blocks do not divide; sizes that overflow.
    pub fn geometry(&self, input: &[usize]) -> Result<BlockGeometry, OpError> {
        let [n, c, h, w] = four(input)?;
        let b = self.blocksize;
        let fits = b > 0 && h.is_multiple_of(b) && w.is_multiple_of(b);
        let depth = if fits { b.checked_mul(b).and_then(|square| c.checked_mul(square)) } else { None };
        let depth = depth.ok_or_else(|| misfit(input, b))?;
        let dims = [n, depth, h / b, w / b];
        let (plane, line) = ((h * w) as isize, w as isize);
        let (row, column) = (b as isize * line, b as isize);
        let (view, steps) = match self.order {
            BlockOrder::DepthFirst => ([n, b, b, c, h / b, w / b], [c as isize * plane, line, 1, plane, row, column]),
            BlockOrder::DepthLast => ([n, c, b, b, h / b, w / b], [c as isize * plane, plane, line, 1, row, column]),
        };
        Ok(BlockGeometry { dims, view, steps })
    }
}

fn cases() -> Vec<Case> {
    use BlockOrder::{DepthFirst, DepthLast};
    let case = |name, order, input: Tensor, output: Tensor| Case {
        name,
        op: SpaceToDepth { blocksize: 2, order }.into(),
        inputs: vec![Some(input)],
        outputs: vec![output],
    };
    let x = case_tensor(&[1, 2, 2, 4], &(0..16).map(|i| i as f32).collect::<Vec<_>>());
    vec![
        case(
            "depth first",
            DepthFirst,
            x.clone(),
            case_tensor(&[1, 8, 1, 2], &[0f32, 2., 8., 10., 1., 3., 9., 11., 4., 6., 12., 14., 5., 7., 13., 15.]),
        ),
        case(
            "depth last",
            DepthLast,
            x,
            case_tensor(&[1, 8, 1, 2], &[0f32, 2., 1., 3., 4., 6., 5., 7., 8., 10., 9., 11., 12., 14., 13., 15.]),
        ),
        case("empty", DepthFirst, case_tensor::<u8>(&[0, 1, 2, 2], &[]), case_tensor::<u8>(&[0, 4, 1, 1], &[])),
    ]
}
