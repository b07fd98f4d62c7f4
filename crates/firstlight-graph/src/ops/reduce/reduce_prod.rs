//! `ReduceProd`.

use super::along::{self, Along, Row};
use crate::op::{AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::elementwise::operations;
use crate::ops::nn::arith::{Math, lane_fold};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{Tensor, f16};
use smallvec::SmallVec;

/// The product along axes; the second input names them.
///
/// Elements are multiplied in the 16 lanes of [the module](super), each starting from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceProd {
    /// True when reduced axes stay, with size 1.
    pub keepdims: bool,
    /// True when no axes mean that each result is made from one element; otherwise they mean that all are reduced.
    pub noop_with_empty_axes: bool,
}

impl Default for ReduceProd {
    fn default() -> ReduceProd {
        ReduceProd { keepdims: true, noop_with_empty_axes: false }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ReduceProd",
    doc: "The product along the given axes, which may count from the end. Integers wrap. The product of no elements is 1.",
    attributes: along::ATTRIBUTES,
    inputs: along::INPUTS,
    outputs: along::OUTPUTS,
    types: &[TypeVar { name: "T", allowed: along::TYPES }],
    exactness: Exactness::Rounding,
    cases,
};

impl ReduceProd {
    pub(crate) fn along(&self) -> Along {
        Along { keepdims: self.keepdims, noop_with_empty_axes: self.noop_with_empty_axes }
    }
}

impl OpDef for ReduceProd {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        self.along().attributes()
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        self.along().infer(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.along().compute::<Of>(ctx, "ReduceProd")
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 1)
    }
}

struct Of;

impl Row for Of {
    fn reduce<M: Math>(row: &[M]) -> M {
        lane_fold(row.iter().copied(), M::cast_f64(1.0), M::times)
    }
}

fn cases() -> Vec<Case> {
    let axes = |axes: &[i64]| tensor(&[axes.len()], axes);
    let over = |name, x: Tensor, over: &[i64], y: Tensor| {
        case(name, ReduceProd { keepdims: false, ..ReduceProd::default() }, &[x, axes(over)], &[y])
    };
    let all =
        |name, x: Tensor, y: Tensor| case(name, ReduceProd { keepdims: false, ..ReduceProd::default() }, &[x], &[y]);
    let noop = ReduceProd { noop_with_empty_axes: true, ..ReduceProd::default() };
    let x = || tensor(&[2, 3], &[1f32, 2., 3., 4., 5., 6.]);
    vec![
        over("last axis", x(), &[-1], tensor(&[2], &[6f32, 120.])),
        over("first axis", x(), &[0], tensor(&[3], &[4f32, 10., 18.])),
        case("an axis stays", ReduceProd::default(), &[x(), axes(&[1])], &[tensor(&[2, 1], &[6f32, 120.])]),
        over(
            "outer and inner axes",
            tensor(&[2, 2, 2], &[1f32, 2., 3., 4., 5., 6., 7., 8.]),
            &[2, 0],
            tensor(&[2], &[60f32, 672.]),
        ),
        all("no axes: all", x(), Tensor::scalar(720f32)),
        case("empty axes: nothing", noop, &[x(), axes(&[])], &[x()]),
        over("the product of nothing", tensor::<f32>(&[2, 0], &[]), &[1], tensor(&[2], &[1f32, 1.])),
        all("zero times infinity", tensor(&[2], &[f32::INFINITY, 0.]), Tensor::scalar(f32::NAN)),
        all("integers wrap", tensor(&[2], &[i64::MAX, 2]), Tensor::scalar(-2i64)),
        all("u32", tensor(&[2], &[5u32, 2]), Tensor::scalar(10u32)),
        all("f16 multiplies in f32", tensor(&[3], &[f16::MAX, f16::MAX, f16::ZERO]), Tensor::scalar(f16::ZERO)),
    ]
}
