//! `Pad`.

use super::{MoveWords, case_tensor, check_output, optional_ints, view_ints};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::{BYTE_SIZED, INDICES};
use crate::{InferCtx, OpError, OutInfo, normalise_axis};
use firstlight_tensor::{DType, Dim, Shape, SymShape, Tensor};
use smallvec::SmallVec;

/// A tensor with elements added, or removed, at both ends of its axes.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Pad {
    /// Where added elements come from.
    pub mode: PadMode,
}

/// Where the elements that [`Pad`] adds come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PadMode {
    /// A given value, 0 when omitted.
    #[default]
    Constant,
    /// The tensor mirrored at its first and last element, which are not repeated.
    Reflect,
    /// The nearest element.
    Edge,
    /// The tensor repeated.
    Wrap,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Pad",
    doc: "A tensor with elements added at both ends of its axes. Negative pads remove elements, before others are added.",
    attributes: &[AttrDoc { name: "mode", doc: "where added elements come from: constant, reflect, edge or wrap" }],
    inputs: &[
        Param { name: "data", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "pads", ty: TypeRef::Fixed(DType::I64), arity: Arity::One },
        Param { name: "constant_value", ty: TypeRef::Var(0), arity: Arity::Optional },
        Param { name: "axes", ty: TypeRef::Var(1), arity: Arity::Optional },
    ],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }, TypeVar { name: "Tind", allowed: INDICES }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Pad {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("mode", AttrValue::Text(self.mode.name().to_owned()))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let dims = ctx.dims(0)?;
        let pads = ctx.ints(1)?;
        let axes = if ctx.has(3) { Some(ctx.ints(3)?) } else { None };
        let pairs = pairs(dims.rank(), &pads, axes.as_deref())?;
        let padded: Result<SymShape, OpError> = dims
            .iter()
            .zip(&pairs)
            .map(|(dim, &pair)| match dim {
                Dim::Known(size) => Ok(Dim::Known(PadDim::new(*size, pair, self.mode)?.output)),
                _ if pair == (0, 0) => Ok(dim.clone()),
                _ => Ok(Dim::Unknown),
            })
            .collect();
        Ok(OutInfo::new(ctx.dtype(0)?, padded?).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.move_elements(ctx)
    }
}

/// How [`Pad`] changes one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PadDim {
    /// Elements of the input that stay.
    pub kept: usize,
    /// Elements of the input before those that stay.
    pub skipped: usize,
    /// Elements added before those that stay.
    pub before: usize,
    /// Size of the output.
    pub output: usize,
}

impl PadDim {
    fn new(size: usize, (before, after): (i64, i64), mode: PadMode) -> Result<PadDim, OpError> {
        let misfit = |why| OpError::value(format!("cannot pad a size of {size} by {before} and {after}: {why}"));
        let output = size as i128 + before as i128 + after as i128;
        let output = usize::try_from(output).map_err(|_| misfit("the result has no size"))?;
        let cut = |pad: i64| usize::try_from(pad.min(0).unsigned_abs()).unwrap_or(usize::MAX);
        let added = usize::try_from(before.max(0)).map_err(|_| misfit("the result is too large"))?;
        let skipped = cut(before).min(size);
        let kept = (size - skipped).saturating_sub(cut(after));
        if kept == 0 && output > 0 && mode != PadMode::Constant {
            return Err(misfit("there is no element to repeat"));
        }
        Ok(PadDim { kept, skipped, before: added, output })
    }

    /// The input's index that output index `i` repeats; `None` where a constant goes.
    pub fn source(&self, i: usize, mode: PadMode) -> Option<usize> {
        let n = self.kept as i128;
        let at = i as i128 - self.before as i128;
        if n == 0 {
            return None;
        }
        let from = match mode {
            PadMode::Constant if at < 0 || at >= n => return None,
            PadMode::Constant => at,
            PadMode::Edge => at.clamp(0, n - 1),
            PadMode::Wrap => at.rem_euclid(n),
            PadMode::Reflect if n == 1 => 0,
            PadMode::Reflect => {
                let period = 2 * (n - 1);
                let phase = at.rem_euclid(period);
                phase.min(period - phase)
            }
        };
        Some(from as usize + self.skipped)
    }
}

impl PadMode {
    /// ONNX's name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            PadMode::Constant => "constant",
            PadMode::Reflect => "reflect",
            PadMode::Edge => "edge",
            PadMode::Wrap => "wrap",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<PadMode> {
        [PadMode::Constant, PadMode::Reflect, PadMode::Edge, PadMode::Wrap].into_iter().find(|mode| mode.name() == name)
    }
}

impl Pad {
    /// How each axis of an input of shape `x` changes.
    ///
    /// **Errors**: counts of pads and axes that do not fit, an axis that the input lacks or that comes twice, more
    /// removed than there is, nothing to repeat.
    pub fn geometry(&self, x: &[usize], pads: &[i64], axes: Option<&[i64]>) -> Result<SmallVec<[PadDim; 6]>, OpError> {
        let pairs = pairs(x.len(), pads, axes)?;
        x.iter().zip(pairs).map(|(&size, pair)| PadDim::new(size, pair, self.mode)).collect()
    }
}

/// Begin and end pads of each axis.
fn pairs(rank: usize, pads: &[i64], axes: Option<&[i64]>) -> Result<SmallVec<[(i64, i64); 6]>, OpError> {
    let axes: SmallVec<[usize; 6]> = match axes {
        Some(axes) => axes.iter().map(|&axis| normalise_axis(axis, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).collect(),
    };
    let n = axes.len();
    if !pads.len().is_multiple_of(2) || pads.len() / 2 != n {
        return Err(OpError::value(format!(
            "expected a begin and an end pad for each of {n} axes, got {}",
            pads.len()
        )));
    }
    let mut pairs: SmallVec<[(i64, i64); 6]> = SmallVec::from_elem((0, 0), rank);
    for (i, &axis) in axes.iter().enumerate() {
        if axes[..i].contains(&axis) {
            return Err(OpError::value(format!("axis {axis} is padded twice")));
        }
        pairs[axis] = (pads[i], pads[n + i]);
    }
    Ok(pairs)
}

impl MoveWords for Pad {
    fn move_words<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let data = ctx.input(0)?;
        let pads = view_ints(&ctx.input(1)?)?;
        let axes = optional_ints(ctx, 3)?;
        let dims = self.geometry(data.shape(), &pads, axes.as_deref())?;
        let shape: Shape = dims.iter().map(|dim| dim.output).collect();
        check_output(ctx, 0, &shape)?;
        let fill = match ctx.optional(2) {
            Some(value) => match &value.words::<W>()?[..] {
                [one] => *one,
                _ => {
                    return Err(OpError::shape(format!(
                        "constant_value has shape {}, expected one element",
                        value.shape()
                    )));
                }
            },
            None => W::zeroed(),
        };
        let words = data.words::<W>()?;
        let output = ctx.output(0)?.words_mut::<W>()?;
        if output.is_empty() {
            return Ok(());
        }
        let strides = data.shape().strides();
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, dims.len());
        for to in output.iter_mut() {
            let from = dims
                .iter()
                .zip(&index)
                .zip(&strides)
                .try_fold(0, |sum, ((dim, &i), &stride)| Some(sum + dim.source(i, self.mode)? * stride));
            *to = from.map_or(fill, |at| words[at]);
            for d in (0..index.len()).rev() {
                index[d] += 1;
                if index[d] < shape[d] {
                    break;
                }
                index[d] = 0;
            }
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let t = case_tensor::<f32>;
    let i = case_tensor::<i64>;
    let row = |mode, pads: &[i64], output: &[f32]| Case {
        name: "",
        op: Pad { mode }.into(),
        inputs: vec![Some(t(&[3], &[1., 2., 3.])), Some(i(&[2], pads))],
        outputs: vec![t(&[output.len()], output)],
    };
    let named = |name, case: Case| Case { name, ..case };
    let with = |name, x: Tensor, pads: &[i64], value: Option<Tensor>, axes: Option<Tensor>, y: Tensor| Case {
        name,
        op: Pad::default().into(),
        inputs: vec![Some(x), Some(i(&[pads.len()], pads)), value, axes],
        outputs: vec![y],
    };
    vec![
        named("constant defaults to 0", row(PadMode::Constant, &[1, 2], &[0., 1., 2., 3., 0., 0.])),
        named("edge", row(PadMode::Edge, &[2, 1], &[1., 1., 1., 2., 3., 3.])),
        named("reflect", row(PadMode::Reflect, &[2, 1], &[3., 2., 1., 2., 3., 2.])),
        named("reflect more than there is", row(PadMode::Reflect, &[5, 0], &[2., 1., 2., 3., 2., 1., 2., 3.])),
        named("wrap", row(PadMode::Wrap, &[4, 1], &[3., 1., 2., 3., 1., 2., 3., 1.])),
        named("negative pads remove", row(PadMode::Constant, &[-1, 1], &[2., 3., 0.])),
        named("wrap what is left", row(PadMode::Wrap, &[-1, 2], &[2., 3., 2., 3.])),
        named("remove all", row(PadMode::Constant, &[-1, -2], &[])),
        with(
            "a value, one axis",
            t(&[2, 2], &[1., 2., 3., 4.]),
            &[1, 0],
            Some(t(&[], &[9.])),
            Some(i(&[1], &[-1])),
            t(&[2, 3], &[9., 1., 2., 9., 3., 4.]),
        ),
        with("two axes", t(&[1, 1], &[1.]), &[1, 0, 0, 1], Some(t(&[1], &[5.])), None, t(&[2, 2], &[5., 5., 1., 5.])),
        with("from nothing", t(&[0], &[]), &[1, 1], None, None, t(&[2], &[0., 0.])),
        with("rank 0", t(&[], &[4.]), &[], None, None, t(&[], &[4.])),
    ]
}
