//! `ReduceLogSum`.

use super::along::{self, Along, Row};
use crate::op::{AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::elementwise::operations;
use crate::ops::nn::arith::{Math, lane_sum};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::Tensor;
use smallvec::SmallVec;

/// The logarithm of the sum along axes; the second input names them.
///
/// Elements are added by the rule of [the module](super); the logarithm of the sum is rounded.
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceLogSum {
    /// True when reduced axes stay, with size 1.
    pub keepdims: bool,
    /// True when no axes mean that logarithms are taken; otherwise they mean that all are reduced.
    pub noop_with_empty_axes: bool,
}

impl Default for ReduceLogSum {
    fn default() -> ReduceLogSum {
        ReduceLogSum { keepdims: true, noop_with_empty_axes: false }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ReduceLogSum",
    doc: "The natural logarithm of the sum along the given axes, which may count from the end. The sum of integers wraps; its logarithm, taken in f64, is rounded toward zero, and that of 0 or less is the least integer or 0. The result of no elements is negative infinity.",
    attributes: along::ATTRIBUTES,
    inputs: along::INPUTS,
    outputs: along::OUTPUTS,
    types: &[TypeVar { name: "T", allowed: along::TYPES }],
    exactness: Exactness::Rounding,
    cases,
};

impl ReduceLogSum {
    pub(crate) fn along(&self) -> Along {
        Along { keepdims: self.keepdims, noop_with_empty_axes: self.noop_with_empty_axes }
    }
}

impl OpDef for ReduceLogSum {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        self.along().attributes()
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        self.along().infer(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.along().compute::<Of>(ctx, "ReduceLogSum")
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 1)
    }
}

struct Of;

impl Row for Of {
    fn reduce<M: Math>(row: &[M]) -> M {
        M::cast_f64(libm::log(lane_sum(row).to_real()))
    }
}

fn cases() -> Vec<Case> {
    let axes = |axes: &[i64]| tensor(&[axes.len()], axes);
    let over = |name, x: Tensor, over: &[i64], y: Tensor| {
        case(name, ReduceLogSum { keepdims: false, ..ReduceLogSum::default() }, &[x, axes(over)], &[y])
    };
    let all = |name, x: Tensor, y: Tensor| {
        case(name, ReduceLogSum { keepdims: false, ..ReduceLogSum::default() }, &[x], &[y])
    };
    let noop = ReduceLogSum { noop_with_empty_axes: true, ..ReduceLogSum::default() };
    let ln2 = std::f32::consts::LN_2;
    let x = || tensor(&[2, 2], &[0.5f32, 0.5, 1.5, 0.5]);
    vec![
        over("last axis", x(), &[-1], tensor(&[2], &[0f32, ln2])),
        over("first axis", x(), &[0], tensor(&[2], &[ln2, 0.])),
        case("an axis stays", ReduceLogSum::default(), &[x(), axes(&[1])], &[tensor(&[2, 1], &[0f32, ln2])]),
        over("outer and inner axes", tensor(&[2, 2, 2], &[0.25f32; 8]), &[2, 0], tensor(&[2], &[0f32, 0.])),
        all("no axes: all", tensor(&[2], &[1f32, 1.]), Tensor::scalar(ln2)),
        case("empty axes: logarithms", noop, &[tensor(&[2], &[1f32, 2.]), axes(&[])], &[tensor(&[2], &[0f32, ln2])]),
        over("of nothing", tensor::<f32>(&[2, 0], &[]), &[1], tensor(&[2], &[f32::NEG_INFINITY; 2])),
        all("of a negative sum", tensor(&[2], &[1f32, -2.]), Tensor::scalar(f32::NAN)),
        all("integers round toward zero", tensor(&[2], &[10i64, 11]), Tensor::scalar(3i64)),
        all("f64", tensor(&[2], &[1f64, 1.]), Tensor::scalar(std::f64::consts::LN_2)),
    ]
}
