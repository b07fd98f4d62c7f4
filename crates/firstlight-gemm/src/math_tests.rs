//! Every instruction set of this CPU against f64, and against each other bit for bit.

use crate::{Binary, Isa, IsaKind, Reduce, Src, Unary};

fn isas() -> Vec<Isa> {
    IsaKind::ALL.into_iter().filter_map(Isa::of).collect()
}

/// erf in f64: Maclaurin series, or one minus a continued fraction for erfc.
fn erf64(x: f64) -> f64 {
    let a = x.abs();
    let r = if a < 2.5 {
        let (mut term, mut sum, mut n) = (a, a, 0.0);
        while term.abs() > sum * 1e-19 {
            n += 1.0;
            term *= -a * a / n;
            sum += term / (2.0 * n + 1.0);
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    } else if a > 6.0 {
        1.0
    } else {
        let mut f = a;
        for k in (1..60).rev() {
            f = a + f64::from(k) / 2.0 / f;
        }
        1.0 - (-a * a).exp() / f / std::f64::consts::PI.sqrt()
    };
    r.copysign(x)
}

fn sigmoid64(x: f64) -> f64 {
    if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
}

/// Distance of `got` from `want` in units of the last place of `want` as f32.
fn ulps(got: f32, want: f64) -> f64 {
    let w = want as f32;
    if got == w || (got.is_nan() && w.is_nan()) {
        return 0.0;
    }
    if !w.is_finite() || !got.is_finite() {
        return f64::INFINITY;
    }
    let exponent = (w.abs().to_bits() >> 23).max(1) as i32;
    (f64::from(got) - want).abs() / 2f64.powi(exponent - 150)
}

/// Every `STEP`-th f32 bit pattern, so all signs, exponents, subnormals, infinities and NaN.
const STEP: usize = 4_001;

fn sweep() -> Vec<f32> {
    let special =
        [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, f32::MAX, f32::MIN, 1e-45, -1e-45];
    let near = [
        1.0, 0.5, 1.5, 0.70710677, 8388608.0, -0.5, -1.0, 0.921875, 88.72284, -87.33655, -103.97208, -103.28, 4.0,
        3.919206, 10.0, -17.0,
    ]
    .into_iter()
    .flat_map(|x: f32| (-3..=3).map(move |d: i32| f32::from_bits(x.to_bits().wrapping_add_signed(d))));
    (0..=u32::MAX).step_by(STEP).map(f32::from_bits).chain(special).chain(near).collect()
}

#[test]
fn functions_stay_within_their_ulps_and_agree_over_instruction_sets() {
    type Case = (Unary, fn(f64) -> f64, f64);
    let cases: [Case; 12] = [
        (Unary::Exp, f64::exp, 1.1),
        (Unary::Tanh, f64::tanh, 2.6),
        (Unary::Sigmoid, sigmoid64, 2.4),
        (Unary::Erf, erf64, 1.1),
        (Unary::Sqrt, f64::sqrt, 0.5),
        (Unary::Log, f64::ln, 1.0),
        (Unary::Elu { alpha: 1.0 }, |x| if x < 0.0 { x.exp_m1() } else { x }, 1.1),
        (Unary::Selu { alpha: 0.5, gamma: 3.0 }, |x| 3.0 * if x < 0.0 { 0.5 * x.exp_m1() } else { x }, 2.0),
        (Unary::Celu { alpha: 2.0 }, |x| if x < 0.0 { 2.0 * (x / 2.0).exp_m1() } else { x }, 1.1),
        (Unary::Celu { alpha: -2.0 }, |x| if x < 0.0 { -2.0 * (x / -2.0).exp_m1() } else { x }, 1.5),
        (Unary::Softplus, |x| x.max(0.0) + (-x.abs()).exp().ln_1p(), 2.0),
        (Unary::Softsign, |x| x / (1.0 + x.abs()), 1.6),
    ];
    let x = sweep();
    for (op, f, bound) in cases {
        let mut first: Option<Vec<u32>> = None;
        for isa in isas() {
            let mut y = vec![7.0; x.len()];
            isa.unary(op, &x, &mut y);
            let worst =
                x.iter().zip(&y).map(|(x, y)| (ulps(*y, f(f64::from(*x))), *x, *y)).max_by(|a, b| a.0.total_cmp(&b.0));
            let worst = worst.unwrap();
            assert!(worst.0 <= bound, "{op:?} on {isa:?}: (ULP, x, y) = {worst:?}");
            let bits: Vec<u32> = y.iter().map(|y| if y.is_nan() { 0x7fc0_0000 } else { y.to_bits() }).collect();
            assert!(*first.get_or_insert_with(|| bits.clone()) == bits, "{op:?} differs on {isa:?}");
        }
    }
}

#[test]
fn signed_zeros_infinities_and_nan() {
    for isa in isas() {
        let one = |op, x: f32| {
            let mut y = [9.0];
            isa.unary(op, &[x], &mut y);
            y[0]
        };
        for op in [Unary::Tanh, Unary::Erf, Unary::Sqrt] {
            assert_eq!(one(op, -0.0).to_bits(), (-0.0f32).to_bits(), "{op:?}(-0) on {isa:?}");
            assert_eq!(one(op, 0.0).to_bits(), 0, "{op:?}(+0) on {isa:?}");
        }
        for op in [Unary::Exp, Unary::Tanh, Unary::Sigmoid, Unary::Erf, Unary::Relu, Unary::HardSwish] {
            assert!(one(op, f32::NAN).is_nan(), "{op:?}(NaN) on {isa:?}");
        }
        assert_eq!(one(Unary::Exp, f32::INFINITY), f32::INFINITY);
        assert_eq!(one(Unary::Exp, f32::NEG_INFINITY).to_bits(), 0);
        assert_eq!([one(Unary::Tanh, f32::INFINITY), one(Unary::Tanh, f32::NEG_INFINITY)], [1.0, -1.0]);
        assert_eq!([one(Unary::Sigmoid, f32::INFINITY), one(Unary::Sigmoid, f32::NEG_INFINITY)], [1.0, 0.0]);
        assert_eq!([one(Unary::Relu, -1e-45).to_bits(), one(Unary::Relu, -0.0).to_bits()], [0, 0]);
    }
}

#[test]
fn simple_functions_match_scalar_code() {
    let hard = |x: f32, alpha: f32, beta: f32| (alpha * x + beta).clamp(0.0, 1.0);
    let clip = |x: f32, min: f32, max: f32| {
        let x = if x < min { min } else { x };
        if x > max { max } else { x }
    };
    let standardize = Unary::Standardize { mean: 0.3, inverse: 1.7, scale: 0.9, bias: 0.1 };
    type Case<'a> = (Unary, &'a dyn Fn(f32) -> f32);
    let cases: [Case<'_>; 15] = [
        (Unary::Reciprocal, &|x| 1.0 / x),
        (Unary::HardSigmoid { alpha: 0.3, beta: -0.1 }, &|x| hard(x, 0.3, -0.1)),
        (Unary::HardSigmoid { alpha: -1.5, beta: 0.5 }, &|x| hard(x, -1.5, 0.5)),
        (Unary::Floor, &f32::floor),
        (Unary::Ceil, &f32::ceil),
        (Unary::Round, &f32::round_ties_even),
        (Unary::Sign, &|x| if x == 0.0 { 0.0 } else { x.signum() }),
        (Unary::LeakyRelu { alpha: 0.1 }, &|x| if x < 0.0 { 0.1 * x } else { x }),
        (Unary::ThresholdedRelu { alpha: -0.5 }, &|x| if x > -0.5 { x } else { 0.0 }),
        (Unary::HardSwish, &|x| x * hard(x, 1.0 / 6.0, 0.5)),
        (Unary::Clip { min: -0.5, max: 6.0 }, &|x| clip(x, -0.5, 6.0)),
        (Unary::Clip { min: 6.0, max: 0.0 }, &|x| clip(x, 6.0, 0.0)),
        (Unary::Clip { min: 0.0, max: f32::NAN }, &|x| clip(x, 0.0, f32::NAN)),
        (Unary::Clip { min: f32::NAN, max: -0.0 }, &|x| clip(x, f32::NAN, -0.0)),
        (standardize, &|x| ((x - 0.3) * 1.7) * 0.9 + 0.1),
    ];
    let x = sweep();
    for isa in isas() {
        for (op, f) in cases {
            let mut y = vec![7.0; x.len()];
            isa.unary(op, &x, &mut y);
            for (x, y) in x.iter().zip(&y) {
                let want = f(*x);
                let same = y.to_bits() == want.to_bits() || (y.is_nan() && want.is_nan());
                assert!(same, "{op:?} of {x:?} on {isa:?} is {y:?}, expected {want:?}");
            }
        }
    }
}

#[test]
fn gelu_and_mish_are_near_in_units_of_the_argument() {
    let exact = |x: f64| 0.5 * x * (1.0 + erf64(x / 2f64.sqrt()));
    let tanh = |x: f64| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh());
    let mish = |x: f64| x * (x.max(0.0) + (-x.abs()).exp().ln_1p()).tanh();
    let x = sweep();
    for (op, f) in [(Unary::Gelu, &exact as &dyn Fn(f64) -> f64), (Unary::GeluTanh, &tanh), (Unary::Mish, &mish)] {
        let mut first: Option<Vec<u32>> = None;
        for isa in isas() {
            let mut y = vec![7.0; x.len()];
            isa.unary(op, &x, &mut y);
            for (x, y) in x.iter().zip(&y) {
                let want = f(f64::from(*x));
                let near = (f64::from(*y) - want).abs() <= 2e-7 * f64::from(x.abs()) + 1e-44;
                let same = (y.is_nan() && want.is_nan()) || f64::from(*y) == want;
                assert!(near || same, "{op:?} of {x:?} on {isa:?} is {y:?}, expected {want:?}");
            }
            let bits: Vec<u32> = y.iter().map(|y| if y.is_nan() { 0x7fc0_0000 } else { y.to_bits() }).collect();
            assert!(*first.get_or_insert_with(|| bits.clone()) == bits, "{op:?} differs on {isa:?}");
        }
    }
}

/// Values whose sums round, with no pattern.
fn noise(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

fn reduce_by_the_book(op: Reduce, x: impl Iterator<Item = f32>) -> f32 {
    let step = |acc: f32, x: f32| match op {
        Reduce::Sum => acc + x,
        Reduce::Max if x > acc || x.is_nan() => x,
        Reduce::Min if x < acc || x.is_nan() => x,
        Reduce::Max | Reduce::Min => acc,
    };
    let start = match op {
        Reduce::Sum => 0.0,
        Reduce::Max => f32::NEG_INFINITY,
        Reduce::Min => f32::INFINITY,
    };
    let mut lanes = [start; 16];
    for (i, x) in x.enumerate() {
        lanes[i % 16] = step(lanes[i % 16], x);
    }
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] = step(lanes[i], lanes[i + half]);
        }
    }
    lanes[0]
}

#[test]
fn reductions_keep_the_written_order() {
    for isa in isas() {
        for n in [0, 1, 2, 15, 16, 17, 31, 47, 100, 384, 1001] {
            let mut x = noise(n, n as u32);
            if n > 40 {
                (x[3], x[21]) = (-0.0, 0.0);
            }
            // The bytes shifted by one, as a mapped weight may lie.
            let mut bytes = vec![0u8];
            bytes.extend(x.iter().flat_map(|x| x.to_ne_bytes()));
            for op in [Reduce::Sum, Reduce::Max, Reduce::Min] {
                let want = reduce_by_the_book(op, x.iter().copied());
                assert_eq!(isa.reduce(op, &x).to_bits(), want.to_bits(), "{op:?} of {n} on {isa:?}");
                assert_eq!(isa.reduce(op, Src::from_bytes(&bytes[1..])).to_bits(), want.to_bits());
                for (cols, stride) in [(1, 1), (7, 9), (16, 16), (35, 40)] {
                    let rows = n / stride;
                    if rows == 0 {
                        continue;
                    }
                    let mut out = vec![5.0; cols];
                    isa.reduce_rows(op, &x, rows, stride, &mut out);
                    for (j, got) in out.iter().enumerate() {
                        let want = reduce_by_the_book(op, (0..rows).map(|i| x[i * stride + j]));
                        assert_eq!(got.to_bits(), want.to_bits(), "{op:?} of {rows} rows, column {j} on {isa:?}");
                    }
                }
            }
            if n > 17 {
                x[17] = f32::NAN;
                assert!(
                    isa.reduce(Reduce::Max, &x).is_nan() && isa.reduce(Reduce::Min, &x).is_nan(),
                    "NaN of {n} on {isa:?}"
                );
            }
        }
        let zeros = [-0.0, 0.0, -0.0];
        assert_eq!(isa.reduce(Reduce::Max, &zeros).to_bits(), (-0.0f32).to_bits(), "the zero met first stays");
    }
}

#[test]
fn rows_round_as_their_decompositions() {
    for isa in isas() {
        for n in [1, 5, 16, 33, 384] {
            let x = noise(n, 3 + n as u32);
            let mut want = vec![0.0; n];
            let max = isa.reduce(Reduce::Max, &x);
            isa.binary_scalar(Binary::Sub, &x, max, &mut want);
            isa.unary_in_place(Unary::Exp, &mut want);
            let sum = isa.reduce(Reduce::Sum, &want);
            isa.binary_scalar_in_place(Binary::Div, &mut want, sum);
            let mut got = x.clone();
            isa.softmax_row_in_place(&mut got);
            assert_eq!(got, want, "softmax of {n} on {isa:?}");

            let (scale, bias) = (noise(n, 1), noise(n, 2));
            let mean = isa.reduce(Reduce::Sum, &x) / n as f32;
            let mut d = vec![0.0; n];
            isa.binary_scalar(Binary::Sub, &x, mean, &mut d);
            let mut square = vec![0.0; n];
            isa.unary(Unary::Square, &d, &mut square);
            let inv = 1.0 / (isa.reduce(Reduce::Sum, &square) / n as f32 + 1e-5).sqrt();
            isa.binary_scalar_in_place(Binary::Mul, &mut d, inv);
            isa.binary_in_place(Binary::Mul, &mut d, &scale);
            let mut no_bias = vec![0.0; n];
            isa.layer_norm_row(&x, (&scale).into(), None, 1e-5, &mut no_bias);
            assert_eq!(no_bias, d, "layer norm of {n} on {isa:?}");
            isa.binary_in_place(Binary::Add, &mut d, &bias);
            let mut got = vec![0.0; n];
            assert_eq!(isa.layer_norm_row(&x, (&scale).into(), Some((&bias).into()), 1e-5, &mut got), (mean, inv));
            assert_eq!(got, d, "layer norm with bias of {n} on {isa:?}");
        }
    }
}

#[test]
fn binary_functions_match_scalar_code() {
    let a = noise(53, 1);
    let mut b = noise(53, 2);
    (b[4], b[20]) = (f32::NAN, a[20]);
    for isa in isas() {
        for op in [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Max, Binary::Min] {
            let f = |a: f32, b: f32| match op {
                Binary::Add => a + b,
                Binary::Sub => a - b,
                Binary::Mul => a * b,
                Binary::Div => a / b,
                Binary::Max if b > a || b.is_nan() => b,
                Binary::Min if b < a || b.is_nan() => b,
                Binary::Max | Binary::Min => a,
            };
            let same = |got: &[f32], want: Vec<f32>| {
                let equal = |(g, w): (&f32, &f32)| g.to_bits() == w.to_bits() || (g.is_nan() && w.is_nan());
                assert!(got.iter().zip(&want).all(equal), "{op:?} on {isa:?}: {got:?} is not {want:?}");
            };
            let mut out = vec![0.0; 53];
            isa.binary(op, &a, &b, &mut out);
            same(&out, a.iter().zip(&b).map(|(a, b)| f(*a, *b)).collect());
            isa.binary_scalar(op, &a, 0.3, &mut out);
            same(&out, a.iter().map(|a| f(*a, 0.3)).collect());
            isa.scalar_binary(op, 0.3, &b, &mut out);
            same(&out, b.iter().map(|b| f(0.3, *b)).collect());
            out.copy_from_slice(&a);
            isa.binary_in_place(op, &mut out, &b[..40]);
            same(&out, a.iter().zip(&b).enumerate().map(|(i, (a, b))| if i < 40 { f(*a, *b) } else { *a }).collect());
        }
    }
}
