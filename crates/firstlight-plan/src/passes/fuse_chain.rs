//! `fuse-chain`: Conv, Gemm and MatMul take the elementwise ops that follow them, to run on each part of the result that
//! is still in the cache.

use super::fuse_elementwise::shape_of_run;
use super::{Action, Scope};
use firstlight_graph::ops::Fused;
use firstlight_graph::ops::elementwise::chain::{MAX_INPUTS, Operand, Step, is_step};
use firstlight_graph::ops::nn::fused::ADDEND;
use firstlight_graph::{NodeId, Op, OpKind, ValueId};
use firstlight_tensor::DType;
use smallvec::SmallVec;

/// A base in f32, alone or with its epilogue, whose result has one reader: a chain or one op that keeps its shape.
pub(super) fn find(scope: &mut Scope<'_, '_>) -> Vec<(usize, Action)> {
    let is_base = |op: &Op| match op {
        Op::Conv(_) | Op::Gemm(_) | Op::MatMul(_) => true,
        Op::Fused(fused) => fused.then.is_empty(),
        _ => false,
    };
    let bases: Vec<usize> = scope.nodes().filter(|(_, node)| is_base(&node.op)).map(|(i, _)| i).collect();
    let (graph, table, backend) = (scope.graph, scope.ctx.table, scope.ctx.device.backend());
    // A base with a row of its own does not go to the reference.
    let has_row = |op: OpKind| table.rows(op, &[DType::F32], backend).next().is_some();
    let pays = |op: OpKind| has_row(OpKind::Fused) || !has_row(op);
    let readers = scope.sole_readers();
    let mut taken = vec![false; graph.nodes().len()];
    let mut actions = vec![];
    for base in bases {
        let node = &graph.nodes()[base];
        let result = ValueId::from(NodeId(base as u32));
        let Some(last) = readers[scope.place(result)].filter(|&last| !taken[last]) else { continue };
        let Some((steps, others)) = steps(&graph.nodes()[last].op, &graph.nodes()[last].inputs, result) else {
            continue;
        };
        let Some(dims) = shape_of_run(scope, last) else { continue };
        let fact = scope.fact(result);
        if fact.dtype != Some(DType::F32) || fact.dims.as_ref() != Some(&dims) || !pays(node.op.kind()) {
            continue;
        }
        taken[last] = true;
        let mut inputs = node.inputs.clone();
        if !others.is_empty() {
            inputs.resize(ADDEND + 1, None);
            inputs.extend(others.into_iter().map(Some));
        }
        let op = match &node.op {
            Op::Fused(fused) => Fused { then: steps, ..fused.clone() },
            op => Fused { base: Box::new(op.clone()), relu: false, then: steps },
        };
        actions.push((last, Action::Become { op: op.into(), inputs, sources: vec![base, last] }));
    }
    actions
}

/// The steps of a chain, or of one op, that reads a base's result as its input 0; and what else they read.
fn steps(op: &Op, inputs: &[Option<ValueId>], result: ValueId) -> Option<(Vec<Step>, SmallVec<[ValueId; 4]>)> {
    let mut others: SmallVec<[ValueId; 4]> = SmallVec::new();
    for &input in inputs.iter().flatten() {
        if input != result && !others.contains(&input) {
            others.push(input);
        }
    }
    let operand = |input: Option<ValueId>| match input {
        None => Some(Operand::Omitted),
        Some(input) if input == result => Some(Operand::Input(0)),
        Some(input) => others.iter().position(|other| *other == input).map(|i| Operand::Input(i + 1)),
    };
    let renamed = |step: &Step| {
        let operands = step.operands.iter().map(|of| match *of {
            Operand::Input(i) => operand(inputs.get(i).copied().flatten()),
            other => Some(other),
        });
        Some(Step { op: step.op.clone(), operands: operands.collect::<Option<_>>()? })
    };
    let steps = match op {
        Op::Elementwise(chain) => chain.steps.iter().map(renamed).collect::<Option<Vec<_>>>()?,
        op if is_step(op) => {
            let operands = inputs.iter().map(|input| operand(*input)).collect::<Option<_>>()?;
            vec![Step { op: op.clone(), operands }]
        }
        _ => return None,
    };
    (others.len() < MAX_INPUTS).then_some((steps, others))
}
