//! Every example of every page of help is run.
//!
//! An example is a line `$ firstlight ...` of a verb's `--help`; a line that ends in a backslash goes on in the next
//! one. The examples of a page run in order in one folder that holds what [`prepare`] puts there. A comment that says
//! `exit code N` is what the command must end with.
#![cfg(unix)]

mod support;

use firstlight::{Tensor, files};
use std::path::Path;
use std::process::{Command, Stdio};
use support::common::{self, D, F32, Model};
use support::{Folder, firstlight, text};

/// The widest line of an example that no terminal of 80 columns breaks.
const WIDTH: usize = 80;

/// What examples may use.
fn prepare(folder: &Folder) {
    // `x` of f32[N,4]; values `sum`, `y`; nodes `add`, `relu`.
    folder.write("model.onnx", &common::add_relu());
    let x = Tensor::from_slice([2, 4], &[0f32, 1., 2., 3., 4., 5., 6., 7.]).unwrap();
    files::write_npy(folder.path("x.npy"), &x).unwrap();
    // A model with an op that nobody has.
    let unknown = Model::new("unknown").input("x", F32, &[D::N(4)]).node("NoSuchOp", "first", &["x"], &["y"]);
    folder.write("unsupported.onnx", &unknown.output("y", F32).finish());
}

#[test]
fn every_verb_has_examples_and_they_work() {
    let overview = text(&firstlight(&[&"--help"]).stdout);
    let verbs = verbs(&overview);
    assert!(verbs.contains(&"run".to_owned()), "{overview}");
    run_all("the overview", &overview);
    for verb in verbs {
        run_all(&verb, &text(&firstlight(&[&verb, &"--help"]).stdout));
    }
}

#[test]
fn every_verb_has_an_example_of_its_own_and_a_test() {
    let tests = tests(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"));
    for verb in verbs(&text(&firstlight(&[&"--help"]).stdout)) {
        let page = text(&firstlight(&[&verb, &"--help"]).stdout);
        let start = format!("firstlight {verb}");
        assert!(examples(&page).iter().any(|(command, _)| command.starts_with(&start)), "no example of {verb}");
        assert!(tests.contains(&format!("\"{verb}\"")), "no test runs {verb}");
    }
}

#[test]
fn examples_are_found_in_a_page() {
    let page = "Usage: x\n\nExamples:\n  Say so:\n  $ firstlight one\n\n  $ firstlight two \\\n      --three   # exit code 1\n";
    assert_eq!(examples(page), [("firstlight one".to_owned(), 0), ("firstlight two --three".to_owned(), 1)]);
    assert_eq!(
        verbs("Commands:\n  run    Run\n  trace  Trace\n  help   Print\n\nOptions:\n  -h  x\n"),
        ["run", "trace"]
    );
}

fn run_all(page: &str, help: &str) {
    let examples = examples(help);
    assert!(!examples.is_empty(), "{page} has no example:\n{help}");
    let folder = Folder::new(&format!("examples-{page}"));
    prepare(&folder);
    for (command, code) in examples {
        let output = shell(&folder.0, &command);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{page}: {command}\n{said}");
        assert!(!said.contains("panicked"), "{page}: {command}\n{said}");
    }
}

/// Runs a command line in a folder, with the program on the path.
fn shell(folder: &Path, command: &str) -> std::process::Output {
    let program = Path::new(env!("CARGO_BIN_EXE_firstlight"));
    let mut places = vec![program.parent().unwrap().to_owned()];
    places.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let path = std::env::join_paths(places).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).env("PATH", path).stdin(Stdio::null());
    shell.env_remove("FIRSTLIGHT_NUM_THREADS").env_remove("OMP_NUM_THREADS").output().unwrap()
}

/// The text of every test but this one, and of those in the folders below.
fn tests(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all += &tests(&path);
        } else if path.file_name() != Path::new(file!()).file_name() {
            all += &std::fs::read_to_string(&path).unwrap();
        }
    }
    all
}

/// The verbs that an overview lists.
fn verbs(overview: &str) -> Vec<String> {
    let lines = overview.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Lines that go on with what a verb does start further right.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").map(str::to_owned).collect()
}

/// The command lines of a page and the exit codes that they promise.
fn examples(page: &str) -> Vec<(String, i32)> {
    let mut found = vec![];
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(start) = line.trim_start().strip_prefix("$ ") else { continue };
        assert!(start.starts_with("firstlight "), "an example of another program: {line}");
        let mut command = String::new();
        let mut part = start;
        loop {
            assert!(part.chars().count() + 4 <= WIDTH, "too wide for {WIDTH} columns: {part}");
            match part.strip_suffix('\\') {
                Some(more) => command.push_str(more),
                None => break command.push_str(part),
            }
            part = lines.next().unwrap_or_default().trim_start();
        }
        let (command, comment) = command.split_once(" #").unwrap_or((&command, ""));
        let code = comment.split_once("exit code ").and_then(|(_, code)| code.trim().parse().ok()).unwrap_or(0);
        found.push((command.trim_end().to_owned(), code));
    }
    found
}
