//! Checks that references share: the views they are given need not fit.

use crate::OpError;
use firstlight_tensor::{DType, Shape};

/// Checks the shape of a view that a reference was given.
///
/// **Errors**: it is not the expected one; its number of elements overflows.
pub(crate) fn expect_shape(what: &str, expected: &Shape, got: &Shape) -> Result<(), OpError> {
    match (expected == got, got.n_elems()) {
        (true, Some(_)) => Ok(()),
        (true, None) => Err(OpError::shape(format!("{what} of shape {got} is larger than the address space"))),
        (false, _) => Err(OpError::shape(format!("{what} has shape {got}, expected {expected}"))),
    }
}

/// Checks the element type of a view that a reference was given.
///
/// **Errors**: it is not the expected one.
pub(crate) fn expect_dtype(what: &str, expected: DType, got: DType) -> Result<(), OpError> {
    match expected == got {
        true => Ok(()),
        false => Err(OpError::dtype(format!("{what} has elements of {got}, expected {expected}"))),
    }
}
