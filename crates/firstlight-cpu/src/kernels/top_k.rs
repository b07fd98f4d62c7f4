//! TopK.

use super::number::{Number, read};
use super::rows::row;
use super::spread::spread;
use firstlight_backend::{KernelBinding, KernelCtx};
use firstlight_graph::ops::reduce::top_k::order;
use firstlight_graph::{Op, OpError, OpKind, normalise_axis};
use firstlight_tensor::DType::{BF16, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
use firstlight_tensor::{bf16, f16};
use std::cmp::Ordering;

pub(super) const BINDINGS: &[KernelBinding] = &[
    with_indices(row(OpKind::TopK, &[F32], top_k::<f32>)),
    with_indices(row(OpKind::TopK, &[F64], top_k::<f64>)),
    with_indices(row(OpKind::TopK, &[F16], top_k::<f16>)),
    with_indices(row(OpKind::TopK, &[BF16], top_k::<bf16>)),
    with_indices(row(OpKind::TopK, &[I64], top_k::<i64>)),
    with_indices(row(OpKind::TopK, &[I32], top_k::<i32>)),
    with_indices(row(OpKind::TopK, &[I16], top_k::<i16>)),
    with_indices(row(OpKind::TopK, &[I8], top_k::<i8>)),
    with_indices(row(OpKind::TopK, &[U64], top_k::<u64>)),
    with_indices(row(OpKind::TopK, &[U32], top_k::<u32>)),
    with_indices(row(OpKind::TopK, &[U16], top_k::<u16>)),
    with_indices(row(OpKind::TopK, &[U8], top_k::<u8>)),
];

/// A row whose indices are found in scratch where the node does not ask for them.
const fn with_indices(row: KernelBinding) -> KernelBinding {
    KernelBinding {
        scratch_bytes: |query| match query.outputs {
            [values] => values.dims.n_elems().unwrap_or(0).saturating_mul(8),
            _ => 0,
        },
        ..row
    }
}

fn top_k<T: Number + PartialOrd>(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::TopK(op) = ctx.op() else { return Err(super::other_op("TopK")) };
    let (dims, out_dims) = (ctx.dims(0)?, ctx.out_dims(0)?);
    let axis = normalise_axis(op.axis, dims.rank())?;
    let fits = out_dims.rank() == dims.rank() && (0..dims.rank()).all(|i| i == axis || dims[i] == out_dims[i]);
    if !fits || out_dims[axis] > dims[axis] {
        return Err(OpError::shape(format!("elements chosen along axis {axis} of {dims} are not {out_dims}")));
    }
    let (n, k) = (dims[axis], out_dims[axis]);
    let x = ctx.bytes(0)?;
    let values = ctx.output::<T>(0)?;
    let indices = if ctx.n_outputs() > 1 { ctx.output::<i64>(1)? } else { ctx.scratch::<i64>()? };
    if values.is_empty() {
        return Ok(());
    }
    let inner: usize = dims[axis + 1..].iter().product();
    let indices = &mut indices[..values.len()];
    let at = |start: usize, i: i64| read::<T>(&x[(start + i as usize * inner) * size_of::<T>()..][..size_of::<T>()]);
    let ns = (2.0 * n as f32 + 10.0 * k as f32) / k as f32;
    spread(ctx.pool(), indices, k * inner, ns, &|from, indices| {
        for (i, plane) in indices.chunks_exact_mut(k * inner).enumerate() {
            for column in 0..inner {
                let start = (from / (k * inner) + i) * n * inner + column;
                let before = |a: i64, b: i64| {
                    let order = order(&at(start, a), &at(start, b));
                    (if op.largest { order.reverse() } else { order }).then(a.cmp(&b)) == Ordering::Less
                };
                Heap { slots: &mut plane[column..], step: inner, k }.choose(n, before);
            }
        }
    })?;
    let indices = &*indices;
    spread(ctx.pool(), values, k * inner, 1.0, &|from, values| {
        for (i, value) in values.iter_mut().enumerate() {
            let to = from + i;
            *value = at(to / (k * inner) * n * inner + to % inner, indices[to]);
        }
    })
}

/// Indices of the first elements in an order, `step` apart, the last of them at the root.
struct Heap<'a> {
    slots: &'a mut [i64],
    step: usize,
    k: usize,
}

impl Heap<'_> {
    /// Leaves the first `k` of `0..n` in order.
    fn choose(mut self, n: usize, before: impl Fn(i64, i64) -> bool) {
        for i in 0..self.k {
            self.slots[i * self.step] = i as i64;
        }
        for i in (0..self.k / 2).rev() {
            self.sink(i, self.k, &before);
        }
        for i in self.k..n {
            if before(i as i64, self.slots[0]) {
                self.slots[0] = i as i64;
                self.sink(0, self.k, &before);
            }
        }
        for len in (1..self.k).rev() {
            self.slots.swap(0, len * self.step);
            self.sink(0, len, &before);
        }
    }

    /// Lets slot `i` of a heap of `len` sink to its place.
    fn sink(&mut self, mut i: usize, len: usize, before: &impl Fn(i64, i64) -> bool) {
        loop {
            let (left, right) = (2 * i + 1, 2 * i + 2);
            let mut last = i;
            for child in [left, right] {
                if child < len && before(self.slots[last * self.step], self.slots[child * self.step]) {
                    last = child;
                }
            }
            if last == i {
                return;
            }
            self.slots.swap(i * self.step, last * self.step);
            i = last;
        }
    }
}
