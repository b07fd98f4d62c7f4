//! Elementwise functions, reductions and row operations over slices, in the orders of `docs/numerics.md`.
//!
//! Everything here is generic over [`Simd`] and takes raw pointers; `table.rs` instantiates it and [`crate::Isa`] wraps it
//! in the safe methods that callers use. An output may be the same memory as an input of the same length (each element is read before
//! it is written), but may not overlap it otherwise.

use crate::math;
use crate::simd::{LANES, Simd};

/// A function of one value; `docs/numerics.md` defines each.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "a variant's formula says what its fields are")]
pub enum Unary {
    /// `-x`
    Neg,
    /// `|x|`
    Abs,
    /// `sqrt(x)`
    Sqrt,
    /// `1 / x`
    Reciprocal,
    /// `x * x`
    Square,
    /// `x` if it is greater than 0 or NaN, otherwise +0
    Relu,
    /// `e^x`
    Exp,
    /// `tanh(x)`
    Tanh,
    /// `1 / (1 + e^-x)`
    Sigmoid,
    /// `erf(x)`
    Erf,
    /// `alpha * x + beta`, not above 1 and not below 0
    HardSigmoid { alpha: f32, beta: f32 },
    /// `x` times its `HardSigmoid` with 1/6 and 1/2
    HardSwish,
    /// `x`, not below `min`, then not above `max`
    Clip { min: f32, max: f32 },
    /// The natural logarithm
    Log,
    /// The greatest integer that is not above `x`
    Floor,
    /// The least integer that is not below `x`
    Ceil,
    /// The nearest integer, the even one of two
    Round,
    /// 1, 0 or -1, as `x` is above, at or below 0; NaN stays
    Sign,
    /// `x` where it is not below 0, else `alpha * x`
    LeakyRelu { alpha: f32 },
    /// `x` where it is not below 0, else `alpha * (e^x - 1)`
    Elu { alpha: f32 },
    /// `gamma` times `Elu`
    Selu { alpha: f32, gamma: f32 },
    /// `x` where it is not below 0, else `alpha * (e^(x / alpha) - 1)`
    Celu { alpha: f32 },
    /// `ln(1 + e^x)`
    Softplus,
    /// `x / (1 + |x|)`
    Softsign,
    /// `x / 2 * (1 + erf(x / sqrt(2)))`
    Gelu,
    /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`
    GeluTanh,
    /// `x * tanh(ln(1 + e^x))`
    Mish,
    /// `x` where it is above `alpha`, else 0
    ThresholdedRelu { alpha: f32 },
}

/// A function of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`
    Div,
    /// `b` if it is greater or NaN, otherwise `a`
    Max,
    /// `b` if it is less or NaN, otherwise `a`
    Min,
}

/// A reduction of a row to one value: 16 lanes, then the fixed tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// The sum; +0 for no elements.
    Sum,
    /// The greatest; NaN wins; -inf for no elements.
    Max,
    /// The least; NaN wins; +inf for no elements.
    Min,
}

#[inline(always)]
fn binary_v<S: Simd>(s: S, op: Binary, a: S::V, b: S::V) -> S::V {
    match op {
        Binary::Add => s.add(a, b),
        Binary::Sub => s.sub(a, b),
        Binary::Mul => s.mul(a, b),
        Binary::Div => s.div(a, b),
        Binary::Max => math::max_step(s, a, b),
        Binary::Min => math::min_step(s, a, b),
    }
}

/// `out[i] = f(x[i])`.
///
/// # Safety
/// `x` is readable and `out` writable for `n` f32.
#[inline(always)]
unsafe fn map1<S: Simd>(s: S, x: *const f32, out: *mut f32, n: usize, f: impl Fn(S::V) -> S::V) {
    let mut i = 0;
    // SAFETY: every access is to elements below n.
    unsafe {
        while i + LANES <= n {
            s.store(out.add(i), f(s.load(x.add(i))));
            i += LANES;
        }
        if i < n {
            s.store_n(out.add(i), f(s.load_n(x.add(i), n - i)), n - i);
        }
    }
}

/// `out[i] = f(a[i], b[i])`.
///
/// # Safety
/// `a` and `b` are readable and `out` writable for `n` f32.
#[inline(always)]
unsafe fn map2<S: Simd>(s: S, a: *const f32, b: *const f32, out: *mut f32, n: usize, f: impl Fn(S::V, S::V) -> S::V) {
    let mut i = 0;
    // SAFETY: every access is to elements below n.
    unsafe {
        while i + LANES <= n {
            s.store(out.add(i), f(s.load(a.add(i)), s.load(b.add(i))));
            i += LANES;
        }
        if i < n {
            s.store_n(out.add(i), f(s.load_n(a.add(i), n - i), s.load_n(b.add(i), n - i)), n - i);
        }
    }
}

/// # Safety
/// `x` is readable and `out` writable for `n` f32.
#[inline(always)]
pub(crate) unsafe fn unary<S: Simd>(s: S, op: Unary, x: *const f32, out: *mut f32, n: usize) {
    // One loop per function: the match is outside them.
    macro_rules! each {
        ($f:expr) => {
            // SAFETY: the caller's promise is this call's.
            unsafe { map1(s, x, out, n, $f) }
        };
    }
    match op {
        Unary::Neg => each!(
            #[inline(always)]
            |v| s.neg(v)
        ),
        Unary::Abs => each!(
            #[inline(always)]
            |v| s.abs(v)
        ),
        Unary::Sqrt => each!(
            #[inline(always)]
            |v| s.sqrt(v)
        ),
        Unary::Reciprocal => each!(
            #[inline(always)]
            |v| s.div(s.splat(1.0), v)
        ),
        Unary::Square => each!(
            #[inline(always)]
            |v| s.mul(v, v)
        ),
        Unary::Relu => each!(
            #[inline(always)]
            |v| math::relu(s, v)
        ),
        Unary::Exp => each!(
            #[inline(always)]
            |v| math::exp(s, v)
        ),
        Unary::Tanh => each!(
            #[inline(always)]
            |v| math::tanh(s, v)
        ),
        Unary::Sigmoid => each!(
            #[inline(always)]
            |v| math::sigmoid(s, v)
        ),
        Unary::Erf => each!(
            #[inline(always)]
            |v| math::erf(s, v)
        ),
        Unary::HardSigmoid { alpha, beta } => each!(
            #[inline(always)]
            |v| math::hard_sigmoid(s, v, alpha, beta)
        ),
        Unary::HardSwish => each!(
            #[inline(always)]
            |v| math::hard_swish(s, v)
        ),
        Unary::Clip { min, max } => each!(
            #[inline(always)]
            |v| math::clip(s, v, min, max)
        ),
        Unary::Log => each!(
            #[inline(always)]
            |v| math::log(s, v)
        ),
        Unary::Floor => each!(
            #[inline(always)]
            |v| math::floor(s, v)
        ),
        Unary::Ceil => each!(
            #[inline(always)]
            |v| math::ceil(s, v)
        ),
        Unary::Round => each!(
            #[inline(always)]
            |v| math::round(s, v)
        ),
        Unary::Sign => each!(
            #[inline(always)]
            |v| math::sign(s, v)
        ),
        Unary::LeakyRelu { alpha } => each!(
            #[inline(always)]
            |v| s.select_lt(v, s.splat(0.0), s.mul(s.splat(alpha), v), v)
        ),
        Unary::Elu { alpha } => each!(
            #[inline(always)]
            |v| math::elu(s, v, alpha)
        ),
        Unary::Selu { alpha, gamma } => each!(
            #[inline(always)]
            |v| s.mul(s.splat(gamma), math::elu(s, v, alpha))
        ),
        Unary::Celu { alpha } => each!(
            #[inline(always)]
            |v| math::celu(s, v, alpha)
        ),
        Unary::Softplus => each!(
            #[inline(always)]
            |v| math::softplus(s, v)
        ),
        Unary::Softsign => each!(
            #[inline(always)]
            |v| s.div(v, s.add(s.splat(1.0), s.abs(v)))
        ),
        Unary::Gelu => each!(
            #[inline(always)]
            |v| math::gelu(s, v)
        ),
        Unary::GeluTanh => each!(
            #[inline(always)]
            |v| math::gelu_tanh(s, v)
        ),
        Unary::Mish => each!(
            #[inline(always)]
            |v| math::mish(s, v)
        ),
        Unary::ThresholdedRelu { alpha } => each!(
            #[inline(always)]
            |v| s.select_lt(s.splat(alpha), v, v, s.splat(0.0))
        ),
    }
}

/// # Safety
/// `a` and `b` are readable and `out` writable for `n` f32.
#[inline(always)]
pub(crate) unsafe fn binary<S: Simd>(s: S, op: Binary, a: *const f32, b: *const f32, out: *mut f32, n: usize) {
    macro_rules! arms {
        ($($op:ident),*) => { match op { $(Binary::$op => {
            // SAFETY: the caller's promise is this call's.
            unsafe { map2(s, a, b, out, n, #[inline(always)] |a, b| binary_v(s, Binary::$op, a, b)) }
        })* } };
    }
    arms!(Add, Sub, Mul, Div, Max, Min)
}

/// `out[i] = a[i] op b`, or `b op a[i]` if `swap`.
///
/// # Safety
/// `a` is readable and `out` writable for `n` f32.
#[inline(always)]
pub(crate) unsafe fn binary_scalar<S: Simd>(
    s: S,
    op: Binary,
    a: *const f32,
    b: f32,
    swap: bool,
    out: *mut f32,
    n: usize,
) {
    let b = s.splat(b);
    macro_rules! arms {
        ($($op:ident),*) => { match (op, swap) { $(
            // SAFETY: the caller's promise is this call's.
            (Binary::$op, false) => unsafe { map1(s, a, out, n, #[inline(always)] |v| binary_v(s, Binary::$op, v, b)) },
            // SAFETY: the caller's promise is this call's.
            (Binary::$op, true) => unsafe { map1(s, a, out, n, #[inline(always)] |v| binary_v(s, Binary::$op, b, v)) },
        )* } };
    }
    arms!(Add, Sub, Mul, Div, Max, Min)
}

/// Combines 16 lanes: `i` with `i + 8`, then `+ 4`, `+ 2`, `+ 1`.
#[inline(always)]
fn tree(mut lanes: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = f(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// The sum of `f(x[i])`.
///
/// # Safety
/// `x` is readable for `n` f32.
#[inline(always)]
unsafe fn sum_of<S: Simd>(s: S, x: *const f32, n: usize, f: impl Fn(S::V) -> S::V) -> f32 {
    let mut acc = s.splat(0.0);
    let mut i = 0;
    // SAFETY: every access is to elements below n.
    unsafe {
        while i + LANES <= n {
            acc = s.add(acc, f(s.load(x.add(i))));
            i += LANES;
        }
        let mut lanes = s.to_array(acc);
        if i < n {
            let next = s.to_array(s.add(acc, f(s.load_n(x.add(i), n - i))));
            lanes[..n - i].copy_from_slice(&next[..n - i]);
        }
        tree(lanes, |a, b| a + b)
    }
}

/// The greatest or the least.
///
/// # Safety
/// `x` is readable for `n` f32.
#[inline(always)]
unsafe fn extreme<S: Simd>(
    s: S,
    x: *const f32,
    n: usize,
    start: f32,
    step: impl Fn(S::V, S::V) -> S::V,
    step1: impl Fn(f32, f32) -> f32,
) -> f32 {
    // Lanes start at `start`, which every other value replaces or equals.
    let mut acc = s.splat(start);
    let mut i = 0;
    // SAFETY: every access is to elements below n.
    unsafe {
        while i + LANES <= n {
            acc = step(acc, s.load(x.add(i)));
            i += LANES;
        }
        let mut lanes = s.to_array(acc);
        if i < n {
            let next = s.to_array(step(acc, s.load_n(x.add(i), n - i)));
            lanes[..n - i].copy_from_slice(&next[..n - i]);
        }
        tree(lanes, step1)
    }
}

#[inline(always)]
fn max1(acc: f32, x: f32) -> f32 {
    if x > acc || x.is_nan() { x } else { acc }
}

#[inline(always)]
fn min1(acc: f32, x: f32) -> f32 {
    if x < acc || x.is_nan() { x } else { acc }
}

/// # Safety
/// `x` is readable for `n` f32.
#[inline(always)]
pub(crate) unsafe fn reduce<S: Simd>(s: S, op: Reduce, x: *const f32, n: usize) -> f32 {
    // SAFETY: the caller's promise is each call's.
    unsafe {
        match op {
            Reduce::Sum => sum_of(
                s,
                x,
                n,
                #[inline(always)]
                |v| v,
            ),
            Reduce::Max => extreme(
                s,
                x,
                n,
                f32::NEG_INFINITY,
                #[inline(always)]
                |a, v| math::max_step(s, a, v),
                max1,
            ),
            Reduce::Min => extreme(
                s,
                x,
                n,
                f32::INFINITY,
                #[inline(always)]
                |a, v| math::min_step(s, a, v),
                min1,
            ),
        }
    }
}

/// `out[j]` = the reduction over `i` in `0..rows` of `x[i * stride + j]`, for `j` in `0..n`.
///
/// # Safety
/// `x` is readable for `(rows - 1) * stride + n` f32 (none if `rows` is 0) and `out` writable for `n`.
#[inline(always)]
pub(crate) unsafe fn reduce_rows<S: Simd>(
    s: S,
    op: Reduce,
    x: *const f32,
    rows: usize,
    stride: usize,
    out: *mut f32,
    n: usize,
) {
    macro_rules! arm {
        ($start:expr, $step:expr) => {{
            let mut j = 0;
            while j < n {
                let width = LANES.min(n - j);
                let mut acc = [s.splat($start); LANES];
                for i in 0..rows {
                    // SAFETY: row i, columns j..j + width.
                    let v = unsafe { s.load_n(x.add(i * stride + j), width) };
                    acc[i % LANES] = $step(acc[i % LANES], v);
                }
                let mut half = LANES / 2;
                while half > 0 {
                    for i in 0..half {
                        acc[i] = $step(acc[i], acc[i + half]);
                    }
                    half /= 2;
                }
                // SAFETY: columns j..j + width of the output.
                unsafe { s.store_n(out.add(j), acc[0], width) };
                j += width;
            }
        }};
    }
    match op {
        Reduce::Sum => arm!(0.0, |a, v| s.add(a, v)),
        Reduce::Max => arm!(f32::NEG_INFINITY, |a, v| math::max_step(s, a, v)),
        Reduce::Min => arm!(f32::INFINITY, |a, v| math::min_step(s, a, v)),
    }
}

/// # Safety
/// `x` is readable and `out` writable for `n` f32.
#[inline(always)]
pub(crate) unsafe fn softmax_row<S: Simd>(s: S, x: *const f32, out: *mut f32, n: usize) {
    // SAFETY: the caller's promise is each call's; `out` is read only after it was written.
    unsafe {
        let max = s.splat(reduce(s, Reduce::Max, x, n));
        map1(
            s,
            x,
            out,
            n,
            #[inline(always)]
            |v| math::exp(s, s.sub(v, max)),
        );
        let sum = s.splat(sum_of(
            s,
            out,
            n,
            #[inline(always)]
            |v| v,
        ));
        map1(
            s,
            out,
            out,
            n,
            #[inline(always)]
            |v| s.div(v, sum),
        );
    }
}

/// # Safety
/// `x`, `scale` and `bias` (unless null) are readable and `out` writable for `n` f32.
#[inline(always)]
pub(crate) unsafe fn layer_norm_row<S: Simd>(
    s: S,
    x: *const f32,
    scale: *const f32,
    bias: *const f32,
    eps: f32,
    out: *mut f32,
    n: usize,
) -> (f32, f32) {
    // SAFETY: the caller's promise is each call's.
    unsafe {
        let mean = sum_of(
            s,
            x,
            n,
            #[inline(always)]
            |v| v,
        ) / n as f32;
        let m = s.splat(mean);
        let square = sum_of(
            s,
            x,
            n,
            #[inline(always)]
            |v| {
                let d = s.sub(v, m);
                s.mul(d, d)
            },
        );
        let inv = 1.0 / (square / n as f32 + eps).sqrt();
        let i = s.splat(inv);
        map2(
            s,
            x,
            scale,
            out,
            n,
            #[inline(always)]
            |v, w| s.mul(s.mul(s.sub(v, m), i), w),
        );
        if !bias.is_null() {
            map2(
                s,
                out,
                bias,
                out,
                n,
                #[inline(always)]
                |v, b| s.add(v, b),
            );
        }
        (mean, inv)
    }
}

/// The sum of the rounded squares of `x[i] - mean`.
///
/// # Safety
/// `x` is readable for `n` f32.
#[inline(always)]
pub(crate) unsafe fn sum_squared_deviations<S: Simd>(s: S, x: *const f32, n: usize, mean: f32) -> f32 {
    let m = s.splat(mean);
    // SAFETY: the caller's promise is this call's.
    unsafe {
        sum_of(
            s,
            x,
            n,
            #[inline(always)]
            |v| {
                let d = s.sub(v, m);
                s.mul(d, d)
            },
        )
    }
}
