//! `Clip`.

use super::{SAME_OUTPUT, infer_unary, map1, operations, unlisted};
use crate::op::{Arity, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Element, Tensor, bf16, f16};
use smallvec::SmallVec;

/// `x`, not below `min`, then not above `max`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Clip;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Clip",
    doc: "`x`, not below `min`, then not above `max`, so that `max` wins where it is less than `min`. A bound has one \
          element; one that is omitted, or NaN, does not bound. NaN stays NaN; of zeros, that of `x` is kept.",
    attributes: &[],
    inputs: &[
        Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "min", ty: TypeRef::Var(0), arity: Arity::Optional },
        Param { name: "max", ty: TypeRef::Var(0), arity: Arity::Optional },
    ],
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: NUMERIC }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Clip {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        for (i, name) in [(1, "min"), (2, "max")] {
            if !ctx.has(i) {
                continue;
            }
            let dims = ctx.dims(i)?;
            if dims.iter().any(|dim| dim.known().is_some_and(|n| n != 1)) {
                return Err(OpError::shape(format!("`{name}` has shape {dims}, expected one element")));
            }
        }
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => clip::<f32>(ctx),
            DType::F64 => clip::<f64>(ctx),
            DType::F16 => clip::<f16>(ctx),
            DType::BF16 => clip::<bf16>(ctx),
            DType::I64 => clip::<i64>(ctx),
            DType::I32 => clip::<i32>(ctx),
            DType::I16 => clip::<i16>(ctx),
            DType::I8 => clip::<i8>(ctx),
            DType::U64 => clip::<u64>(ctx),
            DType::U32 => clip::<u32>(ctx),
            DType::U16 => clip::<u16>(ctx),
            DType::U8 => clip::<u8>(ctx),
            other => Err(unlisted("Clip", other)),
        }
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        operations(outputs, 2)
    }
}

fn clip<T: Element + PartialOrd>(ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
    let bound = |i: usize| match ctx.optional(i) {
        None => Ok(None),
        Some(bound) => match bound.values::<T>()?[..] {
            [bound] => Ok(Some(bound)),
            _ => Err(OpError::shape(format!("a bound has shape {}, expected one element", bound.shape()))),
        },
    };
    let (min, max) = (bound(1)?, bound(2)?);
    map1(ctx, |x: T| {
        let x = min.filter(|min| x < *min).unwrap_or(x);
        max.filter(|max| x > *max).unwrap_or(x)
    })
}

fn cases() -> Vec<Case> {
    let floats = |values: &[f32]| tensor(&[values.len()], values);
    let with = |name, inputs: Vec<Option<Tensor>>, y| Case { name, op: Clip.into(), inputs, outputs: vec![y] };
    let (two, six) = (Tensor::scalar(2f32), Tensor::scalar(6f32));
    vec![
        case("both bounds", Clip, &[floats(&[1., 3., 7.]), two.clone(), six.clone()], &[floats(&[2., 3., 6.])]),
        with(
            "the least alone",
            vec![Some(floats(&[1., f32::INFINITY])), Some(two.clone())],
            floats(&[2., f32::INFINITY]),
        ),
        with(
            "the greatest alone",
            vec![Some(floats(&[f32::NEG_INFINITY, 7.])), None, Some(six.clone())],
            floats(&[f32::NEG_INFINITY, 6.]),
        ),
        with("no bounds", vec![Some(floats(&[f32::INFINITY, -1.]))], floats(&[f32::INFINITY, -1.])),
        case("the greatest wins", Clip, &[floats(&[1., 3., 7.]), six.clone(), two.clone()], &[floats(&[2., 2., 2.])]),
        case(
            "NaN, signed zeros, infinities",
            Clip,
            &[floats(&[f32::NAN, -0., 0., f32::INFINITY, f32::NEG_INFINITY]), Tensor::scalar(0f32), six.clone()],
            &[floats(&[f32::NAN, -0., 0., 6., 0.])],
        ),
        case("a bound that is NaN", Clip, &[floats(&[1., 7.]), Tensor::scalar(f32::NAN), six], &[floats(&[1., 6.])]),
        case(
            "a bound of one dimension",
            Clip,
            &[tensor(&[1, 2], &[1f32, 3.]), floats(&[2.])],
            &[tensor(&[1, 2], &[2f32, 3.])],
        ),
        case(
            "f64",
            Clip,
            &[tensor(&[2], &[-1f64, 9.]), Tensor::scalar(0f64), Tensor::scalar(6f64)],
            &[tensor(&[2], &[0f64, 6.])],
        ),
        case(
            "f16",
            Clip,
            &[Tensor::scalar(f16::from_f32(7.)), Tensor::scalar(f16::ZERO), Tensor::scalar(f16::from_f32(6.))],
            &[Tensor::scalar(f16::from_f32(6.))],
        ),
        case(
            "bf16",
            Clip,
            &[Tensor::scalar(bf16::from_f32(-7.)), Tensor::scalar(bf16::from_f32(-6.))],
            &[Tensor::scalar(bf16::from_f32(-6.))],
        ),
        case(
            "i64",
            Clip,
            &[tensor(&[3], &[i64::MIN, 0, i64::MAX]), Tensor::scalar(-1i64), Tensor::scalar(1i64)],
            &[tensor(&[3], &[-1i64, 0, 1])],
        ),
        case(
            "u8",
            Clip,
            &[tensor(&[3], &[0u8, 100, 255]), Tensor::scalar(1u8), Tensor::scalar(200u8)],
            &[tensor(&[3], &[1u8, 100, 200])],
        ),
        case("empty", Clip, &[tensor::<f32>(&[0], &[]), two], &[tensor::<f32>(&[0], &[])]),
    ]
}
