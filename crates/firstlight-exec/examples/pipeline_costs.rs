//! What the pipeline itself costs: a chain of small adds, without passes.
//!
//! `pipeline_costs [NODES]` prints one JSON line: steps, time a step of a replay, time a node of compiling, and first runs
//! inline and pipelined.

use firstlight_backend::{BackendId, Budget, KernelBindingTable, Pool, reference_kernel};
use firstlight_exec::{
    ExecutorConfig, Feed, Outputs, Pipeline, PipelinedExecutor, PrepareOptions, Prepared, RunError, RunOptions,
};
use firstlight_graph::{Graph, OpError, Spec, ops};
use firstlight_tensor::{DType, Tensor, TensorError};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Sink([u8; 64]);

impl Outputs for Sink {
    fn output(
        &mut self,
        _index: usize,
        _dtype: DType,
        _dims: &[usize],
        copy: &mut dyn FnMut(&mut [u8]) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        copy(&mut self.0)
    }
}

fn chain(n: usize) -> Result<Graph, Box<dyn Error>> {
    let mut graph = Graph::new("adds");
    let x = graph.input("x", Spec::known(DType::F32, &[16]), None);
    let one = Tensor::from_slice([16], &[1f32; 16]).map_err(|e: TensorError| e.to_string())?;
    let one = graph.constant("one", one);
    let mut v = x;
    for _ in 0..n {
        v = graph.op(ops::Add.into(), &[v, one])?;
    }
    graph.output("y", v)?;
    Ok(graph)
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}

fn main() -> Result<(), Box<dyn Error>> {
    let n = std::env::args().nth(1).map_or(Ok(1000), |n| n.parse())?;
    let table = KernelBindingTable::finalize(firstlight_cpu::BINDINGS, &[(BackendId::CPU, reference_kernel)])?;
    let executor = PipelinedExecutor::new(ExecutorConfig {
        pool: Arc::new(Pool::new(2)?),
        table: Arc::new(table),
        device: Arc::new(firstlight_cpu::CpuDevice),
        budget: Budget::new(None),
    });
    let graph = Arc::new(chain(n)?);
    let targets = [graph.outputs()[0].1];
    let prepare = || executor.prepare(graph.clone(), &targets, PrepareOptions { passes: false, ..Default::default() });
    let bytes = [0u8; 64];
    let mut sink = Sink([0; 64]);
    let mut run = |prepared: &Prepared, pipeline| -> Result<Duration, RunError> {
        let feed = Some(Feed { dtype: DType::F32, dims: &[16], bytes: &bytes });
        let options = RunOptions { pipeline, ..Default::default() };
        let start = Instant::now();
        executor.run(prepared, &[feed], &options, &mut sink)?;
        Ok(start.elapsed())
    };
    let mut first = |pipeline| -> Result<f64, RunError> {
        let times: Result<Vec<Duration>, RunError> = (0..41).map(|_| run(&*prepare()?, pipeline)).collect();
        times.map(median)
    };
    let (inline, pipelined) = (first(Pipeline::Inline)?, first(Pipeline::On)?);
    let prepared = prepare()?;
    run(&prepared, Pipeline::Inline)?;
    let replays: Result<Vec<Duration>, RunError> = (0..2001).map(|_| run(&prepared, Pipeline::Inline)).collect();
    let replay = median(replays?);
    let steps = prepared.n_compiled();
    println!(
        "{{\"steps\":{steps},\"replay_us_a_step\":{:.4},\"compile_us_a_node\":{:.3},\"first_inline_us\":{inline:.1},\"first_pipelined_us\":{pipelined:.1}}}",
        replay / steps as f64,
        (inline - replay) / steps as f64,
    );
    Ok(())
}
