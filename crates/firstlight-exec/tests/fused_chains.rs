//! Elementwise ops that join the product before them: which do, and that the bits stay.

mod common;

use common::{Buffers, cpu};
use firstlight_backend::OperandSpec;
use firstlight_exec::{Feed, PrepareOptions, RunOptions};
use firstlight_graph::{Graph, Op, Spec, ValueId, ops};
use firstlight_tensor::{DType, Dim, SymShape, Tensor};
use std::sync::Arc;

fn floats(dims: &[usize], seed: u32) -> Tensor {
    let n = dims.iter().product::<usize>();
    let values: Vec<f32> = (0..n).map(|i| ((i as f32 + 1.0) * (0.731 + seed as f32)).sin() * 4.3).collect();
    Tensor::from_slice(dims, &values).unwrap()
}

fn scalar(g: &mut Graph, name: &str, value: f32) -> ValueId {
    g.constant(name, Tensor::scalar(value))
}

/// HardSwish as files spell it, between two scales and shifts.
fn spelled_out(g: &mut Graph, x: ValueId) -> ValueId {
    let constants = [("scale", 1.3), ("shift", -0.2), ("three", 3.0), ("zero", 0.0), ("six", 6.0)];
    let [scale, shift, three, zero, six] = constants.map(|(name, value)| scalar(g, name, value));
    let x = g.op(ops::Mul.into(), &[x, scale]).unwrap();
    let x = g.op(ops::Add.into(), &[x, shift]).unwrap();
    let t = g.op(ops::Add.into(), &[x, three]).unwrap();
    let t = g.op(ops::Clip.into(), &[t, zero, six]).unwrap();
    let t = g.op(ops::Mul.into(), &[x, t]).unwrap();
    let x = g.op(ops::Div.into(), &[t, six]).unwrap();
    let x = g.op(ops::Mul.into(), &[scale, x]).unwrap();
    g.op(ops::Add.into(), &[x, shift]).unwrap()
}

/// GELU as files spell it.
fn gelu(g: &mut Graph, x: ValueId) -> ValueId {
    let [root, one, half] =
        [("root", std::f32::consts::SQRT_2), ("one", 1.0), ("half", 0.5)].map(|(name, value)| scalar(g, name, value));
    let t = g.op(ops::Div.into(), &[x, root]).unwrap();
    let t = g.op(ops::Erf.into(), &[t]).unwrap();
    let t = g.op(ops::Add.into(), &[t, one]).unwrap();
    let t = g.op(ops::Mul.into(), &[x, t]).unwrap();
    g.op(ops::Mul.into(), &[t, half]).unwrap()
}

/// A product with constants `others` and what follows it, as one node; the bits of several thread counts.
fn check(base: Op, x: &[usize], others: &[Tensor], follow: &dyn Fn(&mut Graph, ValueId) -> ValueId) {
    let mut g = Graph::new("chain");
    let dims: SymShape = SymShape(x.iter().map(|dim| Dim::Known(*dim)).collect());
    let mut inputs = vec![g.input("x", Spec { dtype: DType::F32, dims: Some(dims) }, None)];
    inputs.extend(others.iter().enumerate().map(|(i, tensor)| g.constant(format!("c{i}"), tensor.clone())));
    let y = g.op(base.clone(), &inputs).unwrap();
    let y = follow(&mut g, y);
    g.output("y", y).unwrap();
    let g = Arc::new(g);
    let feed = floats(x, 5);
    let run = |threads, passes| {
        let options = PrepareOptions { passes, ..Default::default() };
        let prepared = cpu(threads).prepare(g.clone(), &[y], options).unwrap();
        if passes {
            let spec = OperandSpec { dtype: DType::F32, dims: x.into() };
            let printed = cpu(1).compile_only(&prepared, &[Some(spec)]).unwrap().program.graph().to_string();
            let nodes = printed.lines().filter(|line| line.trim_start().starts_with('%'));
            let work = nodes.filter(|line| !line.contains("Const(") && !line.contains("Input("));
            assert!(work.count() == 1 && printed.contains("Fused("), "one node:\n{printed}");
        }
        let feeds = [Some(Feed { dtype: DType::F32, dims: feed.shape(), bytes: feed.as_bytes() })];
        let mut out = Buffers::default();
        cpu(threads).run(&prepared, &feeds, &RunOptions::default(), &mut out).unwrap();
        out
    };
    let expected = run(1, false);
    for threads in [1, 2] {
        assert_eq!(run(threads, true), expected, "{base:?} of {x:?} on {threads} threads");
    }
}

type Follow<'a> = &'a dyn Fn(&mut Graph, ValueId) -> ValueId;

/// A function of one value, in every family of vector functions.
fn functions() -> Vec<Op> {
    vec![
        ops::HardSwish.into(),
        ops::HardSigmoid { alpha: 0.3, beta: 0.4 }.into(),
        ops::Sigmoid.into(),
        ops::Tanh.into(),
        ops::Exp.into(),
        ops::Reciprocal.into(),
    ]
}

fn follow_all(base: Op, x: &[usize], others: &[Tensor]) {
    let silu = |g: &mut Graph, x: ValueId| {
        let s = g.op(ops::Sigmoid.into(), &[x]).unwrap();
        g.op(ops::Mul.into(), &[x, s]).unwrap()
    };
    let relu_and_more = |g: &mut Graph, x: ValueId| {
        let bent = g.op(ops::Relu.into(), &[x]).unwrap();
        let scale = scalar(g, "scale", 0.7);
        g.op(ops::Mul.into(), &[bent, scale]).unwrap()
    };
    let all: [Follow<'_>; 4] = [&spelled_out, &gelu, &silu, &relu_and_more];
    for follow in all {
        check(base.clone(), x, others, follow);
    }
    for function in functions() {
        check(base.clone(), x, others, &|g, x| g.op(function.clone(), &[x]).unwrap());
    }
}

#[test]
fn convolutions_take_what_follows() {
    let conv = |pad: i64, group: i64| ops::Conv { pads: vec![pad; 4], group, ..Default::default() };
    // More columns than a group of panels, and rows that are not whole.
    follow_all(conv(1, 1).into(), &[2, 5, 17, 31], &[floats(&[50, 5, 3, 3], 1), floats(&[50], 2)]);
    follow_all(conv(0, 1).into(), &[1, 40, 5, 5], &[floats(&[9, 40, 1, 1], 1)]);
    // Planes, and groups.
    follow_all(conv(1, 7).into(), &[2, 7, 9, 23], &[floats(&[7, 1, 3, 3], 1), floats(&[7], 2)]);
    follow_all(conv(0, 2).into(), &[1, 8, 6, 7], &[floats(&[12, 4, 3, 3], 1)]);
}

#[test]
fn matrix_products_take_what_follows() {
    follow_all(ops::MatMul::default().into(), &[2, 70, 33], &[floats(&[33, 210], 1)]);
    follow_all(ops::MatMul::default().into(), &[3, 33], &[floats(&[33, 210], 1)]);
    follow_all(ops::MatMul::default().into(), &[90, 33], &[floats(&[33, 1], 1)]);
    let gemm = ops::Gemm { alpha: 0.5, trans_b: true, ..Default::default() };
    follow_all(gemm.into(), &[70, 33], &[floats(&[210, 33], 1), floats(&[210], 2)]);
}

#[test]
fn operands_of_the_shapes_that_kernels_take() {
    let conv: Op = ops::Conv { pads: vec![1; 4], ..Default::default() }.into();
    let others = [floats(&[50, 5, 3, 3], 1)];
    for dims in [&[50, 1, 1][..], &[31], &[17, 31], &[2, 50, 17, 31], &[50, 17, 1], &[1, 1, 1, 1]] {
        check(conv.clone(), &[2, 5, 17, 31], &others, &|g, x| {
            let other = g.constant("other", floats(dims, 3));
            let x = g.op(ops::Mul.into(), &[x, other]).unwrap();
            let x = g.op(ops::Sub.into(), &[other, x]).unwrap();
            g.op(ops::HardSwish.into(), &[x]).unwrap()
        });
    }
}
