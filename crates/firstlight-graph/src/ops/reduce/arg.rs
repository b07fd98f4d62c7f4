//! What ArgMax and ArgMin share.

use super::axes_last;
use crate::infer::normalise_axis;
use crate::op::{Arity, AttrDoc, AttrValue, Param, RefCtx, TypeRef};
use crate::ops::checks::{expect_dtype, expect_shape};
use crate::ops::elementwise::unlisted;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, Element, Shape, SymShape, bf16, f16};
use smallvec::SmallVec;

/// The attributes of a search along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arg {
    /// The axis that is searched; counts from the end when negative.
    pub axis: i64,
    /// True when the axis stays, with size 1.
    pub keepdims: bool,
    /// True when the last of equal elements is taken.
    pub select_last_index: bool,
}

pub(crate) const ATTRIBUTES: &[AttrDoc] = &[
    AttrDoc { name: "axis", doc: "the axis that is searched" },
    AttrDoc { name: "keepdims", doc: "the axis stays, with size 1" },
    AttrDoc { name: "select_last_index", doc: "the last of equal elements is taken, not the first" },
];

pub(crate) const OUTPUTS: &[Param] = &[Param { name: "reduced", ty: TypeRef::Fixed(DType::I64), arity: Arity::One }];

impl Arg {
    pub(crate) fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![
            ("axis", AttrValue::Int(self.axis)),
            ("keepdims", AttrValue::Bool(self.keepdims)),
            ("select_last_index", AttrValue::Bool(self.select_last_index)),
        ]
    }

    pub(crate) fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let dims = ctx.dims(0)?;
        let axis = normalise_axis(self.axis, dims.rank())?;
        if dims[axis] == Dim::Known(0) {
            return Err(OpError::shape(format!("axis {axis} of {dims} has no element to take")));
        }
        Ok(OutInfo::new(DType::I64, SymShape(self.output_dims(dims, axis, Dim::Known(1)))).one())
    }

    fn output_dims<D: Clone>(&self, dims: &[D], axis: usize, one: D) -> Vec<D> {
        let kept = dims.iter().enumerate().filter(|&(i, _)| i != axis || self.keepdims);
        kept.map(|(i, dim)| if i == axis { one.clone() } else { dim.clone() }).collect()
    }

    pub(crate) fn compute(&self, ctx: &mut RefCtx<'_>, greatest: bool, name: &str) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.search::<f32>(ctx, greatest),
            DType::F64 => self.search::<f64>(ctx, greatest),
            DType::F16 => self.search::<f16>(ctx, greatest),
            DType::BF16 => self.search::<bf16>(ctx, greatest),
            DType::I64 => self.search::<i64>(ctx, greatest),
            DType::I32 => self.search::<i32>(ctx, greatest),
            DType::I16 => self.search::<i16>(ctx, greatest),
            DType::I8 => self.search::<i8>(ctx, greatest),
            DType::U64 => self.search::<u64>(ctx, greatest),
            DType::U32 => self.search::<u32>(ctx, greatest),
            DType::U16 => self.search::<u16>(ctx, greatest),
            DType::U8 => self.search::<u8>(ctx, greatest),
            other => Err(unlisted(name, other)),
        }
    }

    fn search<T: Element + PartialOrd>(&self, ctx: &mut RefCtx<'_>, greatest: bool) -> Result<(), OpError> {
        let input = ctx.input(0)?;
        let axis = normalise_axis(self.axis, input.shape().rank())?;
        let n = input.shape()[axis];
        let last: SmallVec<[bool; 6]> = (0..input.shape().rank()).map(|i| i == axis).collect();
        let expected: Shape = self.output_dims(input.shape(), axis, 1).into_iter().collect();
        let output = ctx.output(0)?;
        expect_dtype("output 0", DType::I64, output.dtype())?;
        expect_shape("output 0", &expected, output.shape())?;
        let rows = axes_last(&input, &last)?;
        let rows = rows.values::<T>()?;
        let output = output.values_mut::<i64>()?;
        if n == 0 && !output.is_empty() {
            return Err(OpError::shape(format!("axis {axis} of {} has no element to take", input.shape())));
        }
        for (out, row) in output.iter_mut().zip(rows.chunks_exact(n.max(1))) {
            *out = self.position(row, greatest) as i64;
        }
        Ok(())
    }

    fn position<T: Copy + PartialOrd>(&self, row: &[T], greatest: bool) -> usize {
        let mut best = 0;
        for i in 1..row.len() {
            let (x, held) = (row[i], row[best]);
            let wins = match (is_nan(x), is_nan(held)) {
                (true, true) => self.select_last_index,
                (x_is, held_is) if x_is || held_is => x_is,
                _ if x == held => self.select_last_index,
                _ => (x > held) == greatest,
            };
            best = if wins { i } else { best };
        }
        best
    }
}

#[allow(clippy::eq_op)]
fn is_nan<T: PartialOrd>(x: T) -> bool {
    x != x
}
