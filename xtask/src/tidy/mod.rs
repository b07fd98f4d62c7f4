//! `cargo xtask tidy`: the house rules that a machine can check.

mod docs;
mod licences;
mod manifests;
mod readme;
mod rooms;
mod source;
mod text;
mod unsafety;

use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::project::{Failure, Project};
pub(crate) use docs::ops_page_verb;
use source::Source;

/// Everything that breaks a rule, and what is only worth knowing.
#[derive(Debug, Default)]
struct Report {
    findings: Vec<String>,
    notes: Vec<String>,
}

impl Report {
    fn find(&mut self, place: impl AsRef<str>, what: impl AsRef<str>) {
        self.findings.push(format!("{}: {}", place.as_ref(), what.as_ref()));
    }

    fn note(&mut self, text: String) {
        self.notes.push(text);
    }
}

/// Checks every rule; the note says how much was looked at.
pub(crate) fn check(project: &Project) -> Result<String, Failure> {
    let files = files(&project.root).map_err(|e| Failure::Broken(format!("{}: {e}", project.root.display())))?;
    let mut sources = Vec::new();
    let mut report = Report::default();
    for path in &files {
        let name = project.relative(path);
        // What is not text has no lines to check.
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        text::check_any(&name, &text, &mut report);
        // The drivers of other runtimes are a workspace of their own, with its own needs.
        if name.ends_with(".rs") && !name.starts_with("bench/peers/") {
            sources.push(Source::new(name, &text));
        }
    }
    rooms::check(project, &mut report);
    text::check_sources(&sources, &mut report);
    unsafety::check(project, &sources, &mut report);
    manifests::check(project, &mut report)?;
    docs::check(project, &sources, &mut report)?;
    licences::check(project, &mut report)?;
    for note in &report.notes {
        println!("note: {note}");
    }
    for finding in &report.findings {
        println!("tidy: {finding}");
    }
    match report.findings.len() {
        0 => Ok(format!("{} files, {} of them Rust", files.len(), sources.len())),
        n => Err(Failure::Found(format!("{n} findings"))),
    }
}

pub(crate) fn run(project: &Project, mut args: Args) -> Result<(), Failure> {
    let is_fix = args.flag("--fix");
    args.finish()?;
    if is_fix {
        unsafety::write_counts(project)?;
        readme::write_counts(project, &docs::catalog(project)?)?;
    }
    println!("tidy: {}", check(project)?);
    Ok(())
}

/// Every file of the checkout that is not built, fetched or hidden, in order.
fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    const SKIPPED: &[&str] = &["target", "__pycache__", ".git", ".venv", "bin"];
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_source_bin = name == "bin" && path.parent().is_some_and(|parent| parent.ends_with("src"));
        if path.is_symlink() || (SKIPPED.contains(&name.as_str()) && !is_source_bin) {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}
