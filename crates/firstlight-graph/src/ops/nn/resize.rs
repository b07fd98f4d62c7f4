//! `Resize`.

use super::arith::Real;
use super::resampling::{AxisMap, Coordinates, Filter, NearestMode, sample_each};
use super::window::advance;
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{bools, tensor};
use crate::ops::elementwise::unlisted;
use crate::ops::layout::{MoveWords, check_output, optional_ints, product};
use crate::ops::types::{BYTE_SIZED, NUMERIC};
use crate::{InferCtx, OpError, OutInfo, normalise_axis};
use firstlight_tensor::{DType, Dim, Element, Shape, SymShape, Tensor, TensorView, bf16, f16};
use smallvec::{SmallVec, smallvec};

/// A tensor sampled to other sizes, axis by axis.
///
/// The axes are sampled one after the other, in ascending order; those whose output is their input are passed over. An
/// element is the sum of its neighbours times their weights, from the first neighbour on, every product and every sum
/// rounded: in f32 for floats of 16 and 32 bits, with weights rounded to f32, and in f64 for other types. It is rounded
/// to its own type at the end, integers to the nearest, the even one of two, and at their limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Resize {
    /// True when linear and cubic filters widen where the output is smaller.
    pub antialias: bool,
    /// Axes that scales, sizes and regions are for; all when empty.
    pub axes: Vec<i64>,
    /// Where on the input an element of the output lies.
    pub coordinates: Coordinates,
    /// Whether neighbours outside the input have no weight, rather than the value of the nearest element.
    pub exclude_outside: bool,
    /// The value of elements that lie outside, for `Coordinates::TfCropAndResize`.
    pub extrapolation_value: f32,
    /// What an element is made of.
    pub filter: Filter,
    /// How sizes are meant.
    pub policy: AspectRatioPolicy,
}

/// How the wanted sizes of [`Resize`] are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AspectRatioPolicy {
    /// As they are.
    #[default]
    Stretch,
    /// As limits: one scale for all axes, the largest that keeps to them.
    NotLarger,
    /// As the least: one scale for all axes, the smallest that reaches them.
    NotSmaller,
}

impl Default for Resize {
    fn default() -> Resize {
        Resize {
            antialias: false,
            axes: Vec::new(),
            coordinates: Coordinates::HalfPixel,
            exclude_outside: false,
            extrapolation_value: 0.0,
            filter: Filter::Nearest(NearestMode::RoundPreferFloor),
            policy: AspectRatioPolicy::Stretch,
        }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Resize",
    doc: "A tensor sampled to other sizes: by `scales`, whose products with the sizes are rounded down, or to `sizes`. \
          `roi` holds the begins and then the ends of the region that tf_crop_and_resize samples.",
    attributes: &[
        AttrDoc { name: "antialias", doc: "linear and cubic filters widen where the output is smaller" },
        AttrDoc { name: "axes", doc: "axes that scales, sizes and roi are for; all when empty" },
        AttrDoc {
            name: "coordinate_transformation_mode",
            doc: "where on the input an element lies: half_pixel, half_pixel_symmetric, pytorch_half_pixel, \
                  align_corners, asymmetric, tf_half_pixel_for_nn or tf_crop_and_resize",
        },
        AttrDoc { name: "cubic_coeff_a", doc: "free parameter of the cubic curve" },
        AttrDoc {
            name: "exclude_outside",
            doc: "neighbours outside the input have no weight, rather than the value of the nearest element; nearest \
                  has one neighbour, inside",
        },
        AttrDoc { name: "extrapolation_value", doc: "value of elements that lie outside, for tf_crop_and_resize" },
        AttrDoc {
            name: "keep_aspect_ratio_policy",
            doc: "sizes are taken as they are (stretch), or one scale keeps all below (not_larger) or above them \
                  (not_smaller)",
        },
        AttrDoc {
            name: "mode",
            doc: "what an element is made of: nearest, linear or cubic; types that are no numbers can only be moved",
        },
        AttrDoc {
            name: "nearest_mode",
            doc: "which neighbour is the nearest: round_prefer_floor, round_prefer_ceil, floor or ceil",
        },
    ],
    inputs: &[
        Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "roi", ty: TypeRef::Fixed(DType::F64), arity: Arity::Optional },
        Param { name: "scales", ty: TypeRef::Fixed(DType::F32), arity: Arity::Optional },
        Param { name: "sizes", ty: TypeRef::Fixed(DType::I64), arity: Arity::Optional },
    ],
    outputs: &[Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Resize {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        let text = |name: &str| AttrValue::Text(name.to_owned());
        let mut attributes = vec![
            ("antialias", AttrValue::Bool(self.antialias)),
            ("axes", AttrValue::Ints(self.axes.clone())),
            ("coordinate_transformation_mode", text(self.coordinates.name())),
            ("exclude_outside", AttrValue::Bool(self.exclude_outside)),
            ("extrapolation_value", AttrValue::Float(self.extrapolation_value)),
            ("keep_aspect_ratio_policy", text(self.policy.name())),
        ];
        match self.filter {
            Filter::Nearest(mode) => {
                attributes.extend([("mode", text("nearest")), ("nearest_mode", text(mode.name()))]);
            }
            Filter::Linear => attributes.push(("mode", text("linear"))),
            Filter::Cubic(a) => {
                attributes.extend([("mode", text("cubic")), ("cubic_coeff_a", AttrValue::Float(a as f32))]);
            }
        }
        attributes
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (dtype, dims) = (ctx.dtype(0)?, ctx.dims(0)?);
        if !self.is_nearest() && !NUMERIC.contains(&dtype) {
            return Err(OpError::dtype(format!(
                "elements of {dtype} have no mean: they can be resized by mode nearest"
            )));
        }
        if self.is_nearest() && self.antialias {
            return Err(OpError::value("antialias widens linear and cubic filters, and the mode is nearest"));
        }
        let given =
            |i: usize| ctx.has(i) && ctx.dims(i).is_ok_and(|dims| !dims.iter().any(|dim| dim.known() == Some(0)));
        let scales = if given(2) { Some(ctx.value(2)?.values::<f32>()?) } else { None };
        let sizes = if given(3) { Some(ctx.ints(3)?) } else { None };
        let (scales, sizes) = (scales.as_deref(), sizes.as_deref());
        let wanted = self.wanted(dims.rank(), scales, sizes)?;
        let known = dims.known();
        let maps = known.as_ref().map(|shape| self.maps(shape, None, scales, sizes)).transpose()?;
        let out = |(axis, dim): (usize, &Dim)| match (&maps, wanted[axis]) {
            (Some(maps), _) => Dim::Known(maps[axis].output),
            (None, Wanted::Same) => dim.clone(),
            (None, Wanted::Size(size)) if self.policy == AspectRatioPolicy::Stretch => Dim::Known(size),
            _ => Dim::Unknown,
        };
        Ok(OutInfo::new(dtype, dims.iter().enumerate().map(out).collect::<SymShape>()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        if self.is_nearest() {
            return self.move_elements(ctx);
        }
        match ctx.input(0)?.dtype() {
            DType::F32 => self.compute(ctx, f32::from, f32::from),
            DType::F64 => self.compute(ctx, f64::from, f64::from),
            DType::F16 => self.compute(ctx, f16::to_f32, f16::from_f32),
            DType::BF16 => self.compute(ctx, bf16::to_f32, bf16::from_f32),
            DType::I64 => self.compute(ctx, |x: i64| x as f64, |x| x.round_ties_even() as i64),
            DType::I32 => self.compute::<_, f64>(ctx, i32::into, |x| x.round_ties_even() as i32),
            DType::I16 => self.compute::<_, f64>(ctx, i16::into, |x| x.round_ties_even() as i16),
            DType::I8 => self.compute::<_, f64>(ctx, i8::into, |x| x.round_ties_even() as i8),
            DType::U64 => self.compute(ctx, |x: u64| x as f64, |x| x.round_ties_even() as u64),
            DType::U32 => self.compute::<_, f64>(ctx, u32::into, |x| x.round_ties_even() as u32),
            DType::U16 => self.compute::<_, f64>(ctx, u16::into, |x| x.round_ties_even() as u16),
            DType::U8 => self.compute::<_, f64>(ctx, u8::into, |x| x.round_ties_even() as u8),
            other => Err(unlisted("Resize", other)),
        }
    }

    fn n_operations(&self, _inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        let per_elem = match self.filter {
            Filter::Nearest(_) => 0,
            Filter::Linear => 8,
            Filter::Cubic(_) => 16,
        };
        outputs.first().map_or(0, |y| y.iter().fold(per_elem, |n, &dim| n.saturating_mul(dim as u64)))
    }
}

/// What is asked of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wanted {
    Same,
    Scale(f64),
    Size(usize),
}

/// How every axis is sampled.
pub type AxisMaps = SmallVec<[AxisMap; 6]>;

impl Resize {
    /// Whether elements are only moved.
    pub fn is_nearest(&self) -> bool {
        matches!(self.filter, Filter::Nearest(_))
    }

    /// How every axis of an input of shape `x` is sampled, for values of `roi`, `scales` and `sizes` where they hold
    /// any. Without a region all of the input is meant.
    ///
    /// **Errors**: not one of scales and sizes; counts and axes that do not fit; a scale that is not above 0; a negative
    /// size; elements that are wanted of an axis that has none.
    pub fn maps(
        &self,
        x: &[usize],
        region: Option<&[f64]>,
        scales: Option<&[f32]>,
        sizes: Option<&[i64]>,
    ) -> Result<AxisMaps, OpError> {
        let mut wanted = self.wanted(x.len(), scales, sizes)?;
        self.keep_aspect_ratio(x, &mut wanted);
        let mut maps = AxisMaps::new();
        for (&input, &wanted) in x.iter().zip(&wanted) {
            let (scale, output) = match wanted {
                Wanted::Same => (1.0, input),
                Wanted::Size(size) => (size as f64 / input as f64, size),
                Wanted::Scale(scale) => {
                    let exact = input as f64 * scale;
                    // One scale for all axes rounds sizes to the nearest, scales as given round them down.
                    let rounded = if sizes.is_some() { (exact + 0.5).floor() } else { exact.floor() };
                    if rounded >= isize::MAX as f64 {
                        return Err(OpError::value(format!("a size of {input} times {scale} is too large")));
                    }
                    (scale, rounded as usize)
                }
            };
            if input == 0 && output > 0 {
                return Err(OpError::value(format!("{output} elements are wanted of an axis that has none")));
            }
            maps.push(AxisMap {
                input,
                output,
                scale: if input == 0 { 1.0 } else { scale },
                region: [0.0, 1.0],
                coordinates: self.coordinates,
                filter: self.filter,
                antialias: self.antialias,
                exclude_outside: self.exclude_outside,
            });
        }
        if let Some(region) = region.filter(|_| self.coordinates == Coordinates::TfCropAndResize) {
            let axes = self.normal_axes(x.len())?;
            if region.len() != 2 * axes.len() {
                return Err(OpError::value(format!(
                    "roi has {} elements, expected a begin and an end for each of {} axes",
                    region.len(),
                    axes.len()
                )));
            }
            for (i, &axis) in axes.iter().enumerate() {
                maps[axis].region = [region[i], region[axes.len() + i]];
            }
        }
        Ok(maps)
    }

    fn normal_axes(&self, rank: usize) -> Result<SmallVec<[usize; 6]>, OpError> {
        if self.axes.is_empty() {
            return Ok((0..rank).collect());
        }
        let mut axes: SmallVec<[usize; 6]> = SmallVec::new();
        for &axis in &self.axes {
            let normal = normalise_axis(axis, rank)?;
            if axes.contains(&normal) {
                return Err(OpError::value(format!("axis {axis} comes twice")));
            }
            axes.push(normal);
        }
        Ok(axes)
    }

    fn wanted(
        &self,
        rank: usize,
        scales: Option<&[f32]>,
        sizes: Option<&[i64]>,
    ) -> Result<SmallVec<[Wanted; 6]>, OpError> {
        let axes = self.normal_axes(rank)?;
        let mut wanted: SmallVec<[Wanted; 6]> = smallvec![Wanted::Same; rank];
        let (what, n) = match (scales, sizes) {
            (Some(scales), None) => ("scales", scales.len()),
            (None, Some(sizes)) => ("sizes", sizes.len()),
            (Some(_), Some(_)) => return Err(OpError::value("scales and sizes are both given")),
            (None, None) => return Err(OpError::value("neither scales nor sizes are given")),
        };
        if n != axes.len() {
            return Err(OpError::value(format!(
                "{what} has {n} elements, expected one for each of {} axes",
                axes.len()
            )));
        }
        for (i, &axis) in axes.iter().enumerate() {
            wanted[axis] = match (scales, sizes) {
                (Some(scales), _) if scales[i] > 0.0 && scales[i].is_finite() => Wanted::Scale(scales[i].into()),
                (Some(scales), _) => {
                    return Err(OpError::value(format!("scale {} of axis {axis} is not above 0", scales[i])));
                }
                (None, sizes) => {
                    let size = sizes.map_or(0, |sizes| sizes[i]);
                    let negative = |_| OpError::value(format!("size {size} of axis {axis} is negative"));
                    Wanted::Size(usize::try_from(size).map_err(negative)?)
                }
            };
        }
        Ok(wanted)
    }

    /// Makes sizes one scale, where the policy says so.
    fn keep_aspect_ratio(&self, x: &[usize], wanted: &mut [Wanted]) {
        let scales = wanted.iter().zip(x).filter_map(|(wanted, &input)| match wanted {
            Wanted::Size(size) if input > 0 => Some(*size as f64 / input as f64),
            _ => None,
        });
        let scale = match self.policy {
            AspectRatioPolicy::Stretch => None,
            AspectRatioPolicy::NotLarger => scales.reduce(f64::min),
            AspectRatioPolicy::NotSmaller => scales.reduce(f64::max),
        };
        let Some(scale) = scale else { return };
        for wanted in wanted.iter_mut().filter(|wanted| matches!(wanted, Wanted::Size(_))) {
            *wanted = Wanted::Scale(scale);
        }
    }

    /// How the axes of a context's input are sampled.
    fn maps_of(&self, ctx: &mut RefCtx<'_>) -> Result<AxisMaps, OpError> {
        let given = |view: &TensorView<'_>| view.n_elems() > 0;
        let region = ctx.optional(1).filter(given);
        let region = region.as_ref().map(|view| view.values::<f64>()).transpose()?;
        let scales = ctx.optional(2).filter(given);
        let scales = scales.as_ref().map(|view| view.values::<f32>()).transpose()?;
        let sizes = optional_ints(ctx, 3)?.filter(|sizes| !sizes.is_empty());
        let x = ctx.input(0)?;
        let maps = self.maps(x.shape(), region.as_deref(), scales.as_deref(), sizes.as_deref())?;
        let shape: Shape = maps.iter().map(|map| map.output).collect();
        product(&shape)?;
        check_output(ctx, 0, &shape)?;
        Ok(maps)
    }

    fn compute<T: Element, M: Real>(
        &self,
        ctx: &mut RefCtx<'_>,
        widen: fn(T) -> M,
        narrow: fn(M) -> T,
    ) -> Result<(), OpError> {
        let maps = self.maps_of(ctx)?;
        let x = ctx.input(0)?;
        let values: Vec<M> = x.values::<T>()?.iter().map(|&value| widen(value)).collect();
        let outside = M::from_f64(self.extrapolation_value.into());
        let out = ctx.output(0)?.values_mut::<T>()?.iter_mut();
        sample_each(&maps, &values, out, |to, value| *to = narrow(value.unwrap_or(outside)));
        Ok(())
    }
}

impl MoveWords for Resize {
    fn move_words<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let maps = self.maps_of(ctx)?;
        let x = ctx.input(0)?;
        let outside: W = outside(x.dtype(), self.extrapolation_value)?;
        let (words, strides) = (x.words::<W>()?, x.shape().strides());
        let mut at: SmallVec<[usize; 6]> = smallvec![0; maps.len()];
        for to in ctx.output(0)?.words_mut::<W>()? {
            let from = maps.iter().zip(&strides).zip(&at).try_fold(0, |from, ((map, &stride), &y)| {
                let index = if map.is_identity() { Some(y) } else { map.nearest(y) };
                Some(from + index? * stride)
            });
            *to = from.map_or(outside, |from| words[from]);
            advance(&mut at, |d| maps[d].output);
        }
        Ok(())
    }
}

/// A number as a word of an element type.
fn outside<W: bytemuck::Pod>(dtype: DType, value: f32) -> Result<W, OpError> {
    fn bytes<T: Element>(value: T) -> SmallVec<[u8; 16]> {
        SmallVec::from_slice(bytemuck::bytes_of(&value))
    }
    let whole = value.round_ties_even();
    let bytes = match dtype {
        DType::F32 => bytes(value),
        DType::F64 => bytes(f64::from(value)),
        DType::F16 => bytes(f16::from_f32(value)),
        DType::BF16 => bytes(bf16::from_f32(value)),
        DType::I64 => bytes(whole as i64),
        DType::I32 => bytes(whole as i32),
        DType::I16 => bytes(whole as i16),
        DType::I8 => bytes(whole as i8),
        DType::U64 => bytes(whole as u64),
        DType::U32 => bytes(whole as u32),
        DType::U16 => bytes(whole as u16),
        DType::U8 => bytes(whole as u8),
        DType::Bool => smallvec![u8::from(value != 0.0)],
        _ if value == 0.0 => return Ok(W::zeroed()),
        other => {
            return Err(OpError::unsupported(format!("extrapolation_value {value} is not 0 for elements of {other}")));
        }
    };
    bytemuck::try_pod_read_unaligned(&bytes).map_err(|_| unlisted("Resize", dtype))
}

impl AspectRatioPolicy {
    /// ONNX's name of the policy.
    pub fn name(self) -> &'static str {
        match self {
            AspectRatioPolicy::Stretch => "stretch",
            AspectRatioPolicy::NotLarger => "not_larger",
            AspectRatioPolicy::NotSmaller => "not_smaller",
        }
    }

    /// The policy of that name.
    pub fn from_name(name: &str) -> Option<AspectRatioPolicy> {
        let all = [AspectRatioPolicy::Stretch, AspectRatioPolicy::NotLarger, AspectRatioPolicy::NotSmaller];
        all.into_iter().find(|policy| policy.name() == name)
    }
}

fn cases() -> Vec<Case> {
    let list = |values: &[f32]| tensor(&[values.len()], values);
    let grid = |rows: usize, values: &[f32]| tensor(&[rows, values.len() / rows], values);
    let four = || list(&[1., 2., 3., 4.]);
    let by = |scales: &[f32]| [None, Some(list(scales)), None];
    let to = |sizes: &[i64]| [None, None, Some(tensor(&[sizes.len()], sizes))];
    let crop = |sizes: &[i64]| [Some(tensor(&[2], &[0.4f64, 1.2])), None, Some(tensor(&[1], sizes))];
    let case = |name, op: Resize, x: Tensor, rest: [Option<Tensor>; 3], y: Tensor| Case {
        name,
        op: op.into(),
        inputs: [Some(x)].into_iter().chain(rest).collect(),
        outputs: vec![y],
    };
    let nearest = |mode| Resize { filter: Filter::Nearest(mode), ..Resize::default() };
    let asymmetric = |op| Resize { coordinates: Coordinates::Asymmetric, ..op };
    let linear = || Resize { filter: Filter::Linear, ..Resize::default() };
    let cubic = || Resize { filter: Filter::Cubic(-0.75), ..Resize::default() };
    let kept = |policy| Resize { policy, ..Resize::default() };
    let cropped = |op| Resize { coordinates: Coordinates::TfCropAndResize, extrapolation_value: 10.0, ..op };
    let halves =
        |values: &[f32]| tensor(&[values.len()], &values.iter().map(|&v| f16::from_f32(v)).collect::<Vec<_>>());
    let six = || grid(2, &[0., 1., 2., 3., 4., 5.]);
    vec![
        case("nearest", Resize::default(), four(), by(&[2.5]), list(&[1., 1., 1., 2., 2., 3., 3., 3., 4., 4.])),
        case("nearest, floor", asymmetric(nearest(NearestMode::Floor)), four(), by(&[0.75]), list(&[1., 2., 3.])),
        case("nearest, ceil", asymmetric(nearest(NearestMode::Ceil)), four(), by(&[0.75]), list(&[1., 3., 4.])),
        case("nearest, ties upwards", nearest(NearestMode::RoundPreferCeil), four(), by(&[0.5]), list(&[2., 4.])),
        case(
            "nearest, whole scales",
            asymmetric(nearest(NearestMode::Floor)),
            grid(2, &[1., 2., 3., 4.]),
            by(&[2., 2.]),
            grid(4, &[1., 1., 2., 2., 1., 1., 2., 2., 3., 3., 4., 4., 3., 3., 4., 4.]),
        ),
        case(
            "tf_half_pixel_for_nn",
            Resize { coordinates: Coordinates::TfHalfPixelForNn, ..nearest(NearestMode::Floor) },
            four(),
            by(&[0.5]),
            list(&[2., 4.]),
        ),
        case(
            "linear",
            linear(),
            grid(2, &[1., 2., 3., 4.]),
            by(&[2., 2.]),
            grid(4, &[1., 1.25, 1.75, 2., 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3., 3.25, 3.75, 4.]),
        ),
        case(
            "align_corners",
            Resize { coordinates: Coordinates::AlignCorners, ..linear() },
            grid(2, &[1., 2., 3., 4.]),
            to(&[3, 2]),
            grid(3, &[1., 2., 2., 3., 3., 4.]),
        ),
        case(
            "half_pixel_symmetric",
            Resize { coordinates: Coordinates::HalfPixelSymmetric, ..linear() },
            four(),
            by(&[0.6]),
            list(&[1.666_666_7, 3.333_333_3]),
        ),
        case(
            "pytorch_half_pixel to one element",
            Resize { coordinates: Coordinates::PytorchHalfPixel, ..linear() },
            four(),
            to(&[1]),
            list(&[1.]),
        ),
        case(
            "cubic",
            cubic(),
            four(),
            by(&[2.]),
            list(&[
                0.894_531_25,
                1.191_406_3,
                1.667_968_8,
                2.296_875,
                2.703_125,
                3.332_031_3,
                3.808_593_8,
                4.105_468_8,
            ]),
        ),
        case(
            "cubic, nothing outside",
            Resize { filter: Filter::Cubic(-0.5), exclude_outside: true, ..Resize::default() },
            four(),
            by(&[2.]),
            list(&[0.911_764_7, 1.167_883_2, 1.709_923_6, 2.25, 2.75, 3.290_076_3, 3.832_116_8, 4.088_235_4]),
        ),
        case("linear, antialias", Resize { antialias: true, ..linear() }, four(), by(&[0.5]), list(&[1.625, 3.375])),
        case(
            "cubic, antialias, nothing outside",
            Resize { antialias: true, exclude_outside: true, ..cubic() },
            four(),
            by(&[0.5]),
            list(&[1.567_346_9, 3.432_653]),
        ),
        case("crop", cropped(linear()), four(), crop(&[3]), list(&[2.2, 3.4, 10.])),
        case("crop, nearest", cropped(Resize::default()), four(), crop(&[3]), list(&[2., 3., 10.])),
        case("crop nothing", cropped(linear()), four(), to(&[4]), four()),
        case(
            "not larger",
            kept(AspectRatioPolicy::NotLarger),
            six(),
            to(&[4, 4]),
            grid(3, &[0., 1., 1., 2., 3., 4., 4., 5., 3., 4., 4., 5.]),
        ),
        case(
            "not smaller",
            kept(AspectRatioPolicy::NotSmaller),
            six(),
            to(&[3, 4]),
            grid(3, &[0., 0., 1., 2., 2., 0., 0., 1., 2., 2., 3., 3., 4., 5., 5.]),
        ),
        case(
            "axes",
            Resize { axes: vec![-1], ..Resize::default() },
            grid(2, &[1., 2., 3., 4.]),
            by(&[2.]),
            grid(2, &[1., 1., 2., 2., 3., 3., 4., 4.]),
        ),
        case(
            "planes",
            linear(),
            tensor(&[1, 2, 1, 2], &[1., 2., 3., 5.]),
            by(&[1., 1., 2., 1.5]),
            tensor(&[1, 2, 2, 3], &[1., 1.5, 2., 1., 1.5, 2., 3., 4., 5., 3., 4., 5.]),
        ),
        case(
            "the same",
            cubic(),
            list(&[f32::NAN, f32::INFINITY, 1.]),
            by(&[1.]),
            list(&[f32::NAN, f32::INFINITY, 1.]),
        ),
        case("to nothing", linear(), four(), to(&[0]), list(&[])),
        case("nothing", linear(), list(&[]), by(&[2.]), list(&[])),
        case(
            "u8 ends at its limits",
            cubic(),
            tensor(&[3], &[0u8, 10, 255]),
            by(&[1.5]),
            tensor(&[4], &[0u8, 0, 46, 220]),
        ),
        case(
            "f64",
            asymmetric(linear()),
            tensor(&[4], &[1f64, 2., 3., 4.]),
            by(&[2.]),
            tensor(&[8], &[1f64, 1.5, 2., 2.5, 3., 3.5, 4., 4.]),
        ),
        case("f16", linear(), halves(&[1., 2., 3.]), to(&[2]), halves(&[1.25, 2.75])),
        case(
            "bool",
            Resize::default(),
            bools(&[2], &[true, false]),
            by(&[2.]),
            bools(&[4], &[true, true, false, false]),
        ),
    ]
}
