//! `fuse-elementwise`: trees of elementwise ops over one shape run as one.

use super::{Action, Scope};
use firstlight_graph::ops::Elementwise;
use firstlight_graph::ops::elementwise::chain::{MAX_INPUTS, MAX_STEPS, Operand, Step, is_step};
use firstlight_graph::{Graph, NodeId, Op, OpKind, ValueId};
use firstlight_tensor::{DType, Dim, SymShape};
use smallvec::SmallVec;

/// Nodes that run as one, in order; the last one gives the result.
struct Group {
    nodes: Vec<usize>,
    /// Values of other nodes that they read, each once.
    inputs: Vec<ValueId>,
}

/// Each node takes in the groups whose result is read within its own group alone, where all have its shape whatever is
/// fed.
pub(super) fn find(scope: &mut Scope<'_, '_>) -> Vec<(usize, Action)> {
    let (graph, table, backend) = (scope.graph, scope.ctx.table, scope.ctx.device.backend());
    // An op with a row of its own does not go to the reference.
    let has_row = |op: OpKind| table.rows(op, &[DType::F32], backend).next().is_some();
    let pays = |op: &Op| has_row(OpKind::Elementwise) || !has_row(op.kind());
    let candidates: Vec<usize> =
        scope.nodes().filter(|(_, node)| is_step(&node.op) && pays(&node.op)).map(|(i, _)| i).collect();
    if candidates.len() < 2 {
        return vec![];
    }
    let mut groups: Vec<Option<Group>> = Vec::new();
    groups.resize_with(graph.nodes().len(), || None);
    for i in candidates {
        let Some(dims) = shape_of_run(scope, i) else { continue };
        let mut group = Group::of(graph, vec![i]);
        if group.inputs.len() > MAX_INPUTS {
            continue;
        }
        // Taking one in may make another's result one that is read within the group alone.
        let mut at = 0;
        while let Some(&input) = group.inputs.get(at) {
            at += 1;
            let producer = input.node.0 as usize;
            let Some(other) = &groups[producer] else { continue };
            if group.reads(graph, input) != scope.n_uses[scope.place(input)] as usize
                || scope.fact(input).dims.as_ref() != Some(&dims)
            {
                continue;
            }
            let both = Group::of(graph, group.nodes.iter().chain(&other.nodes).copied().collect());
            if both.nodes.len() <= MAX_STEPS && both.inputs.len() <= MAX_INPUTS {
                groups[producer] = None;
                (group, at) = (both, 0);
            }
        }
        groups[i] = Some(group);
    }
    let groups = groups.into_iter().enumerate();
    groups.filter_map(|(i, group)| Some((i, action(scope, group.filter(|group| group.nodes.len() > 1)?)?))).collect()
}

impl Group {
    fn of(graph: &Graph, mut nodes: Vec<usize>) -> Group {
        nodes.sort_unstable();
        let mut inputs = vec![];
        for &input in nodes.iter().flat_map(|&node| graph.nodes()[node].inputs.iter().flatten()) {
            if !nodes.contains(&(input.node.0 as usize)) && !inputs.contains(&input) {
                inputs.push(input);
            }
        }
        Group { nodes, inputs }
    }

    /// How often the group's nodes read a value.
    fn reads(&self, graph: &Graph, value: ValueId) -> usize {
        let inputs = self.nodes.iter().flat_map(|&node| graph.nodes()[node].inputs.iter().flatten());
        inputs.filter(|&&input| input == value).count()
    }
}

/// The shape of a node's result, where it is f32 and each input is one that the kernel takes: of dimensions other than
/// 1 that are a run of the result's.
pub(super) fn shape_of_run(scope: &mut Scope<'_, '_>, node: usize) -> Option<SymShape> {
    let result = scope.fact(ValueId::from(NodeId(node as u32)));
    let dims = result.dims.clone().filter(|_| result.dtype == Some(DType::F32))?;
    if dims.contains(&Dim::Unknown) {
        return None;
    }
    let graph = scope.graph;
    for &input in graph.nodes()[node].inputs.iter().flatten() {
        let from = scope.fact(input).dims.as_ref()?;
        let lead = dims.rank().checked_sub(from.rank())?;
        let is_one = |dim: &Dim| *dim == Dim::Known(1);
        let Some(first) = from.iter().position(|dim| !is_one(dim)) else { continue };
        let end = from.iter().rposition(|dim| !is_one(dim))? + 1;
        if from[first..end] != dims[lead + first..lead + end] {
            return None;
        }
    }
    Some(dims)
}

fn action(scope: &Scope<'_, '_>, group: Group) -> Option<Action> {
    let operand = |input: &Option<ValueId>| {
        let Some(value) = *input else { return Some(Operand::Omitted) };
        let step = group.nodes.iter().position(|&node| node == value.node.0 as usize);
        let at = || group.inputs.iter().position(|&input| input == value).map(Operand::Input);
        step.map(Operand::Step).or_else(at)
    };
    let step = |&node: &usize| {
        let node = &scope.graph.nodes()[node];
        let operands = node.inputs.iter().map(operand).collect::<Option<SmallVec<[Operand; 2]>>>()?;
        Some(Step { op: node.op.clone(), operands })
    };
    let steps = group.nodes.iter().map(step).collect::<Option<Vec<Step>>>()?;
    let inputs = group.inputs.iter().copied().map(Some).collect();
    Some(Action::Become { op: Elementwise { steps }.into(), inputs, sources: group.nodes })
}
