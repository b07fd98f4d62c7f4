//! Inputs, constants and control flow: ops that the planner resolves and no kernel runs.

pub mod constant;
pub mod if_op;
pub mod input;
pub mod loop_op;

use crate::OpError;

/// The error of a reference that does not exist.
pub(crate) fn no_reference(op: &str) -> OpError {
    OpError::unsupported(format!("{op} is resolved by the planner and has no reference"))
}
