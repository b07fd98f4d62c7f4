//! ConvTranspose over one or two spatial dimensions.
//!
//! A tile is some filters of one image and group: for a strip of input rows after the other, a product gives what each pixel adds
//! through each tap, then these are added to the tile's output planes in the order of the pixels.

use super::matmul_tiles::{misfit, src};
use firstlight_backend::{Caps, KernelBinding, KernelCtx, KernelQuery, ROW, for_chunks_with_scratch_cost};
use firstlight_gemm::{Binary, Epilogue, Isa, Lhs, PRODUCT_SCRATCH_ELEMS, Product, Rhs, Src};
use firstlight_graph::ops::nn::conv_transpose::{ConvTransposeGeometry, TransposedDim};
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) const BINDINGS: &[KernelBinding] = &[KernelBinding {
    op: OpKind::ConvTranspose,
    types: &[DType::F32],
    kernel: conv_transpose_f32,
    accepts,
    scratch_bytes,
    caps: Caps { unaligned: true, capture_safe: true },
    source: "tiles",
    ..ROW
}];

/// Rows of a product (filters times taps) that a tile is made of where there are as many.
const TILE_ROWS: usize = 96;
/// Pixels of a strip, in whole rows where there are more.
const STRIP_PIXELS: usize = 1024;
/// Multiply-adds a nanosecond, about.
const FMAS_PER_NS: u64 = 40;

/// A transposed convolution in two spatial dimensions; one is a second of size 1.
#[derive(Clone, Copy, Debug)]
struct Transposed2d {
    batch: usize,
    groups: usize,
    /// Of one group.
    channels: usize,
    filters: usize,
    high: TransposedDim,
    wide: TransposedDim,
}

impl Transposed2d {
    fn new(geometry: &ConvTransposeGeometry) -> Option<Transposed2d> {
        let line = TransposedDim { input: 1, kernel: 1, stride: 1, dilation: 1, pad_begin: 0, output: 1 };
        let (high, wide) = match geometry.spatial[..] {
            [wide] => (line, wide),
            [high, wide] => (high, wide),
            _ => return None,
        };
        Some(Transposed2d {
            batch: geometry.batch,
            groups: geometry.group,
            channels: geometry.group_in_channels(),
            filters: geometry.group_out_channels(),
            high,
            wide,
        })
    }

    fn taps(&self) -> usize {
        self.high.kernel * self.wide.kernel
    }

    fn plane(&self) -> usize {
        self.high.input * self.wide.input
    }

    fn out_plane(&self) -> usize {
        self.high.output * self.wide.output
    }

    /// Filters of a tile: a divisor of the group's, so that tiles do not cross groups.
    fn tile_filters(&self) -> usize {
        let most = (TILE_ROWS / self.taps().max(1)).clamp(1, self.filters.max(1));
        (1..=most).rev().find(|n| self.filters.is_multiple_of(*n)).unwrap_or(1)
    }

    /// Input rows of a strip.
    fn strip_rows(&self) -> usize {
        (STRIP_PIXELS / self.wide.input.max(1)).clamp(1, self.high.input.max(1))
    }

    /// What pixels of a strip add, each through each tap, to each filter of a tile.
    fn strip_elems(&self) -> usize {
        let rows = self.tile_filters().saturating_mul(self.taps());
        rows.saturating_mul(self.strip_rows().saturating_mul(self.wide.input))
    }

    fn lane_elems(&self) -> usize {
        self.strip_elems().next_multiple_of(16).saturating_add(PRODUCT_SCRATCH_ELEMS)
    }
}

fn accepts(query: &KernelQuery<'_>) -> bool {
    query.inputs.first().and_then(Option::as_ref).is_some_and(|x| matches!(x.dims.rank(), 3 | 4))
}

fn scratch_bytes(query: &KernelQuery<'_>) -> usize {
    let (Op::ConvTranspose(op), [Some(x), Some(w), ..]) = (query.op, query.inputs) else { return 0 };
    let conv = op.geometry(&x.dims, &w.dims).ok().as_ref().and_then(Transposed2d::new);
    conv.map_or(0, |conv| query.threads.saturating_mul(conv.lane_elems()).saturating_mul(4))
}

fn conv_transpose_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::ConvTranspose(op) = ctx.op() else { return Err(misfit()) };
    let conv = Transposed2d::new(&op.geometry(ctx.dims(0)?, ctx.dims(1)?)?).ok_or_else(misfit)?;
    let (x, w) = (src(ctx, 0)?, src(ctx, 1)?);
    let bias = if ctx.has_input(2) { Some(src(ctx, 2)?) } else { None };
    let (out, scratch) = (ctx.output::<f32>(0)?, ctx.scratch::<f32>()?);
    if out.is_empty() {
        return Ok(());
    }
    let failed = AtomicBool::new(false);
    let per_group = conv.filters / conv.tile_filters();
    let tile = |i: usize, planes: &mut [f32], lane: &mut [f32]| {
        let (image, first) = (i / per_group, i % per_group * conv.tile_filters());
        let x = x.slice(image * conv.channels * conv.plane(), conv.channels * conv.plane());
        let group = image % conv.groups;
        let of_filter = conv.taps() * conv.filters;
        let w = w.slice(group * conv.channels * of_filter, conv.channels * of_filter);
        let bias = bias.map(|bias| bias.slice(group * conv.filters + first, conv.tile_filters()));
        if conv.tile(x, w, bias, first, planes, lane).is_none() {
            failed.store(true, Ordering::Relaxed);
        }
    };
    let fmas = [conv.batch, conv.groups, conv.channels, conv.filters, conv.taps(), conv.plane()];
    let fmas = fmas.iter().fold(1u64, |product, &n| product.saturating_mul(n as u64));
    let cost_ns = (fmas / FMAS_PER_NS).saturating_add(out.len() as u64);
    let chunk = conv.tile_filters() * conv.out_plane();
    for_chunks_with_scratch_cost(ctx.pool(), out, chunk, scratch, conv.lane_elems(), cost_ns, &tile)?;
    if failed.into_inner() { Err(misfit()) } else { Ok(()) }
}

impl Transposed2d {
    /// Output planes of the filters from `first` on of one image and group.
    fn tile(
        &self,
        x: Src<'_>,
        w: Src<'_>,
        bias: Option<Src<'_>>,
        first: usize,
        planes: &mut [f32],
        lane: &mut [f32],
    ) -> Option<()> {
        let (isa, taps, width) = (Isa::detect(), self.taps(), self.wide.input);
        let n_rows = self.tile_filters() * taps;
        let (strip, product_scratch) = lane.split_at_mut_checked(self.strip_elems().next_multiple_of(16))?;
        planes.fill(0.0);
        let of_filter = taps * self.filters;
        // Row `filter * taps + tap`, k-step `channel`.
        let w = w.slice(first * taps, w.len().checked_sub(first * taps)?);
        let lhs = Lhs::strided(w, n_rows, 1, self.channels, of_filter)?;
        for row in (0..self.high.input).step_by(self.strip_rows()) {
            let rows = self.strip_rows().min(self.high.input - row);
            let n = rows * width;
            let from = x.slice(row * width, x.len().checked_sub(row * width)?);
            let product = Product {
                lhs,
                rhs: Rhs::row_major(from, self.channels, n, self.plane())?,
                epilogue: Epilogue::default(),
            };
            if !isa.product(&product, strip, product_scratch) {
                return None;
            }
            for (filter, plane) in planes.chunks_exact_mut(self.out_plane()).enumerate() {
                for tap_row in 0..rows * self.high.kernel {
                    let (r, kh) = (tap_row / self.high.kernel, tap_row % self.high.kernel);
                    let Some(to) = self.high.at(row + r, kh) else { continue };
                    let to = &mut plane[to * self.wide.output..][..self.wide.output];
                    // Of two pixels that reach one element the left one does through the later tap.
                    for kw in (0..self.wide.kernel).rev() {
                        let at = (filter * taps + kh * self.wide.kernel + kw) * n + r * width;
                        self.add_row(isa, kw, &strip[at..][..width], to);
                    }
                }
            }
        }
        if let Some(bias) = bias {
            for (filter, plane) in planes.chunks_exact_mut(self.out_plane()).enumerate() {
                isa.binary_scalar_in_place(Binary::Add, plane, bias.get(filter)?);
            }
        }
        Some(())
    }

    /// Adds what a row of pixels gives through tap `kw` of a kernel's row to an output row.
    fn add_row(&self, isa: Isa, kw: usize, pixels: &[f32], to: &mut [f32]) {
        let TransposedDim { stride, dilation, pad_begin, .. } = self.wide;
        let reach = kw * dilation;
        // Pixels that reach the row, and where the first of them does.
        let first = pad_begin.saturating_sub(reach).div_ceil(stride);
        let end = (pad_begin + to.len()).saturating_sub(reach).div_ceil(stride).min(pixels.len());
        if first >= end {
            return;
        }
        let to = &mut to[first * stride + reach - pad_begin..];
        let pixels = &pixels[first..end];
        match stride {
            1 => isa.binary_in_place(Binary::Add, &mut to[..pixels.len()], pixels),
            2 => {
                // The last element may have none behind it.
                if let Some((last, pixels)) = pixels.split_last() {
                    to.chunks_exact_mut(2).zip(pixels).for_each(|(to, x)| to[0] += x);
                    to[2 * pixels.len()] += last;
                }
            }
            stride => to.iter_mut().step_by(stride).zip(pixels).for_each(|(to, x)| *to += x),
        }
    }
}
