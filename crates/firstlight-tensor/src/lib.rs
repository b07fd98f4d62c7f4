//! Dtypes, shapes, layouts and host tensors of Firstlight.
#![deny(unsafe_code)]

pub mod pb;
pub mod wire;
