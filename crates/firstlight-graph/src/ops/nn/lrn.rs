//! `LRN`.

use super::arith::{Math, Real, Stored, widened};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::elementwise::{operations, unlisted};
use crate::ops::layout::check_output;
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, bf16, f16};
use smallvec::SmallVec;
use std::ops::Range;

/// Elements divided by a power of the sum of squares over neighbouring channels (local response normalisation).
///
/// `base = bias + alpha / size * sum(x * x)` over the channels of [`LRN::region`], `y = x / base^beta`: every operation
/// is a rounding of its own, the sum is taken in ascending order from +0. For beta 0.5 the power is a square root, for
/// 0.75 the root times the root of the root, for 1 the base itself; others are taken in f64.
#[derive(Clone, Debug, PartialEq)]
pub struct LRN {
    /// Factor of the squares' mean.
    pub alpha: f32,
    /// The exponent.
    pub beta: f32,
    /// Added to the mean.
    pub bias: f32,
    /// Channels whose squares are added.
    pub size: i64,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "LRN",
    doc: "Elements divided by `(bias + alpha / size * sum(x * x)) ^ beta`, the sum taken over the channels from `(size - \
          1) / 2` before the element's, rounded down, to as many behind it, rounded up, where they exist. 16-bit floats \
          are computed in f32 and rounded once.",
    attributes: &[
        AttrDoc { name: "alpha", doc: "factor of the squares' mean" },
        AttrDoc { name: "beta", doc: "the exponent" },
        AttrDoc { name: "bias", doc: "added to the mean" },
        AttrDoc { name: "size", doc: "channels whose squares are added, 1 or more" },
    ],
    inputs: &[Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One }],
    outputs: &[Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for LRN {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![
            ("alpha", AttrValue::Float(self.alpha)),
            ("beta", AttrValue::Float(self.beta)),
            ("bias", AttrValue::Float(self.bias)),
            ("size", AttrValue::Int(self.size)),
        ]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let x = ctx.dims(0)?;
        self.check(x.rank())?;
        Ok(OutInfo::new(ctx.dtype(0)?, x.clone()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.compute::<f32>(ctx),
            DType::F64 => self.compute::<f64>(ctx),
            DType::F16 => self.compute::<f16>(ctx),
            DType::BF16 => self.compute::<bf16>(ctx),
            other => Err(unlisted("LRN", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), self.size.unsigned_abs().saturating_add(4))
    }
}

impl LRN {
    /// The channels whose squares are added for an element of channel `channel`.
    pub fn region(&self, channel: usize, channels: usize) -> Range<usize> {
        let size = usize::try_from(self.size).unwrap_or(0).max(1);
        channel.saturating_sub((size - 1) / 2)..channel.saturating_add(size / 2).saturating_add(1).min(channels)
    }

    fn check(&self, rank: usize) -> Result<(), OpError> {
        match (self.size, rank) {
            (..1, _) => Err(OpError::value(format!("size is {}, expected 1 or more", self.size))),
            (_, ..2) => Err(OpError::shape(format!("LRN takes batch, channels and spatial dimensions; got {rank}"))),
            _ => Ok(()),
        }
    }

    fn power<M: Real>(&self, base: M) -> M {
        let root = |x: M| M::from_f64(x.to_f64().sqrt());
        match self.beta {
            0.5 => root(base),
            0.75 => root(base).times(root(root(base))),
            1.0 => base,
            beta => M::from_f64(libm::pow(base.to_f64(), beta.into())),
        }
    }

    fn compute<T: Stored>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError>
    where
        T::Math: Real,
    {
        let x = ctx.input(0)?;
        let shape = x.shape().clone();
        self.check(shape.rank())?;
        check_output(ctx, 0, &shape)?;
        let number = T::Math::from_f64;
        let factor = number(self.alpha.into()).over(number(self.size as f64));
        let values = widened::<T>(&x)?;
        let y = ctx.output(0)?.values_mut::<T>()?;
        if values.is_empty() {
            return Ok(());
        }
        let (channels, plane) = (shape[1], shape[2..].iter().product::<usize>());
        for (i, to) in y.iter_mut().enumerate() {
            let channel = i / plane % channels;
            let mut sum = T::Math::ZERO;
            for other in self.region(channel, channels) {
                let x = values[i - channel * plane + other * plane];
                sum = sum.plus(x.times(x));
            }
            let base = number(self.bias.into()).plus(factor.times(sum));
            *to = T::narrow(values[i].over(self.power(base)));
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let op = |size, beta| LRN { alpha: size as f32, beta, bias: 1., size };
    let halves = |values: &[f32]| values.iter().map(|&value| f16::from_f32(value)).collect::<Vec<_>>();
    let brains = |values: &[f32]| values.iter().map(|&value| bf16::from_f32(value)).collect::<Vec<_>>();
    vec![
        // Bases 1 + 4 + 1, 1 + 4 + 1 + 9, 1 + 1 + 9 + 0, 1 + 9 + 0.
        case(
            "three channels, beta 1",
            op(3, 1.),
            &[tensor(&[1, 4, 1], &[2f32, 1., 3., 0.])],
            &[tensor(&[1, 4, 1], &[2f32 / 6., 1. / 15., 3. / 11., 0.])],
        ),
        // An even size reaches one further behind: bases 1 + 4 + 1, 1 + 1 + 9, 1 + 9.
        case(
            "two channels, beta 1",
            op(2, 1.),
            &[tensor(&[1, 3, 1], &[2f32, 1., 3.])],
            &[tensor(&[1, 3, 1], &[2f32 / 6., 1. / 11., 3. / 10.])],
        ),
        case(
            "beta 0.5, two images and planes",
            LRN { alpha: 1., beta: 0.5, bias: 0., size: 1 },
            &[tensor(&[2, 1, 1, 2], &[2f32, -4., 8., 0.5])],
            &[tensor(&[2, 1, 1, 2], &[1f32, -1., 1., 1.])],
        ),
        case(
            "beta 0.75",
            LRN { alpha: 1., beta: 0.75, bias: 0., size: 1 },
            &[tensor(&[1, 1, 2], &[4f32, 16.])],
            &[tensor(&[1, 1, 2], &[0.5f32, 0.25])],
        ),
        case(
            "beta 2",
            LRN { alpha: 2., beta: 2., bias: 2., size: 1 },
            &[tensor(&[1, 1, 2], &[1f32, 0.])],
            &[tensor(&[1, 1, 2], &[0.0625f32, 0.])],
        ),
        case(
            "no spatial dimension",
            op(9, 1.),
            &[tensor(&[1, 2], &[1f32, 2.])],
            &[tensor(&[1, 2], &[1f32 / 6., 2. / 6.])],
        ),
        case(
            "NaN reaches its neighbours",
            op(3, 1.),
            &[tensor(&[1, 4], &[f32::NAN, 1., 1., 1.])],
            &[tensor(&[1, 4], &[f32::NAN, f32::NAN, 0.25, 1. / 3.])],
        ),
        case(
            "a base below 0",
            LRN { bias: -2., ..op(1, 0.75) },
            &[tensor(&[1, 1], &[1f32])],
            &[tensor(&[1, 1], &[f32::NAN])],
        ),
        case("no image", op(3, 0.75), &[tensor::<f32>(&[0, 2, 3], &[])], &[tensor::<f32>(&[0, 2, 3], &[])]),
        case("f64", op(1, 1.), &[tensor(&[1, 1], &[2f64])], &[tensor(&[1, 1], &[0.4f64])]),
        case(
            "f16 computes in f32",
            op(1, 0.5),
            &[tensor(&[1, 1], &halves(&[60000.]))],
            &[tensor(&[1, 1], &halves(&[1.]))],
        ),
        case("bf16", op(1, 1.), &[tensor(&[1, 1], &brains(&[1.]))], &[tensor(&[1, 1], &brains(&[0.5]))]),
    ]
}
