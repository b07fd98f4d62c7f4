//! `Softmax`.

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

/// Exponentials along one axis, scaled to add up to 1.
///
/// `e = exp(x - max)` and `y = e / sum(e)`, the sum by the rule of [the module](super), each operation rounded to the
/// type that it is computed in.
#[derive(Clone, Debug, PartialEq)]
pub struct Softmax {
    /// The axis along which the results add up to 1; counts from the end when negative.
    pub axis: i64,
}

impl Default for Softmax {
    fn default() -> Softmax {
        Softmax { axis: -1 }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Softmax",
    doc: "Exponentials along one axis, scaled to add up to 1: `exp(x - max) / sum(exp(x - max))`. A row that holds \
          NaN or positive infinity, or nothing but negative infinity, gives NaN.",
    attributes: &[AttrDoc { name: "axis", doc: "the axis along which the results add up to 1" }],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Softmax {
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
            other => Err(unlisted("Softmax", other)),
        }
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 14)
    }
}

impl Softmax {
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
            for (j, y) in softmax(row).into_iter().enumerate() {
                output[start + j * inner] = T::narrow(y);
            }
        }
        Ok(())
    }
}

fn softmax<T: Float>(row: &[T]) -> Vec<T::Compute> {
    let lowest = T::Compute::from_f64(f64::NEG_INFINITY);
    // NaN is never the largest here; it makes the sum NaN below.
    let max = row.iter().map(|x| x.widen()).fold(lowest, |max, x| if x > max { x } else { max });
    let exp = |x: T| T::Compute::from_f64(libm::exp((x.widen() - max).to_f64()));
    let exps: Vec<_> = row.iter().map(|&x| exp(x)).collect();
    let sum = lane_sum(exps.iter().copied());
    exps.into_iter().map(|e| e / sum).collect()
}

fn cases() -> Vec<Case> {
    let softmax = |name, axis, x: Tensor, y: Tensor| case(name, Softmax { axis }, &[x], &[y]);
    vec![
        softmax(
            "last axis",
            -1,
            tensor(&[2, 3], &[0f32, 1., 2., 1000., 1000., 1000.]),
            tensor(&[2, 3], &[0.090_030_57f32, 0.244_728_47, 0.665_240_94, 1. / 3., 1. / 3., 1. / 3.]),
        ),
        softmax(
            "middle axis",
            1,
            tensor(&[2, 2, 2], &[0f32, 5., 1., 5., -1., 0., -1., 1.]),
            tensor(&[2, 2, 2], &[0.268_941_43f32, 0.5, 0.731_058_6, 0.5, 0.5, 0.268_941_43, 0.5, 0.731_058_6]),
        ),
        softmax(
            "first axis, counted from the end",
            -2,
            tensor(&[2, 2], &[0f32, 3., 0., 3.]),
            tensor(&[2, 2], &[0.5f32, 0.5, 0.5, 0.5]),
        ),
        softmax(
            "NaN and infinities",
            1,
            tensor(
                &[4, 2],
                &[f32::NAN, 0., f32::INFINITY, 0., f32::NEG_INFINITY, 0., f32::NEG_INFINITY, f32::NEG_INFINITY],
            ),
            tensor(&[4, 2], &[f32::NAN, f32::NAN, f32::NAN, f32::NAN, 0., 1., f32::NAN, f32::NAN]),
        ),
        softmax("one element", 0, tensor(&[1], &[-7f32]), tensor(&[1], &[1f32])),
        softmax("empty axis", 1, tensor::<f32>(&[2, 0], &[]), tensor::<f32>(&[2, 0], &[])),
        softmax("empty beside the axis", 1, tensor::<f32>(&[0, 2], &[]), tensor::<f32>(&[0, 2], &[])),
        softmax(
            "f64",
            0,
            tensor(&[2], &[0f64, 1.]),
            tensor(&[2], &[0.268_941_421_369_995_1f64, 0.731_058_578_630_004_9]),
        ),
        softmax("f16", 0, tensor(&[2], &[f16::ZERO; 2]), tensor(&[2], &[f16::from_f32(0.5); 2])),
        softmax("bf16", 0, tensor(&[4], &[bf16::ONE; 4]), tensor(&[4], &[bf16::from_f32(0.25); 4])),
    ]
}
