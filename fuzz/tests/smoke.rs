//! A thousand cases through the oracle, every op among them, and the oracle itself.

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Runs the program on an output folder of its own; gives its exit code, its summary and the folder.
fn fuzz(name: &str, arguments: &[&str]) -> (Option<i32>, Value, PathBuf) {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&out);
    let run = Command::new(env!("CARGO_BIN_EXE_firstlight-fuzz")).args(arguments).arg("--out").arg(&out).output();
    let run = run.unwrap();
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    let summary = serde_json::from_slice(&run.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    (run.status.code(), summary, out)
}

/// The limit of time is generous: this is a test of what happens, not of how fast.
fn do_no_harm(target: &str) {
    let arguments = ["--n", "1000", "--seed", "1", "--time-limit-ms", "20000", "--target", target];
    let (code, summary, _) = fuzz(target, &arguments);
    assert_eq!(code, Some(0), "{summary:#}");
    assert_eq!(summary["n"], 1000);
    let count = |what: &str| summary[what].as_u64().unwrap();
    assert_eq!(count("refused") + count("loaded"), 1000);
    assert!(count("loaded") > 200 && count("ran") > 200, "too few cases get far: {summary:#}");
    let n_never_ran = summary["ops_never_ran"].as_array().unwrap().len() as u64;
    assert!(count("n_ops_ran") > 4 * n_never_ran, "too few ops are reached: {summary:#}");
}

#[test]
fn mutated_models_do_no_harm_as_sessions() {
    do_no_harm("door");
}

#[test]
fn mutated_models_do_no_harm_by_references() {
    do_no_harm("references");
}

#[test]
fn whatever_is_bad_is_counted_and_saved_and_costs_one_case() {
    let plants = ["--plant=panic@3", "--plant=abort@5", "--plant=over_memory@8", "--plant=over_time@9"];
    let arguments = ["--n", "12", "--jobs", "1", "--time-limit-ms", "500", "--memory-limit", "64M"];
    let (code, summary, out) = fuzz("plants", &[&arguments[..], &plants[..]].concat());
    assert_eq!(code, Some(1));
    let bad = |i: usize, key: &str| summary["bad"][i][key].clone();
    let found: Vec<_> = (0..4).map(|i| (bad(i, "case").as_u64().unwrap(), bad(i, "what"))).collect();
    let expected = [(3, "panic"), (5, "abort"), (8, "over_memory"), (9, "over_time")];
    assert_eq!(found, expected.map(|(case, what)| (case, Value::from(what))), "{summary:#}");
    assert_eq!(summary["n"], 12, "{summary:#}");
    for what in ["panics", "aborts", "over_time", "over_memory"] {
        assert_eq!(summary[what], 1, "{summary:#}");
    }
    let saved = out.join("panic-1-3.onnx");
    let (code, again, _) = fuzz("again", &["--unchanged", "--models", saved.to_str().unwrap()]);
    assert_eq!((code, &again["n"]), (Some(0), &Value::from(1)), "the plant is not in the model: {again:#}");
    assert!(std::fs::read_to_string(out.join("abort-1-5.txt")).unwrap().contains("signal"));
}
