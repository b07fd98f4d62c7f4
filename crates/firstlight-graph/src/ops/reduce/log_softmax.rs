//! `LogSoftmax`.

use super::{axes_last, lane_sum};
use crate::infer::normalise_axis;
use crate::op::{AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::checks::{expect_dtype, expect_shape};
use crate::ops::elementwise::{SAME_OUTPUT, UNARY_INPUT, infer_unary, operations, unlisted};
use crate::ops::float::{Compute, Float};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;

/// Logarithms of the exponentials along one axis, scaled to add up to 1.
///
/// `d = x - max` and `y = d - log(sum(exp(d)))`, the sum by the rule of [the module](super), each operation rounded to
/// the type that it is computed in.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSoftmax {
    /// The axis along which the results add up to 1; counts from the end when negative.
    pub axis: i64,
}

impl Default for LogSoftmax {
    fn default() -> LogSoftmax {
        LogSoftmax { axis: -1 }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "LogSoftmax",
    doc: "Logarithms of the exponentials along one axis, scaled to add up to 1: `x - max - log(sum(exp(x - max)))`. A row \
          that holds NaN or positive infinity, or nothing but negative infinity, gives NaN.",
    attributes: &[AttrDoc { name: "axis", doc: "the axis along which the exponentials of the results add up to 1" }],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for LogSoftmax {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("axis", AttrValue::Int(self.axis))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        normalise_axis(self.axis, ctx.dims(0)?.rank())?;
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.compute::<f32>(ctx),
            DType::F64 => self.compute::<f64>(ctx),
            DType::F16 => self.compute::<f16>(ctx),
            DType::BF16 => self.compute::<bf16>(ctx),
            other => Err(unlisted("LogSoftmax", other)),
        }
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 14)
    }
}

impl LogSoftmax {
    fn compute<T: Float>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let input = ctx.input(0)?;
        let output = ctx.output(0)?;
        expect_dtype("output 0", input.dtype(), output.dtype())?;
        expect_shape("output 0", input.shape(), output.shape())?;
        let axis = normalise_axis(self.axis, input.shape().rank())?;
        let (n, strides) = (input.shape()[axis], input.shape().strides());
        let last: SmallVec<[bool; 6]> = (0..input.shape().rank()).map(|i| i == axis).collect();
        let rows = axes_last(&input, &last)?;
        let rows = rows.values::<T>()?;
        let output = output.values_mut::<T>()?;
        if rows.is_empty() {
            return Ok(());
        }
        for (i, row) in rows.chunks_exact(n).enumerate() {
            let inner = strides[axis];
            let start = i / inner * inner * n + i % inner;
            for (j, y) in log_softmax(row).into_iter().enumerate() {
                output[start + j * inner] = T::narrow(y);
            }
        }
        Ok(())
    }
}

fn log_softmax<T: Float>(row: &[T]) -> Vec<T::Compute> {
    let lowest = T::Compute::from_f64(f64::NEG_INFINITY);
    // NaN is never the largest here; it makes the sum NaN below.
    let max = row.iter().map(|x| x.widen()).fold(lowest, |max, x| if x > max { x } else { max });
    let sum = lane_sum(row.iter().map(|x| T::Compute::from_f64(libm::exp((x.widen() - max).to_f64()))));
    let log = T::Compute::from_f64(libm::log(sum.to_f64()));
    row.iter().map(|x| x.widen() - max - log).collect()
}

fn cases() -> Vec<Case> {
    let softmax = |name, axis, x: Tensor, y: Tensor| case(name, LogSoftmax { axis }, &[x], &[y]);
    let ln2 = std::f32::consts::LN_2;
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    vec![
        softmax(
            "last axis",
            -1,
            tensor(&[2, 2], &[0f32, 0., 1000., 1000.]),
            tensor(&[2, 2], &[-ln2, -ln2, -ln2, -ln2]),
        ),
        softmax(
            "middle axis",
            1,
            tensor(&[2, 2, 2], &[0f32, 5., 1., 5., -1., 0., -1., 1.]),
            tensor(&[2, 2, 2], &[-1.313_261_7f32, -ln2, -0.313_261_7, -ln2, -ln2, -1.313_261_7, -ln2, -0.313_261_7]),
        ),
        softmax("first axis", -2, tensor(&[2, 2], &[0f32, 3., 0., 3.]), tensor(&[2, 2], &[-ln2; 4])),
        softmax("far apart", 0, tensor(&[2], &[0f32, 200.]), tensor(&[2], &[-200f32, 0.])),
        softmax(
            "NaN and infinities",
            1,
            tensor(&[4, 2], &[nan, 0., inf, 0., -inf, 0., -inf, -inf]),
            tensor(&[4, 2], &[nan, nan, nan, nan, -inf, 0., nan, nan]),
        ),
        softmax("one element", 0, tensor(&[1], &[-7f32]), tensor(&[1], &[0f32])),
        softmax("empty axis", 1, tensor::<f32>(&[2, 0], &[]), tensor::<f32>(&[2, 0], &[])),
        softmax("empty beside the axis", 1, tensor::<f32>(&[0, 2], &[]), tensor::<f32>(&[0, 2], &[])),
        softmax("f64", 0, tensor(&[2], &[0f64, 0.]), tensor(&[2], &[-std::f64::consts::LN_2; 2])),
        softmax("f16", 0, tensor(&[2], &[f16::ZERO; 2]), tensor(&[2], &[f16::from_f32(-ln2); 2])),
        softmax("bf16", 0, tensor(&[2], &[bf16::ONE; 2]), tensor(&[2], &[bf16::from_f32(-ln2); 2])),
    ]
}
