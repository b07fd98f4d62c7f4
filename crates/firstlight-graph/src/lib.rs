//! The graph: what is computed, and nothing of where or how.
//!
//! A [`Graph`] holds nodes in topological order; each node's [`Op`] carries its attributes. An op is declared once, in
//! one file under `ops/`: attributes, arity, inference, reference, cases; one row in the table of `ops/mod.rs` adds it.
//! Subgraphs (branches of `If`, bodies of `Loop`) are graphs whose outer captures are explicit inputs.
//!
//! What is not here: devices, kernels, file formats. Start reading at [`Graph`], then at [`OpDef`].
#![forbid(unsafe_code)]

mod error;
mod graph;
mod infer;
mod op;
pub mod ops;
mod text;
mod verify;

pub use error::{OpError, OpErrorKind};
pub use graph::{Graph, GraphId, GraphInput, Node, NodeId, Spec, ValueId};
pub use infer::{
    InferCtx, MAX_KNOWN_ELEMS, OutInfo, ValueInfo, broadcast_dims, declared_dtype, infer_known, infer_symbolic,
    normalise_axis, run_reference,
};
pub use op::{
    Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar, Types, bind_types,
};
pub use ops::{Op, OpKind};
pub use verify::VerifyError;
