//! `Identity`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{bools, case, tensor};
use crate::ops::checks::{expect_dtype, expect_shape};
use crate::ops::layout::copy_elements;
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::Tensor;
use smallvec::SmallVec;

/// The input itself.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Identity;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Identity",
    doc: "The input itself, bit for bit.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Identity {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let input = ctx.input(0)?;
        let output = ctx.output(0)?;
        expect_dtype("output 0", input.dtype(), output.dtype())?;
        expect_shape("output 0", input.shape(), output.shape())?;
        copy_elements(ctx)
    }

    fn is_view(&self) -> bool {
        true
    }

    fn n_operations(&self, _inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        0
    }
}

fn cases() -> Vec<Case> {
    let same = |name, x: Tensor| case(name, Identity, std::slice::from_ref(&x), std::slice::from_ref(&x));
    vec![
        same("floats", tensor(&[2, 2], &[-0f32, 1., f32::NEG_INFINITY, f32::MIN_POSITIVE])),
        same("bools", bools(&[2], &[true, false])),
        same("rank 0", Tensor::scalar(i64::MIN)),
        same("empty", tensor::<u16>(&[3, 0], &[])),
    ]
}
