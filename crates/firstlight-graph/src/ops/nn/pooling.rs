//! What pooling ops share: windows of one kernel over all channels.

use super::window::{AutoPad, WindowDim, Windows};
use crate::ops::layout::product;
use crate::{InferCtx, OpError};
use firstlight_tensor::{Dim, Shape, SymShape};
use smallvec::SmallVec;
use std::ops::Range;

/// A pooling with everything resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolGeometry {
    /// Samples, each pooled by itself.
    pub batch: usize,
    /// Channels, each pooled by itself.
    pub channels: usize,
    /// Windows along each spatial dimension.
    pub spatial: SmallVec<[WindowDim; 3]>,
}

impl PoolGeometry {
    /// Shape of the output.
    pub fn out_shape(&self) -> Shape {
        [self.batch, self.channels].into_iter().chain(self.spatial.iter().map(|dim| dim.output)).collect()
    }
}

/// The attributes that pooling ops have in common; empty lists stand for their defaults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolWindows<'a> {
    /// The op's name, for errors.
    pub op: &'static str,
    pub auto_pad: AutoPad,
    pub ceil_mode: bool,
    pub dilations: &'a [i64],
    pub kernel_shape: &'a [i64],
    pub pads: &'a [i64],
    pub strides: &'a [i64],
}

impl PoolWindows<'_> {
    /// The pooling of an input of shape `x`.
    ///
    /// **Errors**: a rank or attributes that do not fit each other; a window beyond the padded input; sizes that
    /// overflow.
    pub(crate) fn geometry(&self, x: &[usize]) -> Result<PoolGeometry, OpError> {
        let kernel = self.kernel(x.len())?;
        let spatial = self.windows(&kernel).resolve(&x[2..])?;
        let geometry = PoolGeometry { batch: x[0], channels: x[1], spatial };
        product(&geometry.out_shape())?;
        Ok(geometry)
    }

    /// Dims of the output.
    pub(crate) fn infer(&self, ctx: &InferCtx<'_>) -> Result<SymShape, OpError> {
        let x = ctx.dims(0)?;
        let kernel = self.kernel(x.rank())?;
        let windows = self.windows(&kernel);
        windows.check()?;
        let mut dims = x[..2].to_vec();
        for (d, dim) in x[2..].iter().enumerate() {
            dims.push(match dim.known() {
                Some(size) => Dim::Known(windows.along(d, size)?.output),
                None => Dim::Unknown,
            });
        }
        Ok(SymShape(dims))
    }

    /// Operations for an output: one a tap.
    pub(crate) fn n_operations(&self, outputs: &[&[usize]]) -> u64 {
        let taps = self.kernel_shape.iter().fold(1u64, |n, &size| n.saturating_mul(size.unsigned_abs()));
        let outputs = outputs.first().map_or(0, |y| y.iter().fold(1u64, |n, &dim| n.saturating_mul(dim as u64)));
        outputs.saturating_mul(taps)
    }

    fn kernel(&self, rank: usize) -> Result<SmallVec<[usize; 3]>, OpError> {
        if rank < 3 || self.kernel_shape.len() != rank - 2 {
            return Err(OpError::shape(format!(
                "{} takes batch, channels and as many spatial dimensions as kernel_shape {:?} has sizes; got {rank} \
                 dimensions",
                self.op, self.kernel_shape
            )));
        }
        let sizes: Result<_, _> = self.kernel_shape.iter().map(|&size| usize::try_from(size)).collect();
        sizes.map_err(|_| OpError::value(format!("kernel_shape {:?} has a negative size", self.kernel_shape)))
    }

    fn windows<'a>(&'a self, kernel: &'a [usize]) -> Windows<'a> {
        Windows {
            kernel,
            strides: self.strides,
            pads: self.pads,
            dilations: self.dilations,
            auto_pad: self.auto_pad,
            ceil_mode: self.ceil_mode,
        }
    }
}

/// Calls `f` with the position in the channel of each tap of a window that lies in the input, in row-major order.
pub(crate) fn each_tap(spatial: &[WindowDim], window: &[usize], mut f: impl FnMut(usize)) {
    let taps: SmallVec<[Range<usize>; 3]> = spatial.iter().zip(window).map(|(dim, &window)| dim.taps(window)).collect();
    if taps.iter().any(Range::is_empty) {
        return;
    }
    let mut tap: SmallVec<[usize; 3]> = SmallVec::from_elem(0, spatial.len());
    loop {
        let at = spatial
            .iter()
            .enumerate()
            .try_fold(0, |at, (d, dim)| Some(at * dim.input + dim.at(window[d], taps[d].start + tap[d])?));
        if let Some(at) = at {
            f(at);
        }
        if !super::window::advance(&mut tap, |d| taps[d].len()) {
            return;
        }
    }
}
