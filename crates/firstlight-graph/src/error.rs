//! What an op says when it cannot be inferred or computed.

use firstlight_tensor::TensorError;
use std::fmt;

/// Why an op cannot be inferred or computed; the caller adds the node's name and input specs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpError {
    kind: OpErrorKind,
    message: String,
}

/// What kind of trouble an [`OpError`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpErrorKind {
    /// The shapes of the inputs do not fit the op or each other.
    Shape,
    /// The element types of the inputs do not fit the op or each other.
    DType,
    /// An attribute or a parameter input has a value that the op does not take.
    Value,
    /// The number of inputs or outputs is not one the op takes.
    Arity,
    /// The standard allows it, this op does not do it yet.
    Unsupported,
    /// Inference needs the value of that input, and it is not known yet.
    NeedsValue(usize),
    /// The memory budget refused.
    Memory,
    /// A device refused or failed.
    Device,
    /// The kernel panicked; the message is what it said.
    Panic,
}

impl OpError {
    /// An error of a given kind.
    pub fn new(kind: OpErrorKind, message: impl Into<String>) -> OpError {
        OpError { kind, message: message.into() }
    }

    /// Shapes that do not fit.
    pub fn shape(message: impl Into<String>) -> OpError {
        OpError::new(OpErrorKind::Shape, message)
    }

    /// Element types that do not fit.
    pub fn dtype(message: impl Into<String>) -> OpError {
        OpError::new(OpErrorKind::DType, message)
    }

    /// A value that the op does not take.
    pub fn value(message: impl Into<String>) -> OpError {
        OpError::new(OpErrorKind::Value, message)
    }

    /// Something allowed that this op does not do.
    pub fn unsupported(message: impl Into<String>) -> OpError {
        OpError::new(OpErrorKind::Unsupported, message)
    }

    /// Inference that has to wait for the value of input `i`.
    pub fn needs_value(i: usize) -> OpError {
        OpError::new(OpErrorKind::NeedsValue(i), format!("the value of input {i} is not known yet"))
    }

    /// The kind of trouble.
    pub fn kind(&self) -> &OpErrorKind {
        &self.kind
    }

    /// What is wrong, without the node's name.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for OpError {}

impl From<TensorError> for OpError {
    fn from(error: TensorError) -> OpError {
        let kind = match error {
            TensorError::WrongDType { .. } => OpErrorKind::DType,
            TensorError::TooLarge { .. } | TensorError::WrongSize { .. } | TensorError::NotDense { .. } => OpErrorKind::Shape,
            TensorError::BadStrings => OpErrorKind::Value,
        };
        OpError::new(kind, error.to_string())
    }
}
