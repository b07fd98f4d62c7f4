//! Random operands of ops that move elements.

use crate::random::Random;
use crate::samples::{Sample, convert};
use firstlight_backend::KernelBinding;
use firstlight_graph::ops;
use firstlight_graph::ops::layout::depth_to_space::BlockOrder;
use firstlight_graph::ops::layout::scatter::Reduction;
use firstlight_graph::{Op, OpKind};
use firstlight_tensor::{DType, Tensor};

/// What to try rows of these families on.
pub(crate) fn moves(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    let mut all = vec![];
    let mut add = |op: Op, inputs: Vec<Tensor>| {
        let shapes: Vec<_> = inputs.iter().map(Tensor::shape).collect();
        let name = format!("{op:?} of {shapes:?}");
        all.push(Sample { name, op, inputs: inputs.into_iter().map(Some).collect(), n_outputs: 1 });
    };
    match row.op {
        OpKind::Split => return splits(row, random),
        OpKind::Tile => tiles(row, random, &mut add),
        OpKind::Trilu => triangles(row, random, &mut add),
        OpKind::DepthToSpace | OpKind::SpaceToDepth => blocks(row, random, &mut add),
        OpKind::GatherND | OpKind::ScatterND => tuples(row, random, &mut add),
        OpKind::ScatterElements => scatters(row, random, &mut add),
        OpKind::OneHot => one_hots(row, random, &mut add),
        OpKind::Compress => compressions(row, random, &mut add),
        OpKind::ReverseSequence => reversals(row, random, &mut add),
        OpKind::CumSum => running_sums(row, random, &mut add),
        _ => {}
    }
    all
}

type Add<'a> = dyn FnMut(Op, Vec<Tensor>) + 'a;

fn i64s(values: &[i64]) -> Tensor {
    Tensor::from_slice([values.len()], values).unwrap()
}

/// Whether operands that are cut into chunks are tried in a row's types.
fn takes_large(row: &KernelBinding) -> bool {
    matches!(row.types[0], DType::F32 | DType::U8)
}

fn tiles(row: &KernelBinding, random: &mut Random, add: &mut Add<'_>) {
    let all: [(&[usize], &[i64]); 7] = [
        (&[3], &[5]),
        (&[2, 3, 4], &[1, 2, 1]),
        (&[2, 1, 4], &[3, 5, 2]),
        (&[2, 3], &[2, 0]),
        (&[1, 1, 1], &[2, 3, 4]),
        (&[2, 3], &[2, -1]),
        (&[30, 40, 1], &[2, 1, 50]),
    ];
    for (dims, repeats) in all {
        add(ops::Tile.into(), vec![random.tensor(row.types[0], dims), i64s(repeats)]);
    }
}

fn triangles(row: &KernelBinding, random: &mut Random, add: &mut Add<'_>) {
    for upper in [false, true] {
        for (dims, k) in
            [(&[5, 7][..], -2), (&[2, 3, 7, 5], 1), (&[4, 4], 9), (&[4, 4], -9), (&[1, 1], 0), (&[0, 3], 0)]
        {
            add(ops::Trilu { upper }.into(), vec![random.tensor(row.types[0], dims), Tensor::scalar(k)]);
        }
        if takes_large(row) {
            add(ops::Trilu { upper }.into(), vec![random.tensor(row.types[0], &[3, 200, 150])]);
        }
    }
}

fn blocks(row: &KernelBinding, random: &mut Random, add: &mut Add<'_>) {
    for order in [BlockOrder::DepthFirst, BlockOrder::DepthLast] {
        for (blocksize, dims) in
            [(2, [2, 8, 4, 6]), (3, [1, 9, 3, 3]), (1, [2, 3, 4, 5]), (2, [0, 4, 2, 2]), (2, [1, 3, 5, 2])]
        {
            let op: Op = match row.op {
                OpKind::DepthToSpace => ops::DepthToSpace { blocksize, order }.into(),
                _ => ops::SpaceToDepth { blocksize, order }.into(),
            };
            add(op, vec![random.tensor(row.types[0], &dims)]);
        }
        if takes_large(row) {
            let op: Op = match row.op {
                OpKind::DepthToSpace => ops::DepthToSpace { blocksize: 2, order }.into(),
                _ => ops::SpaceToDepth { blocksize: 2, order }.into(),
            };
            add(op, vec![random.tensor(row.types[0], &[2, 16, 60, 40])]);
        }
    }
}

fn tuples(row: &KernelBinding, random: &mut Random, add: &mut Add<'_>) {
    let all: [(&[usize], &[usize]); 7] = [
        (&[5, 4], &[3, 2]),
        (&[5, 4], &[6, 1]),
        (&[3, 4, 5], &[2, 3, 2]),
        (&[7], &[0, 1]),
        (&[3, 0], &[2, 1]),
        (&[4], &[4, 0]),
        (&[50, 300], &[60, 1]),
    ];
    let reductions = [Reduction::None, Reduction::Add, Reduction::Mul, Reduction::Max, Reduction::Min];
    for (i, (data, indices)) in all.into_iter().enumerate() {
        let (n, tuple) = (indices[..indices.len() - 1].iter().product::<usize>(), indices[indices.len() - 1]);
        let values: Vec<i64> = (0..n)
            .flat_map(|_| {
                data[..tuple].iter().map(|&size| random.within(-(size as i64)..size as i64)).collect::<Vec<_>>()
            })
            .collect();
        let at = Tensor::from_slice(indices, &values).unwrap();
        let x = random.tensor(row.types[0], data);
        if row.op == OpKind::GatherND {
            add(ops::GatherND { batch_dims: 0 }.into(), vec![x, at]);
            continue;
        }
        let updates: Vec<usize> = indices[..indices.len() - 1].iter().chain(&data[tuple..]).copied().collect();
        let updates = random.tensor(row.types[0], &updates);
        for reduction in [Reduction::None, reductions[i % 5]] {
            add(ops::ScatterND { reduction }.into(), vec![x.clone(), at.clone(), updates.clone()]);
        }
    }
    if row.op == OpKind::GatherND {
        let data = random.tensor(row.types[0], &[2, 3, 4, 5]);
        let at = Tensor::from_slice([2, 3, 2, 1], &[0i64, 3, -1, -4, 2, 1, 0, 0, 1, 2, 3, 3]).unwrap();
        add(ops::GatherND { batch_dims: 2 }.into(), vec![data.clone(), at]);
        add(ops::GatherND { batch_dims: 0 }.into(), vec![data, Tensor::from_slice([1, 1], &[2i64]).unwrap()]);
    }
}

fn scatters(row: &KernelBinding, random: &mut Random, add: &mut Add<'_>) {
    let all: [(&[usize], i64, &[usize]); 5] = [
        (&[6], 0, &[9]),
        (&[4, 5], 1, &[3, 7]),
        (&[4, 5, 3], -3, &[2, 5, 2]),
        (&[0, 3], 0, &[0, 3]),
        (&[3, 400, 30], 1, &[3, 100, 30]),
    ];
    for (i, (data, axis, indices)) in all.into_iter().enumerate() {
        let size = data[if axis < 0 { 0 } else { axis as usize }] as i64;
        let values: Vec<i64> = (0..indices.iter().product()).map(|_| random.within(-size..size)).collect();
        let at = convert(&Tensor::from_slice(indices, &values).unwrap(), row.types[1]);
        let (x, updates) = (random.tensor(row.types[0], data), random.tensor(row.types[0], indices));
        let reductions = [Reduction::Add, Reduction::Mul, Reduction::Max, Reduction::Min, Reduction::Add];
        for reduction in [Reduction::None, reductions[i]] {
            add(ops::ScatterElements { axis, reduction }.into(), vec![x.clone(), at.clone(), updates.clone()]);
        }
    }
    let outside = convert(&i64s(&[0, 3]), row.types[1]);
    let op = ops::ScatterElements::default();
    add(op.into(), vec![random.tensor(row.types[0], &[3]), outside, random.tensor(row.types[0], &[2])]);
}

fn one_hots(row: &KernelBinding, random: &mut Random, add: &mut Add<'_>) {
    for (dims, depth, axis) in
        [(&[7][..], 5, -1), (&[2, 3], 4, 1), (&[2, 3], 4, 0), (&[], 3, 0), (&[3], -1, 0), (&[300, 4], 90, 1)]
    {
        let values: Vec<i64> = (0..dims.iter().product()).map(|_| random.within(-depth - 2..depth + 2)).collect();
        let at = Tensor::from_slice(dims, &values).unwrap();
        add(ops::OneHot { axis }.into(), vec![at, Tensor::scalar(depth), random.tensor(row.types[0], &[2])]);
    }
}

fn compressions(row: &KernelBinding, random: &mut Random, add: &mut Add<'_>) {
    for (dims, n, axis) in [
        (&[7][..], 7, None),
        (&[3, 4, 5], 4, Some(1)),
        (&[3, 4, 5], 9, Some(-1)),
        (&[3, 4], 7, None),
        (&[3, 0], 2, Some(0)),
        (&[5], 0, Some(0)),
    ] {
        let (x, condition) = (random.tensor(row.types[0], dims), random.tensor(DType::Bool, &[n]));
        add(ops::Compress { axis }.into(), vec![x, condition]);
    }
}

fn reversals(row: &KernelBinding, random: &mut Random, add: &mut Add<'_>) {
    for (dims, batch_first) in
        [(&[4, 6][..], true), (&[6, 4], false), (&[2, 5, 3], true), (&[0, 2], true), (&[90, 40, 8], false)]
    {
        let (batch, time) = if batch_first { (dims[0], dims[1]) } else { (dims[1], dims[0]) };
        let lens: Vec<i64> = (0..batch).map(|_| random.within(0..time as i64 + 1)).collect();
        add(ops::ReverseSequence { batch_first }.into(), vec![random.tensor(row.types[0], dims), i64s(&lens)]);
    }
    let op = ops::ReverseSequence { batch_first: true };
    add(op.into(), vec![random.tensor(row.types[0], &[1, 2]), i64s(&[3])]);
}

fn running_sums(row: &KernelBinding, random: &mut Random, add: &mut Add<'_>) {
    for (dims, axis) in [(&[9][..], 0), (&[3, 4, 5], 1), (&[3, 70], -2), (&[0, 3], 0), (&[3, 0], 1), (&[40, 30, 90], 1)]
    {
        for (exclusive, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
            let axis = convert(&Tensor::scalar(axis as i64), row.types[1]);
            let op = ops::CumSum { exclusive, reverse };
            add(op.into(), vec![random.tensor(row.types[0], dims), axis]);
        }
    }
}

fn splits(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    type Cut = (&'static [usize], i64, Option<&'static [i64]>, usize);
    let all: [Cut; 9] = [
        (&[6, 4], 0, None, 3),
        (&[3, 7], 1, None, 4),
        (&[3, 4, 5], -2, Some(&[1, 0, 3]), 3),
        (&[2, 5, 3, 2], 1, Some(&[4, 1]), 2),
        (&[10, 3], 1, None, 3),
        (&[0, 4], 1, None, 2),
        (&[5], 0, None, 4),
        (&[300, 400], 0, Some(&[100, 200]), 2),
        (&[30, 20, 300], 2, Some(&[1, 200, 99]), 3),
    ];
    let sample = |(dims, axis, sizes, n_outputs): Cut| {
        let sizes = sizes.map(|sizes| Tensor::from_slice([sizes.len()], sizes).unwrap());
        let name = format!("{n_outputs} parts of {dims:?} along {axis}: {sizes:?}");
        let inputs = vec![Some(random.tensor(row.types[0], dims)), sizes];
        Sample { name, op: ops::Split { axis }.into(), inputs, n_outputs }
    };
    all.into_iter().map(sample).collect()
}
