//! `Or`.

use super::{BINARY_INPUTS, BOOL_OUTPUT, infer_binary, map_bools};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{bools, case};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::DType;
use smallvec::SmallVec;

/// Whether at least one element is true, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Or;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Or",
    doc: "Whether at least one element is true, with broadcasting.",
    attributes: &[],
    inputs: BINARY_INPUTS,
    outputs: BOOL_OUTPUT,
    types: &[TypeVar { name: "T", allowed: &[DType::Bool] }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Or {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, Some(DType::Bool))
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        map_bools(ctx, |a, b| a || b)
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "truth table, broadcast both ways",
            Or,
            &[bools(&[2, 1], &[false, true]), bools(&[2], &[false, true])],
            &[bools(&[2, 2], &[false, true, true, true])],
        ),
        case("rank 0", Or, &[bools(&[], &[true]), bools(&[], &[true])], &[bools(&[], &[true])]),
        case("empty", Or, &[bools(&[0, 3], &[]), bools(&[1, 3], &[true; 3])], &[bools(&[0, 3], &[])]),
    ]
}
