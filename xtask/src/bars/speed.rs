//! Side by side with onnxruntime: starts and later runs, in interleaved rounds.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Bench, Figure};
use crate::project::{Failure, array, read_json, run};
use crate::python;

/// Cold on one and two threads, sooner; warm on one thread, at most `warm` times as long.
pub(super) fn against_onnxruntime(bench: &Bench, models: &[&str], warm: f64) -> Result<Vec<Figure>, Failure> {
    let models = bench.models_of(models)?;
    bench.project.build_release(&["firstlight-peer"])?;
    let peers = bench.project.target.join("peers");
    build_onnxruntime_peer(bench, &peers)?;
    let python = python::environment(bench.project, python::CHECKS)?;
    let results = bench.work.join("speed.json");
    let _ = std::fs::remove_file(&results);
    let ours = format!(
        "firstlight={} --model {{model}} --case {{case}} --threads {{threads}} --iters {{iters}} --secs {{secs}} {{out}}",
        bench.project.program("firstlight-peer").display()
    );
    let mut command = Command::new(python);
    command.arg(bench.project.path("bench/run.py")).env("MODELS_DIR", &bench.models).env("PEERS_BIN", &peers);
    command.args(["--models", &models.join(","), "--peers", "ort,firstlight", "--peer", &ours]);
    command.args(["--phases", "check,cold,steady", "--threads", "1,2", "--rounds", &bench.rounds.to_string()]);
    command.args(["--steady-rounds", &bench.rounds.div_ceil(3).to_string()]);
    run(command.arg("--json").arg(&results), "bench/run.py")?;
    let results = read_json(&results)?;
    let mut figures = Vec::new();
    for model in models {
        for (phase, key, bound) in [("cold1", "total", 1.0), ("cold2", "total", 1.0), ("steady1", "med", warm)] {
            figures.push(ratio(&results[model], model, phase, key, bound));
        }
    }
    Ok(figures)
}

/// The median of our times over the median of onnxruntime's; the spread is that of single rounds.
fn ratio(result: &Value, model: &str, phase: &str, key: &str, bound: f64) -> Figure {
    let times = |peer: &str| -> Vec<f64> {
        array(&result[peer][phase]).iter().filter_map(|round| round[key].as_f64()).collect()
    };
    let (ours, theirs) = (times("firstlight"), times("ort"));
    let mut ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
    ratios.sort_by(f64::total_cmp);
    let is_cold = phase.starts_with("cold");
    let (kind, threads) = (if is_cold { "cold" } else { "warm" }, phase.trim_start_matches(char::is_alphabetic));
    let what = format!("{model} {kind} / onnxruntime, threads {threads}");
    let bound_text = format!("{} {bound}", if is_cold { "<" } else { "<=" });
    let (Some(low), Some(high)) = (ratios.first(), ratios.last()) else {
        let why = result["firstlight"]["error"].as_str().unwrap_or("no rounds").to_owned();
        return Figure { what, value: why, spread: String::new(), bound: bound_text, is_met: false };
    };
    let middle = median(&ours) / median(&theirs);
    let is_met = if is_cold { middle < bound } else { middle <= bound };
    Figure {
        what,
        value: format!("{middle:.2} ({:.2} ms, {:.2} ms)", median(&ours) / 1e6, median(&theirs) / 1e6),
        spread: format!("{low:.2} to {high:.2}, {} rounds", ratios.len()),
        bound: bound_text,
        is_met,
    }
}

fn build_onnxruntime_peer(bench: &Bench, bin: &Path) -> Result<(), Failure> {
    if bin.join("peer-ort").exists() {
        return Ok(());
    }
    let mut command = Command::new("bash");
    command.arg(bench.project.path("bench/build.sh")).arg("rust").env("RUST_PEERS", "ort").env("PEERS_BIN", bin);
    run(command.env("CARGO_TARGET_DIR", bench.project.target.join("peers-build")), "bench/build.sh")?;
    match bin.join("peer-ort").exists() {
        true => Ok(()),
        false => Err(Failure::Broken("bench/build.sh made no peer-ort".into())),
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_ratio_is_that_of_the_medians() {
        let rounds = |times: &[f64]| times.iter().map(|t| json!({"total": t})).collect::<Value>();
        let result =
            json!({"firstlight": {"cold1": rounds(&[1e6, 3e6, 2e6])}, "ort": {"cold1": rounds(&[2e6, 1e6, 9e6])}});
        let figure = ratio(&result, "m", "cold1", "total", 1.0);
        assert!(figure.value.starts_with("1.00 (2.00 ms, 2.00 ms)") && !figure.is_met);
        assert_eq!(figure.spread, "0.22 to 3.00, 3 rounds");
        assert!(ratio(&result, "m", "cold1", "total", 1.1).is_met);
        assert!(!ratio(&json!({}), "m", "cold1", "total", 1.1).is_met);
    }
}
