//! README.md says how much runs: its counts come from the program and from the suite's baseline.

use serde_json::Value;

use super::Report;
use crate::checks::BASELINE;
use crate::project::{Failure, Project, array, read, read_json, write};

const README: &str = "README.md";

/// Counts that are stale, and ops that are there though the page says that they are not.
pub(super) fn check(project: &Project, catalog: &Value, report: &mut Report) -> Result<(), Failure> {
    let text = read(&project.path(README))?;
    match renewed(&text, &counts(project, catalog)?) {
        Err(what) => report.find(README, format!("there is no number before {what:?}")),
        Ok(new) if new != text => report.find(README, "its counts are stale: cargo xtask tidy --fix"),
        Ok(_) => {}
    }
    for op in refused(&text).filter(|op| imported(catalog).any(|(name, _)| name == *op)) {
        report.find(README, format!("says that {op} is not imported, but it is"));
    }
    Ok(())
}

/// Writes the counts.
pub(super) fn write_counts(project: &Project, catalog: &Value) -> Result<(), Failure> {
    let path = project.path(README);
    // Where a number is missing, the check says so.
    match renewed(&read(&path)?, &counts(project, catalog)?) {
        Ok(new) => write(&path, &new),
        Err(_) => Ok(()),
    }
}

/// Numbers, and the words that follow them on the page.
fn counts(project: &Project, catalog: &Value) -> Result<Vec<(usize, String)>, Failure> {
    let n_ops = imported(catalog).count();
    let newest = imported(catalog).map(|(_, newest)| newest).max().unwrap_or(0);
    let baseline = read_json(&project.path(BASELINE))?;
    let cases = || baseline["cases"].as_object().into_iter().flatten();
    let n_passed = cases().filter(|(_, case)| case["verdict"] == "pass").count();
    let n_cases = cases().count();
    Ok(vec![
        (n_ops, " ONNX ops".to_owned()),
        (newest as usize, " ([docs/ops.md]".to_owned()),
        (n_cases, " cases of the official suite".to_owned()),
        (n_passed, format!(" of {n_cases} cases of the official suite")),
    ])
}

/// Name and newest opset of the ops that ONNX models may use.
fn imported(catalog: &Value) -> impl Iterator<Item = (&str, u64)> {
    array(catalog).iter().filter_map(|op| Some((op["name"].as_str()?, op["import"]["newest"].as_u64()?)))
}

/// The page with these numbers before those words, or the words that have no number before them.
fn renewed(text: &str, counts: &[(usize, String)]) -> Result<String, String> {
    let mut text = text.to_owned();
    for (n, after) in counts {
        let end = text.find(after).ok_or(after.as_str())?;
        let start = text[..end].trim_end_matches(|c: char| c.is_ascii_digit()).len();
        if start == end {
            return Err(after.clone());
        }
        text.replace_range(start..end, &n.to_string());
    }
    Ok(text)
}

/// The names that the page lists as not imported.
fn refused(text: &str) -> impl Iterator<Item = &str> {
    let list = text.split_once("- Not imported").map_or("", |(_, rest)| rest);
    let list = list.split("\n- ").next().unwrap_or_default();
    list.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_and_renewed() {
        let counts = [(7, " ops".to_owned()), (20, " cases".to_owned()), (3, " of 20 cases".to_owned())];
        assert_eq!(renewed("x 5 ops, 2 of 9 cases", &counts).as_deref(), Ok("x 7 ops, 3 of 20 cases"));
        assert_eq!(renewed("x ops", &counts), Err(" ops".to_owned()));
        assert_eq!(renewed("5 ops", &counts), Err(" cases".to_owned()));
    }

    #[test]
    fn the_refused_are_those_of_one_point() {
        let list: Vec<&str> = refused("- No `GPU`.\n- Not imported: `A`,\n  `B` and others.\n- No `C`.\n").collect();
        assert_eq!(list, ["A", "B"]);
    }
}
