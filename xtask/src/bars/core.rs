//! The bars of the pipelined core, on its four models.

use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::{Bar, Bench, Figure, agree, memory, runtime, speed};
use crate::checks::{self, CONFORMANCE, Suite};
use crate::project::{Failure, read_json, run};
use crate::python;

pub(super) const MODELS: [&str; 4] = ["one-add", "silero-vad", "resnet50", "minilm"];

/// Runs of each way to run a model, of which the first outputs are compared with all others.
const SAME_BITS_RUNS: usize = 20;
/// Mutated models of bar 9.
const N_MUTATED: u64 = 100_000;

pub(super) const BARS: &[Bar] = &[
    Bar { name: "1", what: "a fresh clone's .ci/run is green", is_long: true, measure: fresh_clone },
    Bar {
        name: "2",
        what: "values within 1e-4 of onnxruntime, optimiser off",
        is_long: false,
        measure: |bench| agree::agreement(bench, &MODELS),
    },
    Bar {
        name: "3",
        what: "official suite: what is built passes; no crash or timeout",
        is_long: false,
        measure: suite,
    },
    Bar { name: "4", what: "compiling and executing overlap", is_long: false, measure: runtime::pipeline },
    Bar {
        name: "5",
        what: "a replay allocates and hashes nothing",
        is_long: false,
        measure: |bench| runtime::replay(bench, &MODELS),
    },
    Bar { name: "6", what: "failures leave nothing behind", is_long: false, measure: runtime::failure },
    Bar {
        name: "7",
        what: "the same bits however a model is run",
        is_long: false,
        measure: |bench| {
            let mut figures = runtime::same_bits(bench, &MODELS, SAME_BITS_RUNS)?;
            figures.push(runtime::same_bits_of(bench, "60-nodes", SAME_BITS_RUNS)?);
            Ok(figures)
        },
    },
    Bar {
        name: "8",
        what: "memory at the first output, and its limit",
        is_long: false,
        measure: |bench| memory::bounded(bench),
    },
    Bar {
        name: "9",
        what: "mutated models do no harm",
        is_long: false,
        measure: |bench| runtime::hostile(bench, &[], N_MUTATED),
    },
    Bar {
        name: "10",
        what: "cold sooner than onnxruntime, warm at most 2 times it",
        is_long: false,
        measure: |bench| speed::against_onnxruntime(bench, &MODELS, 2.0),
    },
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
        what: format!("cases whose ops and types are built, but for {} of training", count(&scope["training"])),
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

fn count(value: &Value) -> usize {
    value.as_u64().map_or(0, |n| usize::try_from(n).unwrap_or(usize::MAX))
}
