use super::super::matmul::tests::{check, converted, noise, row_of};
use super::*;
use firstlight_tensor::Tensor;

#[test]
fn products_have_the_bits_of_the_reference() {
    let c_shapes: [Option<&[usize]>; 6] = [None, Some(&[]), Some(&[0]), Some(&[0, 1]), Some(&[1, 0]), Some(&[0, 0])];
    for (m, k, n) in [(1, 7, 33), (5, 40, 20), (150, 30, 100), (9, 0, 5), (0, 3, 4)] {
        for (trans_a, trans_b) in [(false, false), (false, true), (true, false), (true, true)] {
            for (i, c) in c_shapes.iter().enumerate() {
                // 0 stands for the output's dimension.
                let c = c.map(|dims| {
                    let full = &[m, n][2 - dims.len()..];
                    let dims: Vec<usize> =
                        dims.iter().zip(full).map(|(c, full)| if *c == 0 { *full } else { *c }).collect();
                    noise(&dims, 3)
                });
                let (alpha, beta) = [(1.0, 1.0), (0.3, 1.0), (1.0, -0.7)][i % 3];
                let op = Gemm { alpha, beta, trans_a, trans_b };
                let a = noise(&if trans_a { [k, m] } else { [m, k] }, 1);
                let b = noise(&if trans_b { [n, k] } else { [k, n] }, 2);
                let on = |dtype, op: Gemm, inputs: [Option<Tensor>; 3]| {
                    check(row_of(BINDINGS, dtype), op, &inputs, &[m, n]);
                };
                on(DType::F32, op.clone(), [Some(a.clone()), Some(b.clone()), c.clone()]);
                if m < 100 {
                    let inputs = [Some(a), Some(b), c];
                    let double = |x: &Option<Tensor>| x.as_ref().map(|x| converted(x, f64::from));
                    on(DType::F64, op.clone(), inputs.each_ref().map(double));
                    let half = |x: &Option<Tensor>| x.as_ref().map(|x| converted(x, f16::from_f32));
                    on(DType::F16, op.clone(), inputs.each_ref().map(half));
                    let whole = |x: &Option<Tensor>| x.as_ref().map(|x| converted(x, |x| (x * 2e9) as i32));
                    let op = Gemm { alpha: 2.0, beta: -3.0, ..op };
                    on(DType::I32, op, inputs.each_ref().map(whole));
                }
            }
        }
    }
}
