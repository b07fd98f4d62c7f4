//! `Expand`.

use super::{case_tensor, copy_view};
use crate::infer::broadcast_dims;
use crate::op::{Arity, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::elementwise::broadcast_view;
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, SymShape, Tensor};
use smallvec::SmallVec;

/// A tensor broadcast to a given shape.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Expand;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Expand",
    doc: "A tensor broadcast to a given shape. A wanted size of 1, or a rank below the input's, keeps the input's sizes.",
    attributes: &[],
    inputs: &[
        Param { name: "input", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "shape", ty: TypeRef::Fixed(DType::I64), arity: Arity::One },
    ],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Expand {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let wanted = ctx.ints(1)?;
        let sizes: Result<SymShape, _> = wanted.iter().map(|&size| usize::try_from(size).map(Dim::Known)).collect();
        let sizes = sizes.map_err(|_| OpError::value(format!("cannot expand to {wanted:?}: a size is negative")))?;
        Ok(OutInfo::new(ctx.dtype(0)?, broadcast_dims(ctx.dims(0)?, &sizes)?).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let shape = ctx.output(0)?.shape().clone();
        let view = broadcast_view(&ctx.input(0)?, &shape)?;
        copy_view(ctx, &view)
    }
}

fn cases() -> Vec<Case> {
    let case = |name, x: Tensor, wanted: &[i64], y: Tensor| Case {
        name,
        op: Expand.into(),
        inputs: vec![Some(x), Some(case_tensor(&[wanted.len()], wanted))],
        outputs: vec![y],
    };
    let t = case_tensor::<f32>;
    vec![
        case("a column", t(&[2, 1], &[1., 2.]), &[2, 3], t(&[2, 3], &[1., 1., 1., 2., 2., 2.])),
        case("more dimensions", t(&[2], &[1., 2.]), &[2, 1, 2], t(&[2, 1, 2], &[1., 2., 1., 2.])),
        case("wanted sizes of 1 keep", t(&[1, 2], &[1., 2.]), &[2, 1], t(&[2, 2], &[1., 2., 1., 2.])),
        case("fewer wanted sizes", t(&[2, 1], &[1., 2.]), &[2], t(&[2, 2], &[1., 1., 2., 2.])),
        case("a scalar", t(&[], &[5.]), &[2], t(&[2], &[5., 5.])),
        case("to rank 0", t(&[], &[5.]), &[], t(&[], &[5.])),
        case("to nothing", t(&[1], &[5.]), &[0], t(&[0], &[])),
    ]
}
