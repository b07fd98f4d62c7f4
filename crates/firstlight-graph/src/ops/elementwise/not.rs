//! `Not`.

use super::{BOOL_OUTPUT, UNARY_INPUT, infer_unary};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{bools, case};
use crate::ops::checks::{expect_dtype, expect_shape};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::DType;
use smallvec::SmallVec;

/// Whether the element is false.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Not;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Not",
    doc: "Whether the element is false.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: BOOL_OUTPUT,
    types: &[TypeVar { name: "T", allowed: &[DType::Bool] }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Not {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let input = ctx.input(0)?;
        let output = ctx.output(0)?;
        expect_dtype("output 0", DType::Bool, output.dtype())?;
        expect_shape("output 0", input.shape(), output.shape())?;
        for (out, x) in output.words_mut::<u8>()?.iter_mut().zip(input.bools()?) {
            *out = (!x).into();
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    vec![
        case("both", Not, &[bools(&[2, 1], &[false, true])], &[bools(&[2, 1], &[true, false])]),
        case("rank 0", Not, &[bools(&[], &[true])], &[bools(&[], &[false])]),
        case("empty", Not, &[bools(&[0], &[])], &[bools(&[0], &[])]),
    ]
}
