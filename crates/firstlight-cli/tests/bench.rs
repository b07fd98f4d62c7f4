//! `firstlight bench` from outside: figures, counts, errors. No time is asserted.

mod support;

use serde_json::Value;
use support::common::{self, D, F32, Model, Weight};
use support::{Folder, fails, firstlight, text};

fn figures(args: &[&dyn AsRef<std::ffi::OsStr>]) -> Value {
    let mut all: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"bench", &"--json", &"--random"];
    all.extend(args);
    let output = firstlight(&all);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Figures of some times hang together.
fn is_sound(stats: &Value, runs: u64) {
    let of = |key: &str| stats[key].as_f64().unwrap();
    assert_eq!(stats["runs"], runs, "{stats}");
    assert!(of("min_ms") > 0. && of("min_ms") <= of("median_ms"), "{stats}");
    assert!(of("median_ms") <= of("p90_ms") && of("p90_ms") <= of("p99_ms") && of("p99_ms") <= of("max_ms"), "{stats}");
    assert!(of("mean_ms") <= of("max_ms") && (of("per_second") * of("mean_ms") - 1000.).abs() < 1e-3, "{stats}");
}

#[test]
fn cold_and_warm_are_told_apart() {
    let folder = Folder::new("bench");
    let model = folder.write("m.onnx", &common::adds(30));
    let report = figures(&[&model, &"--cold", &"2", &"--warm", &"20", &"--threads", &"2", &"--dim", &"N=3"]);
    is_sound(&report["warm"], 20);
    is_sound(&report["cold"]["total"], 2);
    is_sound(&report["cold"]["first"], 2);
    assert!(report["cold"]["total"]["min_ms"].as_f64() > report["cold"]["first"]["min_ms"].as_f64(), "{report}");
    assert_eq!((&report["threads"], &report["profile"]), (&2.into(), &Value::Null));
    assert!(report["memory"]["owned_peak_bytes"].as_u64().unwrap() > 0);
    let report = figures(&[&model, &"--cold", &"0", &"--secs", &"0.01"]);
    assert_eq!(report["cold"], Value::Null);
    assert!(report["warm"]["runs"].as_u64().unwrap() > 0);
    let report = figures(&[&model, &"--cold", &"1", &"--warm", &"0"]);
    assert_eq!(report["warm"], Value::Null);
}

#[test]
fn a_profile_counts_steps_operations_and_bytes() {
    let folder = Folder::new("bench-profile");
    let values: Vec<f32> = (0..64 * 64).map(|i| (i % 3) as f32).collect();
    let bytes = Model::new("g")
        .input("x", F32, &[D::N(8), D::N(64)])
        .weight(&Weight::f32("w", &[64, 64], &values))
        .node("MatMul", "one", &["x", "w"], &["a"])
        .node("Softmax", "soft", &["a"], &["b"])
        .node("MatMul", "two", &["b", "w"], &["y"])
        .output("y", F32);
    let model = folder.write("m.onnx", &bytes.finish());
    let report = figures(&[&model, &"--cold", &"0", &"--warm", &"5", &"--profile", &"--top", &"2", &"--threads", &"1"]);
    let profile = &report["profile"];
    let ops = profile["ops"].as_array().unwrap();
    let products = ops.iter().find(|op| op["name"] == "MatMul").unwrap();
    assert_eq!((&products["steps"], products["operations"].as_f64()), (&2.into(), Some((2 * 2 * 8 * 64 * 64) as f64)));
    assert_eq!(products["bytes"].as_f64(), Some((2 * 4 * (8 * 64 + 64 * 64 + 8 * 64)) as f64), "{products}");
    assert_eq!(profile["nodes"].as_array().unwrap().len(), 2);
    assert!(profile["kernels"].as_array().unwrap().iter().all(|kernel| kernel["source"] != ""), "{profile}");
    assert!(profile["peak_gflops"].as_f64().unwrap() > 0. && profile["untimed_run_ms"].as_f64().unwrap() > 0.);
    let shares: f64 = ops.iter().map(|op| op["share"].as_f64().unwrap()).sum();
    assert!(shares > 0. && shares <= 1.000001, "{shares}");

    let output = firstlight(&[&"bench", &model, &"--random", &"--cold", &"1", &"--warm", &"5", &"--profile"]);
    let lines = text(&output.stdout);
    for part in
        ["cold: process start to first answer", "warm", "throughput", "by op", "by kernel", "by node", "slows a run by"]
    {
        assert!(lines.contains(part), "{part} is not in: {lines}");
    }
}

#[test]
fn errors_are_those_of_the_run_also_in_fresh_processes() {
    let folder = Folder::new("bench-errors");
    let model = folder.write("m.onnx", &common::adds(30));
    assert!(fails(1, &[&"bench", &model]).contains("it is not given"));
    let limit = fails(1, &[&"bench", &model, &"--random", &"--dim", &"N=4096", &"--memory-limit", &"100K"]);
    assert!(limit.contains("memory limit of 102400 bytes"), "{limit}");
    assert!(fails(1, &[&"bench", &folder.path("none.onnx"), &"--random"]).contains("no such file"));
    fails(2, &[&"bench", &model, &"--random", &"--secs", &"-1"]);
    fails(2, &[&"bench", &model, &"--random", &"--secs", &"1", &"--warm", &"1"]);
    fails(2, &[&"bench", &model, &"--random", &"--top", &"3"]);
}
