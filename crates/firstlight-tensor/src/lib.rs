//! Dtypes, shapes, layouts and host tensors: the words that every other room speaks.
//!
//! What is not here: graphs, devices, kernels. Start reading at [`Tensor`].
//! Unsafe code is confined to the `mapped` module.
//!
//! | feature | by default | gives |
//! | --- | --- | --- |
//! | `ndarray` | off | `Tensor::from_array` and `Tensor::array`: a tensor from and to arrays of the `ndarray` crate |
#![deny(unsafe_code)]

#[cfg(feature = "ndarray")]
mod array;
mod bytes;
mod cancel;
mod dtype;
mod layout;
mod mapped;
pub mod npy;
pub mod pb;
mod shape;
mod tensor;
mod view;
pub mod wire;

pub use bytes::{Bytes, OwnedBytes};
pub use cancel::CancelToken;
pub use dtype::{DType, Element, Kind};
pub use layout::Layout;
pub use mapped::MappedFile;
pub use shape::{Dim, Shape, SymShape};
pub use tensor::{Tensor, TensorError};
pub use view::{TensorView, TensorViewMut};

pub use half::{bf16, f16};
