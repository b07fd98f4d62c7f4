//! The order of nodes: topological, keeping the file's wherever it already is.

use crate::error::LoadError;
use crate::proto::{AttributeValue, GraphProto, NodeProto};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

/// Calls `each` for every graph among a node's attributes.
pub(crate) fn subgraphs<'p, 'm>(node: &'p NodeProto<'m>) -> impl Iterator<Item = &'p GraphProto<'m>> {
    node.attributes.iter().flat_map(|a| match &a.value {
        AttributeValue::Graph(g) => std::slice::from_ref(&**g),
        AttributeValue::Graphs(list) => list,
        _ => &[],
    })
}

/// Names that a node reads from the graph it lies in: its inputs, and what its subgraphs capture.
fn reads<'m>(node: &NodeProto<'m>) -> Vec<&'m str> {
    let mut names: Vec<_> = node.inputs.iter().copied().filter(|name| !name.is_empty()).collect();
    for graph in subgraphs(node) {
        let mut defined: HashSet<&str> = graph.inputs.iter().map(|v| v.name).collect();
        defined.extend(graph.initializers.iter().map(|t| t.name));
        defined.extend(graph.sparse_initializers.iter().map(|t| t.values.name));
        defined.extend(graph.nodes.iter().flat_map(|n| n.outputs.iter().copied()));
        let inner = graph.nodes.iter().flat_map(reads).chain(graph.outputs.iter().map(|v| v.name));
        names.extend(inner.filter(|name| !defined.contains(name)));
    }
    names
}

/// The order in which to import `nodes`, or `None` when the file's order will do. `label` names a node in errors.
///
/// **Errors**: two nodes that write one value, nodes that form a cycle.
pub(crate) fn order(nodes: &[NodeProto<'_>], label: impl Fn(usize) -> String) -> Result<Option<Vec<usize>>, LoadError> {
    let mut writers: HashMap<&str, usize> = HashMap::new();
    for (i, node) in nodes.iter().enumerate() {
        for &output in node.outputs.iter().filter(|name| !name.is_empty()) {
            if let Some(first) = writers.insert(output, i) {
                let writers = [first, i].map(|i| format!("node `{}`", label(i)));
                return Err(LoadError::TwoWriters { value: output.into(), writers });
            }
        }
    }
    let sources: Vec<Vec<(usize, &str)>> = nodes
        .iter()
        .map(|node| reads(node).into_iter().filter_map(|name| Some((*writers.get(name)?, name))).collect())
        .collect();
    if sources.iter().enumerate().all(|(i, list)| list.iter().all(|(source, _)| *source < i)) {
        return Ok(None);
    }

    let mut waiting: Vec<usize> = sources.iter().map(Vec::len).collect();
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (i, list) in sources.iter().enumerate() {
        for (source, _) in list {
            readers[*source].push(i);
        }
    }
    let ready = waiting.iter().enumerate().filter(|(_, n)| **n == 0).map(|(i, _)| Reverse(i));
    let mut ready: BinaryHeap<_> = ready.collect();
    let mut sorted = Vec::with_capacity(nodes.len());
    while let Some(Reverse(i)) = ready.pop() {
        sorted.push(i);
        for &reader in &readers[i] {
            waiting[reader] -= 1;
            if waiting[reader] == 0 {
                ready.push(Reverse(reader));
            }
        }
    }
    if sorted.len() < nodes.len() { Err(cycle(&sources, &waiting, label)) } else { Ok(Some(sorted)) }
}

/// Walks from a node that never became ready to one that it needs, until a node comes again.
fn cycle(sources: &[Vec<(usize, &str)>], waiting: &[usize], label: impl Fn(usize) -> String) -> LoadError {
    let mut path: Vec<(usize, &str)> = Vec::new();
    let mut seen = HashMap::new();
    let mut at = waiting.iter().position(|n| *n > 0).unwrap_or(0);
    let start = loop {
        if let Some(start) = seen.insert(at, path.len()) {
            break start;
        }
        match sources[at].iter().find(|(source, _)| waiting[*source] > 0) {
            Some((source, name)) => {
                path.push((at, name));
                at = *source;
            }
            None => break path.len(),
        }
    };
    let cycle = path.get(start..).unwrap_or(&[]);
    LoadError::Cycle {
        nodes: cycle.iter().map(|(i, _)| label(*i)).collect(),
        values: cycle.iter().map(|(_, name)| (*name).to_owned()).collect(),
    }
}
