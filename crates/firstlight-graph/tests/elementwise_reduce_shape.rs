//! Elementwise, reduction and shape ops on random small inputs, against other ways to compute the same, and what their
//! inference waits for.

use firstlight_graph::{OpErrorKind, OutInfo, ValueInfo, infer_known, ops, ops::Op, run_reference};
use firstlight_tensor::{DType, Dim, Element, Shape, SymShape, Tensor};

/// Pseudo-random numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn shape(&mut self, max_rank: usize) -> Vec<usize> {
        (0..self.below(max_rank + 1)).map(|_| [0, 1, 2, 3, 5, 17][self.below(6).max(self.below(2))]).collect()
    }

    /// A shape that broadcasts to `shape`.
    fn part_of(&mut self, shape: &[usize]) -> Vec<usize> {
        let tail = &shape[self.below(shape.len() + 1)..];
        tail.iter().map(|&dim| if self.below(3) == 0 { 1 } else { dim }).collect()
    }

    fn tensor<T: Element>(&mut self, dims: &[usize], value: impl Fn(u64) -> T) -> Tensor {
        let n = Shape::from(dims).n_elems().unwrap();
        let values: Vec<T> = (0..n).map(|_| value(self.next())).collect();
        Tensor::from_slice(dims, &values).unwrap()
    }

    fn floats(&mut self, dims: &[usize]) -> Tensor {
        self.tensor(dims, |bits| (bits % 2001) as f32 / 250. - 4.)
    }
}

fn known(tensor: &Tensor) -> Option<ValueInfo> {
    Some(ValueInfo { dtype: tensor.dtype(), dims: SymShape::from(tensor.shape()), value: Some(tensor.clone()) })
}

fn run(op: &Op, inputs: &[&Tensor], n_outputs: usize) -> Vec<Tensor> {
    let infos: Vec<_> = inputs.iter().map(|&input| known(input)).collect();
    let outputs = infer_known(op, &infos, n_outputs).unwrap_or_else(|error| panic!("{op:?}: {error}"));
    let views: Vec<_> = inputs.iter().map(|input| Some(input.view())).collect();
    let tensors = run_reference(op, &views, &outputs).unwrap_or_else(|error| panic!("{op:?}: {error}"));
    for (tensor, info) in tensors.iter().zip(&outputs) {
        check(tensor, info);
    }
    tensors
}

/// The reference gives what inference said.
fn check(tensor: &Tensor, info: &OutInfo) {
    let dims = info.dims.known().unwrap();
    assert_eq!((tensor.dtype(), tensor.shape().rank()), (info.dtype, dims.rank()));
    for (&got, &said) in tensor.shape().iter().zip(&dims) {
        assert!(got == said || (info.data_sized && got < said), "{} of {dims}", tensor.shape());
    }
    assert!(info.value.is_none() || info.value.as_ref() == Some(tensor));
}

/// The element of a tensor that meets `index` of the shape it broadcasts to.
fn meets(dims: &[usize], index: &[usize]) -> usize {
    let index = &index[index.len() - dims.len()..];
    dims.iter().zip(index).fold(0, |at, (&dim, &i)| at * dim + if dim == 1 { 0 } else { i })
}

/// Every index of a shape, in order.
fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    (0..Shape::from(shape).n_elems().unwrap()).map(move |mut at| {
        let mut index = vec![0; shape.len()];
        for (i, &dim) in index.iter_mut().zip(shape).rev() {
            (*i, at) = (at % dim, at / dim);
        }
        index
    })
}

#[test]
fn binary_ops_broadcast() {
    let mut numbers = Numbers(1);
    for _ in 0..200 {
        let shape = numbers.shape(3);
        let (a, b) = (numbers.part_of(&shape), numbers.part_of(&shape));
        let (a, b) = (numbers.tensor(&a, |bits| bits as i32), numbers.tensor(&b, |bits| (bits % 7) as i32 - 3));
        let (x, y) = (a.values::<i32>().unwrap(), b.values::<i32>().unwrap());
        let shape = Shape::broadcast(a.shape(), b.shape()).unwrap();
        type Function = fn(i32, i32) -> i32;
        let ops: [(Op, Function); 5] = [
            (ops::Add.into(), i32::wrapping_add),
            (ops::Sub.into(), i32::wrapping_sub),
            (ops::Mul.into(), i32::wrapping_mul),
            (ops::Div.into(), |a, b| if b == 0 { 0 } else { (i64::from(a) / i64::from(b)) as i32 }),
            (ops::Pow.into(), |a, b| match (a, b) {
                (1, _) => 1,
                (-1, b) => 1 - 2 * (b & 1),
                (_, ..0) => 0,
                (a, b) => (0..b).fold(1, |power: i32, _| power.wrapping_mul(a)),
            }),
        ];
        for (op, f) in ops {
            let want: Vec<i32> = indices(&shape).map(|i| f(x[meets(a.shape(), &i)], y[meets(b.shape(), &i)])).collect();
            let got = run(&op, &[&a, &b], 1).remove(0);
            assert_eq!(got, Tensor::from_slice(&shape[..], &want).unwrap(), "{op:?} of {a:?} and {b:?}");
        }
        let at_least = run(&ops::GreaterOrEqual.into(), &[&a, &b], 1).remove(0);
        let less = run(&ops::Not.into(), &[&at_least], 1).remove(0);
        let equal = run(&ops::Equal.into(), &[&a, &b], 1).remove(0);
        let both = run(&ops::And.into(), &[&at_least, &equal], 1).remove(0);
        assert_eq!(both, equal, "equal elements are at least each other");
        // Where a is less it is a, else b: the lesser of the two.
        let lesser = run(&ops::Where.into(), &[&less, &a, &b], 1).remove(0);
        let want: Vec<i32> = indices(&shape).map(|i| x[meets(a.shape(), &i)].min(y[meets(b.shape(), &i)])).collect();
        assert_eq!(lesser, Tensor::from_slice(&shape[..], &want).unwrap());
    }
}

#[test]
fn casts_agree_with_the_conversions_of_rust() {
    let mut numbers = Numbers(2);
    let floats = numbers.tensor(&[500], |bits| f64::from_bits(bits) as f32);
    let ints = numbers.tensor(&[500], |bits| bits as i64);
    let cast = |x: &Tensor, to| run(&ops::Cast { to }.into(), &[x], 1).remove(0);
    let bits = |x: &Tensor| x.as_bytes().to_vec();
    let (f, i) = (floats.values::<f32>().unwrap(), ints.values::<i64>().unwrap());
    let tensor = |values: &[i16]| Tensor::from_slice([500], values).unwrap();
    assert_eq!(cast(&floats, DType::I16), tensor(&f.iter().map(|&x| x as i16).collect::<Vec<_>>()));
    assert_eq!(cast(&ints, DType::I16), tensor(&i.iter().map(|&x| x as i16).collect::<Vec<_>>()));
    let widened: Vec<f64> = f.iter().map(|&x| x.into()).collect();
    assert_eq!(bits(&cast(&floats, DType::F64)), bits(&Tensor::from_slice([500], &widened).unwrap()));
    assert_eq!(bits(&cast(&cast(&floats, DType::F64), DType::F32)), bits(&floats), "there and back");
    let rounded: Vec<f32> = i.iter().map(|&x| x as f32).collect();
    assert_eq!(cast(&ints, DType::F32), Tensor::from_slice([500], &rounded).unwrap());
    // Every f16 but NaN survives every wider float.
    let halves: Vec<u16> = (0..=u16::MAX).filter(|bits| bits & 0x7fff <= 0x7c00).collect();
    let halves = Tensor::new(DType::F16, [halves.len()].into(), bytemuck::cast_slice(&halves).into()).unwrap();
    for wide in [DType::F32, DType::F64] {
        assert_eq!(bits(&cast(&cast(&halves, wide), DType::F16)), bits(&halves), "through {wide}");
    }
}

#[test]
fn means_are_those_of_the_elements_along_the_axes() {
    let mut numbers = Numbers(3);
    for _ in 0..200 {
        let x = numbers.shape(4);
        let x = numbers.floats(&x);
        let rank = x.shape().rank();
        let reduced: Vec<bool> = (0..rank).map(|_| numbers.below(2) == 0).collect();
        let mut axes: Vec<i64> = (0..rank as i64).filter(|&axis| reduced[axis as usize]).collect();
        for axis in &mut axes {
            *axis -= [0, rank as i64][numbers.below(2)];
        }
        let keepdims = numbers.below(2) == 0;
        let op = ops::ReduceMean { keepdims, noop_with_empty_axes: true };
        let axes = Tensor::from_slice([axes.len()], &axes).unwrap();
        let got = run(&op.into(), &[&x, &axes], 1).remove(0);
        let kept: Vec<usize> = x.shape().iter().zip(&reduced).map(|(&dim, &is)| if is { 1 } else { dim }).collect();
        let mut sums = vec![(0f64, 0usize); Shape::from(&kept[..]).n_elems().unwrap()];
        for (index, &value) in indices(x.shape()).zip(x.values::<f32>().unwrap().iter()) {
            let (sum, n) = &mut sums[meets(&kept, &index)];
            (*sum, *n) = (*sum + f64::from(value), *n + 1);
        }
        let dims: Vec<usize> =
            kept.iter().zip(&reduced).filter(|&(_, &is)| keepdims || !is).map(|(&dim, _)| dim).collect();
        assert_eq!(got.shape(), &Shape::from(&dims[..]), "{x:?} along {axes:?}");
        for (got, (sum, n)) in got.values::<f32>().unwrap().iter().zip(sums) {
            let want = sum / n as f64;
            assert!((f64::from(*got) - want).abs() < 1e-5 || (n == 0 && got.is_nan()), "{got}, expected {want}");
        }
    }
}

#[test]
fn softmax_and_layer_normalization_agree_with_their_formulas() {
    let mut numbers = Numbers(4);
    for _ in 0..200 {
        let mut x = numbers.shape(3);
        x.push(1 + numbers.below(40));
        let x = numbers.floats(&x);
        let rank = x.shape().rank();
        let axis = numbers.below(rank);
        let values = x.values::<f32>().unwrap();
        let from_end = axis as i64 - rank as i64;
        let y = run(&ops::Softmax { axis: from_end }.into(), &[&x], 1).remove(0);
        let mut column = x.shape().to_vec();
        column[axis] = 1;
        let mut sums = vec![0f64; Shape::from(&column[..]).n_elems().unwrap()];
        for (index, &value) in indices(x.shape()).zip(values.iter()) {
            sums[meets(&column, &index)] += f64::from(value).exp();
        }
        for ((index, &value), &got) in indices(x.shape()).zip(values.iter()).zip(y.values::<f32>().unwrap().iter()) {
            let want = f64::from(value).exp() / sums[meets(&column, &index)];
            assert!((f64::from(got) - want).abs() < 1e-6, "softmax of {x:?} along {axis}: {got}, expected {want}");
        }

        let (scale, bias) = (numbers.part_of(x.shape()), numbers.part_of(x.shape()));
        let (scale, bias) = (numbers.floats(&scale), numbers.floats(&bias));
        let op = ops::LayerNormalization { axis: from_end, epsilon: 0.1 };
        let outputs = run(&op.into(), &[&x, &scale, &bias], 3);
        let n = x.shape()[axis..].iter().product::<usize>();
        let (scales, biases) = (scale.values::<f32>().unwrap(), bias.values::<f32>().unwrap());
        let y = outputs[0].values::<f32>().unwrap();
        for (at, index) in indices(x.shape()).enumerate() {
            let row = &values[at / n * n..][..n];
            let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / n as f64;
            let variance = row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n as f64;
            let inverse = (variance + f64::from(0.1f32)).sqrt().recip();
            let (scale, bias) = (scales[meets(scale.shape(), &index)], biases[meets(bias.shape(), &index)]);
            let want = (f64::from(values[at]) - mean) * inverse * f64::from(scale) + f64::from(bias);
            assert!((f64::from(y[at]) - want).abs() < 1e-4, "normalised {x:?}: {}, expected {want}", y[at]);
            for (moment, want) in outputs[1..].iter().zip([mean, inverse]) {
                let got = moment.values::<f32>().unwrap()[at / n];
                assert!((f64::from(got) - want).abs() < 1e-5, "moment of {x:?}: {got}, expected {want}");
            }
        }
    }
}

#[test]
fn shape_ops_count() {
    let mut numbers = Numbers(5);
    for _ in 0..200 {
        let x = numbers.shape(4);
        let x = numbers.tensor(&x, |bits| (bits % 3) as u8);
        let sizes: Vec<i64> = x.shape().iter().map(|&dim| dim as i64).collect();
        let shape = run(&ops::Shape::default().into(), &[&x], 1).remove(0);
        assert_eq!(shape, Tensor::from_slice([sizes.len()], &sizes).unwrap());
        let size = run(&ops::Size.into(), &[&x], 1).remove(0);
        assert_eq!(size, Tensor::scalar(sizes.iter().product::<i64>()));
        let filled = run(&ops::ConstantOfShape { value: Tensor::scalar(3u8) }.into(), &[&shape], 1).remove(0);
        assert_eq!(filled, Tensor::from_slice(&x.shape()[..], &vec![3u8; x.n_elems()]).unwrap());

        let places = run(&ops::NonZero.into(), &[&x], 1).remove(0);
        let found: Vec<_> =
            indices(x.shape()).zip(x.as_bytes()).filter(|&(_, &byte)| byte != 0).map(|(index, _)| index).collect();
        let rows = (0..x.shape().rank()).flat_map(|axis| found.iter().map(move |index| index[axis] as i64));
        let want = Tensor::from_slice([x.shape().rank(), found.len()], &rows.collect::<Vec<_>>()).unwrap();
        assert_eq!(places, want);

        let part = |bits: u64| (bits % 41) as i64 - 20;
        let (start, limit, delta) = (part(numbers.next()), part(numbers.next()), part(numbers.next()) | 1);
        let in_order = |x: &i64| if delta > 0 { *x < limit } else { *x > limit };
        let want: Vec<i64> = std::iter::successors(Some(start), |x| Some(x + delta)).take_while(in_order).collect();
        let inputs = [start, limit, delta].map(Tensor::scalar);
        let range = run(&ops::Range.into(), &inputs.each_ref(), 1).remove(0);
        assert_eq!(range, Tensor::from_slice([want.len()], &want).unwrap(), "{start} to {limit} by {delta}");
        let floats = [start, limit, delta].map(|x| Tensor::scalar(x as f32));
        let range = run(&ops::Range.into(), &floats.each_ref(), 1).remove(0);
        let want: Vec<f32> = want.iter().map(|&x| x as f32).collect();
        assert_eq!(range, Tensor::from_slice([want.len()], &want).unwrap());
    }
}

#[test]
fn inference_waits_for_the_values_it_needs() {
    let unknown =
        |dtype, dims: &[usize]| Some(ValueInfo { dtype, dims: SymShape::from(&Shape::from(dims)), value: None });
    let x = || unknown(DType::F32, &[2, 3]);
    let waits = |op: Op, inputs: &[Option<ValueInfo>], i: usize| {
        let error = infer_known(&op, inputs, 1).unwrap_err();
        assert_eq!(error.kind(), &OpErrorKind::NeedsValue(i), "{op:?}: {error}");
    };
    waits(ops::ReduceMean::default().into(), &[x(), unknown(DType::I64, &[1])], 1);
    waits(ops::ConstantOfShape::default().into(), &[unknown(DType::I64, &[2])], 0);
    let one = || known(&Tensor::scalar(1i64));
    waits(ops::Range.into(), &[one(), unknown(DType::I64, &[]), one()], 1);
    // Axes that are empty by their shape need no value.
    let all = infer_known(&ops::ReduceMean::default().into(), &[x(), unknown(DType::I64, &[0])], 1).unwrap();
    assert_eq!(all[0].dims.known(), Some([1, 1].into()));
}

#[test]
fn what_follows_from_dims_alone_is_a_value() {
    let symbolic = Some(ValueInfo {
        dtype: DType::F32,
        dims: [Dim::Named("batch".into()), Dim::Known(3), Dim::Known(4)].into_iter().collect(),
        value: None,
    });
    let infer = |op: Op| infer_known(&op, std::slice::from_ref(&symbolic), 1).unwrap().remove(0);
    assert_eq!(infer(ops::Shape { start: 1, end: None }.into()).value, Tensor::from_slice([2], &[3i64, 4]).ok());
    assert_eq!(infer(ops::Shape::default().into()), OutInfo::known(DType::I64, [3]));
    assert_eq!(infer(ops::Size.into()), OutInfo::known(DType::I64, []));
    let places = infer(ops::NonZero.into());
    assert_eq!(places.dims, [Dim::Known(3), Dim::Unknown].into_iter().collect());
    assert!(places.data_sized);
    let normalised = ops::LayerNormalization { axis: 1, ..Default::default() }.into();
    let scale = known(&Tensor::scalar(1f32));
    let outputs = infer_known(&normalised, &[symbolic.clone(), scale], 3).unwrap();
    assert_eq!(outputs[1].dims, [Dim::Named("batch".into()), Dim::Known(1), Dim::Known(1)].into_iter().collect());
}

#[test]
fn what_does_not_fit_is_an_error_that_says_why() {
    let message = |op: Op, inputs: &[&Tensor]| {
        let infos: Vec<_> = inputs.iter().map(|&input| known(input)).collect();
        infer_known(&op, &infos, 1).unwrap_err().to_string()
    };
    let x = Tensor::zeros(DType::F32, [2, 3]).unwrap();
    let ints = |values: &[i64]| Tensor::from_slice([values.len()], values).unwrap();
    assert_eq!(
        message(ops::Mul.into(), &[&x, &Tensor::zeros(DType::F32, [4]).unwrap()]),
        "shapes [2,3] and [4] do not broadcast: 3 against 4 at dimension 1 of 2"
    );
    let strings = Tensor::from_strings([1], &["1"]).unwrap();
    assert_eq!(
        message(ops::Cast { to: DType::I64 }.into(), &[&strings]),
        "Cast from string to i64: only floats of 16 to 64 bits, integers of 8 to 64 bits and bool are converted"
    );
    assert_eq!(
        message(ops::ReduceMean::default().into(), &[&x, &ints(&[2])]),
        "axis 2 is outside -2..2 of a rank-2 input"
    );
    assert_eq!(message(ops::ReduceMean::default().into(), &[&x, &ints(&[1, -1])]), "axes [1, -1] name axis 1 twice");
    assert_eq!(
        message(ops::LayerNormalization::default().into(), &[&x, &Tensor::zeros(DType::F32, [4, 2, 3]).unwrap()]),
        "Scale of shape [4,2,3] does not broadcast to [2,3]"
    );
    assert_eq!(
        message(ops::ConstantOfShape::default().into(), &[&ints(&[2, -1])]),
        "the wanted shape [2, -1] holds -1, expected no negative size"
    );
    assert_eq!(
        message(ops::ConstantOfShape::default().into(), &[&ints(&[i64::MAX, i64::MAX])]),
        "ConstantOfShape: the result is larger than the address space"
    );
    let range = |start: f64, limit: f64, delta: f64| {
        message(ops::Range.into(), &[start, limit, delta].map(Tensor::scalar).each_ref())
    };
    assert_eq!(range(0., 1., 0.), "no range goes from 0 to 1 in steps of 0");
    assert_eq!(range(0., f64::NAN, 1.), "no range goes from 0 to NaN in steps of 1");
    assert_eq!(range(0., 1., 1e-300), "Range: the result is larger than the address space");
}
