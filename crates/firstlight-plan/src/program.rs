//! A graph made ready for planning: what is needed for the targets, and how often each value is read.

use crate::PlanError;
use firstlight_graph::{Graph, NodeId, Op, ValueId};
use std::collections::HashMap;
use std::sync::Arc;

/// A graph with its targets; subgraphs are programs of their own. Immutable and shared by all plans.
#[derive(Debug)]
pub struct Program {
    graph: Arc<Graph>,
    targets: Vec<ValueId>,
    /// First dense index of each node's values.
    first_value: Vec<u32>,
    needed: Vec<bool>,
    /// Needed nodes of this graph that compute something.
    n_computing: u32,
    /// Readers of each value among the needed nodes and the targets.
    n_uses: Vec<u32>,
    subprograms: HashMap<(NodeId, usize), Arc<Program>>,
}

impl Program {
    /// Makes a graph ready for the given targets.
    ///
    /// **Errors**: a target that is no value of the graph.
    pub fn new(graph: Arc<Graph>, targets: Vec<ValueId>) -> Result<Program, PlanError> {
        let nodes = graph.nodes();
        for target in &targets {
            if nodes.get(target.node.0 as usize).is_none_or(|node| target.output as usize >= node.outputs.len()) {
                return Err(PlanError::Target(format!("target {target} is no value of graph {:?}", graph.name())));
            }
        }
        let mut first_value = Vec::with_capacity(nodes.len());
        let mut n_values = 0u32;
        for node in nodes {
            first_value.push(n_values);
            n_values += node.outputs.len() as u32;
        }
        let mut program = Program {
            needed: vec![false; nodes.len()],
            n_computing: 0,
            n_uses: vec![0; n_values as usize],
            subprograms: HashMap::new(),
            first_value,
            targets,
            graph: graph.clone(),
        };
        for target in program.targets.clone() {
            program.needed[target.node.0 as usize] = true;
            let index = program.index(target);
            program.n_uses[index as usize] += 1;
        }
        for (i, node) in nodes.iter().enumerate().rev() {
            if !program.needed[i] {
                continue;
            }
            program.n_computing += u32::from(program.computes(i));
            for &input in node.inputs.iter().flatten() {
                program.needed[input.node.0 as usize] = true;
                let index = program.index(input);
                program.n_uses[index as usize] += 1;
            }
            for (which, subgraph) in node.op.subgraphs().enumerate() {
                let outputs = subgraph.outputs().iter().map(|(_, value)| *value).collect();
                let subprogram = Program::new(subgraph.clone(), outputs)?;
                program.subprograms.insert((NodeId(i as u32), which), Arc::new(subprogram));
            }
        }
        Ok(program)
    }

    /// The graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The values to realize.
    pub fn targets(&self) -> &[ValueId] {
        &self.targets
    }

    /// Dense index of a value.
    pub fn index(&self, value: ValueId) -> u32 {
        self.first_value[value.node.0 as usize] + value.output
    }

    /// True when a target depends on the node.
    pub fn is_needed(&self, node: usize) -> bool {
        self.needed.get(node).copied().unwrap_or(false)
    }

    /// True for a needed node that is no input and no constant.
    pub(crate) fn computes(&self, node: usize) -> bool {
        self.is_needed(node) && !matches!(self.graph.nodes()[node].op, Op::Const(_) | Op::Input(_))
    }

    /// Number of nodes for which that holds, those of subgraphs not counted.
    pub(crate) fn n_computing(&self) -> u32 {
        self.n_computing
    }

    /// Number of nodes that compute something a target depends on; subgraphs count once.
    pub fn n_needed(&self) -> usize {
        let nested: usize = self.subprograms.values().map(|program| program.n_needed()).sum();
        self.n_computing as usize + nested
    }

    /// Bytes of the constants that a target depends on; subgraphs count once.
    pub fn n_const_bytes(&self) -> usize {
        let nested: usize = self.subprograms.values().map(|program| program.n_const_bytes()).sum();
        let own = self.graph.nodes().iter().zip(&self.needed).filter(|(_, needed)| **needed);
        own.fold(nested, |sum, (node, _)| match &node.op {
            Op::Const(constant) => sum.saturating_add(constant.tensor.bytes().len()),
            _ => sum,
        })
    }

    /// Readers of a value of that dense index.
    pub fn n_uses(&self, index: u32) -> u32 {
        self.n_uses[index as usize]
    }

    /// The subgraph of a node (0: then branch or body; 1: else branch).
    pub fn subprogram(&self, node: NodeId, which: usize) -> Option<&Arc<Program>> {
        self.subprograms.get(&(node, which))
    }
}
