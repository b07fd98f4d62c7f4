//! `AveragePool`.

use super::arith::{Math, Real, Stored, widened};
use super::pooling::{PoolGeometry, PoolWindows, each_tap};
use super::window::{AutoPad, advance};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::elementwise::unlisted;
use crate::ops::layout::{check_output, product};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, bf16, f16};
use smallvec::SmallVec;

/// The mean of each window.
///
/// The elements under a window's taps are added in row-major order, from +0; the sum is divided by their number, or by
/// the number of all taps in the input and its padding.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AveragePool {
    /// How pads are chosen.
    pub auto_pad: AutoPad,
    /// True when a last window that only partly fits counts, unless it would start behind the input.
    pub ceil_mode: bool,
    /// True when taps in the padding count as elements of value 0.
    pub count_include_pad: bool,
    /// Distance of a window's taps in each spatial dimension; 1 everywhere when empty.
    pub dilations: Vec<i64>,
    /// Taps of a window in each spatial dimension.
    pub kernel_shape: Vec<i64>,
    /// Padding before each spatial dimension, then after each; 0 everywhere when empty. Only for `AutoPad::NotSet`.
    pub pads: Vec<i64>,
    /// Distance of windows in each spatial dimension; 1 everywhere when empty.
    pub strides: Vec<i64>,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "AveragePool",
    doc: "The mean of each window: of its elements in the input, or, if count_include_pad, of those and the padding's \
          zeros. What of a last window lies behind the padding never counts. A window of nothing gives NaN.",
    attributes: &[
        AttrDoc {
            name: "auto_pad",
            doc: "how pads are chosen: NOTSET (as `pads` says), SAME_UPPER, SAME_LOWER or VALID",
        },
        AttrDoc { name: "ceil_mode", doc: "a last window that only partly fits counts" },
        AttrDoc { name: "count_include_pad", doc: "taps in the padding count as elements of value 0" },
        AttrDoc { name: "dilations", doc: "distance of a window's taps; 1 everywhere when empty" },
        AttrDoc { name: "kernel_shape", doc: "taps of a window" },
        AttrDoc {
            name: "pads",
            doc: "padding before each spatial dimension, then after each; 0 everywhere when empty",
        },
        AttrDoc { name: "strides", doc: "distance of windows; 1 everywhere when empty" },
    ],
    inputs: &[Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One }],
    outputs: &[Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for AveragePool {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![
            ("auto_pad", AttrValue::Text(self.auto_pad.name().to_owned())),
            ("ceil_mode", AttrValue::Bool(self.ceil_mode)),
            ("count_include_pad", AttrValue::Bool(self.count_include_pad)),
            ("dilations", AttrValue::Ints(self.dilations.clone())),
            ("kernel_shape", AttrValue::Ints(self.kernel_shape.clone())),
            ("pads", AttrValue::Ints(self.pads.clone())),
            ("strides", AttrValue::Ints(self.strides.clone())),
        ]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        Ok(OutInfo::new(ctx.dtype(0)?, self.windows().infer(ctx)?).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.compute::<f32>(ctx),
            DType::F64 => self.compute::<f64>(ctx),
            DType::F16 => self.compute::<f16>(ctx),
            DType::BF16 => self.compute::<bf16>(ctx),
            other => Err(unlisted("AveragePool", other)),
        }
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        self.windows().n_operations(outputs)
    }
}

impl AveragePool {
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

    fn compute<T: Stored>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError>
    where
        T::Math: Real,
    {
        let x = ctx.input(0)?;
        let geometry = self.geometry(x.shape())?;
        let shape = geometry.out_shape();
        check_output(ctx, 0, &shape)?;
        if shape.contains(&0) {
            return Ok(());
        }
        let values = widened::<T>(&x)?;
        let positions = product(&shape[2..])?;
        let plane = product(&x.shape()[2..])?;
        let spatial = &geometry.spatial;
        let mut window: SmallVec<[usize; 3]> = SmallVec::from_elem(0, spatial.len());
        for (i, to) in ctx.output(0)?.values_mut::<T>()?.iter_mut().enumerate() {
            let channel = &values[i / positions * plane..][..plane];
            let mut sum = T::Math::ZERO;
            each_tap(spatial, &window, |at| sum = sum.plus(channel[at]));
            let n_taps = spatial.iter().zip(&window).map(|(dim, &window)| match self.count_include_pad {
                true => dim.n_padded_taps(window),
                false => dim.taps(window).len(),
            });
            let n_taps = n_taps.fold(1.0, |product, n| product * n as f64);
            *to = T::narrow(sum.over(T::Math::from_f64(n_taps)));
            advance(&mut window, |d| spatial[d].output);
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let t = tensor::<f32>;
    let kernel = |sizes: &[i64]| AveragePool { kernel_shape: sizes.to_vec(), ..AveragePool::default() };
    let x = || t(&[1, 1, 3, 3], &[1., 2., 3., 4., 5., 6., 7., 8., 9.]);
    let line = || t(&[1, 1, 4], &[1., 4., 2., 3.]);
    let padded = || AveragePool { pads: vec![1, 1, 1, 1], strides: vec![2, 2], ..kernel(&[3, 3]) };
    let included = |op| AveragePool { count_include_pad: true, ..op };
    let halves = |values: &[f32]| values.iter().map(|&value| f16::from_f32(value)).collect::<Vec<_>>();
    let brains = |values: &[f32]| values.iter().map(|&value| bf16::from_f32(value)).collect::<Vec<_>>();
    vec![
        case("2-D", kernel(&[2, 2]), &[x()], &[t(&[1, 1, 2, 2], &[3., 4., 6., 7.])]),
        case("padding does not count", padded(), &[x()], &[t(&[1, 1, 2, 2], &[3., 4., 6., 7.])]),
        case(
            "padding counts",
            included(padded()),
            &[x()],
            &[t(&[1, 1, 2, 2], &[12. / 9., 16. / 9., 24. / 9., 28. / 9.])],
        ),
        case("two channels", kernel(&[1, 2]), &[t(&[1, 2, 1, 2], &[1., 2., 4., 3.])], &[t(&[1, 2, 1, 1], &[1.5, 3.5])]),
        case(
            "partial windows",
            AveragePool { strides: vec![2, 2], ceil_mode: true, ..kernel(&[2, 2]) },
            &[x()],
            &[t(&[1, 1, 2, 2], &[3., 4.5, 7.5, 9.])],
        ),
        case(
            "what lies behind the padding does not count",
            included(AveragePool { strides: vec![2], pads: vec![0, 1], ceil_mode: true, ..kernel(&[4]) }),
            &[t(&[1, 1, 6], &[1., 1., 1., 1., 2., 4.])],
            &[t(&[1, 1, 3], &[1., 2., 2.])],
        ),
        case("dilations", AveragePool { dilations: vec![2, 2], ..kernel(&[2, 2]) }, &[x()], &[t(&[1, 1, 1, 1], &[5.])]),
        case(
            "dilated padding",
            included(AveragePool { dilations: vec![2], pads: vec![2, 0], ..kernel(&[2]) }),
            &[line()],
            &[t(&[1, 1, 4], &[0.5, 2., 1.5, 3.5])],
        ),
        case("1-D", kernel(&[2]), &[line()], &[t(&[1, 1, 3], &[2.5, 3., 2.5])]),
        case(
            "3-D",
            kernel(&[2, 1, 2]),
            &[t(&[1, 1, 2, 2, 2], &[1., 2., 3., 4., 5., 6., 7., 8.])],
            &[t(&[1, 1, 1, 2, 1], &[3.5, 5.5])],
        ),
        case(
            "same, odd pad at the end",
            AveragePool { auto_pad: AutoPad::SameUpper, strides: vec![2], ..kernel(&[3]) },
            &[line()],
            &[t(&[1, 1, 2], &[7. / 3., 2.5])],
        ),
        case(
            "same, odd pad at the beginning",
            AveragePool { auto_pad: AutoPad::SameLower, strides: vec![2], ..kernel(&[3]) },
            &[line()],
            &[t(&[1, 1, 2], &[2.5, 3.])],
        ),
        case(
            "same, a kernel far beyond the input",
            AveragePool { auto_pad: AutoPad::SameUpper, ..kernel(&[1 << 60]) },
            &[line()],
            &[t(&[1, 1, 4], &[2.5, 2.5, 2.5, 2.5])],
        ),
        case(
            "padding alone",
            AveragePool { pads: vec![1, 0], ..kernel(&[1]) },
            &[t(&[1, 1, 1], &[-5.])],
            &[t(&[1, 1, 2], &[f32::NAN, -5.])],
        ),
        case(
            "NaN stays in its windows",
            kernel(&[2]),
            &[t(&[1, 1, 4], &[f32::NAN, 1., f32::INFINITY, 2.])],
            &[t(&[1, 1, 3], &[f32::NAN, f32::INFINITY, f32::INFINITY])],
        ),
        case("no image", kernel(&[2]), &[t(&[0, 1, 3], &[])], &[t(&[0, 1, 2], &[])]),
        case("f64", kernel(&[2]), &[tensor(&[1, 1, 2], &[1f64, 2.])], &[tensor(&[1, 1, 1], &[1.5f64])]),
        case(
            "f16 computes in f32",
            kernel(&[2]),
            &[tensor(&[1, 1, 2], &halves(&[65504., 65504.]))],
            &[tensor(&[1, 1, 1], &halves(&[65504.]))],
        ),
        case("bf16", kernel(&[2]), &[tensor(&[1, 1, 2], &brains(&[1., 2.]))], &[tensor(&[1, 1, 1], &brains(&[1.5]))]),
    ]
}
