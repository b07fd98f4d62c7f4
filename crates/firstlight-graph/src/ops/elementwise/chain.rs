//! `Elementwise`.

use crate::infer::{infer_known, run_reference};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::tensor;
use crate::ops::{Add, Clip, Div, Erf, Exp, HardSigmoid, HardSwish, Mul, Op, Reciprocal, Relu, Sigmoid, Sub, Tanh};
use crate::{InferCtx, OpError, OutInfo, ValueInfo};
use firstlight_tensor::{DType, SymShape, Tensor, TensorView};
use smallvec::SmallVec;
use std::fmt::Write;

/// Elementwise ops that run as one, each rounded as by itself.
///
/// Made by passes; no file holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Elementwise {
    /// The ops, in order; the last one gives the result.
    pub steps: Vec<Step>,
}

/// One op of an [`Elementwise`].
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// An op that [`is_step`] takes.
    pub op: Op,
    /// What each of the op's inputs is, in the op's order.
    pub operands: SmallVec<[Operand; 2]>,
}

/// What a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The input of that index.
    Input(usize),
    /// The result of the earlier step of that index.
    Step(usize),
    /// Nothing: an optional input that is not given.
    Omitted,
}

/// The most steps that an [`Elementwise`] has.
pub const MAX_STEPS: usize = 12;

/// The most inputs that an [`Elementwise`] has.
pub const MAX_INPUTS: usize = 12;

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Elementwise",
    doc: "Elementwise ops that run as one, with broadcasting, each rounded as by itself. Made by passes.",
    attributes: &[AttrDoc {
        name: "steps",
        doc: "the ops in order; `x0` is the first input, `t0` the result of the first step",
    }],
    inputs: &[Param { name: "inputs", ty: TypeRef::Var(0), arity: Arity::Variadic(1) }],
    outputs: &[Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: &[DType::F32] }],
    exactness: Exactness::Rounding,
    cases,
};

/// Whether an op can be a step: it computes each element from those at the same place, all of one type.
pub fn is_step(op: &Op) -> bool {
    matches!(
        op,
        Op::Abs(_)
            | Op::Add(_)
            | Op::Ceil(_)
            | Op::Celu(_)
            | Op::Clip(_)
            | Op::Div(_)
            | Op::Elu(_)
            | Op::Erf(_)
            | Op::Exp(_)
            | Op::Floor(_)
            | Op::Gelu(_)
            | Op::HardSigmoid(_)
            | Op::HardSwish(_)
            | Op::LeakyRelu(_)
            | Op::Log(_)
            | Op::Mish(_)
            | Op::Mul(_)
            | Op::Neg(_)
            | Op::Reciprocal(_)
            | Op::Relu(_)
            | Op::Round(_)
            | Op::Selu(_)
            | Op::Sigmoid(_)
            | Op::Sign(_)
            | Op::Softplus(_)
            | Op::Softsign(_)
            | Op::Sqrt(_)
            | Op::Sub(_)
            | Op::Tanh(_)
            | Op::ThresholdedRelu(_)
    )
}

impl OpDef for Elementwise {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("steps", AttrValue::Text(steps_text(&self.steps)))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let mut inputs: SmallVec<[ValueInfo; 4]> = SmallVec::new();
        for i in 0..ctx.n_inputs() {
            inputs.push(ValueInfo { value: None, ..ctx.input(i)?.clone() });
        }
        Ok(infer_steps(&self.steps, &inputs)?.one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let mut inputs: SmallVec<[TensorView<'_>; 4]> = SmallVec::new();
        for i in 0..ctx.n_inputs() {
            inputs.push(ctx.input(i)?);
        }
        let last = run_steps(&self.steps, &inputs)?;
        let output = ctx.output(0)?;
        if output.shape() != last.shape() {
            return Err(OpError::shape(format!("output 0 has shape {}, expected {}", output.shape(), last.shape())));
        }
        output.values_mut::<f32>()?.copy_from_slice(&last.values::<f32>()?);
        Ok(())
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        super::operations(outputs, self.steps.len() as u64)
    }
}

/// Steps as the text form prints them.
pub(crate) fn steps_text(steps: &[Step]) -> String {
    let mut text = String::new();
    for (i, step) in steps.iter().enumerate() {
        let operands: Vec<String> = step
            .operands
            .iter()
            .map(|operand| match operand {
                Operand::Input(input) => format!("x{input}"),
                Operand::Step(step) => format!("t{step}"),
                Operand::Omitted => "_".to_owned(),
            })
            .collect();
        let separator = if i == 0 { "" } else { "; " };
        let _ = write!(text, "{separator}{}({})", step.op.info().name, operands.join(", "));
        let attributes = step.op.def().attributes();
        for (i, (name, value)) in attributes.iter().enumerate() {
            let _ = write!(text, "{}{name}={value}", if i == 0 { " {" } else { ", " });
        }
        if !attributes.is_empty() {
            text.push('}');
        }
    }
    text
}

/// Element type and shape of what the last step gives.
///
/// **Errors**: too many steps or inputs, none, a step of another op, one that reads what is not there, inputs that do not
/// fit.
pub(crate) fn infer_steps(steps: &[Step], inputs: &[ValueInfo]) -> Result<OutInfo, OpError> {
    check(steps, inputs.len())?;
    let mut results: SmallVec<[ValueInfo; MAX_STEPS]> = SmallVec::new();
    for step in steps {
        let mut infos: SmallVec<[Option<ValueInfo>; 2]> = SmallVec::new();
        for operand in &step.operands {
            infos.push(match *operand {
                Operand::Input(input) => Some(inputs[input].clone()),
                Operand::Step(step) => Some(results[step].clone()),
                Operand::Omitted => None,
            });
        }
        let output = step.op.def().infer(&InferCtx::new(&infos, 1))?.into_iter().next();
        let output = output.ok_or_else(|| OpError::value("a step without a result"))?;
        results.push(ValueInfo { dtype: output.dtype, dims: output.dims, value: None });
    }
    let last = results.pop().ok_or_else(|| OpError::value("no steps"))?;
    Ok(OutInfo::new(last.dtype, last.dims))
}

/// What the last step gives, by the references of the steps' ops.
///
/// **Errors**: as [`infer_steps`].
pub(crate) fn run_steps(steps: &[Step], inputs: &[TensorView<'_>]) -> Result<Tensor, OpError> {
    check(steps, inputs.len())?;
    let mut results: Vec<Tensor> = vec![];
    for step in steps {
        let mut views: SmallVec<[Option<TensorView<'_>>; 2]> = SmallVec::new();
        for operand in &step.operands {
            views.push(match *operand {
                Operand::Input(input) => Some(inputs[input].clone()),
                Operand::Step(step) => Some(results[step].view()),
                Operand::Omitted => None,
            });
        }
        let info =
            |view: &TensorView<'_>| ValueInfo { dtype: view.dtype(), dims: SymShape::from(view.shape()), value: None };
        let infos: SmallVec<[Option<ValueInfo>; 2]> = views.iter().map(|view| view.as_ref().map(info)).collect();
        let outputs = infer_known(&step.op, &infos, 1)?;
        let result = run_reference(&step.op, &views, &outputs)?.pop();
        drop(views);
        results.push(result.ok_or_else(|| OpError::value("a step without a result"))?);
    }
    results.pop().ok_or_else(|| OpError::value("no steps"))
}

fn check(steps: &[Step], n_inputs: usize) -> Result<(), OpError> {
    if steps.is_empty() || steps.len() > MAX_STEPS || n_inputs > MAX_INPUTS {
        return Err(OpError::value(format!(
            "{} steps and {n_inputs} inputs, expected 1 to {MAX_STEPS} and at most {MAX_INPUTS}",
            steps.len()
        )));
    }
    for (i, step) in steps.iter().enumerate() {
        let params = step.op.info().inputs;
        let there = |(operand, param): (&Operand, &Param)| match *operand {
            Operand::Input(input) => input < n_inputs,
            Operand::Step(step) => step < i,
            Operand::Omitted => param.arity == Arity::Optional,
        };
        let rest = params.get(step.operands.len()..);
        if !is_step(&step.op)
            || rest.is_none_or(|rest| rest.iter().any(|param| param.arity != Arity::Optional))
            || !step.operands.iter().zip(params).all(there)
        {
            return Err(OpError::value(format!("step {i} is none, or reads what is not there")));
        }
    }
    Ok(())
}

fn cases() -> Vec<Case> {
    use Operand::{Input, Omitted, Step as Result};
    let step = |op: Op, operands: &[Operand]| Step { op, operands: operands.into() };
    let case = |name, steps: Vec<Step>, inputs: &[Tensor], y: Tensor| Case {
        name,
        op: Elementwise { steps }.into(),
        inputs: inputs.iter().cloned().map(Some).collect(),
        outputs: vec![y],
    };
    let half = Tensor::scalar(0.5f32);
    vec![
        case(
            "a chain with a scalar and a row",
            vec![
                step(Mul.into(), &[Input(0), Input(1)]),
                step(Add.into(), &[Input(2), Result(0)]),
                step(Relu.into(), &[Result(1)]),
            ],
            &[tensor(&[2, 2], &[1f32, 2., -3., -4.]), half.clone(), tensor(&[2], &[1f32, -1.])],
            tensor(&[2, 2], &[1.5f32, 0., 0., 0.]),
        ),
        case(
            "a tree: differences keep their sides",
            vec![
                step(Sub.into(), &[Input(0), Input(1)]),
                step(Div.into(), &[Input(1), Result(0)]),
                step(Sub.into(), &[Result(1), Result(0)]),
            ],
            &[tensor(&[2, 1], &[2.5f32, 1.]), half.clone()],
            tensor(&[2, 1], &[-1.75f32, 0.5]),
        ),
        case(
            "channels, and a function",
            vec![
                step(Sigmoid.into(), &[Input(0)]),
                step(Erf.into(), &[Result(0)]),
                step(Mul.into(), &[Result(1), Input(1)]),
            ],
            &[
                tensor(&[1, 2, 2], &[f32::INFINITY, f32::NEG_INFINITY, f32::INFINITY, f32::NEG_INFINITY]),
                tensor(&[2, 1], &[1f32, 0.]),
            ],
            tensor(&[1, 2, 2], &[0.842_700_8f32, 0., 0., 0.]),
        ),
        case(
            "HardSwish in four steps",
            vec![
                step(Add.into(), &[Input(0), Input(1)]),
                step(Clip.into(), &[Result(0), Input(2), Input(3)]),
                step(Mul.into(), &[Input(0), Result(1)]),
                step(Div.into(), &[Result(2), Input(3)]),
            ],
            &[tensor(&[4], &[-4f32, -1.5, 3., 5.]), Tensor::scalar(3f32), Tensor::scalar(0f32), tensor(&[1], &[6f32])],
            tensor(&[4], &[-0f32, -0.375, 3., 5.]),
        ),
        case(
            "bounds that are omitted, attributes",
            vec![
                step(Clip.into(), &[Input(0), Omitted, Input(1)]),
                step(HardSigmoid { alpha: 0.25, beta: 0.5 }.into(), &[Result(0)]),
                step(Clip.into(), &[Result(1), Input(1)]),
            ],
            &[tensor(&[3], &[-4f32, 0.25, 5.]), half.clone()],
            tensor(&[3], &[0.5f32, 0.5625, 0.625]),
        ),
        case(
            "functions",
            vec![
                step(Exp.into(), &[Input(0)]),
                step(Tanh.into(), &[Result(0)]),
                step(HardSwish.into(), &[Result(1)]),
                step(Reciprocal.into(), &[Result(2)]),
            ],
            &[tensor(&[2], &[20f32, f32::NEG_INFINITY])],
            tensor(&[2], &[1.5f32, f32::INFINITY]),
        ),
        case(
            "a bound that is a step",
            vec![step(Add.into(), &[Input(0), Input(0)]), step(Clip.into(), &[Input(0), Result(0)])],
            std::slice::from_ref(&half),
            Tensor::scalar(1f32),
        ),
        case("one element", vec![step(Add.into(), &[Input(0), Input(0)])], &[half], Tensor::scalar(1f32)),
        case(
            "empty",
            vec![step(Add.into(), &[Input(0), Input(1)])],
            &[tensor::<f32>(&[0, 2], &[]), tensor(&[2], &[1f32, 2.])],
            tensor::<f32>(&[0, 2], &[]),
        ),
    ]
}
