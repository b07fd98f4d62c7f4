//! `ArgMax`.

use super::arg::{self, Arg};
use crate::op::{AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::elementwise::{UNARY_INPUT, operations};
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// Where along an axis the greatest element lies.
///
/// NaN wins over all others, and of equal elements the first, so that the answer is that of [`super::reduce_max`].
#[derive(Clone, Debug, PartialEq)]
pub struct ArgMax {
    /// The axis that is searched; counts from the end when negative.
    pub axis: i64,
    /// True when the axis stays, with size 1.
    pub keepdims: bool,
    /// True when the last of equal elements is taken.
    pub select_last_index: bool,
}

impl Default for ArgMax {
    fn default() -> ArgMax {
        ArgMax { axis: 0, keepdims: true, select_last_index: false }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ArgMax",
    doc: "The index of the greatest element along one axis, which must not be empty. NaN wins over all others; of equal \
          elements (+0 and -0 are) the first is taken, or the last.",
    attributes: arg::ATTRIBUTES,
    inputs: UNARY_INPUT,
    outputs: arg::OUTPUTS,
    types: &[TypeVar { name: "T", allowed: NUMERIC }],
    exactness: Exactness::Exact,
    cases,
};

impl ArgMax {
    /// The attributes, which both searches share.
    pub fn arg(&self) -> Arg {
        Arg { axis: self.axis, keepdims: self.keepdims, select_last_index: self.select_last_index }
    }
}

impl OpDef for ArgMax {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        self.arg().attributes()
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        self.arg().infer(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.arg().compute(ctx, true, "ArgMax")
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs, 1)
    }
}

fn cases() -> Vec<Case> {
    let first = |name, axis, x: Tensor, dims: &[usize], y: &[i64]| {
        case(name, ArgMax { axis, keepdims: false, select_last_index: false }, &[x], &[tensor(dims, y)])
    };
    let last = |name, axis, x: Tensor, dims: &[usize], y: &[i64]| {
        case(name, ArgMax { axis, keepdims: false, select_last_index: true }, &[x], &[tensor(dims, y)])
    };
    let x = || tensor(&[2, 3], &[1f32, 5., 5., 4., 4., 2.]);
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    vec![
        case("axis 0 by default", ArgMax::default(), &[x()], &[tensor(&[1, 3], &[1i64, 0, 0])]),
        first("last axis", -1, x(), &[2], &[1, 0]),
        last("the last of equal ones", 1, x(), &[2], &[2, 1]),
        first("middle axis", 1, tensor(&[2, 2, 2], &[1i64, 4, 3, 2, 5, 8, 7, 6]), &[2, 2], &[1, 0, 1, 0]),
        first("NaN wins", 1, tensor(&[2, 3], &[inf, nan, nan, -inf, nan, 0.]), &[2], &[1, 1]),
        last("the last NaN", 1, tensor(&[1, 3], &[nan, nan, -inf]), &[1], &[1]),
        first("zeros are equal", 0, tensor(&[2], &[-0f32, 0.]), &[], &[0]),
        last("the last zero", 0, tensor(&[2], &[0f32, -0.]), &[], &[1]),
        first("one element", 0, tensor(&[1], &[7u8]), &[], &[0]),
        first("no results", 1, tensor::<f32>(&[0, 2], &[]), &[0], &[]),
        first("f64", 0, tensor(&[2], &[1f64, 2.]), &[], &[1]),
        first("f16", 0, tensor(&[2], &[f16::ZERO, f16::ONE]), &[], &[1]),
        first("bf16", 0, tensor(&[2], &[bf16::ZERO, bf16::ONE]), &[], &[1]),
        first("u64", 0, tensor(&[2], &[1, u64::MAX]), &[], &[1]),
        first("i8", 0, tensor(&[2], &[-1i8, 1]), &[], &[1]),
    ]
}
