//! Conformance: the official ONNX suite ([`suite`]), and every op's named cases on every device ([`cases`]).
//!
//! `suite/` holds the runners of the official suite and of the comparison with onnxruntime; the program
//! `firstlight-conformance` answers them. This crate sees every room and is never published.
#![forbid(unsafe_code)]

pub mod cases;
pub mod compare;
pub mod device;
pub mod suite;
