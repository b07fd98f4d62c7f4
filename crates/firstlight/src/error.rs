//! One error for everything that the door does.

use firstlight_backend::OverBudget;
use firstlight_exec::RunError;
use firstlight_graph::OpErrorKind;
use firstlight_onnx::LoadError;
use firstlight_plan::{NodeError, PlanError};
use firstlight_tensor::{DType, Shape, SymShape, TensorError};
use std::fmt;
use std::path::PathBuf;

/// Why a model could not be loaded or run.
///
/// The message names what is wrong and where: file, node and op, shapes and element types. [`Error::kind`] sorts
/// errors for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The model cannot be loaded.
    Load(LoadError),
    /// A run ended without its outputs; the caller's buffers are as they were.
    Run(RunError),
    /// An input does not fit what the model declares; nothing has run.
    Input {
        /// The input.
        name: String,
        /// What is wrong with it.
        problem: InputProblem,
    },
    /// A name that is no value of the model, or buffers that are not as many as the outputs.
    Output {
        /// What is wrong.
        problem: String,
    },
    /// An option that cannot be met, or two that contradict each other.
    Option {
        /// The option's name.
        option: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The memory limit refuses.
    Memory {
        /// What the memory is for.
        what: &'static str,
        /// The figures.
        refusal: OverBudget,
    },
    /// A tensor file that cannot be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Values that do not make the tensor they are said to be.
    Tensor(TensorError),
}

/// What is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputProblem {
    /// The model has no input of that name.
    Unknown {
        /// Those that it has.
        known: Vec<String>,
    },
    /// The input is not given and has no default.
    Missing,
    /// The input is given twice.
    Twice,
    /// More inputs are given by position than the model asks for.
    TooMany {
        /// How many the model asks for.
        expected: usize,
        /// How many are given.
        got: usize,
    },
    /// Another element type than the model declares.
    DType {
        /// What the model declares.
        expected: DType,
        /// What is given.
        got: DType,
    },
    /// A shape that the declared one does not admit.
    Shape {
        /// What the model declares.
        expected: SymShape,
        /// What is given.
        got: Shape,
    },
    /// A symbol that has another size in another input.
    Symbol {
        /// The symbol.
        symbol: String,
        /// Its size in this input.
        size: usize,
        /// The other input.
        other: String,
        /// Its size there.
        other_size: usize,
    },
    /// Bytes that are not as many as element type and shape ask for.
    Bytes {
        /// How many they ask for.
        expected: usize,
        /// How many are given.
        got: usize,
    },
    /// An element type that cannot be fed.
    Unsupported {
        /// The element type.
        dtype: DType,
    },
}

/// What kind of trouble an [`Error`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file cannot be opened, read or written.
    File,
    /// The file is not an ONNX model.
    Malformed,
    /// The model contradicts itself.
    InvalidModel,
    /// The model uses what is not supported.
    Unsupported,
    /// The model asks for more than a limit on its structure allows.
    Limit,
    /// The memory limit refuses.
    Memory,
    /// An input is not what the model declares.
    Input,
    /// Options or names of the caller that cannot be met.
    Usage,
    /// The caller cancelled.
    Cancelled,
    /// The deadline passed.
    DeadlineExceeded,
    /// A node failed, or its inputs do not fit it.
    Execution,
    /// A broken invariant of the runtime itself.
    Internal,
}

impl Error {
    /// The kind of trouble.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Load(error) => match error {
                LoadError::Io { .. } => ErrorKind::File,
                LoadError::Malformed(_) => ErrorKind::Malformed,
                LoadError::Limit { .. } => ErrorKind::Limit,
                LoadError::Cancelled { .. } => ErrorKind::Cancelled,
                LoadError::Unsupported(_) | LoadError::UnsupportedNode { .. } | LoadError::UnsupportedValue { .. } => {
                    ErrorKind::Unsupported
                }
                _ => ErrorKind::InvalidModel,
            },
            Error::Run(error) => match error {
                RunError::Cancelled { .. } => ErrorKind::Cancelled,
                RunError::DeadlineExceeded { .. } => ErrorKind::DeadlineExceeded,
                RunError::Input { .. } => ErrorKind::Input,
                RunError::Node(node) | RunError::Plan(PlanError::Node(node)) => node_kind(node),
                RunError::Plan(PlanError::Target(_)) => ErrorKind::Usage,
                _ => ErrorKind::Internal,
            },
            Error::Input { problem: InputProblem::Unsupported { .. }, .. } => ErrorKind::Unsupported,
            Error::Input { .. } | Error::Tensor(_) => ErrorKind::Input,
            Error::Output { .. } | Error::Option { .. } => ErrorKind::Usage,
            Error::Memory { .. } => ErrorKind::Memory,
            Error::File { .. } => ErrorKind::File,
        }
    }

    /// The node that the error is about, named as in the model, outermost subgraph first.
    pub fn node(&self) -> Option<&str> {
        match self {
            Error::Load(
                LoadError::Node { node, .. } | LoadError::UnsupportedNode { node, .. } | LoadError::Cancelled { node },
            ) => Some(node),
            Error::Run(RunError::Cancelled { node } | RunError::DeadlineExceeded { node }) => node.as_deref(),
            _ => self.node_error().map(|error| error.node.as_str()),
        }
    }

    /// The op of the node that the error is about.
    pub fn op(&self) -> Option<&str> {
        match self {
            Error::Load(LoadError::Node { op, .. } | LoadError::UnsupportedNode { op, .. }) => Some(op),
            _ => self.node_error().map(|error| error.op),
        }
    }

    fn node_error(&self) -> Option<&NodeError> {
        match self {
            Error::Run(RunError::Node(node) | RunError::Plan(PlanError::Node(node))) => Some(node),
            _ => None,
        }
    }
}

fn node_kind(node: &NodeError) -> ErrorKind {
    match node.source.kind() {
        OpErrorKind::Unsupported => ErrorKind::Unsupported,
        OpErrorKind::Memory => ErrorKind::Memory,
        _ => ErrorKind::Execution,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Load(error) => error.fmt(f),
            Error::Run(error) => error.fmt(f),
            Error::Input { name, problem: problem @ InputProblem::TooMany { .. } } if name.is_empty() => problem.fmt(f),
            Error::Input { name, problem } => write!(f, "input {name:?}: {problem}"),
            Error::Output { problem } => f.write_str(problem),
            Error::Option { option, problem } => write!(f, "option `{option}`: {problem}"),
            Error::Memory { what, refusal } => write!(f, "{what}: {refusal}"),
            Error::File { path, problem } => write!(f, "{}: {problem}", path.display()),
            Error::Tensor(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for InputProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputProblem::Unknown { known } if known.is_empty() => f.write_str("the model has no inputs"),
            InputProblem::Unknown { known } => {
                write!(f, "the model has no such input; its inputs are ")?;
                known
                    .iter()
                    .enumerate()
                    .try_for_each(|(i, name)| write!(f, "{}{name:?}", if i == 0 { "" } else { ", " }))
            }
            InputProblem::Missing => f.write_str("it is not given, and the model has no default for it"),
            InputProblem::Twice => f.write_str("it is given twice"),
            InputProblem::TooMany { expected, got } => {
                write!(f, "{got} inputs are given by position, the model asks for {expected}")
            }
            InputProblem::DType { expected, got } => write!(f, "expected elements of {expected}, got {got}"),
            InputProblem::Shape { expected, got } if expected.rank() != got.rank() => {
                write!(f, "expected rank {} (shape {expected}), got rank {} (shape {got})", expected.rank(), got.rank())
            }
            InputProblem::Shape { expected, got } => write!(f, "expected shape {expected}, got {got}"),
            InputProblem::Symbol { symbol, size, other, other_size } => {
                write!(
                    f,
                    "dimension {symbol:?} is {size} here and {other_size} in input {other:?}; it must be the same"
                )
            }
            InputProblem::Bytes { expected, got } => write!(f, "its shape takes {expected} bytes, got {got}"),
            InputProblem::Unsupported { dtype } => write!(f, "elements of {dtype} cannot be fed"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Load(error) => Some(error),
            Error::Run(error) => Some(error),
            Error::Tensor(error) => Some(error),
            Error::Memory { refusal, .. } => Some(refusal),
            Error::Input { .. } | Error::Output { .. } | Error::Option { .. } | Error::File { .. } => None,
        }
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Error {
        Error::Load(error)
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Error {
        Error::Run(error)
    }
}

impl From<TensorError> for Error {
    fn from(error: TensorError) -> Error {
        Error::Tensor(error)
    }
}
