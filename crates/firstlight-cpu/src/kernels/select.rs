//! Where.

use super::elementwise::stretch;
use super::number::read;
use super::rows::{BYTE_SIZED, rows};
use super::runs::Runs;
use super::spread::{STREAM_NS, spread};
use bytemuck::Pod;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::{OpError, OpKind};

pub(super) const BINDINGS: &[KernelBinding] = &rows(OpKind::Where, BYTE_SIZED, select);

fn select(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let dtype = ctx.spec(1)?.dtype;
    match dtype.bits() {
        8 => select_words::<u8>(ctx),
        16 => select_words::<u16>(ctx),
        32 => select_words::<u32>(ctx),
        64 => select_words::<u64>(ctx),
        128 => select_words::<[u64; 2]>(ctx),
        _ => Err(OpError::unsupported(format!("elements of {dtype} cannot be moved one by one"))),
    }
}

fn select_words<W: Pod + Send>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let (condition, x, y) = (ctx.bytes(0)?, ctx.bytes(1)?, ctx.bytes(2)?);
    let runs = Runs::broadcast(ctx.out_dims(0)?, [ctx.dims(0)?, ctx.dims(1)?, ctx.dims(2)?])?;
    let out = ctx.output::<W>(0)?;
    let (steps, width) = (runs.steps(), size_of::<W>());
    let ns = STREAM_NS * (0.5 + 0.25 * width as f32);
    spread(ctx.pool(), out, 1, ns, &|from, out| {
        runs.for_each(from, out.len(), |part, at| {
            let n = part.len();
            let condition = stretch(condition, 1, steps[0], at[0], n);
            let (x, y) = (stretch(x, width, steps[1], at[1], n), stretch(y, width, steps[2], at[2], n));
            choose(condition, x, y, &mut out[part]);
        });
    })
}

/// One run: any input may be one element that stands for all.
fn choose<W: Pod>(condition: &[u8], x: &[u8], y: &[u8], out: &mut [W]) {
    let width = size_of::<W>();
    if let ([condition], true) = (condition, out.len() > 1) {
        let from = if *condition != 0 { x } else { y };
        if from.len() == width {
            out.fill(read(from));
        } else {
            bytemuck::cast_slice_mut(out).copy_from_slice(from);
        }
        return;
    }
    let out = out.iter_mut().zip(condition);
    match (x.len() == width, y.len() == width) {
        (true, true) => {
            let (x, y) = (read(x), read(y));
            out.for_each(|(out, c)| *out = if *c != 0 { x } else { y });
        }
        (true, false) => {
            let x = read(x);
            out.zip(y.chunks_exact(width)).for_each(|((out, c), y)| *out = if *c != 0 { x } else { read(y) });
        }
        (false, true) => {
            let y = read(y);
            out.zip(x.chunks_exact(width)).for_each(|((out, c), x)| *out = if *c != 0 { read(x) } else { y });
        }
        (false, false) => {
            let pairs = x.chunks_exact(width).zip(y.chunks_exact(width));
            out.zip(pairs).for_each(|((out, c), (x, y))| {
                let (x, y) = (read(x), read(y));
                *out = if *c != 0 { x } else { y };
            });
        }
    }
}
