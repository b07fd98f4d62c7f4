//! `fuse-epilogue`: Conv, Gemm and MatMul take the Add and the Relu that follow them.

use super::facts::Fact;
use super::{Action, Scope};
use firstlight_graph::ops::Fused;
use firstlight_graph::ops::nn::fused::ADDEND;
use firstlight_graph::{NodeId, Op, OpKind, ValueId};
use firstlight_tensor::{DType, Dim};
use smallvec::SmallVec;

/// A base in f32 whose result has one reader, that reader's result one reader, and so on.
pub(super) fn find(scope: &mut Scope<'_, '_>) -> Vec<(usize, Action)> {
    let is_base = |op: &Op| matches!(op, Op::Conv(_) | Op::Gemm(_) | Op::MatMul(_));
    let bases: Vec<usize> = scope.nodes().filter(|(_, node)| is_base(&node.op)).map(|(i, _)| i).collect();
    let (graph, table, backend) = (scope.graph, scope.ctx.table, scope.ctx.device.backend());
    // A base with a row of its own does not go to the reference.
    let has_row = |op: OpKind| table.rows(op, &[DType::F32], backend).next().is_some();
    let pays = |op: OpKind| has_row(OpKind::Fused) || !has_row(op);
    let readers = scope.sole_readers();
    let mut taken = vec![false; graph.nodes().len()];
    let mut actions = vec![];
    for base in bases {
        let op = &graph.nodes()[base].op;
        let mut result = ValueId::from(NodeId(base as u32));
        if scope.fact(result).dtype != Some(DType::F32) || !pays(op.kind()) {
            continue;
        }
        let (mut sources, mut addend, mut relu) = (vec![base], None, false);
        let next = |scope: &Scope<'_, '_>, value| readers[scope.place(value)].filter(|&reader| !taken[reader]);
        if let Some(add) = next(scope, result).filter(|&add| matches!(graph.nodes()[add].op, Op::Add(_))) {
            let mut others = graph.nodes()[add].inputs.iter().flatten().filter(|input| **input != result);
            if let Some(&other) = others.next()
                && may_be_added(scope, base, result, other)
            {
                addend = Some(other);
                sources.push(add);
                result = ValueId::from(NodeId(add as u32));
            }
        }
        if let Some(last) = next(scope, result).filter(|&last| matches!(graph.nodes()[last].op, Op::Relu(_))) {
            relu = true;
            sources.push(last);
        }
        let Some(&last) = sources.last().filter(|_| sources.len() > 1) else { continue };
        sources.iter().for_each(|&source| taken[source] = true);
        let mut inputs: SmallVec<[Option<ValueId>; 4]> = graph.nodes()[base].inputs.clone();
        if addend.is_some() {
            inputs.resize(ADDEND, None);
            inputs.push(addend);
        }
        let op = Fused { base: Box::new(op.clone()), relu, then: vec![] }.into();
        actions.push((last, Action::Become { op, inputs, sources }));
    }
    actions
}

/// Whether the sum has the result's shape whatever is fed, and the addend one that kernels take.
fn may_be_added(scope: &mut Scope<'_, '_>, base: usize, result: ValueId, addend: ValueId) -> bool {
    let dims = |fact: &Fact| fact.dims.clone().filter(|_| fact.dtype == Some(DType::F32));
    let (Some(out), Some(addend)) = (dims(scope.fact(result)), dims(scope.fact(addend))) else { return false };
    let equal = |a: &Dim, b: &Dim| a == b && *a != Dim::Unknown;
    if out.rank() == addend.rank() && out.iter().zip(addend.iter()).all(|(a, b)| equal(a, b)) {
        return true;
    }
    let node = &scope.graph.nodes()[base];
    let is_matrices = |scope: &mut Scope<'_, '_>| {
        let mut ranks = node.inputs.iter().flatten().take(2);
        ranks.all(|&input| scope.fact(input).dims.as_ref().is_some_and(|dims| dims.rank() >= 2))
    };
    let is_row = match (out.split_last(), addend.split_last()) {
        (Some((n, _)), Some((last, lead))) => {
            equal(n, last) && addend.rank() <= out.rank() && lead.iter().all(|dim| *dim == Dim::Known(1))
        }
        _ => false,
    };
    !matches!(node.op, Op::Conv(_)) && is_row && is_matrices(scope)
}
