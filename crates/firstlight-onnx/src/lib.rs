//! ONNX import of Firstlight.
#![forbid(unsafe_code)]

pub mod proto;
