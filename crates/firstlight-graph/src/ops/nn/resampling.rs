//! How one axis is sampled: which elements of the input an element of the output is made of, and their weights.

use super::arith::Real;
use super::window::advance;
use smallvec::{SmallVec, smallvec};

/// Where on the input's axis an element of the output lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Coordinates {
    /// Elements are cells, and both axes begin and end with a cell's border.
    #[default]
    HalfPixel,
    /// As `HalfPixel`, the input's middle in the middle of an output whose size was rounded.
    HalfPixelSymmetric,
    /// As `HalfPixel`; an output of one element is the input's first.
    PytorchHalfPixel,
    /// First on first and last on last element.
    AlignCorners,
    /// First on first element, then by scale.
    Asymmetric,
    /// Middles of the output's cells, by scale.
    TfHalfPixelForNn,
    /// First and last element on the ends of a region of the input; what lies outside the input is a given value.
    TfCropAndResize,
}

/// Which neighbour is the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NearestMode {
    /// The closer one, the lower one of two that are as close.
    #[default]
    RoundPreferFloor,
    /// The closer one, the upper one of two that are as close.
    RoundPreferCeil,
    /// The lower one.
    Floor,
    /// The upper one.
    Ceil,
}

/// What an element of the output is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Filter {
    /// One neighbour.
    Nearest(NearestMode),
    /// A line between two neighbours.
    Linear,
    /// A cubic curve through four neighbours; its free parameter.
    Cubic(f64),
}

/// How one axis is sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisMap {
    /// Elements of the input.
    pub input: usize,
    /// Elements of the output.
    pub output: usize,
    /// Output elements for each element of the input.
    pub scale: f64,
    /// Begin and end of the region of the input, in shares of it; of no concern to modes that know no region.
    pub region: [f64; 2],
    /// Where in the input an element of the output is read from.
    pub coordinates: Coordinates,
    /// What the neighbours of that place weigh.
    pub filter: Filter,
    /// The filter is as much wider as the output is smaller.
    pub antialias: bool,
    /// Neighbours outside the input have no weight, rather than the value of the nearest element.
    pub exclude_outside: bool,
}

/// Weights of neighbours, in ascending order.
pub type Weights = SmallVec<[f64; 8]>;

impl AxisMap {
    /// Whether the output is the input.
    pub fn is_identity(&self) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
        let whole = self.region[0].abs() <= 1e-9 && near(self.region[1], 1.0);
        let is_cropped = self.coordinates == Coordinates::TfCropAndResize && !whole;
        self.input == self.output && near(self.scale, 1.0) && !is_cropped
    }

    /// Where on the input's axis output element `y` lies; `None` outside the input for modes that know a region.
    pub fn position(&self, y: usize) -> Option<f64> {
        let (y, input, exact) = (y as f64, self.input as f64, self.input as f64 * self.scale);
        let half = |y: f64| (y + 0.5) / self.scale - 0.5;
        Some(match self.coordinates {
            Coordinates::HalfPixel => half(y),
            Coordinates::PytorchHalfPixel if self.output == 1 => 0.0,
            Coordinates::PytorchHalfPixel => half(y),
            Coordinates::HalfPixelSymmetric => input / 2.0 * (1.0 - self.output as f64 / exact) + half(y),
            Coordinates::AlignCorners if exact == 1.0 => 0.0,
            Coordinates::AlignCorners => y * (input - 1.0) / (exact - 1.0),
            Coordinates::Asymmetric => y / self.scale,
            Coordinates::TfHalfPixelForNn => (y + 0.5) / self.scale,
            Coordinates::TfCropAndResize => {
                let [begin, end] = self.region;
                let inside = match exact == 1.0 {
                    true => (end - begin) * (input - 1.0) / 2.0,
                    false => y * (end - begin) * (input - 1.0) / (exact - 1.0),
                };
                let x = inside + begin * (input - 1.0);
                return (x >= 0.0 && x <= input - 1.0).then_some(x);
            }
        })
    }

    /// The element of the input that is nearest to output element `y`; `None` outside.
    pub fn nearest(&self, y: usize) -> Option<usize> {
        let Filter::Nearest(mode) = self.filter else { return None };
        let x = self.position(y)?;
        let low = x.floor();
        let fraction = x - low;
        let at = match mode {
            _ if fraction == 0.0 => low,
            NearestMode::RoundPreferFloor if fraction <= 0.5 => low,
            NearestMode::RoundPreferCeil if fraction < 0.5 => low,
            NearestMode::Floor => low,
            _ => low + 1.0,
        };
        Some(self.clamp(at as i64))
    }

    /// The nearest element that there is.
    pub fn clamp(&self, at: i64) -> usize {
        usize::try_from(at).unwrap_or(0).min(self.input.saturating_sub(1))
    }

    /// Neighbours of every output element; 1 for [`Filter::Nearest`].
    pub fn n_taps(&self) -> usize {
        let radius = match self.filter {
            Filter::Nearest(_) => return 1,
            Filter::Linear => 1.0,
            Filter::Cubic(_) => 2.0,
        };
        let shrink = if self.antialias { self.scale.min(1.0) } else { 1.0 };
        // From the first neighbour below to as many above.
        2 * (-((-radius / shrink).floor() as i64)).unsigned_abs() as usize
    }

    /// The first neighbour of output element `y`, which may lie outside, and the weights of it and those that follow;
    /// `None` where the element lies outside.
    pub fn taps(&self, y: usize, weights: &mut Weights) -> Option<i64> {
        weights.clear();
        if let Filter::Nearest(_) = self.filter {
            weights.push(1.0);
            return self.nearest(y).map(|at| at as i64);
        }
        let x = self.position(y)?;
        // An element of the input is the upper one of its two neighbours.
        let low = (x.ceil() as i64).saturating_sub(1);
        let ratio = x - low as f64;
        let shrink = if self.antialias { self.scale.min(1.0) } else { 1.0 };
        let half = self.n_taps() as i64 / 2;
        let first = low + 1 - half;
        weights.extend((1 - half..=half).map(|i| match self.filter {
            Filter::Cubic(a) => cubic(a, (i as f64 - ratio) * shrink),
            _ => (1.0 - ((i as f64 - ratio) * shrink).abs()).clamp(0.0, 1.0),
        }));
        if self.exclude_outside {
            let inside = 0..self.input as i64;
            for (i, weight) in weights.iter_mut().enumerate() {
                if !inside.contains(&(first + i as i64)) {
                    *weight = 0.0;
                }
            }
        }
        if self.antialias || self.exclude_outside {
            let sum: f64 = weights.iter().sum();
            let sum = if sum == 0.0 { 1.0 } else { sum };
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        Some(first)
    }
}

/// Fills `out` with elements of `x` that were sampled along all axes, 0 where they lie outside.
pub fn sample_f32(maps: &[AxisMap], x: &[f32], out: &mut [f32]) {
    sample_each(maps, x, out.iter_mut(), |to, value| *to = value.unwrap_or(0.0));
}

/// Calls `put` for every element of the output with its value, `None` where it lies outside.
pub(crate) fn sample_each<M: Real, Out>(
    maps: &[AxisMap],
    values: &[M],
    out: impl Iterator<Item = Out>,
    put: impl Fn(Out, Option<M>),
) {
    let mut axes: SmallVec<[Axis<'_>; 6]> = SmallVec::new();
    let mut stride = 1;
    for map in maps.iter().rev() {
        axes.insert(0, Axis { map, stride, at: None, first: None, weights: Weights::new() });
        stride *= map.input;
    }
    let mut at: SmallVec<[usize; 6]> = smallvec![0; maps.len()];
    for to in out {
        let is_inside = axes.iter_mut().zip(&at).all(|(axis, &y)| axis.move_to(y));
        put(to, is_inside.then(|| sampled(&axes, values, 0)));
        advance(&mut at, |d| maps[d].output);
    }
}

/// An axis at one of its output's elements.
struct Axis<'m> {
    map: &'m AxisMap,
    stride: usize,
    at: Option<usize>,
    first: Option<i64>,
    /// Empty where the output is the input.
    weights: Weights,
}

impl Axis<'_> {
    /// Goes to output element `y`; false where that lies outside.
    fn move_to(&mut self, y: usize) -> bool {
        if self.at != Some(y) {
            self.at = Some(y);
            self.first = if self.map.is_identity() { Some(y as i64) } else { self.map.taps(y, &mut self.weights) };
        }
        self.first.is_some()
    }
}

/// The element that axes stand at, `base` elements into the values: the first axis is sampled first.
fn sampled<M: Real>(axes: &[Axis<'_>], values: &[M], base: usize) -> M {
    let Some((axis, before)) = axes.split_last() else { return values[base] };
    let first = axis.first.unwrap_or(0);
    let along = |tap: i64| sampled(before, values, base + axis.map.clamp(first + tap) * axis.stride);
    let terms = (0..).zip(&axis.weights).map(|(tap, &weight)| along(tap).times(M::from_f64(weight)));
    terms.reduce(M::plus).unwrap_or_else(|| along(0))
}

/// The cubic convolution of free parameter `a` at a distance.
fn cubic(a: f64, distance: f64) -> f64 {
    let x = distance.abs();
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}

impl Coordinates {
    const ALL: [Coordinates; 7] = [
        Coordinates::HalfPixel,
        Coordinates::HalfPixelSymmetric,
        Coordinates::PytorchHalfPixel,
        Coordinates::AlignCorners,
        Coordinates::Asymmetric,
        Coordinates::TfHalfPixelForNn,
        Coordinates::TfCropAndResize,
    ];

    /// ONNX's name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            Coordinates::HalfPixel => "half_pixel",
            Coordinates::HalfPixelSymmetric => "half_pixel_symmetric",
            Coordinates::PytorchHalfPixel => "pytorch_half_pixel",
            Coordinates::AlignCorners => "align_corners",
            Coordinates::Asymmetric => "asymmetric",
            Coordinates::TfHalfPixelForNn => "tf_half_pixel_for_nn",
            Coordinates::TfCropAndResize => "tf_crop_and_resize",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<Coordinates> {
        Coordinates::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl NearestMode {
    const ALL: [NearestMode; 4] =
        [NearestMode::RoundPreferFloor, NearestMode::RoundPreferCeil, NearestMode::Floor, NearestMode::Ceil];

    /// ONNX's name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            NearestMode::RoundPreferFloor => "round_prefer_floor",
            NearestMode::RoundPreferCeil => "round_prefer_ceil",
            NearestMode::Floor => "floor",
            NearestMode::Ceil => "ceil",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<NearestMode> {
        NearestMode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}
