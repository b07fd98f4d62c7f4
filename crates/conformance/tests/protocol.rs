//! The protocol of `suite/run_suite.py`, from outside.

#[path = "../../firstlight/tests/common/mod.rs"]
mod common;

use common::{D, F32, Model, Weight};
use firstlight_tensor::{Tensor, pb};
use std::path::{Path, PathBuf};
use std::process::Command;

fn write_case(root: &Path, name: &str, model: &[u8], sets: &[&[(&str, &Tensor)]]) -> PathBuf {
    let case = root.join(name);
    std::fs::create_dir_all(&case).unwrap();
    std::fs::write(case.join("model.onnx"), model).unwrap();
    for (n, inputs) in sets.iter().enumerate() {
        let set = case.join(format!("test_data_set_{n}"));
        std::fs::create_dir_all(&set).unwrap();
        for (i, (name, tensor)) in inputs.iter().enumerate() {
            std::fs::write(set.join(format!("input_{i}.pb")), pb::write_tensor(name, tensor).unwrap()).unwrap();
        }
    }
    case
}

#[test]
fn each_case_gets_its_line_and_its_outputs() {
    let root = std::env::temp_dir().join(format!("firstlight-protocol-{}", std::process::id()));
    let floats = |dims: &[usize], value: f32| Tensor::from_slice(dims, &vec![value; dims.iter().product()]).unwrap();
    let difference = Model::new("g")
        .input("a", F32, &[D::Any])
        .input("w", F32, &[D::N(1)])
        .input("b", F32, &[D::Any])
        .weight(&Weight::f32("w", &[1], &[100.]))
        .node("Add", "one", &["a", "w"], &["t"])
        .node("Gather", "two", &["t", "i"], &["u"])
        .node("Add", "three", &["u", "b"], &["y"])
        .weight(&Weight::i64("i", &[1], &[0]))
        .output("t", F32)
        .output("y", F32)
        .finish();
    let (one, two) = (floats(&[2], 1.0), floats(&[1], 2.0));
    // By position the initializer that is also an input is passed over; by name the order does not matter.
    let good = write_case(&root, "good", &difference, &[&[("", &one), ("", &two)], &[("b", &two), ("a", &one)]]);
    let odd_op = Model::new("g").input("x", F32, &[]).node("NoSuchOp", "n", &["x"], &["y"]).output("y", F32).finish();
    let unsupported = write_case(&root, "unsupported", &odd_op, &[&[("x", &one)]]);
    let bad = write_case(&root, "bad", &difference, &[&[("", &one)]]);
    let mut plan = String::new();
    for case in [&good, &unsupported, &bad] {
        let out = root.join("out").join(case.file_name().unwrap());
        std::fs::create_dir_all(&out).unwrap();
        let id = case.file_name().unwrap().to_string_lossy();
        plan += &format!("kind/{id}\t{}\t{}\n", case.display(), out.display());
    }
    let plan_file = root.join("plan.tsv");
    std::fs::write(&plan_file, plan).unwrap();
    for device in ["cpu", "sim", "sim-deferred"] {
        let output = Command::new(env!("CARGO_BIN_EXE_firstlight-conformance"))
            .args(["--device", device, "--threads", "2"])
            .arg(&plan_file)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[..4], ["begin\tkind/good", "ok\tkind/good", "begin\tkind/unsupported", lines[3]], "{said}");
        assert!(lines[3].starts_with("unsupported\tkind/unsupported\t") && lines[3].contains("NoSuchOp"), "{said}");
        assert!(lines[5].starts_with("error\tkind/bad\t") && lines[5].contains("\"b\""), "{said}");
        for set in ["test_data_set_0", "test_data_set_1"] {
            let read = |i: usize| {
                let path = root.join("out/good").join(set).join(format!("output_{i}.pb"));
                pb::read_tensor(&std::fs::read(path).unwrap()).unwrap()
            };
            assert_eq!(read(0), ("t".to_owned(), floats(&[2], 101.0)));
            assert_eq!(read(1), ("y".to_owned(), floats(&[1], 103.0)));
        }
        std::fs::remove_dir_all(root.join("out/good/test_data_set_0")).unwrap();
    }
    let wrong = Command::new(env!("CARGO_BIN_EXE_firstlight-conformance")).arg("--what").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn every_imported_op_is_listed() {
    let run = Command::new(env!("CARGO_BIN_EXE_firstlight-conformance")).arg("--ops").output().unwrap();
    let listed = String::from_utf8(run.stdout).unwrap();
    assert!(listed.lines().any(|op| op == "Conv") && listed.lines().any(|op| op == "If"), "{listed}");
    assert_eq!(listed.lines().count(), firstlight_onnx::imported_ops().count());
}
