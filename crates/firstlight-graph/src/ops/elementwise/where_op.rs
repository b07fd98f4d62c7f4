//! `Where`.

use super::{broadcast_view, unlisted};
use crate::infer::broadcast_dims;
use crate::op::{Arity, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{bools, case, tensor};
use crate::ops::checks::expect_dtype;
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor};
use smallvec::SmallVec;

/// Elements of the second input where the condition holds, else of the third, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Where;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Where",
    doc: "Elements of X where the condition holds, else of Y, with broadcasting of all three.",
    attributes: &[],
    inputs: &[
        Param { name: "condition", ty: TypeRef::Fixed(DType::Bool), arity: Arity::One },
        Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One },
    ],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Where {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let values = broadcast_dims(ctx.dims(1)?, ctx.dims(2)?)?;
        Ok(OutInfo::new(ctx.dtype(1)?, broadcast_dims(ctx.dims(0)?, &values)?).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(1)?.dtype().bits() {
            8 => select::<u8>(ctx),
            16 => select::<u16>(ctx),
            32 => select::<u32>(ctx),
            64 => select::<u64>(ctx),
            128 => select::<[u64; 2]>(ctx),
            _ => Err(unlisted("Where", ctx.input(1)?.dtype())),
        }
    }
}

fn select<W: bytemuck::Pod>(ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
    let (condition, x, y) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    let output = ctx.output(0)?;
    expect_dtype("input 2", x.dtype(), y.dtype())?;
    expect_dtype("output 0", x.dtype(), output.dtype())?;
    let shape = output.shape().clone();
    let output = output.words_mut::<W>()?;
    let condition = broadcast_view(&condition, &shape)?.bools()?;
    let (x, y) = (broadcast_view(&x, &shape)?, broadcast_view(&y, &shape)?);
    let (x, y) = (x.words::<W>()?, y.words::<W>()?);
    for (((out, condition), &x), &y) in output.iter_mut().zip(condition).zip(x.iter()).zip(y.iter()) {
        *out = if condition { x } else { y };
    }
    Ok(())
}

fn cases() -> Vec<Case> {
    vec![
        case(
            "same shape",
            Where,
            &[
                bools(&[2, 2], &[true, false, true, true]),
                tensor(&[2, 2], &[1f32, 2., 3., 4.]),
                tensor(&[2, 2], &[9f32; 4]),
            ],
            &[tensor(&[2, 2], &[1f32, 9., 3., 4.])],
        ),
        case(
            "all three broadcast",
            Where,
            &[bools(&[2, 1, 1], &[true, false]), tensor(&[2, 1], &[1i64, 2]), tensor(&[2], &[-1i64, -2])],
            &[tensor(&[2, 2, 2], &[1i64, 1, 2, 2, -1, -2, -1, -2])],
        ),
        case(
            "elements keep their bits",
            Where,
            &[bools(&[2], &[true, false]), tensor(&[2], &[-0f64, 1.]), Tensor::scalar(f64::NEG_INFINITY)],
            &[tensor(&[2], &[-0f64, f64::NEG_INFINITY])],
        ),
        case(
            "bools",
            Where,
            &[bools(&[], &[false]), bools(&[], &[true]), bools(&[], &[false])],
            &[bools(&[], &[false])],
        ),
        case(
            "empty",
            Where,
            &[bools(&[1], &[true]), tensor::<u16>(&[0], &[]), tensor(&[1], &[1u16])],
            &[tensor::<u16>(&[0], &[])],
        ),
    ]
}
