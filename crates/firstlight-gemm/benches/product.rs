//! One-thread speed of matrix products and convolutions, best of several short samples: `cargo bench -p firstlight-gemm`.

use firstlight_gemm::{ConvInput, Epilogue, Geometry, Isa, IsaKind, Lhs, Out, PRODUCT_SCRATCH_ELEMS, Product, Rhs};
use std::time::{Duration, Instant};

fn main() {
    let only = std::env::args().nth(1).filter(|a| !a.starts_with("--"));
    for isa in IsaKind::ALL.into_iter().skip(1).filter_map(Isa::of) {
        if only.as_deref().is_some_and(|only| only != isa.kind().name()) {
            continue;
        }
        println!("{}", isa.kind().name());
        for (m, k, n) in [
            (64, 64, 96),
            (128, 128, 384),
            (128, 384, 384),
            (128, 384, 1536),
            (128, 1536, 384),
            (128, 768, 768),
            (128, 768, 3072),
            (512, 512, 512),
            (128, 32, 128),
            (128, 128, 32),
            (1, 768, 3072),
            (1, 4096, 4096),
            (8, 4096, 4096),
        ] {
            let (a, b) = (noise(m * k), noise(k * n));
            let lhs = Lhs::strided((&a).into(), m, k, k, 1).unwrap();
            let row_major = Rhs::row_major((&b).into(), k, n, n).unwrap();
            let transposed = Rhs::transposed((&b).into(), k, n, k).unwrap();
            let speed = |rhs| measure(isa, &Product { lhs, rhs, epilogue: Epilogue::default() });
            println!("  {m}x{k}x{n}: {}, transposed {}", speed(row_major), speed(transposed));
        }
        for (c, oc, [kh, kernel], stride, [height, size]) in [
            (3, 64, [7, 7], 2, [224, 224]),
            (64, 64, [1, 1], 1, [56, 56]),
            (64, 64, [3, 3], 1, [56, 56]),
            (64, 256, [1, 1], 1, [56, 56]),
            (256, 64, [1, 1], 1, [56, 56]),
            (128, 128, [3, 3], 2, [56, 56]),
            (256, 512, [1, 1], 2, [56, 56]),
            (128, 128, [3, 3], 1, [28, 28]),
            (128, 512, [1, 1], 1, [28, 28]),
            (256, 256, [3, 3], 1, [14, 14]),
            (1024, 256, [1, 1], 1, [14, 14]),
            (256, 1024, [1, 1], 1, [14, 14]),
            (512, 512, [3, 3], 1, [7, 7]),
            (512, 2048, [1, 1], 1, [7, 7]),
            (2048, 512, [1, 1], 1, [7, 7]),
            (1, 258, [1, 256], 128, [1, 512]),
            (129, 128, [1, 3], 1, [1, 4]),
            (64, 64, [1, 3], 2, [1, 2]),
        ] {
            let out = [(height / stride).max(1), size / stride];
            let (x, w) = (noise(c * height * size), noise(oc * c * kh * kernel));
            let geometry = Geometry {
                kernel: [kh, kernel],
                stride: [stride; 2],
                dilation: [1; 2],
                pad: [kh / 2, if stride < 100 { kernel / 2 } else { kernel / 4 }],
                out,
            };
            let input = ConvInput::new((&x).into(), c, [height, size], geometry).unwrap();
            let mut offsets = vec![0; input.k()];
            assert!(input.filter_offsets(&mut offsets));
            let direct = kernel == 1 && stride == 1;
            let lhs = if kernel == 1 {
                Lhs::strided((&w).into(), oc, c, c, 1)
            } else {
                Lhs::with_offsets((&w).into(), oc, input.k(), &offsets)
            };
            let rhs = if direct {
                Rhs::row_major((&x).into(), c, out[0] * out[1], out[0] * out[1]).unwrap()
            } else {
                Rhs::Conv(input)
            };
            let product = Product { lhs: lhs.unwrap(), rhs, epilogue: Epilogue { relu: true, ..Epilogue::default() } };
            println!("  conv {c}->{oc} {kh}x{kernel}/{stride}, {height}x{size}: {}", measure(isa, &product));
        }
    }
}

fn measure(isa: Isa, product: &Product<'_>) -> String {
    let (m, n, k) = (product.lhs.rows(), product.rhs.n(), product.lhs.k());
    let mut c = vec![0.5; m * n];
    let mut scratch = vec![0.5; PRODUCT_SCRATCH_ELEMS];
    let flops = 2.0 * m as f64 * n as f64 * k as f64;
    let (mut best, mut spent, mut samples) = (Duration::MAX, Duration::ZERO, 0);
    while samples < 3 || (spent < Duration::from_millis(40) && samples < 2000) {
        let out = Out::new(&mut c, m, n, n).unwrap();
        let start = Instant::now();
        // SAFETY: one thread, and the output is apart from the operands.
        assert!(unsafe { isa.product_tile(product, out, 0..m, 0..n, &mut scratch) });
        let took = start.elapsed();
        (best, spent, samples) = (best.min(took), spent + took, samples + 1);
    }
    format!("{:.0} GFLOP/s ({:.0} us)", flops / best.as_secs_f64() / 1e9, best.as_secs_f64() * 1e6)
}

fn noise(n: usize) -> Vec<f32> {
    let mut state = 1u32;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        })
        .collect()
}
