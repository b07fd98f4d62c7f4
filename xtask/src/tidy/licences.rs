//! Licences of everything the workspace is built from, and a reason for each crate it names.

use std::collections::BTreeSet;

use super::Report;
use crate::project::{Failure, Project, array, cargo_metadata, read};

pub(super) fn check(project: &Project, report: &mut Report) -> Result<(), Failure> {
    let policy = match project.path("deny.toml") {
        path if path.exists() => read(&path)?,
        _ => return Ok(()),
    };
    let allowed = quoted_list(&policy, "allow");
    let metadata = cargo_metadata(&project.root, &[])?;
    for package in array(&metadata["packages"]) {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let is_allowed = is_satisfied(text("license"), &allowed);
        if !is_allowed {
            report.find("deny.toml", format!("{} {} is under {:?}", text("name"), text("version"), text("license")));
        }
    }
    let direct = project.packages.iter().flat_map(|p| &p.dependencies).filter(|d| !d.is_local).map(|d| &d.name);
    for name in direct.collect::<BTreeSet<_>>() {
        if !policy.lines().any(|line| line.starts_with(&format!("# {name}: "))) {
            report.find("deny.toml", format!("no reason for the dependency {name}: a line `# {name}: why`"));
        }
    }
    Ok(())
}

/// The strings of the first array called `name`.
fn quoted_list(toml: &str, name: &str) -> Vec<String> {
    let start = toml.lines().position(|line| line.replace(' ', "").starts_with(&format!("{name}=[")));
    let rest = toml.lines().skip(start.unwrap_or(usize::MAX)).collect::<Vec<_>>().join("\n");
    let body = rest.split(']').next().unwrap_or_default();
    body.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether a licence expression can be met with the allowed licences: AND and OR, brackets, `/` for OR.
fn is_satisfied(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let result = any_of(&words, &mut at, allowed);
    result && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut result = all_of(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        result |= all_of(words, at, allowed);
    }
    result
}

fn all_of(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut result = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        result &= one(words, at, allowed);
    }
    result
}

fn one(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let result = any_of(words, at, allowed);
        *at += 1;
        return result;
    }
    let mut name = (*word).to_owned();
    if words.get(*at) == Some(&"WITH") {
        name = format!("{name} WITH {}", words.get(*at + 1).unwrap_or(&""));
        *at += 2;
    }
    allowed.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let allowed =
            quoted_list("[licenses]\nallow = [\n  \"MIT\",\n  \"Unicode-3.0\",\n]\nother = [\"GPL\"]\n", "allow");
        assert_eq!(allowed, ["MIT", "Unicode-3.0"]);
        for (text, ok) in [
            ("MIT", true),
            ("MIT OR Apache-2.0", true),
            ("Apache-2.0/MIT", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("MIT AND Apache-2.0", false),
            ("Apache-2.0 WITH LLVM-exception OR MIT", true),
            ("Apache-2.0 WITH LLVM-exception", false),
            ("GPL-3.0", false),
            ("", false),
        ] {
            assert_eq!(is_satisfied(text, &allowed), ok, "{text}");
        }
    }
}
