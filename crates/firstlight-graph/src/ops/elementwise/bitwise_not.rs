//! `BitwiseNot`.

use super::{SAME_OUTPUT, UNARY_INPUT, complement, infer_unary};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::INTS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::Tensor;
use smallvec::SmallVec;

/// The bits that an integer has not set.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BitwiseNot;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "BitwiseNot",
    doc: "The bits that an integer has not set.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: INTS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for BitwiseNot {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        complement(ctx, "BitwiseNot")
    }
}

fn cases() -> Vec<Case> {
    vec![
        case("unsigned", BitwiseNot, &[tensor(&[3], &[0u8, 1, 0xf0])], &[tensor(&[3], &[0xffu8, 0xfe, 0x0f])]),
        case("signed", BitwiseNot, &[tensor(&[3], &[0i64, -1, 5])], &[tensor(&[3], &[-1i64, 0, -6])]),
        case("rank 0", BitwiseNot, &[Tensor::scalar(i16::MIN)], &[Tensor::scalar(i16::MAX)]),
        case("empty", BitwiseNot, &[tensor::<u32>(&[0], &[])], &[tensor::<u32>(&[0], &[])]),
    ]
}
