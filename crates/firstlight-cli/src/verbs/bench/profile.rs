//! What ops, kernels and nodes take of a warm run.

use super::stats::Stats;
use crate::Failure;
use crate::record::{Recorder, Span, Spans};
use crate::table::{Table, heading, short};
use firstlight::core::{
    BackendId, Budget, CPU_BINDINGS, CpuDevice, ExecutorConfig, Graph, KernelBindingTable, PipelinedExecutor, Pool,
    PrepareOptions, RealizeRequest, Realized, Spec, StorageCache, ops, reference_kernel,
};
use firstlight::explain::{ExplainedOperand, ExplainedStep};
use firstlight::{Binding, DType, Explanation, RunOptions, Session, Tensor};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs whose steps are timed.
const RUNS: usize = 20;
/// Sizes of the matrix product that stands for the machine's peak.
const PEAK_DIM: usize = 768;
/// Time for them all.
const MOST: Duration = Duration::from_secs(5);

/// Times of a run's steps, all per run.
#[derive(Debug)]
pub(super) struct Profile {
    ops: Vec<Part>,
    kernels: Vec<Part>,
    nodes: Vec<Part>,
    n_runs: usize,
    run_ms: f64,
    /// The same without timing steps, where that was measured.
    plain_ms: Option<f64>,
    /// Between and beside steps.
    rest_ms: f64,
    peak_gflops: f64,
    threads: usize,
}

/// What one op, kernel or node takes.
#[derive(Clone, Debug, Default)]
struct Part {
    name: String,
    op: String,
    source: String,
    n_steps: usize,
    ms: f64,
    operations: f64,
    bytes: f64,
}

/// What the planner says of a node, for one launch.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    operations: u64,
    bytes: usize,
}

/// Runs with every step timed.
pub(super) fn measure(session: &Session, binding: &mut Binding, plain: &[Duration]) -> Result<Profile, Failure> {
    let begin = Instant::now();
    let mut times = vec![];
    let mut nodes: HashMap<String, Part> = HashMap::new();
    while times.is_empty() || (times.len() < RUNS && begin.elapsed() < MOST) {
        let recorder = Recorder::new();
        let clock = Instant::now();
        binding.run_with(&RunOptions { events: Some(&recorder), ..RunOptions::default() })?;
        times.push(clock.elapsed());
        let records = recorder.take();
        for (span, own) in own_times(&Spans::of(&records).ran) {
            let part = nodes.entry(span.node.to_owned()).or_default();
            part.op = span.op.to_owned();
            part.n_steps += 1;
            part.ms += own.as_secs_f64() * 1e3;
        }
    }
    let mut costs = HashMap::new();
    let mut sources = HashMap::new();
    // The one used last is at the end.
    if let Some(plan) = session.explain().last() {
        costs_of(plan, &mut costs, &mut sources);
    }
    let n_runs = times.len();
    let mut nodes: Vec<Part> = nodes
        .into_iter()
        .map(|(name, mut part)| {
            let cost: Cost = costs.get(&name).copied().unwrap_or_default();
            part.source = sources.get(&name).cloned().unwrap_or_default();
            part.operations = cost.operations as f64 * part.n_steps as f64 / n_runs as f64;
            part.bytes = cost.bytes as f64 * part.n_steps as f64 / n_runs as f64;
            part.ms /= n_runs as f64;
            part.n_steps = part.n_steps.div_ceil(n_runs);
            part.name = name;
            part
        })
        .collect();
    sort(&mut nodes);
    let stats = Stats::of(&times).ok_or_else(|| Failure::Failed("no run".to_owned()))?;
    let run_ms = times.iter().map(Duration::as_secs_f64).sum::<f64>() * 1e3 / n_runs as f64;
    let threads = session.stats().threads;
    Ok(Profile {
        ops: grouped(&nodes, |part| part.op.clone()),
        kernels: grouped(&nodes, |part| format!("{} {}", part.op, part.source)),
        rest_ms: (run_ms - nodes.iter().map(|part| part.ms).sum::<f64>()).max(0.),
        nodes,
        n_runs,
        run_ms: stats.median(),
        plain_ms: Stats::of(plain).map(|stats| stats.median()),
        peak_gflops: peak(threads)?,
        threads,
    })
}

/// Steps with the time that they took themselves, without the steps inside of them.
fn own_times<'a>(ran: &'a [Span<'a>]) -> Vec<(&'a Span<'a>, Duration)> {
    // Time of finished steps of each depth whose outer step has not ended.
    let mut inside: Vec<Duration> = vec![];
    let mut own = vec![];
    for span in ran {
        inside.resize(inside.len().max(span.depth + 2), Duration::ZERO);
        own.push((span, span.time().saturating_sub(inside[span.depth + 1])));
        inside[span.depth + 1] = Duration::ZERO;
        inside[span.depth] += span.time();
    }
    own
}

fn costs_of(plan: &Explanation, costs: &mut HashMap<String, Cost>, sources: &mut HashMap<String, String>) {
    for step in plan.segments.iter().flat_map(|segment| &segment.steps) {
        costs.insert(step.node.clone(), cost_of(step));
        sources.insert(step.node.clone(), step.source.to_owned());
        step.bodies.iter().for_each(|body| costs_of(body, costs, sources));
    }
}

fn cost_of(step: &ExplainedStep) -> Cost {
    let sum = |operands: &mut dyn Iterator<Item = &ExplainedOperand>| {
        operands.map(|operand| operand.bytes).fold(0, usize::saturating_add)
    };
    let written = sum(&mut step.outputs.iter());
    let first = sum(&mut step.inputs.iter().flatten().take(1));
    let others = sum(&mut step.inputs.iter().flatten().skip(1));
    // What picks elements reads no more than it writes, however large the table is.
    let first = if matches!(step.op, "Gather" | "GatherElements" | "Slice") { first.min(written) } else { first };
    Cost { operations: step.operations, bytes: written.saturating_add(first).saturating_add(others) }
}

fn sort(parts: &mut [Part]) {
    parts.sort_by(|a, b| b.ms.total_cmp(&a.ms).then_with(|| a.name.cmp(&b.name)));
}

fn grouped(nodes: &[Part], name: impl Fn(&Part) -> String) -> Vec<Part> {
    let mut groups: HashMap<String, Part> = HashMap::new();
    for node in nodes {
        let group = groups.entry(name(node)).or_default();
        group.n_steps += node.n_steps;
        group.ms += node.ms;
        group.operations += node.operations;
        group.bytes += node.bytes;
        (group.op, group.source) = (node.op.clone(), node.source.clone());
    }
    let mut groups: Vec<Part> = groups.into_iter().map(|(name, part)| Part { name, ..part }).collect();
    sort(&mut groups);
    groups
}

/// GFLOP/s that a large matrix product reaches on these threads.
fn peak(threads: usize) -> Result<f64, Failure> {
    const N: usize = PEAK_DIM;
    let fail = |error: &dyn std::fmt::Display| Failure::Failed(format!("measuring the peak: {error}"));
    let mut graph = Graph::new("peak");
    let spec = Spec::known(DType::F32, &[N, N]);
    let (a, b) = (graph.input("a", spec.clone(), None), graph.input("b", spec, None));
    let product = graph.op(ops::MatMul::default().into(), &[a, b]).map_err(|error| fail(&error))?;
    let table = KernelBindingTable::finalize(CPU_BINDINGS, &[(BackendId::CPU, reference_kernel)]);
    let executor = PipelinedExecutor::new(ExecutorConfig {
        pool: Arc::new(Pool::new(threads).map_err(|error| fail(&error))?),
        table: Arc::new(table.map_err(|error| fail(&error))?),
        device: Arc::new(CpuDevice),
        budget: Budget::new(None),
    });
    let ones = Tensor::from_slice([N, N], &vec![1f32; N * N]).map_err(|error| fail(&error))?;
    let mut fed = StorageCache::new();
    fed.insert(a, Realized::from_tensor(&ones));
    fed.insert(b, Realized::from_tensor(&ones));
    let graph = Arc::new(graph);
    let mut best = f64::INFINITY;
    for _ in 0..8 {
        let recorder = Recorder::new();
        let request = RealizeRequest {
            graph: &graph,
            targets: &[product],
            inputs: &fed,
            prepare: PrepareOptions::default(),
            options: RunOptions { events: Some(&recorder), ..RunOptions::default() },
            persistent: None,
        };
        executor.realize_with(request).map_err(|error| fail(&error))?;
        let records = recorder.take();
        let step = Spans::of(&records).ran.iter().map(Span::time).sum::<Duration>().as_secs_f64();
        best = best.min(step.max(1e-9));
    }
    Ok(2. * (N * N * N) as f64 / best / 1e9)
}

impl Profile {
    /// Appends tables of ops, kernels and the dearest nodes.
    pub(super) fn write(&self, out: &mut String, top: usize) {
        let (gflops, threads) = (self.peak_gflops, self.threads);
        let peak = format!("peak {gflops:.0} GFLOP/s: a {PEAK_DIM}x{PEAK_DIM}x{PEAK_DIM} product on {threads} threads");
        heading(out, "by op", &format!("of {:.3} ms, {} timed runs; {peak}", self.run_ms, self.n_runs));
        self.table(&self.ops, usize::MAX, "op").write(out);
        heading(out, "by kernel", "");
        self.table(&self.kernels, usize::MAX, "op and kernel").write(out);
        heading(out, "by node", &format!("{} of {}", top.min(self.nodes.len()), self.nodes.len()));
        self.table(&self.nodes, top, "node").write(out);
        heading(out, "beside steps", &format!("{:.3} ms a run", self.rest_ms));
        if let Some(plain) = self.plain_ms {
            let slower = 100. * (self.run_ms / plain.max(1e-9) - 1.);
            heading(
                out,
                "timing steps",
                &format!("slows a run by {slower:.1} % ({plain:.3} to {:.3} ms)", self.run_ms),
            );
        }
    }

    fn table(&self, parts: &[Part], top: usize, title: &str) -> Table {
        let mut table = Table::new(&[1, 2, 3, 4, 5, 6]);
        table.row([title, "steps", "ms", "share", "GFLOP/s", "of peak", "GB/s", ""]);
        for part in parts.iter().take(top) {
            let what = match title {
                "node" => format!("{} {}", part.op, part.source),
                _ => String::new(),
            };
            table.row([
                short(&part.name, 48),
                part.n_steps.to_string(),
                format!("{:.3}", part.ms),
                format!("{:.1} %", 100. * self.share(part)),
                format!("{:.1}", part.gflops()),
                format!("{:.0} %", 100. * part.gflops() / self.peak_gflops.max(1e-9)),
                format!("{:.1}", part.gbytes()),
                what,
            ]);
        }
        table
    }

    fn share(&self, part: &Part) -> f64 {
        let all = self.rest_ms + self.nodes.iter().map(|part| part.ms).sum::<f64>();
        part.ms / all.max(1e-9)
    }

    pub(super) fn json(&self, top: usize) -> Value {
        let part = |part: &Part| {
            json!({
                "name": part.name, "op": part.op, "source": part.source, "steps": part.n_steps, "ms": part.ms,
                "share": self.share(part), "operations": part.operations, "bytes": part.bytes,
                "gflops": part.gflops(), "of_peak": part.gflops() / self.peak_gflops.max(1e-9), "gbytes_per_s": part.gbytes(),
            })
        };
        json!({
            "runs": self.n_runs, "run_ms": self.run_ms, "untimed_run_ms": self.plain_ms, "beside_steps_ms": self.rest_ms,
            "peak_gflops": self.peak_gflops,
            "ops": self.ops.iter().map(part).collect::<Vec<_>>(),
            "kernels": self.kernels.iter().map(part).collect::<Vec<_>>(),
            "nodes": self.nodes.iter().take(top).map(part).collect::<Vec<_>>(),
        })
    }
}

impl Part {
    fn gflops(&self) -> f64 {
        self.operations / (self.ms * 1e6).max(1e-9)
    }

    fn gbytes(&self) -> f64 {
        self.bytes / (self.ms * 1e6).max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::What;
    use crate::record::tests::{ran, records};

    #[test]
    fn a_loop_is_not_charged_for_its_body() {
        let list = records(&[
            (0, What::Running),
            (1, What::Running),
            (4, ran("body")),
            (5, What::Running),
            (7, ran("body")),
            (10, ran("loop")),
            (10, What::Running),
            (12, ran("after")),
        ]);
        let spans = Spans::of(&list);
        let own: Vec<(&str, u128)> = own_times(&spans.ran).iter().map(|(s, t)| (s.node, t.as_micros())).collect();
        assert_eq!(own, [("body", 3), ("body", 2), ("loop", 5), ("after", 2)]);
    }
}
