//! `CumSum`.

use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::checks::expect_shape;
use crate::ops::layout::{product, view_ints};
use crate::ops::nn::arith::{Math, Stored};
use crate::ops::types::INDICES;
use crate::{InferCtx, OpError, OutInfo, normalise_axis};
use firstlight_tensor::DType::{self, BF16, F16, F32, F64, I32, I64, U32, U64};
use firstlight_tensor::{Tensor, bf16, f16};
use smallvec::SmallVec;

/// Running sums along one axis.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CumSum {
    /// Whether an element's sum leaves out the element itself.
    pub exclusive: bool,
    /// Whether sums run from the end of the axis.
    pub reverse: bool,
}

const TYPES: &[DType] = &[F32, F64, F16, BF16, I64, I32, U64, U32];

pub(crate) const INFO: OpInfo = OpInfo {
    name: "CumSum",
    doc: "Running sums along one axis, from +0, one element after the other. 16-bit floats are summed in f32, and each \
          sum is rounded; integers wrap.",
    attributes: &[
        AttrDoc { name: "exclusive", doc: "whether an element's sum leaves out the element itself" },
        AttrDoc { name: "reverse", doc: "whether sums run from the end of the axis" },
    ],
    inputs: &[
        Param { name: "x", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "axis", ty: TypeRef::Var(1), arity: Arity::One },
    ],
    outputs: &[Param { name: "y", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: TYPES }, TypeVar { name: "T2", allowed: INDICES }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for CumSum {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("exclusive", AttrValue::Bool(self.exclusive)), ("reverse", AttrValue::Bool(self.reverse))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let dims = ctx.dims(0)?;
        if ctx.input(1)?.value.is_some() {
            one_axis(&ctx.ints(1)?, dims.rank())?;
        }
        Ok(OutInfo::new(ctx.dtype(0)?, dims.clone()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            F32 => self.sums::<f32>(ctx),
            F64 => self.sums::<f64>(ctx),
            F16 => self.sums::<f16>(ctx),
            BF16 => self.sums::<bf16>(ctx),
            I64 => self.sums::<i64>(ctx),
            I32 => self.sums::<i32>(ctx),
            U64 => self.sums::<u64>(ctx),
            U32 => self.sums::<u32>(ctx),
            other => Err(OpError::dtype(format!("CumSum does not take elements of {other}"))),
        }
    }
}

impl CumSum {
    /// An input of given dimensions as `outer` blocks of `size` rows of `inner` sums.
    ///
    /// **Errors**: not one axis; an axis that the input lacks; sizes that overflow.
    pub fn geometry(&self, dims: &[usize], axis: &[i64]) -> Result<[usize; 3], OpError> {
        let axis = one_axis(axis, dims.len())?;
        Ok([product(&dims[..axis])?, dims[axis], product(&dims[axis + 1..])?])
    }

    fn sums<T: Stored>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let (x, axis) = (ctx.input(0)?, ctx.input(1)?);
        let [outer, size, inner] = self.geometry(x.shape(), &view_ints(&axis)?)?;
        let output = ctx.output(0)?;
        expect_shape("output 0", x.shape(), output.shape())?;
        let (x, output) = (x.values::<T>()?, output.values_mut::<T>()?);
        for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
            let mut sum = T::Math::ZERO;
            for step in 0..size {
                let at = if self.reverse { size - 1 - step } else { step };
                let at = (o * size + at) * inner + i;
                let next = sum.plus(x[at].widen());
                output[at] = T::narrow(if self.exclusive { sum } else { next });
                sum = next;
            }
        }
        Ok(())
    }
}

fn one_axis(axis: &[i64], rank: usize) -> Result<usize, OpError> {
    match axis {
        [axis] => normalise_axis(*axis, rank),
        other => Err(OpError::shape(format!("axis should be one number, it is {}", other.len()))),
    }
}

fn cases() -> Vec<Case> {
    let op = |exclusive, reverse| CumSum { exclusive, reverse };
    let matrix = tensor(&[2, 3], &[1f32, 2., 3., 4., 5., 6.]);
    let axis = |axis: i64| Tensor::scalar(axis);
    vec![
        case("rows", op(false, false), &[matrix.clone(), axis(1)], &[tensor(&[2, 3], &[1f32, 3., 6., 4., 9., 15.])]),
        case("columns", op(false, false), &[matrix.clone(), axis(-2)], &[tensor(&[2, 3], &[1f32, 2., 3., 5., 7., 9.])]),
        case("exclusive", op(true, false), &[matrix.clone(), axis(1)], &[tensor(&[2, 3], &[0f32, 1., 3., 0., 4., 9.])]),
        case("reverse", op(false, true), &[matrix.clone(), axis(1)], &[tensor(&[2, 3], &[6f32, 5., 3., 15., 11., 6.])]),
        case("both", op(true, true), &[matrix, axis(1)], &[tensor(&[2, 3], &[5f32, 3., 0., 11., 6., 0.])]),
        case(
            "integers wrap, the axis in one dimension of i32",
            op(false, false),
            &[tensor(&[3], &[u32::MAX, 2, 3]), tensor(&[1], &[0i32])],
            &[tensor(&[3], &[u32::MAX, 1, 4])],
        ),
        case(
            "f16 sums in f32",
            op(false, false),
            &[tensor(&[3], &[f16::from_f32(2048.), f16::ONE, f16::ONE]), axis(0)],
            &[tensor(&[3], &[f16::from_f32(2048.), f16::from_f32(2048.), f16::from_f32(2050.)])],
        ),
        case(
            "bf16",
            op(true, false),
            &[tensor(&[2], &[bf16::ONE; 2]), axis(0)],
            &[tensor(&[2], &[bf16::ZERO, bf16::ONE])],
        ),
        case("f64", op(false, false), &[tensor(&[2], &[0.5f64, 0.25]), axis(0)], &[tensor(&[2], &[0.5f64, 0.75])]),
        case("i64", op(false, true), &[tensor(&[2], &[5i64, -7]), axis(0)], &[tensor(&[2], &[-2i64, -7])]),
        case("empty", op(false, false), &[tensor::<f32>(&[2, 0], &[]), axis(1)], &[tensor::<f32>(&[2, 0], &[])]),
    ]
}
