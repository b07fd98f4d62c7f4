//! What rows are tried on: their ops' named cases in the rows' types, and random operands.

use crate::moves::moves;
use crate::networks::networks;
use crate::random::Random;
use firstlight_backend::KernelBinding;
use firstlight_graph::ops::{self, Cast};
use firstlight_graph::{Op, OpKind, TypeRef};
use firstlight_tensor::{DType, Tensor};

/// A node to try.
#[derive(Debug)]
pub(crate) struct Sample {
    pub name: String,
    pub op: Op,
    pub inputs: Vec<Option<Tensor>>,
    pub n_outputs: usize,
}

/// What to try a row on.
pub(crate) fn samples(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    let mut all = vec![];
    let info = row.op.info();
    for case in (info.cases)() {
        let inputs = case.inputs.iter().enumerate().map(|(i, input)| {
            let ty = info.input_param(i).map(|param| param.ty);
            input.as_ref().map(|tensor| match ty {
                Some(TypeRef::Var(var)) => convert(tensor, row.types[var as usize]),
                _ => tensor.clone(),
            })
        });
        let inputs = inputs.collect();
        let op = retyped(&case.op, row.types);
        all.push(Sample { name: case.name.to_owned(), op, inputs, n_outputs: case.outputs.len() });
    }
    let mut add = |op: Op, inputs: Vec<Option<Tensor>>| {
        // Large operands, which are cut into chunks, in the types that models use most.
        let is_large = inputs.iter().flatten().any(|input| input.n_elems() > 50_000);
        if is_large && !row.types.iter().all(|dtype| matches!(dtype, DType::F32 | DType::I64 | DType::Bool)) {
            return;
        }
        let shapes: Vec<_> = inputs.iter().map(|x| x.as_ref().map(|x| x.shape().clone())).collect();
        all.push(Sample { name: format!("{op:?} of {shapes:?}"), op, inputs, n_outputs: 1 });
    };
    elementwise(row, random, &mut add);
    movers(row, random, &mut add);
    reductions(row, random, &mut add);
    all.extend(networks(row, random));
    all.extend(moves(row, random));
    all.extend(crate::windows::windows(row, random));
    all.extend(crate::resizes::resizes(row, random));
    all
}

/// The op with the types of a row in its attributes.
fn retyped(op: &Op, types: &[DType]) -> Op {
    match op {
        Op::Cast(_) => Cast { to: types[1] }.into(),
        Op::ConstantOfShape(op) => ops::ConstantOfShape { value: convert(&op.value, types[0]) }.into(),
        other => other.clone(),
    }
}

const LARGE: &[usize] = &[29, 47, 101];

fn elementwise(row: &KernelBinding, random: &mut Random, add: &mut dyn FnMut(Op, Vec<Option<Tensor>>)) {
    for either in [false, true] {
        match row.op {
            OpKind::Mod => pairs(row, random, ops::Mod { fmod: either }.into(), add),
            OpKind::BitShift => pairs(row, random, ops::BitShift { right: either }.into(), add),
            _ => {}
        }
    }
    let op: Op = match row.op {
        OpKind::Add => ops::Add.into(),
        OpKind::Sub => ops::Sub.into(),
        OpKind::Mul => ops::Mul.into(),
        OpKind::Div => ops::Div.into(),
        OpKind::Pow => ops::Pow.into(),
        OpKind::And => ops::And.into(),
        OpKind::Equal => ops::Equal.into(),
        OpKind::GreaterOrEqual => ops::GreaterOrEqual.into(),
        OpKind::Greater => ops::Greater.into(),
        OpKind::Less => ops::Less.into(),
        OpKind::LessOrEqual => ops::LessOrEqual.into(),
        OpKind::Max => ops::Max.into(),
        OpKind::Min => ops::Min.into(),
        OpKind::Or => ops::Or.into(),
        OpKind::Xor => ops::Xor.into(),
        OpKind::BitwiseAnd => ops::BitwiseAnd.into(),
        OpKind::BitwiseOr => ops::BitwiseOr.into(),
        OpKind::BitwiseXor => ops::BitwiseXor.into(),
        OpKind::BitwiseNot => ops::BitwiseNot.into(),
        OpKind::PRelu => ops::PRelu.into(),
        OpKind::Where => ops::Where.into(),
        OpKind::Abs => ops::Abs.into(),
        OpKind::Ceil => ops::Ceil.into(),
        OpKind::Cos => ops::Cos.into(),
        OpKind::Floor => ops::Floor.into(),
        OpKind::IsNaN => ops::IsNaN.into(),
        OpKind::Log => ops::Log.into(),
        OpKind::Mish => ops::Mish.into(),
        OpKind::Neg => ops::Neg.into(),
        OpKind::Round => ops::Round.into(),
        OpKind::Sign => ops::Sign.into(),
        OpKind::Sin => ops::Sin.into(),
        OpKind::Softplus => ops::Softplus.into(),
        OpKind::Softsign => ops::Softsign.into(),
        OpKind::Celu => ops::Celu::default().into(),
        OpKind::Elu => ops::Elu::default().into(),
        OpKind::Gelu => ops::Gelu::default().into(),
        OpKind::IsInf => ops::IsInf::default().into(),
        OpKind::LeakyRelu => ops::LeakyRelu::default().into(),
        OpKind::Selu => ops::Selu::default().into(),
        OpKind::ThresholdedRelu => ops::ThresholdedRelu::default().into(),
        OpKind::Exp => ops::Exp.into(),
        OpKind::HardSigmoid => ops::HardSigmoid::default().into(),
        OpKind::HardSwish => ops::HardSwish.into(),
        OpKind::Reciprocal => ops::Reciprocal.into(),
        OpKind::Relu => ops::Relu.into(),
        OpKind::Sqrt => ops::Sqrt.into(),
        OpKind::Tanh => ops::Tanh.into(),
        OpKind::Clip => ops::Clip.into(),
        OpKind::Sigmoid => ops::Sigmoid.into(),
        OpKind::Erf => ops::Erf.into(),
        OpKind::Not => ops::Not.into(),
        OpKind::Identity => ops::Identity.into(),
        OpKind::Cast => Cast { to: row.types[1] }.into(),
        _ => return,
    };
    let last = row.types[row.types.len() - 1];
    match (row.op, row.op.info().inputs.len()) {
        (OpKind::Where, _) => {
            let triples: [[&[usize]; 3]; 6] = [
                [&[2, 3, 5], &[2, 3, 5], &[2, 3, 5]],
                [&[2, 1, 1], &[1, 3, 1], &[4]],
                [&[1, 1, 40], &[2, 40, 40], &[]],
                [&[3, 1], &[3, 50], &[50]],
                [&[0, 3], &[1], &[3]],
                [&[29, 1, 101], LARGE, &[]],
            ];
            for [c, x, y] in triples {
                let condition = random.tensor(DType::Bool, c);
                add(op.clone(), vec![Some(condition), Some(random.tensor(last, x)), Some(random.tensor(last, y))]);
            }
        }
        (OpKind::Clip, _) => {
            for dims in [&[][..], &[0], &[1], &[17], &[3, 5, 7], LARGE] {
                for given in [[true, true], [true, false], [false, true]] {
                    let bounds = given.map(|given| given.then(|| random.tensor(row.types[0], &[])));
                    add(op.clone(), [Some(random.tensor(row.types[0], dims))].into_iter().chain(bounds).collect());
                }
            }
        }
        (_, 2) => pairs(row, random, op, add),
        _ => {
            for dims in [&[][..], &[0], &[1], &[17], &[3, 5, 7], LARGE] {
                add(op.clone(), vec![Some(random.tensor(row.types[0], dims))]);
            }
        }
    }
}

/// Two operands in shapes that broadcast in many ways.
fn pairs(row: &KernelBinding, random: &mut Random, op: Op, add: &mut dyn FnMut(Op, Vec<Option<Tensor>>)) {
    let last = row.types[row.types.len() - 1];
    let pairs: [[&[usize]; 2]; 14] = [
        [&[5], &[5]],
        [&[100], &[]],
        [&[1], &[33]],
        [&[2, 3, 4], &[4]],
        [&[3, 1, 20], &[7, 1]],
        [&[4, 1, 3, 1], &[1, 5, 1, 6]],
        [&[2, 17, 5, 5], &[17, 1, 1]],
        [&[2, 0, 4], &[1, 4]],
        [&[1, 1], &[1]],
        [&[2, 2, 2, 2, 2, 2], &[2, 1, 2, 1, 2, 1]],
        [LARGE, LARGE],
        [LARGE, &[]],
        [&[1], LARGE],
        [LARGE, &[47, 1]],
    ];
    for [a, b] in pairs {
        add(op.clone(), vec![Some(random.tensor(row.types[0], a)), Some(random.tensor(last, b))]);
    }
}

fn movers(row: &KernelBinding, random: &mut Random, add: &mut dyn FnMut(Op, Vec<Option<Tensor>>)) {
    let Some(&dtype) = row.types.first() else { return };
    let ints =
        |values: &[i64]| convert(&Tensor::from_slice([values.len()], values).unwrap(), *row.types.last().unwrap());
    let i64s = |values: &[i64]| Tensor::from_slice([values.len()], values).unwrap();
    match row.op {
        OpKind::Transpose => {
            let perms: [(&[usize], &[i64]); 9] = [
                (&[2, 3, 4], &[2, 1, 0]),
                (&[2, 3, 4, 5], &[0, 2, 1, 3]),
                (&[2, 3, 4, 5], &[0, 2, 3, 1]),
                (&[2, 30, 4, 50], &[3, 1, 0, 2]),
                (&[40, 33], &[1, 0]),
                (&[1, 40, 1, 33], &[3, 2, 1, 0]),
                (&[2, 0, 3], &[1, 2, 0]),
                (&[2, 3, 2, 3, 2, 3], &[5, 3, 1, 4, 2, 0]),
                (&[47, 29, 101], &[2, 0, 1]),
            ];
            for (dims, perm) in perms {
                add(ops::Transpose { perm: Some(perm.to_vec()) }.into(), vec![Some(random.tensor(dtype, dims))]);
            }
            add(ops::Transpose { perm: None }.into(), vec![Some(random.tensor(dtype, &[5, 4]))]);
        }
        OpKind::Expand => {
            let shapes: [(&[usize], &[i64]); 6] = [
                (&[3, 1], &[2, 3, 4]),
                (&[1], &[0, 5]),
                (&[], &[7]),
                (&[2, 1, 3], &[1, 4, 1]),
                (&[1, 47, 1], &[29, 1, 101]),
                (&[1, 1, 900], &[100, 2, 1]),
            ];
            for (dims, to) in shapes {
                add(ops::Expand.into(), vec![Some(random.tensor(dtype, dims)), Some(i64s(to))]);
            }
        }
        OpKind::Slice => {
            for n in 0..22 {
                let dims: &[usize] = if n < 20 { &[5, 4, 7] } else { LARGE };
                let mut bounds = [vec![], vec![], vec![], vec![]];
                for (axis, &size) in dims.iter().enumerate() {
                    let size = size as i64;
                    bounds[0].push(random.within(-size - 2..size + 3));
                    bounds[1].push(random.within(-size - 2..size + 3));
                    bounds[2].push(axis as i64 - 3 * (n % 2));
                    bounds[3].push(match random.within(-3..4) {
                        0 => 1,
                        step => step,
                    });
                }
                let bounds = bounds.iter().map(|values| Some(ints(values)));
                add(ops::Slice.into(), [Some(random.tensor(dtype, dims))].into_iter().chain(bounds).collect());
            }
        }
        OpKind::Gather | OpKind::GatherElements => {
            for (dims, axis, index) in [
                (&[30, 8][..], 0, &[5, 2][..]),
                (&[4, 6, 3], 1, &[4, 4, 3]),
                (&[4, 6, 3], 2, &[4, 6, 5]),
                (&[4, 6, 3], -1, &[]),
                (&[2, 3], 0, &[0, 3]),
                (&[400, 1], 0, &[300, 1]),
                (&[50, 384], 0, &[2, 300]),
                (&[2, 200, 300], 1, &[2, 250, 300]),
            ] {
                let size = dims[if axis < 0 { dims.len() - 1 } else { axis as usize }] as i64;
                let n = index.iter().product::<usize>();
                let values: Vec<i64> = (0..n).map(|_| random.within(-size..size)).collect();
                let indices = convert(&Tensor::from_slice(index, &values).unwrap(), row.types[1]);
                let op = match row.op {
                    OpKind::Gather => ops::Gather { axis }.into(),
                    _ => ops::GatherElements { axis }.into(),
                };
                add(op, vec![Some(random.tensor(dtype, dims)), Some(indices)]);
            }
            let op: Op = match row.op {
                OpKind::Gather => ops::Gather { axis: 0 }.into(),
                _ => ops::GatherElements { axis: 0 }.into(),
            };
            add(op.clone(), vec![Some(random.tensor(dtype, &[3])), Some(ints(&[0, 3]))]);
            add(op, vec![Some(random.tensor(dtype, &[3])), Some(ints(&[-4, 2]))]);
        }
        OpKind::Concat => {
            for (axis, all) in [
                (0, &[&[2, 3][..], &[0, 3], &[5, 3]][..]),
                (1, &[&[2, 3], &[2, 1], &[2, 4]]),
                (-2, &[&[3, 2, 5], &[3, 7, 5]]),
                (0, &[&[300, 200], &[400, 200]]),
                (2, &[&[30, 20, 100], &[30, 20, 1], &[30, 20, 250]]),
                (1, &[&[4, 1][..]; 12]),
            ] {
                add(ops::Concat { axis }.into(), all.iter().map(|dims| Some(random.tensor(dtype, dims))).collect());
            }
        }
        OpKind::Pad => {
            use firstlight_graph::ops::layout::pad::PadMode;
            for mode in [PadMode::Constant, PadMode::Edge, PadMode::Reflect, PadMode::Wrap] {
                for (dims, pads) in [
                    (&[3, 4, 5][..], &[1, 0, 2, 0, 3, 1][..]),
                    (&[3, 4, 5], &[-1, 2, 0, 1, -2, -3]),
                    (&[2, 3], &[7, 5, 6, 9]),
                    (&[29, 47, 90], &[0, 1, 5, 0, 1, 6]),
                ] {
                    let x = random.tensor(dtype, dims);
                    let value = random.tensor(dtype, &[]);
                    add(ops::Pad { mode }.into(), vec![Some(x.clone()), Some(i64s(pads)), Some(value)]);
                    let axes = Some(ints(&[-1, 0]));
                    add(ops::Pad { mode }.into(), vec![Some(x), Some(i64s(&[1, 2, 3, 0])), None, axes]);
                }
            }
        }
        _ => {}
    }
}

fn reductions(row: &KernelBinding, random: &mut Random, add: &mut dyn FnMut(Op, Vec<Option<Tensor>>)) {
    let Some(&dtype) = row.types.first() else { return };
    match row.op {
        OpKind::GlobalMaxPool => {
            for dims in [&[2, 3, 7, 5][..], &[1, 40, 1000], &[30, 40, 7, 7], &[2, 3, 0], &[0, 3, 2]] {
                add(ops::GlobalMaxPool.into(), vec![Some(random.finite(dtype, dims))]);
                add(ops::GlobalMaxPool.into(), vec![Some(random.tensor(dtype, dims))]);
            }
        }
        kind if firstlight_graph::ops::reduce::along::Along::of(&reduction(kind, true, false)).is_some() => {
            let axes: [(&[usize], &[i64]); 16] = [
                (&[3, 40], &[-1]),
                (&[40, 3], &[0]),
                (&[2, 33, 50], &[1]),
                (&[2, 5, 3, 7], &[2, 3]),
                (&[2, 5, 3, 7], &[0, 2]),
                (&[2, 5, 3, 7], &[1, 3]),
                (&[2, 5, 3, 7, 2], &[0, 2, 4]),
                (&[3, 4, 5, 70], &[0, 2]),
                (&[2, 1, 3, 1], &[1]),
                (&[0, 3], &[1]),
                (&[3, 0], &[1]),
                (&[1500, 150], &[1]),
                (&[1500, 150], &[0]),
                (&[40, 31, 400], &[1]),
                (&[40, 31, 400], &[0, 2]),
                (&[5, 31, 40, 130], &[0, 2]),
            ];
            for (dims, axes) in axes {
                for keepdims in [false, true] {
                    let axes = Tensor::from_slice([axes.len()], axes).unwrap();
                    add(reduction(kind, keepdims, false), vec![Some(random.finite(dtype, dims)), Some(axes)]);
                }
            }
            add(reduction(kind, true, false), vec![Some(random.tensor(dtype, &[4, 100, 3]))]);
            add(reduction(kind, true, true), vec![Some(random.tensor(dtype, &[4, 100, 3]))]);
        }
        OpKind::GlobalLpPool => {
            for (dims, p) in
                [(&[2, 3, 7, 5][..], 2), (&[1, 40, 1000], 1), (&[2, 3, 7], 3), (&[60, 40, 7, 7], 2), (&[2, 3, 0], 2)]
            {
                add(ops::GlobalLpPool { p }.into(), vec![Some(random.finite(dtype, dims))]);
            }
        }
        OpKind::ArgMax | OpKind::ArgMin => {
            for (dims, axis) in [
                (&[3, 40][..], -1),
                (&[40, 300], 0),
                (&[2, 33, 50], 1),
                (&[5, 1], 1),
                (&[0, 3], 1),
                (&[700, 150], 1),
                (&[20, 31, 200], 1),
            ] {
                for (keepdims, select_last_index) in [(false, true), (true, false)] {
                    let op: Op = match row.op {
                        OpKind::ArgMax => ops::ArgMax { axis, keepdims, select_last_index }.into(),
                        _ => ops::ArgMin { axis, keepdims, select_last_index }.into(),
                    };
                    add(op, vec![Some(random.tensor(dtype, dims))]);
                }
            }
        }
        OpKind::TopK => {
            for (dims, axis, k) in [
                (&[3, 40][..], -1, 5i64),
                (&[40, 30], 0, 40),
                (&[2, 33, 50], 1, 7),
                (&[5, 1], 1, 1),
                (&[5, 3], 1, 0),
                (&[600, 150], 1, 20),
                (&[20, 31, 200], 1, 31),
            ] {
                for largest in [false, true] {
                    let k = Some(Tensor::from_slice([1], &[k]).unwrap());
                    add(ops::TopK { axis, largest, sorted: true }.into(), vec![Some(random.tensor(dtype, dims)), k]);
                }
            }
        }
        OpKind::RMSNormalization => {
            for (dims, axis, scale) in
                [(&[3, 40][..], -1, &[40][..]), (&[4, 5, 6], 1, &[5, 6]), (&[2, 3], 1, &[1]), (&[700, 100], 1, &[100])]
            {
                let inputs = vec![Some(random.finite(dtype, dims)), Some(random.finite(row.types[1], scale))];
                add(ops::RMSNormalization { axis, epsilon: 1e-5 }.into(), inputs);
            }
        }
        OpKind::LogSoftmax => {
            for (dims, axis) in [
                (&[3, 40][..], -1),
                (&[40, 300], 0),
                (&[2, 33, 50], 1),
                (&[5, 1], 1),
                (&[3, 0], 1),
                (&[700, 150], -1),
                (&[20, 31, 200], 1),
            ] {
                add(ops::LogSoftmax { axis }.into(), vec![Some(random.finite(dtype, dims))]);
                add(ops::LogSoftmax { axis }.into(), vec![Some(random.tensor(dtype, dims))]);
            }
        }
        OpKind::Softmax => {
            for (dims, axis) in [
                (&[3, 40][..], -1),
                (&[40, 300], 0),
                (&[2, 33, 50], 1),
                (&[5, 1], 1),
                (&[3, 0], 1),
                (&[0, 3], 1),
                (&[700, 150], -1),
                (&[20, 31, 200], 1),
            ] {
                add(ops::Softmax { axis }.into(), vec![Some(random.finite(dtype, dims))]);
                add(ops::Softmax { axis }.into(), vec![Some(random.tensor(dtype, dims))]);
            }
        }
        OpKind::NonZero => {
            for dims in [&[5][..], &[3, 4, 5], &[0, 3], &[]] {
                add(ops::NonZero.into(), vec![Some(random.tensor(dtype, dims))]);
            }
        }
        OpKind::ConstantOfShape => {
            let dims = Tensor::from_slice([2], &[300i64, 500]).unwrap();
            add(ops::ConstantOfShape { value: random.tensor(dtype, &[1]) }.into(), vec![Some(dims)]);
        }
        _ => {}
    }
}

/// A reduction along axes; another op where the kind is none.
fn reduction(kind: OpKind, keepdims: bool, noop_with_empty_axes: bool) -> Op {
    match kind {
        OpKind::ReduceL1 => ops::ReduceL1 { keepdims, noop_with_empty_axes }.into(),
        OpKind::ReduceL2 => ops::ReduceL2 { keepdims, noop_with_empty_axes }.into(),
        OpKind::ReduceLogSum => ops::ReduceLogSum { keepdims, noop_with_empty_axes }.into(),
        OpKind::ReduceLogSumExp => ops::ReduceLogSumExp { keepdims, noop_with_empty_axes }.into(),
        OpKind::ReduceMax => ops::ReduceMax { keepdims, noop_with_empty_axes }.into(),
        OpKind::ReduceMean => ops::ReduceMean { keepdims, noop_with_empty_axes }.into(),
        OpKind::ReduceMin => ops::ReduceMin { keepdims, noop_with_empty_axes }.into(),
        OpKind::ReduceProd => ops::ReduceProd { keepdims, noop_with_empty_axes }.into(),
        OpKind::ReduceSum => ops::ReduceSum { keepdims, noop_with_empty_axes }.into(),
        OpKind::ReduceSumSquare => ops::ReduceSumSquare { keepdims, noop_with_empty_axes }.into(),
        _ => ops::Identity.into(),
    }
}

/// A tensor's elements in another type, as a cast would give them where it can.
pub(crate) fn convert(tensor: &Tensor, to: DType) -> Tensor {
    if tensor.dtype() == to {
        return tensor.clone();
    }
    let info = firstlight_graph::OutInfo::known(to, tensor.shape().clone());
    let cast = firstlight_graph::run_reference(&Cast { to }.into(), &[Some(tensor.view())], &[info]);
    match cast {
        Ok(mut outputs) => outputs.remove(0),
        // A type that is not computed with: any bytes will do.
        Err(_) => Random::new(tensor.n_elems() as u64).tensor(to, tensor.shape()),
    }
}
