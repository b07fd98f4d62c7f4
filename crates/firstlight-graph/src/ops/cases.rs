//! Builders of the tensors in named cases.

use super::Op;
use crate::op::Case;
use firstlight_tensor::{DType, Element, Tensor};

/// A case whose inputs are all given.
pub(crate) fn case(name: &'static str, op: impl Into<Op>, inputs: &[Tensor], outputs: &[Tensor]) -> Case {
    Case { name, op: op.into(), inputs: inputs.iter().cloned().map(Some).collect(), outputs: outputs.to_vec() }
}

/// A tensor of a case. Panics when shape and values disagree, which is a mistake in the case.
pub(crate) fn tensor<T: Element>(dims: &[usize], values: &[T]) -> Tensor {
    Tensor::from_slice(dims, values).unwrap_or_else(|error| panic!("{error}"))
}

/// A bool tensor of a case. Panics when shape and values disagree, which is a mistake in the case.
pub(crate) fn bools(dims: &[usize], values: &[bool]) -> Tensor {
    Tensor::from_bools(dims, values).unwrap_or_else(|error| panic!("{error}"))
}

/// A tensor of a case, of one dimension and elements of 8 bits. Panics when the type is another one, which is a mistake in
/// the case.
pub(crate) fn eight_bits(dtype: DType, values: &[u8]) -> Tensor {
    Tensor::new(dtype, [values.len()].into(), values.into()).unwrap_or_else(|error| panic!("{error}"))
}
