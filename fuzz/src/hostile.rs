//! Models made to hurt: deep, wide, huge, endless.

use crate::mutate::varint;
use crate::onnx::{Attr, BOOL, D, F32, Graph, I64, function, model, node, tensor};
use crate::rng::Rng;
use firstlight_tensor::wire::Writer;

/// A hostile model and what it is.
pub(crate) fn model_of(rng: &mut Rng) -> (&'static str, Vec<u8>) {
    type Make = fn(&mut Rng) -> Vec<u8>;
    const KINDS: &[(&str, Make)] = &[
        ("deep_branches", deep_branches),
        ("deep_types", deep_types),
        ("deep_bytes", deep_bytes),
        ("function_bomb", function_bomb),
        ("function_cycle", function_cycle),
        ("huge_weight", huge_weight),
        ("huge_input", huge_input),
        ("huge_result", huge_result),
        ("huge_range", huge_range),
        ("endless_loop", endless_loop),
        ("cycle", cycle),
        ("many_nodes", many_nodes),
        ("wide_node", wide_node),
        ("wide_captures", wide_captures),
        ("many_messages", many_messages),
        ("doubling", doubling),
        ("windows", windows),
    ];
    let (name, make) = rng.pick(KINDS);
    (name, make(rng))
}

/// Wraps bytes in messages, outermost wrap first: each is a prefix, then a field of that number.
fn nest(wraps: &[(Vec<u8>, u32)], times: usize, leaf: &[u8]) -> Vec<u8> {
    let n_wraps = wraps.len() * times;
    let mut headers: Vec<Vec<u8>> = Vec::with_capacity(n_wraps);
    let mut len = leaf.len();
    for i in (0..n_wraps).rev() {
        let (prefix, number) = &wraps[i % wraps.len()];
        // An empty field of that number, but for its length.
        let mut header = prefix.clone();
        header.extend(varint(u64::from(*number) << 3 | 2));
        header.extend(varint(len as u64));
        len += header.len();
        headers.push(header);
    }
    let mut out: Vec<u8> = headers.into_iter().rev().flatten().collect();
    out.extend_from_slice(leaf);
    out
}

fn written(fill: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    fill(&mut w);
    w.finish()
}

/// A model of one weight and one op on it.
fn one_op(op: &str, inputs: &[&str], attrs: &[Attr<'_>], fill: impl FnOnce(&mut Graph)) -> Vec<u8> {
    let mut g = Graph::new("one");
    g.input("x", F32, &[D::N(1), D::N(2), D::N(4), D::N(4)]).output("y", F32, &[]);
    fill(&mut g);
    model(&g.node(op, inputs, &["y"], attrs).encode(), &[])
}

fn deep_branches(rng: &mut Rng) -> Vec<u8> {
    let in_node = written(|w| {
        w.text(1, "c").text(2, "y").text(4, "If");
    });
    let in_attribute = written(|w| {
        w.text(1, "then_branch").i64(20, 5);
    });
    let in_graph = written(|w| {
        w.message(12, |w| crate::onnx::value_info(w, "y", F32, &[]));
    });
    let wraps = [(in_graph, 1), (in_node, 5), (in_attribute, 6)];
    let leaf = written(|w| {
        w.message(1, |w| node(w, "", "Relu", &["x"], &["y"], &[]));
    });
    let mut graph = Graph::new("deep").input("c", BOOL, &[]).input("x", F32, &[]).encode();
    graph.extend(nest(&wraps, 1 + rng.magnitude(5000), &leaf));
    model(&graph, &[])
}

fn deep_types(rng: &mut Rng) -> Vec<u8> {
    let number = *rng.pick(&[4, 9]);
    let ty = nest(&[(vec![], number), (vec![], 1)], 1 + rng.magnitude(50_000), &[]);
    let graph = written(|w| {
        w.message(11, |w| {
            w.text(1, "x").bytes(2, &ty);
        });
    });
    model(&graph, &[])
}

fn deep_bytes(rng: &mut Rng) -> Vec<u8> {
    let number = 1 + rng.below(26) as u32;
    if rng.one_in(3) {
        // Groups that are never closed.
        return varint(u64::from(number) << 3 | 3).repeat(1 + rng.magnitude(100_000));
    }
    nest(&[(vec![], 7), (vec![], number)], 1 + rng.magnitude(20_000), &[])
}

fn call_of(i: usize, inputs: &[&str], outputs: &[&str]) -> impl Fn(&mut Writer) {
    let (inputs, outputs): (Vec<String>, Vec<String>) =
        (inputs.iter().map(|&s| s.into()).collect(), outputs.iter().map(|&s| s.into()).collect());
    move |w| {
        inputs.iter().for_each(|name| {
            w.text(1, name);
        });
        outputs.iter().for_each(|name| {
            w.text(2, name);
        });
        w.text(4, &format!("f{i}")).text(7, "local");
    }
}

fn calling_graph() -> Vec<u8> {
    written(|w| {
        w.message(11, |w| crate::onnx::value_info(w, "x", F32, &[D::N(2)]));
        w.message(12, |w| crate::onnx::value_info(w, "y", F32, &[]));
        w.message(1, call_of(0, &["x"], &["y"]));
    })
}

/// Each function calls the next one several times: width to the power of depth nodes.
fn function_bomb(rng: &mut Rng) -> Vec<u8> {
    let (depth, width) = (1 + rng.below(40), 1 + rng.below(12));
    let make = |i: usize| {
        function(&format!("f{i}"), &["a"], &["b"], &[], |w| {
            if i + 1 == depth {
                w.message(7, |w| node(w, "", "Relu", &["a"], &["b"], &[]));
                return;
            }
            for j in 0..width {
                let from = if j == 0 { "a".to_owned() } else { format!("t{}", j - 1) };
                let to = if j + 1 == width { "b".to_owned() } else { format!("t{j}") };
                w.message(7, call_of(i + 1, &[&from], &[&to]));
            }
        })
    };
    model(&calling_graph(), &(0..depth).map(make).collect::<Vec<_>>())
}

fn function_cycle(rng: &mut Rng) -> Vec<u8> {
    let n = 1 + rng.magnitude(2000);
    let back = rng.below(n);
    let make = |i: usize| {
        let next = if i + 1 == n { back } else { i + 1 };
        function(&format!("f{i}"), &["a"], &["b"], &[], |w| {
            w.message(7, call_of(next, &["a"], &["b"]));
        })
    };
    model(&calling_graph(), &(0..n).map(make).collect::<Vec<_>>())
}

fn huge_dims(rng: &mut Rng) -> Vec<i64> {
    match rng.below(4) {
        0 => vec![1; 1 + rng.magnitude(100_000)],
        1 => vec![1 << 20, 1 << 20, 1 << 24],
        _ => (0..1 + rng.below(8)).map(|_| rng.odd_i64()).collect(),
    }
}

fn huge_weight(rng: &mut Rng) -> Vec<u8> {
    let (dims, dtype, field) = (huge_dims(rng), rng.below(27) as i64, *rng.pick(&[4, 5, 7, 9, 10, 11, 12]));
    one_op("Add", &["x", "w"], &[], |g| {
        g.tensor(&tensor("w", dtype, &dims, |w| {
            w.bytes(field, &[0; 8]);
        }));
    })
}

fn huge_input(rng: &mut Rng) -> Vec<u8> {
    let dims: Vec<D> = huge_dims(rng).into_iter().map(D::N).collect();
    let mut g = Graph::new("huge");
    g.input("x", F32, &dims).output("y", F32, &dims);
    let op = *rng.pick(&["Relu", "Shape", "Softmax", "Transpose", "NonZero", "Flatten", "ReduceMean"]);
    model(&g.node(op, &["x"], &["y"], &[]).encode(), &[])
}

/// A small model whose result is huge.
fn huge_result(rng: &mut Rng) -> Vec<u8> {
    let (a, b): (Vec<i64>, Vec<i64>) = (0..8).map(|_| (rng.odd_i64(), rng.odd_i64())).unzip();
    let n = rng.below(8);
    let dims = if rng.one_in(2) { vec![1 << 16, 1 << 15, 1 << rng.below(30)] } else { a[..n].to_vec() };
    let op = *rng.pick(&["ConstantOfShape", "Expand", "Reshape", "Pad", "Slice", "Squeeze", "Unsqueeze", "Gather"]);
    let inputs: &[&str] = match op {
        "ConstantOfShape" => &["d"],
        "Slice" => &["x", "d", "e", "axes", "steps"],
        _ => &["x", "d"],
    };
    one_op(op, inputs, &[], |g| {
        g.ints("d", &dims).ints("e", &b[..n]).ints("axes", &[0, 1, 2, 3][..n.min(4)]).ints("steps", &a[8 - n..]);
    })
}

fn huge_range(rng: &mut Rng) -> Vec<u8> {
    let is_float = rng.one_in(2);
    let values: Vec<[u8; 8]> = (0..3).map(|_| rng.odd_i64().to_le_bytes()).collect();
    let floats: Vec<[u8; 4]> = (0..3).map(|_| (rng.odd_f64() as f32).to_le_bytes()).collect();
    one_op("Range", &["a", "b", "c"], &[], |g| {
        for (i, name) in ["a", "b", "c"].into_iter().enumerate() {
            let dtype = if is_float { F32 } else { I64 };
            g.tensor(&tensor(name, dtype, &[], |w| {
                let bytes: &[u8] = if is_float { &floats[i] } else { &values[i] };
                w.bytes(9, bytes);
            }));
        }
    })
}

/// A loop of any number of trips that may also grow what it carries.
fn endless_loop(rng: &mut Rng) -> Vec<u8> {
    let grows = rng.one_in(2);
    let mut body = Graph::new("body");
    body.input("i", I64, &[]).input("go", BOOL, &[]).input("s", F32, &[D::Name("n")]);
    body.node("Identity", &["go"], &["go1"], &[]);
    match grows {
        true => body.node("Concat", &["s", "s"], &["s1"], &[Attr::Int("axis", 0)]),
        false => body.node("Identity", &["s"], &["s1"], &[]),
    };
    body.output("go1", BOOL, &[]).output("s1", F32, &[D::Name("n")]).output("s", F32, &[D::Name("n")]);
    let mut g = Graph::new("loop");
    g.int("trips", rng.odd_i64()).weights("start", &[2]).output("y", F32, &[]).output("all", F32, &[]);
    g.tensor(&tensor("yes", BOOL, &[], |w| {
        w.bytes(9, &[1]);
    }));
    let trips = if rng.one_in(3) { "" } else { "trips" };
    model(&g.node("Loop", &[trips, "yes", "start"], &["y", "all"], &[Attr::Graph("body", &body)]).encode(), &[])
}

/// Nodes that read each other in any way.
fn cycle(rng: &mut Rng) -> Vec<u8> {
    let n = 1 + rng.magnitude(3000);
    let mut g = Graph::new("cycle");
    g.input("v0", F32, &[D::N(2)]).output(&format!("v{n}"), F32, &[]);
    for i in 1..=n {
        let (a, b) = (rng.below(n + 1), if rng.one_in(2) { i - 1 } else { rng.below(n + 1) });
        let to = if rng.one_in(200) { rng.below(n + 1) } else { i };
        g.node("Add", &[&format!("v{a}"), &format!("v{b}")], &[&format!("v{to}")], &[]);
    }
    model(&g.encode(), &[])
}

/// A long chain, in order, backwards, or shuffled.
fn many_nodes(rng: &mut Rng) -> Vec<u8> {
    let n = 1 + rng.magnitude(20_000);
    let mut order: Vec<usize> = (1..=n).collect();
    match rng.below(3) {
        0 => order.reverse(),
        1 => (0..n).for_each(|i| order.swap(i, rng.below(n))),
        _ => {}
    }
    let mut g = Graph::new("many");
    g.input("v0", F32, &[D::N(2)]).output(&format!("v{n}"), F32, &[]);
    for i in order {
        g.node("Relu", &[&format!("v{}", i - 1)], &[&format!("v{i}")], &[]);
    }
    model(&g.encode(), &[])
}

fn wide_node(rng: &mut Rng) -> Vec<u8> {
    let op = *rng.pick(&["Concat", "Add", "Relu", "If", "Loop", "Unknown"]);
    let (n_in, n_out) = (rng.magnitude(50_000), 1 + rng.magnitude(if op == "Concat" { 2 } else { 50_000 }));
    let outputs: Vec<String> = (0..n_out).map(|i| format!("y{i}")).collect();
    let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
    let mut g = Graph::new("wide");
    g.input("x", F32, &[D::N(2)]).output("y0", F32, &[]);
    g.node(op, &vec!["x"; n_in], &outputs, &[Attr::Int("axis", 0)]);
    model(&g.encode(), &[])
}

/// Branches in branches, each of which captures many values from outside.
fn wide_captures(rng: &mut Rng) -> Vec<u8> {
    let (n, depth) = (1 + rng.magnitude(1500), 1 + rng.below(20));
    let mut inner = Graph::new("inner");
    for i in 0..n {
        inner.node("Add", &["x", &format!("v{i}")], &[&format!("t{i}")], &[]);
    }
    inner.output("t0", F32, &[]);
    for _ in 0..depth {
        let mut outer = Graph::new("outer");
        let branches = [Attr::Graph("then_branch", &inner), Attr::Graph("else_branch", &Graph::new("empty"))];
        outer.node("If", &["c"], &["t0"], &branches).output("t0", F32, &[]);
        inner = outer;
    }
    let mut g = inner;
    g.input("c", BOOL, &[]).input("x", F32, &[D::N(2)]);
    for i in 0..n {
        g.node("Relu", &["x"], &[&format!("v{i}")], &[]);
    }
    model(&g.encode(), &[])
}

/// Very many empty messages: small bytes that become large structures.
fn many_messages(rng: &mut Rng) -> Vec<u8> {
    let n = 1 + rng.magnitude(500_000);
    let number = *rng.pick(&[1, 5, 11, 12, 13, 15]);
    let empty = [(number << 3 | 2) as u8, 0];
    if rng.one_in(3) {
        return model(&[], &[]).into_iter().chain([0x42, 0].repeat(n)).collect();
    }
    model(&empty.repeat(n), &[])
}

/// Values that double at every node.
fn doubling(rng: &mut Rng) -> Vec<u8> {
    let n = 1 + rng.below(80);
    let mut g = Graph::new("doubling");
    if rng.one_in(2) {
        g.ints("v0", &[1, 2]).output(&format!("v{n}"), I64, &[]);
    } else {
        g.input("v0", F32, &[D::N(2)]).output(&format!("v{n}"), F32, &[]);
    }
    for i in 1..=n {
        let from = format!("v{}", i - 1);
        g.node("Concat", &[&from, &from], &[&format!("v{i}")], &[Attr::Int("axis", 0)]);
    }
    model(&g.encode(), &[])
}

/// Convolution and pooling windows of absurd sizes.
fn windows(rng: &mut Rng) -> Vec<u8> {
    let mut ints = |n: usize| (0..n).map(|_| if rng.one_in(2) { 1 } else { rng.odd_i64() }).collect::<Vec<i64>>();
    let (kernel, pads, strides, dilations) = (ints(2), ints(4), ints(2), ints(2));
    let group = ints(1)[0];
    let attrs = [
        Attr::Ints("kernel_shape", &kernel),
        Attr::Ints("pads", &pads),
        Attr::Ints("strides", &strides),
        Attr::Ints("dilations", &dilations),
        Attr::Int("group", group),
    ];
    let pool = rng.one_in(2);
    let op = if pool { "MaxPool" } else { "Conv" };
    let inputs: &[&str] = if pool { &["x"] } else { &["x", "w"] };
    one_op(op, inputs, if pool { &attrs[..4] } else { &attrs }, |g| {
        g.weights("w", &[2, 2, 1, 1]);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Kind, Message};

    #[test]
    fn nesting_writes_right_lengths() {
        let deep = nest(&[(vec![0x08, 1], 7), (vec![], 1)], 3, &[0x12, 0]);
        let tree = Message::parse(Kind::Model, &deep).unwrap();
        assert_eq!(tree.encode(), deep);
        assert!(tree.n_fields() >= 4);
    }

    #[test]
    fn hostile_models_are_messages() {
        let mut names = std::collections::BTreeSet::new();
        for i in 0..400 {
            let (name, bytes) = model_of(&mut Rng::new(3, i));
            names.insert(name);
            if name != "deep_bytes" {
                assert!(Message::parse(Kind::Model, &bytes).is_some(), "{name}");
            }
        }
        assert_eq!(names.len(), 17, "{names:?}");
    }
}
