//! `Loop`.

use super::no_reference;
use crate::op::{Arity, AttrDoc, AttrValue, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef};
use crate::{Graph, InferCtx, OpError, OutInfo};
use firstlight_tensor::DType;
use smallvec::SmallVec;
use std::sync::Arc;

/// A subgraph run again and again while a condition holds, at most a given number of times.
///
/// The node's inputs are the trip count (may be omitted), the first condition (may be omitted: true), the carried
/// values, and then the outer values that the body captures. The body's inputs are the iteration number, the
/// condition, the carried values and the captures; its outputs are the next condition, the carried values and the
/// scanned values. The node's outputs are the last carried values and the scanned values of all iterations, stacked
/// along a new first dimension.
#[derive(Clone, Debug)]
pub struct Loop {
    /// One iteration.
    pub body: Arc<Graph>,
    /// How many values are carried from one iteration to the next.
    pub n_carried: usize,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Loop",
    doc: "A subgraph run again and again while a condition holds, at most a given number of times.",
    attributes: &[
        AttrDoc { name: "body", doc: "what is computed in each iteration" },
        AttrDoc { name: "n_carried", doc: "how many values are carried from one iteration to the next" },
    ],
    inputs: &[
        Param { name: "trip_count", ty: TypeRef::Fixed(DType::I64), arity: Arity::Optional },
        Param { name: "cond", ty: TypeRef::Fixed(DType::Bool), arity: Arity::Optional },
        Param { name: "carried_and_captures", ty: TypeRef::Any, arity: Arity::Variadic(0) },
    ],
    outputs: &[Param { name: "carried_and_scanned", ty: TypeRef::Any, arity: Arity::Variadic(0) }],
    types: &[],
    exactness: Exactness::Exact,
    cases: Vec::new,
};

impl OpDef for Loop {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("body", AttrValue::Graph), ("n_carried", AttrValue::Int(self.n_carried as i64))]
    }

    fn infer(&self, _ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        Err(OpError::unsupported("the shapes that a Loop gives are known when it has run"))
    }

    fn reference(&self, _ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        Err(no_reference("Loop"))
    }
}

impl PartialEq for Loop {
    fn eq(&self, other: &Loop) -> bool {
        self.body.id() == other.body.id() && self.n_carried == other.n_carried
    }
}
