//! `BitwiseAnd`.

use super::{BINARY_INPUTS, SAME_OUTPUT, infer_binary, map_ints};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::INTS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::Tensor;
use smallvec::SmallVec;

/// The bits set in both integers, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BitwiseAnd;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "BitwiseAnd",
    doc: "The bits set in both integers, with broadcasting.",
    attributes: &[],
    inputs: BINARY_INPUTS,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: INTS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for BitwiseAnd {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, None)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_ints(ctx, "BitwiseAnd", |a, b| a & b)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "broadcast",
            BitwiseAnd,
            &[tensor(&[2, 1], &[0b1100u8, 0xff]), tensor(&[2], &[0b1010u8, 0])],
            &[tensor(&[2, 2], &[0b1000u8, 0, 0b1010, 0])],
        ),
        case(
            "signed",
            BitwiseAnd,
            &[tensor(&[2], &[-1i32, 5]), tensor(&[2], &[7i32, -2])],
            &[tensor(&[2], &[7i32, 4])],
        ),
        case(
            "64 bits",
            BitwiseAnd,
            &[Tensor::scalar(u64::MAX), Tensor::scalar(1u64 << 63)],
            &[Tensor::scalar(1u64 << 63)],
        ),
        case("empty", BitwiseAnd, &[tensor::<i8>(&[0], &[]), Tensor::scalar(1i8)], &[tensor::<i8>(&[0], &[])]),
    ]
}
