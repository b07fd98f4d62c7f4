//! `If`.

use super::no_reference;
use crate::op::{Arity, AttrDoc, AttrValue, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef};
use crate::{Graph, InferCtx, OpError, OutInfo};
use firstlight_tensor::DType;
use smallvec::SmallVec;
use std::sync::Arc;

/// One of two subgraphs, chosen by a bool.
///
/// The node's inputs are the condition and then the outer values that the branches capture. Both branches take all
/// captures as their inputs, in that order, and give as many outputs as the node has.
#[derive(Clone, Debug)]
pub struct If {
    /// Runs where the condition is true.
    pub then_branch: Arc<Graph>,
    /// Runs where the condition is false.
    pub else_branch: Arc<Graph>,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "If",
    doc: "One of two subgraphs, chosen by a bool of one element.",
    attributes: &[
        AttrDoc { name: "then_branch", doc: "what is computed when the condition is true" },
        AttrDoc { name: "else_branch", doc: "what is computed when it is false" },
    ],
    inputs: &[
        Param { name: "cond", ty: TypeRef::Fixed(DType::Bool), arity: Arity::One },
        Param { name: "captures", ty: TypeRef::Any, arity: Arity::Variadic(0) },
    ],
    outputs: &[Param { name: "outputs", ty: TypeRef::Any, arity: Arity::Variadic(0) }],
    types: &[],
    exactness: Exactness::Exact,
    cases: Vec::new,
};

impl OpDef for If {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("then_branch", AttrValue::Graph), ("else_branch", AttrValue::Graph)]
    }

    fn infer(&self, _ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        Err(OpError::needs_value(0))
    }

    fn reference(&self, _ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        Err(no_reference("If"))
    }
}

impl PartialEq for If {
    fn eq(&self, other: &If) -> bool {
        self.then_branch.id() == other.then_branch.id() && self.else_branch.id() == other.else_branch.id()
    }
}
