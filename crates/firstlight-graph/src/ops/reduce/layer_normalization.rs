//! `LayerNormalization`.

use super::lane_sum;
use crate::infer::{broadcast_dims, normalise_axis};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::checks::{expect_dtype, expect_shape};
use crate::ops::elementwise::{broadcast_view, operations, unlisted};
use crate::ops::float::{Compute, Float};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, Shape, SymShape, Tensor, bf16, f16};
use smallvec::SmallVec;

/// Elements shifted and scaled to mean 0 and variance 1 over the axes from `axis` on, then by the given scale and bias.
///
/// With `d = x - mean` and sums by the rule of [the module](super), `mean = sum(x) / n`,
/// `inverse = 1 / sqrt(sum(d * d) / n + epsilon)` and `y = d * inverse * scale + bias`, left to right, each operation
/// rounded to the type that it is computed in.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerNormalization {
    /// The first of the axes that are normalised together; counts from the end when negative.
    pub axis: i64,
    /// Added to the variance.
    pub epsilon: f32,
}

impl Default for LayerNormalization {
    fn default() -> LayerNormalization {
        LayerNormalization { axis: -1, epsilon: 1e-5 }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "LayerNormalization",
    doc: "Elements shifted and scaled to mean 0 and variance 1 over the axes from `axis` on, then by Scale and B, \
          which broadcast to X. The deviations from the mean are squared, not the elements. 16-bit floats are \
          computed in f32 and rounded once; Mean and InvStdDev are f32 (ONNX's stash_type 1).",
    attributes: &[
        AttrDoc { name: "axis", doc: "the first of the axes that are normalised together" },
        AttrDoc { name: "epsilon", doc: "added to the variance" },
    ],
    inputs: &[
        Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "Scale", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "B", ty: TypeRef::Var(0), arity: Arity::Optional },
    ],
    outputs: &[
        Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "Mean", ty: TypeRef::Fixed(DType::F32), arity: Arity::Optional },
        Param { name: "InvStdDev", ty: TypeRef::Fixed(DType::F32), arity: Arity::Optional },
    ],
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for LayerNormalization {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("axis", AttrValue::Int(self.axis)), ("epsilon", AttrValue::Float(self.epsilon))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let dims = ctx.dims(0)?;
        let axis = normalise_axis(self.axis, dims.rank())?;
        for (i, what) in [(1, "Scale"), (2, "B")] {
            if ctx.has(i) && !broadcasts_to(ctx.dims(i)?, dims) {
                return Err(OpError::shape(format!("{what} of shape {} does not broadcast to {dims}", ctx.dims(i)?)));
            }
        }
        let moment_dims = dims.iter().enumerate().map(|(i, dim)| if i < axis { dim.clone() } else { Dim::Known(1) });
        let moments = OutInfo::new(DType::F32, moment_dims.collect::<SymShape>());
        Ok(SmallVec::from_iter([OutInfo::new(ctx.dtype(0)?, dims.clone()), moments.clone(), moments]))
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.compute::<f32>(ctx),
            DType::F64 => self.compute::<f64>(ctx),
            DType::F16 => self.compute::<f16>(ctx),
            DType::BF16 => self.compute::<bf16>(ctx),
            other => Err(unlisted("LayerNormalization", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 8)
    }
}

/// False when the dims cannot broadcast to `to`, whatever the sizes that are not known.
pub(crate) fn broadcasts_to(from: &SymShape, to: &SymShape) -> bool {
    // A known size of `to` that is 1 takes no other.
    let grows = from
        .iter()
        .rev()
        .zip(to.iter().rev())
        .any(|(from, to)| *to == Dim::Known(1) && from.known().is_some_and(|size| size != 1));
    from.rank() <= to.rank() && !grows && broadcast_dims(from, to).is_ok()
}

impl LayerNormalization {
    fn compute<T: Float>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let x = ctx.input(0)?;
        let shape = x.shape().clone();
        let axis = normalise_axis(self.axis, shape.rank())?;
        expect_dtype("output 0", x.dtype(), ctx.output(0)?.dtype())?;
        expect_shape("output 0", &shape, ctx.output(0)?.shape())?;
        let moment_shape: Shape = shape.iter().enumerate().map(|(i, &dim)| if i < axis { dim } else { 1 }).collect();
        for i in 1..ctx.n_outputs() {
            expect_shape("a moment", &moment_shape, ctx.output(i)?.shape())?;
            ctx.output(i)?.values_mut::<f32>()?;
        }
        let x = x.values::<T>()?;
        let scale = broadcast_view(&ctx.input(1)?, &shape)?;
        let scale = scale.values::<T>()?;
        let bias = match ctx.optional(2) {
            Some(bias) => Some(broadcast_view(&bias, &shape)?.values::<T>()?),
            None => None,
        };
        // With an empty X there may still be rows, whose moments are those of no elements.
        let n = shape[axis..].iter().fold(1usize, |n, &dim| n.saturating_mul(dim));
        let n_rows = if x.is_empty() && ctx.n_outputs() < 2 { 0 } else { moment_shape.n_elems().unwrap_or(0) };
        let row = |i: usize| x.get(i * n..(i + 1) * n).unwrap_or(&[]);
        let moments: Vec<_> = (0..n_rows).map(|i| self.moments(row(i))).collect();
        let y = ctx.output(0)?.values_mut::<T>()?;
        for (i, out) in y.iter_mut().enumerate() {
            let (mean, inverse) = moments[i / n];
            let scaled = (x[i].widen() - mean) * inverse * scale[i].widen();
            *out = T::narrow(match &bias {
                Some(bias) => scaled + bias[i].widen(),
                None => scaled,
            });
        }
        for i in 1..ctx.n_outputs() {
            for (out, (mean, inverse)) in ctx.output(i)?.values_mut::<f32>()?.iter_mut().zip(&moments) {
                *out = if i == 1 { mean } else { inverse }.to_f64() as f32;
            }
        }
        Ok(())
    }

    /// Mean and the reciprocal of the standard deviation of a row.
    fn moments<T: Float>(&self, row: &[T]) -> (T::Compute, T::Compute) {
        let n = T::Compute::from_f64(row.len() as f64);
        let mean = lane_sum(row.iter().map(|x| x.widen())) / n;
        let squares = row.iter().map(|x| {
            let deviation = x.widen() - mean;
            deviation * deviation
        });
        let variance = lane_sum(squares) / n + T::Compute::from_f64(self.epsilon.into());
        (mean, T::Compute::from_f64(1.0) / T::Compute::from_f64(variance.to_f64().sqrt()))
    }
}

fn cases() -> Vec<Case> {
    let op = |axis, epsilon| LayerNormalization { axis, epsilon };
    let x = || tensor(&[2, 2], &[1f32, 3., -2., 2.]);
    vec![
        case(
            "last axis, with bias and moments",
            op(-1, 0.),
            &[x(), tensor(&[2], &[1f32, 2.]), tensor(&[2], &[0f32, 0.5])],
            &[tensor(&[2, 2], &[-1f32, 2.5, -1., 2.5]), tensor(&[2, 1], &[2f32, 0.]), tensor(&[2, 1], &[1f32, 0.5])],
        ),
        case("without bias", op(1, 0.), &[x(), tensor(&[2], &[1f32, 2.])], &[tensor(&[2, 2], &[-1f32, 2., -1., 2.])]),
        case(
            "all axes together",
            op(0, 0.),
            &[tensor(&[2, 2], &[1f32, 1., 3., 3.]), tensor(&[2, 2], &[1f32, 2., 3., 4.])],
            &[tensor(&[2, 2], &[-1f32, -2., 3., 4.]), tensor(&[1, 1], &[2f32]), tensor(&[1, 1], &[1f32])],
        ),
        case(
            "epsilon keeps a constant row finite",
            op(-1, 0.25),
            &[tensor(&[3], &[5f32; 3]), Tensor::scalar(1f32), Tensor::scalar(7f32)],
            &[tensor(&[3], &[7f32; 3]), tensor(&[1], &[5f32]), tensor(&[1], &[2f32])],
        ),
        case(
            "a large mean does not drown the variance",
            op(-1, 0.),
            &[tensor(&[2], &[16_777_214f32, 16_777_216.]), tensor(&[2], &[1f32, 1.])],
            &[tensor(&[2], &[-1f32, 1.])],
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
            &[tensor::<f32>(&[2, 0], &[]), tensor(&[2, 1], &[f32::NAN; 2]), tensor(&[2, 1], &[f32::NAN; 2])],
        ),
        case(
            "no rows",
            op(1, 1e-5),
            &[tensor::<f32>(&[0, 2], &[]), tensor(&[2], &[1f32; 2])],
            &[tensor::<f32>(&[0, 2], &[])],
        ),
        case(
            "f64",
            op(-1, 0.),
            &[tensor(&[2], &[1f64, 3.]), tensor(&[2], &[0.5f64, 2.])],
            &[tensor(&[2], &[-0.5f64, 2.]), tensor(&[1], &[2f32]), tensor(&[1], &[1f32])],
        ),
        case(
            "f16 computes in f32",
            op(-1, 0.),
            &[tensor(&[2], &[f16::MAX, f16::MIN]), tensor(&[2], &[f16::ONE; 2])],
            &[tensor(&[2], &[f16::ONE, f16::NEG_ONE]), tensor(&[1], &[0f32]), tensor(&[1], &[1f32 / 65504.])],
        ),
        case(
            "bf16",
            op(-1, 0.),
            &[tensor(&[2], &[bf16::from_f32(1.), bf16::from_f32(3.)]), tensor(&[2], &[bf16::ONE; 2])],
            &[tensor(&[2], &[bf16::NEG_ONE, bf16::ONE])],
        ),
    ]
}
