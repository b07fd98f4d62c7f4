//! Ops of the layout and nn families: symbolic inference, errors, orders of sums, views, absurd input.

use firstlight_graph::ops::nn::activation::Activation;
use firstlight_graph::ops::nn::conv::CHANNEL_BLOCK;
use firstlight_graph::ops::nn::window::AutoPad;
use firstlight_graph::ops::{self, Op, layout::pad::PadMode, nn::lstm::Direction, nn::max_pool::StorageOrder};
use firstlight_graph::{Case, OpErrorKind, OpKind, OutInfo, RefCtx, TypeRef, ValueInfo};
use firstlight_graph::{infer_known, infer_symbolic, run_reference};
use firstlight_tensor::{DType, Dim, Layout, Shape, SymShape, Tensor, TensorView, TensorViewMut, f16};
use std::collections::BTreeSet;

fn known(tensor: &Tensor) -> Option<ValueInfo> {
    Some(ValueInfo { dtype: tensor.dtype(), dims: SymShape::from(tensor.shape()), value: Some(tensor.clone()) })
}

/// An f32 input of dims given as text: numbers, names, `?`.
fn sym(dims: &str) -> Option<ValueInfo> {
    let dim = |word: &str| match word.parse() {
        Ok(size) => Dim::Known(size),
        Err(_) if word == "?" => Dim::Unknown,
        Err(_) => Dim::Named(word.into()),
    };
    Some(ValueInfo { dtype: DType::F32, dims: dims.split_whitespace().map(dim).collect(), value: None })
}

fn ints(values: &[i64]) -> Option<ValueInfo> {
    known(&Tensor::from_slice([values.len()], values).unwrap())
}

fn inferred(op: impl Into<Op>, inputs: &[Option<ValueInfo>]) -> String {
    let outputs = infer_symbolic(&op.into(), inputs, 1).unwrap().expect("dims that can be told");
    outputs[0].dims.to_string()
}

fn kind_of(op: impl Into<Op>, inputs: &[Option<ValueInfo>]) -> OpErrorKind {
    infer_known(&op.into(), inputs, 1).expect_err("an error").kind().clone()
}

fn computed(op: &Op, inputs: &[Tensor]) -> Tensor {
    let infos: Vec<_> = inputs.iter().map(known).collect();
    let outputs = infer_known(op, &infos, 1).unwrap();
    let views: Vec<_> = inputs.iter().map(|input| Some(input.view())).collect();
    run_reference(op, &views, &outputs).unwrap().remove(0)
}

/// Small numbers that are not round, for sums whose order shows.
fn noise(dims: &[usize], seed: u32) -> Tensor {
    let mut state = seed;
    let values: Vec<f32> = (0..dims.iter().product())
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    Tensor::from_slice(dims, &values).unwrap()
}

#[test]
fn symbolic_dims_pass_through() {
    assert_eq!(inferred(ops::Concat { axis: 1 }, &[sym("n 2"), sym("n 3")]), "[n,5]");
    assert_eq!(inferred(ops::Concat { axis: 0 }, &[sym("n 2"), sym("1 ?")]), "[?,2]");
    assert_eq!(inferred(ops::Expand, &[sym("n 1"), ints(&[1, 4])]), "[n,4]");
    assert_eq!(inferred(ops::Flatten { axis: 1 }, &[sym("n 2 3")]), "[n,6]");
    assert_eq!(inferred(ops::Flatten { axis: 2 }, &[sym("n m 3")]), "[?,3]");
    assert_eq!(inferred(ops::Gather { axis: 1 }, &[sym("n 5 m"), ints(&[0, 1])]), "[n,2,m]");
    assert_eq!(inferred(ops::Pad::default(), &[sym("n m"), ints(&[0, 1, 0, 0])]), "[n,?]");
    let slice = [sym("n m 9"), ints(&[0, 1, 1]), ints(&[i64::MAX, 3, -1])];
    assert_eq!(inferred(ops::Slice, &slice), "[n,?,7]");
    assert_eq!(inferred(ops::Squeeze, &[sym("n 1 m"), ints(&[1])]), "[n,m]");
    assert_eq!(inferred(ops::Unsqueeze, &[sym("n m"), ints(&[-1])]), "[n,m,1]");
    assert_eq!(inferred(ops::Transpose::default(), &[sym("n m 3")]), "[3,m,n]");
    assert_eq!(inferred(ops::MatMul::default(), &[sym("b s 8"), sym("8 4")]), "[b,s,4]");
    assert_eq!(inferred(ops::MatMul::default(), &[sym("b h s d"), sym("b h d t")]), "[b,h,s,t]");
    assert_eq!(inferred(ops::Gemm::default(), &[sym("n 8"), sym("8 4"), sym("4")]), "[n,4]");
    assert_eq!(inferred(ops::GlobalAveragePool, &[sym("n 8 h w")]), "[n,8,1,1]");
    let conv = ops::Conv { strides: vec![2, 2], pads: vec![1, 1, 1, 1], ..Default::default() };
    assert_eq!(inferred(conv, &[sym("n 8 h 6"), sym("4 8 3 3"), sym("4")]), "[n,4,?,3]");
    let pool = ops::MaxPool { kernel_shape: vec![2, 2], strides: vec![2, 2], ..Default::default() };
    assert_eq!(inferred(pool, &[sym("n c h 6")]), "[n,c,?,3]");
    let lstm = [sym("s b 3"), sym("1 8 3"), sym("1 8 2"), sym("1 16"), None, sym("1 b 2"), sym("1 b 2")];
    assert_eq!(inferred(ops::LSTM::default(), &lstm), "[s,1,b,2]");
}

#[test]
fn inference_waits_for_values_that_decide_the_shape() {
    let unknown = || Some(ValueInfo { dtype: DType::I64, ..sym("2").unwrap() });
    let waits: [(Op, Vec<Option<ValueInfo>>, usize); 6] = [
        (ops::Expand.into(), vec![sym("1"), unknown()], 1),
        (ops::Pad::default().into(), vec![sym("1"), unknown()], 1),
        (ops::Slice.into(), vec![sym("1 2"), ints(&[0, 0]), unknown()], 2),
        (ops::Unsqueeze.into(), vec![sym("1"), unknown()], 1),
        (ops::Squeeze.into(), vec![sym("n 1")], 0),
        (ops::Conv::default().into(), vec![sym("1 1 4"), sym("1 1 k")], 1),
    ];
    for (op, inputs, i) in waits {
        assert_eq!(kind_of(op.clone(), &inputs), OpErrorKind::NeedsValue(i), "{op:?}");
        assert_eq!(infer_symbolic(&op, &inputs, 1), Ok(None));
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    use OpErrorKind::{Shape as S, Value as V};
    let conv = |change: fn(&mut ops::Conv)| {
        let mut conv = ops::Conv::default();
        change(&mut conv);
        Op::from(conv)
    };
    let pool = |kernel: &[i64]| Op::from(ops::MaxPool { kernel_shape: kernel.to_vec(), ..Default::default() });
    let perm = |perm: &[i64]| Op::from(ops::Transpose { perm: Some(perm.to_vec()) });
    let bad: Vec<(Op, Vec<Option<ValueInfo>>, OpErrorKind)> = vec![
        (ops::Concat { axis: 2 }.into(), vec![sym("1 2")], V),
        (ops::Concat { axis: 0 }.into(), vec![sym("1 2"), sym("1 3")], S),
        (ops::Concat { axis: 0 }.into(), vec![sym("1 2"), sym("1")], S),
        (ops::Expand.into(), vec![sym("2"), ints(&[3])], S),
        (ops::Expand.into(), vec![sym("1"), ints(&[-1])], V),
        (ops::Flatten { axis: 3 }.into(), vec![sym("1 2")], V),
        (ops::Gather { axis: 0 }.into(), vec![sym(""), ints(&[0])], V),
        (ops::GatherElements { axis: 0 }.into(), vec![sym("2 2"), ints(&[0])], S),
        (ops::Pad::default().into(), vec![sym("2"), ints(&[1])], V),
        (ops::Pad::default().into(), vec![sym("2"), ints(&[-2, -1])], V),
        (ops::Pad { mode: PadMode::Edge }.into(), vec![sym("0"), ints(&[1, 0])], V),
        (ops::Pad::default().into(), vec![sym("2 2"), ints(&[1, 1, 1, 1]), None, ints(&[0, -2])], V),
        (ops::Slice.into(), vec![sym("2"), ints(&[0]), ints(&[1, 2])], V),
        (ops::Slice.into(), vec![sym("2"), ints(&[0]), ints(&[1]), None, ints(&[0])], V),
        (ops::Slice.into(), vec![sym("2"), ints(&[0]), ints(&[1]), ints(&[1])], V),
        (ops::Slice.into(), vec![sym("2 2"), ints(&[0, 0]), ints(&[1, 1]), ints(&[1, -1])], V),
        (ops::Squeeze.into(), vec![sym("2 1"), ints(&[0])], S),
        (ops::Unsqueeze.into(), vec![sym("2"), ints(&[0, -3])], V),
        (perm(&[0, 0]), vec![sym("1 2")], V),
        (perm(&[0]), vec![sym("1 2")], V),
        (perm(&[0, -1]), vec![sym("1 2")], V),
        (ops::MatMul::default().into(), vec![sym("2 3"), sym("2 3")], S),
        (ops::MatMul::default().into(), vec![sym(""), sym("2 3")], S),
        (ops::MatMul::default().into(), vec![sym("2 1 3"), sym("3 3 1")], S),
        (ops::Gemm::default().into(), vec![sym("2 3"), sym("4 2")], S),
        (ops::Gemm::default().into(), vec![sym("2"), sym("2 2")], S),
        (ops::Gemm::default().into(), vec![sym("1 2"), sym("2 2"), sym("3 2")], S),
        (ops::Gemm::default().into(), vec![sym("1 2"), sym("2 2"), sym("1 1 2")], S),
        (ops::GlobalAveragePool.into(), vec![sym("2")], S),
        (conv(|_| {}), vec![sym("1 3 4"), sym("1 2 1")], S),
        (conv(|_| {}), vec![sym("1 1 4 4"), sym("1 1 1")], S),
        (conv(|_| {}), vec![sym("1 1 4"), sym("1 1 5")], S),
        (conv(|_| {}), vec![sym("1 1 4"), sym("1 1 0")], V),
        (conv(|_| {}), vec![sym("1 1 4"), sym("2 1 1"), sym("3")], S),
        (conv(|c| c.group = 0), vec![sym("1 1 4"), sym("1 1 1")], V),
        (conv(|c| c.group = 2), vec![sym("1 2 4"), sym("3 1 1")], S),
        (conv(|c| c.strides = vec![0]), vec![sym("1 1 4"), sym("1 1 1")], V),
        (conv(|c| c.pads = vec![1]), vec![sym("1 1 4"), sym("1 1 1")], V),
        (conv(|c| c.pads = vec![i64::MAX, i64::MAX]), vec![sym("1 1 4"), sym("1 1 1")], S),
        (conv(|c| c.kernel_shape = vec![2]), vec![sym("1 1 4"), sym("1 1 1")], S),
        (pool(&[]), vec![sym("1 1 4")], S),
        (pool(&[-1]), vec![sym("1 1 4")], V),
        (pool(&[0]), vec![sym("1 1 4")], V),
        (pool(&[5]), vec![sym("1 1 4")], S),
        (ops::LSTM::default().into(), vec![sym("1 1 3"), sym("1 8 2"), sym("1 8 2")], S),
        (ops::LSTM::default().into(), vec![sym("1 1 3"), sym("1 8 3"), sym("1 8 3")], S),
        (
            ops::LSTM { hidden_size: Some(3), ..Default::default() }.into(),
            vec![sym("1 1 3"), sym("1 8 3"), sym("1 8 2")],
            S,
        ),
        (ops::LSTM::default().into(), vec![sym("1 1 3"), sym("1 8 3"), sym("1 8 2"), sym("1 8")], S),
        (
            ops::LSTM { activations: vec![Activation::Tanh], ..Default::default() }.into(),
            vec![sym("1 1 3"), sym("1 8 3"), sym("1 8 2")],
            V,
        ),
    ];
    for (op, inputs, kind) in bad {
        assert_eq!(kind_of(op.clone(), &inputs), kind, "{op:?} over {inputs:?}");
    }
}

#[test]
fn an_index_outside_is_an_error_of_the_reference() {
    let data = Tensor::from_slice([2, 2], &[1f32, 2., 3., 4.]).unwrap();
    for index in [2i64, -3, i64::MIN, i64::MAX] {
        let indices = Tensor::from_slice([1, 1], &[index]).unwrap();
        for op in [Op::from(ops::Gather { axis: 1 }), ops::GatherElements { axis: 1 }.into()] {
            let outputs = infer_known(&op, &[known(&data), known(&indices)], 1).unwrap();
            let views = [Some(data.view()), Some(indices.view())];
            let error = run_reference(&op, &views, &outputs).unwrap_err();
            assert_eq!(*error.kind(), OpErrorKind::Value, "{op:?}");
            assert!(error.message().contains(&index.to_string()), "{error}");
        }
    }
    let op = Op::from(ops::Gemm { alpha: 0.5, ..Default::default() });
    let one = Tensor::from_slice([1, 1], &[1i32]).unwrap();
    let outputs = [OutInfo::known(DType::I32, [1, 1])];
    let error = run_reference(&op, &[Some(one.view()), Some(one.view())], &outputs).unwrap_err();
    assert_eq!(*error.kind(), OpErrorKind::Value);
}

#[test]
fn sums_are_made_in_the_documented_order() {
    let (m, k, n) = (3, 37, 5);
    let (a, b) = (noise(&[m, k], 1), noise(&[k, n], 2));
    let (av, bv) = (a.values::<f32>().unwrap(), b.values::<f32>().unwrap());
    let mut expected = vec![];
    for i in 0..m {
        for j in 0..n {
            expected.push((0..k).fold(0f32, |sum, p| av[i * k + p].mul_add(bv[p * n + j], sum)));
        }
    }
    let expected = Tensor::from_slice([m, n], &expected).unwrap();
    assert_eq!(computed(&ops::MatMul::default().into(), &[a.clone(), b.clone()]), expected);
    assert_eq!(computed(&ops::Gemm::default().into(), &[a, b]), expected);

    let (channels, filters, height, width) = (CHANNEL_BLOCK + 4, 2, 4, 3);
    let (x, w) = (noise(&[1, channels, height, width], 3), noise(&[filters, channels, 3, 3], 4));
    let bias = noise(&[filters], 5);
    let conv = ops::Conv { pads: vec![1, 1, 1, 1], strides: vec![2, 1], ..Default::default() };
    let y = computed(&conv.into(), &[x.clone(), w.clone(), bias.clone()]);
    assert_eq!(y.shape()[..], [1, filters, 2, 3]);
    let (x, w, bias) = (x.values::<f32>().unwrap(), w.values::<f32>().unwrap(), bias.values::<f32>().unwrap());
    for (at, &got) in y.values::<f32>().unwrap().iter().enumerate() {
        let (filter, row, column) = (at / 6, at / 3 % 2, at % 3);
        let mut sum = 0f32;
        for block in [0..CHANNEL_BLOCK, CHANNEL_BLOCK..channels] {
            for (kh, kw) in (0..9).map(|tap| (tap / 3, tap % 3)) {
                for channel in block.clone() {
                    let (h, v) = (2 * row + kh, column + kw);
                    let inside = (1..=height).contains(&h) && (1..=width).contains(&v);
                    let value = if inside { x[(channel * height + h - 1) * width + v - 1] } else { 0.0 };
                    sum = value.mul_add(w[((filter * channels + channel) * 3 + kh) * 3 + kw], sum);
                }
            }
        }
        assert_eq!(got.to_bits(), (sum + bias[filter]).to_bits(), "element {at}");
    }
}

#[test]
fn views_of_any_layout_give_what_dense_tensors_give() {
    // A transposed view over the bytes of a 2 by 3 matrix is a 3 by 2 matrix.
    let base = Tensor::from_slice([2, 3], &[1f32, 2., 3., 4., 5., 6.]).unwrap();
    let layout = Layout::strided(&Shape::from([3, 2]), &[1, 3], 0, 6).unwrap();
    let view = TensorView::new(DType::F32, layout, base.as_bytes());
    let dense = Tensor::from_slice([3, 2], &[1f32, 4., 2., 5., 3., 6.]).unwrap();
    let int = |values: &[i64]| Tensor::from_slice([values.len()], values).unwrap();
    let ops: Vec<(Op, Vec<Tensor>)> = vec![
        (ops::Concat { axis: 1 }.into(), vec![]),
        (ops::Expand.into(), vec![int(&[2, 3, 2])]),
        (ops::Flatten { axis: 0 }.into(), vec![]),
        (ops::Gather { axis: 1 }.into(), vec![int(&[1])]),
        (ops::GatherElements { axis: 0 }.into(), vec![Tensor::from_slice([1, 2], &[2i64, -3]).unwrap()]),
        (ops::Pad { mode: PadMode::Reflect }.into(), vec![int(&[1, 0, 0, 1])]),
        (ops::Slice.into(), vec![int(&[-1, 1]), int(&[i64::MIN, 2]), int(&[0, 1]), int(&[-2, 1])]),
        (ops::Transpose::default().into(), vec![]),
        (ops::Unsqueeze.into(), vec![int(&[1])]),
        (ops::MatMul::default().into(), vec![base.clone()]),
    ];
    for (op, rest) in ops {
        let all: Vec<Tensor> = std::iter::once(dense.clone()).chain(rest.iter().cloned()).collect();
        let infos: Vec<_> = all.iter().map(known).collect();
        let outputs = infer_known(&op, &infos, 1).unwrap();
        let views: Vec<_> = std::iter::once(Some(view.clone())).chain(rest.iter().map(|t| Some(t.view()))).collect();
        let got = run_reference(&op, &views, &outputs).unwrap_or_else(|e| panic!("{op:?}: {e}"));
        assert_eq!(got[0], computed(&op, &all), "{op:?}");
    }
}

#[test]
fn halves_keep_their_bits_when_moved() {
    let odd = [f16::from_bits(0x7e01), f16::NEG_ZERO];
    let x = Tensor::from_slice([2, 1], &odd).unwrap();
    let moved = computed(&ops::Transpose::default().into(), std::slice::from_ref(&x));
    assert_eq!(moved.as_bytes(), x.as_bytes());
    let wide = Tensor::new(DType::Complex128, Shape::from([2, 1]), [[7u8; 16], [9u8; 16]].concat().as_slice().into());
    let slice = [wide.unwrap(), Tensor::from_slice([1], &[1i64]).unwrap(), Tensor::from_slice([1], &[9i64]).unwrap()];
    assert_eq!(computed(&ops::Slice.into(), &slice).as_bytes(), [9u8; 16]);
}

/// Numbers that a small generator draws.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn int(&mut self) -> i64 {
        match self.below(12) {
            0 => self.of(&[i64::MIN, i64::MAX, i32::MAX.into(), 1 << 40, -(1 << 40)]),
            _ => self.below(7) as i64 - 2,
        }
    }

    fn ints(&mut self) -> Vec<i64> {
        (0..self.below(5)).map(|_| self.int()).collect()
    }

    fn dims(&mut self) -> Shape {
        let rank = self.of(&[0, 1, 2, 2, 3, 3, 3, 4, 4]);
        (0..rank).map(|_| self.of(&[0, 1, 1, 1, 2, 2, 3, 4, 8, 1 << 40, usize::MAX])).collect()
    }

    fn op(&mut self) -> Op {
        let flip = |draw: &mut Draw| draw.below(2) == 1;
        let auto_pad =
            self.of(&[AutoPad::NotSet, AutoPad::NotSet, AutoPad::SameUpper, AutoPad::SameLower, AutoPad::Valid]);
        match self.below(16) {
            0 => ops::Concat { axis: self.int() }.into(),
            1 => ops::Expand.into(),
            2 => ops::Flatten { axis: self.int() }.into(),
            3 => ops::Gather { axis: self.int() }.into(),
            4 => ops::GatherElements { axis: self.int() }.into(),
            5 => {
                ops::Pad { mode: self.of(&[PadMode::Constant, PadMode::Reflect, PadMode::Edge, PadMode::Wrap]) }.into()
            }
            6 => ops::Slice.into(),
            7 => ops::Squeeze.into(),
            8 => ops::Transpose { perm: flip(self).then(|| self.ints()) }.into(),
            9 => ops::Unsqueeze.into(),
            10 => ops::Conv {
                auto_pad,
                dilations: self.ints(),
                group: self.int(),
                kernel_shape: vec![],
                pads: self.ints(),
                strides: self.ints(),
            }
            .into(),
            11 => ops::Gemm { alpha: self.of(&[1., 0.5]), beta: 2., trans_a: flip(self), trans_b: flip(self) }.into(),
            12 => ops::GlobalAveragePool.into(),
            13 => ops::LSTM {
                direction: self.of(&[Direction::Forward, Direction::Reverse, Direction::Bidirectional]),
                batch_first: flip(self),
                clip: self.of(&[None, Some(1.), Some(f32::NAN)]),
                ..Default::default()
            }
            .into(),
            14 => ops::MatMul::default().into(),
            _ => ops::MaxPool {
                auto_pad,
                ceil_mode: flip(self),
                dilations: self.ints(),
                kernel_shape: self.ints(),
                pads: self.ints(),
                storage_order: self.of(&[StorageOrder::RowMajor, StorageOrder::ColumnMajor]),
                strides: self.ints(),
            }
            .into(),
        }
    }
}

/// An input as raw parts, so that they may contradict each other.
type Parts = (DType, Shape, Vec<u8>);

impl Draw {
    /// Inputs that hardly ever fit.
    fn inputs(&mut self, op: &Op) -> Vec<Option<Parts>> {
        let float = self.of(&[DType::F32, DType::F32, DType::F64, DType::F16, DType::I32, DType::U8]);
        let count = self.below(5) + 1;
        let mut input = |i: u64| {
            let param = op.info().input_param(i as usize);
            let is_index = param.is_some_and(|param| param.ty != TypeRef::Var(0));
            let dtype = if is_index { self.of(&[DType::I64, DType::I64, DType::I32]) } else { float };
            let dims = if is_index && self.below(4) > 0 { Shape::from([self.below(4) as usize]) } else { self.dims() };
            let n = dims.n_elems().unwrap_or(usize::MAX).min(512);
            let data = match dtype {
                DType::I64 => (0..n).flat_map(|_| self.int().to_le_bytes()).collect(),
                DType::I32 => (0..n).flat_map(|_| (self.int() as i32).to_le_bytes()).collect(),
                _ => vec![0x3c; n * dtype.bits() / 8],
            };
            (self.below(10) > 0).then_some((dtype, dims, data))
        };
        (0..count).map(&mut input).collect()
    }

    /// A named case's inputs with one thing changed, or nothing.
    fn mutated(&mut self, case: &Case) -> Vec<Option<Parts>> {
        let parts = |t: &Tensor| (t.dtype(), t.shape().clone(), t.as_bytes().to_vec());
        let mut inputs: Vec<_> = case.inputs.iter().map(|input| input.as_ref().map(parts)).collect();
        let i = self.below(inputs.len() as u64) as usize;
        let Some((dtype, shape, bytes)) = &mut inputs[i] else { return inputs };
        match self.below(6) {
            0 if shape.rank() > 0 => {
                let d = self.below(shape.rank() as u64) as usize;
                shape[d] = self.of(&[0, 1, 2, 3, 5, 1 << 40, usize::MAX]);
                // Half the time the bytes still fit the shape.
                if let Some(n) = shape.n_elems().filter(|&n| n <= 512 && n % 2 == 0) {
                    bytes.resize(n * dtype.bits() / 8, 0);
                }
            }
            1 if *dtype == DType::I64 => *bytes = bytes.chunks(8).flat_map(|_| self.int().to_le_bytes()).collect(),
            2 => bytes.truncate(bytes.len() / 2),
            3 => inputs[i] = None,
            4 => inputs.truncate(i),
            _ => {}
        }
        inputs
    }
}

#[test]
fn absurd_input_gives_errors_and_no_panic() {
    let mut draw = Draw(7);
    let (mut inferred, mut computed) = (BTreeSet::new(), BTreeSet::new());
    let mut meets = |op: &Op, inputs: &[Option<Parts>], draw: &mut Draw| {
        let info = |(dtype, dims, bytes): &Parts| ValueInfo {
            dtype: *dtype,
            dims: SymShape::from(dims),
            value: Tensor::new(*dtype, dims.clone(), bytes.as_slice().into()).ok(),
        };
        let infos: Vec<_> = inputs.iter().map(|input| input.as_ref().map(info)).collect();
        let n_outputs = draw.below(3) as usize + 1;
        let outputs = match infer_known(op, &infos, n_outputs) {
            Ok(outputs) => {
                inferred.insert(op.kind());
                outputs.to_vec()
            }
            Err(_) => {
                let dtype = inputs.iter().flatten().next().map_or(DType::F32, |input| input.0);
                (0..n_outputs).map(|_| OutInfo::known(dtype, draw.dims())).collect()
            }
        };
        // Outputs beyond a size are left out: the reference meets fewer outputs than inference named.
        let small = |output: &OutInfo| output.dims.known().filter(|shape| shape.n_elems().is_some_and(|n| n <= 512));
        let mut buffers: Vec<_> =
            outputs.iter().filter_map(|output| Some((output.dtype, small(output)?, vec![0u64; 1024]))).collect();
        let views = inputs
            .iter()
            .map(|input| input.as_ref().map(|(dtype, dims, bytes)| TensorView::dense(*dtype, dims, bytes)));
        let to = buffers
            .iter_mut()
            .map(|(dtype, shape, words)| TensorViewMut::new(*dtype, shape.clone(), bytemuck::cast_slice_mut(words)));
        if op.def().reference(&mut RefCtx::new(views.collect(), to.collect())).is_ok() {
            computed.insert(op.kind());
        }
    };
    let kinds: Vec<OpKind> = (0..1000).map(|_| draw.op().kind()).collect::<BTreeSet<_>>().into_iter().collect();
    for _ in 0..20_000 {
        let op = draw.op();
        let inputs = draw.inputs(&op);
        meets(&op, &inputs, &mut draw);
    }
    for &kind in &kinds {
        let cases = (kind.info().cases)();
        for _ in 0..2_000 {
            let case = &cases[draw.below(cases.len() as u64) as usize];
            let inputs = draw.mutated(case);
            // Now and then the case's inputs meet other attributes.
            let other = (0..4).map(|_| draw.op()).find(|op| op.kind() == kind);
            meets(&other.unwrap_or(case.op.clone()), &inputs, &mut draw);
        }
    }
    assert_eq!(kinds.len(), 16);
    assert_eq!(inferred.into_iter().collect::<Vec<_>>(), kinds);
    assert_eq!(computed.into_iter().collect::<Vec<_>>(), kinds);
}
