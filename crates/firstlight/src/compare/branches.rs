//! Puts the branches that a run takes in place of the `If`s.

use super::Targeted;
use crate::Error;
use firstlight_graph::{Graph, Node, NodeId, Op, OpError, ValueId};
use firstlight_tensor::Tensor;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Rounds of putting branches in place; a nested `If` shows in the round after its outer one's.
const MAX_ROUNDS: usize = 256;

/// Computes values of a graph.
pub(super) type ValuesOf<'a> = dyn Fn(&Arc<Graph>, &[ValueId]) -> Result<Vec<Tensor>, Error> + 'a;

/// A graph without those `If`s that the targets need; `values_of` tells conditions.
///
/// **Errors**: those of `values_of`; a condition that is no single bool.
pub(super) fn with_branches(
    graph: Arc<Graph>,
    targets: Vec<ValueId>,
    values_of: &ValuesOf<'_>,
) -> Result<Targeted, Error> {
    let (mut graph, mut targets) = (graph, targets);
    for _ in 0..MAX_ROUNDS {
        let needed = needed(&graph, &targets);
        let ifs: Vec<(usize, ValueId)> =
            graph.nodes().iter().enumerate().filter(|(i, _)| needed[*i]).filter_map(if_of).collect();
        if ifs.is_empty() {
            break;
        }
        let tensors = values_of(&graph, &ifs.iter().map(|(_, value)| *value).collect::<Vec<_>>())?;
        let mut taken = HashMap::new();
        for ((node, _), tensor) in ifs.iter().zip(tensors) {
            match tensor.bools().as_deref() {
                Ok([condition]) => _ = taken.insert(*node, *condition),
                _ => {
                    let name = &graph.nodes()[*node].name;
                    return Err(Error::Output { problem: format!("node {name:?}: its condition is no single bool") });
                }
            }
        }
        let copied = copy(&graph, &targets, &taken);
        let (new_graph, new_targets) =
            copied.map_err(|error| Error::Output { problem: format!("graph {:?}: {error}", graph.name()) })?;
        (graph, targets) = (Arc::new(new_graph), new_targets);
    }
    Ok((graph, targets))
}

fn if_of((i, node): (usize, &Node)) -> Option<(usize, ValueId)> {
    match &node.op {
        Op::If(_) => Some((i, node.inputs.first().copied().flatten()?)),
        _ => None,
    }
}

/// Which nodes the targets depend on.
pub(super) fn needed(graph: &Graph, targets: &[ValueId]) -> Vec<bool> {
    let mut needed = vec![false; graph.nodes().len()];
    targets.iter().for_each(|target| needed[target.node.0 as usize] = true);
    for (i, node) in graph.nodes().iter().enumerate().rev() {
        if needed[i] {
            node.inputs.iter().flatten().for_each(|input| needed[input.node.0 as usize] = true);
        }
    }
    needed
}

type Map = HashMap<ValueId, ValueId>;

fn copy(graph: &Graph, targets: &[ValueId], taken: &HashMap<usize, bool>) -> Result<(Graph, Vec<ValueId>), OpError> {
    let mut out = Graph::new(graph.name());
    let mut map = Map::new();
    for (i, node) in graph.nodes().iter().enumerate() {
        let id = NodeId(i as u32);
        match (&node.op, taken.get(&i)) {
            (Op::Input(input), _) => {
                let declared = graph.inputs().get(input.index as usize);
                let declared = declared.ok_or_else(|| OpError::unsupported("an input that is not declared"))?;
                map.insert(id.into(), out.input(node.name.clone(), declared.spec.clone(), declared.default.clone()));
            }
            (Op::If(op), Some(&condition)) => {
                let branch = if condition { &op.then_branch } else { &op.else_branch };
                let captured = node.inputs.get(1..).unwrap_or(&[]);
                let captured: Vec<Option<ValueId>> =
                    captured.iter().map(|v| v.and_then(|v| map.get(&v).copied())).collect();
                let results = put(&mut out, branch, &captured, &node.name)?;
                for (output, value) in results.into_iter().enumerate() {
                    map.insert(ValueId { node: id, output: output as u32 }, value);
                }
            }
            _ => copy_node(&mut out, node, id, &mut map, "")?,
        }
    }
    let find = |value: &ValueId| map.get(value).copied().ok_or_else(|| OpError::unsupported("a value was lost"));
    for (name, value) in graph.outputs() {
        if let Some(value) = map.get(value) {
            out.output(name.clone(), *value)?;
        }
    }
    let targets = targets.iter().map(find).collect::<Result<_, _>>()?;
    Ok((out, targets))
}

/// Appends a branch's nodes; returns its results.
fn put(out: &mut Graph, branch: &Graph, captured: &[Option<ValueId>], name: &str) -> Result<Vec<ValueId>, OpError> {
    let mut map = Map::new();
    let before = branch.inputs().len().saturating_sub(captured.len());
    for (input, value) in branch.inputs().iter().skip(before).zip(captured) {
        if let Some(value) = value {
            map.insert(input.value, *value);
        }
    }
    for (i, node) in branch.nodes().iter().enumerate() {
        if !matches!(node.op, Op::Input(_)) {
            copy_node(out, node, NodeId(i as u32), &mut map, &format!("{name}/"))?;
        }
    }
    let lost = || OpError::unsupported("a branch's result is lost");
    branch.outputs().iter().map(|(_, value)| map.get(value).copied().ok_or_else(lost)).collect()
}

fn copy_node(out: &mut Graph, node: &Node, id: NodeId, map: &mut Map, prefix: &str) -> Result<(), OpError> {
    let named = |name: &String| if name.is_empty() { String::new() } else { format!("{prefix}{name}") };
    if let Op::Const(constant) = &node.op {
        let name = node.outputs.first().map(named).unwrap_or_default();
        map.insert(id.into(), out.constant(name, constant.tensor.clone()));
        return Ok(());
    }
    let mut inputs: SmallVec<[Option<ValueId>; 4]> = SmallVec::new();
    for input in &node.inputs {
        inputs.push(match input {
            Some(value) => {
                let found = map.get(value).copied();
                Some(found.ok_or_else(|| OpError::unsupported(format!("node {:?} reads a lost value", node.name)))?)
            }
            None => None,
        });
    }
    let outputs: Vec<String> = node.outputs.iter().map(named).collect();
    let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
    let new = out.push(format!("{prefix}{}", node.name), node.op.clone(), &inputs, &outputs)?;
    for output in 0..node.outputs.len() as u32 {
        map.insert(ValueId { node: id, output }, ValueId { node: new, output });
    }
    Ok(())
}
