//! What reductions along given axes share: attributes, parameters, inference, and the walk of their references.

use super::axes_last;
use crate::infer::normalise_axis;
use crate::op::{Arity, AttrDoc, AttrValue, Param, RefCtx, TypeRef};
use crate::ops::Op;
use crate::ops::checks::{expect_dtype, expect_shape};
use crate::ops::elementwise::unlisted;
use crate::ops::nn::arith::{Math, Stored};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, Element, SymShape, TensorView, bf16, f16};
use smallvec::SmallVec;

/// The attributes of a reduction along axes that its second input names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Along {
    /// True when reduced axes stay, with size 1.
    pub keepdims: bool,
    /// True when no axes mean that nothing is reduced, so that each result is made from one element; otherwise they mean
    /// that all axes are.
    pub noop_with_empty_axes: bool,
}

pub(crate) const ATTRIBUTES: &[AttrDoc] = &[
    AttrDoc { name: "keepdims", doc: "reduced axes stay, with size 1" },
    AttrDoc {
        name: "noop_with_empty_axes",
        doc: "no axes mean that nothing is reduced, so that each result is made from one element; otherwise they mean \
              that all axes are",
    },
];

pub(crate) const INPUTS: &[Param] = &[
    Param { name: "data", ty: TypeRef::Var(0), arity: Arity::One },
    Param { name: "axes", ty: TypeRef::Fixed(DType::I64), arity: Arity::Optional },
];

pub(crate) const OUTPUTS: &[Param] = &[Param { name: "reduced", ty: TypeRef::Var(0), arity: Arity::One }];

/// The types that reductions by arithmetic take.
pub(crate) const TYPES: &[DType] =
    &[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U64, DType::U32];

/// The types that reductions by comparison take.
pub(crate) const ORDERED: &[DType] = &[
    DType::F32,
    DType::F64,
    DType::F16,
    DType::BF16,
    DType::I64,
    DType::I32,
    DType::U64,
    DType::U32,
    DType::I8,
    DType::U8,
    DType::Bool,
];

/// A reduction by arithmetic: what one result is made from, in the type that elements are computed in.
pub(crate) trait Row {
    fn reduce<M: Math>(row: &[M]) -> M;
}

impl Along {
    /// The attributes of an op that reduces along axes; `None` for other ops.
    pub fn of(op: &Op) -> Option<Along> {
        Some(match op {
            Op::ReduceL1(op) => op.along(),
            Op::ReduceL2(op) => op.along(),
            Op::ReduceLogSum(op) => op.along(),
            Op::ReduceLogSumExp(op) => op.along(),
            Op::ReduceMax(op) => op.along(),
            Op::ReduceMean(op) => op.along(),
            Op::ReduceMin(op) => op.along(),
            Op::ReduceProd(op) => op.along(),
            Op::ReduceSum(op) => op.along(),
            Op::ReduceSumSquare(op) => op.along(),
            _ => return None,
        })
    }

    /// For each axis of an input of that rank, whether it is reduced.
    ///
    /// **Errors**: an axis outside the rank, or named twice.
    pub fn reduced(&self, axes: &[i64], rank: usize) -> Result<SmallVec<[bool; 6]>, OpError> {
        let all = axes.is_empty() && !self.noop_with_empty_axes;
        let mut reduced = SmallVec::from_elem(all, rank);
        for &axis in axes {
            let at = normalise_axis(axis, rank)?;
            if reduced[at] {
                return Err(OpError::value(format!("axes {axes:?} name axis {at} twice")));
            }
            reduced[at] = true;
        }
        Ok(reduced)
    }

    pub(crate) fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![
            ("keepdims", AttrValue::Bool(self.keepdims)),
            ("noop_with_empty_axes", AttrValue::Bool(self.noop_with_empty_axes)),
        ]
    }

    pub(crate) fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let axes = if ctx.has(1) {
            match ctx.dims(1)?.0.as_slice() {
                [Dim::Known(0)] => vec![],
                _ => ctx.ints(1)?,
            }
        } else {
            vec![]
        };
        let dims = ctx.dims(0)?;
        let reduced = self.reduced(&axes, dims.rank())?;
        Ok(OutInfo::new(ctx.dtype(0)?, SymShape(self.output_dims(dims, &reduced, Dim::Known(1)))).one())
    }

    /// The output's dimensions, where a reduced one that stays is `one`.
    fn output_dims<D: Clone>(&self, dims: &[D], reduced: &[bool], one: D) -> Vec<D> {
        let sizes = dims.iter().zip(reduced).filter(|&(_, &reduced)| !reduced || self.keepdims);
        sizes.map(|(dim, &reduced)| if reduced { one.clone() } else { dim.clone() }).collect()
    }

    /// Fills the output by an arithmetic reduction in the types of [`TYPES`].
    pub(crate) fn compute<R: Row>(&self, ctx: &mut RefCtx<'_>, name: &str) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.stored::<f32, R>(ctx),
            DType::F64 => self.stored::<f64, R>(ctx),
            DType::F16 => self.stored::<f16, R>(ctx),
            DType::BF16 => self.stored::<bf16, R>(ctx),
            DType::I64 => self.stored::<i64, R>(ctx),
            DType::I32 => self.stored::<i32, R>(ctx),
            DType::U64 => self.stored::<u64, R>(ctx),
            DType::U32 => self.stored::<u32, R>(ctx),
            other => Err(unlisted(name, other)),
        }
    }

    fn stored<T: Stored, R: Row>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.reduce(ctx, |row: &[T]| {
            let row: Vec<T::Math> = row.iter().map(|x| x.widen()).collect();
            T::narrow(R::reduce(&row))
        })
    }

    /// Fills the output with `f` of the elements that each result is made from, in logical order.
    pub(crate) fn reduce<T: Element>(&self, ctx: &mut RefCtx<'_>, f: impl Fn(&[T]) -> T) -> Result<(), OpError> {
        let (rows, n) = self.rows(ctx)?;
        let rows = rows.values::<T>()?;
        for (i, out) in ctx.output(0)?.values_mut::<T>()?.iter_mut().enumerate() {
            *out = f(rows.get(i * n..(i + 1) * n).unwrap_or(&[]));
        }
        Ok(())
    }

    /// As [`Along::reduce`], of bool elements.
    pub(crate) fn reduce_bools(&self, ctx: &mut RefCtx<'_>, f: impl Fn(&[bool]) -> bool) -> Result<(), OpError> {
        let (rows, n) = self.rows(ctx)?;
        let rows = rows.bools()?;
        for (i, out) in ctx.output(0)?.words_mut::<u8>()?.iter_mut().enumerate() {
            *out = f(rows.get(i * n..(i + 1) * n).unwrap_or(&[])).into();
        }
        Ok(())
    }

    /// The input with its reduced axes last, and the number of elements that each result is made from.
    fn rows<'a>(&self, ctx: &mut RefCtx<'a>) -> Result<(TensorView<'a>, usize), OpError> {
        let input = ctx.input(0)?;
        let axes = match ctx.optional(1) {
            Some(axes) => axes.values::<i64>()?.into_owned(),
            None => vec![],
        };
        let reduced = self.reduced(&axes, input.shape().rank())?;
        let expected = self.output_dims(input.shape(), &reduced, 1).into_iter().collect();
        let output = ctx.output(0)?;
        expect_dtype("output 0", input.dtype(), output.dtype())?;
        expect_shape("output 0", &expected, output.shape())?;
        let sizes = input.shape().iter().zip(&reduced).filter(|&(_, &reduced)| reduced).map(|(&size, _)| size);
        // The product of all sizes may be 0 and that of some of them too large; then there is nothing to read.
        let n = sizes.fold(1usize, usize::saturating_mul);
        Ok((axes_last(&input, &reduced)?, n))
    }
}
