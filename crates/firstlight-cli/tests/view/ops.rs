//! `firstlight ops`.

use crate::support::fails;
use crate::{has_in_order, json, says};
use firstlight::core::OpKind;

#[test]
fn all_ops_are_listed() {
    let page = says(&[&"ops"]);
    for kind in OpKind::ALL {
        let name = kind.name();
        assert!(page.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name} is not in:\n{page}");
    }
    let (list, _) = json(&[&"ops", &"--json"]);
    let list = list.as_array().unwrap();
    let names: Vec<&str> = list.iter().map(|op| op["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted() && OpKind::ALL.iter().all(|kind| names.contains(&kind.name())));
    let cast = list.iter().find(|op| op["name"] == "Cast").unwrap();
    assert_eq!((&cast["import"]["since"], &cast["attributes"][0]["name"]), (&1.into(), &"to".into()));
}

#[test]
fn one_op_has_a_page() {
    let info = OpKind::Conv.info();
    let page = says(&[&"ops", &"conv"]);
    has_in_order(
        &page,
        &["Conv\n", "opsets  1 to ", "INPUTS\n", "may be left out", "TYPES\n", "ATTRIBUTES\n", "KERNELS"],
    );
    for attribute in info.attributes {
        assert!(page.contains(attribute.name), "{page}");
    }
    let (op, _) = json(&[&"ops", &"Conv", &"--json"]);
    assert_eq!(op["attributes"].as_array().map(Vec::len), Some(info.attributes.len()));
    assert!(!op["kernels"].as_array().unwrap().is_empty());
    // An ONNX op without a row of its own has a page too.
    assert!(says(&[&"ops", &"Constant"]).contains("imported as other ops"));
}

#[test]
fn a_typo_is_met_with_names_that_exist() {
    let message = fails(2, &[&"ops", &"Softmxa"]);
    assert!(message.contains("there is no op \"Softmxa\"") && message.contains("did you mean Softmax"), "{message}");
    let message = fails(2, &[&"ops", &"qqqq"]);
    assert!(!message.contains("did you mean"), "{message}");
}

#[test]
fn the_reference_page_is_made_of_the_same_facts() {
    let page = says(&[&"ops", &"--markdown"]);
    assert!(page.starts_with("# Ops\n"));
    assert_eq!(page.matches("\n## ").count(), json(&[&"ops", &"--json"]).0.as_array().unwrap().len());
    has_in_order(&page, &["\n## Conv\n", OpKind::Conv.info().doc, "- ONNX: opset 1 to ", "- Kernels: "]);
}
