//! What a kernel of a product does with the rest of a `Fused` op.

use super::chain::{self, Chain};
use super::matmul_tiles::{Sizes, misfit, src};
use firstlight_backend::{KernelCtx, KernelQuery};
use firstlight_gemm::{Addend, Src};
use firstlight_graph::ops::nn::fused::ADDEND;
use firstlight_graph::{Op, OpError};

/// The op that a kernel computes: itself, or the base of a `Fused`.
pub(super) fn base(op: &Op) -> &Op {
    match op {
        Op::Fused(fused) => &fused.base,
        op => op,
    }
}

/// What follows the sums of a product.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail<'a> {
    addend: Option<Src<'a>>,
    /// One row for all rows of the output.
    is_row: bool,
    pub(super) relu: bool,
    /// What is done to results at the end.
    pub(super) chain: Option<Chain<'a>>,
}

impl<'a> Tail<'a> {
    /// The tail of a launch; that of an op that is not fused does nothing.
    ///
    /// **Errors**: an addend that the row did not accept.
    pub(super) fn new(ctx: &KernelCtx<'a>) -> Result<Tail<'a>, OpError> {
        let mut tail = Tail { addend: None, is_row: false, relu: false, chain: None };
        let Op::Fused(fused) = ctx.op() else { return Ok(tail) };
        tail.relu = fused.relu;
        if ctx.has_input(ADDEND) {
            let (addend, out) = (ctx.dims(ADDEND)?, ctx.out_dims(0)?);
            if addend != out && !is_row(addend, out) {
                return Err(misfit());
            }
            tail.addend = Some(src(ctx, ADDEND)?);
            tail.is_row = addend != out;
        }
        if !fused.then.is_empty() {
            tail.chain = Some(Chain::of_result(ctx, &fused.then, ADDEND + 1)?);
        }
        Ok(tail)
    }

    /// What is added to product `i` of those that make the output; `None` where nothing is.
    pub(super) fn residual(&self, i: usize, sizes: &Sizes) -> Option<Addend<'a>> {
        let (m, n) = (sizes.m, sizes.n);
        let src = self.addend?;
        Some(match self.is_row {
            true => Addend { src, row_stride: 0, col_stride: usize::from(src.len() > 1), scale: 1.0 },
            false => Addend { src: src.slice(i * m * n, m * n), row_stride: n, col_stride: 1, scale: 1.0 },
        })
    }

    /// What is added to elements `at..at + n` of the output, where the addend has the output's shape.
    pub(super) fn part(&self, at: usize, n: usize) -> Option<Src<'a>> {
        self.addend.map(|src| src.slice(at, n))
    }
}

/// Whether a row of the output's last dimension is added to each of its rows.
fn is_row(addend: &[usize], out: &[usize]) -> bool {
    match (addend, out) {
        ([lead @ .., n], [.., last]) => n == last && addend.len() <= out.len() && lead.iter().all(|dim| *dim == 1),
        _ => false,
    }
}

/// Whether a launch is a `Fused` of a base that fits, with an addend of the output's shape, or a row where `rows` are taken.
pub(super) fn accepts(query: &KernelQuery<'_>, fits: fn(&Op) -> bool, rows: bool) -> bool {
    let Op::Fused(fused) = query.op else { return false };
    let Some(out) = query.outputs.first() else { return false };
    let addend = query.inputs.get(ADDEND).and_then(Option::as_ref);
    let matrices = query.inputs.iter().take(2).flatten().all(|input| input.dims.rank() >= 2);
    let others = query.inputs.get(ADDEND + 1..).unwrap_or(&[]);
    fits(&fused.base)
        && chain::fits(&fused.then, others, out)
        && addend.is_none_or(|addend| addend.dims == out.dims || (rows && matrices && is_row(&addend.dims, &out.dims)))
}
