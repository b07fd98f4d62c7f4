//! The bars of the pipelined core, on its four models.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::{Bar, Bench, Figure, runtime};
use crate::checks::{self, Agree, CONFORMANCE, Suite};
use crate::project::{Failure, array, read_json, run};
use crate::python;

pub(super) const MODELS: [&str; 4] = ["one-add", "silero-vad", "resnet50", "minilm"];

pub(super) const BARS: &[Bar] = &[
    Bar { name: "1", what: "a fresh clone's .ci/run is green", is_long: true, measure: fresh_clone },
    Bar { name: "2", what: "values within 1e-4 of onnxruntime, optimiser off", is_long: false, measure: agreement },
    Bar {
        name: "3",
        what: "official suite: what is built passes; no crash or timeout",
        is_long: false,
        measure: suite,
    },
    Bar { name: "4", what: "compiling and executing overlap", is_long: false, measure: runtime::pipeline },
    Bar { name: "5", what: "a replay allocates and hashes nothing", is_long: false, measure: runtime::replay },
    Bar { name: "6", what: "failures leave nothing behind", is_long: false, measure: runtime::failure },
    Bar { name: "7", what: "the same bits however a model is run", is_long: false, measure: runtime::same_bits },
    Bar { name: "8", what: "memory at the first output, and its limit", is_long: false, measure: runtime::memory },
    Bar { name: "9", what: "mutated models do no harm", is_long: false, measure: runtime::hostile },
    Bar { name: "10", what: "cold sooner than onnxruntime, warm at most 2 times it", is_long: false, measure: speed },
];

/// Clones the checkout's last commit and runs what CI runs there, with an empty target folder.
fn fresh_clone(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let clone = bench.work.join("clone");
    if clone.exists() {
        std::fs::remove_dir_all(&clone).map_err(|e| Failure::Broken(format!("{}: {e}", clone.display())))?;
    }
    let mut git = Command::new("git");
    run(git.args(["clone", "--quiet"]).arg(&bench.project.root).arg(&clone), "git clone")?;
    let clock = Instant::now();
    let outcome = run(Command::new(clone.join(".ci/run")).env_remove("CARGO_TARGET_DIR"), ".ci/run");
    let minutes = clock.elapsed().as_secs_f64() / 60.0;
    Ok(vec![Figure {
        what: "fresh clone, empty target folder: .ci/run".into(),
        value: match &outcome {
            Ok(()) => format!("green in {minutes:.1} min"),
            Err(why) => format!("{} after {minutes:.1} min", why.message()),
        },
        spread: String::new(),
        bound: "green, < 25 min".into(),
        is_met: outcome.is_ok() && minutes < 25.0,
    }])
}

fn agreement(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    need_models(bench)?;
    checks::build(bench.project)?;
    let only = format!("^({}|conv-block|transformer)$", MODELS.join("|"));
    let check = Agree { models: bench.models.clone(), only, json: Some(bench.work.clone()) };
    let outcome = check.run(bench.project);
    let mut figures = Vec::new();
    for drive in ["run", "session"] {
        let rows = read_json(&bench.work.join(format!("agree-{drive}.json")));
        let Ok(rows) = rows else { continue };
        for model in MODELS {
            let mine: Vec<&Value> = array(&rows).iter().filter(|row| row["model"] == model).collect();
            let problem = mine.iter().filter_map(|row| row["problem"].as_str()).find(|text| !text.is_empty());
            let errors: Vec<f64> = mine.iter().filter_map(|row| row["worst"].as_f64()).collect();
            let worst = errors.iter().copied().fold(0.0, f64::max);
            figures.push(Figure {
                what: format!("{model}, one {drive}, {} sets of inputs", mine.len()),
                value: problem.map_or_else(|| format!("{worst:.1e} of scale"), |text| text.chars().take(100).collect()),
                spread: String::new(),
                bound: "1e-4".into(),
                is_met: problem.is_none() && !mine.is_empty() && worst <= 1e-4,
            });
        }
    }
    if figures.is_empty() { outcome.map(|_| figures) } else { Ok(figures) }
}

fn suite(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    bench.project.build_release(&[CONFORMANCE])?;
    let outcome = Suite::default().run(bench.project);
    let verdicts = read_json(&bench.project.target.join("suite.json"));
    let Ok(verdicts) = verdicts else { return outcome.map(|_| Vec::new()) };
    let python = python::environment(bench.project, python::CHECKS)?;
    let mut command = Command::new(python);
    command.arg(bench.project.path("crates/conformance/suite/scope.py"));
    command.arg("--suite").arg(checks::suite_folder(bench.project)?);
    command.arg("--verdicts").arg(bench.project.target.join("suite.json"));
    let scope_file = bench.work.join("scope.json");
    command.arg("--json").arg(&scope_file).arg("--").arg(bench.project.program(CONFORMANCE));
    run(&mut command, "scope.py")?;
    let scope = read_json(&scope_file)?;
    let (n_built, n_passed) = (count(&scope["built"]), count(&scope["passed"]));
    let n_verdicts = |word: &str| {
        let cases = verdicts["cases"].as_object().into_iter().flatten();
        cases.filter(|(_, case)| case["verdict"] == word).count()
    };
    let mut figures = vec![Figure {
        what: "cases whose ops and types are built".into(),
        value: format!("{n_passed} of {n_built} pass"),
        spread: String::new(),
        bound: "all".into(),
        is_met: n_passed == n_built && n_built > 0,
    }];
    for word in ["crash", "timeout"] {
        let n = n_verdicts(word);
        let (what, value) = (format!("verdict {word}, whole suite"), n.to_string());
        figures.push(Figure { what, value, spread: String::new(), bound: "0".into(), is_met: n == 0 });
    }
    Ok(figures)
}

fn speed(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    need_models(bench)?;
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
    command.args(["--models", &MODELS.join(","), "--peers", "ort,firstlight", "--peer", &ours]);
    command.args(["--phases", "check,cold,steady", "--threads", "1,2", "--rounds", &bench.rounds.to_string()]);
    command.args(["--steady-rounds", &bench.rounds.div_ceil(3).to_string()]);
    run(command.arg("--json").arg(&results), "bench/run.py")?;
    let results = read_json(&results)?;
    let mut figures = Vec::new();
    for model in MODELS {
        for (phase, key, bound) in [("cold1", "total", 1.0), ("cold2", "total", 1.0), ("steady1", "med", 2.0)] {
            figures.push(ratio(&results[model], model, phase, key, bound));
        }
    }
    Ok(figures)
}

/// Our time over onnxruntime's, round by round.
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
    let middle = median(&ratios);
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

pub(super) fn need_models(bench: &Bench) -> Result<(), Failure> {
    let is_there = |name: &&str| bench.models.join(name).join("case/inputs.txt").exists();
    let missing: Vec<&str> = MODELS.into_iter().filter(|name| !is_there(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let folder = bench.models.display();
    Err(Failure::Broken(format!("{folder} lacks {}: cargo xtask models makes them", missing.join(", "))))
}

fn count(value: &Value) -> usize {
    value.as_u64().map_or(0, |n| usize::try_from(n).unwrap_or(usize::MAX))
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
    fn a_ratio_is_the_median_of_rounds() {
        let rounds = |times: &[f64]| times.iter().map(|t| json!({"total": t})).collect::<Value>();
        let result =
            json!({"firstlight": {"cold1": rounds(&[1e6, 3e6, 2e6])}, "ort": {"cold1": rounds(&[2e6, 2e6, 2e6])}});
        let figure = ratio(&result, "m", "cold1", "total", 1.0);
        assert!(figure.value.starts_with("1.00 (2.00 ms, 2.00 ms)") && !figure.is_met);
        assert!(ratio(&result, "m", "cold1", "total", 1.1).is_met);
        assert!(!ratio(&json!({}), "m", "cold1", "total", 1.1).is_met);
    }
}
