//! `firstlight compare` from outside: equal and different, each thing to compare with, exit codes.

mod support;

use firstlight::{Tensor, files};
use serde_json::Value;
use std::ffi::OsStr;
use support::common::{self, BOOL, D, F32, Model, Weight, graph_attribute};
use support::{Folder, fails, firstlight, text};

type Arg<'a> = &'a dyn AsRef<OsStr>;

/// Runs a comparison that must end with that code; its JSON.
fn compared(code: i32, args: &[Arg<'_>]) -> Value {
    let mut all: Vec<Arg<'_>> = vec![&"compare", &"--json"];
    all.extend(args);
    let output = firstlight(&all);
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// `y = relu(x + w)` under a condition that is an input, with a chain of three that passes fuse.
fn branches() -> Vec<u8> {
    let branch = |op: &str, name: &str| {
        let half = Weight::f32("half", &[1], &[0.5]);
        Model::new(name)
            .weight(&half)
            .node(op, "inner", &["x", "half"], &["a"])
            .node("Relu", "inner_relu", &["a"], &["b"])
            .output("b", F32)
            .into_graph()
    };
    Model::new("branches")
        .input("x", F32, &[D::Sym("N"), D::N(4)])
        .input("c", BOOL, &[])
        .node_with("If", "choice", &["c"], &["chosen"], |w| {
            graph_attribute(w, "then_branch", &branch("Add", "then"));
            graph_attribute(w, "else_branch", &branch("Mul", "else"));
        })
        .node("Add", "twice", &["chosen", "chosen"], &["y"])
        .output("y", F32)
        .finish()
}

#[test]
fn a_sound_build_is_equal_to_its_references_and_to_itself_without_passes() {
    let folder = Folder::new("compare-equal");
    for (name, bytes, n) in
        [("a.onnx", common::add_relu(), 1), ("b.onnx", common::adds(40), 1), ("c.onnx", branches(), 1)]
    {
        let model = folder.write(name, &bytes);
        for against in ["reference", "no-passes"] {
            let report = compared(0, &[&model, &"--random", &"--dim", &"N=3", &"--against", &against]);
            assert_eq!((&report["equal"], &report["first"]), (&Value::Bool(true), &Value::Null), "{name} {report}");
            assert!(report["compared"].as_u64().unwrap() >= n, "{name} {report}");
        }
    }
    let model = folder.path("c.onnx");
    let report = compared(0, &[&model, &"--random", &"--no-passes"]);
    assert_eq!(report["compared"], 3, "both nodes of the branch taken, and the one after it: {report}");
    let output = firstlight(&[&"compare", &model, &"--random"]);
    assert!(text(&output.stdout).starts_with("equal: "), "{}", text(&output.stdout));
}

#[test]
fn saved_values_that_differ_are_named_with_node_size_and_place() {
    let folder = Folder::new("compare-saved");
    let model = folder.write("m.onnx", &common::add_relu());
    let x = Tensor::from_slice([2, 4], &[0f32, 1., 2., 3., 4., 5., 6., 7.]).unwrap();
    files::write_npy(folder.path("x.npy"), &x).unwrap();
    let input = format!("x={}", folder.path("x.npy").display());
    let saved = folder.path("saved.npz");
    let ran = firstlight(&[&"run", &model, &"-i", &input, &"--keep", &"sum", &"--output", &saved]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let report = compared(0, &[&model, &"-i", &input, &"--against", &"saved", &saved]);
    assert_eq!(report["compared"], 2);

    // Other values of `sum` alone: no kernel is at fault.
    let mut values = files::read_npz(&saved).unwrap();
    let sum = values.iter_mut().find(|(name, _)| name == "sum").unwrap();
    let mut wrong = sum.1.values::<f32>().unwrap().to_vec();
    wrong[6] += 0.5;
    sum.1 = Tensor::from_slice([2, 4], &wrong).unwrap();
    files::write_npz(&saved, values.iter().map(|(name, tensor)| (name.as_str(), tensor))).unwrap();
    let report = compared(1, &[&model, &"-i", &input, &"--against", &"saved", &saved]);
    let first = &report["first"];
    assert_eq!((&first["node"], &first["value"], &first["op"]), (&"add".into(), &"sum".into(), &"Add".into()));
    assert_eq!(first["difference"]["max_abs"], 0.5);
    assert_eq!(first["difference"]["index"], serde_json::json!([1, 2]));
    assert_eq!((&first["difference"]["value"], &first["difference"]["expected"]), (&9f64.into(), &9.5f64.into()));
    assert_eq!((&first["difference"]["beyond"], &first["cause"]), (&1.into(), &"fed".into()));
    let lines = firstlight(&[&"compare", &model, &"-i", &input, &"--against", &"saved", &saved]);
    assert_eq!(lines.status.code(), Some(1));
    for part in ["first at node add\n", "by 0.500000", "at [1, 2]: 9 instead of 9.5", "1 of 8 elements"] {
        assert!(text(&lines.stdout).contains(part), "{part} is not in: {}", text(&lines.stdout));
    }
    compared(0, &[&model, &"-i", &input, &"--against", &"saved", &saved, &"--atol", &"0.6"]);
    compared(1, &[&model, &"-i", &input, &"--against", &"saved", &saved, &"--rtol", &"1e-3"]);
}

#[test]
fn a_folder_of_test_data_brings_inputs_and_outputs_and_strange_names_are_told() {
    let folder = Folder::new("compare-folder");
    let model = folder.write("m.onnx", &common::add_relu());
    let data = folder.path("test_data_set_0");
    std::fs::create_dir_all(&data).unwrap();
    files::write_pb(data.join("input_0.pb"), "", &Tensor::from_slice([1, 4], &[1f32, 2., 3., 4.]).unwrap()).unwrap();
    files::write_pb(data.join("output_0.pb"), "", &Tensor::from_slice([1, 4], &[2f32, 0., 6., 0.]).unwrap()).unwrap();
    assert_eq!(compared(0, &[&model, &"--against", &"saved", &data])["compared"], 1);
    files::write_npy(data.join("nobody.npy"), &Tensor::scalar(1f32)).unwrap();
    let report = compared(0, &[&model, &"--against", &"saved", &data]);
    assert_eq!(report["not_compared"][0]["name"], "nobody");
    files::write_pb(data.join("output_0.pb"), "y", &Tensor::from_slice([4], &[2f32, 0., 6., 0.]).unwrap()).unwrap();
    let report = compared(1, &[&model, &"--against", &"saved", &data]);
    assert_eq!(report["first"]["difference"]["got"], "f32[1,4]");
    std::fs::remove_file(data.join("output_0.pb")).unwrap();
    let message = fails(1, &[&"compare", &model, &"--against", &"saved", &data]);
    assert!(message.contains("none of the saved values") && message.contains("nobody"), "{message}");
    files::write_pb(data.join("input_7.pb"), "", &Tensor::scalar(1f32)).unwrap();
    let message = fails(1, &[&"compare", &model, &"--against", &"saved", &data]);
    assert!(message.contains("input_7.pb: the model has only 1"), "{message}");
}

#[test]
fn values_that_do_not_fit_at_once_are_compared_in_parts() {
    let folder = Folder::new("compare-parts");
    let model = folder.write("m.onnx", &common::adds(40));
    // 16 KiB a value: 40 of them take more than the limit.
    let size = ["--dim", "N=256", "--memory-limit", "300K"];
    for against in ["reference", "no-passes"] {
        let args: Vec<Arg<'_>> =
            vec![&model, &"--random", &size[0], &size[1], &size[2], &size[3], &"--against", &against];
        assert_eq!(compared(0, &args)["equal"], true, "{against}");
    }
    let message = fails(1, &[&"compare", &model, &"--random", &"--dim", &"N=256", &"--memory-limit", &"10K"]);
    assert!(message.contains("memory limit of 10240 bytes"), "{message}");
}

#[test]
fn bad_use_is_exit_code_2() {
    let folder = Folder::new("compare-use");
    let model = folder.write("m.onnx", &common::add_relu());
    let message = fails(2, &[&"compare", &model, &"--random", &"--against", &"ort"]);
    assert!(message.contains("none of: reference, no-passes, saved FILE..."), "{message}");
    fails(2, &[&"compare", &model, &"--random", &"--against", &"saved"]);
    fails(2, &[&"compare", &model, &"--random", &"--against", &"no-passes", &"--no-passes"]);
    fails(2, &[&"compare", &model, &"--random", &"--atol", &"-1"]);
    fails(2, &[&"compare"]);
    assert!(fails(1, &[&"compare", &model]).contains("input \"x\": it is not given"));
    let gone = folder.path("gone.npz");
    assert!(fails(1, &[&"compare", &model, &"--random", &"--against", &"saved", &gone]).contains("gone.npz"));
    let prose = folder.write("prose.txt", b"text");
    assert!(fails(1, &[&"compare", &model, &"--random", &"--against", &"saved", &prose]).contains("neither a folder"));
}
