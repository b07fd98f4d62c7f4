//! `Input`.

use super::no_reference;
use crate::op::{Arity, AttrDoc, AttrValue, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef};
use crate::{InferCtx, OpError, OutInfo};
use smallvec::SmallVec;

/// A value that the caller feeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Position among the graph's inputs.
    pub index: u32,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Input",
    doc: "A value that the caller feeds.",
    attributes: &[AttrDoc { name: "index", doc: "position among the graph's inputs" }],
    inputs: &[],
    outputs: &[Param { name: "value", ty: TypeRef::Any, arity: Arity::One }],
    types: &[],
    exactness: Exactness::Exact,
    cases: Vec::new,
};

impl OpDef for Input {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("index", AttrValue::Int(self.index.into()))]
    }

    fn infer(&self, _ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        Err(OpError::unsupported("the spec of an input is the caller's"))
    }

    fn reference(&self, _ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        Err(no_reference("Input"))
    }
}
