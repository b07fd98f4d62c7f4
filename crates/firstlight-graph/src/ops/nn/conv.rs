//! `Conv`.

use super::arith::{Math, Stored, widened};
use super::window::{AutoPad, WindowDim, Windows, advance};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::elementwise::unlisted;
use crate::ops::layout::{case_tensor, check_output, product};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, Shape, SymShape, Tensor, bf16, f16};
use smallvec::SmallVec;

/// Channels that an output element's sum takes together before it moves to the next tap of the window.
///
/// The order of a sum: for each block of this many channels of the group, for each tap in row-major order, for each
/// channel of the block one fused multiply-add, from +0; padding takes part as 0; the bias is added last.
pub const CHANNEL_BLOCK: usize = 16;

/// Convolution over any number of spatial dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv {
    /// How pads are chosen.
    pub auto_pad: AutoPad,
    /// Distance of a window's taps in each spatial dimension; 1 everywhere when empty.
    pub dilations: Vec<i64>,
    /// Groups that channels and filters are split into.
    pub group: i64,
    /// Taps of a window in each spatial dimension; the weights' when empty.
    pub kernel_shape: Vec<i64>,
    /// Padding before each spatial dimension, then after each; 0 everywhere when empty. Only for `AutoPad::NotSet`.
    pub pads: Vec<i64>,
    /// Distance of windows in each spatial dimension; 1 everywhere when empty.
    pub strides: Vec<i64>,
}

impl Default for Conv {
    fn default() -> Conv {
        Conv {
            auto_pad: AutoPad::NotSet,
            dilations: vec![],
            group: 1,
            kernel_shape: vec![],
            pads: vec![],
            strides: vec![],
        }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Conv",
    doc: "Convolution over any number of spatial dimensions, in groups, with an optional bias. Padding multiplies as 0.",
    attributes: &[
        AttrDoc {
            name: "auto_pad",
            doc: "how pads are chosen: NOTSET (as `pads` says), SAME_UPPER, SAME_LOWER or VALID",
        },
        AttrDoc { name: "dilations", doc: "distance of a window's taps; 1 everywhere when empty" },
        AttrDoc { name: "group", doc: "groups that channels and filters are split into" },
        AttrDoc { name: "kernel_shape", doc: "taps of a window; the weights' when empty" },
        AttrDoc {
            name: "pads",
            doc: "padding before each spatial dimension, then after each; 0 everywhere when empty",
        },
        AttrDoc { name: "strides", doc: "distance of windows; 1 everywhere when empty" },
    ],
    inputs: &[
        Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "W", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "B", ty: TypeRef::Var(0), arity: Arity::Optional },
    ],
    outputs: &[Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Conv {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![
            ("auto_pad", AttrValue::Text(self.auto_pad.name().to_owned())),
            ("dilations", AttrValue::Ints(self.dilations.clone())),
            ("group", AttrValue::Int(self.group)),
            ("kernel_shape", AttrValue::Ints(self.kernel_shape.clone())),
            ("pads", AttrValue::Ints(self.pads.clone())),
            ("strides", AttrValue::Ints(self.strides.clone())),
        ]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (x, w) = (ctx.dims(0)?, ctx.shape(1)?);
        self.check(x.rank(), x.get(1).and_then(Dim::known), &w)?;
        if ctx.has(2) {
            check_bias(ctx.dims(2)?, w[0])?;
        }
        let windows = self.windows(&w);
        let mut dims = vec![x[0].clone(), Dim::Known(w[0])];
        for (d, dim) in x[2..].iter().enumerate() {
            dims.push(match dim.known() {
                Some(size) => Dim::Known(windows.along(d, size)?.output),
                None => Dim::Unknown,
            });
        }
        Ok(OutInfo::new(ctx.dtype(0)?, SymShape(dims)).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.compute::<f32>(ctx),
            DType::F64 => self.compute::<f64>(ctx),
            DType::F16 => self.compute::<f16>(ctx),
            DType::BF16 => self.compute::<bf16>(ctx),
            other => Err(unlisted("Conv", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        let count = |dims: &[usize]| dims.iter().fold(1u64, |product, &dim| product.saturating_mul(dim as u64));
        let per_output = inputs.get(1).and_then(|w| w.get(1..)).map_or(0, count);
        outputs.first().map_or(0, |y| count(y)).saturating_mul(per_output).saturating_mul(2)
    }
}

/// A convolution with everything resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvGeometry {
    /// Samples, each convolved by itself.
    pub batch: usize,
    /// Groups, whose channels do not mix.
    pub group: usize,
    /// Channels of the input, all groups together.
    pub in_channels: usize,
    /// Filters, all groups together.
    pub out_channels: usize,
    /// Windows along each spatial dimension.
    pub spatial: SmallVec<[WindowDim; 3]>,
}

impl ConvGeometry {
    /// Channels of the input in one group.
    pub fn group_in_channels(&self) -> usize {
        self.in_channels / self.group
    }

    /// Filters in one group.
    pub fn group_out_channels(&self) -> usize {
        self.out_channels / self.group
    }

    /// Shape of the output.
    pub fn out_shape(&self) -> Shape {
        [self.batch, self.out_channels].into_iter().chain(self.spatial.iter().map(|dim| dim.output)).collect()
    }
}

impl Conv {
    /// The convolution of an input of shape `x` with weights of shape `w`.
    ///
    /// **Errors**: ranks, channels or attributes that do not fit each other; a window beyond the padded input; sizes
    /// that overflow.
    pub fn geometry(&self, x: &[usize], w: &[usize]) -> Result<ConvGeometry, OpError> {
        self.check(x.len(), x.get(1).copied(), w)?;
        let spatial = self.windows(w).resolve(&x[2..])?;
        let geometry =
            ConvGeometry { batch: x[0], group: self.group as usize, in_channels: x[1], out_channels: w[0], spatial };
        product(&geometry.out_shape())?;
        Ok(geometry)
    }

    fn windows<'a>(&'a self, w: &'a [usize]) -> Windows<'a> {
        Windows {
            kernel: &w[2..],
            strides: &self.strides,
            pads: &self.pads,
            dilations: &self.dilations,
            auto_pad: self.auto_pad,
            ceil_mode: false,
        }
    }

    fn check(&self, rank: usize, channels: Option<usize>, w: &[usize]) -> Result<(), OpError> {
        let weights = Shape::from(w);
        if rank < 3 || w.len() != rank {
            return Err(OpError::shape(format!(
                "Conv takes an input of at least 3 dimensions and weights of as many; got {rank}, and weights {weights}"
            )));
        }
        let group = usize::try_from(self.group).ok().filter(|&group| group > 0);
        let group = group.ok_or_else(|| OpError::value(format!("group is {}, expected at least 1", self.group)))?;
        if !w[0].is_multiple_of(group) {
            return Err(OpError::shape(format!("weights {weights} do not split into {group} groups of filters")));
        }
        let expected = w[1].checked_mul(group);
        if channels.is_some_and(|channels| expected != Some(channels)) || expected.is_none() {
            return Err(OpError::shape(format!(
                "an input of {} channels does not fit weights {weights} in {group} groups",
                channels.map_or("?".to_owned(), |channels| channels.to_string())
            )));
        }
        let declared = self.kernel_shape.iter().map(|&size| usize::try_from(size).ok());
        if !self.kernel_shape.is_empty() && !declared.eq(w[2..].iter().map(|&size| Some(size))) {
            return Err(OpError::shape(format!("kernel_shape {:?} does not fit weights {weights}", self.kernel_shape)));
        }
        self.windows(w).check()
    }

    fn compute<T: Stored>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let (x, w) = (ctx.input(0)?, ctx.input(1)?);
        let geometry = self.geometry(x.shape(), w.shape())?;
        let bias = ctx.optional(2);
        if let Some(bias) = &bias {
            check_bias(&SymShape::from(bias.shape()), geometry.out_channels)?;
        }
        check_output(ctx, 0, &geometry.out_shape())?;
        let output = ctx.output(0)?.values_mut::<T>()?;
        if output.is_empty() {
            return Ok(());
        }
        let (x, w) = (widened::<T>(&x)?, widened::<T>(&w)?);
        let bias = bias.map(|bias| widened::<T>(&bias)).transpose()?;
        let filters = geometry.group_out_channels();
        let positions: usize = geometry.spatial.iter().map(|dim| dim.output).product();
        let mut sums = vec![T::Math::ZERO; filters * positions];
        for (i, to) in output.chunks_exact_mut(filters * positions).enumerate() {
            let (batch, group) = (i / geometry.group, i % geometry.group);
            sums.fill(T::Math::ZERO);
            geometry.add_group(&x, &w, batch, group, &mut sums);
            for (j, (to, sum)) in to.iter_mut().zip(&sums).enumerate() {
                let filter = group * filters + j / positions;
                *to = T::narrow(bias.as_ref().map_or(*sum, |bias| sum.plus(bias[filter])));
            }
        }
        Ok(())
    }
}

impl ConvGeometry {
    /// Adds the products of one image and group to `sums` (filters by positions), in the order of [`CHANNEL_BLOCK`].
    fn add_group<M: Math>(&self, x: &[M], w: &[M], batch: usize, group: usize, sums: &mut [M]) {
        let (channels, filters) = (self.group_in_channels(), self.group_out_channels());
        let plane: usize = self.spatial.iter().map(|dim| dim.input).product();
        let taps: usize = self.spatial.iter().map(|dim| dim.kernel).product();
        let positions = sums.len() / filters;
        let x = &x[(batch * self.in_channels + group * channels) * plane..][..channels * plane];
        let w = &w[group * filters * channels * taps..][..filters * channels * taps];
        let mut sources: Vec<Option<usize>> = vec![None; positions];
        for block in (0..channels).step_by(CHANNEL_BLOCK) {
            let mut tap_index: SmallVec<[usize; 3]> = SmallVec::from_elem(0, self.spatial.len());
            for tap in 0..taps {
                self.sources(&tap_index, &mut sources);
                advance(&mut tap_index, |d| self.spatial[d].kernel);
                for (filter, sums) in sums.chunks_exact_mut(positions).enumerate() {
                    for channel in block..channels.min(block + CHANNEL_BLOCK) {
                        let factor = w[(filter * channels + channel) * taps + tap];
                        let x = &x[channel * plane..][..plane];
                        for (sum, source) in sums.iter_mut().zip(&sources) {
                            *sum = source.map_or(M::ZERO, |at| x[at]).fused(factor, *sum);
                        }
                    }
                }
            }
        }
    }

    /// For each output position the input position under a tap, within a channel.
    fn sources(&self, tap: &[usize], sources: &mut [Option<usize>]) {
        let mut window: SmallVec<[usize; 3]> = SmallVec::from_elem(0, self.spatial.len());
        for source in sources {
            *source = self
                .spatial
                .iter()
                .zip(&window)
                .zip(tap)
                .try_fold(0, |at, ((dim, &window), &tap)| Some(at * dim.input + dim.at(window, tap)?));
            advance(&mut window, |d| self.spatial[d].output);
        }
    }
}

fn check_bias(bias: &SymShape, filters: usize) -> Result<(), OpError> {
    match bias.rank() == 1 && bias[0].known().is_none_or(|size| size == filters) {
        true => Ok(()),
        false => Err(OpError::shape(format!("a bias {bias} does not fit {filters} filters"))),
    }
}

fn cases() -> Vec<Case> {
    let case = |name, op: Conv, inputs: &[Tensor], y: Tensor| Case {
        name,
        op: op.into(),
        inputs: inputs.iter().cloned().map(Some).collect(),
        outputs: vec![y],
    };
    let t = case_tensor::<f32>;
    let plain = Conv::default;
    let x1 = t(&[1, 1, 5], &[1., 2., 3., 4., 5.]);
    let w1 = t(&[1, 1, 3], &[1., 0., -1.]);
    let x2 = t(&[1, 1, 3, 3], &[1., 2., 3., 4., 5., 6., 7., 8., 9.]);
    let w2 = t(&[1, 1, 2, 2], &[1., 2., 3., 4.]);
    let padded = [4., 11., 18., 9., 18., 37., 47., 21., 36., 67., 77., 33., 14., 23., 26., 9.];
    let halves = |dims: &[usize], values: &[f32]| {
        let values: Vec<f16> = values.iter().map(|&value| f16::from_f32(value)).collect();
        case_tensor(dims, &values)
    };
    vec![
        case("1-D", plain(), &[x1.clone(), w1.clone()], t(&[1, 1, 3], &[-2., -2., -2.])),
        case(
            "1-D, strides and pads",
            Conv { strides: vec![2], pads: vec![1, 1], ..plain() },
            &[x1.clone(), w1.clone()],
            t(&[1, 1, 3], &[-2., -2., 4.]),
        ),
        case("dilations", Conv { dilations: vec![2], ..plain() }, &[x1.clone(), w1.clone()], t(&[1, 1, 1], &[-4.])),
        case(
            "same, odd pad at the end",
            Conv { strides: vec![2], auto_pad: AutoPad::SameUpper, ..plain() },
            &[t(&[1, 1, 4], &[1., 2., 3., 4.]), w1.clone()],
            t(&[1, 1, 2], &[-2., 3.]),
        ),
        case(
            "same, odd pad at the beginning",
            Conv { strides: vec![2], auto_pad: AutoPad::SameLower, ..plain() },
            &[t(&[1, 1, 4], &[1., 2., 3., 4.]), w1.clone()],
            t(&[1, 1, 2], &[-2., -2.]),
        ),
        case("2-D", plain(), &[x2.clone(), w2.clone()], t(&[1, 1, 2, 2], &[37., 47., 67., 77.])),
        case(
            "2-D, bias",
            Conv { kernel_shape: vec![2, 2], auto_pad: AutoPad::Valid, ..plain() },
            &[x2.clone(), w2.clone(), t(&[1], &[0.5])],
            t(&[1, 1, 2, 2], &[37.5, 47.5, 67.5, 77.5]),
        ),
        case("2-D, pads", Conv { pads: vec![1, 1, 1, 1], ..plain() }, &[x2, w2], t(&[1, 1, 4, 4], &padded)),
        case(
            "groups",
            Conv { group: 2, ..plain() },
            &[t(&[1, 4, 1], &[1., 2., 3., 4.]), t(&[2, 2, 1], &[1., 10., 1., 10.])],
            t(&[1, 2, 1], &[21., 43.]),
        ),
        case(
            "channels and filters",
            plain(),
            &[t(&[1, 2, 2], &[1., 2., 3., 4.]), t(&[2, 2, 1], &[1., 0., 1., 1.]), t(&[2], &[0., 1.])],
            t(&[1, 2, 2], &[1., 2., 5., 7.]),
        ),
        case(
            "3-D",
            plain(),
            &[t(&[1, 1, 2, 1, 2], &[1., 2., 3., 4.]), t(&[1, 1, 2, 1, 1], &[1., 1.])],
            t(&[1, 1, 1, 1, 2], &[4., 6.]),
        ),
        case("no image", plain(), &[t(&[0, 1, 5], &[]), w1], t(&[0, 1, 3], &[])),
        case(
            "no channels",
            plain(),
            &[t(&[1, 0, 2], &[]), t(&[1, 0, 1], &[]), t(&[1], &[3.])],
            t(&[1, 1, 2], &[3., 3.]),
        ),
        case(
            "f16 rounds once",
            plain(),
            &[halves(&[1, 3, 1], &[2048., 1., 1.]), halves(&[1, 3, 1], &[1., 1., 1.])],
            halves(&[1, 1, 1], &[2050.]),
        ),
    ]
}
