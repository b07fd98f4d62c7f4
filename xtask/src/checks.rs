//! The checks against other implementations: the official suite and agreement with onnxruntime.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::args::Args;
use crate::project::{Failure, Project, make_folder, read_json, run, write};
use crate::python;

/// What each case of the suite came to when it was last recorded.
pub(crate) const BASELINE: &str = "crates/conformance/suite/baseline.json";
/// The program that answers the suite, and the crate it is built from.
pub(crate) const CONFORMANCE: &str = "firstlight-conformance";
/// The program that users run, and the crate it is built from.
pub(crate) const CLI: (&str, &str) = ("firstlight", "firstlight-cli");

/// Which part of the suite to run, and what to do with the verdicts.
#[derive(Debug, Default)]
pub(crate) struct Suite {
    /// A regular expression on category/name; empty for all.
    pub(crate) only: String,
    /// Passed on to the program; verdicts on another device are not held against the baseline.
    pub(crate) device: Option<String>,
    pub(crate) update_baseline: bool,
}

impl Suite {
    /// Runs the built program over the suite; a lost pass, a crash or a timeout is a failure.
    pub(crate) fn run(&self, project: &Project) -> Result<String, Failure> {
        let python = python::environment(project, python::CHECKS)?;
        let (baseline, verdicts) = (project.path(BASELINE), project.target.join("suite.json"));
        let _ = std::fs::remove_file(&verdicts);
        let mut command = Command::new(python);
        command.arg(project.path("crates/conformance/suite/run_suite.py"));
        command.arg("--suite").arg(suite_folder(project)?).arg("--json").arg(&verdicts);
        command.args(["--only", &self.only]);
        let is_compared = self.device.is_none() && !self.update_baseline;
        if is_compared {
            if !baseline.exists() {
                return Err(Failure::Found(format!("no {BASELINE}: cargo xtask suite --update-baseline makes it")));
            }
            command.arg("--baseline").arg(&baseline);
        }
        command.arg("--").arg(project.program(CONFORMANCE));
        if let Some(device) = &self.device {
            command.args(["--device", device]);
        }
        let outcome = run(&mut command, "the official suite");
        let verdicts = read_json(&verdicts)?;
        let cases = cases(&verdicts);
        let fatal = print_failures(&cases);
        outcome?;
        if fatal > 0 {
            return Err(Failure::Found(format!("{fatal} cases crashed or timed out")));
        }
        let n_passed = cases.iter().filter(|(_, verdict, _)| *verdict == "pass").count();
        let mut note = format!("{n_passed} of {} cases pass", cases.len());
        if self.update_baseline {
            write_baseline(&baseline, &verdicts["onnx"], &cases)?;
        } else if is_compared {
            let known = read_json(&baseline)?;
            let is_new = |name: &str| known["cases"][name]["verdict"] != "pass";
            let n_new = cases.iter().filter(|(name, verdict, _)| *verdict == "pass" && is_new(name)).count();
            if n_new > 0 {
                note += &format!("; {n_new} of them are not in the baseline (--update-baseline)");
            }
        }
        Ok(note)
    }
}

/// Which models to compare with onnxruntime.
#[derive(Debug)]
pub(crate) struct Agree {
    /// A folder of models, NAME/model.onnx.
    pub(crate) models: PathBuf,
    /// A regular expression on the model's name.
    pub(crate) only: String,
    pub(crate) json: Option<PathBuf>,
}

impl Agree {
    /// Compares once with a process for each set of inputs, and once with one session for all.
    pub(crate) fn run(&self, project: &Project) -> Result<String, Failure> {
        let python = python::environment(project, python::CHECKS)?;
        let mut outcome = Ok(());
        for (drive, program) in [("run", CLI.0), ("session", CONFORMANCE)] {
            println!("-- one {drive} of {program}");
            let mut command = Command::new(&python);
            command.arg(project.path("crates/conformance/suite/agree.py"));
            command.arg("--work").arg(project.target.join("agree")).arg("--models").arg(&self.models);
            command.args(["--only", &self.only, "--drive", drive]);
            if let Some(folder) = &self.json {
                let rows = folder.join(format!("agree-{drive}.json"));
                let _ = std::fs::remove_file(&rows);
                command.arg("--json").arg(rows);
            }
            let done = run(command.arg("--").arg(project.program(program)), "the agreement check");
            outcome = outcome.and(done);
        }
        outcome?;
        Ok("every value within 1e-4 of its scale".into())
    }
}

/// The checkers' own tests: each kind of wrong answer must fail.
pub(crate) fn checkers(project: &Project) -> Result<String, Failure> {
    let python = python::environment(project, python::CHECKS)?;
    let mut command = Command::new(python);
    command.current_dir(project.path("crates/conformance/suite"));
    run(command.args(["-B", "-m", "unittest", "test_checks"]), "the checkers' own tests")?;
    Ok(String::new())
}

/// Builds the programs that the checks start.
pub(crate) fn build(project: &Project) -> Result<String, Failure> {
    project.build_release(&[CONFORMANCE, CLI.1])?;
    Ok(String::new())
}

/// Makes models in `target/models` with `requirements` installed, those that are not there yet; returns that folder.
pub(crate) fn models(project: &Project, requirements: &str, names: &[&str]) -> Result<PathBuf, Failure> {
    let folder = project.target.join("models");
    let missing: Vec<&str> =
        names.iter().copied().filter(|name| !folder.join(name).join("case/inputs.txt").exists()).collect();
    if !missing.is_empty() {
        make_folder(&folder)?;
        let python = python::environment(project, requirements)?;
        let mut command = Command::new(python);
        command.arg(project.path("bench/get_models.py")).arg("--out").arg(&folder);
        command.args(["--only", &missing.join(",")]);
        if requirements == python::CHECKS {
            command.arg("--skip-torch");
        }
        run(&mut command, "bench/get_models.py")?;
    }
    Ok(folder)
}

/// The models that validation compares: they need no torch.
pub(crate) fn small_models(project: &Project) -> Result<PathBuf, Failure> {
    models(project, python::CHECKS, &["one-add", "silero-vad"])
}

/// Where the official suite is written out, once for each version of onnx.
pub(crate) fn suite_folder(project: &Project) -> Result<PathBuf, Failure> {
    let version = python::pinned(project, python::CHECKS, "onnx")?;
    Ok(project.target.join(format!("onnx-suite-{version}")))
}

pub(crate) fn suite_verb(project: &Project, mut args: Args) -> Result<(), Failure> {
    let suite = Suite {
        only: args.option("--only")?.unwrap_or_default(),
        device: args.option("--device")?,
        update_baseline: args.flag("--update-baseline"),
    };
    args.finish()?;
    if suite.update_baseline && !(suite.only.is_empty() && suite.device.is_none()) {
        return Err(Failure::Broken("--update-baseline takes the whole suite on the default device".into()));
    }
    project.build_release(&[CONFORMANCE])?;
    println!("{}", suite.run(project)?);
    Ok(())
}

pub(crate) fn agree_verb(project: &Project, mut args: Args) -> Result<(), Failure> {
    let only = args.option("--only")?.unwrap_or_default();
    let folder = args.word().map(PathBuf::from);
    args.finish()?;
    let (models, only) = match folder {
        Some(folder) => (folder, only),
        None if only.is_empty() => (small_models(project)?, SMALL.into()),
        None => (small_models(project)?, only),
    };
    build(project)?;
    println!("{}", Agree { models, only, json: None }.run(project)?);
    Ok(())
}

/// The models of the agreement stage, whatever else lies in the models folder.
pub(crate) const SMALL: &str = "^(conv-block|transformer|one-add|silero-vad)$";

pub(crate) fn models_verb(project: &Project, mut args: Args) -> Result<(), Failure> {
    let names = args.list("--only")?;
    args.finish()?;
    let names: Vec<&str> = match names.is_empty() {
        true => vec!["one-add", "silero-vad", "resnet50", "minilm"],
        false => names.iter().map(String::as_str).collect(),
    };
    println!("{}", models(project, python::MODELS, &names)?.display());
    Ok(())
}

/// Name, verdict and reason of every case of a verdict file.
fn cases(verdicts: &Value) -> Vec<(&str, &str, &str)> {
    fn text(value: &Value) -> &str {
        value.as_str().unwrap_or_default()
    }
    let cases = verdicts["cases"].as_object().into_iter().flatten();
    cases.map(|(name, case)| (name.as_str(), text(&case["verdict"]), text(&case["reason"]))).collect()
}

/// Prints what neither passed nor was refused, and counts the crashes and timeouts.
fn print_failures(cases: &[(&str, &str, &str)]) -> usize {
    const SHOWN: usize = 60;
    let is_bad = |verdict: &str| !matches!(verdict, "pass" | "unsupported");
    let bad: Vec<_> = cases.iter().filter(|(_, verdict, _)| is_bad(verdict)).collect();
    for (name, verdict, reason) in bad.iter().take(SHOWN) {
        println!("  {verdict:14} {name}: {reason}");
    }
    if bad.len() > SHOWN {
        println!("  ... and {} more", bad.len() - SHOWN);
    }
    bad.iter().filter(|(_, verdict, _)| matches!(*verdict, "crash" | "timeout")).count()
}

fn write_baseline(path: &Path, onnx: &Value, cases: &[(&str, &str, &str)]) -> Result<(), Failure> {
    let line = |(name, verdict, _): &(&str, &str, &str)| format!("{}: {}", json!(name), json!({ "verdict": verdict }));
    let lines: Vec<String> = cases.iter().map(line).collect();
    write(path, &format!("{{\"onnx\": {onnx}, \"cases\": {{\n{}\n}}}}\n", lines.join(",\n")))
}
