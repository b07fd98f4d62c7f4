//! Runs of `bench/run.py`: this runtime and its peers in interleaved rounds, and ratios of what they took.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::Bench;
use crate::project::{Failure, Project, array, read_json, run};
use crate::python;

/// The name of this runtime among the peers.
pub(super) const OURS: &str = "firstlight";

/// What is run side by side.
pub(super) struct SideBySide<'a> {
    pub(super) models: &'a [&'a str],
    /// Names that `bench/run.py` knows.
    pub(super) peers: &'a [&'a str],
    /// `check`, `cold`, `evict`, `steady`.
    pub(super) phases: &'a [&'a str],
    pub(super) threads: &'a [usize],
    pub(super) rounds: usize,
    pub(super) steady_rounds: usize,
    /// All processes on one core.
    pub(super) is_pinned: bool,
    /// Name of the file that the figures are kept in.
    pub(super) file: &'a str,
}

impl SideBySide<'_> {
    /// The figures, by model, by peer, by phase with its number of threads.
    pub(super) fn run(&self, bench: &Bench) -> Result<Value, Failure> {
        let program = bench.project.build_quick("firstlight-peer")?;
        let folder = bench.project.target.join("peers");
        let is_openvino = self.peers.iter().any(|peer| peer.starts_with("openvino"));
        let python = python::environment(bench.project, if is_openvino { python::PEERS } else { python::CHECKS })?;
        self.build_peers(bench.project, &folder, &python)?;
        let results = bench.work.join(self.file);
        let _ = std::fs::remove_file(&results);
        let ours = format!(
            "{OURS}={} --model {{model}} --case {{case}} --threads {{threads}} --iters {{iters}} --secs {{secs}} {{out}}",
            program.display()
        );
        let mut command = match self.is_pinned {
            true => Command::new("taskset"),
            false => Command::new(&python),
        };
        if self.is_pinned {
            command.args(["--cpu-list", "0"]).arg(&python);
        }
        let peers: Vec<&str> = self.peers.iter().copied().chain([OURS]).collect();
        let threads: Vec<String> = self.threads.iter().map(usize::to_string).collect();
        command.arg(bench.project.path("bench/run.py")).env("MODELS_DIR", &bench.models).env("PEERS_BIN", &folder);
        command.args(["--models", &self.models.join(","), "--peers", &peers.join(","), "--peer", &ours]);
        command.args(["--phases", &self.phases.join(","), "--threads", &threads.join(",")]);
        command.args(["--rounds", &self.rounds.to_string(), "--steady-rounds", &self.steady_rounds.to_string()]);
        run(command.arg("--json").arg(&results), "bench/run.py")?;
        read_json(&results)
    }

    /// Builds the programs of the peers that are not there yet.
    fn build_peers(&self, project: &Project, folder: &Path, python: &Path) -> Result<(), Failure> {
        for (name, kind) in [("ort", "rust"), ("rten", "rust"), ("openvino", "cpp")] {
            let program = folder.join(format!("peer-{name}"));
            if program.exists() || !self.peers.iter().any(|peer| peer.starts_with(name)) {
                continue;
            }
            let mut command = Command::new("bash");
            command.arg(project.path("bench/build.sh")).arg(kind).env("RUST_PEERS", name).env("PEERS_BIN", folder);
            command.env("PYTHON", python).env("CARGO_TARGET_DIR", project.target.join("peers-build"));
            run(&mut command, "bench/build.sh")?;
            if !program.exists() {
                return Err(Failure::Broken(format!("bench/build.sh made no peer-{name}")));
            }
        }
        Ok(())
    }
}

/// Nanoseconds of the rounds of a peer.
pub(super) fn times(result: &Value, peer: &str, phase: &str, key: &str) -> Vec<f64> {
    array(&result[peer][phase]).iter().filter_map(|round| round[key].as_f64()).collect()
}

/// Ours over theirs, round by round, the least first.
pub(super) fn paired(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    let mut ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

pub(super) fn geometric_mean(values: &[f64]) -> f64 {
    match values.len() {
        0 => f64::NAN,
        n => (values.iter().map(|value| value.ln()).sum::<f64>() / n as f64).exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middles_and_means() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0])), (2.0, 2.5));
        assert!((geometric_mean(&[0.5, 2.0, 1.0]) - 1.0).abs() < 1e-12);
        assert!(median(&[]).is_nan() && geometric_mean(&[]).is_nan());
        assert_eq!(paired(&[1.0, 9.0, 4.0], &[2.0, 3.0, 4.0]), [0.5, 1.0, 3.0]);
    }
}
