//! `cargo xtask validate`: everything that CI runs, stage by stage.

use std::time::Instant;

use crate::args::Args;
use crate::checks::{self, Agree, SMALL, Suite};
use crate::project::{Failure, Project, run as start};
use crate::{python, tidy};

/// One part of validation: its name, the stages it cannot do without, and what it does.
struct Stage {
    name: &'static str,
    needs: &'static [&'static str],
    run: fn(&Project) -> Result<String, Failure>,
}

const STAGES: &[Stage] = &[
    Stage { name: "fmt", needs: &[], run: fmt },
    Stage { name: "clippy", needs: &[], run: clippy },
    Stage { name: "docs", needs: &[], run: docs },
    Stage { name: "test", needs: &[], run: test },
    Stage { name: "fault", needs: &[], run: fault },
    Stage { name: "tidy", needs: &[], run: tidy::check },
    Stage { name: "python", needs: &[], run: python_stage },
    Stage { name: "build", needs: &[], run: checks::build },
    Stage { name: "checkers", needs: &["python"], run: checks::checkers },
    Stage { name: "suite", needs: &["python", "build"], run: suite },
    Stage { name: "agree", needs: &["python", "build"], run: agree },
];

/// What came of one stage.
struct Done {
    name: &'static str,
    seconds: f64,
    result: Result<String, Failure>,
}

pub(crate) fn run(project: &Project, mut args: Args) -> Result<(), Failure> {
    let only = args.list("--only")?;
    args.finish()?;
    if let Some(unknown) = only.iter().find(|name| STAGES.iter().all(|stage| stage.name != name.as_str())) {
        let names: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
        return Err(Failure::Broken(format!("no stage {unknown:?}; there are {}", names.join(" "))));
    }
    let mut done: Vec<Done> = Vec::new();
    for stage in STAGES.iter().filter(|stage| only.is_empty() || is_asked(stage.name, &only)) {
        println!("==> {}", stage.name);
        let clock = Instant::now();
        let lost = done.iter().find(|d| stage.needs.contains(&d.name) && d.result.is_err());
        let result = match lost {
            Some(lost) => Err(Failure::Found(format!("not run: it needs {}", lost.name))),
            None => (stage.run)(project),
        };
        let seconds = clock.elapsed().as_secs_f64();
        println!("<== {}", line(stage.name, seconds, &result));
        done.push(Done { name: stage.name, seconds, result });
    }
    println!("\nvalidate:");
    for stage in &done {
        println!("  {}", line(stage.name, stage.seconds, &stage.result));
    }
    let failed: Vec<&str> = done.iter().filter(|d| d.result.is_err()).map(|d| d.name).collect();
    let total: f64 = done.iter().map(|d| d.seconds).sum();
    println!("  {} of {} stages pass, {total:.0} s", done.len() - failed.len(), done.len());
    if failed.is_empty() {
        return Ok(());
    }
    let summary = format!("failed: {}", failed.join(" "));
    let is_broken = done.iter().any(|d| matches!(d.result, Err(Failure::Broken(_))));
    Err(if is_broken { Failure::Broken(summary) } else { Failure::Found(summary) })
}

/// Whether a stage is named, or needed by one that is.
fn is_asked(name: &str, only: &[String]) -> bool {
    let named = |name: &str| only.iter().any(|asked| asked == name);
    named(name) || STAGES.iter().any(|stage| named(stage.name) && stage.needs.contains(&name))
}

fn line(name: &str, seconds: f64, result: &Result<String, Failure>) -> String {
    let (word, note) = match result {
        Ok(note) => ("ok", note.as_str()),
        Err(Failure::Found(why)) => ("FAIL", why.as_str()),
        Err(Failure::Broken(why)) => ("BROKEN", why.as_str()),
    };
    format!("{name:9} {seconds:6.1} s  {word:6} {note}").trim_end().to_owned()
}

fn fmt(project: &Project) -> Result<String, Failure> {
    need_component(project, "fmt", "rustfmt")?;
    start(&mut project.cargo(&["fmt", "--all", "--check"]), "cargo fmt --all --check")?;
    Ok(String::new())
}

fn clippy(project: &Project) -> Result<String, Failure> {
    need_component(project, "clippy", "clippy")?;
    let words = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    let lints = ["-D", "clippy::undocumented_unsafe_blocks"];
    start(project.cargo(&words).args(lints), "cargo clippy")?;
    Ok(String::new())
}

/// With every feature, as docs.rs does, and the crates that have features without any.
fn docs(project: &Project) -> Result<String, Failure> {
    let all: &[&str] = &["--workspace", "--all-features"];
    for what in [all, &["--package", "firstlight", "--package", "firstlight-tensor"]] {
        let mut command = project.cargo(&["doc", "--no-deps", "--quiet"]);
        start(command.args(what).env("RUSTDOCFLAGS", "-D warnings"), "cargo doc")?;
    }
    Ok(String::new())
}

fn test(project: &Project) -> Result<String, Failure> {
    start(&mut project.cargo(&["test", "--workspace", "--no-fail-fast"]), "cargo test")?;
    Ok(String::new())
}

/// The program with a wrong kernel: `compare` must name it.
fn fault(project: &Project) -> Result<String, Failure> {
    let words = ["test", "--package", "firstlight-cli", "--features", "planted-fault", "--test", "planted_fault"];
    start(&mut project.cargo(&words), "cargo test --features planted-fault")?;
    Ok(String::new())
}

fn python_stage(project: &Project) -> Result<String, Failure> {
    let python = python::environment(project, python::CHECKS)?;
    Ok(project.relative(&python))
}

fn suite(project: &Project) -> Result<String, Failure> {
    Suite::default().run(project)
}

fn agree(project: &Project) -> Result<String, Failure> {
    let models = checks::small_models(project)?;
    Agree { models, only: SMALL.into(), json: None }.run(project)
}

/// Where a toolchain lacks a component, asks rustup for it.
fn need_component(project: &Project, verb: &str, component: &str) -> Result<(), Failure> {
    if project.cargo(&[verb, "--version"]).output().is_ok_and(|out| out.status.success()) {
        return Ok(());
    }
    println!("cargo {verb} is not installed: rustup component add {component}");
    let mut command = std::process::Command::new("rustup");
    command.current_dir(&project.root).args(["component", "add", component]);
    start(&mut command, "rustup").map_err(|why| Failure::Broken(why.message().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_brings_what_it_needs() {
        let only = ["suite".to_owned()];
        let asked: Vec<&str> = STAGES.iter().map(|stage| stage.name).filter(|name| is_asked(name, &only)).collect();
        assert_eq!(asked, ["python", "build", "suite"]);
    }

    #[test]
    fn needs_come_first() {
        for (at, stage) in STAGES.iter().enumerate() {
            for need in stage.needs {
                assert!(STAGES[..at].iter().any(|other| other.name == *need), "{} needs {need}", stage.name);
            }
        }
    }
}
