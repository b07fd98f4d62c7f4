//! `ConstantOfShape`.

use super::check_n_elems;
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{bools, case, tensor};
use crate::ops::checks::{expect_dtype, expect_shape};
use crate::ops::elementwise::unlisted;
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Shape, Tensor};
use smallvec::SmallVec;

/// A tensor of a given shape, filled with one value.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantOfShape {
    /// The value, a tensor of one element; its type is the result's.
    pub value: Tensor,
}

impl Default for ConstantOfShape {
    fn default() -> ConstantOfShape {
        ConstantOfShape { value: Tensor::scalar(0f32) }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ConstantOfShape",
    doc: "A tensor of the given shape, filled with one value. An empty shape gives a scalar.",
    attributes: &[AttrDoc { name: "value", doc: "the value, a tensor of one element; its type is the result's" }],
    inputs: &[Param { name: "input", ty: TypeRef::Fixed(DType::I64), arity: Arity::One }],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for ConstantOfShape {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("value", AttrValue::Tensor(self.value.clone()))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        self.check_value()?;
        let dims = ctx.dims(0)?;
        if dims.rank() != 1 {
            return Err(OpError::shape(format!("the wanted shape is {dims}, expected one dimension")));
        }
        let shape = wanted(&ctx.ints(0)?)?;
        check_n_elems(self.value.dtype(), shape.n_elems(), "ConstantOfShape")?;
        Ok(OutInfo::known(self.value.dtype(), shape).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.check_value()?;
        let shape = wanted(&ctx.input(0)?.values::<i64>()?)?;
        let output = ctx.output(0)?;
        expect_dtype("output 0", self.value.dtype(), output.dtype())?;
        expect_shape("output 0", &shape, output.shape())?;
        match output.dtype().bits() {
            8 => self.fill::<u8>(ctx),
            16 => self.fill::<u16>(ctx),
            32 => self.fill::<u32>(ctx),
            64 => self.fill::<u64>(ctx),
            128 => self.fill::<[u64; 2]>(ctx),
            _ => Err(unlisted("ConstantOfShape", output.dtype())),
        }
    }

    fn n_operations(&self, _inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        0
    }
}

impl ConstantOfShape {
    fn check_value(&self) -> Result<(), OpError> {
        let value = &self.value;
        if !BYTE_SIZED.contains(&value.dtype()) {
            return Err(OpError::unsupported(format!("ConstantOfShape does not fill with {} elements", value.dtype())));
        }
        match value.n_elems() {
            1 => Ok(()),
            n => Err(OpError::value(format!("the value has {n} elements, expected 1"))),
        }
    }

    fn fill<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let value = self.value.view().words::<W>()?.first().copied();
        let value = value.ok_or_else(|| OpError::value("the value has no elements, expected 1"))?;
        ctx.output(0)?.words_mut::<W>()?.fill(value);
        Ok(())
    }
}

fn wanted(sizes: &[i64]) -> Result<Shape, OpError> {
    let negative = |size| OpError::value(format!("the wanted shape {sizes:?} holds {size}, expected no negative size"));
    sizes.iter().map(|&size| usize::try_from(size).map_err(|_| negative(size))).collect()
}

fn cases() -> Vec<Case> {
    let fill = |name, value: Tensor, shape: &[i64], output: Tensor| {
        case(name, ConstantOfShape { value }, &[tensor(&[shape.len()], shape)], &[output])
    };
    vec![
        fill("integers", tensor(&[1], &[7i64]), &[2, 2], tensor(&[2, 2], &[7i64; 4])),
        fill("the value's bits", Tensor::scalar(-0f32), &[3], tensor(&[3], &[-0f32; 3])),
        fill("bools", bools(&[1], &[true]), &[2], bools(&[2], &[true; 2])),
        fill("rank 0", Tensor::scalar(1u16), &[], Tensor::scalar(1u16)),
        fill("empty", Tensor::scalar(1f64), &[2, 0], tensor::<f64>(&[2, 0], &[])),
        case("zeros by default", ConstantOfShape::default(), &[tensor(&[1], &[2i64])], &[tensor(&[2], &[0f32; 2])]),
    ]
}
