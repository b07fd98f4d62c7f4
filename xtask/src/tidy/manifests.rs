//! Manifests: what a registry and docs.rs ask of each published crate, and features that are explained.

use serde_json::Value;

use super::Report;
use crate::project::{Failure, Package, Project, array, read};

/// What a registry shows of a crate.
const ASKED: &[&str] = &["description", "license", "readme", "rust_version"];
/// The most keywords that a registry takes.
const MOST_KEYWORDS: usize = 5;

pub(super) fn check(project: &Project, report: &mut Report) -> Result<(), Failure> {
    for package in project.packages.iter().filter(|package| package.is_published()) {
        let manifest = package.folder.join("Cargo.toml");
        let place = project.relative(&manifest);
        check_metadata(&package.metadata, &place, report);
        check_dependencies(package, &project.packages, &place, report);
        let page = package.folder.join("src/lib.rs");
        let page = if page.exists() { Some(read(&page)?) } else { None };
        check_features(&package.metadata, &read(&manifest)?, page.as_deref(), &place, report);
    }
    Ok(())
}

fn check_metadata(metadata: &Value, place: &str, report: &mut Report) {
    for key in ASKED {
        if metadata[*key].as_str().is_none_or(str::is_empty) {
            report.find(place, format!("a published crate needs `{}`", key.replace('_', "-")));
        }
    }
    let n_keywords = array(&metadata["keywords"]).len();
    if n_keywords == 0 || n_keywords > MOST_KEYWORDS {
        report.find(place, format!("{n_keywords} keywords, from 1 to {MOST_KEYWORDS} wanted"));
    }
    if array(&metadata["categories"]).is_empty() {
        report.find(place, "a published crate needs `categories`");
    }
    let is_library = array(&metadata["targets"]).iter().any(|target| array(&target["kind"]).contains(&"lib".into()));
    let docs = &metadata["metadata"]["docs"]["rs"];
    if is_library && (docs["all-features"] != true || array(&docs["targets"]).is_empty()) {
        report.find(place, "[package.metadata.docs.rs] needs `all-features = true` and `targets`");
    }
}

/// What a published crate is built from can be fetched from where it is published.
fn check_dependencies(package: &Package, all: &[Package], place: &str, report: &mut Report) {
    for dependency in package.dependencies.iter().filter(|d| d.is_local && !d.is_dev) {
        let name = &dependency.name;
        if !dependency.has_version {
            report.find(place, format!("the dependency {name} needs a version beside its path"));
        }
        if all.iter().any(|other| other.name == *name && !other.is_published()) {
            report.find(place, format!("it is published and its dependency {name} is not"));
        }
    }
}

/// Each feature has a comment in the manifest and, in a library, a row in the table of its first page.
fn check_features(metadata: &Value, manifest: &str, page: Option<&str>, place: &str, report: &mut Report) {
    let names = metadata["features"].as_object().into_iter().flatten().map(|(name, _)| name);
    for name in names.filter(|name| *name != "default") {
        let section = manifest.split_once("[features]").map_or("", |(_, rest)| rest);
        let lines: Vec<&str> = section.lines().map(str::trim).collect();
        let at = lines.iter().position(|line| line.split('=').next().is_some_and(|key| key.trim() == name));
        if !at.is_some_and(|at| at > 0 && lines[at - 1].starts_with('#')) {
            report.find(place, format!("the feature {name} has no comment above it"));
        }
        if page.is_some_and(|page| !page.contains(&format!("//! | `{name}` |"))) {
            report.find(place, format!("src/lib.rs has no row for the feature {name}: //! | `{name}` | off | .. |"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::project::Dependency;

    #[test]
    fn what_a_registry_asks_is_there() {
        let docs = json!({ "docs": { "rs": { "all-features": true, "targets": ["x86_64-unknown-linux-gnu"] } } });
        let whole = json!({
            "description": "d", "license": "MIT", "readme": "README.md", "rust_version": "1.95", "keywords": ["a"],
            "categories": ["science"], "targets": [{ "kind": ["lib"] }], "metadata": docs,
        });
        let findings = |key: &str, value: Value| {
            let (mut changed, mut report) = (whole.clone(), Report::default());
            changed[key] = value;
            check_metadata(&changed, "Cargo.toml", &mut report);
            report.findings.len()
        };
        assert_eq!(findings("license", json!("MIT")), 0);
        for key in ["description", "license", "readme", "rust_version", "keywords", "categories", "metadata"] {
            assert_eq!(findings(key, Value::Null), 1, "{key}");
        }
        assert_eq!(findings("keywords", json!(["a", "b", "c", "d", "e", "f"])), 1);
    }

    #[test]
    fn dependencies_can_be_fetched() {
        let package = |name: &str, publish: Value, dependencies| Package {
            name: name.into(),
            folder: "crates".into(),
            dependencies,
            metadata: json!({ "publish": publish }),
        };
        let findings = |is_dev, has_version, publish| {
            let dependency = Dependency { name: "b".into(), is_dev, is_local: true, has_version };
            let all = [package("a", Value::Null, vec![dependency]), package("b", publish, vec![])];
            let mut report = Report::default();
            check_dependencies(&all[0], &all, "Cargo.toml", &mut report);
            report.findings.len()
        };
        assert_eq!(findings(false, true, Value::Null), 0);
        assert_eq!(findings(false, false, Value::Null), 1);
        assert_eq!(findings(false, true, json!([])), 1);
        assert_eq!(findings(true, false, json!([])), 0);
    }

    #[test]
    fn features_are_explained() {
        let metadata = json!({ "features": { "default": ["fast"], "fast": [] } });
        let findings = |manifest: &str, page: Option<&str>| {
            let mut report = Report::default();
            check_features(&metadata, manifest, page, "Cargo.toml", &mut report);
            report.findings.len()
        };
        let (manifest, page) = ("[features]\n# Why.\nfast = []\n", "//! | `fast` | on | speed |\n");
        assert_eq!((findings(manifest, Some(page)), findings(manifest, None)), (0, 0));
        assert_eq!(findings("[features]\nfast = []\n", Some(page)), 1);
        assert_eq!(findings(manifest, Some("//! Fast.\n")), 1);
    }
}
