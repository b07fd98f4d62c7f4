//! `TopK`.

use super::axes_last;
use crate::infer::normalise_axis;
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::tensor;
use crate::ops::elementwise::{operations, unlisted};
use crate::ops::layout::check_output;
use crate::ops::types::NUMERIC;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, Element, Shape, Tensor, bf16, f16};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// The first elements along one axis in order of their size, and where they were.
#[derive(Clone, Debug, PartialEq)]
pub struct TopK {
    /// The axis along which elements are chosen; counts from the end when negative.
    pub axis: i64,
    /// True for the greatest, false for the least.
    pub largest: bool,
    /// True when they must come in order; they always do.
    pub sorted: bool,
}

impl Default for TopK {
    fn default() -> TopK {
        TopK { axis: -1, largest: true, sorted: true }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "TopK",
    doc: "The K greatest (or least) elements along one axis, best first, and their indices along it. Of equal elements \
          (+0 and -0 are) the one of the lower index comes first. NaN counts as greater than all others. K is one \
          number from 0 to the size of the axis. The result is sorted even when that is not asked for.",
    attributes: &[
        AttrDoc { name: "axis", doc: "the axis along which elements are chosen" },
        AttrDoc { name: "largest", doc: "the greatest elements, not the least" },
        AttrDoc { name: "sorted", doc: "the elements must come in order; they always do" },
    ],
    inputs: &[
        Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "K", ty: TypeRef::Fixed(DType::I64), arity: Arity::One },
    ],
    outputs: &[
        Param { name: "Values", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "Indices", ty: TypeRef::Fixed(DType::I64), arity: Arity::Optional },
    ],
    types: &[TypeVar { name: "T", allowed: NUMERIC }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for TopK {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![
            ("axis", AttrValue::Int(self.axis)),
            ("largest", AttrValue::Bool(self.largest)),
            ("sorted", AttrValue::Bool(self.sorted)),
        ]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let mut dims = ctx.dims(0)?.clone();
        let axis = normalise_axis(self.axis, dims.rank())?;
        let k = k_of(&ctx.ints(1)?)?;
        if let Some(size) = dims[axis].known().filter(|&size| k > size) {
            return Err(OpError::value(format!("K is {k}, axis {axis} has {size} elements")));
        }
        dims.0[axis] = Dim::Known(k);
        Ok(SmallVec::from_iter([OutInfo::new(ctx.dtype(0)?, dims.clone()), OutInfo::new(DType::I64, dims)]))
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.choose::<f32>(ctx),
            DType::F64 => self.choose::<f64>(ctx),
            DType::F16 => self.choose::<f16>(ctx),
            DType::BF16 => self.choose::<bf16>(ctx),
            DType::I64 => self.choose::<i64>(ctx),
            DType::I32 => self.choose::<i32>(ctx),
            DType::I16 => self.choose::<i16>(ctx),
            DType::I8 => self.choose::<i8>(ctx),
            DType::U64 => self.choose::<u64>(ctx),
            DType::U32 => self.choose::<u32>(ctx),
            DType::U16 => self.choose::<u16>(ctx),
            DType::U8 => self.choose::<u8>(ctx),
            other => Err(unlisted("TopK", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 4)
    }
}

/// The one number that K holds.
fn k_of(values: &[i64]) -> Result<usize, OpError> {
    match values {
        [k] => usize::try_from(*k).map_err(|_| OpError::value(format!("K is {k}, expected 0 or more"))),
        _ => Err(OpError::shape(format!("K holds {} numbers, expected one", values.len()))),
    }
}

/// The order of two elements, where NaN is greater than all others and equal to itself.
pub fn order<T: PartialOrd>(a: &T, b: &T) -> Ordering {
    a.partial_cmp(b).unwrap_or_else(|| {
        let is_nan = |x: &T| x.partial_cmp(x).is_none();
        is_nan(a).cmp(&is_nan(b))
    })
}

impl TopK {
    fn choose<T: Element + PartialOrd>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let input = ctx.input(0)?;
        let mut shape: Shape = input.shape().clone();
        let axis = normalise_axis(self.axis, shape.rank())?;
        let (n, k) = (shape[axis], k_of(&ctx.input(1)?.values::<i64>()?)?);
        if k > n {
            return Err(OpError::value(format!("K is {k}, axis {axis} has {n} elements")));
        }
        let last: SmallVec<[bool; 6]> = (0..shape.rank()).map(|i| i == axis).collect();
        let rows = axes_last(&input, &last)?;
        let rows = rows.values::<T>()?;
        shape = (0..shape.rank()).map(|i| if i == axis { k } else { shape[i] }).collect();
        for i in 0..ctx.n_outputs() {
            check_output(ctx, i, &shape)?;
        }
        let inner: usize = shape[axis + 1..].iter().product();
        let mut chosen: Vec<(usize, T, i64)> = vec![];
        for (i, row) in rows.chunks_exact(n.max(1)).enumerate() {
            let mut order_of: Vec<usize> = (0..n).collect();
            order_of.sort_by(|&a, &b| {
                let order = order(&row[a], &row[b]);
                (if self.largest { order.reverse() } else { order }).then(a.cmp(&b))
            });
            let start = i / inner * inner * k + i % inner;
            chosen.extend((0..k).map(|j| (start + j * inner, row[order_of[j]], order_of[j] as i64)));
        }
        let values = ctx.output(0)?.values_mut::<T>()?;
        chosen.iter().for_each(|&(at, value, _)| values[at] = value);
        if ctx.n_outputs() > 1 {
            let indices = ctx.output(1)?.values_mut::<i64>()?;
            chosen.iter().for_each(|&(at, _, index)| indices[at] = index);
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let case = |name, axis, largest, x: Tensor, k: i64, values: Tensor, indices: &[i64]| Case {
        name,
        op: TopK { axis, largest, sorted: true }.into(),
        inputs: vec![Some(x), Some(tensor(&[1], &[k]))],
        outputs: vec![values.clone(), tensor(values.shape(), indices)],
    };
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let x = || tensor(&[2, 4], &[1f32, 4., 3., 2., 5., 5., 6., 5.]);
    vec![
        case("the greatest", -1, true, x(), 2, tensor(&[2, 2], &[4f32, 3., 6., 5.]), &[1, 2, 2, 0]),
        case("the least", 1, false, x(), 3, tensor(&[2, 3], &[1f32, 2., 3., 5., 5., 5.]), &[0, 3, 2, 0, 1, 3]),
        case("first axis", 0, true, x(), 1, tensor(&[1, 4], &[5f32, 5., 6., 5.]), &[1, 1, 1, 1]),
        case(
            "middle axis",
            1,
            false,
            tensor(&[2, 2, 2], &[1i64, 4, 3, 2, 5, 8, 7, 6]),
            2,
            tensor(&[2, 2, 2], &[1i64, 2, 3, 4, 5, 6, 7, 8]),
            &[0, 1, 1, 0, 0, 1, 1, 0],
        ),
        case(
            "NaN is the greatest",
            0,
            true,
            tensor(&[4], &[inf, nan, 0., nan]),
            3,
            tensor(&[3], &[nan, nan, inf]),
            &[1, 3, 0],
        ),
        case(
            "NaN is not the least",
            0,
            false,
            tensor(&[3], &[nan, inf, -inf]),
            3,
            tensor(&[3], &[-inf, inf, nan]),
            &[2, 1, 0],
        ),
        case("zeros are equal", 0, true, tensor(&[2], &[-0f32, 0.]), 2, tensor(&[2], &[-0f32, 0.]), &[0, 1]),
        case("none", 0, true, tensor(&[2], &[1f32, 2.]), 0, tensor::<f32>(&[0], &[]), &[]),
        case("none of nothing", 0, true, tensor::<f32>(&[0], &[]), 0, tensor::<f32>(&[0], &[]), &[]),
        case("no rows", 1, true, tensor::<f32>(&[0, 3], &[]), 2, tensor::<f32>(&[0, 2], &[]), &[]),
        case("f64", 0, true, tensor(&[2], &[1f64, 2.]), 1, tensor(&[1], &[2f64]), &[1]),
        case("f16", 0, true, tensor(&[2], &[f16::ZERO, f16::ONE]), 1, tensor(&[1], &[f16::ONE]), &[1]),
        case("bf16", 0, false, tensor(&[2], &[bf16::ONE, bf16::ZERO]), 1, tensor(&[1], &[bf16::ZERO]), &[1]),
        case("i8", 0, false, tensor(&[3], &[1i8, -128, 3]), 2, tensor(&[2], &[-128i8, 1]), &[1, 0]),
        case("u64", 0, true, tensor(&[2], &[1, u64::MAX]), 1, tensor(&[1], &[u64::MAX]), &[1]),
    ]
}
