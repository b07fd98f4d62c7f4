//! What planning says when a node cannot be compiled.

use firstlight_graph::OpError;
use std::fmt;

/// Trouble with one node: which, what it reads, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeError {
    /// Name of the node as in the user's file, outermost subgraph first.
    pub node: String,
    /// Name of the op.
    pub op: &'static str,
    /// Element types and shapes of its inputs, as far as they are known.
    pub inputs: Vec<String>,
    /// What went wrong, in the words of the op, the kernel or the memory.
    pub source: OpError,
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.op == "Input" {
            return write!(f, "inputs of the run: {}", self.source);
        }
        write!(f, "node {:?}, {}({}): {}", self.node, self.op, self.inputs.join(", "), self.source)
    }
}

impl std::error::Error for NodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Why a graph cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// A node cannot be compiled.
    Node(Box<NodeError>),
    /// A target that the graph does not have.
    Target(String),
    /// The caller cancelled.
    Cancelled,
    /// A broken invariant of the planner itself.
    Internal(String),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Node(node) => node.fmt(f),
            PlanError::Target(message) => f.write_str(message),
            PlanError::Cancelled => f.write_str("cancelled while passes rewrote the graph"),
            PlanError::Internal(message) => write!(f, "internal error of the planner: {message}"),
        }
    }
}

impl std::error::Error for PlanError {}
