//! Pages: those that must be there, ARCHITECTURE.md names every crate, generated ones are fresh, the op table is in order.

use serde_json::Value;

use super::source::Source;
use super::{Report, readme};
use crate::args::Args;
use crate::project::{Failure, Project, output, write};

/// The page of all ops, generated from the op table.
const OPS_PAGE: &str = "docs/ops.md";

pub(super) fn check(project: &Project, sources: &[Source], report: &mut Report) -> Result<(), Failure> {
    for page in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "deny.toml"] {
        if !project.path(page).exists() {
            report.find(page, "missing");
        }
    }
    let page = std::fs::read_to_string(project.path("ARCHITECTURE.md")).unwrap_or_default();
    for package in &project.packages {
        if !page.is_empty() && !page.contains(&format!("`{}`", package.name)) {
            report.find("ARCHITECTURE.md", format!("does not name the crate `{}`", package.name));
        }
    }
    for source in sources.iter().filter(|source| source.room() == Some("firstlight-graph")) {
        if let Some((a, b)) = out_of_order(&op_names(source)) {
            report.find(&source.name, format!("the op table is kept sorted: {b} stands after {a}"));
        }
    }
    let committed = std::fs::read_to_string(project.path(OPS_PAGE)).unwrap_or_default();
    if committed != ops_page(project)? {
        report.find(OPS_PAGE, "stale or missing: cargo xtask ops-page");
    }
    readme::check(project, &catalog(project)?, report)
}

/// Writes the generated page.
pub(crate) fn ops_page_verb(project: &Project, args: Args) -> Result<(), Failure> {
    args.finish()?;
    write(&project.path(OPS_PAGE), &ops_page(project)?)
}

/// The page as the op table has it now.
fn ops_page(project: &Project) -> Result<String, Failure> {
    ops(project, "--markdown")
}

/// Every op, as the program tells it to other programs.
pub(super) fn catalog(project: &Project) -> Result<Value, Failure> {
    serde_json::from_str(&ops(project, "--json")?).map_err(|e| Failure::Broken(format!("firstlight ops --json: {e}")))
}

fn ops(project: &Project, form: &str) -> Result<String, Failure> {
    let words = ["run", "--quiet", "--package", "firstlight-cli", "--", "ops", form];
    output(&mut project.cargo(&words), "firstlight ops")
}

/// The ops that a file's `op_table! { Name: path, ... }` lists, in its order.
fn op_names(source: &Source) -> Vec<String> {
    let is_start = |line: &String| line.trim_start().starts_with("op_table!");
    let Some(start) = source.code.iter().position(is_start) else { return Vec::new() };
    let body = source.code[start..].join("\n");
    let body = body.split_once(['{', '(']).map_or("", |(_, rest)| rest);
    let body = body.split(['}', ')']).next().unwrap_or_default();
    let names = body.split(',').filter_map(|row| row.split([':', '=']).next()).map(|name| name.trim().to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

fn out_of_order(names: &[String]) -> Option<(&str, &str)> {
    names.windows(2).find(|pair| pair[0] >= pair[1]).map(|pair| (pair[0].as_str(), pair[1].as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        op_names(&Source::new("crates/firstlight-graph/src/ops/mod.rs".into(), text))
    }

    #[test]
    fn the_table_is_read_and_its_order_checked() {
        let sorted = names(
            "macro_rules! op_table { () => {} }\nop_table! {\n    Add: add::Add, // sum\n    Relu: relu::Relu,\n}\n",
        );
        assert_eq!(sorted, ["Add", "Relu"]);
        assert_eq!(out_of_order(&sorted), None);
        let mixed = names("op_table! { Relu: a::b, Add: c::d }\n");
        assert_eq!(out_of_order(&mixed), Some(("Relu", "Add")));
        assert!(names("fn f() {}\n").is_empty());
    }
}
