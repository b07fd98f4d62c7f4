//! Which ops of a model are not supported: all of them, found before anything is built.

use crate::call::{Functions, Opsets};
use crate::error::{LoadError, UnsupportedOp};
use crate::ops;
use crate::order::subgraphs;
use crate::proto::{FunctionProto, GraphProto, ModelProto, NodeProto};
use std::collections::{BTreeMap, HashSet};

/// Node names listed for each op.
const MAX_NODE_NAMES: usize = 5;

/// The domain with its one spelling: the standard domain's name may be left out.
pub(crate) fn domain_of(domain: &str) -> &str {
    if domain.is_empty() { "ai.onnx" } else { domain }
}

/// Whether the importer knows a node's op as of its operator set.
pub(crate) fn is_known(node: &NodeProto<'_>, opsets: &Opsets) -> bool {
    let domain = domain_of(node.domain);
    let version = opsets.version(domain);
    ops::find(domain, node.op_type).is_some_and(|op| version.is_some_and(|version| version >= op.since))
}

/// Checks that every op of the main graph and of the functions that it reaches can be imported.
///
/// **Errors**: one [`LoadError::Unsupported`] that lists them all.
pub(crate) fn check_supported(
    model: &ModelProto<'_>,
    graph: &GraphProto<'_>,
    functions: &Functions<'_>,
) -> Result<(), LoadError> {
    let mut survey = Survey { functions, missing: BTreeMap::new(), queue: Vec::new() };
    let opsets = Opsets::of_model(model)?;
    survey.nodes(&graph.nodes, &opsets);
    let mut visited = HashSet::new();
    while let Some(function) = survey.queue.pop() {
        if visited.insert(std::ptr::from_ref(function)) {
            survey.nodes(&function.nodes, &opsets.of_function(function));
        }
    }
    if survey.missing.is_empty() { Ok(()) } else { Err(LoadError::Unsupported(survey.missing.into_values().collect())) }
}

struct Survey<'p> {
    functions: &'p Functions<'p>,
    missing: BTreeMap<(&'p str, &'p str, Option<i64>), UnsupportedOp>,
    queue: Vec<&'p FunctionProto<'p>>,
}

impl<'p> Survey<'p> {
    fn nodes(&mut self, nodes: &'p [NodeProto<'p>], opsets: &Opsets) {
        for (i, node) in nodes.iter().enumerate() {
            for graph in subgraphs(node) {
                self.nodes(&graph.nodes, opsets);
            }
            if let Some(function) = self.functions.called_by(node) {
                self.queue.push(function);
                continue;
            }
            if is_known(node, opsets) {
                continue;
            }
            let domain = domain_of(node.domain);
            let version = opsets.version(domain);
            let found = ops::find(domain, node.op_type);
            let key = (domain, node.op_type, version);
            let entry = self.missing.entry(key).or_insert_with(|| UnsupportedOp {
                domain: domain.into(),
                op: node.op_type.into(),
                version,
                count: 0,
                nodes: Vec::new(),
                since: found.filter(|_| version.is_some()).map(|op| op.since),
            });
            entry.count += 1;
            if entry.nodes.len() < MAX_NODE_NAMES {
                entry.nodes.push(node_name(node, i));
            }
        }
    }
}

/// The node's name, made up from op and index where the file has none.
pub(crate) fn node_name(node: &NodeProto<'_>, index: usize) -> String {
    if node.name.is_empty() { format!("{}_{index}", node.op_type) } else { node.name.into() }
}
