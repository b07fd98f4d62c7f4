//! `ReduceMean`.

use super::{axes_last, lane_sum};
use crate::infer::normalise_axis;
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::checks::{expect_dtype, expect_shape};
use crate::ops::elementwise::{operations, unlisted};
use crate::ops::float::{Compute, Float};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, Element, SymShape, Tensor, bf16, f16};
use smallvec::SmallVec;

/// The mean along axes; the second input names them.
///
/// Elements are added by the rule of [the module](super), those of one result in logical order, and the sum is divided
/// by their number.
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceMean {
    /// True when reduced axes stay, with size 1.
    pub keepdims: bool,
    /// True when no axes mean that nothing is reduced; otherwise they mean that all are.
    pub noop_with_empty_axes: bool,
}

impl Default for ReduceMean {
    fn default() -> ReduceMean {
        ReduceMean { keepdims: true, noop_with_empty_axes: false }
    }
}

const TYPES: &[DType] =
    &[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U64, DType::U32];

pub const INFO: OpInfo = OpInfo {
    name: "ReduceMean",
    doc: "The mean along the given axes, which may count from the end. The mean of integers is exact and rounds \
          toward zero. The mean of no elements is NaN, and 0 for integers.",
    attributes: &[
        AttrDoc { name: "keepdims", doc: "reduced axes stay, with size 1" },
        AttrDoc {
            name: "noop_with_empty_axes",
            doc: "no axes mean that nothing is reduced; otherwise they mean that all are",
        },
    ],
    inputs: &[
        Param { name: "data", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "axes", ty: TypeRef::Fixed(DType::I64), arity: Arity::Optional },
    ],
    outputs: &[Param { name: "reduced", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: TYPES }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for ReduceMean {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![
            ("keepdims", AttrValue::Bool(self.keepdims)),
            ("noop_with_empty_axes", AttrValue::Bool(self.noop_with_empty_axes)),
        ]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
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

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.reduce(ctx, mean_of_floats::<f32>),
            DType::F64 => self.reduce(ctx, mean_of_floats::<f64>),
            DType::F16 => self.reduce(ctx, mean_of_floats::<f16>),
            DType::BF16 => self.reduce(ctx, mean_of_floats::<bf16>),
            DType::I64 => self.reduce(ctx, |row: &[i64]| mean_of_ints(row) as i64),
            DType::I32 => self.reduce(ctx, |row: &[i32]| mean_of_ints(row) as i32),
            DType::U64 => self.reduce(ctx, |row: &[u64]| mean_of_ints(row) as u64),
            DType::U32 => self.reduce(ctx, |row: &[u32]| mean_of_ints(row) as u32),
            other => Err(unlisted("ReduceMean", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 1)
    }
}

impl ReduceMean {
    /// For each axis, whether it is reduced.
    fn reduced(&self, axes: &[i64], rank: usize) -> Result<SmallVec<[bool; 6]>, OpError> {
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

    /// The output's dimensions, where a reduced one that stays is `one`.
    fn output_dims<D: Clone>(&self, dims: &[D], reduced: &[bool], one: D) -> Vec<D> {
        let sizes = dims.iter().zip(reduced).filter(|&(_, &reduced)| !reduced || self.keepdims);
        sizes.map(|(dim, &reduced)| if reduced { one.clone() } else { dim.clone() }).collect()
    }

    fn reduce<T: Element>(&self, ctx: &mut RefCtx<'_>, mean: impl Fn(&[T]) -> T) -> Result<(), OpError> {
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
        let rows = axes_last(&input, &reduced)?;
        let rows = rows.values::<T>()?;
        for (i, out) in output.values_mut::<T>()?.iter_mut().enumerate() {
            *out = mean(rows.get(i * n..(i + 1) * n).unwrap_or(&[]));
        }
        Ok(())
    }
}

fn mean_of_floats<T: Float>(row: &[T]) -> T {
    let n = T::Compute::from_f64(row.len() as f64);
    T::narrow(lane_sum(row.iter().map(|x| x.widen())) / n)
}

fn mean_of_ints<T: Copy + Into<i128>>(row: &[T]) -> i128 {
    let sum: i128 = row.iter().map(|&x| x.into()).sum();
    sum.checked_div(row.len() as i128).unwrap_or(0)
}

fn cases() -> Vec<Case> {
    let x = || tensor(&[2, 3, 2], &[1f32, 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12.]);
    let axes = |axes: &[i64]| tensor(&[axes.len()], axes);
    let drop = ReduceMean { keepdims: false, ..ReduceMean::default() };
    let noop = ReduceMean { noop_with_empty_axes: true, ..ReduceMean::default() };
    let mean = |name, x: Tensor, y: Tensor| case(name, ReduceMean::default(), &[x], &[y]);
    vec![
        case(
            "last axis",
            ReduceMean::default(),
            &[x(), axes(&[-1])],
            &[tensor(&[2, 3, 1], &[1.5f32, 3.5, 5.5, 7.5, 9.5, 11.5])],
        ),
        case("first axis, dropped", drop.clone(), &[x(), axes(&[0])], &[tensor(&[3, 2], &[4f32, 5., 6., 7., 8., 9.])]),
        case(
            "two axes apart",
            ReduceMean::default(),
            &[x(), axes(&[2, 0])],
            &[tensor(&[1, 3, 1], &[4.5f32, 6.5, 8.5])],
        ),
        case("no axes: all", drop.clone(), &[x()], &[Tensor::scalar(6.5f32)]),
        case("empty axes: all", ReduceMean::default(), &[x(), axes(&[])], &[tensor(&[1, 1, 1], &[6.5f32])]),
        case("empty axes: nothing", noop.clone(), &[x(), axes(&[])], &[x()]),
        case("no axes: nothing", noop, &[x()], &[x()]),
        mean("rank 0", Tensor::scalar(3f32), Tensor::scalar(3f32)),
        mean("no elements", tensor::<f32>(&[2, 0], &[]), tensor(&[1, 1], &[f32::NAN])),
        case("empty output", drop.clone(), &[tensor::<f32>(&[2, 0], &[]), axes(&[0])], &[tensor::<f32>(&[0], &[])]),
        case("no integers", drop.clone(), &[tensor::<i32>(&[2, 0], &[]), axes(&[1])], &[tensor(&[2], &[0i32, 0])]),
        case(
            "integers round toward zero",
            drop,
            &[tensor(&[2, 2], &[-3i64, -4, 3, 4]), axes(&[1])],
            &[tensor(&[2], &[-3i64, 3])],
        ),
        mean("integers do not overflow", tensor(&[2], &[u64::MAX, u64::MAX]), tensor(&[1], &[u64::MAX])),
        mean("NaN and infinity", tensor(&[2], &[f32::NAN, f32::INFINITY]), tensor(&[1], &[f32::NAN])),
        mean("f64", tensor(&[2], &[1f64, 2.]), tensor(&[1], &[1.5f64])),
        mean("f16 sums in f32", tensor(&[3], &[f16::MAX; 3]), tensor(&[1], &[f16::MAX])),
        mean("bf16", tensor(&[2], &[bf16::from_f32(1.), bf16::from_f32(2.)]), tensor(&[1], &[bf16::from_f32(1.5)])),
    ]
}
