//! Random operands of normalisation, pooling and recurrence.

use crate::random::Random;
use crate::samples::Sample;
use firstlight_backend::KernelBinding;
use firstlight_graph::ops::elementwise::chain::{Operand, Step};
use firstlight_graph::ops::nn::activation::Activation;
use firstlight_graph::ops::nn::lstm::Direction;
use firstlight_graph::ops::nn::window::AutoPad;
use firstlight_graph::ops::{self, ConvTranspose, Elementwise, LSTM, MaxPool};
use firstlight_graph::{Op, OpKind};
use firstlight_tensor::Tensor;

/// What to try rows of these families on.
pub(crate) fn networks(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    match row.op {
        OpKind::LayerNormalization => layer_norms(row, random),
        OpKind::MaxPool => max_pools(row, random),
        OpKind::ConvTranspose => transposed_convolutions(row, random),
        OpKind::GlobalAveragePool => averages(row, random),
        OpKind::LSTM => lstms(row, random),
        OpKind::Elementwise => chains(row, random),
        _ => vec![],
    }
}

fn layer_norms(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    let mut all = vec![];
    for (dims, axis, scale) in [
        (&[4, 40][..], -1, &[40][..]),
        (&[2, 3, 4, 5], 2, &[4, 5]),
        (&[2, 3, 4, 5], 2, &[1, 1, 4, 5]),
        (&[3, 384], 1, &[384]),
        (&[300, 384], 1, &[384]),
        (&[2, 1], 1, &[1]),
        (&[0, 3], 1, &[3]),
    ] {
        for (bias, n_outputs) in [(true, 1), (false, 3)] {
            let mut tensor = |dims: &[usize]| Some(random.finite(row.types[0], dims));
            let inputs = vec![tensor(dims), tensor(scale), if bias { tensor(scale) } else { None }];
            let op = ops::LayerNormalization { axis, epsilon: 1e-5 }.into();
            all.push(Sample { name: format!("{dims:?} from {axis} on, bias {bias}"), op, inputs, n_outputs });
        }
    }
    all
}

fn transposed_convolutions(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    let conv = |strides: &[i64], pads: &[i64], dilations: &[i64], group: i64| ConvTranspose {
        strides: strides.to_vec(),
        pads: pads.to_vec(),
        dilations: dilations.to_vec(),
        group,
        ..ConvTranspose::default()
    };
    let all: [(&[usize], &[usize], ConvTranspose); 12] = [
        (&[1, 3, 9], &[3, 2, 4], conv(&[], &[], &[], 1)),
        (&[2, 4, 9], &[4, 3, 3], conv(&[3], &[1, 2], &[2], 2)),
        (&[1, 3, 5, 7], &[3, 2, 2, 2], conv(&[2, 2], &[], &[], 1)),
        (&[1, 24, 40, 44], &[24, 24, 2, 2], conv(&[2, 2], &[], &[], 1)),
        (&[2, 6, 9, 11], &[6, 4, 3, 3], conv(&[2, 1], &[1, 0, 2, 1], &[1, 2], 2)),
        (&[1, 20, 30, 50], &[20, 5, 4, 4], conv(&[2, 2], &[1, 1, 1, 1], &[], 1)),
        (&[1, 2, 3, 1500], &[2, 1, 3, 3], conv(&[1, 1], &[1, 1, 1, 1], &[], 1)),
        (&[1, 2, 4, 5], &[2, 2, 3, 2], conv(&[3, 4], &[], &[2, 3], 1)),
        (&[1, 2, 4, 5], &[2, 2, 3, 3], ConvTranspose { output_padding: vec![1, 0], ..conv(&[2, 2], &[], &[], 1) }),
        (&[1, 2, 4, 5], &[2, 2, 3, 3], ConvTranspose { output_shape: vec![12, 8], ..conv(&[2, 2], &[], &[], 1) }),
        (&[0, 2, 4], &[2, 2, 3], conv(&[], &[], &[], 1)),
        (&[1, 1, 1, 1], &[1, 200, 1, 1], conv(&[], &[], &[], 1)),
    ];
    let mut samples = vec![];
    for (x, w, op) in all {
        for bias in [false, true] {
            let filters = w[1] * op.group as usize;
            let mut tensor = |dims: &[usize]| Some(random.finite(row.types[0], dims));
            let inputs = vec![tensor(x), tensor(w), if bias { tensor(&[filters]) } else { None }];
            samples.push(Sample { name: format!("{op:?} of {x:?}"), op: op.clone().into(), inputs, n_outputs: 1 });
        }
    }
    samples
}

fn chains(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    use Operand::{Input, Step as Result};
    let step = |op: Op, operands: &[Operand]| Step { op, operands: operands.into() };
    let steps = vec![
        step(ops::Add.into(), &[Input(0), Input(1)]),
        step(ops::Div.into(), &[Result(0), Input(2)]),
        step(ops::Erf.into(), &[Result(1)]),
        step(ops::Mul.into(), &[Result(2), Result(0)]),
        step(ops::Sub.into(), &[Input(3), Result(3)]),
    ];
    let shapes: [[&[usize]; 4]; 4] = [
        [&[29, 47, 101], &[101], &[47, 1], &[]],
        [&[2, 600], &[2, 600], &[2, 1], &[1]],
        [&[3, 5, 7], &[1, 5, 7], &[3, 1, 1], &[7]],
        [&[0, 4], &[4], &[1], &[]],
    ];
    let sample = |shapes: [&[usize]; 4]| Sample {
        name: format!("a chain of {shapes:?}"),
        op: Elementwise { steps: steps.clone() }.into(),
        inputs: shapes.iter().map(|dims| Some(random.finite(row.types[0], dims))).collect(),
        n_outputs: 1,
    };
    shapes.into_iter().map(sample).collect()
}

fn max_pools(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    let pool = |kernel: &[i64], strides: &[i64], pads: &[i64], dilations: &[i64]| MaxPool {
        kernel_shape: kernel.to_vec(),
        strides: strides.to_vec(),
        pads: pads.to_vec(),
        dilations: dilations.to_vec(),
        ..MaxPool::default()
    };
    let all: [(&[usize], MaxPool); 12] = [
        (&[1, 2, 9], pool(&[3], &[1], &[1, 1], &[])),
        (&[2, 3, 9, 10], pool(&[3, 3], &[2, 2], &[1, 1, 1, 1], &[])),
        (&[2, 3, 8, 7], pool(&[2, 3], &[1, 3], &[], &[])),
        (&[1, 1, 8, 12], pool(&[3, 2], &[2, 1], &[2, 1, 0, 0], &[2, 3])),
        (&[1, 2, 5, 6, 7], pool(&[2, 3, 2], &[2, 1, 2], &[1, 0, 0, 0, 1, 1], &[])),
        (&[1, 1, 6, 6], MaxPool { ceil_mode: true, ..pool(&[3, 3], &[4, 4], &[1, 1, 1, 1], &[]) }),
        (&[1, 1, 7, 5], MaxPool { auto_pad: AutoPad::SameUpper, ..pool(&[4, 2], &[2, 2], &[], &[]) }),
        (&[1, 1, 7, 5], MaxPool { auto_pad: AutoPad::SameLower, ..pool(&[4, 2], &[2, 2], &[], &[]) }),
        // Windows of padding alone.
        (&[1, 1, 2, 2], pool(&[1, 2], &[1, 1], &[3, 3, 2, 3], &[])),
        (&[1, 1, 1, 1], pool(&[1, 1], &[1, 1], &[], &[])),
        (&[0, 2, 4, 4], pool(&[2, 2], &[2, 2], &[], &[])),
        (&[2, 24, 56, 56], pool(&[3, 3], &[2, 2], &[1, 1, 1, 1], &[])),
    ];
    let sample = |(dims, op): (&[usize], MaxPool)| Sample {
        name: format!("{op:?} of {dims:?}"),
        op: op.into(),
        inputs: vec![Some(random.tensor(row.types[0], dims))],
        n_outputs: 1,
    };
    all.into_iter().map(sample).collect()
}

fn averages(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    let all: [&[usize]; 7] =
        [&[2, 3, 7, 7], &[1, 5, 40], &[1, 2, 3, 4, 5], &[2, 3], &[0, 3, 4], &[2, 3, 0], &[2, 200, 30, 31]];
    let sample = |dims: &[usize]| Sample {
        name: format!("mean of {dims:?}"),
        op: ops::GlobalAveragePool.into(),
        inputs: vec![Some(random.finite(row.types[0], dims))],
        n_outputs: 1,
    };
    all.into_iter().map(sample).collect()
}

fn lstms(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    let mut all = vec![];
    let unusual = [
        Activation::HardSigmoid { alpha: 0.2, beta: 0.5 },
        Activation::Softsign,
        Activation::Relu,
        Activation::Sigmoid,
        Activation::Elu { alpha: 1.0 },
        Activation::Tanh,
    ];
    for (seq, batch, input, hidden) in [(1, 1, 12, 20), (5, 1, 7, 33), (70, 3, 4, 5), (3, 9, 16, 16), (0, 2, 3, 4)] {
        for n in 0..6 {
            let direction = [Direction::Forward, Direction::Reverse, Direction::Bidirectional][n % 3];
            let d = direction.count();
            let op = LSTM {
                batch_first: n >= 3,
                direction,
                clip: (n == 4).then_some(0.7),
                input_forget: n == 3,
                activations: if n == 5 { unusual.to_vec() } else { vec![] },
                hidden_size: None,
            };
            let mut small = |dims: &[usize]| {
                let values: Vec<f32> =
                    (0..dims.iter().product()).map(|_| random.within(-40..41) as f32 / 64.0).collect();
                Some(crate::samples::convert(&Tensor::from_slice(dims, &values).unwrap(), row.types[0]))
            };
            let (x, state) = match op.batch_first {
                true => ([batch, seq, input], [batch, d, hidden]),
                false => ([seq, batch, input], [d, batch, hidden]),
            };
            let weights = [small(&x), small(&[d, 4 * hidden, input]), small(&[d, 4 * hidden, hidden])];
            let mut inputs = weights.to_vec();
            if n > 0 {
                let lens: Vec<i32> = (0..batch).map(|b| ((seq + b) % (seq + 1)) as i32).collect();
                let lens = if n % 2 == 1 { Some(Tensor::from_slice([batch], &lens).unwrap()) } else { None };
                inputs.extend([small(&[d, 8 * hidden]), lens, small(&state), small(&state)]);
            }
            if n > 3 {
                inputs.push(small(&[d, 3 * hidden]));
            }
            let name = format!("{op:?} of {seq} steps, batch {batch}, {input} to {hidden}");
            all.push(Sample { name, op: op.into(), inputs, n_outputs: 1 + n % 3 });
        }
    }
    all
}
