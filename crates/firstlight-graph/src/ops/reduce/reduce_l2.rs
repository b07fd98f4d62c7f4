//! `ReduceL2`.

use super::along::{self, Along, Row};
use crate::op::{AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::elementwise::operations;
use crate::ops::nn::arith::{Math, lane_fold};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, f16};
use smallvec::SmallVec;

/// The square root of the sum of squares along axes; the second input names them.
///
/// Each square is rounded, then added by the rule of [the module](super); the root of the sum is rounded.
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceL2 {
    /// True when reduced axes stay, with size 1.
    pub keepdims: bool,
    /// True when no axes mean that absolute values are taken; otherwise they mean that all are reduced.
    pub noop_with_empty_axes: bool,
}

impl Default for ReduceL2 {
    fn default() -> ReduceL2 {
        ReduceL2 { keepdims: true, noop_with_empty_axes: false }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ReduceL2",
    doc: "The square root of the sum of squares along the given axes, which may count from the end. The sum of integers wraps; its root, taken in f64, is rounded toward zero. The norm of no elements is 0.",
    attributes: along::ATTRIBUTES,
    inputs: along::INPUTS,
    outputs: along::OUTPUTS,
    types: &[TypeVar { name: "T", allowed: along::TYPES }],
    exactness: Exactness::Rounding,
    cases,
};

impl ReduceL2 {
    pub(crate) fn along(&self) -> Along {
        Along { keepdims: self.keepdims, noop_with_empty_axes: self.noop_with_empty_axes }
    }
}

impl OpDef for ReduceL2 {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        self.along().attributes()
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        self.along().infer(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.along().compute::<Of>(ctx, "ReduceL2")
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 2)
    }
}

struct Of;

impl Row for Of {
    fn reduce<M: Math>(row: &[M]) -> M {
        M::cast_f64(lane_fold(row.iter().map(|x| x.times(*x)), M::ZERO, M::plus).to_real().sqrt())
    }
}

fn cases() -> Vec<Case> {
    let axes = |axes: &[i64]| tensor(&[axes.len()], axes);
    let over = |name, x: Tensor, over: &[i64], y: Tensor| {
        case(name, ReduceL2 { keepdims: false, ..ReduceL2::default() }, &[x, axes(over)], &[y])
    };
    let all = |name, x: Tensor, y: Tensor| case(name, ReduceL2 { keepdims: false, ..ReduceL2::default() }, &[x], &[y]);
    let noop = ReduceL2 { noop_with_empty_axes: true, ..ReduceL2::default() };
    let x = || tensor(&[2, 2], &[3f32, -4., 6., 8.]);
    vec![
        over("last axis", x(), &[-1], tensor(&[2], &[5f32, 10.])),
        over("first axis", tensor(&[2, 2], &[3f32, 6., -4., 8.]), &[0], tensor(&[2], &[5f32, 10.])),
        case("an axis stays", ReduceL2::default(), &[x(), axes(&[1])], &[tensor(&[2, 1], &[5f32, 10.])]),
        over(
            "outer and inner axes",
            tensor(&[2, 2, 2], &[1f32, 1., 3., 4., 1., 1., 0., 0.]),
            &[2, 0],
            tensor(&[2], &[2f32, 5.]),
        ),
        all("no axes: all", tensor(&[4], &[1f32, 1., -1., 1.]), Tensor::scalar(2f32)),
        case("empty axes: absolute values", noop, &[x(), axes(&[])], &[tensor(&[2, 2], &[3f32, 4., 6., 8.])]),
        over("the norm of nothing", tensor::<f32>(&[2, 0], &[]), &[1], tensor(&[2], &[0f32, 0.])),
        all("a square overflows", tensor(&[1], &[1e30f32]), Tensor::scalar(f32::INFINITY)),
        all(
            "f16 squares in f32",
            tensor(&[2], &[f16::from_f32(600.), f16::from_f32(800.)]),
            Tensor::scalar(f16::from_f32(1000.)),
        ),
        all("integers round toward zero", tensor(&[2], &[2i64, -2]), Tensor::scalar(2i64)),
    ]
}
