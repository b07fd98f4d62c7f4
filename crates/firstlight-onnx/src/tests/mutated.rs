//! Damaged models: an error or another graph, which then keeps the graph's rules, but never a panic.

use super::*;

/// A model with every kind of message that the importer follows.
fn model() -> Vec<u8> {
    let branch = |name: &str| G::default().node("Add", &[name, "w"], &["s"]).output("s");
    let body = G::default()
        .value(11, "i", 7, None)
        .value(11, "go", 9, None)
        .value(11, "v", 1, None)
        .node("Relu", &["v"], &["n"])
        .output("go")
        .output("n");
    G::default()
        .input("c", 9, &[])
        .input("x", 1, &[2, 3])
        .input("w", 1, &[3])
        .float("w", &[1., 2., 3.])
        .node_with("Flatten", &["x"], &["f"], |n| attr_int(n, "axis", 1))
        .node_with("Constant", &[], &["k"], |n| attr_ints(n, "value_ints", &[1, -1]))
        .node("Reshape", &["f", "k"], &["r"])
        .node_with("If", &["c"], &["y"], |n| {
            attr_graph(n, "then_branch", branch("x"));
            attr_graph(n, "else_branch", branch("r"));
        })
        .node_with("Loop", &["", "c", "y"], &["z"], |n| attr_graph(n, "body", body))
        .node("l.F", &["z"], &["out"])
        .output("out")
        .model_with(17, |w| {
            w.message(25, |f| {
                f.text(1, "F").text(10, "l").text(4, "a").text(5, "b").text(6, "m");
                f.message(7, |n| _ = n.text(1, "a").text(2, "b").text(4, "Softmax"));
            });
        })
}

fn check(bytes: &[u8]) {
    if let Ok(imported) = load_bytes(bytes.to_vec(), &LoadOptions::default()) {
        imported.graph.verify().unwrap_or_else(|e| panic!("{e}\n{}", imported.graph));
    }
}

#[test]
fn the_model_itself_is_whole() {
    assert_eq!(import(model()).graph.outputs().len(), 1);
}

#[test]
fn every_flipped_bit_and_every_changed_byte() {
    let whole = model();
    let mut damaged = whole.clone();
    for i in 0..whole.len() {
        let replaced = (0..8).map(|bit| whole[i] ^ (1 << bit)).chain([0, 0x7f, 0x80, 0xff, whole[i].wrapping_add(1)]);
        for byte in replaced {
            damaged[i] = byte;
            check(&damaged);
        }
        damaged[i] = whole[i];
    }
}

#[test]
fn every_truncation_deletion_and_repetition() {
    let whole = model();
    for i in 0..whole.len() {
        check(&whole[..i]);
        check(&[&whole[..i], &whole[i + 1..]].concat());
        let end = (i + 9).min(whole.len());
        check(&[&whole[..end], &whole[i..]].concat());
    }
}
