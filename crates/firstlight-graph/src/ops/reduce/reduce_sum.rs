//! `ReduceSum`.

use super::along::{self, Along, Row};
use crate::op::{AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::elementwise::operations;
use crate::ops::nn::arith::{Math, lane_sum};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// The sum along axes; the second input names them.
///
/// Elements are added by the rule of [the module](super), those of one result in logical order.
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceSum {
    /// True when reduced axes stay, with size 1.
    pub keepdims: bool,
    /// True when no axes mean that each result is made from one element; otherwise they mean that all are reduced.
    pub noop_with_empty_axes: bool,
}

impl Default for ReduceSum {
    fn default() -> ReduceSum {
        ReduceSum { keepdims: true, noop_with_empty_axes: false }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ReduceSum",
    doc: "The sum along the given axes, which may count from the end. Integers wrap. The sum of no elements is 0.",
    attributes: along::ATTRIBUTES,
    inputs: along::INPUTS,
    outputs: along::OUTPUTS,
    types: &[TypeVar { name: "T", allowed: along::TYPES }],
    exactness: Exactness::Rounding,
    cases,
};

impl ReduceSum {
    pub(crate) fn along(&self) -> Along {
        Along { keepdims: self.keepdims, noop_with_empty_axes: self.noop_with_empty_axes }
    }
}

impl OpDef for ReduceSum {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        self.along().attributes()
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        self.along().infer(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.along().compute::<Of>(ctx, "ReduceSum")
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 1)
    }
}

struct Of;

impl Row for Of {
    fn reduce<M: Math>(row: &[M]) -> M {
        lane_sum(row)
    }
}

fn cases() -> Vec<Case> {
    let axes = |axes: &[i64]| tensor(&[axes.len()], axes);
    let over = |name, x: Tensor, over: &[i64], y: Tensor| {
        case(name, ReduceSum { keepdims: false, ..ReduceSum::default() }, &[x, axes(over)], &[y])
    };
    let all =
        |name, x: Tensor, y: Tensor| case(name, ReduceSum { keepdims: false, ..ReduceSum::default() }, &[x], &[y]);
    let noop = ReduceSum { noop_with_empty_axes: true, ..ReduceSum::default() };
    let x = || tensor(&[2, 3], &[1f32, 2., 3., 4., 5., 6.]);
    vec![
        over("last axis", x(), &[-1], tensor(&[2], &[6f32, 15.])),
        over("first axis", x(), &[0], tensor(&[3], &[5f32, 7., 9.])),
        case("an axis stays", ReduceSum::default(), &[x(), axes(&[1])], &[tensor(&[2, 1], &[6f32, 15.])]),
        over(
            "outer and inner axes",
            tensor(&[2, 2, 2], &[1f32, 2., 3., 4., 5., 6., 7., 8.]),
            &[2, 0],
            tensor(&[2], &[14f32, 22.]),
        ),
        over(
            "middle axis",
            tensor(&[2, 2, 2], &[1i64, 2, 3, 4, 5, 6, 7, 8]),
            &[1],
            tensor(&[2, 2], &[4i64, 6, 12, 14]),
        ),
        all("no axes: all", x(), Tensor::scalar(21f32)),
        case("empty axes: all", ReduceSum::default(), &[x(), axes(&[])], &[tensor(&[1, 1], &[21f32])]),
        case("empty axes: nothing", noop.clone(), &[x(), axes(&[])], &[x()]),
        case("no axes: nothing", noop, &[x()], &[x()]),
        all("rank 0", Tensor::scalar(3f32), Tensor::scalar(3f32)),
        over("the sum of nothing", tensor::<f32>(&[2, 0], &[]), &[1], tensor(&[2], &[0f32, 0.])),
        over("no results", tensor::<f32>(&[0, 2], &[]), &[1], tensor::<f32>(&[0], &[])),
        all("NaN and infinities", tensor(&[2], &[f32::INFINITY, f32::NEG_INFINITY]), Tensor::scalar(f32::NAN)),
        all("integers wrap", tensor(&[2], &[i32::MAX, 2]), Tensor::scalar(i32::MIN + 1)),
        all("unsigned integers wrap", tensor(&[2], &[u64::MAX, 2]), Tensor::scalar(1u64)),
        all("u32", tensor(&[2], &[1u32, 2]), Tensor::scalar(3u32)),
        all("f64", tensor(&[2], &[0.5f64, 2.]), Tensor::scalar(2.5f64)),
        all("f16 sums in f32", tensor(&[3], &[f16::MAX, f16::MAX, -f16::MAX]), Tensor::scalar(f16::MAX)),
        all("bf16", tensor(&[2], &[bf16::from_f32(1.), bf16::from_f32(2.)]), Tensor::scalar(bf16::from_f32(3.))),
    ]
}
