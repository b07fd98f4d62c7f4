//! The lanes as one zmm register (AVX-512) or two ymm registers (AVX2 with FMA).

use super::{LANES, ROUND_MAGIC, SQRT_HALF_BITS, Simd};
use std::arch::x86_64::*;

/// Proof that the CPU has AVX-512 F, BW, DQ and VL, and AVX2 and FMA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

/// Proof that the CPU has AVX2 and FMA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx512 {
    /// # Safety
    /// The CPU has AVX-512 F, BW, DQ and VL, and AVX2 and FMA.
    #[inline(always)]
    pub(crate) unsafe fn assume() -> Self {
        Avx512(())
    }
}

impl Avx2 {
    /// # Safety
    /// The CPU has AVX2 and FMA.
    #[inline(always)]
    pub(crate) unsafe fn assume() -> Self {
        Avx2(())
    }
}

/// An intrinsic whose only demand is the instruction set that the token vouches for.
macro_rules! isa {
    ($e:expr) => {{
        // SAFETY: `self` exists only where `assume` was promised the instruction set.
        #[allow(unused_unsafe)]
        unsafe {
            $e
        }
    }};
}

#[inline(always)]
fn mask(lo: usize, hi: usize) -> __mmask16 {
    (((1u32 << hi) - 1) & !((1u32 << lo) - 1)) as __mmask16
}

impl Simd for Avx512 {
    type V = __m512;
    const ACCUMULATORS: usize = 24;

    #[inline(always)]
    fn table(self) -> &'static crate::table::Table {
        &crate::table::AVX512
    }

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        isa!(_mm512_set1_ps(x))
    }
    #[inline(always)]
    fn to_array(self, x: __m512) -> [f32; LANES] {
        let mut out = [0.0; LANES];
        isa!(_mm512_storeu_ps(out.as_mut_ptr(), x));
        out
    }
    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        isa!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        isa!(_mm512_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        isa!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        isa!(_mm512_div_ps(a, b))
    }
    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        isa!(_mm512_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn sqrt(self, a: __m512) -> __m512 {
        isa!(_mm512_sqrt_ps(a))
    }
    #[inline(always)]
    fn abs(self, a: __m512) -> __m512 {
        isa!(_mm512_andnot_ps(_mm512_set1_ps(-0.0), a))
    }
    #[inline(always)]
    fn neg(self, a: __m512) -> __m512 {
        isa!(_mm512_xor_ps(_mm512_set1_ps(-0.0), a))
    }
    #[inline(always)]
    fn with_sign(self, magnitude: __m512, sign: __m512) -> __m512 {
        isa!(_mm512_or_ps(magnitude, _mm512_and_ps(_mm512_set1_ps(-0.0), sign)))
    }
    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        isa!(_mm512_min_ps(a, b))
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        isa!(_mm512_max_ps(a, b))
    }
    #[inline(always)]
    fn select_lt(self, a: __m512, b: __m512, x: __m512, y: __m512) -> __m512 {
        isa!(_mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b), y, x))
    }
    #[inline(always)]
    fn select_nan(self, a: __m512, x: __m512, y: __m512) -> __m512 {
        isa!(_mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), y, x))
    }
    #[inline(always)]
    fn scale(self, p: __m512, t: __m512) -> __m512 {
        isa!(_mm512_scalef_ps(p, _mm512_sub_ps(t, _mm512_set1_ps(ROUND_MAGIC))))
    }
    #[inline(always)]
    fn split(self, x: __m512) -> (__m512, __m512) {
        isa!({
            let bits = _mm512_castps_si512(x);
            let e = _mm512_srai_epi32::<23>(_mm512_sub_epi32(bits, _mm512_set1_epi32(SQRT_HALF_BITS)));
            let m = _mm512_sub_epi32(bits, _mm512_slli_epi32::<23>(e));
            (_mm512_castsi512_ps(m), _mm512_cvtepi32_ps(e))
        })
    }
    #[inline(always)]
    fn transpose4(self, [a, b, c, d]: [__m512; 4]) -> [__m512; 4] {
        isa!({
            let ab_lo = _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
            let ab_hi = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
            let cd_lo = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));
            let cd_hi = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
            [
                _mm512_castpd_ps(_mm512_unpacklo_pd(ab_lo, cd_lo)),
                _mm512_castpd_ps(_mm512_unpackhi_pd(ab_lo, cd_lo)),
                _mm512_castpd_ps(_mm512_unpacklo_pd(ab_hi, cd_hi)),
                _mm512_castpd_ps(_mm512_unpackhi_pd(ab_hi, cd_hi)),
            ]
        })
    }

    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> __m512 {
        // SAFETY: the token vouches for the instructions, the caller for the 16 f32; loadu needs no alignment.
        unsafe { _mm512_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, x: __m512) {
        // SAFETY: the token vouches for the instructions, the caller for the 16 f32; storeu needs no alignment.
        unsafe { _mm512_storeu_ps(p, x) }
    }
    #[inline(always)]
    unsafe fn load1(self, p: *const f32) -> __m512 {
        // SAFETY: the token vouches for the instructions, the caller for the f32.
        unsafe { _mm512_set1_ps(p.read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load_n(self, p: *const f32, n: usize) -> __m512 {
        // SAFETY: the token vouches for the instructions, the caller for the first n f32; masked lanes are not accessed.
        unsafe { _mm512_maskz_loadu_ps(mask(0, n), p) }
    }
    #[inline(always)]
    unsafe fn load_range(self, p: *const f32, lo: usize, hi: usize) -> __m512 {
        // SAFETY: the token vouches for the instructions, the caller for lanes lo..hi; masked lanes are not accessed.
        unsafe { _mm512_maskz_loadu_ps(mask(lo, hi), p) }
    }
    #[inline(always)]
    unsafe fn load_range_2(self, p: *const f32, lo: usize, hi: usize) -> __m512 {
        // Lanes 2*lo ..= 2*hi-2 of a 32-lane vector in two halves, then the even ones.
        let wide: u32 = if hi == lo { 0 } else { (u32::MAX >> (33 - 2 * hi)) & (u32::MAX << (2 * lo)) };
        let evens = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30i32];
        // SAFETY: the token vouches for the instructions; the masks cover the f32 from p + 2*lo to p + 2*(hi-1) only, which
        // the caller vouches for; masked lanes are not accessed.
        unsafe {
            let a = _mm512_maskz_loadu_ps(wide as __mmask16, p);
            let b = _mm512_maskz_loadu_ps((wide >> 16) as __mmask16, p.wrapping_add(16));
            _mm512_permutex2var_ps(a, _mm512_loadu_si512(evens.as_ptr().cast()), b)
        }
    }
    #[inline(always)]
    unsafe fn store_n(self, p: *mut f32, x: __m512, n: usize) {
        // SAFETY: the token vouches for the instructions, the caller for the first n f32; masked lanes are not accessed.
        unsafe { _mm512_mask_storeu_ps(p, mask(0, n), x) }
    }
    #[inline(always)]
    unsafe fn load_4x4(self, p: [*const f32; 4]) -> __m512 {
        // SAFETY: the token vouches for the instructions, the caller for four f32 at each pointer.
        unsafe {
            let a = _mm512_castps128_ps512(_mm_loadu_ps(p[0]));
            let b = _mm512_mask_broadcast_f32x4(a, 0x00f0, _mm_loadu_ps(p[1]));
            let c = _mm512_mask_broadcast_f32x4(b, 0x0f00, _mm_loadu_ps(p[2]));
            _mm512_mask_broadcast_f32x4(c, 0xf000, _mm_loadu_ps(p[3]))
        }
    }
    #[inline(always)]
    fn prefetch(self, p: *const f32) {
        isa!(_mm_prefetch::<_MM_HINT_T0>(p.cast()))
    }
}

/// Two halves of eight lanes.
type Pair = [__m256; 2];

/// All-ones in lanes `lo..hi` of the 8 lanes that start at `base`.
#[inline(always)]
fn ymm_mask(_: Avx2, base: i32, lo: usize, hi: usize) -> __m256i {
    // SAFETY: the token vouches for AVX2.
    unsafe {
        let lane = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(base));
        let from = _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(lo as i32 - 1));
        let to = _mm256_cmpgt_epi32(_mm256_set1_epi32(hi as i32), lane);
        _mm256_and_si256(from, to)
    }
}

impl Simd for Avx2 {
    type V = Pair;
    const ACCUMULATORS: usize = 6;

    #[inline(always)]
    fn table(self) -> &'static crate::table::Table {
        &crate::table::AVX2
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Pair {
        isa!([_mm256_set1_ps(x); 2])
    }
    #[inline(always)]
    fn to_array(self, x: Pair) -> [f32; LANES] {
        let mut out = [0.0; LANES];
        isa!({
            _mm256_storeu_ps(out.as_mut_ptr(), x[0]);
            _mm256_storeu_ps(out[8..].as_mut_ptr(), x[1]);
        });
        out
    }
    #[inline(always)]
    fn add(self, a: Pair, b: Pair) -> Pair {
        isa!([_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])])
    }
    #[inline(always)]
    fn sub(self, a: Pair, b: Pair) -> Pair {
        isa!([_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])])
    }
    #[inline(always)]
    fn mul(self, a: Pair, b: Pair) -> Pair {
        isa!([_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])])
    }
    #[inline(always)]
    fn div(self, a: Pair, b: Pair) -> Pair {
        isa!([_mm256_div_ps(a[0], b[0]), _mm256_div_ps(a[1], b[1])])
    }
    #[inline(always)]
    fn fma(self, a: Pair, b: Pair, c: Pair) -> Pair {
        isa!([_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])])
    }
    #[inline(always)]
    fn sqrt(self, a: Pair) -> Pair {
        isa!([_mm256_sqrt_ps(a[0]), _mm256_sqrt_ps(a[1])])
    }
    #[inline(always)]
    fn abs(self, a: Pair) -> Pair {
        isa!({
            let s = _mm256_set1_ps(-0.0);
            [_mm256_andnot_ps(s, a[0]), _mm256_andnot_ps(s, a[1])]
        })
    }
    #[inline(always)]
    fn neg(self, a: Pair) -> Pair {
        isa!({
            let s = _mm256_set1_ps(-0.0);
            [_mm256_xor_ps(s, a[0]), _mm256_xor_ps(s, a[1])]
        })
    }
    #[inline(always)]
    fn with_sign(self, m: Pair, sign: Pair) -> Pair {
        isa!({
            let s = _mm256_set1_ps(-0.0);
            [_mm256_or_ps(m[0], _mm256_and_ps(s, sign[0])), _mm256_or_ps(m[1], _mm256_and_ps(s, sign[1]))]
        })
    }
    #[inline(always)]
    fn min(self, a: Pair, b: Pair) -> Pair {
        isa!([_mm256_min_ps(a[0], b[0]), _mm256_min_ps(a[1], b[1])])
    }
    #[inline(always)]
    fn max(self, a: Pair, b: Pair) -> Pair {
        isa!([_mm256_max_ps(a[0], b[0]), _mm256_max_ps(a[1], b[1])])
    }
    #[inline(always)]
    fn select_lt(self, a: Pair, b: Pair, x: Pair, y: Pair) -> Pair {
        isa!([
            _mm256_blendv_ps(y[0], x[0], _mm256_cmp_ps::<_CMP_LT_OQ>(a[0], b[0])),
            _mm256_blendv_ps(y[1], x[1], _mm256_cmp_ps::<_CMP_LT_OQ>(a[1], b[1])),
        ])
    }
    #[inline(always)]
    fn select_nan(self, a: Pair, x: Pair, y: Pair) -> Pair {
        isa!([
            _mm256_blendv_ps(y[0], x[0], _mm256_cmp_ps::<_CMP_UNORD_Q>(a[0], a[0])),
            _mm256_blendv_ps(y[1], x[1], _mm256_cmp_ps::<_CMP_UNORD_Q>(a[1], a[1])),
        ])
    }
    #[inline(always)]
    fn scale(self, p: Pair, t: Pair) -> Pair {
        #[inline(always)]
        fn half(_: Avx2, p: __m256, t: __m256) -> __m256 {
            isa!({
                let n = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_castps_si256(_mm256_set1_ps(ROUND_MAGIC)));
                let lo = _mm256_srai_epi32::<1>(n);
                let hi = _mm256_sub_epi32(n, lo);
                let bias = _mm256_set1_epi32(127);
                let lo = _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(lo, bias)));
                let hi = _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(hi, bias)));
                _mm256_mul_ps(_mm256_mul_ps(p, lo), hi)
            })
        }
        [half(self, p[0], t[0]), half(self, p[1], t[1])]
    }
    #[inline(always)]
    fn split(self, x: Pair) -> (Pair, Pair) {
        #[inline(always)]
        fn half(_: Avx2, x: __m256) -> (__m256, __m256) {
            isa!({
                let bits = _mm256_castps_si256(x);
                let e = _mm256_srai_epi32::<23>(_mm256_sub_epi32(bits, _mm256_set1_epi32(SQRT_HALF_BITS)));
                let m = _mm256_sub_epi32(bits, _mm256_slli_epi32::<23>(e));
                (_mm256_castsi256_ps(m), _mm256_cvtepi32_ps(e))
            })
        }
        let ((m0, e0), (m1, e1)) = (half(self, x[0]), half(self, x[1]));
        ([m0, m1], [e0, e1])
    }
    #[inline(always)]
    fn transpose4(self, [a, b, c, d]: [Pair; 4]) -> [Pair; 4] {
        #[inline(always)]
        fn half(_: Avx2, [a, b, c, d]: [__m256; 4]) -> [__m256; 4] {
            isa!({
                let ab_lo = _mm256_castps_pd(_mm256_unpacklo_ps(a, b));
                let ab_hi = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
                let cd_lo = _mm256_castps_pd(_mm256_unpacklo_ps(c, d));
                let cd_hi = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));
                [
                    _mm256_castpd_ps(_mm256_unpacklo_pd(ab_lo, cd_lo)),
                    _mm256_castpd_ps(_mm256_unpackhi_pd(ab_lo, cd_lo)),
                    _mm256_castpd_ps(_mm256_unpacklo_pd(ab_hi, cd_hi)),
                    _mm256_castpd_ps(_mm256_unpackhi_pd(ab_hi, cd_hi)),
                ]
            })
        }
        let x = half(self, [a[0], b[0], c[0], d[0]]);
        let y = half(self, [a[1], b[1], c[1], d[1]]);
        [[x[0], y[0]], [x[1], y[1]], [x[2], y[2]], [x[3], y[3]]]
    }

    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> Pair {
        // SAFETY: the token vouches for the instructions, the caller for the 16 f32; loadu needs no alignment.
        unsafe { [_mm256_loadu_ps(p), _mm256_loadu_ps(p.add(8))] }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, x: Pair) {
        // SAFETY: the token vouches for the instructions, the caller for the 16 f32; storeu needs no alignment.
        unsafe {
            _mm256_storeu_ps(p, x[0]);
            _mm256_storeu_ps(p.add(8), x[1]);
        }
    }
    #[inline(always)]
    unsafe fn load1(self, p: *const f32) -> Pair {
        // SAFETY: the token vouches for the instructions, the caller for the f32.
        unsafe { [_mm256_set1_ps(p.read_unaligned()); 2] }
    }
    #[inline(always)]
    unsafe fn load_n(self, p: *const f32, n: usize) -> Pair {
        // SAFETY: the caller vouches for lanes 0..n.
        unsafe { self.load_range(p, 0, n) }
    }
    #[inline(always)]
    unsafe fn load_range(self, p: *const f32, lo: usize, hi: usize) -> Pair {
        // SAFETY: the token vouches for the instructions, the caller for lanes lo..hi; masked lanes are not accessed.
        unsafe {
            [
                _mm256_maskload_ps(p, ymm_mask(self, 0, lo, hi)),
                _mm256_maskload_ps(p.wrapping_add(8), ymm_mask(self, 8, lo, hi)),
            ]
        }
    }
    #[inline(always)]
    unsafe fn load_range_2(self, p: *const f32, lo: usize, hi: usize) -> Pair {
        // Lanes 2*lo .. 2*hi-1 of a 32-lane vector in four quarters, then the even ones.
        let (lo, hi) = if lo == hi { (0, 0) } else { (2 * lo, 2 * hi - 1) };
        #[inline(always)]
        fn evens(_: Avx2, a: __m256, b: __m256) -> __m256 {
            isa!({
                let x = _mm256_shuffle_ps::<0b10_00_10_00>(a, b);
                _mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(_mm256_castps_pd(x)))
            })
        }
        // SAFETY: the token vouches for the instructions, the caller for the f32 lo..hi; masked lanes are not accessed.
        let quarters: [__m256; 4] = unsafe {
            [
                _mm256_maskload_ps(p, ymm_mask(self, 0, lo, hi)),
                _mm256_maskload_ps(p.wrapping_add(8), ymm_mask(self, 8, lo, hi)),
                _mm256_maskload_ps(p.wrapping_add(16), ymm_mask(self, 16, lo, hi)),
                _mm256_maskload_ps(p.wrapping_add(24), ymm_mask(self, 24, lo, hi)),
            ]
        };
        [evens(self, quarters[0], quarters[1]), evens(self, quarters[2], quarters[3])]
    }
    #[inline(always)]
    unsafe fn store_n(self, p: *mut f32, x: Pair, n: usize) {
        // SAFETY: the token vouches for the instructions, the caller for the first n f32; masked lanes are not accessed.
        unsafe {
            _mm256_maskstore_ps(p, ymm_mask(self, 0, 0, n), x[0]);
            _mm256_maskstore_ps(p.wrapping_add(8), ymm_mask(self, 8, 0, n), x[1]);
        }
    }
    #[inline(always)]
    unsafe fn load_4x4(self, p: [*const f32; 4]) -> Pair {
        // SAFETY: the token vouches for the instructions, the caller for four f32 at each pointer.
        unsafe {
            [
                _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(_mm_loadu_ps(p[0])), _mm_loadu_ps(p[1])),
                _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(_mm_loadu_ps(p[2])), _mm_loadu_ps(p[3])),
            ]
        }
    }
    #[inline(always)]
    fn prefetch(self, p: *const f32) {
        isa!(_mm_prefetch::<_MM_HINT_T0>(p.cast()))
    }
}
