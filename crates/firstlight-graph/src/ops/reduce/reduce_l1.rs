//! `ReduceL1`.

use super::along::{self, Along, Row};
use crate::op::{AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::elementwise::operations;
use crate::ops::nn::arith::{Math, lane_fold};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::Tensor;
use smallvec::SmallVec;

/// The sum of absolute values along axes; the second input names them.
///
/// Added by the rule of [the module](super).
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceL1 {
    /// True when reduced axes stay, with size 1.
    pub keepdims: bool,
    /// True when no axes mean that absolute values are taken; otherwise they mean that all are reduced.
    pub noop_with_empty_axes: bool,
}

impl Default for ReduceL1 {
    fn default() -> ReduceL1 {
        ReduceL1 { keepdims: true, noop_with_empty_axes: false }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ReduceL1",
    doc: "The sum of absolute values along the given axes, which may count from the end. Integers wrap. The norm of no elements is 0.",
    attributes: along::ATTRIBUTES,
    inputs: along::INPUTS,
    outputs: along::OUTPUTS,
    types: &[TypeVar { name: "T", allowed: along::TYPES }],
    exactness: Exactness::Rounding,
    cases,
};

impl ReduceL1 {
    pub(crate) fn along(&self) -> Along {
        Along { keepdims: self.keepdims, noop_with_empty_axes: self.noop_with_empty_axes }
    }
}

impl OpDef for ReduceL1 {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        self.along().attributes()
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        self.along().infer(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.along().compute::<Of>(ctx, "ReduceL1")
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 1)
    }
}

struct Of;

impl Row for Of {
    fn reduce<M: Math>(row: &[M]) -> M {
        lane_fold(row.iter().map(|x| x.magnitude()), M::ZERO, M::plus)
    }
}

fn cases() -> Vec<Case> {
    let axes = |axes: &[i64]| tensor(&[axes.len()], axes);
    let over = |name, x: Tensor, over: &[i64], y: Tensor| {
        case(name, ReduceL1 { keepdims: false, ..ReduceL1::default() }, &[x, axes(over)], &[y])
    };
    let all = |name, x: Tensor, y: Tensor| case(name, ReduceL1 { keepdims: false, ..ReduceL1::default() }, &[x], &[y]);
    let noop = ReduceL1 { noop_with_empty_axes: true, ..ReduceL1::default() };
    let x = || tensor(&[2, 2], &[1f32, -2., -3., -4.]);
    vec![
        over("last axis", x(), &[-1], tensor(&[2], &[3f32, 7.])),
        over("first axis", x(), &[0], tensor(&[2], &[4f32, 6.])),
        case("an axis stays", ReduceL1::default(), &[x(), axes(&[1])], &[tensor(&[2, 1], &[3f32, 7.])]),
        over(
            "outer and inner axes",
            tensor(&[2, 2, 2], &[1f32, -2., 3., 4., -5., 6., 7., -8.]),
            &[2, 0],
            tensor(&[2], &[14f32, 22.]),
        ),
        all("no axes: all", x(), Tensor::scalar(10f32)),
        case("empty axes: absolute values", noop, &[x(), axes(&[])], &[tensor(&[2, 2], &[1f32, 2., 3., 4.])]),
        over("the norm of nothing", tensor::<f32>(&[2, 0], &[]), &[1], tensor(&[2], &[0f32, 0.])),
        all("integers", tensor(&[2], &[i32::MIN, -1]), Tensor::scalar(i32::MIN + 1)),
        all("u64", tensor(&[2], &[3u64, 4]), Tensor::scalar(7u64)),
    ]
}
