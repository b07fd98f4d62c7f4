//! `firstlight trace` from outside: the picture, names of files, errors.

mod support;

use std::process::{Command, Stdio};
use support::common::{self, D, F32, Model};
use support::{Folder, fails, firstlight, text};

#[test]
fn a_picture_holds_every_step_and_its_text_is_escaped() {
    let folder = Folder::new("trace-svg");
    let evil = "<script>&\"'";
    let bytes = Model::new("g")
        .input("x", F32, &[D::N(4)])
        .node("Sqrt", evil, &["x"], &["a"])
        .node("Softmax", "soft", &["a"], &["y"])
        .output("y", F32);
    let model = folder.write("m.onnx", &bytes.finish());
    let (to, json) = (folder.path("t.svg"), folder.path("t.json"));
    let args: [&dyn AsRef<std::ffi::OsStr>; 9] =
        [&"trace", &model, &"--random", &"--repeat", &"3", &"--svg", &to, &"--out", &json];
    let output = firstlight(&args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
    let said = text(&output.stderr);
    assert!(
        said.contains("6 steps of 3 runs in") && said.contains("\ncompile ") && said.contains("\nexecute "),
        "{said}"
    );
    let picture = std::fs::read_to_string(&to).unwrap();
    assert!(picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && picture.ends_with("</svg>\n"));
    assert!(!picture.contains("<script"), "{picture}");
    let titles = |start: &str| picture.matches(&format!("<title>{start}")).count();
    assert_eq!((titles("run &lt;script&gt;&amp;&quot;&#39; (Sqrt"), titles("run soft (Softmax")), (3, 3), "{picture}");
    assert_eq!((titles("compile "), titles("model_run"), titles("first answer")), (2, 3, 1), "{picture}");
    for track in ["session", "compile", "execute"] {
        assert!(picture.contains(&format!(">{track}</text>")), "{track}");
    }
    let trace: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(trace.iter().filter(|event| event["cat"] == "Node").count(), 6);
}

#[test]
fn files_are_named_after_the_model_in_the_current_folder() {
    let folder = Folder::new("trace-names");
    let models = folder.path("models");
    std::fs::create_dir_all(&models).unwrap();
    std::fs::write(models.join("add.relu.onnx"), common::add_relu()).unwrap();
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_firstlight"));
        command.current_dir(&folder.0).stdin(Stdio::null()).args(["trace", "models/add.relu.onnx", "--random"]);
        let output = command.args(more).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        folder.names()
    };
    assert_eq!(run(&["--svg"]), ["add.relu.trace.svg", "models"]);
    assert_eq!(run(&[]), ["add.relu.trace.json", "add.relu.trace.svg", "models"]);
}

#[test]
fn what_cannot_be_written_or_run_is_told() {
    let folder = Folder::new("trace-errors");
    let model = folder.write("m.onnx", &common::add_relu());
    let nowhere = folder.path("none").join("t.svg");
    assert!(fails(1, &[&"trace", &model, &"--random", &"--svg", &nowhere]).contains("t.svg: "));
    assert!(fails(1, &[&"trace", &model, &"--random", &"--out", &folder.0]).contains("is a directory"));
    let message = fails(1, &[&"trace", &model, &"--out", &folder.path("t.json")]);
    assert!(message.contains("input \"x\": it is not given"), "{message}");
    assert_eq!(folder.names(), ["m.onnx"]);
    fails(2, &[&"trace", &model, &"--random", &"--repeat", &"none"]);
}
