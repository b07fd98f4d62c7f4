//! `Slice`.

use super::{case_tensor, check_output, copy_view, optional_ints, view_ints};
use crate::op::{Arity, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::{BYTE_SIZED, INDICES};
use crate::{InferCtx, OpError, OutInfo, normalise_axis};
use firstlight_tensor::{Dim, Layout, Shape, SymShape, TensorView};
use smallvec::SmallVec;

/// Part of a tensor: every `step`-th element from `start` to `end` along some axes.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Slice;

const fn bound(name: &'static str, arity: Arity) -> Param {
    Param { name, ty: TypeRef::Var(1), arity }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Slice",
    doc: "Every `step`-th element from `start` to `end` along some axes. Negative bounds count from the end; bounds \
          beyond the tensor are moved to its ends; a negative step walks backwards.",
    attributes: &[],
    inputs: &[
        Param { name: "data", ty: TypeRef::Var(0), arity: Arity::One },
        bound("starts", Arity::One),
        bound("ends", Arity::One),
        bound("axes", Arity::Optional),
        bound("steps", Arity::Optional),
    ],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }, TypeVar { name: "Tind", allowed: INDICES }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Slice {
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let dims = ctx.dims(0)?;
        let (starts, ends) = (ctx.ints(1)?, ctx.ints(2)?);
        let optional = |i| if ctx.has(i) { ctx.ints(i).map(Some) } else { Ok(None) };
        let (axes, steps) = (optional(3)?, optional(4)?);
        let bounds = bounds(dims.rank(), &starts, &ends, axes.as_deref(), steps.as_deref())?;
        let sliced: SymShape = dims
            .iter()
            .zip(&bounds)
            .map(|(dim, bounds)| match dim {
                Dim::Known(size) => Dim::Known(SliceDim::new(*size, bounds).output),
                _ if bounds.keeps_all() => dim.clone(),
                _ => Dim::Unknown,
            })
            .collect();
        Ok(OutInfo::new(ctx.dtype(0)?, sliced).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let data = ctx.input(0)?;
        let (starts, ends) = (view_ints(&ctx.input(1)?)?, view_ints(&ctx.input(2)?)?);
        let (axes, steps) = (optional_ints(ctx, 3)?, optional_ints(ctx, 4)?);
        let dims = self.geometry(data.shape(), &starts, &ends, axes.as_deref(), steps.as_deref())?;
        let view = sliced_view(&data, &dims)?;
        check_output(ctx, 0, view.shape())?;
        copy_view(ctx, &view)
    }
}

/// How [`Slice`] walks one axis: `output` elements from `start` on, `step` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceDim {
    /// Index of the first element taken; 0 when none is.
    pub start: usize,
    /// Distance of elements taken; at most the axis's size, and 1 when fewer than two are taken.
    pub step: isize,
    /// Size of the output.
    pub output: usize,
}

/// What the inputs ask of one axis.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    start: i64,
    end: i64,
    step: i64,
}

impl Bounds {
    /// True when the whole axis stays, however long it is.
    fn keeps_all(&self) -> bool {
        self.start == 0 && self.step == 1 && self.end >= i32::MAX as i64
    }
}

impl SliceDim {
    fn new(size: usize, bounds: &Bounds) -> SliceDim {
        let n = size as i128;
        let from_start = |bound: i64| if bound < 0 { bound as i128 + n } else { bound as i128 };
        let step = bounds.step as i128;
        let (start, end) = match step > 0 {
            true => (from_start(bounds.start).clamp(0, n), from_start(bounds.end).clamp(0, n)),
            false => (from_start(bounds.start).clamp(0, (n - 1).max(0)), from_start(bounds.end).clamp(-1, n - 1)),
        };
        let span = if step > 0 { end - start } else { start - end };
        let step_len = step.abs().max(1);
        let output = if span <= 0 || n == 0 { 0 } else { (span + step_len - 1) / step_len };
        SliceDim {
            start: if output == 0 { 0 } else { start as usize },
            step: if output < 2 { 1 } else { step as isize },
            output: output as usize,
        }
    }
}

impl Slice {
    /// How each axis of an input of shape `x` is walked.
    ///
    /// **Errors**: counts that differ, an axis that the input lacks or that comes twice, a step of 0.
    pub fn geometry(
        &self,
        x: &[usize],
        starts: &[i64],
        ends: &[i64],
        axes: Option<&[i64]>,
        steps: Option<&[i64]>,
    ) -> Result<SmallVec<[SliceDim; 6]>, OpError> {
        let bounds = bounds(x.len(), starts, ends, axes, steps)?;
        Ok(x.iter().zip(&bounds).map(|(&size, bounds)| SliceDim::new(size, bounds)).collect())
    }
}

fn bounds(
    rank: usize,
    starts: &[i64],
    ends: &[i64],
    axes: Option<&[i64]>,
    steps: Option<&[i64]>,
) -> Result<SmallVec<[Bounds; 6]>, OpError> {
    let n = starts.len();
    let counts = [ends.len(), axes.map_or(n, <[i64]>::len), steps.map_or(n, <[i64]>::len)];
    if counts.iter().any(|&count| count != n) || (axes.is_none() && n > rank) {
        return Err(OpError::value(format!(
            "starts, ends, axes and steps have {n}, {}, {} and {} elements for an input of rank {rank}",
            counts[0], counts[1], counts[2]
        )));
    }
    let mut all: SmallVec<[Bounds; 6]> = SmallVec::from_elem(Bounds { start: 0, end: i64::MAX, step: 1 }, rank);
    let mut seen: SmallVec<[bool; 6]> = SmallVec::from_elem(false, rank);
    for i in 0..n {
        let axis = axes.map_or(Ok(i), |axes| normalise_axis(axes[i], rank))?;
        let step = steps.map_or(1, |steps| steps[i]);
        if std::mem::replace(&mut seen[axis], true) {
            return Err(OpError::value(format!("axis {axis} is sliced twice")));
        }
        if step == 0 {
            return Err(OpError::value(format!("the step along axis {axis} is 0")));
        }
        all[axis] = Bounds { start: starts[i], end: ends[i], step };
    }
    Ok(all)
}

fn sliced_view<'a>(data: &TensorView<'a>, dims: &[SliceDim]) -> Result<TensorView<'a>, OpError> {
    let shape: Shape = dims.iter().map(|dim| dim.output).collect();
    let outside = || OpError::shape(format!("a slice {shape} reaches beyond its input {}", data.shape()));
    let mut offset = data.layout().offset() as i128;
    let mut strides: SmallVec<[isize; 6]> = SmallVec::new();
    for (dim, &stride) in dims.iter().zip(data.layout().strides()) {
        offset += dim.start as i128 * stride as i128;
        strides.push(stride.checked_mul(dim.step).ok_or_else(outside)?);
    }
    let n_elems = data.raw().len() * 8 / data.dtype().bits().max(1);
    let offset = usize::try_from(offset).map_err(|_| outside())?;
    let layout = Layout::strided(&shape, &strides, offset, n_elems).ok_or_else(outside)?;
    Ok(TensorView::new(data.dtype(), layout, data.raw()))
}

fn cases() -> Vec<Case> {
    let t = case_tensor::<f32>;
    let i = |values: &[i64]| case_tensor::<i64>(&[values.len()], values);
    let row = |name, start, end, step, output: &[f32]| Case {
        name,
        op: Slice.into(),
        inputs: vec![
            Some(t(&[4], &[1., 2., 3., 4.])),
            Some(i(&[start])),
            Some(i(&[end])),
            Some(i(&[-1])),
            Some(i(&[step])),
        ],
        outputs: vec![t(&[output.len()], output)],
    };
    let x = t(&[2, 4], &[1., 2., 3., 4., 5., 6., 7., 8.]);
    vec![
        row("inside", 1, 3, 1, &[2., 3.]),
        row("every second", 0, 4, 2, &[1., 3.]),
        row("every third from 1", 1, i64::MAX, 3, &[2.]),
        row("negative bounds", -3, -1, 1, &[2., 3.]),
        row("bounds beyond", -100, 100, 1, &[1., 2., 3., 4.]),
        row("start beyond the end", 9, 100, 1, &[]),
        row("start after end", 3, 1, 1, &[]),
        row("backwards, all", -1, i64::MIN, -1, &[4., 3., 2., 1.]),
        row("backwards, to the second", 3, 0, -2, &[4., 2.]),
        row("backwards from beyond", 100, 1, -1, &[4., 3.]),
        row("backwards from before", -100, i64::MIN, -1, &[1.]),
        row("a huge step", 1, 4, i64::MAX, &[2.]),
        row("a huge backward step", 2, i64::MIN, i64::MIN, &[3.]),
        Case {
            name: "two axes, all defaults",
            op: Slice.into(),
            inputs: vec![Some(x.clone()), Some(i(&[1, 0])), Some(i(&[2, 2]))],
            outputs: vec![t(&[1, 2], &[5., 6.])],
        },
        Case {
            name: "i32 bounds, axes out of order",
            op: Slice.into(),
            inputs: vec![
                Some(x),
                Some(case_tensor::<i32>(&[2], &[3, 0])),
                Some(case_tensor::<i32>(&[2], &[i32::MIN, 1])),
                Some(case_tensor::<i32>(&[2], &[1, 0])),
                Some(case_tensor::<i32>(&[2], &[-2, 1])),
            ],
            outputs: vec![t(&[1, 2], &[4., 2.])],
        },
        Case {
            name: "empty input, backwards",
            op: Slice.into(),
            inputs: vec![Some(t(&[0], &[])), Some(i(&[-1])), Some(i(&[i64::MIN])), None, Some(i(&[-1]))],
            outputs: vec![t(&[0], &[])],
        },
        Case {
            name: "rank 0, no axis",
            op: Slice.into(),
            inputs: vec![Some(t(&[], &[3.])), Some(i(&[])), Some(i(&[]))],
            outputs: vec![t(&[], &[3.])],
        },
    ]
}
