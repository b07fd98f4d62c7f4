//! Random operands of pooling and of normalisation by channel.

use crate::random::Random;
use crate::samples::{Sample, convert};
use firstlight_backend::KernelBinding;
use firstlight_graph::OpKind;
use firstlight_graph::ops::nn::window::AutoPad;
use firstlight_graph::ops::{
    AveragePool, BatchNormalization, GroupNormalization, InstanceNormalization, LRN, LpPool, MaxUnpool,
};
use firstlight_tensor::{DType, Tensor};

/// What to try rows of these families on.
pub(crate) fn windows(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    match row.op {
        OpKind::AveragePool => average_pools(row, random),
        OpKind::BatchNormalization => batch_norms(row, random),
        OpKind::InstanceNormalization => instance_norms(row, random),
        OpKind::GroupNormalization => group_norms(row, random),
        OpKind::LRN => lrns(row, random),
        OpKind::LpPool => lp_pools(row, random),
        OpKind::MaxUnpool => unpools(row, random),
        _ => vec![],
    }
}

fn average_pools(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    let pool = |kernel: &[i64], strides: &[i64], pads: &[i64], dilations: &[i64]| AveragePool {
        kernel_shape: kernel.to_vec(),
        strides: strides.to_vec(),
        pads: pads.to_vec(),
        dilations: dilations.to_vec(),
        ..AveragePool::default()
    };
    let all: [(&[usize], AveragePool); 14] = [
        (&[1, 2, 9], pool(&[3], &[1], &[1, 1], &[])),
        (&[1, 2, 300], pool(&[5], &[1], &[2, 2], &[])),
        (&[2, 3, 9, 10], pool(&[3, 3], &[2, 2], &[1, 1, 1, 1], &[])),
        (&[2, 3, 8, 7], pool(&[2, 3], &[1, 3], &[], &[])),
        (&[1, 1, 8, 40], pool(&[3, 2], &[2, 1], &[2, 1, 0, 0], &[2, 3])),
        (&[1, 2, 5, 6, 7], pool(&[2, 3, 2], &[2, 1, 2], &[1, 0, 0, 0, 1, 1], &[])),
        (&[1, 1, 6, 6], AveragePool { ceil_mode: true, ..pool(&[3, 3], &[4, 4], &[1, 1, 1, 1], &[]) }),
        (&[1, 2, 7, 70], AveragePool { ceil_mode: true, ..pool(&[4, 4], &[3, 2], &[0, 0, 1, 1], &[]) }),
        (&[1, 1, 7, 5], AveragePool { auto_pad: AutoPad::SameUpper, ..pool(&[4, 2], &[2, 2], &[], &[]) }),
        (&[1, 1, 7, 5], AveragePool { auto_pad: AutoPad::SameLower, ..pool(&[4, 2], &[2, 2], &[], &[]) }),
        // Windows of padding alone.
        (&[1, 1, 2, 2], pool(&[1, 2], &[1, 1], &[3, 3, 2, 3], &[])),
        (&[1, 1, 1, 1], pool(&[1, 1], &[1, 1], &[], &[])),
        (&[0, 2, 4, 4], pool(&[2, 2], &[2, 2], &[], &[])),
        (&[2, 24, 56, 56], pool(&[3, 3], &[2, 2], &[1, 1, 1, 1], &[])),
    ];
    let mut samples = vec![];
    for (dims, op) in all {
        for count_include_pad in [false, true] {
            let op = AveragePool { count_include_pad, ..op.clone() };
            let inputs = vec![Some(random.finite(row.types[0], dims))];
            samples.push(Sample { name: format!("{op:?} of {dims:?}"), op: op.into(), inputs, n_outputs: 1 });
        }
    }
    samples
}

fn batch_norms(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    let mut samples = vec![];
    for dims in [&[2, 3, 5, 7][..], &[4, 33], &[7], &[1, 2, 5000], &[2, 70, 30, 31], &[3, 4, 1], &[0, 2, 3], &[2, 0, 3]]
    {
        for spatial in [true, false] {
            let parameter_dims = match (dims, spatial) {
                ([_], _) => vec![1],
                (_, true) => vec![dims[1]],
                (_, false) => dims[1..].to_vec(),
            };
            let mut parameter = |var: usize| random.finite(row.types[var], &parameter_dims);
            let mut inputs = vec![parameter(1), parameter(1), parameter(2)];
            let variance = random.finite(DType::F32, &parameter_dims);
            let squares: Vec<f32> = variance.values::<f32>().unwrap().iter().map(|x| x * x + 0.1).collect();
            inputs.push(convert(&Tensor::from_slice(&parameter_dims[..], &squares).unwrap(), row.types[2]));
            inputs.insert(0, random.finite(row.types[0], dims));
            samples.push(Sample {
                name: format!("{dims:?}, spatial {spatial}"),
                op: BatchNormalization { spatial, ..BatchNormalization::default() }.into(),
                inputs: inputs.into_iter().map(Some).collect(),
                n_outputs: 1,
            });
        }
    }
    samples
}

fn instance_norms(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    let all: [&[usize]; 7] =
        [&[2, 3, 5, 7], &[4, 33], &[1, 2, 5000], &[2, 70, 30, 31], &[3, 4, 1], &[0, 2, 3], &[2, 3, 4, 5, 6]];
    let sample = |dims: &[usize]| {
        let mut tensor = |dims: &[usize]| Some(random.finite(row.types[0], dims));
        Sample {
            name: format!("{dims:?}"),
            op: InstanceNormalization::default().into(),
            inputs: vec![tensor(dims), tensor(&dims[1..2]), tensor(&dims[1..2])],
            n_outputs: 1,
        }
    };
    all.into_iter().map(sample).collect()
}

fn group_norms(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    let mut samples = vec![];
    for (dims, num_groups) in [
        (&[2, 6, 5, 7][..], 3),
        (&[4, 32], 4),
        (&[1, 2, 5000], 1),
        (&[2, 64, 30, 31], 8),
        (&[0, 4, 3], 2),
        (&[3, 4, 1], 4),
    ] {
        for n_parameters in [dims[1], num_groups as usize] {
            let mut tensor = |dims: &[usize]| Some(random.finite(row.types[0], dims));
            samples.push(Sample {
                name: format!("{num_groups} groups of {dims:?}, {n_parameters} scales"),
                op: GroupNormalization { epsilon: 1e-5, num_groups }.into(),
                inputs: vec![tensor(dims), tensor(&[n_parameters]), tensor(&[n_parameters])],
                n_outputs: 1,
            });
        }
    }
    samples
}

fn lrns(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    let mut samples = vec![];
    for (dims, size) in [
        (&[2, 6, 5, 7][..], 3),
        (&[1, 9, 33], 4),
        (&[3, 7], 5),
        (&[1, 3, 5000], 1),
        (&[2, 24, 30, 31], 5),
        (&[1, 2, 3], 100),
        (&[0, 2, 3], 3),
    ] {
        for beta in [0.75, 0.5, 1.0, 0.6] {
            samples.push(Sample {
                name: format!("{size} channels of {dims:?}, beta {beta}"),
                op: LRN { alpha: 0.3, beta, bias: 1.5, size }.into(),
                inputs: vec![Some(random.finite(row.types[0], dims))],
                n_outputs: 1,
            });
        }
    }
    samples
}

fn lp_pools(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    let pool = |kernel: &[i64], strides: &[i64], pads: &[i64], dilations: &[i64]| LpPool {
        kernel_shape: kernel.to_vec(),
        strides: strides.to_vec(),
        pads: pads.to_vec(),
        dilations: dilations.to_vec(),
        ..LpPool::default()
    };
    let all: [(&[usize], LpPool); 8] = [
        (&[1, 2, 300], pool(&[5], &[1], &[2, 2], &[])),
        (&[2, 3, 9, 10], pool(&[3, 3], &[2, 2], &[1, 1, 1, 1], &[])),
        (&[1, 1, 8, 40], pool(&[3, 2], &[2, 1], &[2, 1, 0, 0], &[2, 3])),
        (&[1, 2, 5, 6, 7], pool(&[2, 3, 2], &[2, 1, 2], &[1, 0, 0, 0, 1, 1], &[])),
        (&[1, 2, 7, 70], LpPool { ceil_mode: true, ..pool(&[4, 4], &[3, 2], &[0, 0, 1, 1], &[]) }),
        (&[1, 1, 7, 5], LpPool { auto_pad: AutoPad::SameLower, ..pool(&[4, 2], &[2, 2], &[], &[]) }),
        (&[0, 2, 4, 4], pool(&[2, 2], &[2, 2], &[], &[])),
        (&[2, 24, 56, 56], pool(&[3, 3], &[2, 2], &[1, 1, 1, 1], &[])),
    ];
    let mut samples = vec![];
    for (dims, op) in all {
        for p in [1, 2, 3] {
            let op = LpPool { p, ..op.clone() };
            let inputs = vec![Some(random.finite(row.types[0], dims))];
            samples.push(Sample { name: format!("{op:?} of {dims:?}"), op: op.into(), inputs, n_outputs: 1 });
        }
    }
    samples
}

fn unpools(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    let op = MaxUnpool { kernel_shape: vec![2, 3], strides: vec![2, 1], pads: vec![0, 1, 0, 0] };
    let mut samples = vec![];
    for (dims, output_shape) in [
        ([2, 3, 4, 5], None),
        ([1, 2, 3, 4], Some([1, 3, 7, 9])),
        ([2, 24, 28, 30], None),
        // Too small for the pooled tensor, of 6 by 5.
        ([1, 2, 3, 4], Some([1, 2, 6, 4])),
    ] {
        let [n, channels, high, wide] = dims;
        let n_pooled = (n * channels * 2 * high * (wide + 1)) as i64;
        let indices: Vec<i64> = (0..n * channels * high * wide).map(|_| random.within(0..n_pooled)).collect();
        samples.push(Sample {
            name: format!("{dims:?} to {output_shape:?}"),
            op: op.clone().into(),
            inputs: vec![
                Some(random.tensor(row.types[0], &dims)),
                Some(Tensor::from_slice(dims, &indices).unwrap()),
                output_shape.map(|shape: [i64; 4]| Tensor::from_slice([4], &shape).unwrap()),
            ],
            n_outputs: 1,
        });
    }
    samples
}
