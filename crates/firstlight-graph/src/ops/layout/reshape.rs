//! `Reshape`.

use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, SymShape, Tensor};
use smallvec::SmallVec;

/// The same elements under another shape.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Reshape {
    /// True when a 0 in the wanted shape is a size of 0; otherwise it keeps the input's size at that place.
    pub allow_zero: bool,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Reshape",
    doc: "The same elements under another shape. One wanted size may be -1: it takes what is left.",
    attributes: &[AttrDoc {
        name: "allow_zero",
        doc: "0 in the wanted shape is a size; otherwise it keeps the input's size",
    }],
    inputs: &[
        Param { name: "data", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "shape", ty: TypeRef::Fixed(DType::I64), arity: Arity::One },
    ],
    outputs: &[Param { name: "reshaped", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Reshape {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("allow_zero", AttrValue::Bool(self.allow_zero))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let wanted = ctx.ints(1)?;
        let from = ctx.dims(0)?;
        let misfit = |why: &str| OpError::shape(format!("cannot reshape {from} to {wanted:?}: {why}"));
        if wanted.iter().filter(|&&size| size == -1).count() > 1 {
            return Err(misfit("more than one size is -1"));
        }
        if self.allow_zero && wanted.contains(&0) && wanted.contains(&-1) {
            return Err(misfit("with allow_zero a shape cannot hold both 0 and -1"));
        }
        let mut dims = Vec::with_capacity(wanted.len());
        for (i, &size) in wanted.iter().enumerate() {
            dims.push(match size {
                0 if !self.allow_zero => {
                    from.get(i).cloned().ok_or_else(|| misfit("a size of 0 keeps a dimension the input lacks"))?
                }
                -1 => Dim::Unknown,
                _ => Dim::Known(usize::try_from(size).map_err(|_| misfit("a size is negative"))?),
            });
        }
        if let Some(shape) = from.known() {
            let total = shape.n_elems().ok_or_else(|| misfit("the input is too large"))?;
            let given = dims.iter().filter_map(Dim::known).try_fold(1usize, usize::checked_mul);
            let given = given.ok_or_else(|| misfit("the product of the sizes overflows"))?;
            match wanted.iter().position(|&size| size == -1) {
                Some(_) if given == 0 && total != 0 => return Err(misfit("the element counts differ")),
                Some(rest) if given == 0 => dims[rest] = Dim::Known(0),
                Some(_) if total % given != 0 => return Err(misfit("the element counts do not divide")),
                Some(rest) => dims[rest] = Dim::Known(total / given),
                None if given != total => return Err(misfit("the element counts differ")),
                None => {}
            }
        }
        Ok(OutInfo::new(ctx.dtype(0)?, SymShape(dims)).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        super::copy_elements(ctx)
    }

    fn is_view(&self) -> bool {
        true
    }

    fn n_operations(&self, _inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        0
    }
}

fn cases() -> Vec<Case> {
    let x = |dims: &[usize]| Tensor::from_slice(dims, &[1f32, 2., 3., 4., 5., 6.]).unwrap_or_else(|e| panic!("{e}"));
    let case = |name, wanted: &[i64], dims: &[usize]| Case {
        name,
        op: Reshape::default().into(),
        inputs: vec![Some(x(&[2, 3])), Tensor::from_slice([wanted.len()], wanted).ok()],
        outputs: vec![x(dims)],
    };
    vec![case("given sizes", &[3, 2], &[3, 2]), case("rest", &[-1], &[6]), case("kept size", &[0, 3, -1], &[2, 3, 1])]
}
