//! Passes: what they make of a graph, and that the bits stay.

mod common;

use common::{Buffers, Inputs, cpu, cpu_with_limit, n_nodes, sim, sixty_nodes};
use firstlight_backend::OperandSpec;
use firstlight_exec::{Feed, PipelinedExecutor, PrepareOptions, Realized, RunOptions, StorageCache};
use firstlight_graph::{Graph, NodeId, Op, Spec, ValueId, ops};
use firstlight_plan::Plan;
use firstlight_plan::passes::{PASSES, PassSet, Rewrite};
use firstlight_tensor::DType::F32;
use firstlight_tensor::{DType, Dim, SymShape, Tensor};
use std::sync::Arc;

fn off() -> PrepareOptions {
    PrepareOptions { passes: false, ..Default::default() }
}

/// All passes but one are off.
fn only(name: &str) -> PrepareOptions {
    let others = PASSES.iter().filter(|pass| pass.name != name).filter_map(|pass| PassSet::named(pass.name));
    PrepareOptions { disabled_passes: others.fold(PassSet::NONE, PassSet::with), ..Default::default() }
}

fn outputs(graph: &Graph) -> Vec<ValueId> {
    graph.outputs().iter().map(|(_, value)| *value).collect()
}

/// The graph that is run for inputs of these shapes, printed.
fn text(graph: &Arc<Graph>, options: PrepareOptions, inputs: &[(DType, &[usize])]) -> String {
    let (plan, _) = plan(graph, &outputs(graph), options, inputs);
    plan.program.graph().verify().unwrap();
    plan.program.graph().to_string()
}

/// The plan for inputs of these shapes, and what all passes rewrote for it.
fn plan(
    graph: &Arc<Graph>,
    targets: &[ValueId],
    options: PrepareOptions,
    inputs: &[(DType, &[usize])],
) -> (Plan, Vec<Rewrite>) {
    let executor = cpu(1);
    let prepared = executor.prepare(graph.clone(), targets, options).unwrap();
    let spec = |(dtype, dims): &(DType, &[usize])| Some(OperandSpec { dtype: *dtype, dims: (*dims).into() });
    let plan = executor.compile_only(&prepared, &inputs.iter().map(spec).collect::<Vec<_>>()).unwrap();
    let rewrites = prepared.rewrites().iter().chain(&plan.rewrites).cloned().collect();
    (plan, rewrites)
}

fn rules(rewrites: &[Rewrite]) -> Vec<(&'static str, String, usize)> {
    rewrites.iter().map(|made| (made.rule, made.node.clone(), made.sources.len())).collect()
}

fn input(g: &mut Graph, name: &str, dims: &[Option<usize>]) -> ValueId {
    let dims = dims.iter().map(|dim| dim.map_or(Dim::Unknown, Dim::Known)).collect();
    g.input(name, Spec { dtype: DType::F32, dims: Some(SymShape(dims)) }, None)
}

fn floats(dims: &[usize], seed: u32) -> Tensor {
    let n = dims.iter().product::<usize>();
    let values: Vec<f32> = (0..n).map(|i| ((i as f32 + 1.0) * (0.731 + seed as f32)).sin() * 1.7).collect();
    Tensor::from_slice(dims, &values).unwrap()
}

/// Values of targets of a graph whose inputs are all fed the same tensors; runs twice, for a replay.
fn realize(
    executor: &PipelinedExecutor,
    graph: &Arc<Graph>,
    targets: &[ValueId],
    options: PrepareOptions,
    feeds: &[Tensor],
) -> Buffers {
    let prepared = executor.prepare(graph.clone(), targets, options).unwrap();
    let feeds: Vec<Option<Feed<'_>>> = feeds
        .iter()
        .map(|tensor| Some(Feed { dtype: tensor.dtype(), dims: tensor.shape(), bytes: tensor.as_bytes() }))
        .collect();
    let mut first = Buffers::default();
    executor.run(&prepared, &feeds, &RunOptions::default(), &mut first).unwrap();
    let mut again = Buffers::default();
    executor.run(&prepared, &feeds, &RunOptions::default(), &mut again).unwrap();
    assert_eq!(first, again, "a replay");
    first
}

#[test]
fn constants_are_folded_by_the_kernels_that_would_have_run() {
    let mut g = Graph::new("fold");
    let x = input(&mut g, "x", &[None, Some(3)]);
    let w = g.constant("w", floats(&[4, 3], 1));
    let turned = g.op(ops::Transpose { perm: None }.into(), &[w]).unwrap();
    let bent = g.op(ops::Sigmoid.into(), &[turned]).unwrap();
    let y = g.op(ops::MatMul::default().into(), &[x, bent]).unwrap();
    g.output("y", y).unwrap();
    let g = Arc::new(g);
    assert_eq!(
        text(&g, only("fold-constants"), &[(F32, &[5, 3])]),
        "graph \"fold\" {\n  %0 = Input() {index=0}: f32[?,3] -> \"x\"\n  \
         %1 = Const() {tensor=f32[3,4]} -> \"Sigmoid_3\"\n  %2 = MatMul(%0, %1) -> \"MatMul_4\"\n  \
         return \"y\" = %2\n}\n"
    );
    let executor = cpu(1);
    let prepared = executor.prepare(g.clone(), &[y], only("fold-constants")).unwrap();
    assert_eq!(rules(prepared.rewrites()), [("fold-constants", "Sigmoid_3".to_owned(), 1)]);
    let x = floats(&[5, 3], 2);
    for threads in [1, 2] {
        let run = |options| realize(&cpu(threads), &g, &[y, bent, turned], options, std::slice::from_ref(&x));
        assert_eq!(run(PrepareOptions::default()), run(off()));
    }
}

#[test]
fn folding_keeps_within_its_limits() {
    let mut g = Graph::new("limits");
    let w = g.constant("w", floats(&[300, 300], 1));
    let big = g.op(ops::Sigmoid.into(), &[w]).unwrap();
    let dims = g.constant("dims", Tensor::from_slice([2], &[1000i64, 1000]).unwrap());
    let one = g.constant("one", Tensor::scalar(1f32));
    let grown = g.op(ops::Expand.into(), &[one, dims]).unwrap();
    let view = g.op(ops::Flatten { axis: 0 }.into(), &[w]).unwrap();
    let g = Arc::new(g);
    let executor = cpu(1);
    let folded = |targets: &[ValueId], options| {
        let prepared = executor.prepare(g.clone(), targets, options).unwrap();
        let program = prepared.program();
        let nodes = program.graph().nodes().iter().enumerate().filter(|(i, _)| program.is_needed(*i));
        let nodes = nodes.filter(|(_, node)| !matches!(node.op, Op::Const(_)));
        nodes.map(|(_, node)| node.name.clone()).collect::<Vec<_>>()
    };
    let few = PrepareOptions { max_folded_bytes: 300 * 300 * 4 - 1, ..Default::default() };
    assert_eq!(folded(&[big], few), ["Sigmoid_1"], "more than what is left");
    assert!(folded(&[big], PrepareOptions::default()).is_empty());
    assert_eq!(folded(&[grown], PrepareOptions::default()), ["Expand_4"], "much larger than what it is made of");
    let none = PrepareOptions { max_folded_bytes: 0, ..Default::default() };
    assert!(folded(&[view], none).is_empty(), "a view takes no bytes");
    // A budget that has room for a run and none for keeping the result: the run computes it.
    let tight = cpu_with_limit(1, Some(600 << 10));
    let prepared = tight.prepare(g.clone(), &[big], PrepareOptions::default()).unwrap();
    assert_eq!(prepared.program().n_needed(), 1);
    let used = tight.config().budget.used();
    assert_eq!(used, 0, "what folding took is given back");
}

#[test]
fn a_product_reads_what_a_transpose_would_have_turned() {
    let mut g = Graph::new("turned");
    let x = input(&mut g, "x", &[None, Some(2), Some(3)]);
    let w = g.constant("w", floats(&[4, 3], 1));
    let transpose = |perm: &[i64]| ops::Transpose { perm: Some(perm.to_vec()) };
    let turned = g.op(transpose(&[1, 0]).into(), &[w]).unwrap();
    let scores = g.op(ops::MatMul::default().into(), &[x, turned]).unwrap();
    let keys = g.op(transpose(&[0, 2, 1]).into(), &[x]).unwrap();
    let squares = g.op(ops::MatMul::default().into(), &[x, keys]).unwrap();
    let mixed = g.op(transpose(&[2, 1, 0]).into(), &[x]).unwrap();
    let others = g.op(ops::MatMul::default().into(), &[x, mixed]).unwrap();
    let g = Arc::new(g);
    let prepared = cpu(1).prepare(g.clone(), &[scores, squares], only("absorb-transpose")).unwrap();
    let node = |i: u32| format!("MatMul_{i}");
    assert_eq!(rules(prepared.rewrites()), [("absorb-transpose", node(3), 2), ("absorb-transpose", node(5), 2)]);
    for threads in [1, 2] {
        let run = |options| realize(&cpu(threads), &g, &[scores, squares], options, &[floats(&[5, 2, 3], 2)]);
        assert_eq!(run(PrepareOptions::default()), run(off()));
    }
    // Not the last two dimensions; a transposed value that is asked for itself.
    for targets in [&[others][..], &[scores, turned]] {
        let prepared = cpu(1).prepare(g.clone(), targets, only("absorb-transpose")).unwrap();
        assert_eq!(rules(prepared.rewrites()), []);
    }
}

#[test]
fn identities_are_dropped() {
    let mut g = Graph::new("drop");
    let x = input(&mut g, "x", &[None, Some(3)]);
    let same = g.op(ops::Identity.into(), &[x]).unwrap();
    let cast = g.op(ops::Cast { to: DType::F32 }.into(), &[same]).unwrap();
    let kept = g.op(ops::Transpose { perm: Some(vec![0, 1]) }.into(), &[cast]).unwrap();
    let turned = g.op(ops::Transpose { perm: Some(vec![1, 0]) }.into(), &[kept]).unwrap();
    let wide = g.op(ops::Cast { to: DType::F64 }.into(), &[turned]).unwrap();
    g.output("y", wide).unwrap();
    g.output("x again", kept).unwrap();
    let g = Arc::new(g);
    assert_eq!(
        text(&g, only("drop-identities"), &[(F32, &[2, 3])]),
        "graph \"drop\" {\n  %0 = Input() {index=0}: f32[?,3] -> \"x\"\n  \
         %1 = Transpose(%0) {perm=[1, 0]} -> \"Transpose_4\"\n  %2 = Cast(%1) {to=f64} -> \"Cast_5\"\n  \
         return \"y\" = %2, \"x again\" = %0\n}\n"
    );
    let targets = [wide, kept, same];
    let run = |options| realize(&cpu(2), &g, &targets, options, &[floats(&[2, 3], 1)]);
    assert_eq!(run(PrepareOptions::default()), run(off()));
}

#[test]
fn epilogues_are_fused_into_products() {
    let mut g = Graph::new("fuse");
    let x = input(&mut g, "x", &[None, Some(2), Some(4)]);
    let w = g.constant("w", floats(&[2, 2, 3], 1));
    let conv = ops::Conv { pads: vec![1, 1], ..Default::default() };
    let a = g.op(conv.into(), &[x, w]).unwrap();
    let sum = g.op(ops::Add.into(), &[x, a]).unwrap();
    let bent = g.op(ops::Relu.into(), &[sum]).unwrap();
    let m = g.constant("m", floats(&[4, 5], 2));
    let row = g.constant("row", floats(&[5], 3));
    let b = g.op(ops::MatMul::default().into(), &[bent, m]).unwrap();
    let y = g.op(ops::Add.into(), &[b, row]).unwrap();
    g.output("y", y).unwrap();
    let g = Arc::new(g);
    assert_eq!(
        text(&g, only("fuse-epilogue"), &[(F32, &[3, 2, 4])]),
        "graph \"fuse\" {\n  %0 = Input() {index=0}: f32[?,2,4] -> \"x\"\n  \
         %1 = Const() {tensor=f32[2,2,3]} -> \"w\"\n  \
         %2 = Fused(%0, %1, _, %0) {base=\"Conv\", relu=true, auto_pad=\"NOTSET\", dilations=[], group=1, \
         kernel_shape=[], pads=[1, 1], strides=[]} -> \"Relu_4\"\n  \
         %3 = Const() {tensor=f32[4,5]} -> \"m\"\n  %4 = Const() {tensor=f32[5]} -> \"row\"\n  \
         %5 = Fused(%2, %3, _, %4) {base=\"MatMul\", relu=false} -> \"Add_8\"\n  return \"y\" = %5\n}\n"
    );
    let (_, rewrites) = plan(&g, &[y], only("fuse-epilogue"), &[(F32, &[3, 2, 4])]);
    let expected = [("fuse-epilogue", "Relu_4".to_owned(), 3), ("fuse-epilogue", "Add_8".to_owned(), 2)];
    assert_eq!(rules(&rewrites), expected);
    assert_eq!(rewrites[0].sources, ["Conv_2", "Add_3", "Relu_4"]);
    // A value on the way that is a target is read twice.
    let (_, both) = plan(&g, &[y, a], only("fuse-epilogue"), &[(F32, &[3, 2, 4])]);
    assert_eq!(rules(&both), expected[1..]);
    for targets in [vec![y], vec![y, a], vec![sum, b]] {
        for threads in [1, 2] {
            let run = |options| realize(&cpu(threads), &g, &targets, options, &[floats(&[3, 2, 4], 7)]);
            assert_eq!(run(PrepareOptions::default()), run(off()));
        }
    }
}

#[test]
fn elementwise_ops_are_fused_into_one() {
    let mut g = Graph::new("chain");
    let x = input(&mut g, "x", &[None, Some(3)]);
    let c = g.constant("c", Tensor::scalar(0.7f32));
    let row = g.constant("row", floats(&[3], 3));
    let a = g.op(ops::Div.into(), &[x, c]).unwrap();
    let b = g.op(ops::Erf.into(), &[a]).unwrap();
    let d = g.op(ops::Add.into(), &[row, b]).unwrap();
    let e = g.op(ops::Mul.into(), &[x, d]).unwrap();
    g.output("y", e).unwrap();
    let g = Arc::new(g);
    assert_eq!(
        text(&g, only("fuse-elementwise"), &[(F32, &[2, 3])]),
        "graph \"chain\" {\n  %0 = Input() {index=0}: f32[?,3] -> \"x\"\n  \
         %1 = Const() {tensor=f32[]} -> \"c\"\n  %2 = Const() {tensor=f32[3]} -> \"row\"\n  \
         %3 = Elementwise(%0, %1, %2) {steps=\"Div(x0, x1); Erf(t0); Add(x2, t1); Mul(x0, t2)\"} -> \"Mul_6\"\n  \
         return \"y\" = %3\n}\n"
    );
    let (_, rewrites) = plan(&g, &[e], PrepareOptions::default(), &[(F32, &[2, 3])]);
    assert_eq!(rewrites[0].sources, ["Div_3", "Erf_4", "Add_5", "Mul_6"]);
    // A value on the way that is a target stays one.
    let (_, both) = plan(&g, &[e, b], PrepareOptions::default(), &[(F32, &[2, 3])]);
    assert_eq!(rules(&both).iter().map(|(_, _, n)| *n).collect::<Vec<_>>(), [2, 2]);
    for targets in [vec![e], vec![e, b], vec![a, d]] {
        for (threads, rows) in [(1, 1), (1, 700), (2, 40_000)] {
            let run = |options| realize(&cpu(threads), &g, &targets, options, &[floats(&[rows, 3], 7)]);
            assert_eq!(run(PrepareOptions::default()), run(off()));
        }
    }
}

#[test]
fn an_addend_is_fused_where_its_sizes_fit() {
    let mut g = Graph::new("broadcast");
    let x = input(&mut g, "x", &[Some(1), Some(4)]);
    let other = input(&mut g, "other", &[None, Some(4)]);
    let w = g.constant("w", floats(&[4, 4], 1));
    let product = g.op(ops::MatMul::default().into(), &[x, w]).unwrap();
    let sum = g.op(ops::Add.into(), &[product, other]).unwrap();
    g.output("y", sum).unwrap();
    let g = Arc::new(g);
    for rows in [1, 3] {
        let printed = text(&g, PrepareOptions::default(), &[(F32, &[1, 4]), (F32, &[rows, 4])]);
        assert_eq!(printed.contains("Fused"), rows == 1, "the sum of {rows} rows:\n{printed}");
        let run = |options| realize(&cpu(1), &g, &[sum], options, &[floats(&[1, 4], 7), floats(&[rows, 4], 8)]);
        assert_eq!(run(PrepareOptions::default()), run(off()));
    }
}

#[test]
fn passes_are_turned_off_by_name() {
    assert_eq!(PassSet::named("no such pass"), None);
    let mut g = Graph::new("off");
    let x = input(&mut g, "x", &[None]);
    let y = g.op(ops::Identity.into(), &[x]).unwrap();
    g.output("y", y).unwrap();
    let g = Arc::new(g);
    let x: &[(DType, &[usize])] = &[(F32, &[2])];
    let without = PassSet::named("drop-identities").unwrap();
    let options = PrepareOptions { disabled_passes: without, ..Default::default() };
    assert!(text(&g, options, x).contains("Identity"));
    assert!(text(&g, PrepareOptions { keep_all: true, ..Default::default() }, x).contains("Identity"));
    assert!(!text(&g, PrepareOptions::default(), x).contains("Identity"));
}

#[test]
fn subgraphs_are_rewritten_and_keep_their_bits() {
    let branch = |twice: bool| {
        let mut b = Graph::new("branch");
        let c = b.input("c", Spec { dtype: DType::F32, dims: None }, None);
        let w = b.constant("w", floats(&[3], 1));
        let bent = b.op(ops::Sigmoid.into(), &[w]).unwrap();
        let same = b.op(ops::Cast { to: DType::F32 }.into(), &[c]).unwrap();
        let mut y = b.op(ops::Mul.into(), &[same, bent]).unwrap();
        if twice {
            y = b.op(ops::Add.into(), &[y, bent]).unwrap();
        }
        b.output("y", y).unwrap();
        Arc::new(b)
    };
    let mut g = Graph::new("outer");
    let flag = g.input("flag", Spec::known(DType::Bool, &[]), None);
    let x = input(&mut g, "x", &[None, Some(3)]);
    let op = ops::If { then_branch: branch(true), else_branch: branch(false) };
    let y = ValueId::from(g.push("choose", op.into(), &[Some(flag), Some(x)], &["y"]).unwrap());
    g.output("y", y).unwrap();
    let g = Arc::new(g);
    let prepared = cpu(1).prepare(g.clone(), &[y], PrepareOptions::default()).unwrap();
    let printed = prepared.program().graph().to_string();
    assert!(!printed.contains("Sigmoid(") && !printed.contains("Cast("), "{printed}");
    assert!(prepared.rewrites().iter().any(|made| made.node == "choose/Sigmoid_2"), "{:?}", prepared.rewrites());
    for flag in [false, true] {
        let feeds = [Tensor::from_bools([0usize; 0], &[flag]).unwrap(), floats(&[2, 3], 5)];
        let run = |options| realize(&cpu(2), &g, &[y], options, &feeds);
        assert_eq!(run(PrepareOptions::default()), run(off()));
    }
}

#[test]
fn data_dependent_graphs_keep_their_bits() {
    let graph = sixty_nodes();
    assert_eq!(n_nodes(&graph), 60);
    for (rows, flag, trips) in [(2, true, 3), (5, false, 0), (1, false, 2)] {
        let inputs = Inputs::new(rows, flag, trips);
        for executor in [cpu(1), cpu(2), sim(1).0] {
            let run = |options| {
                let prepared = executor.prepare(graph.clone(), &outputs(&graph), options).unwrap();
                common::run(&executor, &prepared, &inputs, &RunOptions::default()).unwrap()
            };
            assert_eq!(run(PrepareOptions::default()), run(off()));
        }
    }
}

#[test]
fn a_fed_constant_is_not_folded() {
    let mut g = Graph::new("fed");
    let x = input(&mut g, "x", &[None]);
    let w = g.constant("w", floats(&[2], 1));
    let bent = g.op(ops::Sigmoid.into(), &[w]).unwrap();
    let y = g.op(ops::Add.into(), &[x, bent]).unwrap();
    g.output("y", y).unwrap();
    let g = Arc::new(g);
    let executor = cpu(1);
    let x_value = floats(&[2], 2);
    let realize = |w_value: Option<&Tensor>| {
        let mut inputs = StorageCache::new();
        inputs.insert(x, Realized::from_tensor(&x_value));
        if let Some(value) = w_value {
            inputs.insert(w, Realized::from_tensor(value));
        }
        executor.realize(&g, &[y, x], &inputs).unwrap().get(y).unwrap().to_tensor().unwrap()
    };
    let (kept, other) = (realize(None), realize(Some(&floats(&[2], 3))));
    assert_ne!(kept, other);
    assert_eq!(realize(Some(&floats(&[2], 1))), kept);
    assert_eq!(realize(None), kept);
}

/// A small generator of numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

/// A graph over `[n, 16, 6, 6]` images and what passes look for: constants, identities, convolutions, products, chains.
fn random_graph(seed: u64) -> Arc<Graph> {
    let mut random = Random(seed.wrapping_mul(977).wrapping_add(13));
    let mut g = Graph::new(format!("random {seed}"));
    let x = input(&mut g, "x", &[None, Some(16), Some(6), Some(6)]);
    let mut values = vec![x];
    let mut consts = vec![
        g.constant("scalar", Tensor::scalar(0.37f32)),
        g.constant("channel", floats(&[16, 1, 1], 3)),
        g.constant("row", floats(&[6], 4)),
        g.constant("negative zeros", Tensor::from_slice([6], &[-0f32, 0., 1., -1., f32::INFINITY, -2.]).unwrap()),
    ];
    for i in 0..24 {
        let last = values[values.len() - 1];
        let v = if random.below(3) == 0 { values[random.below(values.len())] } else { last };
        let c = consts[random.below(consts.len())];
        let binary: [Op; 4] = [ops::Add.into(), ops::Sub.into(), ops::Mul.into(), ops::Div.into()];
        let pick = |random: &mut Random| binary[random.below(4)].clone();
        let made = match random.below(12) {
            0 | 1 => g.op(ops::Relu.into(), &[v]),
            2 => g.op(ops::Sigmoid.into(), &[v]),
            3 => g.op(ops::Erf.into(), &[v]),
            4 => g.op(pick(&mut random), &[v, c]),
            5 => g.op(pick(&mut random), &[c, v]),
            6 | 7 => {
                let other = values[random.below(values.len())];
                g.op(if random.below(2) == 0 { ops::Add.into() } else { pick(&mut random) }, &[v, other])
            }
            8 => g.op(ops::Identity.into(), &[v]),
            9 => {
                let folded = g.op(pick(&mut random), &[c, consts[0]]).unwrap();
                consts.push(folded);
                g.op(pick(&mut random), &[v, folded])
            }
            10 => {
                let group = [1, 16][random.below(2)];
                let w = g.constant(format!("w{i}"), floats(&[16, 16 / group, 3, 3], i));
                let op = ops::Conv { group: group as i64, pads: vec![1; 4], ..Default::default() };
                let made = g.op(op.into(), &[v, w]).unwrap();
                match random.below(3) {
                    0 => g.op(ops::Relu.into(), &[made]),
                    1 => {
                        let sum = g.op(ops::Add.into(), &[v, made]).unwrap();
                        g.op(ops::Relu.into(), &[sum])
                    }
                    _ => Ok(made),
                }
            }
            _ => {
                let w = g.constant(format!("w{i}"), floats(&[6, 6], i));
                let made = g.op(ops::MatMul::default().into(), &[v, w]).unwrap();
                g.op(ops::Add.into(), &[made, consts[2]])
            }
        };
        values.push(made.unwrap());
    }
    let last = values[values.len() - 1];
    g.output("y", last).unwrap();
    Arc::new(g)
}

#[test]
fn random_graphs_keep_their_bits() {
    let executors = [cpu(1), cpu(2)];
    let mut n_rewrites = 0;
    for seed in 0..20 {
        let graph = random_graph(seed);
        let mut random = Random(seed);
        let n = graph.nodes().len();
        // The output, and any values on the way.
        let mut targets = outputs(&graph);
        targets.extend((0..seed as usize % 4).map(|_| ValueId::from(NodeId(random.below(n) as u32))));
        let feeds = [floats(&[1 + seed as usize % 2, 16, 6, 6], seed as u32)];
        let expected = realize(&executors[0], &graph, &targets, off(), &feeds);
        for executor in &executors {
            let got = realize(executor, &graph, &targets, PrepareOptions::default(), &feeds);
            for (i, (got, expected)) in got.outputs.iter().zip(&expected.outputs).enumerate() {
                assert!(same(got, expected), "target {i} of\n{graph}");
            }
        }
        let (plan, rewrites) = plan(&graph, &targets, PrepareOptions::default(), &[(F32, feeds[0].shape())]);
        plan.program.graph().verify().unwrap();
        n_rewrites += rewrites.len();
        for pass in PASSES {
            let got = realize(&executors[1], &graph, &targets, only(pass.name), &feeds);
            assert!(got.outputs.iter().zip(&expected.outputs).all(|(a, b)| same(a, b)), "{} of\n{graph}", pass.name);
        }
    }
    assert!(n_rewrites > 50, "the graphs have what passes look for: {n_rewrites}");
}

/// Same dims and bits; any NaN is one NaN.
fn same(a: &(Vec<usize>, Vec<u8>), b: &(Vec<usize>, Vec<u8>)) -> bool {
    let canonical = |bytes: &[u8]| -> Vec<u32> {
        let word = |c: &[u8]| f32::from_le_bytes([c[0], c[1], c[2], c[3]]);
        bytes.chunks_exact(4).map(word).map(|x| if x.is_nan() { u32::MAX } else { x.to_bits() }).collect()
    };
    a.0 == b.0 && a.1.len() == b.1.len() && canonical(&a.1) == canonical(&b.1)
}
