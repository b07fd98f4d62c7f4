//! `MaxPool`.

use super::pooling::{PoolGeometry, PoolWindows, each_tap};
use super::window::{AutoPad, WindowDim, advance};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::elementwise::unlisted;
use crate::ops::layout::{case_tensor, check_output, product};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Element, Tensor, bf16, f16};
use smallvec::SmallVec;

/// The largest element of each window.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MaxPool {
    /// How pads are chosen.
    pub auto_pad: AutoPad,
    /// True when a last window that only partly fits counts, unless it would start behind the input.
    pub ceil_mode: bool,
    /// Distance of a window's taps in each spatial dimension; 1 everywhere when empty.
    pub dilations: Vec<i64>,
    /// Taps of a window in each spatial dimension.
    pub kernel_shape: Vec<i64>,
    /// Padding before each spatial dimension, then after each; 0 everywhere when empty. Only for `AutoPad::NotSet`.
    pub pads: Vec<i64>,
    /// How the spatial dimensions make up an index.
    pub storage_order: StorageOrder,
    /// Distance of windows in each spatial dimension; 1 everywhere when empty.
    pub strides: Vec<i64>,
}

/// How spatial dimensions make up an index of [`MaxPool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StorageOrder {
    /// The last dimension runs fastest.
    #[default]
    RowMajor,
    /// The first spatial dimension runs fastest.
    ColumnMajor,
}

/// Element types that pooling takes.
const POOLED: &[DType] = &[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::U8];

pub(crate) const INFO: OpInfo = OpInfo {
    name: "MaxPool",
    doc: "The largest element of each window, and where it is: the first such element's index in the whole input. \
          Padding and NaN are passed over; a window of nothing else gives the type's least value, and -1 as index \
          when it holds padding alone.",
    attributes: &[
        AttrDoc {
            name: "auto_pad",
            doc: "how pads are chosen: NOTSET (as `pads` says), SAME_UPPER, SAME_LOWER or VALID",
        },
        AttrDoc { name: "ceil_mode", doc: "a last window that only partly fits counts" },
        AttrDoc { name: "dilations", doc: "distance of a window's taps; 1 everywhere when empty" },
        AttrDoc { name: "kernel_shape", doc: "taps of a window" },
        AttrDoc {
            name: "pads",
            doc: "padding before each spatial dimension, then after each; 0 everywhere when empty",
        },
        AttrDoc {
            name: "storage_order",
            doc: "which spatial dimension runs fastest in an index: 0 the last, 1 the first",
        },
        AttrDoc { name: "strides", doc: "distance of windows; 1 everywhere when empty" },
    ],
    inputs: &[Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One }],
    outputs: &[
        Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "Indices", ty: TypeRef::Fixed(DType::I64), arity: Arity::Optional },
    ],
    types: &[TypeVar { name: "T", allowed: POOLED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for MaxPool {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![
            ("auto_pad", AttrValue::Text(self.auto_pad.name().to_owned())),
            ("ceil_mode", AttrValue::Bool(self.ceil_mode)),
            ("dilations", AttrValue::Ints(self.dilations.clone())),
            ("kernel_shape", AttrValue::Ints(self.kernel_shape.clone())),
            ("pads", AttrValue::Ints(self.pads.clone())),
            ("storage_order", AttrValue::Int((self.storage_order == StorageOrder::ColumnMajor).into())),
            ("strides", AttrValue::Ints(self.strides.clone())),
        ]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let dims = self.windows().infer(ctx)?;
        let indices = OutInfo::new(DType::I64, dims.clone());
        Ok(SmallVec::from_iter([OutInfo::new(ctx.dtype(0)?, dims), indices]))
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.compute(ctx, f32::NEG_INFINITY),
            DType::F64 => self.compute(ctx, f64::NEG_INFINITY),
            DType::F16 => self.compute(ctx, f16::NEG_INFINITY),
            DType::BF16 => self.compute(ctx, bf16::NEG_INFINITY),
            DType::I8 => self.compute(ctx, i8::MIN),
            DType::U8 => self.compute(ctx, u8::MIN),
            other => Err(unlisted("MaxPool", other)),
        }
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        self.windows().n_operations(outputs)
    }
}

impl MaxPool {
    /// The pooling of an input of shape `x`.
    ///
    /// **Errors**: a rank or attributes that do not fit each other; a window beyond the padded input; sizes that
    /// overflow.
    pub fn geometry(&self, x: &[usize]) -> Result<PoolGeometry, OpError> {
        self.windows().geometry(x)
    }

    fn windows(&self) -> PoolWindows<'_> {
        PoolWindows {
            op: INFO.name,
            auto_pad: self.auto_pad,
            ceil_mode: self.ceil_mode,
            dilations: &self.dilations,
            kernel_shape: &self.kernel_shape,
            pads: &self.pads,
            strides: &self.strides,
        }
    }

    fn compute<T: Element>(&self, ctx: &mut RefCtx<'_>, least: T) -> Result<(), OpError> {
        let x = ctx.input(0)?;
        let geometry = self.geometry(x.shape())?;
        let shape = geometry.out_shape();
        for i in 0..ctx.n_outputs().max(1) {
            check_output(ctx, i, &shape)?;
        }
        if shape.contains(&0) {
            return Ok(());
        }
        let values = x.values::<T>()?;
        let positions = product(&shape[2..])?;
        let plane = product(&x.shape()[2..])?;
        let mut found = Vec::new();
        let spatial = &geometry.spatial;
        let mut window: SmallVec<[usize; 3]> = SmallVec::from_elem(0, spatial.len());
        for (i, to) in ctx.output(0)?.values_mut::<T>()?.iter_mut().enumerate() {
            let channel = i / positions;
            let best = best_of(&values[channel * plane..(channel + 1) * plane], spatial, &window, least);
            *to = best.map_or(least, |(value, _)| value);
            found.push(best.map_or(-1, |(_, at)| (channel * plane + self.index(spatial, at)) as i64));
            advance(&mut window, |d| spatial[d].output);
        }
        if ctx.n_outputs() > 1 {
            ctx.output(1)?.values_mut::<i64>()?.copy_from_slice(&found);
        }
        Ok(())
    }

    /// The index of a row-major position within its channel.
    fn index(&self, spatial: &[WindowDim], at: usize) -> usize {
        match self.storage_order {
            StorageOrder::RowMajor => at,
            StorageOrder::ColumnMajor => {
                let mut rest = at;
                let mut place: SmallVec<[usize; 3]> = SmallVec::new();
                for dim in spatial.iter().rev() {
                    place.push(rest % dim.input);
                    rest /= dim.input;
                }
                // `place` holds the last dimension first, so folding it makes the first dimension run fastest.
                place.iter().zip(spatial.iter().rev()).fold(0, |index, (&i, dim)| index * dim.input + i)
            }
        }
    }
}

/// The largest element under a window and its position in the channel; `None` when the window holds padding alone.
fn best_of<T: Element>(channel: &[T], spatial: &[WindowDim], window: &[usize], least: T) -> Option<(T, usize)> {
    let mut best = None;
    each_tap(spatial, window, |at| {
        let (value, (largest, first)) = (channel[at], best.unwrap_or((least, at)));
        best = Some(if value > largest { (value, at) } else { (largest, first) });
    });
    best
}

fn cases() -> Vec<Case> {
    let case = |name, op: MaxPool, x: Tensor, outputs: &[Tensor]| Case {
        name,
        op: op.into(),
        inputs: vec![Some(x)],
        outputs: outputs.to_vec(),
    };
    let t = case_tensor::<f32>;
    let i = case_tensor::<i64>;
    let kernel = |sizes: &[i64]| MaxPool { kernel_shape: sizes.to_vec(), ..MaxPool::default() };
    let x = t(&[1, 1, 3, 3], &[1., 2., 3., 4., 5., 6., 7., 8., 9.]);
    let line = t(&[1, 1, 4], &[1., 4., 2., 3.]);
    let two = t(&[1, 2, 1, 2], &[1., 2., 4., 3.]);
    vec![
        case("2-D", kernel(&[2, 2]), x.clone(), &[t(&[1, 1, 2, 2], &[5., 6., 8., 9.])]),
        case(
            "strides and pads",
            MaxPool { strides: vec![2, 2], pads: vec![1, 1, 1, 1], ..kernel(&[3, 3]) },
            x.clone(),
            &[t(&[1, 1, 2, 2], &[5., 6., 8., 9.]), i(&[1, 1, 2, 2], &[4, 5, 7, 8])],
        ),
        case(
            "indices by columns",
            MaxPool { storage_order: StorageOrder::ColumnMajor, ..kernel(&[2, 2]) },
            x.clone(),
            &[t(&[1, 1, 2, 2], &[5., 6., 8., 9.]), i(&[1, 1, 2, 2], &[4, 7, 5, 8])],
        ),
        case(
            "indices count all channels",
            kernel(&[1, 2]),
            two,
            &[t(&[1, 2, 1, 1], &[2., 4.]), i(&[1, 2, 1, 1], &[1, 2])],
        ),
        case(
            "partial windows",
            MaxPool { strides: vec![2, 2], ceil_mode: true, ..kernel(&[2, 2]) },
            x.clone(),
            &[t(&[1, 1, 2, 2], &[5., 6., 8., 9.])],
        ),
        case("dilations", MaxPool { dilations: vec![2, 2], ..kernel(&[2, 2]) }, x, &[t(&[1, 1, 1, 1], &[9.])]),
        case("1-D", kernel(&[2]), line.clone(), &[t(&[1, 1, 3], &[4., 4., 3.]), i(&[1, 1, 3], &[1, 1, 3])]),
        case(
            "same, odd pad at the end",
            MaxPool { auto_pad: AutoPad::SameUpper, strides: vec![2], ..kernel(&[3]) },
            line.clone(),
            &[t(&[1, 1, 2], &[4., 3.])],
        ),
        case(
            "same, odd pad at the beginning",
            MaxPool { auto_pad: AutoPad::SameLower, strides: vec![2], ..kernel(&[3]) },
            line.clone(),
            &[t(&[1, 1, 2], &[4., 4.])],
        ),
        case(
            "same, a kernel far beyond the input",
            MaxPool { auto_pad: AutoPad::SameLower, ..kernel(&[1 << 60]) },
            line,
            &[t(&[1, 1, 4], &[4., 4., 4., 4.])],
        ),
        case(
            "padding alone",
            MaxPool { pads: vec![1, 0], ..kernel(&[1]) },
            case_tensor(&[1, 1, 1], &[-5i8]),
            &[case_tensor(&[1, 1, 2], &[i8::MIN, -5]), i(&[1, 1, 2], &[-1, 0])],
        ),
        case(
            "NaN and the first of equals",
            kernel(&[2]),
            t(&[1, 1, 4], &[f32::NAN, 1., 1., f32::NEG_INFINITY]),
            &[t(&[1, 1, 3], &[1., 1., 1.]), i(&[1, 1, 3], &[1, 1, 2])],
        ),
        case("u8", kernel(&[2]), case_tensor(&[1, 1, 2], &[200u8, 100]), &[case_tensor(&[1, 1, 1], &[200u8])]),
        case("no image", kernel(&[2]), t(&[0, 1, 3], &[]), &[t(&[0, 1, 2], &[]), i(&[0, 1, 2], &[])]),
    ]
}
