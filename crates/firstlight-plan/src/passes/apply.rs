//! Makes a new graph of an old one and the actions of a pass.

use super::Action;
use firstlight_backend::Reservation;
use firstlight_graph::{Graph, Op, OpError, OpErrorKind, ValueId};
use smallvec::SmallVec;

/// A graph after one pass.
#[derive(Debug)]
pub(super) struct Applied {
    pub(super) graph: Graph,
    pub(super) targets: Vec<ValueId>,
    /// Nodes of the old graph that were changed, each with the nodes it is made of.
    pub(super) changed: Vec<(usize, Vec<usize>)>,
    pub(super) held: Vec<Reservation>,
}

/// Applies actions; nodes that no target depends on any more are dropped, inputs are kept.
///
/// **Errors**: a target that is no value of the graph; an action that makes no valid graph.
pub(super) fn apply(graph: &Graph, targets: &[ValueId], actions: Vec<(usize, Action)>) -> Result<Applied, OpError> {
    let first_value = first_values(graph, targets)?;
    let n_values = graph.nodes().iter().map(|node| node.outputs.len()).sum();
    let mut by_node: Vec<Option<Action>> = Vec::new();
    by_node.resize_with(graph.nodes().len(), || None);
    for (node, action) in actions {
        by_node[node] = Some(action);
    }
    let needed = needed(graph, targets, &by_node);

    let mut new = Graph::new(graph.name());
    let mut map: Vec<Option<ValueId>> = vec![None; n_values];
    let (mut changed, mut held) = (vec![], vec![]);
    for (i, (node, action)) in graph.nodes().iter().zip(by_node).enumerate() {
        let at = first_value[i] as usize;
        let place = |value: ValueId| (first_value[value.node.0 as usize] + value.output) as usize;
        let mapped = |map: &[Option<ValueId>], value: ValueId| map[place(value)].ok_or_else(|| lost(graph, value));
        if let Op::Input(input) = &node.op {
            let declared =
                graph.inputs().get(input.index as usize).filter(|declared| declared.value.node.0 as usize == i);
            let declared = declared.ok_or_else(|| broken(format!("node {:?} is no input of the graph", node.name)))?;
            map[at] = Some(new.input(declared.name.clone(), declared.spec.clone(), declared.default.clone()));
            continue;
        }
        if !needed[i] {
            continue;
        }
        let (op, inputs) = match action {
            None => (node.op.clone(), node.inputs.clone()),
            Some(Action::Replace(value)) => {
                map[at] = Some(mapped(&map, value)?);
                changed.push((i, vec![i]));
                continue;
            }
            Some(Action::Fold(tensors)) => {
                for (output, (tensor, reserved)) in tensors.into_iter().enumerate() {
                    map[at + output] = Some(new.constant(node.outputs[output].clone(), tensor));
                    held.extend(reserved);
                }
                changed.push((i, vec![i]));
                continue;
            }
            Some(Action::Become { op, inputs, sources }) => {
                if !sources.is_empty() {
                    changed.push((i, sources));
                }
                (op, inputs)
            }
        };
        let inputs: SmallVec<[Option<ValueId>; 4]> = inputs
            .into_iter()
            .map(|input| input.map(|input| mapped(&map, input)).transpose())
            .collect::<Result<_, _>>()?;
        if let Op::Const(constant) = op {
            map[at] = Some(new.constant(node.name.clone(), constant.tensor));
            continue;
        }
        let outputs: SmallVec<[&str; 1]> = node.outputs.iter().map(String::as_str).collect();
        let id = new.push(node.name.clone(), op, &inputs, &outputs)?;
        for output in 0..node.outputs.len() {
            map[at + output] = Some(ValueId { node: id, output: output as u32 });
        }
    }
    let mut new_targets = Vec::with_capacity(targets.len());
    for (i, &target) in targets.iter().enumerate() {
        let value = map[(first_value[target.node.0 as usize] + target.output) as usize];
        let value = value.ok_or_else(|| lost(graph, target))?;
        let declared = graph.outputs().get(i).filter(|(_, value)| *value == target);
        let declared = declared.or_else(|| graph.outputs().iter().find(|(_, value)| *value == target));
        let name = declared.map_or_else(|| graph.value_name(target), |(name, _)| name);
        new.output(name, value)?;
        new_targets.push(value);
    }
    Ok(Applied { graph: new, targets: new_targets, changed, held })
}

/// First dense index of each node's values.
///
/// **Errors**: a target that is no value of the graph.
pub(super) fn first_values(graph: &Graph, targets: &[ValueId]) -> Result<Vec<u32>, OpError> {
    for target in targets {
        let node = graph.nodes().get(target.node.0 as usize);
        if node.is_none_or(|node| target.output as usize >= node.outputs.len()) {
            return Err(broken(format!("target {target} is no value of graph {:?}", graph.name())));
        }
    }
    let mut n_values = 0u32;
    let first = graph.nodes().iter().map(|node| {
        let first = n_values;
        n_values += node.outputs.len() as u32;
        first
    });
    Ok(first.collect())
}

fn needed(graph: &Graph, targets: &[ValueId], actions: &[Option<Action>]) -> Vec<bool> {
    let mut needed = vec![false; graph.nodes().len()];
    let read = |needed: &mut [bool], value: ValueId| needed[value.node.0 as usize] = true;
    targets.iter().for_each(|&target| read(&mut needed, target));
    for (i, node) in graph.nodes().iter().enumerate().rev() {
        if !needed[i] {
            continue;
        }
        match &actions[i] {
            None => node.inputs.iter().flatten().for_each(|&input| read(&mut needed, input)),
            Some(Action::Replace(value)) => read(&mut needed, *value),
            Some(Action::Fold(_)) => {}
            Some(Action::Become { inputs, .. }) => inputs.iter().flatten().for_each(|&input| read(&mut needed, input)),
        }
    }
    needed
}

fn lost(graph: &Graph, value: ValueId) -> OpError {
    broken(format!("value {value} of graph {:?} was lost by a pass", graph.name()))
}

fn broken(message: String) -> OpError {
    OpError::new(OpErrorKind::Arity, message)
}
