//! `firstlight check`.

use crate::support::common::{self, D, F32, Model, Weight};
use crate::support::{Folder, fails, firstlight, text};
use crate::{has_in_order, json, says};
use serde_json::{Value, json};

#[test]
fn everything_in_the_way_is_told_at_once() {
    let folder = Folder::new("check");
    let bytes = Model::new("bad")
        .input("x", F32, &[D::N(4)])
        .weight(&Weight::external("w", &[4], "gone.bin", 16))
        .weight(&Weight::external("v", &[4], "gone.bin", 16))
        .weight(&Weight::external("u", &[4], "../out.bin", 16))
        .node("NoSuchOp", "first", &["x"], &["a"])
        .node("Add", "second", &["x", "w"], &["b"])
        .node("Add", "third", &["b", "v"], &["c"])
        .node("Add", "fourth", &["c", "u"], &["d"])
        .node("Add", "fifth", &["d", "nowhere"], &["e"])
        .node("OtherOp", "sixth", &["e"], &["y"])
        .output("y", F32)
        .finish();
    let model = folder.write("bad.onnx", &bytes);
    let output = firstlight(&[&"check", &model]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "");
    has_in_order(
        &text(&output.stdout),
        &[
            "bad.onnx: does not run here\n",
            "UNSUPPORTED OPS  2 ops\n",
            "ai.onnx.NoSuchOp  opset 17  1 node  first\n",
            "ai.onnx.OtherOp   opset 17  1 node  sixth\n",
            "PROBLEMS\n",
            "tensor `w`: external data in \"gone.bin\": there is no such file",
            "tensor `u`: external data in \"../out.bin\"",
            "node `fifth` (Add) reads value `nowhere`, which nothing gives",
        ],
    );
    let (told, code) = json(&[&"check", &model, &"--json"]);
    assert_eq!((code, &told["runs"]), (Some(1), &false.into()));
    assert_eq!(told["unsupported_ops"][0]["nodes"], json!(["first"]));
    assert_eq!(told["problems"][0]["tensors"], json!(["w", "v"]));
    assert_eq!(told["problems"].as_array().map(Vec::len), Some(3));
    assert!(told["plan"].is_null());
}

#[test]
fn a_sound_model_runs_and_is_told_with_its_kernels_and_memory() {
    let folder = Folder::new("check-good");
    let model = folder.write("m.onnx", &common::add_relu());
    has_in_order(
        &says(&[&"check", &model]),
        &["m.onnx: runs here\n", "FOR  x f32[1,4]\n", "N=1", "1 by kernels, 0 by the slow reference", "16 B mapped"],
    );
    let sized = says(&[&"check", &model, &"--dim", &"N=3", &"--random"]);
    has_in_order(&sized, &["runs here; it was run once", "x f32[3,4]"]);
    assert!(!sized.contains("made up"), "{sized}");
    let (told, code) = json(&[&"check", &model, &"--dim", &"N=1000", &"--json"]);
    assert_eq!((code, &told["runs"]), (Some(0), &true.into()));
    assert_eq!(told["plan"]["inputs"][0]["shape"], json!([1000, 4]));
    assert!(told["plan"]["arena_bytes"].as_u64().unwrap() >= 2 * 16_000);
    assert_eq!(told["plan"]["reference"].as_array().map(Vec::len), Some(0));
    fails(2, &[&"check", &model, &"--dim", &"M=3"]);
    fails(2, &[&"check", &model, &"--input", &"nothing"]);
    assert!(fails(1, &[&"check", &folder.path("gone.onnx")]).contains("there is no such file"));
}

#[test]
fn nodes_that_no_kernel_takes_are_named() {
    let folder = Folder::new("check-slow");
    let half = |w: &mut firstlight::core::wire::Writer| {
        w.message(5, |a| _ = a.text(1, "to").i64(20, 2).i64(3, 10));
    };
    let bytes = Model::new("slow")
        .input("x", F32, &[D::N(1), D::N(1), D::N(4)])
        .input("k", F32, &[D::N(1), D::N(1), D::N(2)])
        .node_with("Cast", "narrow_x", &["x"], &["hx"], half)
        .node_with("Cast", "narrow_k", &["k"], &["hk"], half)
        .node("Conv", "slow_one", &["hx", "hk"], &["y"])
        .output("y", 10)
        .finish();
    let model = folder.write("slow.onnx", &bytes);
    // Whether there is a kernel for this one is the table's to say.
    let (conv, _) = json(&[&"ops", &"Conv", &"--json"]);
    let takes = |kernel: &Value| kernel["types"].as_array().unwrap().contains(&"f16".into());
    let is_slow = !conv["kernels"].as_array().unwrap().iter().any(takes);
    let (told, _) = json(&[&"check", &model, &"--json"]);
    let (page, n) = (says(&[&"check", &model]), usize::from(is_slow));
    has_in_order(&page, &["runs here", &format!("{n} by the slow reference")]);
    assert_eq!(page.contains("Conv(f16, f16)  1 node  slow_one"), is_slow, "{page}");
    let want = if is_slow { json!([{"op": "Conv(f16, f16)", "nodes": ["slow_one"]}]) } else { json!([]) };
    assert_eq!(told["plan"]["reference"], want);
}

#[test]
fn sizes_that_are_not_named_are_tried_until_some_fit() {
    let folder = Folder::new("check-sizes");
    let bytes = Model::new("taps")
        .input("x", F32, &[D::N(1), D::N(1), D::Sym("length")])
        .weight(&Weight::f32("k", &[1, 1, 20], &[1.; 20]))
        .node("Conv", "conv", &["x", "k"], &["y"])
        .output("y", F32)
        .finish();
    let model = folder.write("taps.onnx", &bytes);
    has_in_order(&says(&[&"check", &model]), &["runs here", "x f32[1,1,64]", "length=64"]);
    let output = firstlight(&[&"check", &model, &"--dim", &"length=3"]);
    assert_eq!(output.status.code(), Some(1));
    has_in_order(&text(&output.stdout), &["does not run here", "PROBLEM", "conv", "20 taps", "--dim NAME=N"]);
}

#[test]
fn a_memory_limit_counts() {
    let folder = Folder::new("check-limit");
    let model = folder.write("m.onnx", &common::adds(30));
    let args: [&dyn AsRef<std::ffi::OsStr>; 7] =
        [&"check", &model, &"--random", &"--dim", &"N=4096", &"--memory-limit", &"100K"];
    let output = firstlight(&args);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("memory limit of 102400 bytes"), "{}", text(&output.stdout));
}
