//! `RMSNormalization`.

use super::lane_sum;
use super::layer_normalization::broadcasts_to;
use crate::infer::normalise_axis;
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::checks::expect_shape;
use crate::ops::elementwise::{broadcast_view, operations, unlisted};
use crate::ops::float::{Compute, Float};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;

/// Elements divided by the root of the mean of their squares over the axes from `axis` on, then scaled.
///
/// `inverse = 1 / sqrt(sum(x * x) / n + epsilon)` and `y = x * inverse * scale`, left to right, the sum by the rule of
/// [the module](super), each operation rounded to the type that X is computed in.
#[derive(Clone, Debug, PartialEq)]
pub struct RMSNormalization {
    /// The first of the axes that are normalised together; counts from the end when negative.
    pub axis: i64,
    /// Added to the mean of the squares.
    pub epsilon: f32,
}

impl Default for RMSNormalization {
    fn default() -> RMSNormalization {
        RMSNormalization { axis: -1, epsilon: 1e-5 }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "RMSNormalization",
    doc: "Elements divided by the root of the mean of their squares over the axes from `axis` on, then multiplied by \
          scale, which broadcasts to X and gives the result its type. 16-bit floats are computed in f32 and rounded once \
          (ONNX's stash_type 1).",
    attributes: &[
        AttrDoc { name: "axis", doc: "the first of the axes that are normalised together" },
        AttrDoc { name: "epsilon", doc: "added to the mean of the squares" },
    ],
    inputs: &[
        Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "scale", ty: TypeRef::Var(1), arity: Arity::One },
    ],
    outputs: &[Param { name: "Y", ty: TypeRef::Var(1), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: FLOATS }, TypeVar { name: "V", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for RMSNormalization {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("axis", AttrValue::Int(self.axis)), ("epsilon", AttrValue::Float(self.epsilon))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let dims = ctx.dims(0)?;
        normalise_axis(self.axis, dims.rank())?;
        if !broadcasts_to(ctx.dims(1)?, dims) {
            return Err(OpError::shape(format!("scale of shape {} does not broadcast to {dims}", ctx.dims(1)?)));
        }
        Ok(OutInfo::new(ctx.dtype(1)?, dims.clone()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.scaled::<f32>(ctx),
            DType::F64 => self.scaled::<f64>(ctx),
            DType::F16 => self.scaled::<f16>(ctx),
            DType::BF16 => self.scaled::<bf16>(ctx),
            other => Err(unlisted("RMSNormalization", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 4)
    }
}

impl RMSNormalization {
    fn scaled<T: Float>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(1)?.dtype() {
            DType::F32 => self.compute::<T, f32>(ctx),
            DType::F64 => self.compute::<T, f64>(ctx),
            DType::F16 => self.compute::<T, f16>(ctx),
            DType::BF16 => self.compute::<T, bf16>(ctx),
            other => Err(unlisted("RMSNormalization", other)),
        }
    }

    fn compute<T: Float, V: Float>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let x = ctx.input(0)?;
        let shape = x.shape().clone();
        let axis = normalise_axis(self.axis, shape.rank())?;
        expect_shape("output 0", &shape, ctx.output(0)?.shape())?;
        let x = x.values::<T>()?;
        let scale = broadcast_view(&ctx.input(1)?, &shape)?;
        let scale = scale.values::<V>()?;
        let y = ctx.output(0)?.values_mut::<V>()?;
        if x.is_empty() {
            return Ok(());
        }
        let n: usize = shape[axis..].iter().product();
        let number = T::Compute::from_f64;
        for (i, row) in x.chunks_exact(n).enumerate() {
            let squares = lane_sum(row.iter().map(|x| x.widen() * x.widen()));
            let mean = squares / number(n as f64) + number(self.epsilon.into());
            let inverse = number(1.0) / number(mean.to_f64().sqrt());
            for (j, x) in row.iter().enumerate() {
                let at = i * n + j;
                let scaled = x.widen() * inverse * number(scale[at].widen().to_f64());
                y[at] = V::narrow(V::Compute::from_f64(scaled.to_f64()));
            }
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let op = |axis, epsilon| RMSNormalization { axis, epsilon };
    let x = || tensor(&[2, 2], &[1f32, 7., -5., 5.]);
    vec![
        case("last axis", op(-1, 0.), &[x(), tensor(&[2], &[1f32, 2.])], &[tensor(&[2, 2], &[0.2f32, 2.8, -1., 2.])]),
        case(
            "all axes together",
            op(0, 0.),
            &[x(), Tensor::scalar(10f32)],
            &[tensor(&[2, 2], &[2f32, 14., -10., 10.])],
        ),
        case(
            "epsilon keeps zeros finite",
            op(-1, 0.25),
            &[tensor(&[3], &[0f32; 3]), tensor(&[3], &[2f32; 3])],
            &[tensor(&[3], &[0f32; 3])],
        ),
        case(
            "NaN stays in its row",
            op(-1, 0.),
            &[tensor(&[2, 2], &[f32::NAN, 3., -2., 2.]), tensor(&[1], &[1f32])],
            &[tensor(&[2, 2], &[f32::NAN, f32::NAN, -1., 1.])],
        ),
        case(
            "empty rows",
            op(1, 1e-5),
            &[tensor::<f32>(&[2, 0], &[]), tensor::<f32>(&[0], &[])],
            &[tensor::<f32>(&[2, 0], &[])],
        ),
        case(
            "f64",
            op(-1, 0.),
            &[tensor(&[2], &[1f64, 7.]), tensor(&[2], &[5f64, 10.])],
            &[tensor(&[2], &[1f64, 14.])],
        ),
        case(
            "f16 computes in f32",
            op(-1, 0.),
            &[tensor(&[2], &[f16::MAX, f16::MIN]), tensor(&[2], &[f16::ONE; 2])],
            &[tensor(&[2], &[f16::ONE, f16::NEG_ONE])],
        ),
        case(
            "the result has the type of scale",
            op(-1, 0.),
            &[tensor(&[2], &[bf16::ONE, bf16::NEG_ONE]), tensor(&[2], &[0.1f32, 0.2])],
            &[tensor(&[2], &[0.1f32, -0.2])],
        ),
    ]
}
