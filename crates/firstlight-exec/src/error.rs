//! What a run says when it fails.

use firstlight_graph::{OpError, OpErrorKind};
use firstlight_plan::{CompiledNode, NodeError, PlanError};
use std::fmt;

/// Why a realize ended without its targets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// A node could not be compiled, or the targets are not the graph's.
    Plan(PlanError),
    /// A step failed.
    Node(Box<NodeError>),
    /// The run was cancelled before that node.
    Cancelled {
        /// The node that was next; `None` while passes rewrote the graph, or the run waited for others at the memory
        /// limit.
        node: Option<String>,
    },
    /// The deadline passed before that node.
    DeadlineExceeded {
        /// The node that was next; `None` as above.
        node: Option<String>,
    },
    /// An input that is missing, unknown or of another spec than the graph's.
    Input {
        /// The input's name in the graph.
        name: String,
        /// What was expected and what was given.
        message: String,
    },
    /// An output that the caller's buffer cannot take.
    Output {
        /// Which target, in the order they were asked for.
        index: usize,
        /// What the value needs and what the buffer has.
        message: String,
    },
    /// `PersistentOutputs` that belong to another plan, or lack what a replay needs.
    Persistent(String),
    /// The pool could not be made or a job of it failed.
    Pool(String),
}

/// When a run ended that no node had its turn in.
const EARLY: &str = "before the first node";

impl RunError {
    /// A step's failure with the step's name and inputs.
    pub(crate) fn node(step: &CompiledNode, source: OpError) -> RunError {
        let inputs = step.call.inputs.iter().map(|spec| spec.as_ref().map_or("_".to_owned(), ToString::to_string));
        RunError::Node(Box::new(NodeError {
            node: step.name.to_string(),
            op: step.call.op.info().name,
            inputs: inputs.collect(),
            source,
        }))
    }

    /// True when the memory budget refused.
    pub fn is_over_budget(&self) -> bool {
        match self {
            RunError::Plan(PlanError::Node(node)) | RunError::Node(node) => *node.source.kind() == OpErrorKind::Memory,
            _ => false,
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Plan(error) => error.fmt(f),
            RunError::Node(error) => error.fmt(f),
            RunError::Cancelled { node: Some(node) } => write!(f, "cancelled before node {node:?}"),
            RunError::Cancelled { node: None } => write!(f, "cancelled {EARLY}"),
            RunError::DeadlineExceeded { node: Some(node) } => write!(f, "the deadline passed before node {node:?}"),
            RunError::DeadlineExceeded { node: None } => write!(f, "the deadline passed {EARLY}"),
            RunError::Input { name, message } => write!(f, "input {name:?}: {message}"),
            RunError::Output { index, message } => write!(f, "output {index}: {message}"),
            RunError::Persistent(message) => write!(f, "persistent outputs: {message}"),
            RunError::Pool(message) => write!(f, "thread pool: {message}"),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Plan(error) => Some(error),
            RunError::Node(error) => Some(error),
            _ => None,
        }
    }
}

impl From<PlanError> for RunError {
    fn from(error: PlanError) -> RunError {
        match error {
            PlanError::Cancelled => RunError::Cancelled { node: None },
            error => RunError::Plan(error),
        }
    }
}
