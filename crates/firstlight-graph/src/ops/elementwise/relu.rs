//! `Relu`.

use super::{SAME_OUTPUT, UNARY_INPUT, infer_unary, map1, unlisted};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;

/// `x` where it is above 0, else 0.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Relu;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Relu",
    doc: "`x` where it is above 0, else 0. NaN stays NaN; -0 gives 0.",
    attributes: &[],
    inputs: UNARY_INPUT,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: NUMERIC }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Relu {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_unary(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => map1(ctx, |x: f32| if x <= 0.0 { 0.0 } else { x }),
            DType::F64 => map1(ctx, |x: f64| if x <= 0.0 { 0.0 } else { x }),
            DType::F16 => map1(ctx, |x: f16| if x <= f16::ZERO { f16::ZERO } else { x }),
            DType::BF16 => map1(ctx, |x: bf16| if x <= bf16::ZERO { bf16::ZERO } else { x }),
            DType::I64 => map1(ctx, |x: i64| x.max(0)),
            DType::I32 => map1(ctx, |x: i32| x.max(0)),
            DType::I16 => map1(ctx, |x: i16| x.max(0)),
            DType::I8 => map1(ctx, |x: i8| x.max(0)),
            DType::U64 => map1(ctx, |x: u64| x),
            DType::U32 => map1(ctx, |x: u32| x),
            DType::U16 => map1(ctx, |x: u16| x),
            DType::U8 => map1(ctx, |x: u8| x),
            other => Err(unlisted("Relu", other)),
        }
    }
}

fn cases() -> Vec<Case> {
    let floats = |values: &[f32]| Tensor::from_slice([values.len()], values).unwrap_or_else(|e| panic!("{e}"));
    vec![Case {
        name: "signs, zeros and NaN",
        op: Relu.into(),
        inputs: vec![Some(floats(&[-1., -0., 0., 2., f32::NAN, f32::NEG_INFINITY]))],
        outputs: vec![floats(&[0., 0., 0., 2., f32::NAN, 0.])],
    }]
}
