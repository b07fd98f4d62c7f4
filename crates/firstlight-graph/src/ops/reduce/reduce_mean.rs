//! `ReduceMean`.

use super::along::{self, Along};
use super::lane_sum;
use crate::op::{AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::elementwise::{operations, unlisted};
use crate::ops::float::{Compute, Float};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;

/// The mean along axes; the second input names them.
///
/// Elements are added by the rule of [the module](super), those of one result in logical order, and the sum is divided
/// by their number.
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceMean {
    /// True when reduced axes stay, with size 1.
    pub keepdims: bool,
    /// True when no axes mean that nothing is reduced; otherwise they mean that all are.
    pub noop_with_empty_axes: bool,
}

impl Default for ReduceMean {
    fn default() -> ReduceMean {
        ReduceMean { keepdims: true, noop_with_empty_axes: false }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ReduceMean",
    doc: "The mean along the given axes, which may count from the end. The mean of integers is exact and rounds \
          toward zero. The mean of no elements is NaN, and 0 for integers.",
    attributes: along::ATTRIBUTES,
    inputs: along::INPUTS,
    outputs: along::OUTPUTS,
    types: &[TypeVar { name: "T", allowed: along::TYPES }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for ReduceMean {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        self.along().attributes()
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        self.along().infer(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.along().reduce(ctx, mean_of_floats::<f32>),
            DType::F64 => self.along().reduce(ctx, mean_of_floats::<f64>),
            DType::F16 => self.along().reduce(ctx, mean_of_floats::<f16>),
            DType::BF16 => self.along().reduce(ctx, mean_of_floats::<bf16>),
            DType::I64 => self.along().reduce(ctx, |row: &[i64]| mean_of_ints(row) as i64),
            DType::I32 => self.along().reduce(ctx, |row: &[i32]| mean_of_ints(row) as i32),
            DType::U64 => self.along().reduce(ctx, |row: &[u64]| mean_of_ints(row) as u64),
            DType::U32 => self.along().reduce(ctx, |row: &[u32]| mean_of_ints(row) as u32),
            other => Err(unlisted("ReduceMean", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 1)
    }
}

impl ReduceMean {
    pub(crate) fn along(&self) -> Along {
        Along { keepdims: self.keepdims, noop_with_empty_axes: self.noop_with_empty_axes }
    }
}

fn mean_of_floats<T: Float>(row: &[T]) -> T {
    let n = T::Compute::from_f64(row.len() as f64);
    T::narrow(lane_sum(row.iter().map(|x| x.widen())) / n)
}

fn mean_of_ints<T: Copy + Into<i128>>(row: &[T]) -> i128 {
    let sum: i128 = row.iter().map(|&x| x.into()).sum();
    sum.checked_div(row.len() as i128).unwrap_or(0)
}

fn cases() -> Vec<Case> {
    let x = || tensor(&[2, 3, 2], &[1f32, 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12.]);
    let axes = |axes: &[i64]| tensor(&[axes.len()], axes);
    let drop = ReduceMean { keepdims: false, ..ReduceMean::default() };
    let noop = ReduceMean { noop_with_empty_axes: true, ..ReduceMean::default() };
    let mean = |name, x: Tensor, y: Tensor| case(name, ReduceMean::default(), &[x], &[y]);
    vec![
        case(
            "last axis",
            ReduceMean::default(),
            &[x(), axes(&[-1])],
            &[tensor(&[2, 3, 1], &[1.5f32, 3.5, 5.5, 7.5, 9.5, 11.5])],
        ),
        case("first axis, dropped", drop.clone(), &[x(), axes(&[0])], &[tensor(&[3, 2], &[4f32, 5., 6., 7., 8., 9.])]),
        case(
            "two axes apart",
            ReduceMean::default(),
            &[x(), axes(&[2, 0])],
            &[tensor(&[1, 3, 1], &[4.5f32, 6.5, 8.5])],
        ),
        case("no axes: all", drop.clone(), &[x()], &[Tensor::scalar(6.5f32)]),
        case("empty axes: all", ReduceMean::default(), &[x(), axes(&[])], &[tensor(&[1, 1, 1], &[6.5f32])]),
        case("empty axes: nothing", noop.clone(), &[x(), axes(&[])], &[x()]),
        case("no axes: nothing", noop, &[x()], &[x()]),
        mean("rank 0", Tensor::scalar(3f32), Tensor::scalar(3f32)),
        mean("no elements", tensor::<f32>(&[2, 0], &[]), tensor(&[1, 1], &[f32::NAN])),
        case("empty output", drop.clone(), &[tensor::<f32>(&[2, 0], &[]), axes(&[0])], &[tensor::<f32>(&[0], &[])]),
        case("no integers", drop.clone(), &[tensor::<i32>(&[2, 0], &[]), axes(&[1])], &[tensor(&[2], &[0i32, 0])]),
        case(
            "integers round toward zero",
            drop,
            &[tensor(&[2, 2], &[-3i64, -4, 3, 4]), axes(&[1])],
            &[tensor(&[2], &[-3i64, 3])],
        ),
        mean("integers do not overflow", tensor(&[2], &[u64::MAX, u64::MAX]), tensor(&[1], &[u64::MAX])),
        mean("NaN and infinity", tensor(&[2], &[f32::NAN, f32::INFINITY]), tensor(&[1], &[f32::NAN])),
        mean("f64", tensor(&[2], &[1f64, 2.]), tensor(&[1], &[1.5f64])),
        mean("f16 sums in f32", tensor(&[3], &[f16::MAX; 3]), tensor(&[1], &[f16::MAX])),
        mean("bf16", tensor(&[2], &[bf16::from_f32(1.), bf16::from_f32(2.)]), tensor(&[1], &[bf16::from_f32(1.5)])),
    ]
}
