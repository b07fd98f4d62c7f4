//! `cargo xtask bars SET`: measurable bars; each prints its figure, its spread and PASS or MISS.

mod agree;
mod core;
mod first_answer;
mod memory;
mod models;
mod runtime;
mod side_by_side;
mod speed;
mod tool;

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::args::Args;
use crate::project::{Failure, Project, make_folder, write};

/// One bar: what must hold, and how it is measured.
struct Bar {
    /// A number, or `NUMBER-PART` for a part that is measured by itself.
    name: &'static str,
    what: &'static str,
    /// Takes many minutes: measured only when named.
    is_long: bool,
    measure: fn(&Bench) -> Result<Vec<Figure>, Failure>,
}

impl Bar {
    /// Whether a name means this bar: its own, or the number of a bar of which it is a part.
    fn is_named(&self, name: &str) -> bool {
        self.name == name || self.name.split_once('-').is_some_and(|(number, _)| number == name)
    }
}

/// What was measured for a bar, and whether that is enough.
struct Figure {
    what: String,
    value: String,
    /// How far single measurements lay apart; empty where there is nothing to vary.
    spread: String,
    bound: String,
    is_met: bool,
}

/// What bars need to measure.
struct Bench<'a> {
    project: &'a Project,
    /// Models, NAME/model.onnx and NAME/case.
    models: PathBuf,
    /// Scratch of this run, and where result files go.
    work: PathBuf,
    rounds: usize,
    /// Only these of a bar's models; all where empty.
    only_models: Vec<String>,
}

impl Bench<'_> {
    /// Those of `names` that are asked for.
    ///
    /// **Errors**: one is not there.
    fn models_of<'a>(&self, names: &[&'a str]) -> Result<Vec<&'a str>, Failure> {
        let is_asked = |name: &&str| self.only_models.is_empty() || self.only_models.iter().any(|only| only == name);
        let asked: Vec<&str> = names.iter().copied().filter(is_asked).collect();
        let is_there = |name: &str| self.models.join(name).join("case/inputs.txt").exists();
        let missing: Vec<&str> = asked.iter().copied().filter(|name| !is_there(name)).collect();
        if missing.is_empty() {
            return Ok(asked);
        }
        let (folder, names) = (self.models.display(), missing.join(","));
        Err(Failure::Broken(format!("{folder} lacks {names}: cargo xtask models --only {names} makes them")))
    }
}

pub(crate) fn run(project: &Project, mut args: Args) -> Result<(), Failure> {
    let set = args.word().unwrap_or_default();
    let (bars, rounds) = match set.as_str() {
        "core" => (core::BARS, 9),
        "first-answer" => (first_answer::BARS, 15),
        "tool" => (tool::BARS, 9),
        other => {
            return Err(Failure::Broken(format!("no set of bars {other:?}; there are core, first-answer and tool")));
        }
    };
    let (only, json) = (args.list("--only")?, args.option("--json")?);
    let models = args.option("--models")?.map_or_else(|| project.target.join("models"), PathBuf::from);
    let rounds = args.parsed("--rounds")?.unwrap_or(rounds);
    let only_models = args.list("--model")?;
    args.finish()?;
    if let Some(unknown) = only.iter().find(|name| !bars.iter().any(|bar| bar.is_named(name))) {
        return Err(Failure::Broken(format!("no bar {unknown:?} in {set}")));
    }
    let models = std::path::absolute(&models).map_err(|e| Failure::Broken(format!("{}: {e}", models.display())))?;
    let bench = Bench { project, models, work: project.target.join("bars"), rounds, only_models };
    make_folder(&bench.work)?;
    let mut rows = Vec::new();
    let is_asked = |bar: &&Bar| if only.is_empty() { !bar.is_long } else { only.iter().any(|name| bar.is_named(name)) };
    for bar in bars.iter().filter(is_asked) {
        println!("==> bar {}: {}", bar.name, bar.what);
        let clock = Instant::now();
        let figures = (bar.measure)(&bench).unwrap_or_else(|why| {
            let (what, value) = (bar.what.to_owned(), format!("not measured: {}", why.message()));
            vec![Figure { what, value, spread: String::new(), bound: String::new(), is_met: false }]
        });
        println!("    {:.0} s", clock.elapsed().as_secs_f64());
        rows.extend(figures.into_iter().map(|figure| (bar.name, figure)));
    }
    print_table(&rows);
    for bar in bars.iter().filter(|bar| bar.is_long && only.is_empty()) {
        println!("{:>9}  {}: long, not measured (--only {})", bar.name, bar.what, bar.name);
    }
    if let Some(path) = json {
        write(Path::new(&path), &format!("{:#}\n", to_json(&rows)))?;
    }
    match rows.iter().filter(|(_, figure)| !figure.is_met).count() {
        0 => Ok(()),
        n => Err(Failure::Found(format!("{n} of {} figures miss their bar", rows.len()))),
    }
}

fn print_table(rows: &[(&str, Figure)]) {
    let width = |cell: fn(&Figure) -> &String| rows.iter().map(|(_, f)| cell(f).chars().count()).max().unwrap_or(0);
    let widths = [width(|f| &f.what), width(|f| &f.value), width(|f| &f.spread), width(|f| &f.bound)];
    println!();
    for (bar, f) in rows {
        let word = if f.is_met { "PASS" } else { "MISS" };
        let [what, value, spread, bound] = widths;
        let (a, b, c, d) = (&f.what, &f.value, &f.spread, &f.bound);
        println!("{bar:>9}  {a:what$}  {b:value$}  {c:spread$}  {d:bound$}  {word}");
    }
}

fn to_json(rows: &[(&str, Figure)]) -> Value {
    let row = |(bar, f): &(&str, Figure)| json!({"bar": bar, "what": f.what, "value": f.value, "spread": f.spread, "bound": f.bound, "met": f.is_met});
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_means_the_bar_and_its_parts() {
        let asked = |name: &str| -> Vec<&str> {
            tool::BARS.iter().filter(|bar| bar.is_named(name)).map(|bar| bar.name).collect()
        };
        assert_eq!(asked("2"), ["2-values", "2-bits", "2-replay", "2-memory", "2-hostile"]);
        assert_eq!(asked("2-bits"), ["2-bits"]);
        assert!(asked("bits").is_empty());
    }
}
