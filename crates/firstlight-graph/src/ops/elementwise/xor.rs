//! `Xor`.

use super::{BINARY_INPUTS, BOOL_OUTPUT, infer_binary, map_bools};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{bools, case};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::DType;
use smallvec::SmallVec;

/// Whether exactly one element is true, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Xor;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Xor",
    doc: "Whether exactly one element is true, with broadcasting.",
    attributes: &[],
    inputs: BINARY_INPUTS,
    outputs: BOOL_OUTPUT,
    types: &[TypeVar { name: "T", allowed: &[DType::Bool] }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Xor {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, Some(DType::Bool))
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_bools(ctx, |a, b| a != b)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "truth table, broadcast both ways",
            Xor,
            &[bools(&[2, 1], &[false, true]), bools(&[2], &[false, true])],
            &[bools(&[2, 2], &[false, true, true, false])],
        ),
        case("rank 0", Xor, &[bools(&[], &[true]), bools(&[], &[true])], &[bools(&[], &[false])]),
        case("empty", Xor, &[bools(&[0, 3], &[]), bools(&[1, 3], &[true; 3])], &[bools(&[0, 3], &[])]),
    ]
}
