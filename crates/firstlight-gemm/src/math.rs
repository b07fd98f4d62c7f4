//! The elementwise functions on one vector, as `docs/numerics.md` writes them.

use crate::simd::{ROUND_MAGIC, Simd};

const LOG2_E: f32 = std::f32::consts::LOG2_E;
const LN2_HI: f32 = std::f32::consts::LN_2;
/// `ln 2 - LN2_HI`.
const LN2_LO: f32 = -1.904_654_2e-9;

/// `(e^r - 1 - r) / r^2` for `|r| <= ln(2) / 2`, highest power first.
const EXP_Q: [f32; 5] = bits([0x3ab5_2adf, 0x3c09_1cbe, 0x3d2a_ac54, 0x3e2a_aa49, 0x3eff_fffe]);

/// `erf(x) / x - 1` as a polynomial in `x^2` for `|x| < ERF_SPLIT`, highest power first.
const ERF_P: [f32; 6] = bits([0xba1d_2471, 0x3ba3_a507, 0xbcdb_4733, 0x3de7_0d5a, 0xbec0_9374, 0x3e03_75d3]);
/// `-ln(erfc(x))` for `ERF_SPLIT <= x <= 4`, highest power first.
const ERF_Q: [f32; 7] =
    bits([0xb94c_32e8, 0x3b46_aeba, 0xbcb5_b63d, 0x3dd4_a9bb, 0x3f23_2521, 0x3f90_55b6, 0x395c_10bc]);
const ERF_SPLIT: f32 = 0.921875;

/// `(ln(1 + x) - x + x^2 / 2) / x^3` for `sqrt(1/2) - 1 <= x < sqrt(2) - 1`, highest power first.
const LOG_P: [f32; 9] = bits([
    0x3d8a_2bd2,
    0xbdef_1e0b,
    0x3df3_7836,
    0xbdfe_1104,
    0x3e11_9bb4,
    0xbe2a_ae27,
    0x3e4c_d25b,
    0xbe80_0003,
    0x3eaa_aaa4,
]);
/// The leading bits of `ln 2`, so few that a product with an exponent is exact.
const LOG_LN2_HI: f32 = 0.693_359_4;
/// `ln 2 - LOG_LN2_HI`.
const LOG_LN2_LO: f32 = -2.121_944_4e-4;

const fn bits<const N: usize>(x: [u32; N]) -> [f32; N] {
    let mut out = [0.0; N];
    let mut i = 0;
    while i < N {
        out[i] = f32::from_bits(x[i]);
        i += 1;
    }
    out
}

#[inline(always)]
fn horner<S: Simd, const N: usize>(s: S, x: S::V, coefficients: [f32; N]) -> S::V {
    let mut acc = s.splat(coefficients[0]);
    for c in &coefficients[1..] {
        acc = s.fma(acc, x, s.splat(*c));
    }
    acc
}

/// `(p, t)` with `e^x = (1 + p) * 2^n` and `t = n + ROUND_MAGIC`; `|x|` is at most 104 (or NaN).
#[inline(always)]
fn exp_parts<S: Simd>(s: S, x: S::V) -> (S::V, S::V) {
    let magic = s.splat(ROUND_MAGIC);
    let t = s.fma(x, s.splat(LOG2_E), magic);
    let n = s.sub(t, magic);
    let r = s.fma(n, s.splat(-LN2_HI), x);
    let r = s.fma(n, s.splat(-LN2_LO), r);
    let q = horner(s, r, EXP_Q);
    (s.fma(q, s.mul(r, r), r), t)
}

#[inline(always)]
pub(crate) fn exp<S: Simd>(s: S, x: S::V) -> S::V {
    // The operand order keeps a NaN.
    let x = s.min(s.splat(89.0), s.max(s.splat(-104.0), x));
    let (p, t) = exp_parts(s, x);
    s.scale(s.add(s.splat(1.0), p), t)
}

#[inline(always)]
pub(crate) fn tanh<S: Simd>(s: S, x: S::V) -> S::V {
    let a = s.abs(x);
    let a = s.min(s.splat(20.0), s.add(a, a));
    let (p, t) = exp_parts(s, a);
    let pow2 = s.scale(s.splat(1.0), t);
    let e = s.fma(p, pow2, s.sub(pow2, s.splat(1.0)));
    s.with_sign(s.div(e, s.add(e, s.splat(2.0))), x)
}

#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(s: S, x: S::V) -> S::V {
    let e = exp(s, s.neg(s.abs(x)));
    let one = s.splat(1.0);
    let numerator = s.select_lt(x, s.splat(0.0), e, one);
    s.div(numerator, s.add(one, e))
}

#[inline(always)]
pub(crate) fn erf<S: Simd>(s: S, x: S::V) -> S::V {
    let small = s.fma(x, horner(s, s.mul(x, x), ERF_P), x);
    let a = s.abs(x);
    let q = horner(s, s.min(s.splat(4.0), a), ERF_Q);
    let large = s.sub(s.splat(1.0), exp(s, s.neg(q)));
    let split = s.splat(ERF_SPLIT);
    s.select_lt(a, split, small, s.with_sign(large, x))
}

#[inline(always)]
pub(crate) fn log<S: Simd>(s: S, x: S::V) -> S::V {
    let (zero, least) = (s.splat(0.0), s.splat(f32::MIN_POSITIVE));
    // Subnormals are scaled by 2^23.
    let normal = s.select_lt(x, least, s.mul(x, s.splat(8_388_608.0)), x);
    let (m, e) = s.split(normal);
    let e = s.select_lt(x, least, s.sub(e, s.splat(23.0)), e);
    let f = s.sub(m, s.splat(1.0));
    let z = s.mul(f, f);
    let y = s.mul(s.mul(f, z), horner(s, f, LOG_P));
    let y = s.fma(e, s.splat(LOG_LN2_LO), y);
    let y = s.fma(s.splat(-0.5), z, y);
    let y = s.fma(e, s.splat(LOG_LN2_HI), s.add(f, y));
    let y = s.select_lt(x, s.splat(f32::INFINITY), y, x);
    let y = s.select_lt(x, s.splat(f32::from_bits(1)), s.splat(f32::NEG_INFINITY), y);
    s.select_lt(x, zero, s.splat(f32::NAN), y)
}

/// `ln(1 + x)` for `x` in 0..=1.
#[inline(always)]
fn log1p<S: Simd>(s: S, x: S::V) -> S::V {
    let u = s.add(s.splat(1.0), x);
    // What the sum has lost, which is small beside it.
    let lost = s.sub(x, s.sub(u, s.splat(1.0)));
    s.add(log(s, u), s.div(lost, u))
}

/// `e^x - 1`.
#[inline(always)]
fn expm1<S: Simd>(s: S, x: S::V) -> S::V {
    let x = s.min(s.splat(89.0), s.max(s.splat(-104.0), x));
    let (p, t) = exp_parts(s, x);
    let pow2 = s.scale(s.splat(1.0), t);
    let one = s.splat(1.0);
    // Where 2^n may overflow, 1 is nothing.
    s.select_lt(s.splat(64.0), x, s.scale(s.add(one, p), t), s.fma(p, pow2, s.sub(pow2, one)))
}

#[inline(always)]
pub(crate) fn elu<S: Simd>(s: S, x: S::V, alpha: f32) -> S::V {
    s.select_lt(x, s.splat(0.0), s.mul(s.splat(alpha), expm1(s, x)), x)
}

#[inline(always)]
pub(crate) fn celu<S: Simd>(s: S, x: S::V, alpha: f32) -> S::V {
    let alpha = s.splat(alpha);
    s.select_lt(x, s.splat(0.0), s.mul(alpha, expm1(s, s.div(x, alpha))), x)
}

#[inline(always)]
pub(crate) fn softplus<S: Simd>(s: S, x: S::V) -> S::V {
    let e = exp(s, s.neg(s.abs(x)));
    // The operand order keeps a NaN.
    s.add(s.max(s.splat(0.0), x), log1p(s, e))
}

#[inline(always)]
pub(crate) fn mish<S: Simd>(s: S, x: S::V) -> S::V {
    let e = exp(s, s.min(s.splat(20.0), x));
    let w = s.mul(e, s.add(e, s.splat(2.0)));
    s.mul(x, s.div(w, s.add(w, s.splat(2.0))))
}

#[inline(always)]
pub(crate) fn gelu<S: Simd>(s: S, x: S::V) -> S::V {
    let t = erf(s, s.mul(x, s.splat(std::f32::consts::FRAC_1_SQRT_2)));
    s.mul(s.mul(s.splat(0.5), x), s.add(s.splat(1.0), t))
}

#[inline(always)]
pub(crate) fn gelu_tanh<S: Simd>(s: S, x: S::V) -> S::V {
    let cube = s.mul(s.mul(x, x), x);
    let inner = s.fma(s.splat(0.044_715), cube, x);
    // sqrt(2 / pi)
    let t = tanh(s, s.mul(s.splat(0.797_884_6), inner));
    s.mul(s.mul(s.splat(0.5), x), s.add(s.splat(1.0), t))
}

/// The nearest integer, the even one of two.
#[inline(always)]
pub(crate) fn round<S: Simd>(s: S, x: S::V) -> S::V {
    // From 2^23 on every f32 is an integer; below, the sum has no bits for a fraction.
    let (a, whole) = (s.abs(x), s.splat(8_388_608.0));
    s.select_lt(a, whole, s.with_sign(s.sub(s.add(a, whole), whole), x), x)
}

#[inline(always)]
pub(crate) fn floor<S: Simd>(s: S, x: S::V) -> S::V {
    let near = round(s, x);
    s.select_lt(x, near, s.sub(near, s.splat(1.0)), near)
}

#[inline(always)]
pub(crate) fn ceil<S: Simd>(s: S, x: S::V) -> S::V {
    let near = round(s, x);
    // The sum of -1 and 1 is +0.
    s.select_lt(near, x, s.with_sign(s.abs(s.add(near, s.splat(1.0))), x), near)
}

#[inline(always)]
pub(crate) fn sign<S: Simd>(s: S, x: S::V) -> S::V {
    let zero = s.splat(0.0);
    let y = s.select_lt(zero, x, s.splat(1.0), s.select_lt(x, zero, s.splat(-1.0), zero));
    s.select_nan(x, x, y)
}

/// `x` if it is greater than 0 or NaN, otherwise +0.
#[inline(always)]
pub(crate) fn relu<S: Simd>(s: S, x: S::V) -> S::V {
    // The maximum keeps a NaN and a -0; adding +0 makes the latter +0.
    let zero = s.splat(0.0);
    s.add(s.max(zero, x), zero)
}

/// `alpha * x + beta`, not above 1 and not below 0.
#[inline(always)]
pub(crate) fn hard_sigmoid<S: Simd>(s: S, x: S::V, alpha: f32, beta: f32) -> S::V {
    clip(s, s.add(s.mul(x, s.splat(alpha)), s.splat(beta)), 0.0, 1.0)
}

/// `x` times its [`hard_sigmoid`] with 1/6 and 1/2.
#[inline(always)]
pub(crate) fn hard_swish<S: Simd>(s: S, x: S::V) -> S::V {
    s.mul(x, hard_sigmoid(s, x, 1.0 / 6.0, 0.5))
}

/// `x`, not below `min`, then not above `max`.
#[inline(always)]
pub(crate) fn clip<S: Simd>(s: S, x: S::V, min: f32, max: f32) -> S::V {
    // The operand order keeps a NaN in `x`, passes over one in a bound, and keeps `x` where it equals a bound.
    s.min(s.splat(max), s.max(s.splat(min), x))
}

/// `x` if it is greater or NaN, otherwise `acc`.
#[inline(always)]
pub(crate) fn max_step<S: Simd>(s: S, acc: S::V, x: S::V) -> S::V {
    s.select_nan(x, x, s.max(x, acc))
}

/// `x` if it is less or NaN, otherwise `acc`.
#[inline(always)]
pub(crate) fn min_step<S: Simd>(s: S, acc: S::V, x: S::V) -> S::V {
    s.select_nan(x, x, s.min(x, acc))
}

#[cfg(test)]
#[path = "math_tests.rs"]
mod tests;
