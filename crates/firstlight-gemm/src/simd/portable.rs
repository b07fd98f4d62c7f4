//! The lanes as a plain array: for CPUs without vector rows, and the model that the vector rows must match.

use super::{LANES, ROUND_MAGIC, SQRT_HALF_BITS, Simd};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

type V = [f32; LANES];

#[inline(always)]
fn map2(a: V, b: V, f: impl Fn(f32, f32) -> f32) -> V {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Simd for Portable {
    type V = V;
    const ACCUMULATORS: usize = 1;

    #[inline(always)]
    fn table(self) -> &'static crate::table::Table {
        &crate::table::PORTABLE
    }

    #[inline(always)]
    fn splat(self, x: f32) -> V {
        [x; LANES]
    }
    #[inline(always)]
    fn to_array(self, x: V) -> [f32; LANES] {
        x
    }
    #[inline(always)]
    fn add(self, a: V, b: V) -> V {
        map2(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: V, b: V) -> V {
        map2(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: V, b: V) -> V {
        map2(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: V, b: V) -> V {
        map2(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn fma(self, a: V, b: V, c: V) -> V {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }
    #[inline(always)]
    fn sqrt(self, a: V) -> V {
        a.map(f32::sqrt)
    }
    #[inline(always)]
    fn abs(self, a: V) -> V {
        a.map(f32::abs)
    }
    #[inline(always)]
    fn neg(self, a: V) -> V {
        a.map(|a| -a)
    }
    #[inline(always)]
    fn with_sign(self, magnitude: V, sign: V) -> V {
        map2(magnitude, sign, |m, s| f32::from_bits(m.to_bits() | (s.to_bits() & 0x8000_0000)))
    }
    #[inline(always)]
    fn min(self, a: V, b: V) -> V {
        map2(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn max(self, a: V, b: V) -> V {
        map2(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn select_lt(self, a: V, b: V, x: V, y: V) -> V {
        std::array::from_fn(|i| if a[i] < b[i] { x[i] } else { y[i] })
    }
    #[inline(always)]
    fn select_nan(self, a: V, x: V, y: V) -> V {
        std::array::from_fn(|i| if a[i].is_nan() { x[i] } else { y[i] })
    }
    #[inline(always)]
    fn scale(self, p: V, t: V) -> V {
        map2(p, t, |p, t| {
            let n = (t.to_bits() as i32).wrapping_sub(ROUND_MAGIC.to_bits() as i32);
            let half = n >> 1;
            let pow2 = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
            p * pow2(half) * pow2(n.wrapping_sub(half))
        })
    }
    #[inline(always)]
    fn split(self, x: V) -> (V, V) {
        let exponent = |x: f32| (x.to_bits() as i32).wrapping_sub(SQRT_HALF_BITS) >> 23;
        let mantissa = |x: f32| f32::from_bits((x.to_bits() as i32).wrapping_sub(exponent(x) << 23) as u32);
        (x.map(mantissa), x.map(|x| exponent(x) as f32))
    }
    #[inline(always)]
    fn transpose4(self, rows: [V; 4]) -> [V; 4] {
        std::array::from_fn(|i| std::array::from_fn(|l| rows[l % 4][l / 4 * 4 + i]))
    }

    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> V {
        // SAFETY: the caller's promise is this read's; it needs no alignment.
        unsafe { p.cast::<V>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, x: V) {
        // SAFETY: the caller's promise is this write's; it needs no alignment.
        unsafe { p.cast::<V>().write_unaligned(x) }
    }
    #[inline(always)]
    unsafe fn load1(self, p: *const f32) -> V {
        // SAFETY: the caller's promise is this read's; it needs no alignment.
        [unsafe { p.read_unaligned() }; LANES]
    }
    #[inline(always)]
    unsafe fn load_n(self, p: *const f32, n: usize) -> V {
        // SAFETY: lanes from n on are not read.
        std::array::from_fn(|i| if i < n { unsafe { p.add(i).read_unaligned() } } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn load_range(self, p: *const f32, lo: usize, hi: usize) -> V {
        // SAFETY: only lanes lo..hi are read, which the caller vouches for.
        std::array::from_fn(|i| if lo <= i && i < hi { unsafe { p.wrapping_add(i).read_unaligned() } } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn load_range_2(self, p: *const f32, lo: usize, hi: usize) -> V {
        // SAFETY: only lanes lo..hi are read, which the caller vouches for.
        std::array::from_fn(|i| if lo <= i && i < hi { unsafe { p.wrapping_add(2 * i).read_unaligned() } } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn store_n(self, p: *mut f32, x: V, n: usize) {
        for (i, x) in x.into_iter().enumerate().take(n) {
            // SAFETY: only n f32 are written, which the caller vouches for.
            unsafe { p.add(i).write_unaligned(x) }
        }
    }
    #[inline(always)]
    unsafe fn load_4x4(self, p: [*const f32; 4]) -> V {
        // SAFETY: each pointer is readable for four f32, by the caller's promise.
        std::array::from_fn(|i| unsafe { p[i / 4].add(i % 4).read_unaligned() })
    }
    #[inline(always)]
    fn prefetch(self, _: *const f32) {}
}
