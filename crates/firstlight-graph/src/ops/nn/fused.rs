//! `Fused`.

use super::conv::Conv;
use super::gemm::Gemm;
use super::matmul::MatMul;
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::elementwise::chain::{Operand, Step, infer_steps, run_steps, steps_text};
use crate::ops::elementwise::{broadcast_view, operations};
use crate::ops::layout::case_tensor;
use crate::ops::{Add, Clip, HardSwish, Mul, Op};
use crate::{InferCtx, OpError, OutInfo, ValueInfo, broadcast_dims};
use firstlight_tensor::{DType, Dim, Tensor, TensorView};
use smallvec::SmallVec;

/// A Conv, Gemm or MatMul with what follows it: a sum, a Relu, elementwise ops, each rounded as by an op of its own.
///
/// Made by passes; no file holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fused {
    /// A Conv, Gemm or MatMul; it reads the inputs before the addend.
    pub base: Box<Op>,
    /// Whether results that are not greater than 0 then become +0.
    pub relu: bool,
    /// Elementwise ops at the end, which keep the shape. Their input 0 is the result so far, input `i` the op's input
    /// `ADDEND + i`.
    pub then: Vec<Step>,
}

/// Index of the input that is added to the base's result. Inputs of the steps follow it.
pub const ADDEND: usize = 3;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Fused",
    doc: "A Conv, Gemm or MatMul, then the sum with `addend` where it is given, then Relu where `relu` is true, then the \
          elementwise ops of `then`; each rounded as by an op of its own. What the result is combined with broadcasts to \
          it and may not make it larger. Made by passes.",
    attributes: &[
        AttrDoc { name: "base", doc: "the op whose result is added to; its attributes follow" },
        AttrDoc { name: "relu", doc: "whether results that are not greater than 0 then become +0" },
        AttrDoc {
            name: "then",
            doc: "elementwise ops at the end, where there are any; `x0` is the result so far, `x1` the input after \
                  `addend`, `t0` the result of the first of them",
        },
    ],
    inputs: &[
        Param { name: "A", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "B", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "C", ty: TypeRef::Var(0), arity: Arity::Optional },
        Param { name: "addend", ty: TypeRef::Var(0), arity: Arity::Optional },
        Param { name: "others", ty: TypeRef::Var(0), arity: Arity::Variadic(0) },
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
        if !self.then.is_empty() {
            attributes.push(("then", AttrValue::Text(steps_text(&self.then))));
        }
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
        if let (false, Some(output)) = (self.then.is_empty(), outputs.first()) {
            let mut inputs: SmallVec<[ValueInfo; 4]> =
                SmallVec::from_iter([ValueInfo { dtype: output.dtype, dims: output.dims.clone(), value: None }]);
            for i in ADDEND + 1..ctx.n_inputs() {
                inputs.push(ValueInfo { value: None, ..ctx.input(i)?.clone() });
            }
            let last = infer_steps(&self.then, &inputs)?;
            let differ = |(a, b): (&Dim, &Dim)| matches!((a.known(), b.known()), (Some(a), Some(b)) if a != b);
            if last.dims.rank() != output.dims.rank() || last.dims.iter().zip(output.dims.iter()).any(differ) {
                return Err(OpError::shape(format!("steps make a result {} one of {}", output.dims, last.dims)));
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
        if !self.then.is_empty() {
            let first = Tensor::from_slice(shape.clone(), output).map_err(|error| OpError::value(error.to_string()))?;
            let mut inputs: SmallVec<[TensorView<'_>; 4]> = SmallVec::from_iter([first.view()]);
            for i in ADDEND + 1..ctx.n_inputs() {
                inputs.push(ctx.input(i)?);
            }
            let last = run_steps(&self.then, &inputs)?;
            let output = ctx.output(0)?;
            if *last.shape() != shape {
                return Err(OpError::shape(format!("steps make a result {shape} one of {}", last.shape())));
            }
            output.values_mut::<f32>()?.copy_from_slice(&last.values::<f32>()?);
        }
        Ok(())
    }

    fn n_operations(&self, inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        let steps = operations(outputs, self.then.len() as u64);
        self.base.def().n_operations(inputs, outputs).saturating_add(steps)
    }
}

fn cases() -> Vec<Case> {
    use Operand::{Input, Omitted, Step as Result};
    let t = case_tensor::<f32>;
    let with = |name, base: Op, relu, then: &[Step], inputs: Vec<Option<_>>, y| Case {
        name,
        op: Fused { base: base.into(), relu, then: then.to_vec() }.into(),
        inputs,
        outputs: vec![y],
    };
    let case = |name, base, relu, inputs, y| with(name, base, relu, &[], inputs, y);
    let step = |op: Op, operands: &[Operand]| Step { op, operands: operands.into() };
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
        case(
            "Conv, Relu",
            Conv::default().into(),
            true,
            vec![Some(x.clone()), Some(w.clone())],
            t(&[1, 1, 3], &[0., 0., 0.]),
        ),
        with(
            "Conv, HardSwish",
            Conv::default().into(),
            false,
            &[step(HardSwish.into(), &[Input(0)])],
            vec![Some(x.clone()), Some(w.clone()), Some(t(&[1], &[0.5]))],
            t(&[1, 1, 3], &[-0.375, -0.375, -0.375]),
        ),
        with(
            "Conv, sum, Relu, a scale of each channel, Clip",
            Conv::default().into(),
            true,
            &[step(Mul.into(), &[Input(0), Input(1)]), step(Clip.into(), &[Result(0), Omitted, Input(2)])],
            vec![
                Some(x),
                Some(w),
                None,
                Some(t(&[1, 1, 3], &[1., 3., 5.])),
                Some(t(&[1, 1, 1], &[2.])),
                Some(t(&[], &[4.])),
            ],
            t(&[1, 1, 3], &[0., 2., 4.]),
        ),
        with(
            "MatMul, a row added, then multiplied with itself",
            MatMul::default().into(),
            false,
            &[step(Add.into(), &[Input(0), Input(1)]), step(Mul.into(), &[Result(0), Input(0)])],
            vec![Some(a.clone()), Some(b.clone()), None, None, Some(t(&[2], &[1., 2.]))],
            t(&[2, 2], &[2., 0., 12., 8.]),
        ),
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
