//! Why a model cannot be loaded.

use crate::proto::ProtoError;
use firstlight_tensor::pb::PbError;
use firstlight_tensor::wire::WireError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a model cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be opened or read.
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        problem: String,
    },
    /// The bytes are not an ONNX file.
    Malformed(WireError),
    /// The file asks for more than a limit allows.
    Limit {
        /// The limit's name, as the options have it.
        limit: &'static str,
        /// Its value.
        value: usize,
        /// What goes beyond it.
        what: String,
    },
    /// Something about the model as a whole.
    Model(String),
    /// The caller cancelled before that node.
    Cancelled {
        /// The node that was next.
        node: String,
    },
    /// Ops that are not supported: all of them.
    Unsupported(Vec<UnsupportedOp>),
    /// A node that is not what its op asks for.
    Node {
        /// The node's name, with those of the function calls and subgraphs around it.
        node: String,
        /// Its op.
        op: String,
        /// What is wrong.
        problem: String,
    },
    /// A node that ONNX allows, with a setting or element type that is not supported.
    UnsupportedNode {
        /// The node's name, as above.
        node: String,
        /// Its op.
        op: String,
        /// What is not supported.
        problem: String,
    },
    /// An input or output of the graph of a type that is not supported.
    UnsupportedValue {
        /// The value.
        value: String,
        /// What is not supported.
        problem: String,
    },
    /// Nodes that need each other's values.
    Cycle {
        /// The nodes, each reading a value of the next one and the last one a value of the first.
        nodes: Vec<String>,
        /// The value that each of them reads.
        values: Vec<String>,
    },
    /// A value that has two sources.
    TwoWriters {
        /// The value.
        value: String,
        /// Its sources.
        writers: [String; 2],
    },
    /// A value that has no source.
    MissingValue {
        /// The value.
        value: String,
        /// Who reads it.
        reader: String,
    },
    /// A tensor whose contents contradict its header.
    Tensor(PbError),
    /// External data that cannot be used.
    External {
        /// The tensor.
        tensor: String,
        /// The file as the model names it.
        file: String,
        /// What is wrong.
        problem: String,
    },
}

/// An op that the importer does not know, and where the model uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedOp {
    /// The op's domain; `ai.onnx` for the standard one.
    pub domain: String,
    /// The op.
    pub op: String,
    /// Version of the domain's operator set; `None` where the model does not import the domain.
    pub version: Option<i64>,
    /// How many nodes use it.
    pub count: usize,
    /// Names of the first of them.
    pub nodes: Vec<String>,
    /// The version from which on the op would be supported, where the model's is too old.
    pub since: Option<i64>,
}

impl LoadError {
    /// Whether the model may be fine and only asks for something that is not supported.
    pub fn is_unsupported(&self) -> bool {
        match self {
            LoadError::Unsupported(_) | LoadError::UnsupportedNode { .. } | LoadError::UnsupportedValue { .. } => true,
            LoadError::Io { .. }
            | LoadError::Malformed(_)
            | LoadError::Limit { .. }
            | LoadError::Model(_)
            | LoadError::Cancelled { .. }
            | LoadError::Node { .. }
            | LoadError::Cycle { .. }
            | LoadError::TwoWriters { .. }
            | LoadError::MissingValue { .. }
            | LoadError::Tensor(_)
            | LoadError::External { .. } => false,
        }
    }

    /// The error as seen from around the node whose subgraph it happened in.
    pub(crate) fn inside(self, outer: &str) -> Self {
        match self {
            LoadError::Node { node, op, problem } => LoadError::Node { node: format!("{outer}/{node}"), op, problem },
            LoadError::Cancelled { node } => LoadError::Cancelled { node: format!("{outer}/{node}") },
            LoadError::UnsupportedNode { node, op, problem } => {
                LoadError::UnsupportedNode { node: format!("{outer}/{node}"), op, problem }
            }
            LoadError::MissingValue { value, reader } => {
                LoadError::MissingValue { value, reader: format!("{reader} inside node `{outer}`") }
            }
            other => other,
        }
    }

    pub(crate) fn no_graph() -> Self {
        LoadError::Model("it holds no graph; is it an ONNX model?".into())
    }

    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        let problem = match error.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            _ => error.to_string(),
        };
        LoadError::Io { path: path.to_path_buf(), problem }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Io { path, problem } => write!(f, "{}: {problem}", path.display()),
            LoadError::Malformed(e) => write!(f, "not a readable ONNX model: {e}"),
            LoadError::Limit { limit, value, what } => {
                write!(f, "{what}: more than the limit `{limit}` = {value} allows; raise it if the file is trusted")
            }
            LoadError::Model(problem) => write!(f, "the model cannot be used: {problem}"),
            LoadError::Cancelled { node } => write!(f, "loading was cancelled before node `{node}`"),
            LoadError::Unsupported(ops) => {
                write!(f, "{} op{} not supported:", ops.len(), if ops.len() == 1 { " is" } else { "s are" })?;
                ops.iter().try_for_each(|op| write!(f, "\n  {op}"))
            }
            LoadError::Node { node, op, problem } | LoadError::UnsupportedNode { node, op, problem } => {
                write!(f, "node `{node}` ({op}): {problem}")
            }
            LoadError::UnsupportedValue { value, problem } => write!(f, "value `{value}`: {problem}"),
            LoadError::Cycle { nodes, values } => {
                write!(f, "the graph has a cycle:")?;
                for (i, (node, value)) in nodes.iter().zip(values).enumerate() {
                    write!(f, "{} node `{node}` reads `{value}`", if i == 0 { "" } else { " of" })?;
                }
                write!(f, " of node `{}`", nodes.first().map_or("", String::as_str))
            }
            LoadError::TwoWriters { value, writers: [a, b] } => {
                write!(f, "value `{value}` is written twice: by {a} and by {b}")
            }
            LoadError::MissingValue { value, reader } => {
                write!(f, "{reader} reads value `{value}`, which nothing gives")
            }
            LoadError::Tensor(e) => e.fmt(f),
            LoadError::External { tensor, file, problem } => {
                write!(f, "tensor `{tensor}`: external data in {file:?}: {problem}")
            }
        }
    }
}

impl std::error::Error for LoadError {}

impl fmt::Display for UnsupportedOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.domain, self.op)?;
        match self.version {
            Some(version) => write!(f, " (opset {version}")?,
            None => write!(f, " (the model does not import this domain")?,
        }
        if let Some(since) = self.since {
            write!(f, ", supported from {since} on")?;
        }
        write!(f, "), {} node{}: ", self.count, if self.count == 1 { "" } else { "s" })?;
        for (i, node) in self.nodes.iter().enumerate() {
            write!(f, "{}`{node}`", if i == 0 { "" } else { ", " })?;
        }
        match self.count.saturating_sub(self.nodes.len()) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl From<ProtoError> for LoadError {
    fn from(e: ProtoError) -> Self {
        match e {
            ProtoError::Malformed(e) => LoadError::Malformed(e),
            ProtoError::Limit { offset, limit, value } => {
                LoadError::Limit { limit, value, what: format!("at byte {offset}") }
            }
        }
    }
}

impl From<PbError> for LoadError {
    fn from(e: PbError) -> Self {
        match e {
            PbError::Malformed(e) => LoadError::Malformed(e),
            invalid @ PbError::Invalid { .. } => LoadError::Tensor(invalid),
        }
    }
}
