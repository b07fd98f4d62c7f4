//! The choice of an instruction set, and the safe methods over slices.

use crate::slices::{Binary, Reduce, Unary};
use crate::src::Src;
use crate::table::{self, Table};

/// A family of vector instructions that kernels are built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IsaKind {
    /// Plain Rust, any CPU.
    Portable,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ and VL.
    Avx512,
}

impl IsaKind {
    /// Every kind, the least capable first.
    pub const ALL: [IsaKind; 3] = [IsaKind::Portable, IsaKind::Avx2, IsaKind::Avx512];

    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            IsaKind::Portable => "portable",
            IsaKind::Avx2 => "avx2",
            IsaKind::Avx512 => "avx512",
        }
    }
}

/// An instruction set that this CPU has: the table of its kernels.
///
/// A pointer in size; copy it freely. All of them give the same bits, so which one runs is a matter of speed alone.
///
/// Slices of one call should have one length; where they differ, the shortest counts and the rest is left alone.
#[derive(Clone, Copy)]
pub struct Isa {
    kind: IsaKind,
    pub(crate) table: &'static Table,
}

impl std::fmt::Debug for Isa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Isa").field(&self.kind).finish()
    }
}

impl Isa {
    /// The most capable instruction set of this CPU. Costs a few nanoseconds: the standard library caches what the CPU has.
    pub fn detect() -> Isa {
        IsaKind::ALL.into_iter().rev().find_map(Isa::of).unwrap_or(Isa::portable())
    }

    /// The kernels for `kind`, or `None` if this CPU lacks it.
    pub fn of(kind: IsaKind) -> Option<Isa> {
        match kind {
            IsaKind::Portable => Some(Isa::portable()),
            #[cfg(target_arch = "x86_64")]
            IsaKind::Avx2 => {
                let has = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
                has.then_some(Isa { kind, table: &table::AVX2 })
            }
            #[cfg(target_arch = "x86_64")]
            IsaKind::Avx512 => {
                let has = is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma");
                has.then_some(Isa { kind, table: &table::AVX512 })
            }
            #[cfg(not(target_arch = "x86_64"))]
            IsaKind::Avx2 | IsaKind::Avx512 => None,
        }
    }

    /// The kernels in plain Rust.
    pub fn portable() -> Isa {
        Isa { kind: IsaKind::Portable, table: &table::PORTABLE }
    }

    /// Which instruction set this is.
    pub fn kind(self) -> IsaKind {
        self.kind
    }

    /// `out[i] = op(x[i])`.
    pub fn unary<'a>(self, op: Unary, x: impl Into<Src<'a>>, out: &mut [f32]) {
        let x = x.into();
        let n = x.len().min(out.len());
        // SAFETY: `self` exists only where the CPU has the features; both are long enough and distinct.
        unsafe { (self.table.unary)(op, x.as_ptr(), out.as_mut_ptr(), n) }
    }

    /// `x[i] = op(x[i])`.
    pub fn unary_in_place(self, op: Unary, x: &mut [f32]) {
        let p = x.as_mut_ptr();
        // SAFETY: `self` exists only where the CPU has the features; kernels allow the output to be the input.
        unsafe { (self.table.unary)(op, p, p, x.len()) }
    }

    /// `out[i] = a[i] op b[i]`.
    pub fn binary<'a, 'b>(self, op: Binary, a: impl Into<Src<'a>>, b: impl Into<Src<'b>>, out: &mut [f32]) {
        let (a, b) = (a.into(), b.into());
        let n = a.len().min(b.len()).min(out.len());
        // SAFETY: `self` exists only where the CPU has the features; all three are long enough.
        unsafe { (self.table.binary)(op, a.as_ptr(), b.as_ptr(), out.as_mut_ptr(), n) }
    }

    /// `x[i] = x[i] op b[i]`.
    pub fn binary_in_place<'b>(self, op: Binary, x: &mut [f32], b: impl Into<Src<'b>>) {
        let b = b.into();
        let n = x.len().min(b.len());
        let p = x.as_mut_ptr();
        // SAFETY: `self` exists only where the CPU has the features; kernels allow the output to be an input.
        unsafe { (self.table.binary)(op, p, b.as_ptr(), p, n) }
    }

    /// `out[i] = a[i] op b`.
    pub fn binary_scalar<'a>(self, op: Binary, a: impl Into<Src<'a>>, b: f32, out: &mut [f32]) {
        let a = a.into();
        let n = a.len().min(out.len());
        // SAFETY: `self` exists only where the CPU has the features; both are long enough.
        unsafe { (self.table.binary_scalar)(op, a.as_ptr(), b, false, out.as_mut_ptr(), n) }
    }

    /// `out[i] = a op b[i]`.
    pub fn scalar_binary<'b>(self, op: Binary, a: f32, b: impl Into<Src<'b>>, out: &mut [f32]) {
        let b = b.into();
        let n = b.len().min(out.len());
        // SAFETY: `self` exists only where the CPU has the features; both are long enough.
        unsafe { (self.table.binary_scalar)(op, b.as_ptr(), a, true, out.as_mut_ptr(), n) }
    }

    /// `x[i] = x[i] op b`.
    pub fn binary_scalar_in_place(self, op: Binary, x: &mut [f32], b: f32) {
        let p = x.as_mut_ptr();
        // SAFETY: `self` exists only where the CPU has the features; kernels allow the output to be the input.
        unsafe { (self.table.binary_scalar)(op, p, b, false, p, x.len()) }
    }

    /// The f16 in `x`, at any alignment, as f32.
    pub fn widen_f16(self, x: &[u8], out: &mut [f32]) {
        let n = (x.len() / 2).min(out.len());
        // SAFETY: `self` exists only where the CPU has the features; both are long enough, and any alignment will do.
        unsafe { (self.table.widen_f16)(x.as_ptr().cast(), out.as_mut_ptr(), n) }
    }

    /// The bf16 in `x`, at any alignment, as f32.
    pub fn widen_bf16(self, x: &[u8], out: &mut [f32]) {
        let n = (x.len() / 2).min(out.len());
        // SAFETY: `self` exists only where the CPU has the features; both are long enough, and any alignment will do.
        unsafe { (self.table.widen_bf16)(x.as_ptr().cast(), out.as_mut_ptr(), n) }
    }

    /// The bits of the f16 nearest to each value, ties to even.
    pub fn narrow_f16<'a>(self, x: impl Into<Src<'a>>, out: &mut [u16]) {
        let x = x.into();
        let n = x.len().min(out.len());
        // SAFETY: `self` exists only where the CPU has the features; both are long enough, and any alignment will do.
        unsafe { (self.table.narrow_f16)(x.as_ptr(), out.as_mut_ptr(), n) }
    }

    /// The bits of the bf16 nearest to each value, ties to even.
    pub fn narrow_bf16<'a>(self, x: impl Into<Src<'a>>, out: &mut [u16]) {
        let x = x.into();
        let n = x.len().min(out.len());
        // SAFETY: `self` exists only where the CPU has the features; both are long enough, and any alignment will do.
        unsafe { (self.table.narrow_bf16)(x.as_ptr(), out.as_mut_ptr(), n) }
    }

    /// The reduction of a row to one value.
    pub fn reduce<'a>(self, op: Reduce, x: impl Into<Src<'a>>) -> f32 {
        let x = x.into();
        // SAFETY: `self` exists only where the CPU has the features.
        unsafe { (self.table.reduce)(op, x.as_ptr(), x.len()) }
    }

    /// `out[j]` = the reduction over rows `i` of `x[i * stride + j]`: reduces an outer axis. Rows of `x` that do not lie in it
    /// whole are left out; `stride` is at least `out.len()`, or 0 to repeat one row.
    pub fn reduce_rows<'a>(self, op: Reduce, x: impl Into<Src<'a>>, rows: usize, stride: usize, out: &mut [f32]) {
        let x = x.into();
        let fits = match x.len().checked_sub(out.len()) {
            None => 0,
            Some(_) if stride == 0 => rows,
            Some(spare) => rows.min(spare / stride + 1),
        };
        // SAFETY: `self` exists only where the CPU has the features; the last row that fits ends within x.
        unsafe { (self.table.reduce_rows)(op, x.as_ptr(), fits, stride, out.as_mut_ptr(), out.len()) }
    }

    /// The sum of the (rounded) squares of `x[i] - mean`.
    pub fn sum_squared_deviations<'a>(self, x: impl Into<Src<'a>>, mean: f32) -> f32 {
        let x = x.into();
        // SAFETY: `self` exists only where the CPU has the features.
        unsafe { (self.table.sum_squared_deviations)(x.as_ptr(), x.len(), mean) }
    }

    /// Softmax of one contiguous row.
    pub fn softmax_row<'a>(self, x: impl Into<Src<'a>>, out: &mut [f32]) {
        let x = x.into();
        let n = x.len().min(out.len());
        // SAFETY: `self` exists only where the CPU has the features; both are long enough.
        unsafe { (self.table.softmax_row)(x.as_ptr(), out.as_mut_ptr(), n) }
    }

    /// Softmax of one contiguous row, in place.
    pub fn softmax_row_in_place(self, x: &mut [f32]) {
        let p = x.as_mut_ptr();
        // SAFETY: `self` exists only where the CPU has the features; the kernel allows the output to be the input.
        unsafe { (self.table.softmax_row)(p, p, x.len()) }
    }

    /// Layer normalisation of one contiguous row; gives `(mean, 1 / sqrt(var + eps))`.
    pub fn layer_norm_row<'a>(
        self,
        x: impl Into<Src<'a>>,
        scale: Src<'_>,
        bias: Option<Src<'_>>,
        eps: f32,
        out: &mut [f32],
    ) -> (f32, f32) {
        let x = x.into();
        let n = x.len().min(out.len()).min(scale.len()).min(bias.map_or(usize::MAX, Src::len));
        let bias = bias.map_or(std::ptr::null(), Src::as_ptr);
        // SAFETY: `self` exists only where the CPU has the features; all are long enough; a null bias is allowed.
        unsafe { (self.table.layer_norm_row)(x.as_ptr(), scale.as_ptr(), bias, eps, out.as_mut_ptr(), n) }
    }
}
