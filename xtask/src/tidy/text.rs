//! Rules on the text of files: sizes, macros, comments, paths, and what libraries must not do.

use super::Report;
use super::source::{Source, words};

const MOST_LINES: usize = 1000;
const MANY_LINES: usize = 600;

/// Crates that are programs or tests: they may print, read the environment and exit.
const PROGRAMS: &[&str] = &["firstlight-cli", "firstlight-peer", "firstlight-server", "conformance"];

/// How many macros a crate of the core may define.
const MACROS: &[(&str, usize)] = &[("firstlight-graph", 3), ("firstlight-plan", 0), ("firstlight-exec", 0)];

/// What a comment must not say: it tells how the text came to be, or what is still to do.
const HISTORY: &[&str] = &[
    "previously",
    "formerly",
    "used to be",
    "was changed",
    "as of 20",
    "todo",
    "fixme",
    "xxx",
    "hack:",
    "refactored from",
    "old code",
    "new implementation",
    "issue #",
    "pull request",
    "pr #",
    "ticket",
];

/// Names that the glossary replaces, where the word has no other sense.
const NOT_OUR_WORDS: &[(&str, &str)] =
    &[("contiguize", "materialise"), ("declutter", "pass"), ("outlet", "value"), ("todo", "finished work")];

/// What a library must not do, and why.
const NOT_IN_LIBRARIES: &[(&str, &str)] = &[
    ("println!", "a library prints nothing"),
    ("eprintln!", "a library prints nothing"),
    ("print!", "a library prints nothing"),
    ("eprint!", "a library prints nothing"),
    ("dbg!", "a library prints nothing"),
    ("env::var", "a library reads no environment: take an option"),
    ("process::exit", "a library does not exit"),
    ("process::abort", "a library does not exit"),
];

/// Crates whose shipped code hashes nothing: a replay makes no look-ups by hash.
const NO_HASHING: &[&str] = &["firstlight-exec"];

/// Rules for every text file.
pub(super) fn check_any(name: &str, text: &str, report: &mut Report) {
    for (i, line) in text.lines().enumerate() {
        if let Some(folder) = machine_path(line) {
            report.find(format!("{name}:{}", i + 1), format!("names a path of one machine: {folder}"));
        }
    }
    if name.ends_with(".py") || name.ends_with(".sh") {
        for (i, line) in text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with('#')) {
            check_comment(&format!("{name}:{}", i + 1), line, report);
        }
    }
}

pub(super) fn check_sources(sources: &[Source], report: &mut Report) {
    for source in sources {
        check_size(source, report);
        for (i, line) in source.comments.iter().enumerate() {
            check_comment(&format!("{}:{}", source.name, i + 1), line, report);
        }
        check_code(source, report);
        if source.room().is_some_and(|room| !PROGRAMS.contains(&room)) {
            check_library(source, report);
        }
        if source.room().is_some_and(|room| NO_HASHING.contains(&room)) {
            check_hashing(source, report);
        }
    }
    for (room, most) in MACROS {
        let mine = sources.iter().filter(|source| source.room() == Some(*room));
        let n_macros: usize = mine.map(|source| source.count_word("macro_rules")).sum();
        if n_macros > *most {
            report.find(format!("crates/{room}"), format!("{n_macros} macro_rules!, at most {most} allowed"));
        }
    }
}

fn check_size(source: &Source, report: &mut Report) {
    let n_lines = source.code.len();
    if source.is_generated || n_lines <= MANY_LINES {
        return;
    }
    match n_lines > MOST_LINES {
        true => report.find(&source.name, format!("{n_lines} lines, at most {MOST_LINES}: split it by what it does")),
        false => report.note(format!("{}: {n_lines} lines, over {MANY_LINES}", source.name)),
    }
}

fn check_comment(place: &str, line: &str, report: &mut Report) {
    let lower = line.to_lowercase();
    for phrase in HISTORY {
        if find_phrase(&lower, phrase) {
            report.find(place, format!("comment says {phrase:?}: say what is true now"));
        }
    }
    let mut before = "";
    for word in words(line) {
        if before == "Phase" && word.starts_with(|c: char| c.is_ascii_digit()) {
            report.find(place, format!("comment says \"Phase {word}\": say what is true now"));
        }
        before = word;
    }
}

fn check_code(source: &Source, report: &mut Report) {
    for (i, line) in source.code.iter().enumerate() {
        let place = format!("{}:{}", source.name, i + 1);
        for (word, ours) in NOT_OUR_WORDS {
            if words(line).any(|w| w.to_lowercase().contains(word)) {
                report.find(&place, format!("{word:?} is not our word: {ours}"));
            }
        }
        if words(line).any(|w| w == "unimplemented") {
            report.find(&place, "unfinished");
        }
        if line.trim_start().starts_with("#[ignore") && !line.contains('=') {
            report.find(&place, "an ignored test says why, and which xtask verb runs it");
        }
    }
}

fn check_library(source: &Source, report: &mut Report) {
    for (i, line) in source.shipped() {
        for (call, why) in NOT_IN_LIBRARIES {
            let is_whole = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            if line.match_indices(call).any(|(at, _)| is_whole(at)) {
                report.find(format!("{}:{i}", source.name), format!("{call}: {why}"));
            }
        }
    }
}

fn check_hashing(source: &Source, report: &mut Report) {
    for (i, line) in source.shipped() {
        if let Some(word) = words(line).find(|word| matches!(*word, "HashMap" | "HashSet" | "Hasher" | "hash_map")) {
            report.find(format!("{}:{i}", source.name), format!("{word}: a replay makes no look-ups by hash"));
        }
    }
}

/// Whether `phrase` stands in `text` with no letter right before or after it.
fn find_phrase(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        let after = &text[at + phrase.len()..];
        let is_open = phrase.ends_with(|c: char| !c.is_alphanumeric()) || phrase.ends_with("20");
        !text[..at].ends_with(char::is_alphanumeric) && (is_open || !after.starts_with(char::is_alphanumeric))
    })
}

/// A path that exists on one machine only: under a home folder or a workplace's root.
fn machine_path(line: &str) -> Option<String> {
    const ROOTS: &[&str] = &["home", "root", "work", "farm", "Users", "tmp"];
    for (at, _) in line.match_indices('/') {
        let (before, after) = (&line[..at], &line[at + 1..]);
        let Some((first, rest)) = after.split_once('/') else { continue };
        let is_absolute = !before.ends_with(|c: char| c.is_alphanumeric() || "_-.$}/~*)]{".contains(c));
        if is_absolute && ROOTS.contains(&first) && rest.starts_with(|c: char| c.is_alphanumeric()) {
            return Some(format!("/{first}/..."));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(name: &str, text: &str) -> Vec<String> {
        let mut report = Report::default();
        check_any(name, text, &mut report);
        if name.ends_with(".rs") {
            check_sources(&[Source::new(name.into(), text)], &mut report);
        }
        report.findings
    }

    #[test]
    fn each_rule_finds_its_kind() {
        let path = ["/wo", "rk/shared/x"].concat();
        for (text, words) in [
            ("// it used to be slow\n".to_owned(), "used to be"),
            ("// TODO: more\n".to_owned(), "todo"),
            ("/// Phase 2 of it\n".to_owned(), "Phase 2"),
            ("fn declutter_it() {}\n".to_owned(), "declutter"),
            ("fn f() { println!(\"x\"); }\n".to_owned(), "prints nothing"),
            ("fn f() { std::env::var(\"X\"); }\n".to_owned(), "environment"),
            ("#[ignore]\nfn f() {}\n".to_owned(), "says why"),
            ("macro_rules! a { () => {} }\n".to_owned(), "macro_rules"),
            (format!("const A: &str = \"{path}\";\n"), "one machine"),
            ("fn f() {}\n".repeat(1001), "1001 lines"),
        ] {
            let found = findings("crates/firstlight-plan/src/x.rs", &text);
            assert!(found.iter().any(|f| f.contains(words)), "{words}: {found:?}");
        }
    }

    #[test]
    fn what_is_fine_is_not_found() {
        let text = "// The mattock exchange, previous one, at https://example.org/home/page\nfn f() { eprintln(); }\n\
                    #[ignore = \"slow: cargo xtask bars\"]\n#[cfg(test)]\nmod tests { fn g() { println!(\"x\"); } }\n";
        assert_eq!(findings("crates/firstlight-plan/src/x.rs", text), Vec::<String>::new());
        let hashing = "use std::collections::HashMap;\n";
        assert!(!findings("crates/firstlight-exec/src/x.rs", hashing).is_empty());
        assert!(findings("crates/firstlight-plan/src/x.rs", hashing).is_empty());
        assert_eq!(
            findings("crates/firstlight-cli/src/main.rs", "fn f() { println!(\"x\"); }\n"),
            Vec::<String>::new()
        );
    }
}
