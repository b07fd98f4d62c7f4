//! Conv over one or two spatial dimensions.
//!
//! Filters are read where they lie, in the file's order `[filter][channel][kh][kw]`, through a table of the k order's offsets; the
//! windows of the input are packed a slab at a time. Filters of one channel each run as windows over planes.

use super::chain::Chain;
use super::epilogue::{self, Tail};
use super::matmul_tiles::{Sizes, lanes_bytes, misfit, run, src};
use super::spread::spread_with_scratch;
use firstlight_backend::{Caps, KernelBinding, KernelCtx, KernelQuery, ROW};
use firstlight_gemm::{
    Addend, ConvInput, Epilogue, Geometry, Isa, Lhs, PRODUCT_SCRATCH_ELEMS, Product, Rhs, Src, WINDOW_SCRATCH_ELEMS,
    Window, WindowPlan,
};
use firstlight_graph::ops::nn::conv::ConvGeometry;
use firstlight_graph::ops::nn::window::WindowDim;
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType;
use std::sync::atomic::{AtomicBool, Ordering};

const CONV: KernelBinding = KernelBinding {
    op: OpKind::Conv,
    types: &[DType::F32],
    kernel: conv_f32,
    accepts,
    scratch_bytes,
    caps: Caps { unaligned: true, capture_safe: true },
    source: "tiles",
    ..ROW
};

pub(super) const BINDINGS: &[KernelBinding] =
    &[CONV, KernelBinding { op: OpKind::Fused, accepts: accepts_fused, source: "conv-tiles", ..CONV }];

/// Filters of one channel up to which windows over planes beat a product.
const MAX_PLANE_FILTERS: usize = 4;
/// About how long a tap of a window over a plane takes.
const NS_PER_TAP: f32 = 0.03;

/// A convolution in two spatial dimensions; one is a second of size 1.
#[derive(Clone, Copy, Debug)]
struct Conv2d {
    batch: usize,
    groups: usize,
    /// Of one group.
    channels: usize,
    filters: usize,
    /// Height and width of the input.
    size: [usize; 2],
    geometry: Geometry,
}

impl Conv2d {
    fn new(conv: &ConvGeometry) -> Option<Conv2d> {
        let (height, width) = match conv.spatial.as_slice() {
            [width] => (None, width),
            [height, width] => (Some(height), width),
            _ => return None,
        };
        let pair = |absent: usize, of: fn(&WindowDim) -> usize| [height.map_or(absent, of), of(width)];
        Some(Conv2d {
            batch: conv.batch,
            groups: conv.group,
            channels: conv.group_in_channels(),
            filters: conv.group_out_channels(),
            size: pair(1, |dim| dim.input),
            geometry: Geometry {
                kernel: pair(1, |dim| dim.kernel),
                stride: pair(1, |dim| dim.stride),
                dilation: pair(1, |dim| dim.dilation),
                pad: pair(0, |dim| dim.pad_begin),
                out: pair(1, |dim| dim.output),
            },
        })
    }

    fn plane(&self) -> usize {
        self.size[0] * self.size[1]
    }

    fn out_plane(&self) -> usize {
        self.geometry.out[0] * self.geometry.out[1]
    }

    fn taps(&self) -> usize {
        self.geometry.kernel[0] * self.geometry.kernel[1]
    }

    /// Set where filters of one channel run as windows over planes.
    fn planes(&self) -> Option<WindowPlan> {
        let few = self.channels == 1 && self.filters <= MAX_PLANE_FILTERS;
        if few { WindowPlan::new(self.size, self.geometry) } else { None }
    }

    /// Whether windows are single pixels and every pixel has one: the input is the right operand as it lies.
    fn is_product(&self) -> bool {
        self.taps() == 1 && self.geometry.stride == [1; 2] && self.size == self.geometry.out
    }

    /// Elements of the table of offsets, padded to whole cache lines; a single tap needs none.
    fn table_elems(&self) -> usize {
        if self.taps() == 1 { 0 } else { (self.channels * self.taps()).next_multiple_of(16) }
    }
}

fn accepts(query: &KernelQuery<'_>) -> bool {
    query.inputs.first().and_then(Option::as_ref).is_some_and(|x| matches!(x.dims.rank(), 3 | 4))
}

fn accepts_fused(query: &KernelQuery<'_>) -> bool {
    accepts(query) && epilogue::accepts(query, |op| matches!(op, Op::Conv(_)), false)
}

fn scratch_bytes(query: &KernelQuery<'_>) -> usize {
    let (Op::Conv(op), [Some(x), Some(w), ..]) = (epilogue::base(query.op), query.inputs) else { return 0 };
    let conv = op.geometry(&x.dims, &w.dims).ok().as_ref().and_then(Conv2d::new);
    match conv {
        Some(conv) if conv.planes().is_some() => query.threads.saturating_mul(WINDOW_SCRATCH_ELEMS * 4),
        Some(conv) => {
            lanes_bytes(query.threads, conv.filters, false).saturating_add(conv.table_elems().saturating_mul(4))
        }
        None => 0,
    }
}

fn conv_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::Conv(op) = epilogue::base(ctx.op()) else { return Err(misfit()) };
    let conv = Conv2d::new(&op.geometry(ctx.dims(0)?, ctx.dims(1)?)?).ok_or_else(misfit)?;
    let (x, w) = (src(ctx, 0)?, src(ctx, 1)?);
    let bias = if ctx.has_input(2) { Some(src(ctx, 2)?) } else { None };
    let tail = Tail::new(ctx)?;
    match conv.planes() {
        Some(plan) => planes(ctx, &conv, &plan, x, w, bias, &tail),
        None => products(ctx, &conv, x, w, bias, &tail),
    }
}

/// One product a group and image: filters by windows.
fn products(
    ctx: &KernelCtx<'_>,
    conv: &Conv2d,
    x: Src<'_>,
    w: Src<'_>,
    bias: Option<Src<'_>>,
    tail: &Tail<'_>,
) -> Result<(), OpError> {
    let Conv2d { batch, groups, channels, filters, size, geometry } = *conv;
    let (k, taps) = (channels * conv.taps(), conv.taps());
    let sizes = Sizes { n_products: batch * groups, m: filters, k, n: conv.out_plane() };
    let (out, scratch) = (ctx.output::<f32>(0)?, ctx.scratch::<f32>()?);
    let (table, scratch) = scratch.split_at_mut_checked(conv.table_elems()).ok_or_else(misfit)?;
    if out.is_empty() {
        return Ok(());
    }
    let table: &mut [u32] = bytemuck::cast_slice_mut(table);
    if taps > 1 {
        let input = ConvInput::new(x, channels, size, geometry).ok_or_else(misfit)?;
        if !input.filter_offsets(&mut table[..k]) {
            return Err(OpError::unsupported(format!("a filter of {k} weights is too large for this kernel")));
        }
    }
    let table = &*table;
    let product = |i: usize| {
        let group = i % groups;
        let x = x.slice(i * channels * conv.plane(), channels * conv.plane());
        let w = w.slice(group * filters * k, filters * k);
        let lhs = match taps {
            1 => Lhs::strided(w, filters, k, k, 1)?,
            _ => Lhs::with_offsets(w, filters, k, table.get(..k)?)?,
        };
        let rhs = match conv.is_product() {
            true => Rhs::row_major(x, k, sizes.n, sizes.n)?,
            false => Rhs::Conv(ConvInput::new(x, channels, size, geometry)?),
        };
        let bias = bias.map(|bias| Addend {
            src: bias.slice(group * filters, filters),
            row_stride: 1,
            col_stride: 0,
            scale: 1.0,
        });
        Some(Product {
            lhs,
            rhs,
            epilogue: Epilogue { bias, residual: tail.residual(i, &sizes), relu: tail.relu, ..Epilogue::default() },
        })
    };
    run(ctx.pool(), sizes, out, scratch, PRODUCT_SCRATCH_ELEMS, &product, tail.chain.as_ref())
}

/// Filters of one channel: each output plane is windows over one input plane.
fn planes(
    ctx: &KernelCtx<'_>,
    conv: &Conv2d,
    plan: &WindowPlan,
    x: Src<'_>,
    w: Src<'_>,
    bias: Option<Src<'_>>,
    tail: &Tail<'_>,
) -> Result<(), OpError> {
    let (out, scratch) = (ctx.output::<f32>(0)?, ctx.scratch::<f32>()?);
    if out.is_empty() {
        return Ok(());
    }
    let filters = conv.groups * conv.filters;
    let taps = conv.taps();
    let isa = Isa::detect();
    let failed = AtomicBool::new(false);
    let plane = |i: usize, out: &mut [f32], scratch: &mut [f32]| {
        let filter = i % filters;
        let input = x.slice(i / conv.filters * conv.plane(), conv.plane());
        let window = Window::Depthwise {
            filter: w.slice(filter * taps, taps),
            bias: bias.and_then(|bias| bias.get(filter)),
            residual: tail.part(i * conv.out_plane(), conv.out_plane()),
            relu: tail.relu,
        };
        let done = isa.window_rows(plan, &window, input, 0..conv.geometry.out[0], out, scratch);
        if let Some(chain) = &tail.chain {
            chain.run(isa, i * conv.out_plane(), out);
        }
        done
    };
    let chain_ns = tail.chain.as_ref().map_or(0.0, Chain::ns_per_elem);
    let ns_per_elem = 0.1 + taps as f32 * NS_PER_TAP + chain_ns;
    let scratch = (scratch, WINDOW_SCRATCH_ELEMS);
    spread_with_scratch(ctx.pool(), out, conv.out_plane(), ns_per_elem, scratch, &|at, out, scratch| {
        for (i, out) in out.chunks_exact_mut(conv.out_plane()).enumerate() {
            if !plane(at / conv.out_plane() + i, out, scratch) {
                failed.store(true, Ordering::Relaxed);
            }
        }
    })?;
    if failed.into_inner() { Err(misfit()) } else { Ok(()) }
}

#[cfg(test)]
#[path = "conv_tests.rs"]
mod tests;
