//! `Fused`.

use super::conv::Conv;
use super::gemm::Gemm;
use super::matmul::MatMul;
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::Op;
use crate::ops::elementwise::broadcast_view;
use crate::ops::layout::case_tensor;
use crate::{InferCtx, OpError, OutInfo, broadcast_dims};
use firstlight_tensor::{DType, Dim};
use smallvec::SmallVec;

/// A Conv, Gemm or MatMul with what follows it: a sum, then a Relu, each rounded as by an op of its own.
///
/// Made by passes; no file holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fused {
    /// A Conv, Gemm or MatMul; it reads the inputs before the addend.
    pub base: Box<Op>,
    /// Whether results that are not greater than 0 become +0 at the end.
    pub relu: bool,
}

/// Index of the input that is added to the base's result.
pub const ADDEND: usize = 3;

pub const INFO: OpInfo = OpInfo {
    name: "Fused",
    doc: "A Conv, Gemm or MatMul, then the sum with `addend` where it is given, then Relu where `relu` is true; each \
          rounded as by an op of its own. `addend` broadcasts to the result of the base and may not make it larger. \
          Made by passes.",
    attributes: &[
        AttrDoc { name: "base", doc: "the op whose result is added to; its attributes follow" },
        AttrDoc { name: "relu", doc: "whether results that are not greater than 0 become +0 at the end" },
    ],
    inputs: &[
        Param { name: "A", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "B", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "C", ty: TypeRef::Var(0), arity: Arity::Optional },
        Param { name: "addend", ty: TypeRef::Var(0), arity: Arity::Optional },
    ],
    outputs: &[Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: &[DType::F32] }],
    exactness: Exactness::Rounding,
    cases,
};

impl Fused {
    fn check(&self) -> Result<(), OpError> {
        match &*self.base {
            Op::Conv(_) | Op::Gemm(_) | Op::MatMul(_) => Ok(()),
            other => Err(OpError::unsupported(format!("{} cannot be the base of Fused", other.info().name))),
        }
    }
}

impl OpDef for Fused {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        let mut attributes =
            vec![("base", AttrValue::Text(self.base.info().name.to_owned())), ("relu", AttrValue::Bool(self.relu))];
        attributes.extend(self.base.def().attributes());
        attributes
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        self.check()?;
        let outputs = self.base.def().infer(ctx)?;
        if let (true, Some(output)) = (ctx.has(ADDEND), outputs.first()) {
            let addend = ctx.dims(ADDEND)?;
            let sum = broadcast_dims(&output.dims, addend)?;
            let grows = |(dim, sum): (&Dim, &Dim)| matches!((dim.known(), sum.known()), (Some(a), Some(b)) if a != b);
            if sum.rank() != output.dims.rank() || output.dims.iter().zip(sum.iter()).any(grows) {
                return Err(OpError::shape(format!("an addend {addend} makes a result {} larger", output.dims)));
            }
        }
        Ok(outputs)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.check()?;
        self.base.def().reference(ctx)?;
        let addend = ctx.optional(ADDEND);
        let output = ctx.output(0)?;
        let shape = output.shape().clone();
        let output = output.values_mut::<f32>()?;
        if let Some(addend) = addend {
            let addend = broadcast_view(&addend, &shape)?;
            for (y, x) in output.iter_mut().zip(addend.values::<f32>()?.iter()) {
                *y += x;
            }
        }
        if self.relu {
            for y in output.iter_mut() {
                *y = if *y <= 0.0 { 0.0 } else { *y };
            }
        }
        Ok(())
    }

    fn n_operations(&self, inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        self.base.def().n_operations(inputs, outputs)
    }
}

fn cases() -> Vec<Case> {
    let t = case_tensor::<f32>;
    let case = |name, base: Op, relu, inputs: Vec<Option<_>>, y| Case {
        name,
        op: Fused { base: base.into(), relu }.into(),
        inputs,
        outputs: vec![y],
    };
    let x = t(&[1, 1, 5], &[1., 2., 3., 4., 5.]);
    let w = t(&[1, 1, 3], &[1., 0., -1.]);
    let (a, b) = (t(&[2, 2], &[1., 2., 3., 4.]), t(&[2, 2], &[1., 0., 0., -1.]));
    vec![
        case(
            "Conv, sum, Relu",
            Conv::default().into(),
            true,
            vec![Some(x.clone()), Some(w.clone()), Some(t(&[1], &[0.5])), Some(t(&[1, 1, 3], &[1., 2., 3.]))],
            t(&[1, 1, 3], &[0., 0.5, 1.5]),
        ),
        case("Conv, Relu", Conv::default().into(), true, vec![Some(x), Some(w)], t(&[1, 1, 3], &[0., 0., 0.])),
        case(
            "MatMul, a row added",
            MatMul::default().into(),
            false,
            vec![Some(a.clone()), Some(b.clone()), None, Some(t(&[2], &[10., 20.]))],
            t(&[2, 2], &[11., 18., 13., 16.]),
        ),
        case(
            "Gemm, Relu",
            Gemm { trans_b: true, ..Gemm::default() }.into(),
            true,
            vec![Some(a), Some(b), Some(t(&[1, 2], &[-2., 0.]))],
            t(&[2, 2], &[0., 0., 1., 0.]),
        ),
    ]
}
