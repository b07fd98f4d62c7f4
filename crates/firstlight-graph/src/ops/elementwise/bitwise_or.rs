//! `BitwiseOr`.

use super::{BINARY_INPUTS, SAME_OUTPUT, infer_binary, map_ints};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::INTS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::Tensor;
use smallvec::SmallVec;

/// The bits set in either integer, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BitwiseOr;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "BitwiseOr",
    doc: "The bits set in either integer, with broadcasting.",
    attributes: &[],
    inputs: BINARY_INPUTS,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: INTS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for BitwiseOr {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, None)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_ints(ctx, "BitwiseOr", |a, b| a | b)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "broadcast",
            BitwiseOr,
            &[tensor(&[2, 1], &[0b1100u8, 0xff]), tensor(&[2], &[0b1010u8, 0])],
            &[tensor(&[2, 2], &[0b1110u8, 0b1100, 0xff, 0xff])],
        ),
        case(
            "signed",
            BitwiseOr,
            &[tensor(&[2], &[-1i32, 5]), tensor(&[2], &[7i32, -2])],
            &[tensor(&[2], &[-1i32, -1])],
        ),
        case(
            "64 bits",
            BitwiseOr,
            &[Tensor::scalar(u64::MAX), Tensor::scalar(1u64 << 63)],
            &[Tensor::scalar(u64::MAX)],
        ),
        case("empty", BitwiseOr, &[tensor::<i8>(&[0], &[]), Tensor::scalar(1i8)], &[tensor::<i8>(&[0], &[])]),
    ]
}
