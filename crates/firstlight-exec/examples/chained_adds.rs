//! What a step of a replay costs beside its work: 1,000 chained adds of 16 floats, passes off.
//!
//! Prints the steps of a run and, over many replays, the median, least and greatest time a step.
#![forbid(unsafe_code)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Buffers, cpu};
use firstlight_exec::{Event, EventSink, Feed, Pipeline, PrepareOptions, RunOptions};
use firstlight_graph::{Graph, Spec, ops};
use firstlight_tensor::{DType, Tensor};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const N_REPLAYS: usize = 3000;

/// Counts the steps that ran.
#[derive(Debug, Default)]
struct Steps(AtomicUsize);

impl EventSink for Steps {
    fn event(&self, event: &Event<'_>) -> Result<(), String> {
        if matches!(event, Event::Ran { .. }) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut graph = Graph::new("adds");
    let x = graph.input("x", Spec::known(DType::F32, &[16]), None);
    let c = graph.constant("c", Tensor::from_slice([16], &[1f32; 16])?);
    let mut v = x;
    for _ in 0..1000 {
        v = graph.op(ops::Add.into(), &[v, c])?;
    }
    graph.output("y", v)?;
    let executor = cpu(1);
    let options = PrepareOptions { passes: false, ..PrepareOptions::default() };
    let prepared = executor.prepare(Arc::new(graph), &[v], options)?;
    let mut buffers = Buffers::default();
    let bytes = [0u8; 64];
    let mut run = |options: &RunOptions<'_>| {
        let feed = Some(Feed { dtype: DType::F32, dims: &[16], bytes: &bytes });
        executor.run(&prepared, &[feed], options, &mut buffers)
    };
    let steps = Steps::default();
    run(&RunOptions { pipeline: Pipeline::Inline, events: Some(&steps), ..RunOptions::default() })?;
    let n_steps = steps.0.load(Ordering::Relaxed);
    let mut times = Vec::with_capacity(N_REPLAYS);
    for _ in 0..N_REPLAYS {
        let clock = Instant::now();
        run(&RunOptions::default())?;
        times.push(clock.elapsed().as_secs_f64() * 1e6 / n_steps as f64);
    }
    if buffers.outputs.first().is_none_or(|(_, y)| y.chunks_exact(4).any(|v| v != 1000f32.to_le_bytes())) {
        return Err("the sum is not 1,000".into());
    }
    times.sort_by(f64::total_cmp);
    println!(
        "steps {n_steps} replays {N_REPLAYS} median_us {:.4} least_us {:.4} most_us {:.4}",
        times[N_REPLAYS / 2],
        times[0],
        times[N_REPLAYS - 1]
    );
    Ok(())
}
