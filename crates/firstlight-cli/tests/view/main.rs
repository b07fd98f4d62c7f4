//! The verbs that look at models: `inspect`, `check`, `ops`, `explain`.

#[path = "../support/mod.rs"]
mod support;

mod check;
mod explain;
mod inspect;
mod ops;

use serde_json::Value;
use std::ffi::OsStr;
use support::{firstlight, text};

/// What a command that succeeds prints.
fn says(args: &[&dyn AsRef<OsStr>]) -> String {
    let output = firstlight(args);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    let said = text(&output.stdout);
    assert!(!said.contains('\u{1b}'), "colours where there is no terminal: {said:?}");
    said
}

/// The JSON that a command prints, and its exit code.
fn json(args: &[&dyn AsRef<OsStr>]) -> (Value, Option<i32>) {
    let output = firstlight(args);
    let value = serde_json::from_slice(&output.stdout);
    let value = value.unwrap_or_else(|e| panic!("{e}: {}{}", text(&output.stdout), text(&output.stderr)));
    (value, output.status.code())
}

/// That a page has each of these parts, in this order.
fn has_in_order(page: &str, parts: &[&str]) {
    let mut rest = page;
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} is not, or not here, in:\n{page}"));
        rest = &rest[at + part.len()..];
    }
}
