use super::*;

fn relu_of(name: &str) -> G {
    G::default().node("Relu", &[name], &["r"]).output("r")
}

fn if_node(g: G, then: G, other: G) -> G {
    g.node_with("If", &["c"], &["y"], |n| {
        attr_graph(n, "then_branch", then);
        attr_graph(n, "else_branch", other);
    })
}

fn inputs() -> G {
    G::default().input("c", 9, &[]).input("a", 1, &[2]).input("b", 1, &[2])
}

#[test]
fn both_branches_take_the_captures_of_either() {
    let other = G::default().node("Add", &["b", "a"], &["s"]).output("s");
    let graph = import(if_node(inputs(), relu_of("a"), other).output("y").model(17)).graph;
    let node = &graph.nodes()[3];
    assert_eq!(node.inputs.iter().map(|i| i.unwrap().node.0).collect::<Vec<_>>(), [0, 1, 2]);
    let Op::If(op) = &node.op else { panic!("{graph}") };
    for branch in [&op.then_branch, &op.else_branch] {
        assert_eq!(branch.inputs().iter().map(|i| i.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(branch.inputs()[0].spec.dtype, DType::F32);
    }
    // What only the second one reads comes last in the first one.
    assert_eq!(kinds(&op.then_branch), ["Input", "Relu", "Input"]);
    assert_eq!(kinds(&op.else_branch), ["Input", "Input", "Add"]);
}

#[test]
fn constants_are_repeated_inside_and_values_go_down_level_by_level() {
    let innermost = || G::default().node("Add", &["t", "w"], &["s"]).output("s");
    let middle = if_node(G::default(), innermost(), innermost()).output("y");
    let g = inputs().float("w", &[1., 2.]).node("Relu", &["a"], &["t"]);
    let graph = import(if_node(g, middle, relu_of("t")).output("y").model(17)).graph;
    let Op::If(outer) = &graph.nodes().last().unwrap().op else { panic!("{graph}") };
    assert_eq!(kinds(&graph), ["Input", "Input", "Input", "Relu", "If"]);
    let Op::If(inner) = &outer.then_branch.nodes().last().unwrap().op else { panic!("{graph}") };
    assert_eq!(kinds(&inner.then_branch), ["Input", "Const", "Add"]);
    let names = |g: &Graph| g.inputs().iter().map(|i| i.name.clone()).collect::<Vec<_>>();
    assert_eq!(
        (names(&outer.then_branch), names(&inner.else_branch)),
        (vec!["c".into(), "t".into()], vec!["t".to_owned()])
    );
}

#[test]
fn a_branch_reads_names_of_the_function_around_it() {
    let f = {
        let mut w = Writer::new();
        w.text(1, "F").text(10, "l").text(4, "c").text(4, "v").text(5, "y");
        let body = if_node(G::default().node("Relu", &["v"], &["inner"]), relu_of("inner"), relu_of("v")).0.finish();
        let mut r = firstlight_tensor::wire::Reader::new(&body);
        while let Some(f) = r.next_field("body").unwrap() {
            w.bytes(7, f.span("body").unwrap().bytes);
        }
        w.finish()
    };
    let g = inputs().node("l.F", &["c", "b"], &["y"]).output("y");
    let graph = import(g.model_with(17, |w| _ = w.bytes(25, &f))).graph;
    let Op::If(op) = &graph.nodes().last().unwrap().op else { panic!("{graph}") };
    let names: Vec<_> = op.then_branch.inputs().iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["F_0/inner", "b"]);
}

#[test]
fn branches_that_do_not_fit() {
    let two = G::default().node("Relu", &["a"], &["r"]).output("r").output("a");
    let e = error(if_node(inputs(), two, relu_of("a")).output("y").model(17));
    assert_eq!(e, "node `If_0` (If): its branches give 2 and 1 values, the node has 1 outputs");
    let with_input = G::default().input("i", 1, &[]).output("i");
    let e = error(if_node(inputs(), with_input, relu_of("a")).output("y").model(17));
    assert!(e.contains("should have 0 inputs, it has 1"), "{e}");
    let e = error(if_node(inputs(), relu_of("nowhere"), relu_of("a")).output("y").model(17));
    assert_eq!(e, "node `Relu_0` (Relu) inside node `If_0` reads value `nowhere`, which nothing gives");
    let flat = G::default().node_with("Flatten", &["a"], &["f"], |n| attr_int(n, "ax", 1)).output("f");
    let e = error(if_node(inputs(), flat, relu_of("a")).output("y").model(17));
    assert!(e.starts_with("node `If_0/Flatten_0` (Flatten)"), "{e}");
    let e = error(inputs().node("If", &["c"], &["y"]).output("y").model(17));
    assert!(e.contains("attribute `then_branch` is missing"), "{e}");
}

fn body() -> G {
    G::default()
        .value(11, "i", 0, None)
        .value(11, "cond", 0, None)
        .value(11, "sum", 0, None)
        .node("Add", &["sum", "b"], &["next"])
        .output("cond")
        .output("next")
        .output("sum")
}

#[test]
fn loops_carry_capture_and_scan() {
    let g = inputs().input("n", 7, &[]).node_with("Loop", &["n", "", "a"], &["last", "scan"], |n| {
        attr_graph(n, "body", body());
    });
    let graph = import(g.node("Add", &["last", "a"], &["y"]).output("y").output("scan").model(17)).graph;
    assert!(graph.to_string().contains("Loop(%3, _, %1, %2) {body=below, n_carried=1}"), "{graph}");
    let Op::Loop(op) = &graph.nodes()[4].op else { panic!("{graph}") };
    let specs: Vec<_> = op.body.inputs().iter().map(|i| (i.name.as_str(), i.spec.dtype)).collect();
    assert_eq!(specs, [("i", DType::I64), ("cond", DType::Bool), ("sum", DType::F32), ("b", DType::F32)]);
}

#[test]
fn loops_that_do_not_fit() {
    let looped = |inputs_of: &[&str], outputs: &[&str]| {
        let g = inputs().node_with("Loop", inputs_of, outputs, |n| attr_graph(n, "body", body()));
        load_bytes(g.output("y").model(17), &LoadOptions::default())
    };
    // A scan that nobody reads is still an output of the node.
    let graph = looped(&["", "c", "a"], &["y"]).unwrap().graph;
    graph.verify().unwrap();
    let e = looped(&["", "c"], &["y"]).unwrap_err().to_string();
    assert!(e.contains("should have 2 inputs, it has 3"), "{e}");
    let e = looped(&["", "c", ""], &["y"]).unwrap_err().to_string();
    assert!(e.contains("a carried value is missing"), "{e}");
    let e = looped(&["", "c", "a"], &["y", "z", "w"]).unwrap_err().to_string();
    assert!(e.contains("its body gives 3 values"), "{e}");
}
