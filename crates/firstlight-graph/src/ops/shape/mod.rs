//! Ops whose results, or the shapes of whose results, follow from shapes and values.

pub mod constant_of_shape;
pub mod non_zero;
pub mod range;
pub mod shape_op;
pub mod size;

use crate::OpError;
use firstlight_tensor::DType;

/// Checks that a computed number of elements fits the address space.
///
/// **Errors**: it does not.
pub(crate) fn check_n_elems(dtype: DType, n_elems: Option<usize>, what: &str) -> Result<(), OpError> {
    let n_bytes = n_elems.and_then(|n| dtype.size_bytes(n));
    match n_bytes.is_some_and(|n| isize::try_from(n).is_ok()) {
        true => Ok(()),
        false => Err(OpError::shape(format!("{what}: the result is larger than the address space"))),
    }
}
