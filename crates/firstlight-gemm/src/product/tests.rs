//! Every instruction set against a triple loop, bit for bit.

use crate::{
    Addend, Block, ConvInput, Epilogue, Finish, Geometry, Isa, IsaKind, Lhs, Out, PRODUCT_SCRATCH_ELEMS, Product, Rhs,
    Src,
};

fn isas() -> impl Iterator<Item = Isa> {
    IsaKind::ALL.into_iter().filter_map(Isa::of)
}

fn noise(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

/// The bytes of `x`, one byte off any alignment.
fn shifted(x: &[f32]) -> Vec<u8> {
    std::iter::once(0).chain(x.iter().flat_map(|x| x.to_ne_bytes())).collect()
}

/// `out[m][n]` of the written order, from accessors.
fn by_the_book(
    [m, k, n]: [usize; 3],
    a: impl Fn(usize, usize) -> f32,
    b: impl Fn(usize, usize) -> f32,
    finish: impl Fn(f32, usize, usize) -> f32,
) -> Vec<f32> {
    let sum = |m, n| (0..k).fold(0.0, |acc, k| a(m, k).mul_add(b(k, n), acc));
    (0..m * n).map(|i| finish(sum(i / n, i % n), i / n, i % n)).collect()
}

/// Runs a product in several cuts and compares with `want`; what surrounds the output must stay.
fn check(isa: Isa, product: &Product<'_>, want: &[f32], what: &str) {
    let (m, n) = (product.lhs.rows(), product.rhs.n());
    let row_stride = n + 3;
    let mut scratch = vec![f32::NAN; PRODUCT_SCRATCH_ELEMS];
    for (row_cut, col_cut) in [(m, n), (13, 50), (5, 200)] {
        let mut c = vec![77.0; m * row_stride];
        let out = Out::new(&mut c, m, n, row_stride).unwrap();
        for row in (0..m).step_by(row_cut.max(1)) {
            for col in (0..n).step_by(col_cut.max(1)) {
                let (rows, cols) = (row..m.min(row + row_cut), col..n.min(col + col_cut));
                // SAFETY: one thread; the operands are other vectors.
                assert!(unsafe { isa.product_tile(product, out, rows, cols, &mut scratch) }, "{what}");
            }
        }
        for (i, c) in c.iter().enumerate() {
            let (row, col) = (i / row_stride, i % row_stride);
            let want = if col < n { want[row * n + col] } else { 77.0 };
            assert!(
                c.to_bits() == want.to_bits(),
                "{what} on {isa:?}, cut {row_cut}x{col_cut}: ({row}, {col}) is {c}, not {want}"
            );
        }
    }
}

const SIZES: [[usize; 3]; 19] = [
    [1, 1, 1],
    [1, 17, 129],
    [2, 5, 300],
    [3, 33, 100],
    [4, 64, 97],
    [5, 40, 65],
    [6, 19, 31],
    [7, 100, 49],
    [8, 30, 48],
    [9, 7, 16],
    [13, 300, 47],
    [31, 64, 33],
    [50, 257, 193],
    [17, 513, 1],
    [65, 3, 200],
    [4, 0, 5],
    [70, 30, 2],
    [33, 601, 3],
    [24, 50, 52],
];

#[test]
fn matrices_keep_the_written_order() {
    for [m, k, n] in SIZES {
        let (a, b) = (noise(m * k, 1), noise(k * n, 2));
        let mut bt = vec![0.0; k * n];
        let mut at = vec![0.0; m * k];
        (0..k * n).for_each(|i| bt[i % n * k + i / n] = b[i]);
        (0..m * k).for_each(|i| at[i % k * m + i / k] = a[i]);
        let (a_bytes, b_bytes, bt_bytes) = (shifted(&a), shifted(&b), shifted(&bt));
        let want = by_the_book([m, k, n], |m, i| a[m * k + i], |i, j| b[i * n + j], |sum, _, _| sum);
        let offsets: Vec<u32> = (0..k as u32).collect();
        for isa in isas() {
            let lhs = [
                ("aligned a", Lhs::strided((&a).into(), m, k, k, 1).unwrap()),
                ("unaligned a", Lhs::strided(Src::from_bytes(&a_bytes[1..]), m, k, k, 1).unwrap()),
                ("transposed a", Lhs::strided((&at).into(), m, 1, k, m).unwrap()),
                ("a by offsets", Lhs::with_offsets((&a).into(), m, k, &offsets).unwrap()),
            ];
            let rhs = [
                ("b", Rhs::row_major((&b).into(), k, n, n).unwrap()),
                ("unaligned b", Rhs::row_major(Src::from_bytes(&b_bytes[1..]), k, n, n).unwrap()),
                ("transposed b", Rhs::transposed((&bt).into(), k, n, k).unwrap()),
                ("unaligned transposed b", Rhs::transposed(Src::from_bytes(&bt_bytes[1..]), k, n, k).unwrap()),
            ];
            for (i, (a_name, lhs)) in lhs.into_iter().enumerate() {
                for (j, (b_name, rhs)) in rhs.iter().enumerate() {
                    if i == 0 || j == 0 {
                        let product = Product { lhs, rhs: *rhs, epilogue: Epilogue::default() };
                        check(isa, &product, &want, &format!("{a_name}, {b_name}, {m}x{k}x{n}"));
                    }
                }
            }
        }
    }
}

#[test]
fn epilogues_round_step_by_step() {
    for [m, k, n] in [[3, 20, 70], [29, 300, 53], [8, 0, 40], [20, 9, 64], [30, 301, 51]] {
        let (a, b) = (noise(m * k, 3), noise(k * n, 4));
        let (row, col, full) = (noise(n, 5), noise(m, 6), noise(m * n, 7));
        let full_bytes = shifted(&full);
        let matrix = Addend { src: Src::from_bytes(&full_bytes[1..]), row_stride: n, col_stride: 1, scale: 1.0 };
        let cases = [
            ("scalar", Addend { src: Src::from(&[0.3]), row_stride: 0, col_stride: 0, scale: -0.7 }),
            ("row", Addend { src: (&row).into(), row_stride: 0, col_stride: 1, scale: 0.3 }),
            ("column", Addend { src: (&col).into(), row_stride: 1, col_stride: 0, scale: 1.0 }),
            ("matrix", Addend { scale: 1.7, ..matrix }),
        ];
        for isa in isas() {
            for (name, bias) in cases {
                for (alpha, residual, relu) in
                    [(1.0, None, false), (0.9, Some(matrix), true), (1.0, Some(matrix), true)]
                {
                    let want = by_the_book(
                        [m, k, n],
                        |m, i| a[m * k + i],
                        |i, j| b[i * n + j],
                        |sum, m, n_| {
                            let mut x = sum * alpha;
                            x += bias.scale * bias.src.get(m * bias.row_stride + n_ * bias.col_stride).unwrap();
                            if residual.is_some() {
                                x += full[m * n + n_];
                            }
                            x = if relu && x <= 0.0 { 0.0 } else { x };
                            // As `finish`, once for each result, which says where it is.
                            if relu { x * 3.0 + (m * 100 + n_) as f32 } else { x }
                        },
                    );
                    // `check` leaves a gap of 3 after each row.
                    let finish = |block: Block<'_>| {
                        for (row, col, part) in block {
                            for (i, x) in part.iter_mut().enumerate() {
                                let at = col + i;
                                *x = *x * 3.0 + ((row + at / (n + 3)) * 100 + at % (n + 3)) as f32;
                            }
                        }
                    };
                    let product = Product {
                        lhs: Lhs::strided((&a).into(), m, k, k, 1).unwrap(),
                        rhs: Rhs::row_major((&b).into(), k, n, n).unwrap(),
                        epilogue: Epilogue {
                            alpha,
                            bias: Some(bias),
                            residual,
                            relu,
                            finish: relu.then_some(Finish(&finish)),
                        },
                    };
                    check(isa, &product, &want, &format!("{name}, alpha {alpha}, {residual:?}, relu {relu}"));
                }
            }
        }
    }
}

#[test]
fn convolution_windows_keep_the_written_order() {
    let g = |kernel, stride, dilation, pad, out| Geometry { kernel, stride, dilation, pad, out };
    let cases = [
        (3, [9, 11], g([3, 3], [1, 1], [1, 1], [1, 1], [9, 11])),
        (17, [7, 7], g([3, 3], [1, 1], [1, 1], [1, 1], [7, 7])),
        (33, [5, 60], g([3, 2], [1, 1], [1, 1], [0, 1], [3, 61])),
        (3, [23, 25], g([7, 7], [2, 2], [1, 1], [3, 3], [12, 13])),
        (20, [13, 40], g([1, 1], [2, 2], [1, 1], [0, 0], [7, 20])),
        (18, [1, 100], g([1, 25], [1, 7], [1, 1], [0, 5], [1, 12])),
        (5, [12, 15], g([3, 3], [1, 2], [2, 3], [2, 4], [12, 8])),
        (2, [4, 4], g([3, 3], [3, 3], [1, 1], [5, 5], [4, 4])),
        (2, [1, 140], g([1, 128], [1, 3], [1, 1], [0, 0], [1, 5])),
        (70, [2, 2], g([3, 3], [2, 2], [1, 1], [1, 1], [1, 1])),
        (20, [1, 3], g([1, 30], [1, 1], [1, 1], [0, 15], [1, 4])),
        (4, [3, 3], g([1, 1], [1, 1], [1, 1], [0, 0], [3, 3])),
    ];
    for (channels, [h, w], geometry) in cases {
        let x = noise(channels * h * w, 8);
        let [kh, kw] = geometry.kernel;
        let m = 27;
        let k = channels * kh * kw;
        let filter = noise(m * k, 9);
        let (x_bytes, filter_bytes) = (shifted(&x), shifted(&filter));
        let input = ConvInput::new(Src::from_bytes(&x_bytes[1..]), channels, [h, w], geometry).unwrap();
        let mut order = Vec::new();
        for block in (0..channels).step_by(16) {
            for tap in 0..kh * kw {
                order.extend((block..channels.min(block + 16)).map(|c| (c, tap / kw, tap % kw)));
            }
        }
        let pixel = |c: usize, tap: usize, out: usize, axis: usize, n: usize| {
            let at =
                (out * geometry.stride[axis] + tap * geometry.dilation[axis]) as isize - geometry.pad[axis] as isize;
            let _ = c;
            (at >= 0 && at < n as isize).then_some(at as usize)
        };
        let [_, out_w] = geometry.out;
        let want = by_the_book(
            [m, k, input.n()],
            |m, i| filter[m * k + order[i].0 * kh * kw + order[i].1 * kw + order[i].2],
            |i, n| {
                let (c, th, tw) = order[i];
                match (pixel(c, th, n / out_w, 0, h), pixel(c, tw, n % out_w, 1, w)) {
                    (Some(ih), Some(iw)) => x[c * h * w + ih * w + iw],
                    _ => 0.0,
                }
            },
            |sum, _, _| sum,
        );
        let mut offsets = vec![0; k];
        assert!(input.filter_offsets(&mut offsets));
        for isa in isas() {
            let product = Product {
                lhs: Lhs::with_offsets(Src::from_bytes(&filter_bytes[1..]), m, k, &offsets).unwrap(),
                rhs: Rhs::Conv(input),
                epilogue: Epilogue::default(),
            };
            check(isa, &product, &want, &format!("{channels}x{h}x{w}, {geometry:?}"));
        }
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let x = noise(60, 1);
    let src = Src::from(&x);
    assert!(Lhs::strided(src, 6, 10, 10, 1).is_some());
    assert!(Lhs::strided(src, 6, 10, 11, 1).is_none());
    assert!(Lhs::strided(src, usize::MAX, usize::MAX, 2, 1).is_none());
    assert!(Lhs::with_offsets(src, 6, 10, &[9]).is_some());
    assert!(Lhs::with_offsets(src, 6, 10, &[10]).is_none());
    assert!(Rhs::row_major(src, 6, 10, 10).is_some() && Rhs::row_major(src, 7, 10, 10).is_none());
    assert!(Rhs::transposed(src, 10, 6, 10).is_some() && Rhs::transposed(src, 10, 7, 10).is_none());
    let geometry = Geometry { kernel: [1; 2], stride: [1; 2], dilation: [1; 2], pad: [0; 2], out: [6, 10] };
    assert!(ConvInput::new(src, 1, [6, 10], geometry).is_some());
    assert!(ConvInput::new(src, 1, [6, 11], geometry).is_none());
    assert!(ConvInput::new(src, 1, [6, 10], Geometry { stride: [0, 1], ..geometry }).is_none());
    assert!(ConvInput::new(src, 1, [6, 10], Geometry { dilation: [usize::MAX; 2], ..geometry }).is_none());

    let mut c = vec![0.0; 36];
    assert!(Out::new(&mut c, 7, 6, 6).is_none() && Out::new(&mut c, 3, 6, 5).is_none());
    let product = Product {
        lhs: Lhs::strided(src, 6, 10, 10, 1).unwrap(),
        rhs: Rhs::row_major(src, 10, 6, 6).unwrap(),
        epilogue: Epilogue::default(),
    };
    let mut scratch = vec![0.0; PRODUCT_SCRATCH_ELEMS];
    let isa = Isa::detect();
    let mut tile = |product: &Product<'_>, rows, cols, scratch: &mut [f32]| {
        let out = Out::new(&mut c, 6, 6, 6).unwrap();
        // SAFETY: one thread; the operands are other vectors.
        unsafe { isa.product_tile(product, out, rows, cols, scratch) }
    };
    assert!(tile(&product, 0..6, 0..6, &mut scratch));
    assert!(!tile(&product, 0..7, 0..6, &mut scratch), "too many rows");
    assert!(!tile(&product, 0..6, 0..7, &mut scratch), "too many columns");
    assert!(tile(&product, 0..6, 0..6, &mut []), "few rows need no scratch");
    let conv = Product {
        lhs: Lhs::strided(src, 6, 1, 1, 1).unwrap(),
        rhs: Rhs::Conv(ConvInput::new(src, 1, [1, 6], Geometry { out: [1, 6], ..geometry }).unwrap()),
        ..product
    };
    assert!(tile(&conv, 0..6, 0..6, &mut scratch));
    assert!(!tile(&conv, 0..6, 0..6, &mut scratch[1..]), "scratch too short");
    let rhs = Rhs::row_major(src, 9, 6, 6).unwrap();
    assert!(!tile(&Product { rhs, ..product }, 0..6, 0..6, &mut scratch), "k differs");
    let bias = Some(Addend { src: src.slice(0, 35), row_stride: 6, col_stride: 1, scale: 1.0 });
    let epilogue = Epilogue { bias, ..product.epilogue };
    assert!(!tile(&Product { epilogue, ..product }, 0..6, 0..6, &mut scratch), "addend too short");
}
