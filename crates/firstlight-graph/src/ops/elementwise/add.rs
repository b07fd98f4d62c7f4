//! `Add`.

use super::{BINARY_INPUTS, SAME_OUTPUT, infer_binary, map2, unlisted};
use crate::op::{Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor, bf16, f16};
use smallvec::SmallVec;

/// Sum of two tensors, element by element, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Add;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Add",
    doc: "Sum of two tensors, element by element, with broadcasting. Integers wrap.",
    attributes: &[],
    inputs: BINARY_INPUTS,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: NUMERIC }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Add {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, None)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => map2(ctx, |a: f32, b: f32| a + b),
            DType::F64 => map2(ctx, |a: f64, b: f64| a + b),
            DType::F16 => map2(ctx, |a: f16, b: f16| f16::from_f32(a.to_f32() + b.to_f32())),
            DType::BF16 => map2(ctx, |a: bf16, b: bf16| bf16::from_f32(a.to_f32() + b.to_f32())),
            DType::I64 => map2(ctx, i64::wrapping_add),
            DType::I32 => map2(ctx, i32::wrapping_add),
            DType::I16 => map2(ctx, i16::wrapping_add),
            DType::I8 => map2(ctx, i8::wrapping_add),
            DType::U64 => map2(ctx, u64::wrapping_add),
            DType::U32 => map2(ctx, u32::wrapping_add),
            DType::U16 => map2(ctx, u16::wrapping_add),
            DType::U8 => map2(ctx, u8::wrapping_add),
            other => Err(unlisted("Add", other)),
        }
    }
}

fn cases() -> Vec<Case> {
    let case = |name, a: Tensor, b: Tensor, c: Tensor| Case {
        name,
        op: Add.into(),
        inputs: vec![Some(a), Some(b)],
        outputs: vec![c],
    };
    let floats = |dims: &[usize], values: &[f32]| Tensor::from_slice(dims, values).unwrap_or_else(|e| panic!("{e}"));
    vec![
        case("same shape", floats(&[2], &[1., 2.]), floats(&[2], &[3., 4.]), floats(&[2], &[4., 6.])),
        case(
            "broadcast",
            floats(&[2, 1], &[1., 2.]),
            floats(&[2], &[10., 20.]),
            floats(&[2, 2], &[11., 21., 12., 22.]),
        ),
        case("empty", floats(&[0], &[]), floats(&[1], &[1.]), floats(&[0], &[])),
        case("integers wrap", Tensor::scalar(i8::MAX), Tensor::scalar(1i8), Tensor::scalar(i8::MIN)),
    ]
}
