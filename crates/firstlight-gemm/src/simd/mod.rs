//! Sixteen f32 lanes, the same on every instruction set.
//!
//! [`Simd`] is what generic kernels are written against. A value of a type that implements it is a token: it exists only
//! where the CPU has the instructions, so its arithmetic is safe to call; only loads and stores through raw pointers are
//! not. Kernels are `#[inline(always)]` functions over `S: Simd`, instantiated once per instruction set inside a
//! `#[target_feature]` wrapper (see `table.rs`).

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use portable::Portable;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

/// Lanes of a vector, on every instruction set.
pub(crate) const LANES: usize = 16;

/// `1.5 * 2^23`: adding and subtracting it rounds a small f32 to the nearest integer.
pub(crate) const ROUND_MAGIC: f32 = 12_582_912.0;

/// The bits of `sqrt(1/2)`.
pub(crate) const SQRT_HALF_BITS: i32 = 0x3f35_04f3;

/// Arithmetic on 16 f32 lanes; the methods' results are bit-identical over implementors.
///
/// Pointers need no alignment.
pub(crate) trait Simd: Copy {
    /// Sixteen lanes.
    type V: Copy;

    /// How many accumulators, beside their operands, the registers hold; 1 keeps code small where they hold none.
    const ACCUMULATORS: usize;
    /// Whether tiles of 24 accumulators are used.
    const WIDE: bool = Self::ACCUMULATORS >= 24;
    /// Whether tiles of 1 accumulator are all there is.
    const NARROW: bool = Self::ACCUMULATORS < 6;

    /// The kernels of this instruction set, for those that call others through a pointer so as to stay small.
    fn table(self) -> &'static crate::table::Table;

    fn splat(self, x: f32) -> Self::V;
    fn to_array(self, x: Self::V) -> [f32; LANES];

    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`, rounded once.
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    fn sqrt(self, a: Self::V) -> Self::V;
    fn abs(self, a: Self::V) -> Self::V;
    fn neg(self, a: Self::V) -> Self::V;
    /// `magnitude` (not negative) with the sign of `sign`.
    fn with_sign(self, magnitude: Self::V, sign: Self::V) -> Self::V;
    /// `if a < b { a } else { b }`: `b` if either is NaN or both are zero.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// `if a > b { a } else { b }`: `b` if either is NaN or both are zero.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// `if a < b { x } else { y }`: `y` if either is NaN.
    fn select_lt(self, a: Self::V, b: Self::V, x: Self::V, y: Self::V) -> Self::V;
    /// `if a is NaN { x } else { y }`.
    fn select_nan(self, a: Self::V, x: Self::V, y: Self::V) -> Self::V;
    /// `p * 2^n`, rounded once, where `t = n + ROUND_MAGIC`, `|n| <= 151` and `|p|` is in `[0.5, 2]` (or NaN).
    fn scale(self, p: Self::V, t: Self::V) -> Self::V;
    /// `(m, e)` with `x = m * 2^e` and `sqrt(1/2) <= m < sqrt(2)`; `x` is positive, finite and normal, or the result is
    /// any one, the same on every instruction set.
    fn split(self, x: Self::V) -> (Self::V, Self::V);

    /// 4x4 transposes inside each group of four lanes: out `i`, lane `4g + j` is in `j`, lane `4g + i`.
    fn transpose4(self, rows: [Self::V; 4]) -> [Self::V; 4];

    /// # Safety
    /// `p` is readable for 16 f32.
    unsafe fn load(self, p: *const f32) -> Self::V;
    /// # Safety
    /// `p` is writable for 16 f32.
    unsafe fn store(self, p: *mut f32, x: Self::V);
    /// Broadcasts one f32.
    /// # Safety
    /// `p` is readable for one f32.
    unsafe fn load1(self, p: *const f32) -> Self::V;
    /// Lanes `0..n` from `p`, the others +0; `n` is at most 16.
    /// # Safety
    /// `p` is readable for `n` f32.
    unsafe fn load_n(self, p: *const f32, n: usize) -> Self::V;
    /// Lanes `lo..hi` from `p + lane`, the others +0; `lo <= hi <= 16`.
    /// # Safety
    /// The f32 at `p + lo` up to `p + hi` are readable; `p` itself need not point into them.
    unsafe fn load_range(self, p: *const f32, lo: usize, hi: usize) -> Self::V;
    /// Lanes `lo..hi` from `p + 2 * lane`, the others +0; `lo <= hi <= 16`.
    /// # Safety
    /// The f32 at `p + 2 * lo`, `p + 2 * (lo + 1)`, .. `p + 2 * (hi - 1)` and those between them are readable; `p` itself need not
    /// point into them.
    unsafe fn load_range_2(self, p: *const f32, lo: usize, hi: usize) -> Self::V;
    /// Writes lanes `0..n`; `n` is at most 16.
    /// # Safety
    /// `p` is writable for `n` f32.
    unsafe fn store_n(self, p: *mut f32, x: Self::V, n: usize);
    /// Lane `4g + j` from `p[g] + j`.
    /// # Safety
    /// Each pointer is readable for 4 f32.
    unsafe fn load_4x4(self, p: [*const f32; 4]) -> Self::V;
    /// Hints that the cache line at `p` is read soon; `p` may be any address.
    fn prefetch(self, p: *const f32);
}
