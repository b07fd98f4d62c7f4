//! How long the rows of an op take on the larger operands that its tests try: `cargo bench -p firstlight-cpu -- AveragePool [THREADS]`.

#[allow(dead_code)]
#[path = "../tests/rows/launch.rs"]
mod launch;
#[path = "../tests/rows/moves.rs"]
mod moves;
#[path = "../tests/rows/networks.rs"]
mod networks;
#[path = "../tests/rows/random.rs"]
mod random;
#[path = "../tests/rows/resizes.rs"]
mod resizes;
#[path = "../tests/rows/samples.rs"]
mod samples;
#[path = "../tests/rows/windows.rs"]
mod windows;

use firstlight_backend::{KernelBinding, Pool};
use firstlight_cpu::BINDINGS;
use firstlight_graph::{ValueInfo, infer_known};
use firstlight_tensor::{SymShape, Tensor};
use launch::{Placement, launch};
use samples::{Sample, samples};
use std::time::Duration;

/// Elements of the largest operand from which a sample is timed.
const LEAST_ELEMS: usize = 10_000;

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let Some(op) = args.next() else { return println!("which op? cargo bench -p firstlight-cpu -- AveragePool") };
    let threads = args.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let pool = Pool::new(threads).unwrap();
    for row in BINDINGS.iter().flat_map(|rows| rows.iter()).filter(|row| row.op.name() == op) {
        for sample in samples(row, &mut random::Random::new(row.op as u64)) {
            if let Some((best, n_bytes)) = time(row, &sample, &pool) {
                let us = best.as_secs_f64() * 1e6;
                println!("{row:?}: {us:.1} us, {:.2} GB/s, {}", n_bytes as f64 / us / 1e3, sample.name);
            }
        }
    }
}

/// The best time of some launches, and the bytes of all operands.
fn time(row: &KernelBinding, sample: &Sample, pool: &Pool) -> Option<(Duration, usize)> {
    let known = |tensor: &Tensor| ValueInfo {
        dtype: tensor.dtype(),
        dims: SymShape::from(tensor.shape()),
        value: Some(tensor.clone()),
    };
    let infos: Vec<_> = sample.inputs.iter().map(|input| input.as_ref().map(known)).collect();
    let outputs = infer_known(&sample.op, &infos, sample.n_outputs).ok()?;
    let runs = (0..20).map(|_| launch(row, &sample.op, &sample.inputs, &outputs, pool, Placement::Aligned)?.ok());
    let runs: Vec<_> = runs.collect::<Option<_>>()?;
    let operands = || sample.inputs.iter().flatten().chain(&runs[0].outputs);
    let is_large = operands().any(|tensor| tensor.n_elems() >= LEAST_ELEMS);
    let n_bytes = operands().map(|tensor| tensor.as_bytes().len()).sum();
    is_large.then_some((runs.iter().map(|ran| ran.elapsed).min()?, n_bytes))
}
