//! `Const`.

use super::no_reference;
use crate::op::{Arity, AttrDoc, AttrValue, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{SymShape, Tensor};
use smallvec::SmallVec;

/// A value that is part of the model. A realize that feeds the node's value adopts the fed storage instead.
#[derive(Clone, Debug, PartialEq)]
pub struct Const {
    /// The value; a weight stays a byte range of the mapped file.
    pub tensor: Tensor,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Const",
    doc: "A value that is part of the model.",
    attributes: &[AttrDoc { name: "tensor", doc: "the value" }],
    inputs: &[],
    outputs: &[Param { name: "value", ty: TypeRef::Any, arity: Arity::One }],
    types: &[],
    exactness: Exactness::Exact,
    cases: Vec::new,
};

impl OpDef for Const {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("tensor", AttrValue::Tensor(self.tensor.clone()))]
    }

    fn infer(&self, _ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let mut info = OutInfo::new(self.tensor.dtype(), SymShape::from(self.tensor.shape()));
        info.value = Some(self.tensor.clone());
        Ok(info.one())
    }

    fn reference(&self, _ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        Err(no_reference("Const"))
    }
}
