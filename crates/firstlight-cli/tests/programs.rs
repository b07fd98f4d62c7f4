//! The program from outside: good runs, bad input, exit codes.

mod support;

use firstlight::{Tensor, files};
use std::path::Path;
use std::process::{Command, Stdio};
use support::common::{self, D, F32, I64, Model, Weight};
use support::{Folder, fails, firstlight, text};

/// Runs a model file that must be refused; no output file may appear.
fn refused(folder: &Folder, model: &Path) -> String {
    let before = folder.names();
    let to = folder.path("out.npz");
    let message = fails(1, &[&"run", &model, &"--random", &"--output", &to]);
    assert_eq!(folder.names(), before, "{message}");
    assert_eq!(message.matches("error:").count(), 1, "{message}");
    message
}

#[test]
fn a_model_runs_and_its_outputs_come_as_npz_as_a_folder_and_as_lines() {
    let folder = Folder::new("run");
    let model = folder.write("m.onnx", &common::add_relu());
    let x = Tensor::from_slice([2, 4], &[0f32, 0., 0., 0., 1., 2., 3., 4.]).unwrap();
    files::write_npy(folder.path("x.npy"), &x).unwrap();
    files::write_npz(folder.path("all.npz"), [("x", &x)]).unwrap();
    files::write_pb(folder.path("x.pb"), "", &x).unwrap();
    let want = Tensor::from_slice([2, 4], &[1f32, 0., 3., 0., 2., 0., 6., 0.]).unwrap();
    for input in ["x=x.npy", "x=x.pb", "x=all.npz", "all.npz"] {
        let input = match input.split_once('=') {
            Some((name, file)) => format!("{name}={}", folder.path(file).display()),
            None => folder.path(input).display().to_string(),
        };
        let to = folder.path("out.npz");
        let output = firstlight(&[&"run", &model, &"--input", &input, &"--output", &to, &"--keep", &"sum"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let lines = text(&output.stdout);
        assert!(lines.starts_with("y f32[2,4] min 0.000000 mean 1.500000 max 6.000000\nsum f32[2,4] "), "{lines}");
        let arrays = files::read_npz(&to).unwrap();
        let names: Vec<&str> = arrays.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names, &arrays[0].1), (vec!["y", "sum"], &want));
    }
    let to = folder.path("outputs");
    let output = firstlight(&[&"run", &model, &"--random", &"--dim", &"N=3", &"--output", &to]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(&files::read_npy(to.join("y.npy")).unwrap().shape()[..], [3, 4]);
}

#[test]
fn a_seed_decides_what_is_made_up_and_threads_do_not_change_it() {
    let folder = Folder::new("seed");
    let model = folder.write("m.onnx", &common::add_relu());
    let out = |seed: &str, more: &[&str]| {
        let to = folder.path("out.npz");
        let mut args: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"run", &model, &"--random", &"--seed", &seed];
        args.extend(more.iter().map(|arg| arg as &dyn AsRef<std::ffi::OsStr>));
        args.extend([&"--output" as &dyn AsRef<std::ffi::OsStr>, &to]);
        let output = firstlight(&args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        files::read_npz(&to).unwrap().remove(0).1
    };
    let first = out("1", &[]);
    assert_ne!(first, out("2", &[]));
    for more in [
        &["--threads", "1"][..],
        &["--threads", "2", "--pipeline", "on"],
        &["--pipeline", "inline", "--no-passes"],
        &["--no-map", "--repeat", "3"],
        &["--memory-limit", "256M"],
    ] {
        assert_eq!(first, out("1", more), "{more:?}");
    }
}

#[test]
fn json_is_one_object() {
    let folder = Folder::new("json");
    let model = folder.write("m.onnx", &common::add_relu());
    let output = firstlight(&[&"run", &model, &"--random", &"--json", &"--repeat", &"3"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["outputs"][0]["name"], "y");
    assert_eq!(object["outputs"][0]["shape"], serde_json::json!([1, 4]));
    assert_eq!(object["later_ms"].as_array().map(Vec::len), Some(2));
    assert!(object["owned_peak_bytes"].as_u64().unwrap() > 0);
    assert!(object["load_ms"].is_number() && object["first_ms"].is_number());
}

#[test]
fn a_trace_shows_each_node_on_both_tracks_with_an_arrow() {
    let folder = Folder::new("trace");
    let model = folder.write("m.onnx", &common::adds(40));
    let to = folder.path("trace.json");
    for pipeline in ["inline", "on"] {
        let args: [&dyn AsRef<std::ffi::OsStr>; 8] =
            [&"trace", &model, &"--random", &"--out", &to, &"--no-passes", &"--pipeline", &pipeline];
        let output = firstlight(&args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let trace: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(&to).unwrap()).unwrap();
        let count = |key: &str, value: &str| trace.iter().filter(|event| event[key] == value).count();
        assert_eq!((count("cat", "Compile"), count("cat", "Node")), (40, 40));
        assert_eq!((count("ph", "s"), count("ph", "f")), (40, 40));
        let at = |cat: &str, i: usize, edge: &str| {
            let name = format!("add{i}_{}", if cat == "Node" { "kernel_time" } else { "compile_time" });
            let event = trace.iter().find(|event| event["cat"] == cat && event["name"] == *name).unwrap();
            let start = event["ts"].as_f64().unwrap();
            if edge == "start" { start } else { start + event["dur"].as_f64().unwrap() }
        };
        for i in 0..40 {
            assert!(
                at("Compile", i, "end") <= at("Node", i, "start") + 0.002,
                "{pipeline}: add{i} ran before its compile"
            );
        }
        if pipeline == "inline" {
            assert!(at("Node", 0, "start") < at("Compile", 39, "start"), "nothing ran before all was compiled");
        }
    }
}

#[test]
fn a_file_that_is_no_model_is_refused() {
    let folder = Folder::new("no-model");
    let missing = refused(&folder, &folder.path("none.onnx"));
    assert!(missing.contains("none.onnx: there is no such file"), "{missing}");
    let directory = refused(&folder, &folder.0.clone());
    assert!(directory.contains("directory"), "{directory}");
    let prose = folder.write("prose.onnx", b"This is not a model, it is a sentence.\n");
    let message = refused(&folder, &prose);
    assert!(message.contains("model"), "{message}");
    let empty = folder.write("empty.onnx", b"");
    let message = refused(&folder, &empty);
    assert!(message.contains(&format!("error: {}: ", empty.display())) && message.contains("no graph"), "{message}");
    let whole = common::add_relu();
    for end in (0..whole.len()).step_by(7) {
        let cut = folder.write("cut.onnx", &whole[..end]);
        refused(&folder, &cut);
    }
}

#[test]
fn unknown_ops_are_all_named_at_once() {
    let folder = Folder::new("ops");
    let bytes = Model::new("g")
        .input("x", F32, &[D::N(4)])
        .node("NoSuchOp", "first", &["x"], &["a"])
        .node("Relu", "fine", &["a"], &["b"])
        .node("OtherOp", "second", &["b"], &["c"])
        .node("NoSuchOp", "third", &["c"], &["y"])
        .output("y", F32)
        .finish();
    let message = refused(&folder, &folder.write("m.onnx", &bytes));
    for part in ["NoSuchOp", "OtherOp", "first", "second", "third", "opset 17", "2 nodes"] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

#[test]
fn graphs_that_contradict_themselves_are_refused() {
    let folder = Folder::new("contradictions");
    let cyclic = Model::new("g")
        .input("x", F32, &[D::N(4)])
        .node("Add", "one", &["x", "b"], &["a"])
        .node("Add", "two", &["x", "a"], &["b"])
        .output("b", F32)
        .finish();
    let message = refused(&folder, &folder.write("cyclic.onnx", &cyclic));
    assert!(message.contains("cycle") && message.contains("one") && message.contains("two"), "{message}");
    let twice = Model::new("g")
        .input("x", F32, &[D::N(4)])
        .node("Relu", "one", &["x"], &["y"])
        .node("Add", "two", &["x", "x"], &["y"])
        .output("y", F32)
        .finish();
    let message = refused(&folder, &folder.write("twice.onnx", &twice));
    assert!(
        message.contains("`y` is written twice") && message.contains("one") && message.contains("two"),
        "{message}"
    );
    let dangling = Model::new("g").node("Relu", "one", &["nowhere"], &["y"]).output("y", F32).finish();
    let message = refused(&folder, &folder.write("dangling.onnx", &dangling));
    assert!(message.contains("nowhere") && message.contains("one"), "{message}");
    let shapes = Model::new("g")
        .input("x", F32, &[D::N(4)])
        .weight(&Weight::f32("w", &[3], &[1., 2., 3.]))
        .node("Add", "misfit", &["x", "w"], &["y"])
        .output("y", F32)
        .finish();
    let message = refused(&folder, &folder.write("shapes.onnx", &shapes));
    for part in ["misfit", "Add", "[4]", "[3]"] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
    let types = Model::new("g")
        .input("x", F32, &[D::N(4)])
        .weight(&Weight::i64("w", &[4], &[1, 2, 3, 4]))
        .node("Add", "misfit", &["x", "w"], &["y"])
        .output("y", F32)
        .finish();
    let message = refused(&folder, &folder.write("types.onnx", &types));
    assert!(message.contains("misfit") && message.contains("f32") && message.contains("i64"), "{message}");
}

#[test]
fn external_data_must_be_there_whole_and_inside_the_folder() {
    let folder = Folder::new("external");
    let inside = folder.path("inside");
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::write(inside.join("short.bin"), [0; 8]).unwrap();
    std::fs::write(inside.join("good.bin"), [0; 16]).unwrap();
    std::fs::write(folder.path("outside.bin"), [0; 16]).unwrap();
    let model = |file: &str| {
        let bytes = Model::new("g")
            .input("x", F32, &[D::N(4)])
            .weight(&Weight::external("w", &[4], file, 16))
            .node("Add", "add", &["x", "w"], &["y"])
            .output("y", F32)
            .finish();
        let path = inside.join("m.onnx");
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let message = refused(&folder, &model("none.bin"));
    assert!(message.contains("`w`") && message.contains("none.bin") && message.contains("no such file"), "{message}");
    assert!(refused(&folder, &model("short.bin")).contains("too short"));
    assert!(refused(&folder, &model("../outside.bin")).contains("leaves the model's folder"));
    assert!(refused(&folder, &model("/etc/hostname")).contains("absolute"));
    let good = firstlight(&[&"run", &model("good.bin"), &"--random"]);
    assert!(good.status.success(), "{}", text(&good.stderr));
}

#[test]
fn inputs_must_be_what_the_model_declares() {
    let folder = Folder::new("inputs");
    let bytes = Model::new("g")
        .input("x", F32, &[D::Sym("N"), D::N(4)])
        .input("z", F32, &[D::Sym("N"), D::Any])
        .node("Add", "add", &["x", "z"], &["y"])
        .output("y", F32)
        .finish();
    let model = folder.write("m.onnx", &bytes);
    let give = |name: &str, tensor: &Tensor| {
        files::write_npy(folder.path(&format!("{name}.npy")), tensor).unwrap();
        format!("{name}={}", folder.path(&format!("{name}.npy")).display())
    };
    let floats = |dims: [usize; 2]| Tensor::zeros(firstlight::DType::F32, dims).unwrap();
    let x = give("x", &floats([2, 4]));
    let z = give("z", &floats([2, 4]));
    let ok = firstlight(&[&"run", &model, &"-i", &x, &"-i", &z]);
    assert!(ok.status.success(), "{}", text(&ok.stderr));

    let missing = fails(1, &[&"run", &model, &"-i", &x]);
    assert!(missing.contains("input \"z\": it is not given"), "{missing}");
    assert!(missing.contains("--input z=FILE") && missing.contains("--random"), "{missing}");
    let unknown = fails(1, &[&"run", &model, &"-i", &x, &"-i", &z, &"-i", &give("q", &floats([1, 1]))]);
    assert!(unknown.contains("no such input") && unknown.contains("\"x\", \"z\""), "{unknown}");
    let twice = fails(1, &[&"run", &model, &"-i", &x, &"-i", &x, &"-i", &z]);
    assert!(twice.contains("given twice"), "{twice}");
    let dtype =
        fails(1, &[&"run", &model, &"-i", &give("x", &Tensor::from_slice([1, 4], &[0i64; 4]).unwrap()), &"-i", &z]);
    assert!(dtype.contains("expected elements of f32, got i64"), "{dtype}");
    let rank = fails(1, &[&"run", &model, &"-i", &give("x", &Tensor::from_slice([4], &[0f32; 4]).unwrap()), &"-i", &z]);
    assert!(rank.contains("expected rank 2") && rank.contains("got rank 1"), "{rank}");
    let size = fails(1, &[&"run", &model, &"-i", &give("x", &floats([2, 5])), &"-i", &z]);
    assert!(size.contains("expected shape [N,4], got [2,5]"), "{size}");
    let symbol = fails(1, &[&"run", &model, &"-i", &give("x", &floats([3, 4])), &"-i", &z]);
    assert!(symbol.contains("\"N\" is 2 here and 3 in input \"x\""), "{symbol}");

    let gone = format!("x={}", folder.path("gone.npy").display());
    assert!(fails(1, &[&"run", &model, &"-i", &gone, &"-i", &z]).contains("gone.npy: there is no such file"));
    let folder_as_file = format!("x={}", folder.0.display());
    assert!(fails(1, &[&"run", &model, &"-i", &folder_as_file, &"-i", &z]).contains("does not end in"));
    folder.write("bad.npy", b"no array");
    let bad = format!("x={}", folder.path("bad.npy").display());
    assert!(fails(1, &[&"run", &model, &"-i", &bad, &"-i", &z]).contains("bad.npy"));
}

#[test]
fn bad_use_is_exit_code_2() {
    let folder = Folder::new("use");
    let model = folder.write("m.onnx", &common::add_relu());
    fails(2, &[&"fly", &model]);
    fails(2, &[&"run"]);
    fails(2, &[&"run", &model, &"--no-such-option"]);
    fails(2, &[&"run", &model, &"--memory-limit", &"much"]);
    fails(2, &[&"run", &model, &"--threads", &"many"]);
    fails(2, &[&"run", &model, &"--threads", &"99999"]);
    fails(2, &[&"run", &model, &"--repeat", &"0"]);
    fails(2, &[&"run", &model, &"--input", &"nothing"]);
    fails(2, &[&"run", &model, &"--random", &"--dim", &"M=3"]);
    fails(2, &[&"trace", &model, &"--random", &"--repeat", &"0"]);
    let version = firstlight(&[&"--version"]);
    assert!(version.status.success());
    assert_eq!(text(&version.stdout).trim(), format!("firstlight {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_limit_that_is_too_small_is_refused_with_a_figure() {
    let folder = Folder::new("limit");
    let model = folder.write("m.onnx", &common::adds(30));
    let args: [&dyn AsRef<std::ffi::OsStr>; 7] =
        [&"run", &model, &"--random", &"--dim", &"N=4096", &"--memory-limit", &"100K"];
    let message = fails(1, &args);
    assert!(message.contains("memory limit of 102400 bytes") && message.contains("raise the limit to"), "{message}");
    assert!(message.contains("error: inputs of the run: "), "{message}");
}

#[test]
fn what_random_cannot_make_is_named() {
    let folder = Folder::new("random");
    let bytes = Model::new("g").input("s", 8, &[D::N(1)]).input("x", I64, &[]).node("Add", "a", &["x", "x"], &["y"]);
    let model = folder.write("m.onnx", &bytes.output("y", I64).finish());
    let message = fails(1, &[&"run", &model, &"--random"]);
    assert!(message.contains("\"s\"") && message.contains("string"), "{message}");
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = Folder::new("pipe");
    let model = folder.write("m.onnx", &common::add_relu());
    let mut command = Command::new(env!("CARGO_BIN_EXE_firstlight"));
    command.arg("run").arg(&model).arg("--random").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("panicked"));
}

#[test]
fn colours_are_for_terminals_and_those_who_ask() {
    let folder = Folder::new("colour");
    let model = folder.write("m.onnx", &common::add_relu());
    let check = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_firstlight"));
        for variable in ["NO_COLOR", "CLICOLOR_FORCE"] {
            command.env_remove(variable);
        }
        text(&command.env(name, "1").arg("check").arg(&model).stdin(Stdio::null()).output().unwrap().stdout)
    };
    assert!(check("CLICOLOR_FORCE").contains('\u{1b}'));
    assert!(!check("NO_COLOR").contains('\u{1b}') && !check("LANG").contains('\u{1b}'));
}
