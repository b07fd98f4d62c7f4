//! What the executor's tests share: devices, a graph with every kind of step, and ways to run it.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use firstlight_backend::{BackendId, Budget, Device, KernelBindingTable, Pool, reference_kernel};
use firstlight_cpu::CpuDevice;
use firstlight_exec::{
    ExecutorConfig, Feed, Outputs, PipelinedExecutor, PrepareOptions, Prepared, RunError, RunOptions,
};
use firstlight_graph::{Graph, Op, OpError, Spec, ValueId, ops};
use firstlight_sim::{SimDevice, SimOptions};
use firstlight_tensor::{DType, Dim, SymShape, Tensor};
use std::sync::Arc;

/// An executor on the host.
pub fn cpu(threads: usize) -> PipelinedExecutor {
    cpu_with_limit(threads, None)
}

/// An executor on the host with a memory limit.
pub fn cpu_with_limit(threads: usize, limit: Option<usize>) -> PipelinedExecutor {
    let table = KernelBindingTable::finalize(firstlight_cpu::BINDINGS, &[(BackendId::CPU, reference_kernel)]);
    executor(threads, table.unwrap(), Arc::new(CpuDevice), limit)
}

/// An executor on the simulated device.
pub fn sim(threads: usize) -> (PipelinedExecutor, Arc<SimDevice>) {
    let device = Arc::new(SimDevice::new(SimOptions::default()));
    let table = KernelBindingTable::finalize(&[], &[firstlight_sim::reference_row()]).unwrap();
    (executor(threads, table, device.clone(), None), device)
}

fn executor(
    threads: usize,
    table: KernelBindingTable,
    device: Arc<dyn Device>,
    limit: Option<usize>,
) -> PipelinedExecutor {
    PipelinedExecutor::new(ExecutorConfig {
        pool: Arc::new(Pool::new(threads).unwrap()),
        table: Arc::new(table),
        device,
        budget: Budget::new(limit),
    })
}

/// A graph of 60 nodes, subgraphs included: shape values, a data-sized output, an `If` whose arms give different
/// shapes, a `Loop` that carries and scans, and chains around them.
///
/// Inputs: `x` f32[n, 8], `flag` bool, `trips` i64. Outputs: `y` and `scanned`.
pub fn sixty_nodes() -> Arc<Graph> {
    let mut g = Graph::new("sixty");
    let dims = SymShape(vec![Dim::Named("n".into()), Dim::Known(8)]);
    let x = g.input("x", Spec { dtype: DType::F32, dims: Some(dims) }, None);
    let flag = g.input("flag", Spec::known(DType::Bool, &[]), None);
    let trips = g.input("trips", Spec::known(DType::I64, &[]), None);
    let half = g.constant("half", Tensor::scalar(0.5f32));
    let row = g.constant("row", Tensor::from_slice([8], &[1f32, -1., 2., -2., 3., -3., 4., -4.]).unwrap());
    let mut v = x;
    for i in 0..8 {
        v = match i % 4 {
            0 => g.op(ops::Add.into(), &[v, row]),
            1 => g.op(ops::Mul.into(), &[v, half]),
            2 => g.op(ops::Sigmoid.into(), &[v]),
            _ => g.op(ops::Sub.into(), &[v, row]),
        }
        .unwrap();
    }
    // Values that follow from shapes: no step.
    let shape = g.op(ops::Shape::default().into(), &[v]).unwrap();
    let first = g.constant("first", Tensor::from_slice([1], &[0i64]).unwrap());
    let n = g.op(ops::Gather { axis: 0 }.into(), &[shape, first]).unwrap();
    let rest = g.constant("rest", Tensor::from_slice([1], &[-1i64]).unwrap());
    let wanted = g.op(ops::Concat { axis: 0 }.into(), &[n, rest]).unwrap();
    let flat = g.op(ops::Reshape::default().into(), &[v, wanted]).unwrap();
    // A data-sized output: the segment ends.
    let positive = g.op(ops::Relu.into(), &[flat]).unwrap();
    let found = g.op(ops::NonZero.into(), &[positive]).unwrap();
    let n_found = g.op(ops::Shape::default().into(), &[found]).unwrap();
    let n_found = g.op(cast(DType::F32), &[n_found]).unwrap();
    let n_found = g.op(ops::ReduceMean { keepdims: false, noop_with_empty_axes: false }.into(), &[n_found]).unwrap();
    let v = g.op(ops::Add.into(), &[flat, n_found]).unwrap();

    let branch = |rows_twice: bool| {
        let mut b = Graph::new(if rows_twice { "then" } else { "else" });
        let dims = SymShape(vec![Dim::Unknown, Dim::Unknown]);
        let c = b.input("c", Spec { dtype: DType::F32, dims: Some(dims) }, None);
        let mut w = c;
        for _ in 0..3 {
            w = b.op(ops::Sigmoid.into(), &[w]).unwrap();
            w = b.op(ops::Add.into(), &[w, c]).unwrap();
        }
        if rows_twice {
            w = b.op(ops::Concat { axis: 0 }.into(), &[w, c]).unwrap();
        }
        b.output("w", w).unwrap();
        Arc::new(b)
    };
    let branches = ops::If { then_branch: branch(true), else_branch: branch(false) };
    let chosen = ValueId::from(g.push("choose", branches.into(), &[Some(flag), Some(v)], &["chosen"]).unwrap());
    let mut v = chosen;
    for _ in 0..2 {
        v = g.op(ops::Mul.into(), &[v, half]).unwrap();
        v = g.op(ops::Sub.into(), &[v, half]).unwrap();
    }
    let body = {
        let mut b = Graph::new("body");
        let _iteration = b.input("iteration", Spec::known(DType::I64, &[]), None);
        let cond = b.input("cond", Spec::known(DType::Bool, &[]), None);
        let dims = SymShape(vec![Dim::Unknown, Dim::Unknown]);
        let carried = b.input("carried", Spec { dtype: DType::F32, dims: Some(dims.clone()) }, None);
        let outer = b.input("outer", Spec { dtype: DType::F32, dims: Some(dims) }, None);
        let sum = b.op(ops::Add.into(), &[carried, outer]).unwrap();
        let next = b.op(ops::Sigmoid.into(), &[sum]).unwrap();
        let axes = b.constant("axes", Tensor::from_slice([1], &[1i64]).unwrap());
        let mean = ops::ReduceMean { keepdims: false, noop_with_empty_axes: false };
        let scanned = b.op(mean.into(), &[next, axes]).unwrap();
        b.output("cond", cond).unwrap();
        b.output("next", next).unwrap();
        b.output("scanned", scanned).unwrap();
        Arc::new(b)
    };
    let inputs = [Some(trips), None, Some(v), Some(chosen)];
    let looped = g.push("repeat", ops::Loop { body, n_carried: 1 }.into(), &inputs, &["last", "scanned"]).unwrap();
    let (mut v, scanned) = (ValueId::from(looped), ValueId { node: looped, output: 1 });
    while n_nodes(&g) < 60 {
        v = g.op(if n_nodes(&g).is_multiple_of(2) { ops::Mul.into() } else { ops::Add.into() }, &[v, half]).unwrap();
    }
    g.output("y", v).unwrap();
    g.output("scanned", scanned).unwrap();
    g.verify().unwrap();
    assert_eq!(n_nodes(&g), 60);
    Arc::new(g)
}

fn cast(to: DType) -> Op {
    ops::Cast { to }.into()
}

/// Nodes of a graph and its subgraphs, without inputs.
pub fn n_nodes(graph: &Graph) -> usize {
    let own = graph.nodes().iter().filter(|node| !matches!(node.op, Op::Input(_))).count();
    let nested = graph.nodes().iter().flat_map(|node| node.op.subgraphs()).map(|subgraph| n_nodes(subgraph));
    own + nested.sum::<usize>()
}

/// Inputs of [`sixty_nodes`].
#[derive(Clone, Debug)]
pub struct Inputs {
    pub rows: usize,
    pub x: Vec<u8>,
    pub flag: [u8; 1],
    pub trips: [u8; 8],
}

impl Inputs {
    pub fn new(rows: usize, flag: bool, trips: i64) -> Inputs {
        let x = (0..rows * 8).flat_map(|i| ((i as f32 * 0.37).sin() * 2.0).to_le_bytes()).collect();
        Inputs { rows, x, flag: [flag.into()], trips: trips.to_le_bytes() }
    }

    pub fn with_feeds<R>(&self, run: impl FnOnce(&[Option<Feed<'_>>]) -> R) -> R {
        let dims = [self.rows, 8];
        run(&[
            Some(Feed { dtype: DType::F32, dims: &dims, bytes: &self.x }),
            Some(Feed { dtype: DType::Bool, dims: &[], bytes: &self.flag }),
            Some(Feed { dtype: DType::I64, dims: &[], bytes: &self.trips }),
        ])
    }
}

/// Collects outputs into buffers that are reused: allocates nothing once they are large enough.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buffers {
    pub outputs: Vec<(Vec<usize>, Vec<u8>)>,
}

impl Outputs for Buffers {
    fn output(
        &mut self,
        index: usize,
        dtype: DType,
        dims: &[usize],
        copy: &mut dyn FnMut(&mut [u8]) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        if self.outputs.len() <= index {
            self.outputs.resize_with(index + 1, Default::default);
        }
        let (held_dims, bytes) = &mut self.outputs[index];
        held_dims.clear();
        held_dims.extend_from_slice(dims);
        bytes.clear();
        bytes.resize(dtype.size_bytes(dims.iter().product()).unwrap(), 0);
        copy(bytes)
    }
}

/// Prepares all outputs of a graph.
pub fn prepare(executor: &PipelinedExecutor, graph: &Arc<Graph>) -> Arc<Prepared> {
    let targets: Vec<ValueId> = graph.outputs().iter().map(|(_, value)| *value).collect();
    executor.prepare(graph.clone(), &targets, PrepareOptions::default()).unwrap()
}

/// Prepares all outputs of a graph, node by node as it is.
pub fn prepare_as_is(executor: &PipelinedExecutor, graph: &Arc<Graph>) -> Arc<Prepared> {
    let targets: Vec<ValueId> = graph.outputs().iter().map(|(_, value)| *value).collect();
    executor.prepare(graph.clone(), &targets, PrepareOptions { passes: false, ..Default::default() }).unwrap()
}

/// Runs [`sixty_nodes`].
pub fn run(
    executor: &PipelinedExecutor,
    prepared: &Prepared,
    inputs: &Inputs,
    options: &RunOptions<'_>,
) -> Result<Buffers, RunError> {
    let mut outputs = Buffers::default();
    inputs.with_feeds(|feeds| executor.run(prepared, feeds, options, &mut outputs))?;
    Ok(outputs)
}

/// The answer of [`sixty_nodes`], node by node on the simulated device, inline.
pub fn answer(inputs: &Inputs) -> Buffers {
    let (executor, _) = sim(1);
    let graph = sixty_nodes();
    run(&executor, &prepare(&executor, &graph), inputs, &RunOptions::default()).unwrap()
}

/// Element by element within `tolerance` of each other.
pub fn assert_close(a: &Buffers, b: &Buffers, tolerance: f32) {
    assert_eq!(a.outputs.len(), b.outputs.len());
    for (a, b) in a.outputs.iter().zip(&b.outputs) {
        assert_eq!(a.0, b.0, "dims");
        let floats = |bytes: &[u8]| -> Vec<f32> {
            bytes.chunks_exact(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
        };
        for (i, (x, y)) in floats(&a.1).iter().zip(floats(&b.1)).enumerate() {
            assert!((x - y).abs() <= tolerance, "element {i}: {x} against {y}");
        }
    }
}
