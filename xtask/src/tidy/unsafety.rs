//! Unsafe code: only in the modules the design names, each in the counted list of ARCHITECTURE.md.

use std::collections::BTreeMap;

use super::source::Source;
use super::{Report, files};
use crate::project::{Failure, Project, read, write};

/// The section of ARCHITECTURE.md that lists the modules: a table of path, count, purpose.
const SECTION: &str = "## Unsafe modules";

/// Where unsafe code may stand: path prefixes.
const ALLOWED: &[&str] = &[
    "crates/firstlight-tensor/src/mapped",
    "crates/firstlight-backend/src/memory",
    "crates/firstlight-backend/src/pool",
    "crates/firstlight-gemm/src/",
    "crates/firstlight-cpu/src/simd",
    "crates/firstlight-cpu/src/kernels/matmul_tiles",
    "crates/firstlight-cuda/src/ffi",
    "crates/firstlight-cuda/src/stream",
    "crates/firstlight-cuda/src/capture",
    "crates/firstlight-wgpu/src/ffi",
    "crates/firstlight-python/src/",
];

/// Tests and benchmarks that count allocations or call unsafe kernels.
const TESTS: &[&str] = &[
    "crates/firstlight-backend/tests/pool_allocations.rs",
    "crates/firstlight-cpu/tests/rows/launch.rs",
    "crates/firstlight-gemm/benches/product.rs",
];

/// Crates that hold some of those modules, and so cannot forbid unsafe code as a whole.
const CRATES: &[&str] = &[
    "firstlight-tensor",
    "firstlight-backend",
    "firstlight-gemm",
    "firstlight-cpu",
    "firstlight-cuda",
    "firstlight-wgpu",
    "firstlight-python",
];

pub(super) fn check(project: &Project, sources: &[Source], report: &mut Report) {
    for source in sources.iter().filter(|source| is_crate_root(&source.name)) {
        let has = |attribute: &str| source.code.iter().any(|line| line.contains(attribute));
        let may_hold_some =
            source.name.ends_with("/lib.rs") && source.room().is_some_and(|room| CRATES.contains(&room));
        let is_denied = may_hold_some && has("#![deny(unsafe_code)]");
        let is_allowed_whole = ALLOWED.iter().any(|prefix| prefix.ends_with('/') && source.name.starts_with(prefix));
        if !is_denied && !is_allowed_whole && !has("#![forbid(unsafe_code)]") {
            let wanted = if may_hold_some { "deny" } else { "forbid" };
            report.find(&source.name, format!("lacks #![{wanted}(unsafe_code)]"));
        }
    }
    let counts = counts(sources);
    for name in counts.keys().filter(|name| !is_allowed(name)) {
        report.find(name, "unsafe code outside the modules that the design allows");
    }
    let Ok(page) = std::fs::read_to_string(project.path("ARCHITECTURE.md")) else { return };
    let listed = listed(&page);
    for (name, count) in &counts {
        match listed.get(name.as_str()) {
            Some(n) if n == count => {}
            Some(n) => report.find(name, format!("{count} unsafe, ARCHITECTURE.md says {n} (cargo xtask tidy --fix)")),
            None => report.find(name, format!("unsafe code that {SECTION:?} of ARCHITECTURE.md does not list")),
        }
    }
    for name in listed.keys().filter(|name| !counts.contains_key(**name)) {
        report.find("ARCHITECTURE.md", format!("{name} is listed under {SECTION:?} and has no unsafe code"));
    }
}

/// Writes the present counts into the rows of ARCHITECTURE.md; rows themselves are written by hand.
pub(super) fn write_counts(project: &Project) -> Result<(), Failure> {
    let path = project.path("ARCHITECTURE.md");
    let page = read(&path)?;
    let all = files(&project.root).map_err(|e| Failure::Broken(format!("{}: {e}", project.root.display())))?;
    let sources: Vec<Source> = all
        .iter()
        .filter(|file| file.extension().is_some_and(|end| end == "rs"))
        .filter(|file| !project.relative(file).starts_with("bench/peers/"))
        .map(|file| Ok(Source::new(project.relative(file), &read(file)?)))
        .collect::<Result<_, Failure>>()?;
    let counts = counts(&sources);
    let listed = listed(&page);
    for (name, count) in counts.iter().filter(|(name, _)| !listed.contains_key(name.as_str())) {
        println!("a row that {SECTION:?} lacks: | `{name}` | {count} | what for |");
    }
    let lines: Vec<String> = page.lines().map(|line| recounted(line, &counts)).collect();
    write(&path, &(lines.join("\n") + "\n"))
}

fn recounted(line: &str, counts: &BTreeMap<String, usize>) -> String {
    let Some((name, _)) = row(line) else { return line.to_owned() };
    let Some(count) = counts.get(name) else { return line.to_owned() };
    let mut cells: Vec<String> = line.split('|').map(str::to_owned).collect();
    cells[2] = format!(" {count} ");
    cells.join("|")
}

/// Files with unsafe code, and how many times the keyword stands in each.
fn counts(sources: &[Source]) -> BTreeMap<String, usize> {
    let counted = sources.iter().map(|source| (source.name.clone(), source.count_word("unsafe")));
    counted.filter(|(_, count)| *count > 0).collect()
}

fn listed(page: &str) -> BTreeMap<&str, usize> {
    let section = page.split_once(SECTION).map_or("", |(_, rest)| rest);
    section.lines().skip(1).take_while(|line| !line.starts_with("## ")).filter_map(row).collect()
}

/// The path and the count of a table row such as ``| `crates/a/src/b.rs` | 3 | what for |``.
fn row(line: &str) -> Option<(&str, usize)> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let name = cells.next()?.trim_matches('`');
    let count = cells.next()?.parse().ok()?;
    name.ends_with(".rs").then_some((name, count))
}

/// Whether unsafe code may stand in a file: an allowed module, or a test that must give what only unsafe code can.
fn is_allowed(name: &str) -> bool {
    ALLOWED.iter().any(|prefix| name.starts_with(prefix))
        || (name.starts_with("crates/firstlight-cpu/src/") && name.ends_with("simd.rs"))
        || name.ends_with("/counting_allocator.rs")
        || TESTS.contains(&name)
}

fn is_crate_root(name: &str) -> bool {
    let Some(rest) = name.split_once("src/").map(|(_, rest)| rest) else { return false };
    rest == "lib.rs" || rest == "main.rs" || (rest.starts_with("bin/") && rest.matches('/').count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Map\n\n## Unsafe modules\n\n| module | unsafe | why |\n| --- | --- | --- |\n\
                        | `crates/firstlight-gemm/src/a.rs` | 2 | tiles |\n\n## Next\n| `crates/b.rs` | 1 | no |\n";

    #[test]
    fn the_list_is_that_section_alone() {
        assert_eq!(listed(PAGE), BTreeMap::from([("crates/firstlight-gemm/src/a.rs", 2)]));
    }

    #[test]
    fn counts_are_rewritten_and_nothing_else() {
        let counts = BTreeMap::from([("crates/firstlight-gemm/src/a.rs".to_owned(), 7)]);
        let line = "| `crates/firstlight-gemm/src/a.rs` | 2 | tiles |";
        assert_eq!(recounted(line, &counts), "| `crates/firstlight-gemm/src/a.rs` | 7 | tiles |");
        assert_eq!(recounted("| a | 2 | b |", &counts), "| a | 2 | b |");
    }

    #[test]
    fn crate_roots_and_allowed_modules() {
        assert!(is_crate_root("crates/a/src/lib.rs") && is_crate_root("crates/a/src/bin/x.rs"));
        assert!(!is_crate_root("crates/a/src/b.rs") && !is_crate_root("crates/a/src/b/lib.rs"));
        assert!(is_allowed("crates/firstlight-backend/src/memory.rs"));
        assert!(!is_allowed("crates/firstlight-exec/src/lib.rs"));
    }
}
