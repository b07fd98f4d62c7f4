//! `BatchNormalization`.

use super::arith::{Real, Stored, widened};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::elementwise::{operations, unlisted};
use crate::ops::layout::{check_output, same_dim};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, SymShape, TensorView, bf16, f16};
use smallvec::SmallVec;

/// Elements shifted and scaled by the given statistics of their channel.
///
/// For each channel `factor = scale / sqrt(var + epsilon)` and `offset = B - mean * factor`; then
/// `y = x * factor + offset`. Every operation rounds by itself, in f64 where an input is f64 and else in f32; `y` is
/// rounded to its own type at the end.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchNormalization {
    /// Added to the variance.
    pub epsilon: f32,
    /// True when each channel has its statistics; false when each position of each channel has.
    pub spatial: bool,
}

impl Default for BatchNormalization {
    fn default() -> BatchNormalization {
        BatchNormalization { epsilon: 1e-5, spatial: true }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "BatchNormalization",
    doc: "Elements shifted and scaled by the given statistics of their channel: `x * factor + offset` with `factor = \
          scale / sqrt(var + epsilon)` and `offset = B - mean * factor`, each operation rounded, in f64 where an input \
          is f64 and else in f32. An input of one dimension has one channel. Inference only: the statistics are inputs.",
    attributes: &[
        AttrDoc { name: "epsilon", doc: "added to the variance" },
        AttrDoc { name: "spatial", doc: "each channel has its statistics; else each position of each channel has" },
    ],
    inputs: &[
        Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "scale", ty: TypeRef::Var(1), arity: Arity::One },
        Param { name: "B", ty: TypeRef::Var(1), arity: Arity::One },
        Param { name: "mean", ty: TypeRef::Var(2), arity: Arity::One },
        Param { name: "var", ty: TypeRef::Var(2), arity: Arity::One },
    ],
    outputs: &[Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[
        TypeVar { name: "T", allowed: FLOATS },
        TypeVar { name: "T1", allowed: FLOATS },
        TypeVar { name: "T2", allowed: FLOATS },
    ],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for BatchNormalization {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("epsilon", AttrValue::Float(self.epsilon)), ("spatial", AttrValue::Bool(self.spatial))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let x = ctx.dims(0)?;
        let expected = self.parameter_dims(x)?;
        for (i, param) in INFO.inputs.iter().enumerate().skip(1) {
            check_parameter(param.name, &expected, ctx.dims(i)?)?;
        }
        Ok(OutInfo::new(ctx.dtype(0)?, x.clone()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let mut is_f64 = false;
        for i in 0..5 {
            is_f64 |= ctx.input(i)?.dtype() == DType::F64;
        }
        match (ctx.input(0)?.dtype(), is_f64) {
            (DType::F32, false) => self.compute::<f32, f32>(ctx),
            (DType::F16, false) => self.compute::<f16, f32>(ctx),
            (DType::BF16, false) => self.compute::<bf16, f32>(ctx),
            (DType::F32, true) => self.compute::<f32, f64>(ctx),
            (DType::F64, _) => self.compute::<f64, f64>(ctx),
            (DType::F16, true) => self.compute::<f16, f64>(ctx),
            (DType::BF16, true) => self.compute::<bf16, f64>(ctx),
            (other, _) => Err(unlisted("BatchNormalization", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 2)
    }
}

impl BatchNormalization {
    /// Number of parameters of each kind, and of neighbouring elements that share one, for an input of shape `x`.
    pub fn planes(&self, x: &[usize]) -> (usize, usize) {
        let product = |dims: &[usize]| dims.iter().fold(1usize, |n, &dim| n.saturating_mul(dim));
        match (x.len(), self.spatial) {
            (0 | 1, _) => (1, product(x)),
            (_, true) => (x[1], product(&x[2..])),
            (_, false) => (product(&x[1..]), 1),
        }
    }

    /// The shape of each parameter for an input of dims `x`.
    fn parameter_dims(&self, x: &[Dim]) -> Result<SymShape, OpError> {
        match (x, self.spatial) {
            ([], _) => Err(OpError::shape("BatchNormalization takes batch and channels; got a scalar")),
            ([_], _) => Ok(SymShape(vec![Dim::Known(1)])),
            ([_, channels, ..], true) => Ok(SymShape(vec![channels.clone()])),
            ([_, rest @ ..], false) => Ok(SymShape(rest.to_vec())),
        }
    }

    /// Computes elements of `T` in `M`, which is at least as precise as the type of any input.
    fn compute<T: Stored, M: Real>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError>
    where
        T::Math: Real,
    {
        let x = ctx.input(0)?;
        let shape = x.shape().clone();
        let expected = self.parameter_dims(&SymShape::from(&shape))?;
        let mut parameters: SmallVec<[Vec<M>; 4]> = SmallVec::new();
        for (i, param) in INFO.inputs.iter().enumerate().skip(1) {
            let view = ctx.input(i)?;
            check_parameter(param.name, &expected, &SymShape::from(view.shape()))?;
            parameters.push(as_math(&view)?);
        }
        check_output(ctx, 0, &shape)?;
        let [scale, bias, mean, var] = &parameters[..] else { return Err(OpError::shape("a parameter is missing")) };
        let (epsilon, minus) = (M::from_f64(self.epsilon.into()), M::from_f64(-1.0));
        let mut factors = vec![];
        for i in 0..scale.len() {
            // The square root of an f32, taken in f64 and rounded, is the correctly rounded one.
            let deviation = M::from_f64(var[i].plus(epsilon).to_f64().sqrt());
            let factor = scale[i].over(deviation);
            factors.push((factor, bias[i].plus(mean[i].times(factor).times(minus))));
        }
        let (n_parameters, plane) = self.planes(&shape);
        let values = x.values::<T>()?;
        for (i, (to, x)) in ctx.output(0)?.values_mut::<T>()?.iter_mut().zip(values.iter()).enumerate() {
            let (factor, offset) = factors[i / plane.max(1) % n_parameters.max(1)];
            let y = M::from_f64(x.widen().to_f64()).times(factor).plus(offset);
            *to = T::narrow(T::Math::from_f64(y.to_f64()));
        }
        Ok(())
    }
}

/// The elements of a parameter in the type of the arithmetic.
fn as_math<M: Real>(view: &TensorView<'_>) -> Result<Vec<M>, OpError> {
    fn of<T: Stored, M: Real>(view: &TensorView<'_>) -> Result<Vec<M>, OpError>
    where
        T::Math: Real,
    {
        Ok(widened::<T>(view)?.into_iter().map(|value| M::from_f64(value.to_f64())).collect())
    }
    match view.dtype() {
        DType::F32 => of::<f32, M>(view),
        DType::F64 => of::<f64, M>(view),
        DType::F16 => of::<f16, M>(view),
        DType::BF16 => of::<bf16, M>(view),
        other => Err(unlisted("BatchNormalization", other)),
    }
}

fn check_parameter(name: &str, expected: &SymShape, got: &SymShape) -> Result<(), OpError> {
    let fits = expected.rank() == got.rank() && expected.iter().zip(got.iter()).all(|(a, b)| same_dim(a, b).is_some());
    match fits {
        true => Ok(()),
        false => Err(OpError::shape(format!("{name} has shape {got}, expected {expected} for this input"))),
    }
}

fn cases() -> Vec<Case> {
    let op = |epsilon| BatchNormalization { epsilon, ..BatchNormalization::default() };
    let x = || tensor(&[1, 2, 2], &[1f32, 2., 3., 4.]);
    let t = |values: &[f32]| tensor(&[values.len()], values);
    // Factors 2 and 0.5, offsets -1 and 4.
    let parameters = || [t(&[2., 1.]), t(&[1., 5.]), t(&[1., 2.]), t(&[1., 4.])];
    let with = |x, [scale, bias, mean, var]: [_; 4]| [x, scale, bias, mean, var];
    let halves = |values: &[f32]| values.iter().map(|&value| f16::from_f32(value)).collect::<Vec<_>>();
    let brains = |values: &[f32]| values.iter().map(|&value| bf16::from_f32(value)).collect::<Vec<_>>();
    vec![
        case("channels", op(0.), &with(x(), parameters()), &[tensor(&[1, 2, 2], &[1f32, 3., 5.5, 6.])]),
        case(
            "two images",
            op(0.),
            &with(tensor(&[2, 2, 1], &[1f32, 3., 2., 4.]), parameters()),
            &[tensor(&[2, 2, 1], &[1f32, 5.5, 3., 6.])],
        ),
        case(
            "no spatial dimension",
            op(0.),
            &with(tensor(&[2, 2], &[1f32, 3., 2., 4.]), parameters()),
            &[tensor(&[2, 2], &[1f32, 5.5, 3., 6.])],
        ),
        case(
            "one dimension has one channel",
            op(0.),
            &with(tensor(&[3], &[1f32, 2., 3.]), [t(&[2.]), t(&[1.]), t(&[1.]), t(&[1.])]),
            &[tensor(&[3], &[1f32, 3., 5.])],
        ),
        case(
            "statistics of each position",
            BatchNormalization { spatial: false, ..op(0.) },
            &with(x(), {
                let p = |values: [f32; 4]| tensor(&[2, 2], &values);
                [p([1., 2., 3., 4.]), p([0., 1., 0., 1.]), p([1., 1., 2., 2.]), p([1., 1., 4., 4.])]
            }),
            &[tensor(&[1, 2, 2], &[0f32, 3., 1.5, 5.])],
        ),
        case(
            "epsilon keeps a variance of nothing finite",
            op(0.25),
            &with(tensor(&[1, 1, 2], &[1f32, 3.]), [t(&[1.]), t(&[0.]), t(&[1.]), t(&[0.])]),
            &[tensor(&[1, 1, 2], &[0f32, 4.])],
        ),
        case(
            "NaN and infinities",
            op(0.),
            &with(tensor(&[1, 1, 3], &[f32::NAN, f32::INFINITY, -1.]), [t(&[1.]), t(&[0.]), t(&[0.]), t(&[1.])]),
            &[tensor(&[1, 1, 3], &[f32::NAN, f32::INFINITY, -1.])],
        ),
        case(
            "a negative variance",
            op(0.),
            &with(tensor(&[1, 1, 1], &[1f32]), [t(&[1.]), t(&[0.]), t(&[0.]), t(&[-1.])]),
            &[tensor(&[1, 1, 1], &[f32::NAN])],
        ),
        case(
            "no image",
            op(0.),
            &with(tensor::<f32>(&[0, 2, 3], &[]), parameters()),
            &[tensor::<f32>(&[0, 2, 3], &[])],
        ),
        case(
            "f64",
            op(0.),
            &with(tensor(&[1, 1, 2], &[1f64, 3.]), [2., 1., 1., 1.].map(|value| tensor(&[1], &[value]))),
            &[tensor(&[1, 1, 2], &[1f64, 5.])],
        ),
        case(
            "f16, parameters of f32",
            op(0.),
            &with(tensor(&[1, 2, 2], &halves(&[1., 2., 3., 4.])), parameters()),
            &[tensor(&[1, 2, 2], &halves(&[1., 3., 5.5, 6.]))],
        ),
        case(
            "bf16, scale of f16, statistics of f64",
            op(0.),
            &with(tensor(&[1, 1, 2], &brains(&[1., 3.])), {
                let half = |value: f32| tensor(&[1], &halves(&[value]));
                [half(2.), half(1.), tensor(&[1], &[1f64]), tensor(&[1], &[1f64])]
            }),
            &[tensor(&[1, 1, 2], &brains(&[1., 5.]))],
        ),
    ]
}
