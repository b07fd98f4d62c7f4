//! `compare` names the kernel that was spoiled, and the size of the fault: `--features planted-fault`.
#![cfg(feature = "planted-fault")]

mod support;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use support::common::{D, F32, I64, Model, Weight};
use support::{Folder, text};

/// Compares under a fault; a difference must be found.
fn found(fault: &str, model: &Path, more: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firstlight"));
    command.env("FIRSTLIGHT_FAULT", fault).stdin(Stdio::null());
    command.args(["compare", "--json", "--random"]).arg(model).args(more);
    let output = command.output().unwrap();
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(1), String::new()),
        "{fault}: {}",
        text(&output.stdout)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The first difference names this node, op and size.
fn is_at(report: &Value, node: &str, op: &str, size: f64) {
    let first = &report["first"];
    assert_eq!((first["node"].as_str(), first["op"].as_str()), (Some(node), Some(op)), "{report}");
    let found = first["difference"]["max_abs"].as_f64().unwrap();
    assert!((found - size).abs() < 1e-3 * size, "{found} is not {size}: {report}");
    assert_eq!((&first["difference"]["beyond"], &first["cause"]), (&1.into(), &"node".into()), "{report}");
    assert_ne!(first["source"], "", "{report}");
}

/// Three products with a softmax between, a graph of the kind that attention is.
fn products() -> Vec<u8> {
    let values: Vec<f32> = (0..64).map(|i| (i % 7) as f32 * 0.25 - 0.75).collect();
    Model::new("products")
        .input("x", F32, &[D::Sym("N"), D::N(8)])
        .weight(&Weight::f32("w0", &[8, 8], &values))
        .weight(&Weight::f32("w1", &[8, 8], &values))
        .node("MatMul", "first", &["x", "w0"], &["a"])
        .node("Softmax", "normalise", &["a"], &["b"])
        .node("MatMul", "second", &["b", "w1"], &["c"])
        .node("Sqrt", "root", &["b"], &["d"])
        .node("Add", "join", &["c", "d"], &["y"])
        .output("y", F32)
        .finish()
}

/// A convolution, a rectifier and a pool: what passes fuse.
fn convolutions() -> Vec<u8> {
    let weights = |n: usize| -> Vec<f32> { (0..n).map(|i| (i % 5) as f32 * 0.5 - 1.).collect() };
    Model::new("convolutions")
        .input("x", F32, &[D::N(1), D::N(2), D::N(8), D::N(8)])
        .weight(&Weight::f32("w0", &[4, 2, 1, 1], &weights(8)))
        .weight(&Weight::f32("w1", &[4, 4, 1, 1], &weights(16)))
        .node("Conv", "conv0", &["x", "w0"], &["a"])
        .node("Relu", "relu0", &["a"], &["b"])
        .node("Conv", "conv1", &["b", "w1"], &["c"])
        .node("GlobalAveragePool", "pool", &["c"], &["y"])
        .output("y", F32)
        .finish()
}

/// Look-ups and arithmetic on what they give.
fn look_ups() -> Vec<u8> {
    let table: Vec<f32> = (0..12).map(|i| i as f32 - 6.).collect();
    Model::new("look-ups")
        .input("ids", I64, &[D::Sym("N")])
        .weight(&Weight::f32("table", &[3, 4], &table))
        .node("Gather", "look", &["table", "ids"], &["a"])
        .node("Transpose", "turn", &["a"], &["b"])
        .node("Softmax", "normalise", &["b"], &["y"])
        .output("y", F32)
        .finish()
}

#[test]
fn the_spoiled_kernel_is_named_on_three_models() {
    let folder = Folder::new("planted");
    let model = folder.write("products.onnx", &products());
    let as_written = ["--dim", "N=3", "--no-passes"];
    is_at(&found("MatMul", &model, &as_written), "first", "MatMul", 0.25);
    is_at(&found("MatMul:2+3", &model, &as_written), "second", "MatMul", 3.);
    is_at(&found("Softmax+0.5", &model, &["--dim", "N=3"]), "normalise", "Softmax", 0.5);
    is_at(&found("Add+8", &model, &as_written), "join", "Add", 8.);

    let model = folder.write("convolutions.onnx", &convolutions());
    is_at(&found("Relu+2", &model, &["--no-passes"]), "relu0", "Relu", 2.);
    is_at(&found("Conv:2", &model, &["--no-passes"]), "conv1", "Conv", 0.25);
    is_at(&found("GlobalAveragePool", &model, &[]), "pool", "GlobalAveragePool", 0.25);

    let model = folder.write("look-ups.onnx", &look_ups());
    is_at(&found("Gather+4", &model, &["--dim", "N=5"]), "look", "Gather", 4.);
    is_at(&found("Transpose+16", &model, &["--dim", "N=5"]), "turn", "Transpose", 16.);
}

#[test]
fn all_differences_are_told_from_the_first_one_on_and_none_is_blamed_for_what_it_was_fed() {
    let folder = Folder::new("planted-all");
    let model = folder.write("products.onnx", &products());
    let report = found("MatMul", &model, &["--dim", "N=3", "--no-passes", "--all"]);
    let nodes: Vec<&str> = report["differing"].as_array().unwrap().iter().filter_map(|d| d["node"].as_str()).collect();
    assert_eq!(nodes, ["first", "second"]);
}

#[test]
fn a_fault_in_one_of_two_runs_shows_without_passes_and_against_saved_outputs() {
    let folder = Folder::new("planted-runs");
    let model = folder.write("products.onnx", &products());
    // The first launch is the fused graph's.
    let report = found("Softmax:1+2", &model, &["--dim", "N=3", "--against", "no-passes"]);
    assert_eq!(report["first"]["node"], "normalise");
    assert_eq!(report["first"]["difference"]["beyond"], 1);

    // Outputs that a sound build saved: the node is found behind them.
    let saved = folder.path("saved.npz");
    let mut sound = Command::new(env!("CARGO_BIN_EXE_firstlight"));
    sound.env_remove("FIRSTLIGHT_FAULT").arg("run").arg(&model).args(["--random", "--dim", "N=3", "--output"]);
    assert!(sound.arg(&saved).output().unwrap().status.success());
    let saved = saved.display().to_string();
    let report = found("Softmax+2", &model, &["--dim", "N=3", "--against", "saved", &saved]);
    let first = &report["first"];
    assert_eq!((&first["value"], &first["cause"]), (&"y".into(), &"earlier".into()), "{report}");
    assert_eq!(first["cause_detail"]["node"], "normalise", "{report}");
    assert!((first["cause_detail"]["difference"]["max_abs"].as_f64().unwrap() - 2.).abs() < 1e-3, "{report}");
}
