//! `Size`.

use crate::op::{Arity, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Shape, Tensor};
use smallvec::SmallVec;

/// The input's number of elements.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Size;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Size",
    doc: "The input's number of elements; 1 for a scalar.",
    attributes: &[],
    inputs: &[Param { name: "data", ty: TypeRef::Var(0), arity: Arity::One }],
    outputs: &[Param { name: "size", ty: TypeRef::Fixed(DType::I64), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: &DType::ALL }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Size {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let mut info = OutInfo::known(DType::I64, Shape::scalar());
        if let Some(shape) = ctx.dims(0)?.known() {
            info.value = Some(Tensor::scalar(count(&shape)?));
        }
        Ok(info.one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let n = count(ctx.input(0)?.shape())?;
        match ctx.output(0)?.values_mut::<i64>()? {
            [out] => *out = n,
            other => return Err(OpError::shape(format!("output 0 has {} elements, expected 1", other.len()))),
        }
        Ok(())
    }

    fn n_operations(&self, _inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        0
    }
}

fn count(shape: &Shape) -> Result<i64, OpError> {
    let n = shape.n_elems().and_then(|n| i64::try_from(n).ok());
    n.ok_or_else(|| OpError::shape(format!("the number of elements of {shape} does not fit i64")))
}

fn cases() -> Vec<Case> {
    vec![
        case("matrix", Size, &[tensor(&[2, 3], &[0f32; 6])], &[Tensor::scalar(6i64)]),
        case("rank 0", Size, &[Tensor::scalar(1u8)], &[Tensor::scalar(1i64)]),
        case("empty", Size, &[tensor::<f32>(&[3, 0], &[])], &[Tensor::scalar(0i64)]),
    ]
}
