//! `LpPool`.

use super::arith::{Math, Real, Stored, widened};
use super::global_lp_pool::{check_p, power, root};
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

/// The p-norm of each window.
///
/// `|x|^p` of each element under a window's taps, rounded, added in row-major order from +0, and the root of the sum,
/// rounded; powers and roots other than those of p = 1 and 2 are taken in f64.
#[derive(Clone, Debug, PartialEq)]
pub struct LpPool {
    /// How pads are chosen.
    pub auto_pad: AutoPad,
    /// True when a last window that only partly fits counts, unless it would start behind the input.
    pub ceil_mode: bool,
    /// Distance of a window's taps in each spatial dimension; 1 everywhere when empty.
    pub dilations: Vec<i64>,
    /// Taps of a window in each spatial dimension.
    pub kernel_shape: Vec<i64>,
    /// The norm's exponent, 1 or more.
    pub p: i64,
    /// Padding before each spatial dimension, then after each; 0 everywhere when empty. Only for `AutoPad::NotSet`.
    pub pads: Vec<i64>,
    /// Distance of windows in each spatial dimension; 1 everywhere when empty.
    pub strides: Vec<i64>,
}

impl Default for LpPool {
    fn default() -> LpPool {
        let (dilations, kernel_shape, pads, strides) = Default::default();
        LpPool { auto_pad: AutoPad::NotSet, ceil_mode: false, dilations, kernel_shape, p: 2, pads, strides }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "LpPool",
    doc: "The p-norm of each window's elements in the input; padding adds nothing, and the norm of nothing is 0.",
    attributes: &[
        AttrDoc {
            name: "auto_pad",
            doc: "how pads are chosen: NOTSET (as `pads` says), SAME_UPPER, SAME_LOWER or VALID",
        },
        AttrDoc { name: "ceil_mode", doc: "a last window that only partly fits counts" },
        AttrDoc { name: "dilations", doc: "distance of a window's taps; 1 everywhere when empty" },
        AttrDoc { name: "kernel_shape", doc: "taps of a window" },
        AttrDoc { name: "p", doc: "the norm's exponent, 1 or more" },
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

impl OpDef for LpPool {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![
            ("auto_pad", AttrValue::Text(self.auto_pad.name().to_owned())),
            ("ceil_mode", AttrValue::Bool(self.ceil_mode)),
            ("dilations", AttrValue::Ints(self.dilations.clone())),
            ("kernel_shape", AttrValue::Ints(self.kernel_shape.clone())),
            ("p", AttrValue::Int(self.p)),
            ("pads", AttrValue::Ints(self.pads.clone())),
            ("strides", AttrValue::Ints(self.strides.clone())),
        ]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        check_p(self.p)?;
        Ok(OutInfo::new(ctx.dtype(0)?, self.windows().infer(ctx)?).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.compute::<f32>(ctx),
            DType::F64 => self.compute::<f64>(ctx),
            DType::F16 => self.compute::<f16>(ctx),
            DType::BF16 => self.compute::<bf16>(ctx),
            other => Err(unlisted("LpPool", other)),
        }
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        self.windows().n_operations(outputs).saturating_mul(2)
    }
}

impl LpPool {
    /// The pooling of an input of shape `x`.
    ///
    /// **Errors**: a rank or attributes that do not fit each other; a window beyond the padded input; sizes that
    /// overflow.
    pub fn geometry(&self, x: &[usize]) -> Result<PoolGeometry, OpError> {
        check_p(self.p)?;
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
        let values: Vec<T::Math> = widened::<T>(&x)?.into_iter().map(|x| power(self.p, x)).collect();
        let positions = product(&shape[2..])?;
        let plane = product(&x.shape()[2..])?;
        let spatial = &geometry.spatial;
        let mut window: SmallVec<[usize; 3]> = SmallVec::from_elem(0, spatial.len());
        for (i, to) in ctx.output(0)?.values_mut::<T>()?.iter_mut().enumerate() {
            let channel = &values[i / positions * plane..][..plane];
            let mut sum = T::Math::ZERO;
            each_tap(spatial, &window, |at| sum = sum.plus(channel[at]));
            *to = T::narrow(root(self.p, sum));
            advance(&mut window, |d| spatial[d].output);
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let t = tensor::<f32>;
    let kernel = |sizes: &[i64], p| LpPool { kernel_shape: sizes.to_vec(), p, ..LpPool::default() };
    let x = || t(&[1, 1, 3, 3], &[1., -2., 3., -4., 5., -6., 7., -8., 9.]);
    let line = || t(&[1, 1, 4], &[3., -4., 0., 12.]);
    let halves = |values: &[f32]| values.iter().map(|&value| f16::from_f32(value)).collect::<Vec<_>>();
    let brains = |values: &[f32]| values.iter().map(|&value| bf16::from_f32(value)).collect::<Vec<_>>();
    vec![
        case("p = 1", kernel(&[2, 2], 1), &[x()], &[t(&[1, 1, 2, 2], &[12., 16., 24., 28.])]),
        case("p = 2", kernel(&[2], 2), &[line()], &[t(&[1, 1, 3], &[5., 4., 12.])]),
        case("p = 3", kernel(&[3], 3), &[t(&[1, 1, 3], &[3., -4., 5.])], &[t(&[1, 1, 1], &[6.])]),
        case(
            "padding adds nothing",
            LpPool { pads: vec![1, 1, 1, 1], strides: vec![2, 2], ..kernel(&[3, 3], 1) },
            &[x()],
            &[t(&[1, 1, 2, 2], &[12., 16., 24., 28.])],
        ),
        case(
            "two channels",
            kernel(&[1, 2], 2),
            &[t(&[1, 2, 1, 2], &[3., 4., 8., 6.])],
            &[t(&[1, 2, 1, 1], &[5., 10.])],
        ),
        case(
            "partial windows",
            LpPool { strides: vec![2, 2], ceil_mode: true, ..kernel(&[2, 2], 1) },
            &[x()],
            &[t(&[1, 1, 2, 2], &[12., 9., 15., 9.])],
        ),
        case("dilations", LpPool { dilations: vec![2, 2], ..kernel(&[2, 2], 1) }, &[x()], &[t(&[1, 1, 1, 1], &[20.])]),
        case(
            "3-D",
            kernel(&[2, 1, 2], 1),
            &[t(&[1, 1, 2, 2, 2], &[1., 2., 3., 4., 5., 6., 7., 8.])],
            &[t(&[1, 1, 1, 2, 1], &[14., 22.])],
        ),
        case(
            "same, odd pad at the end",
            LpPool { auto_pad: AutoPad::SameUpper, strides: vec![2], ..kernel(&[3], 1) },
            &[line()],
            &[t(&[1, 1, 2], &[7., 12.])],
        ),
        case(
            "same, odd pad at the beginning",
            LpPool { auto_pad: AutoPad::SameLower, strides: vec![2], ..kernel(&[3], 1) },
            &[line()],
            &[t(&[1, 1, 2], &[7., 16.])],
        ),
        case(
            "padding alone",
            LpPool { pads: vec![1, 0], ..kernel(&[1], 2) },
            &[t(&[1, 1, 1], &[-5.])],
            &[t(&[1, 1, 2], &[0., 5.])],
        ),
        case(
            "NaN stays in its windows",
            kernel(&[2], 2),
            &[t(&[1, 1, 4], &[f32::NAN, 1., f32::NEG_INFINITY, 2.])],
            &[t(&[1, 1, 3], &[f32::NAN, f32::INFINITY, f32::INFINITY])],
        ),
        case("no image", kernel(&[2], 2), &[t(&[0, 1, 3], &[])], &[t(&[0, 1, 2], &[])]),
        case("f64", kernel(&[2], 2), &[tensor(&[1, 1, 2], &[3f64, 4.])], &[tensor(&[1, 1, 1], &[5f64])]),
        case(
            "f16 computes in f32",
            kernel(&[2], 2),
            &[tensor(&[1, 1, 2], &halves(&[3e4, 4e4]))],
            &[tensor(&[1, 1, 1], &halves(&[5e4]))],
        ),
        case(
            "bf16",
            kernel(&[2], 1),
            &[tensor(&[1, 1, 2], &brains(&[1., -2.]))],
            &[tensor(&[1, 1, 1], &brains(&[3.]))],
        ),
    ]
}
