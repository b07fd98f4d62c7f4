//! `ConvTranspose`.

use super::arith::{Math, Stored, widened};
use super::window::{AutoPad, advance};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::elementwise::unlisted;
use crate::ops::layout::{case_tensor, check_output, product};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, Shape, SymShape, Tensor, bf16, f16};
use smallvec::SmallVec;

/// Transposed convolution over any number of spatial dimensions.
///
/// The order of a sum: each pixel of the input under the kernel gives one product of its channels, ascending, from +0; an output
/// element adds those of its pixels in row-major order of the input, from +0, then the bias.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvTranspose {
    /// How pads are chosen.
    pub auto_pad: AutoPad,
    /// Distance of the kernel's taps in each spatial dimension; 1 everywhere when empty.
    pub dilations: Vec<i64>,
    /// Groups that channels and filters are split into.
    pub group: i64,
    /// Taps of the kernel in each spatial dimension; the weights' when empty.
    pub kernel_shape: Vec<i64>,
    /// Elements added to the end of each spatial dimension of the output; 0 everywhere when empty.
    pub output_padding: Vec<i64>,
    /// Spatial sizes of the output, from which pads follow; worked out when empty.
    pub output_shape: Vec<i64>,
    /// What is cut from the beginning of each spatial dimension of the output, then from the end of each; 0 everywhere when empty.
    pub pads: Vec<i64>,
    /// Distance that a step of the input has in the output, in each spatial dimension; 1 everywhere when empty.
    pub strides: Vec<i64>,
}

impl Default for ConvTranspose {
    fn default() -> ConvTranspose {
        ConvTranspose {
            auto_pad: AutoPad::NotSet,
            dilations: vec![],
            group: 1,
            kernel_shape: vec![],
            output_padding: vec![],
            output_shape: vec![],
            pads: vec![],
            strides: vec![],
        }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ConvTranspose",
    doc: "Transposed convolution over any number of spatial dimensions, in groups, with an optional bias. Output elements that no \
          pixel reaches are the bias. An `output_shape` beyond what pixels reach adds such elements at the end.",
    attributes: &[
        AttrDoc {
            name: "auto_pad",
            doc: "how pads are chosen: NOTSET (as `pads` or `output_shape` says), SAME_UPPER and SAME_LOWER (output sizes are input \
                  sizes times strides), or VALID",
        },
        AttrDoc { name: "dilations", doc: "distance of the kernel's taps; 1 everywhere when empty" },
        AttrDoc { name: "group", doc: "groups that channels and filters are split into" },
        AttrDoc { name: "kernel_shape", doc: "taps of the kernel; the weights' when empty" },
        AttrDoc {
            name: "output_padding",
            doc: "elements added to the end of each spatial dimension of the output; 0 everywhere when empty",
        },
        AttrDoc {
            name: "output_shape",
            doc: "spatial sizes of the output, from which pads follow; worked out when empty",
        },
        AttrDoc {
            name: "pads",
            doc: "what is cut from the beginning of each spatial dimension of the output, then from the end of each; 0 everywhere \
                  when empty",
        },
        AttrDoc {
            name: "strides",
            doc: "distance that a step of the input has in the output; 1 everywhere when empty",
        },
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

impl OpDef for ConvTranspose {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![
            ("auto_pad", AttrValue::Text(self.auto_pad.name().to_owned())),
            ("dilations", AttrValue::Ints(self.dilations.clone())),
            ("group", AttrValue::Int(self.group)),
            ("kernel_shape", AttrValue::Ints(self.kernel_shape.clone())),
            ("output_padding", AttrValue::Ints(self.output_padding.clone())),
            ("output_shape", AttrValue::Ints(self.output_shape.clone())),
            ("pads", AttrValue::Ints(self.pads.clone())),
            ("strides", AttrValue::Ints(self.strides.clone())),
        ]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (x, w) = (ctx.dims(0)?, ctx.shape(1)?);
        let filters = self.check(x.rank(), x.get(1).and_then(Dim::known), &w)?;
        if ctx.has(2) {
            check_bias(ctx.dims(2)?, filters)?;
        }
        let mut dims = vec![x[0].clone(), Dim::Known(filters)];
        for (d, dim) in x[2..].iter().enumerate() {
            dims.push(match dim.known() {
                Some(size) => Dim::Known(self.along(d, size, w[2 + d])?.output),
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
            other => Err(unlisted("ConvTranspose", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        let count = |dims: &[usize]| dims.iter().fold(1u64, |product, &dim| product.saturating_mul(dim as u64));
        let per_pixel = inputs.get(1).and_then(|w| w.get(1..)).map_or(0, count);
        inputs.first().map_or(0, |x| count(x)).saturating_mul(per_pixel).saturating_mul(2)
    }
}

/// One spatial dimension of a transposed convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransposedDim {
    /// Size of the input.
    pub input: usize,
    /// Taps of the kernel.
    pub kernel: usize,
    /// Distance that a step of the input has in the output.
    pub stride: usize,
    /// Distance of the kernel's taps.
    pub dilation: usize,
    /// What is cut from the beginning of the output.
    pub pad_begin: usize,
    /// Size of the output.
    pub output: usize,
}

impl TransposedDim {
    /// The output index that a pixel reaches through a tap; `None` where that is cut off.
    pub fn at(&self, pixel: usize, tap: usize) -> Option<usize> {
        let reach = pixel.checked_mul(self.stride)?.checked_add(tap.checked_mul(self.dilation)?)?;
        reach.checked_sub(self.pad_begin).filter(|&at| at < self.output)
    }
}

/// A transposed convolution with everything resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvTransposeGeometry {
    /// Samples, each convolved by itself.
    pub batch: usize,
    /// Groups, whose channels do not mix.
    pub group: usize,
    /// Channels of the input, all groups together.
    pub in_channels: usize,
    /// Filters, all groups together.
    pub out_channels: usize,
    /// Each spatial dimension.
    pub spatial: SmallVec<[TransposedDim; 3]>,
}

impl ConvTransposeGeometry {
    /// Channels of the input in one group.
    pub fn group_in_channels(&self) -> usize {
        self.in_channels / self.group
    }

    /// Filters in one group.
    pub fn group_out_channels(&self) -> usize {
        self.out_channels / self.group
    }

    /// Taps of the kernel.
    pub fn taps(&self) -> usize {
        self.spatial.iter().map(|dim| dim.kernel).product()
    }

    /// Shape of the output.
    pub fn out_shape(&self) -> Shape {
        [self.batch, self.out_channels].into_iter().chain(self.spatial.iter().map(|dim| dim.output)).collect()
    }
}

impl ConvTranspose {
    /// The transposed convolution of an input of shape `x` with weights of shape `w`.
    ///
    /// **Errors**: ranks, channels or attributes that do not fit each other; pads that cut off more than there is; sizes that
    /// overflow.
    pub fn geometry(&self, x: &[usize], w: &[usize]) -> Result<ConvTransposeGeometry, OpError> {
        let out_channels = self.check(x.len(), x.get(1).copied(), w)?;
        let spatial = x[2..].iter().zip(&w[2..]).enumerate();
        let spatial = spatial.map(|(d, (&size, &kernel))| self.along(d, size, kernel)).collect::<Result<_, _>>()?;
        let geometry =
            ConvTransposeGeometry { batch: x[0], group: self.group as usize, in_channels: x[1], out_channels, spatial };
        product(&geometry.out_shape())?;
        Ok(geometry)
    }

    /// Spatial dimension `d` of an input of that size.
    fn along(&self, d: usize, input: usize, kernel: usize) -> Result<TransposedDim, OpError> {
        let overflow = || OpError::shape("ConvTranspose's sizes overflow");
        let of = |list: &[i64], i: usize, default: usize| match list.get(i) {
            Some(&value) => usize::try_from(value).map_err(|_| overflow()),
            None => Ok(default),
        };
        let (stride, dilation) = (of(&self.strides, d, 1)?, of(&self.dilations, d, 1)?);
        let reach = input.saturating_sub(1).checked_mul(stride);
        let span = (kernel - 1).checked_mul(dilation).and_then(|span| span.checked_add(1));
        // What pixels reach, with the padding of the output; nothing without a pixel.
        let full = if input == 0 { Some(0) } else { reach.zip(span).and_then(|(reach, span)| reach.checked_add(span)) };
        let full = full.and_then(|full| full.checked_add(of(&self.output_padding, d, 0).ok()?)).ok_or_else(overflow)?;
        let is_same = matches!(self.auto_pad, AutoPad::SameUpper | AutoPad::SameLower);
        let wanted = match self.output_shape.get(d) {
            Some(_) => Some(of(&self.output_shape, d, 0)?),
            None if is_same => Some(input.checked_mul(stride).ok_or_else(overflow)?),
            None => None,
        };
        let (pad_begin, output) = match wanted {
            Some(output) => {
                let cut = full.saturating_sub(output);
                (if self.auto_pad == AutoPad::SameUpper { cut / 2 } else { cut - cut / 2 }, output)
            }
            None if self.auto_pad == AutoPad::Valid => (0, full),
            None => {
                let (begin, end) = (of(&self.pads, d, 0)?, of(&self.pads, d + self.pads.len() / 2, 0)?);
                let cut = begin.checked_add(end).ok_or_else(overflow)?;
                let output = full.checked_sub(cut).ok_or_else(|| {
                    OpError::shape(format!("pads {:?} cut off more than the {full} elements that there are", self.pads))
                })?;
                (begin, output)
            }
        };
        Ok(TransposedDim { input, kernel, stride, dilation, pad_begin, output })
    }

    /// Checks attributes and weights; gives the number of filters, all groups together.
    fn check(&self, rank: usize, channels: Option<usize>, w: &[usize]) -> Result<usize, OpError> {
        let weights = Shape::from(w);
        if rank < 3 || w.len() != rank {
            return Err(OpError::shape(format!(
                "ConvTranspose takes an input of at least 3 dimensions and weights of as many; got {rank}, and weights {weights}"
            )));
        }
        let group = usize::try_from(self.group).ok().filter(|&group| group > 0);
        let group = group.ok_or_else(|| OpError::value(format!("group is {}, expected at least 1", self.group)))?;
        if channels.is_some_and(|channels| channels != w[0]) || !w[0].is_multiple_of(group) {
            return Err(OpError::shape(format!(
                "an input of {} channels does not fit weights {weights} in {group} groups",
                channels.map_or("?".to_owned(), |channels| channels.to_string())
            )));
        }
        if w[2..].contains(&0) {
            return Err(OpError::shape(format!("weights {weights} have a kernel without taps")));
        }
        let declared = self.kernel_shape.iter().map(|&size| usize::try_from(size).ok());
        if !self.kernel_shape.is_empty() && !declared.eq(w[2..].iter().map(|&size| Some(size))) {
            return Err(OpError::shape(format!("kernel_shape {:?} does not fit weights {weights}", self.kernel_shape)));
        }
        let n = rank - 2;
        for (what, values, n_expected, least) in [
            ("strides", &self.strides, n, 1),
            ("dilations", &self.dilations, n, 1),
            ("output_padding", &self.output_padding, n, 0),
            ("output_shape", &self.output_shape, n, 0),
            ("pads", &self.pads, 2 * n, 0),
        ] {
            if !values.is_empty() && values.len() != n_expected {
                let got = values.len();
                return Err(OpError::value(format!("{what} has {got} elements, expected {n_expected}")));
            }
            if values.iter().any(|&value| value < least) {
                return Err(OpError::value(format!("{what} {values:?} must be at least {least} everywhere")));
            }
        }
        w[1].checked_mul(group).ok_or_else(|| OpError::shape("ConvTranspose's sizes overflow"))
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
        let positions: usize = geometry.spatial.iter().map(|dim| dim.output).product();
        let mut sums = vec![T::Math::ZERO; positions];
        for (i, to) in output.chunks_exact_mut(positions).enumerate() {
            let (batch, filter) = (i / geometry.out_channels, i % geometry.out_channels);
            sums.fill(T::Math::ZERO);
            geometry.add_filter(&x, &w, batch, filter, &mut sums);
            for (to, sum) in to.iter_mut().zip(&sums) {
                *to = T::narrow(bias.as_ref().map_or(*sum, |bias| sum.plus(bias[filter])));
            }
        }
        Ok(())
    }
}

impl ConvTransposeGeometry {
    /// Adds what the pixels of one image give to one filter's output plane.
    fn add_filter<M: Math>(&self, x: &[M], w: &[M], batch: usize, filter: usize, sums: &mut [M]) {
        let (channels, filters, taps) = (self.group_in_channels(), self.group_out_channels(), self.taps());
        let plane: usize = self.spatial.iter().map(|dim| dim.input).product();
        let first_channel = filter / filters * channels;
        let x = &x[(batch * self.in_channels + first_channel) * plane..][..channels * plane];
        let weight =
            |channel: usize, tap: usize| w[((first_channel + channel) * filters + filter % filters) * taps + tap];
        let mut pixel: SmallVec<[usize; 3]> = SmallVec::from_elem(0, self.spatial.len());
        for at in 0..plane {
            let mut tap_index: SmallVec<[usize; 3]> = SmallVec::from_elem(0, self.spatial.len());
            for tap in 0..taps {
                let places = self.spatial.iter().zip(&pixel).zip(&tap_index);
                let mut places = places.map(|((dim, &pixel), &tap)| Some((dim.output, dim.at(pixel, tap)?)));
                let to = places.try_fold(0, |to, place| place.map(|(size, at)| to * size + at));
                advance(&mut tap_index, |d| self.spatial[d].kernel);
                if let Some(to) = to {
                    let products = (0..channels)
                        .fold(M::ZERO, |sum, channel| x[channel * plane + at].fused(weight(channel, tap), sum));
                    sums[to] = sums[to].plus(products);
                }
            }
            advance(&mut pixel, |d| self.spatial[d].input);
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
    let case = |name, op: ConvTranspose, inputs: &[Tensor], y: Tensor| Case {
        name,
        op: op.into(),
        inputs: inputs.iter().cloned().map(Some).collect(),
        outputs: vec![y],
    };
    let t = case_tensor::<f32>;
    let plain = ConvTranspose::default;
    let x1 = t(&[1, 1, 3], &[1., 2., 3.]);
    let w1 = t(&[1, 1, 3], &[1., 10., 100.]);
    let x2 = t(&[1, 1, 2, 2], &[1., 2., 3., 4.]);
    let w2 = t(&[1, 1, 2, 2], &[1., 10., 100., 1000.]);
    let halves = |dims: &[usize], values: &[f32]| {
        let values: Vec<f16> = values.iter().map(|&value| f16::from_f32(value)).collect();
        case_tensor(dims, &values)
    };
    let strided = || ConvTranspose { strides: vec![2], ..plain() };
    vec![
        case("1-D", plain(), &[x1.clone(), w1.clone()], t(&[1, 1, 5], &[1., 12., 123., 230., 300.])),
        case("strides", strided(), &[x1.clone(), w1.clone()], t(&[1, 1, 7], &[1., 10., 102., 20., 203., 30., 300.])),
        case(
            "pads and output padding",
            ConvTranspose { pads: vec![1, 2], output_padding: vec![1], ..strided() },
            &[x1.clone(), w1.clone()],
            t(&[1, 1, 5], &[10., 102., 20., 203., 30.]),
        ),
        case(
            "dilations",
            ConvTranspose { dilations: vec![2], ..plain() },
            &[x1.clone(), w1.clone()],
            t(&[1, 1, 7], &[1., 2., 13., 20., 130., 200., 300.]),
        ),
        case(
            "same, the odd element cut from the end",
            ConvTranspose { auto_pad: AutoPad::SameUpper, ..strided() },
            &[x1.clone(), w1.clone()],
            t(&[1, 1, 6], &[1., 10., 102., 20., 203., 30.]),
        ),
        case(
            "same, the odd element cut from the beginning",
            ConvTranspose { auto_pad: AutoPad::SameLower, ..strided() },
            &[x1.clone(), w1.clone()],
            t(&[1, 1, 6], &[10., 102., 20., 203., 30., 300.]),
        ),
        case(
            "an output shape beyond what pixels reach",
            ConvTranspose { output_shape: vec![9], ..strided() },
            &[x1.clone(), w1.clone(), t(&[1], &[0.5])],
            t(&[1, 1, 9], &[1.5, 10.5, 102.5, 20.5, 203.5, 30.5, 300.5, 0.5, 0.5]),
        ),
        case(
            "an output shape that cuts",
            ConvTranspose { output_shape: vec![4], ..strided() },
            &[x1, w1.clone()],
            t(&[1, 1, 4], &[102., 20., 203., 30.]),
        ),
        case(
            "2-D, kernels side by side",
            ConvTranspose { strides: vec![2, 2], auto_pad: AutoPad::Valid, ..plain() },
            &[x2.clone(), w2.clone()],
            t(&[1, 1, 4, 4], &[1., 10., 2., 20., 100., 1000., 200., 2000., 3., 30., 4., 40., 300., 3000., 400., 4000.]),
        ),
        case(
            "2-D, kernels that overlap",
            plain(),
            &[x2, w2],
            t(&[1, 1, 3, 3], &[1., 12., 20., 103., 1234., 2040., 300., 3400., 4000.]),
        ),
        case(
            "groups and filters",
            ConvTranspose { group: 2, ..plain() },
            &[t(&[1, 2, 1], &[1., 2.]), t(&[2, 2, 1], &[3., 4., 5., 6.])],
            t(&[1, 4, 1], &[3., 4., 10., 12.]),
        ),
        case(
            "channels",
            plain(),
            &[t(&[1, 2, 2], &[1., 2., 3., 4.]), t(&[2, 1, 1], &[1., 10.])],
            t(&[1, 1, 2], &[31., 42.]),
        ),
        case(
            "3-D",
            plain(),
            &[t(&[1, 1, 1, 1, 2], &[1., 2.]), t(&[1, 1, 2, 1, 1], &[1., 10.])],
            t(&[1, 1, 2, 1, 2], &[1., 2., 10., 20.]),
        ),
        case("no image", plain(), &[t(&[0, 1, 3], &[]), w1], t(&[0, 1, 5], &[])),
        case(
            "f16 rounds once",
            plain(),
            &[halves(&[1, 3, 1], &[2048., 1., 1.]), halves(&[3, 1, 1], &[1., 1., 1.])],
            halves(&[1, 1, 1], &[2050.]),
        ),
    ]
}
