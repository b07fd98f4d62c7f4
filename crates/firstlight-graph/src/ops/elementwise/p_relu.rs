//! `PRelu`.

use super::{SAME_OUTPUT, infer_binary, map2, unlisted};
use crate::op::{Arity, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::DType::{self, BF16, F16, F32, F64, I32, I64, U32, U64};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// `x` where it is not negative, `slope * x` where it is.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PRelu;

const TYPES: &[DType] = &[F32, F64, F16, BF16, I64, I32, U64, U32];

pub(crate) const INFO: OpInfo = OpInfo {
    name: "PRelu",
    doc: "`x` where it is not negative, `slope * x` where it is. The slope broadcasts to `x`, never the other way. NaN \
          stays NaN; integers wrap.",
    attributes: &[],
    inputs: &[
        Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "slope", ty: TypeRef::Var(0), arity: Arity::One },
    ],
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: TYPES }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for PRelu {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (x, slope) = (ctx.dims(0)?, ctx.dims(1)?);
        let both = infer_binary(ctx, None)?;
        let grows = |(of_both, of_x): (&firstlight_tensor::Dim, &firstlight_tensor::Dim)| {
            of_x.known().is_some_and(|size| of_both.known().is_some_and(|both| both != size))
        };
        if slope.rank() > x.rank() || both.iter().any(|out| out.dims.iter().zip(x.iter()).any(grows)) {
            return Err(OpError::shape(format!("a slope {slope} does not broadcast to {x}")));
        }
        Ok(OutInfo::new(ctx.dtype(0)?, x.clone()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let narrow = |x: f32, slope: f32| if x < 0.0 { x * slope } else { x };
        match ctx.input(0)?.dtype() {
            F32 => map2(ctx, narrow),
            F64 => map2(ctx, |x: f64, slope: f64| if x < 0.0 { x * slope } else { x }),
            F16 => map2(ctx, |x: f16, slope: f16| f16::from_f32(narrow(x.to_f32(), slope.to_f32()))),
            BF16 => map2(ctx, |x: bf16, slope: bf16| bf16::from_f32(narrow(x.to_f32(), slope.to_f32()))),
            I64 => map2(ctx, |x: i64, slope: i64| if x < 0 { x.wrapping_mul(slope) } else { x }),
            I32 => map2(ctx, |x: i32, slope: i32| if x < 0 { x.wrapping_mul(slope) } else { x }),
            U64 => map2(ctx, |x: u64, _: u64| x),
            U32 => map2(ctx, |x: u32, _: u32| x),
            other => Err(unlisted("PRelu", other)),
        }
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "a slope a row",
            PRelu,
            &[tensor(&[2, 3], &[-1f32, 0., 2., -4., -0., f32::NEG_INFINITY]), tensor(&[2, 1], &[0.5f32, 2.])],
            &[tensor(&[2, 3], &[-0.5f32, 0., 2., -8., -0., f32::NEG_INFINITY])],
        ),
        case(
            "NaN, and a negative slope",
            PRelu,
            &[tensor(&[2], &[f32::NAN, -3.]), tensor(&[1], &[-1f32])],
            &[tensor(&[2], &[f32::NAN, 3.])],
        ),
        case("integers", PRelu, &[tensor(&[2], &[-3i32, 3]), tensor(&[2], &[2i32, 2])], &[tensor(&[2], &[-6i32, 3])]),
        case("unsigned", PRelu, &[Tensor::scalar(u64::MAX), Tensor::scalar(2u64)], &[Tensor::scalar(u64::MAX)]),
        case("f64", PRelu, &[Tensor::scalar(-1f64), Tensor::scalar(0.25f64)], &[Tensor::scalar(-0.25f64)]),
        case(
            "f16",
            PRelu,
            &[Tensor::scalar(f16::from_f32(-2.)), Tensor::scalar(f16::from_f32(0.5))],
            &[Tensor::scalar(f16::from_f32(-1.))],
        ),
        case("bf16", PRelu, &[Tensor::scalar(bf16::ONE), Tensor::scalar(bf16::ZERO)], &[Tensor::scalar(bf16::ONE)]),
        case("empty", PRelu, &[tensor::<f32>(&[0, 2], &[]), tensor(&[2], &[1f32, 2.])], &[tensor::<f32>(&[0, 2], &[])]),
    ]
}
