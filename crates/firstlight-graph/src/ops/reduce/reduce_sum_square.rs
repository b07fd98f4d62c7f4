//! `ReduceSumSquare`.

use super::along::{self, Along, Row};
use crate::op::{AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::elementwise::operations;
use crate::ops::nn::arith::{Math, lane_fold};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::Tensor;
use smallvec::SmallVec;

/// The sum of squares along axes; the second input names them.
///
/// Each square is rounded, then added by the rule of [the module](super).
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceSumSquare {
    /// True when reduced axes stay, with size 1.
    pub keepdims: bool,
    /// True when no axes mean that squares are taken; otherwise they mean that all are reduced.
    pub noop_with_empty_axes: bool,
}

impl Default for ReduceSumSquare {
    fn default() -> ReduceSumSquare {
        ReduceSumSquare { keepdims: true, noop_with_empty_axes: false }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ReduceSumSquare",
    doc: "The sum of squares along the given axes, which may count from the end. Integers wrap. The sum of no elements is 0.",
    attributes: along::ATTRIBUTES,
    inputs: along::INPUTS,
    outputs: along::OUTPUTS,
    types: &[TypeVar { name: "T", allowed: along::TYPES }],
    exactness: Exactness::Rounding,
    cases,
};

impl ReduceSumSquare {
    pub(crate) fn along(&self) -> Along {
        Along { keepdims: self.keepdims, noop_with_empty_axes: self.noop_with_empty_axes }
    }
}

impl OpDef for ReduceSumSquare {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        self.along().attributes()
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        self.along().infer(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.along().compute::<Of>(ctx, "ReduceSumSquare")
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 2)
    }
}

struct Of;

impl Row for Of {
    fn reduce<M: Math>(row: &[M]) -> M {
        lane_fold(row.iter().map(|x| x.times(*x)), M::ZERO, M::plus)
    }
}

fn cases() -> Vec<Case> {
    let axes = |axes: &[i64]| tensor(&[axes.len()], axes);
    let over = |name, x: Tensor, over: &[i64], y: Tensor| {
        case(name, ReduceSumSquare { keepdims: false, ..ReduceSumSquare::default() }, &[x, axes(over)], &[y])
    };
    let all = |name, x: Tensor, y: Tensor| {
        case(name, ReduceSumSquare { keepdims: false, ..ReduceSumSquare::default() }, &[x], &[y])
    };
    let noop = ReduceSumSquare { noop_with_empty_axes: true, ..ReduceSumSquare::default() };
    let x = || tensor(&[2, 2], &[1f32, -2., -3., 4.]);
    vec![
        over("last axis", x(), &[-1], tensor(&[2], &[5f32, 25.])),
        over("first axis", x(), &[0], tensor(&[2], &[10f32, 20.])),
        case("an axis stays", ReduceSumSquare::default(), &[x(), axes(&[1])], &[tensor(&[2, 1], &[5f32, 25.])]),
        over(
            "outer and inner axes",
            tensor(&[2, 2, 2], &[1f32, -2., 3., 4., -5., 6., 7., -8.]),
            &[2, 0],
            tensor(&[2], &[66f32, 138.]),
        ),
        all("no axes: all", x(), Tensor::scalar(30f32)),
        case("empty axes: squares", noop, &[x(), axes(&[])], &[tensor(&[2, 2], &[1f32, 4., 9., 16.])]),
        over("the sum of nothing", tensor::<f32>(&[2, 0], &[]), &[1], tensor(&[2], &[0f32, 0.])),
        all("integers wrap", tensor(&[2], &[1i32 << 16, 3]), Tensor::scalar(9i32)),
        all("u64", tensor(&[2], &[3u64, 4]), Tensor::scalar(25u64)),
    ]
}
