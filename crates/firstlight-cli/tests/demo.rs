//! `firstlight demo` from outside: what it reads, its page, what it saves, exit codes.

mod support;

use firstlight::files;
use serde_json::Value;
use std::process::{Command, Stdio};
use support::{Folder, fails, firstlight, text};

/// The JSON of a demo.
fn told(more: &[&str]) -> Value {
    let args: Vec<&dyn AsRef<std::ffi::OsStr>> = ["demo", "--json"].iter().chain(more).map(|arg| arg as _).collect();
    let output = firstlight(&args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The page of a demo that is piped, in an environment of nothing but these variables.
fn page(more: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firstlight"));
    command.arg("demo").args(more).env_clear().envs(variables.iter().copied()).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn nine_of_ten_are_right_and_the_model_is_small() {
    let demo = told(&[]);
    let digits = list(&demo["digits"]);
    let is_right = |digit: &&Value| digit["answer"] == digit["label"];
    assert_eq!((digits.len(), &demo["seed"]), (10, &0.into()));
    assert!(digits.iter().all(|digit| digit["is_right"] == is_right(&digit)), "{demo}");
    assert!(digits.iter().all(|digit| (0.1..=1.).contains(&number(&digit["confidence"]))), "{demo}");
    assert_eq!(demo["n_right"], digits.iter().filter(is_right).count());
    assert!(number(&demo["n_right"]) >= 9., "{demo}");
    let held_out = &demo["held_out"];
    assert_eq!(held_out["n_digits"], 360);
    assert!(number(&held_out["n_right"]) >= 0.97 * 360., "{held_out}");
    assert!(number(&demo["model"]["n_bytes"]) < 300e3, "{}", demo["model"]);
}

#[test]
fn every_step_is_on_the_timeline_and_runs_after_its_compile() {
    for pipeline in ["auto", "inline", "on"] {
        let demo = told(&["--pipeline", pipeline]);
        let (compiled, ran) = (list(&demo["timeline"]["compile"]), list(&demo["timeline"]["execute"]));
        assert!(compiled.len() > 5 && demo["model"]["n_steps"] == compiled.len(), "{demo}");
        let names = |spans: &[Value]| spans.iter().map(|span| span["node"].clone()).collect::<Vec<_>>();
        assert_eq!(names(compiled), names(ran), "{pipeline}");
        for (compile, run) in compiled.iter().zip(ran) {
            assert!(number(&compile["from_us"]) <= number(&compile["to_us"]), "{compile}");
            assert!(number(&compile["to_us"]) <= number(&run["from_us"]), "{compile} {run}");
            assert!(number(&run["from_us"]) <= number(&run["to_us"]), "{run}");
        }
        if pipeline == "inline" {
            let last = compiled.last().unwrap();
            assert!(number(&ran[0]["from_us"]) < number(&last["from_us"]), "nothing ran before all was compiled");
        }
        assert_eq!(demo["later_ms"]["n_runs"], 360);
        assert!(number(&demo["load_ms"]) > 0. && demo["first_ms"] == demo["digits"][0]["ms"], "{demo}");
        assert!(number(&demo["later_ms"]["best"]) <= number(&demo["later_ms"]["median"]), "{demo}");
    }
}

#[test]
fn a_seed_draws_other_digits_and_a_count_draws_that_many() {
    let indexes = |more: &[&str]| -> Vec<u64> {
        list(&told(more)["digits"]).iter().map(|digit| digit["index"].as_u64().unwrap()).collect()
    };
    assert_eq!(indexes(&[]), indexes(&["--seed", "0"]));
    assert_ne!(indexes(&["--seed", "1"]), indexes(&["--seed", "2"]));
    assert_eq!(indexes(&["--count", "3"]).len(), 3);
    let mut all = indexes(&["--count", "360", "--seed", "7"]);
    all.sort_unstable();
    assert_eq!(all, (0..360).collect::<Vec<_>>());
}

#[test]
fn a_page_shows_the_digits_their_timeline_and_the_times() {
    let page_80 = page(&[], &[("COLUMNS", "80")]);
    let lines: Vec<&str> = page_80.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{page_80}");
    assert!(!page_80.contains('\u{1b}'), "{page_80}");
    // The first digit of seed 0, a four.
    for (line, start) in [(3, "   ▄█▀  "), (4, "  █▀    "), (5, " ██▄██▀ "), (6, "    ██  "), (7, "4  9")]
    {
        assert!(lines[line].starts_with(start), "{page_80}");
    }
    let demo = told(&[]);
    let n_right = demo["n_right"].to_string();
    let held_out = demo["held_out"]["n_right"].to_string();
    assert!(page_80.contains(&format!("\n{n_right} of 10 right; of all 360, {held_out} right (9")), "{page_80}");
    for start in ["compile ", "execute ", "  load  ", "  first answer  ", "  later answers  "] {
        assert_eq!(lines.iter().filter(|line| line.starts_with(start)).count(), 1, "{start}: {page_80}");
    }
    let narrow = page(&[], &[("COLUMNS", "40")]);
    let (picture, rest) = narrow.split_once("10 right;").unwrap();
    let timeline = rest.lines().filter(|line| line.starts_with("compile ") || line.starts_with("execute "));
    assert!(picture.lines().skip(3).chain(timeline).all(|line| line.chars().count() <= 40), "{narrow}");
}

#[test]
fn a_wrong_answer_is_marked() {
    let demo = told(&["--count", "360"]);
    let wrong: Vec<&Value> = list(&demo["digits"]).iter().filter(|digit| digit["is_right"] == false).collect();
    assert!(!wrong.is_empty(), "a model that errs nowhere leaves this untested");
    let page = page(&["--count", "360"], &[]);
    assert_eq!(page.matches("✗ is ").count(), wrong.len());
    assert!(wrong.iter().all(|digit| page.contains(&format!("✗ is {}", digit["label"]))), "{page}");
}

#[test]
fn characters_and_colours_are_what_the_stream_can_show() {
    let force = ("CLICOLOR_FORCE", "1");
    assert!(page(&[], &[force]).contains("\u{1b}[38;5;"));
    let plain = page(&[], &[force, ("NO_COLOR", "1")]);
    assert!(plain.contains('█') && !plain.contains('\u{1b}'), "{plain}");
    for plain in [page(&["--ascii", "--count", "360"], &[]), page(&["--count", "360"], &[("LANG", "C")])] {
        assert!(plain.is_ascii() && plain.contains("@@"), "{plain}");
    }
}

#[test]
fn what_is_saved_runs_as_any_other_model() {
    let folder = Folder::new("demo-save");
    let to = folder.path("a b");
    std::fs::create_dir_all(&to).unwrap();
    std::fs::write(to.join("model.onnx"), "something else").unwrap();
    let demo = told(&["--seed", "3", "--count", "20", "--save", to.to_str().unwrap()]);
    let mut names: Vec<_> = std::fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["digits.npz", "model.onnx"]);
    let (model, digits, outputs) = (to.join("model.onnx"), to.join("digits.npz"), folder.path("out.npz"));
    let ran = firstlight(&[&"run", &model, &"--input", &digits, &"--output", &outputs]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let (name, probabilities) = files::read_npz(&outputs).unwrap().remove(0);
    assert_eq!((name.as_str(), &probabilities.shape()[..]), ("probabilities", &[20, 10][..]));
    let probabilities = probabilities.values::<f32>().unwrap();
    let answers: Vec<usize> =
        probabilities.chunks(10).map(|row| (0..10).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap()).collect();
    let said: Vec<usize> =
        list(&demo["digits"]).iter().map(|digit| digit["answer"].as_u64().unwrap() as usize).collect();
    assert_eq!(answers, said);
    let page = page(&["--save", to.to_str().unwrap()], &[]);
    assert!(page.contains(&format!("firstlight run '{}' --input '{}'", model.display(), digits.display())), "{page}");
}

#[test]
fn what_cannot_be_saved_is_exit_code_1_and_bad_use_is_2() {
    let folder = Folder::new("demo-errors");
    let file = folder.write("file", b"");
    let message = fails(1, &[&"demo", &"--save", &file]);
    assert!(message.contains("file: cannot make this folder: "), "{message}");
    std::fs::create_dir_all(folder.path("to/digits.npz")).unwrap();
    let message = fails(1, &[&"demo", &"--save", &folder.path("to")]);
    assert!(message.contains("digits.npz: is a directory"), "{message}");
    for bad in ["0", "361", "ten"] {
        assert!(fails(2, &[&"demo", &"--count", &bad]).contains("--count"));
    }
    fails(2, &[&"demo", &"--seed", &"-1"]);
    fails(2, &[&"demo", &"--threads", &"99999"]);
    fails(2, &[&"demo", &"model.onnx"]);
    fails(2, &[&"demo", &"--save"]);
}
