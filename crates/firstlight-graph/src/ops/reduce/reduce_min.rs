//! `ReduceMin`.

use super::along::{self, Along};
use crate::op::{AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{bools, case, tensor};
use crate::ops::elementwise::{operations, unlisted};
use crate::ops::nn::arith::lane_fold;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;

/// The least element along axes; the second input names them.
///
/// NaN wins; of +0 and -0 the one met first in the 16 lanes of [the module](super) is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceMin {
    /// True when reduced axes stay, with size 1.
    pub keepdims: bool,
    /// True when no axes mean that nothing is reduced; otherwise they mean that all are reduced.
    pub noop_with_empty_axes: bool,
}

impl Default for ReduceMin {
    fn default() -> ReduceMin {
        ReduceMin { keepdims: true, noop_with_empty_axes: false }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ReduceMin",
    doc: "The least element along the given axes, which may count from the end. NaN wins over all others. Of bools it is true when every one is. Of no elements it is positive infinity, the greatest value of an integer type, or true.",
    attributes: along::ATTRIBUTES,
    inputs: along::INPUTS,
    outputs: along::OUTPUTS,
    types: &[TypeVar { name: "T", allowed: along::ORDERED }],
    exactness: Exactness::Exact,
    cases,
};

impl ReduceMin {
    pub(crate) fn along(&self) -> Along {
        Along { keepdims: self.keepdims, noop_with_empty_axes: self.noop_with_empty_axes }
    }
}

impl OpDef for ReduceMin {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        self.along().attributes()
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        self.along().infer(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.along().reduce(ctx, |row: &[f32]| lane_fold(row.iter().copied(), f32::INFINITY, lesser)),
            DType::F64 => self.along().reduce(ctx, |row: &[f64]| lane_fold(row.iter().copied(), f64::INFINITY, lesser)),
            DType::F16 => self.along().reduce(ctx, |row: &[f16]| lane_fold(row.iter().copied(), f16::INFINITY, lesser)),
            DType::BF16 => {
                self.along().reduce(ctx, |row: &[bf16]| lane_fold(row.iter().copied(), bf16::INFINITY, lesser))
            }
            DType::I64 => self.along().reduce(ctx, |row: &[i64]| lane_fold(row.iter().copied(), i64::MAX, lesser)),
            DType::I32 => self.along().reduce(ctx, |row: &[i32]| lane_fold(row.iter().copied(), i32::MAX, lesser)),
            DType::U64 => self.along().reduce(ctx, |row: &[u64]| lane_fold(row.iter().copied(), u64::MAX, lesser)),
            DType::U32 => self.along().reduce(ctx, |row: &[u32]| lane_fold(row.iter().copied(), u32::MAX, lesser)),
            DType::I8 => self.along().reduce(ctx, |row: &[i8]| lane_fold(row.iter().copied(), i8::MAX, lesser)),
            DType::U8 => self.along().reduce(ctx, |row: &[u8]| lane_fold(row.iter().copied(), u8::MAX, lesser)),
            DType::Bool => self.along().reduce_bools(ctx, |row| row.iter().all(|&x| x)),
            other => Err(unlisted("ReduceMin", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 1)
    }
}

#[allow(clippy::eq_op)]
fn lesser<T: Copy + PartialOrd>(acc: T, x: T) -> T {
    // Only NaN differs from itself.
    if x < acc || x != x { x } else { acc }
}

fn cases() -> Vec<Case> {
    let axes = |axes: &[i64]| tensor(&[axes.len()], axes);
    let over = |name, x: Tensor, over: &[i64], y: Tensor| {
        case(name, ReduceMin { keepdims: false, ..ReduceMin::default() }, &[x, axes(over)], &[y])
    };
    let all =
        |name, x: Tensor, y: Tensor| case(name, ReduceMin { keepdims: false, ..ReduceMin::default() }, &[x], &[y]);
    let noop = ReduceMin { noop_with_empty_axes: true, ..ReduceMin::default() };
    let x = || tensor(&[2, 3], &[1f32, 5., 3., 4., 2., 6.]);
    vec![
        over("last axis", x(), &[-1], tensor(&[2], &[1f32, 2.])),
        over("first axis", x(), &[0], tensor(&[3], &[1f32, 2., 3.])),
        case("an axis stays", ReduceMin::default(), &[x(), axes(&[1])], &[tensor(&[2, 1], &[1f32, 2.])]),
        over(
            "outer and inner axes",
            tensor(&[2, 2, 2], &[1i64, 2, 3, 4, 5, 6, 7, 8]),
            &[2, 0],
            tensor(&[2], &[1i64, 3]),
        ),
        all("no axes: all", x(), Tensor::scalar(1f32)),
        case("empty axes: nothing", noop.clone(), &[x(), axes(&[])], &[x()]),
        case("no axes: nothing", noop, &[x()], &[x()]),
        over("NaN wins", tensor(&[2, 2], &[f32::NAN, 9., -9., f32::NAN]), &[1], tensor(&[2], &[f32::NAN; 2])),
        over("the first zero is kept", tensor(&[2, 2], &[0f32, -0., -0., 0.]), &[1], tensor(&[2], &[0f32, -0.])),
        over("of nothing", tensor::<f32>(&[2, 0], &[]), &[1], tensor(&[2], &[f32::INFINITY; 2])),
        all("of no integers", tensor::<i32>(&[0], &[]), Tensor::scalar(i32::MAX)),
        over("no results", tensor::<f32>(&[0, 2], &[]), &[1], tensor::<f32>(&[0], &[])),
        over(
            "bools",
            bools(&[3, 2], &[false, false, false, true, true, true]),
            &[1],
            bools(&[3], &[false, false, true]),
        ),
        over("no bools", bools(&[1, 0], &[]), &[1], bools(&[1], &[true])),
        all("f64", tensor(&[2], &[0.5f64, 2.]), Tensor::scalar(0.5f64)),
        all("f16", tensor(&[2], &[f16::ONE, f16::ZERO]), Tensor::scalar(f16::ZERO)),
        all("bf16", tensor(&[2], &[bf16::ONE, bf16::ZERO]), Tensor::scalar(bf16::ZERO)),
        all("u64", tensor(&[2], &[u64::MAX, 1]), Tensor::scalar(1u64)),
        all("u32", tensor(&[2], &[u32::MAX, 1]), Tensor::scalar(1u32)),
        all("i8", tensor(&[2], &[-128i8, 1]), Tensor::scalar(-128i8)),
        all("u8", tensor(&[2], &[200u8, 1]), Tensor::scalar(1u8)),
    ]
}
