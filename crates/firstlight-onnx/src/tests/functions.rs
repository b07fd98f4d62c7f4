use super::*;

/// A function of domain `l` with inputs, outputs and a body.
fn function(name: &str, inputs: &[&str], outputs: &[&str], body: G, fill: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    w.text(1, name).text(10, "l");
    inputs.iter().for_each(|i| _ = w.text(4, i));
    outputs.iter().for_each(|o| _ = w.text(5, o));
    // A body is a list of nodes: field 1 of a graph, field 7 of a function.
    let body = body.0.finish();
    let mut r = firstlight_tensor::wire::Reader::new(&body);
    while let Some(f) = r.next_field("body").unwrap() {
        w.bytes(7, f.span("body").unwrap().bytes);
    }
    fill(&mut w);
    w.finish()
}

fn model(g: G, functions: &[Vec<u8>]) -> Vec<u8> {
    g.model_with(17, |w| functions.iter().for_each(|f| _ = w.bytes(25, f)))
}

fn x() -> G {
    G::default().input("x", 1, &[2, 3])
}

#[test]
fn calls_are_inlined_under_the_callers_names() {
    let double = function("Double", &["a"], &["b"], G::default().node("Add", &["a", "a"], &["b"]), |_| ());
    let body = G::default().node("l.Double", &["p"], &["t"]).node("Relu", &["t"], &["q"]);
    let outer = function("Outer", &["p"], &["q"], body, |_| ());
    let g = x().node("l.Outer", &["x"], &["y"]).node_with("l.Outer", &["y"], &["z"], |n| _ = n.text(3, "again"));
    let graph = import(model(g.output("z"), &[double, outer])).graph;
    assert_eq!(kinds(&graph), ["Input", "Add", "Relu", "Add", "Relu"]);
    let names: Vec<_> = graph.nodes().iter().map(|n| (n.name.as_str(), n.outputs[0].as_str())).collect();
    assert_eq!(
        names,
        [
            ("x", "x"),
            ("Outer_0/Double_0/Add_0", "Outer_0/t"),
            ("Outer_0/Relu_1", "y"),
            ("again/Double_0/Add_0", "again/t"),
            ("again/Relu_1", "z"),
        ]
    );
}

#[test]
fn attributes_are_bound_through_calls() {
    let body = || G::default().node_with("Flatten", &["a"], &["b"], |n| attr_ref(n, "axis", "n"));
    let inner = function("Inner", &["a"], &["b"], body(), |w| {
        w.message(11, |a| _ = a.text(1, "n").i64(20, 2).i64(3, 2));
    });
    let body = G::default().node_with("l.Inner", &["a"], &["b"], |n| attr_ref(n, "n", "m"));
    let outer = function("Outer", &["a"], &["b"], body, |w| _ = w.text(6, "m"));
    let axis = |fill: fn(&mut Writer)| {
        let g = x().node_with("l.Outer", &["x"], &["y"], fill).output("y");
        import(model(g, &[inner.clone(), outer.clone()])).graph.to_string()
    };
    assert!(axis(|n| attr_int(n, "m", 0)).contains("{axis=0}"));
    // What the caller leaves out is left out on the way, and the innermost default holds.
    assert!(axis(|_| ()).contains("{axis=2}"));

    let fails = |f: &[Vec<u8>], fill: fn(&mut Writer)| {
        error(model(x().node_with("l.Outer", &["x"], &["y"], fill).output("y"), f))
    };
    let e = fails(&[inner.clone(), outer.clone()], |n| attr_int(n, "n", 0));
    assert_eq!(e, "node `Outer_0` (l.Outer): it has no attribute `n`");
    let e = fails(&[inner.clone(), outer.clone()], |n| attr_ints(n, "m", &[0]));
    assert!(e.contains("refers to `m` as kind 2, but that is INTS"), "{e}");
    let undeclared = function("Outer", &["a"], &["b"], body_of_undeclared(), |_| ());
    assert!(fails(&[undeclared], |_| ()).contains("refers to `n`, which no function around it declares"));
}

fn body_of_undeclared() -> G {
    G::default().node_with("Flatten", &["a"], &["b"], |n| attr_ref(n, "axis", "n"))
}

#[test]
fn a_body_has_its_own_names_opset_and_order() {
    // At opset 9 axes are an attribute, whatever the model's opset. The nodes are out of order.
    let body =
        G::default().node("Relu", &["s"], &["b"]).node_with("Squeeze", &["x"], &["s"], |n| attr_ints(n, "axes", &[0]));
    let f = function("F", &["x"], &["b"], body, |w| _ = w.message(9, |o| _ = o.i64(2, 9)));
    let g = x().node("Relu", &["x"], &["s"]).node("l.F", &["s"], &["y"]).output("y");
    let imported = import(model(g, std::slice::from_ref(&f)));
    assert_eq!(kinds(&imported.graph), ["Input", "Relu", "Const", "Squeeze", "Relu"]);
    assert_eq!(imported.warnings, ["the nodes of function l.F are not in topological order; they were sorted"]);
    // The caller's names are not the body's.
    let leak = function("F", &["a"], &["b"], G::default().node("Relu", &["x"], &["b"]), |_| ());
    let e = error(model(x().node("l.F", &["x"], &["y"]).output("y"), &[leak]));
    assert_eq!(e, "node `F_0/Relu_0` (Relu) reads value `x`, which nothing gives");
}

#[test]
fn inputs_and_outputs_may_be_left_out_or_handed_through() {
    let body = G::default().node("Slice", &["a", "s", "e", "axes", "steps"], &["b"]);
    let f = function("F", &["a", "s", "e", "axes", "steps"], &["b", "a"], body, |_| ());
    let g = x().input("i", 7, &[1]).node("l.F", &["x", "i", "i", "", "i"], &["y", "same"]).output("y").output("same");
    let graph = import(model(g, std::slice::from_ref(&f))).graph;
    assert!(graph.to_string().contains("Slice(%0, %1, %1, _, %1)"), "{graph}");
    assert_eq!(graph.outputs()[1].1, graph.inputs()[0].value);
    let fails = |inputs: &[&str], outputs: &[&str]| {
        error(model(x().input("i", 7, &[1]).node("l.F", inputs, outputs).output("y"), std::slice::from_ref(&f)))
    };
    assert!(fails(&["x"; 6], &["y"]).contains("node `F_0` (l.F): it takes 5 inputs, got 6"));
    assert!(fails(&["x"], &["y", "z", "w"]).contains("it has 2 outputs, got 3"));
    assert!(fails(&["", "i", "i"], &["y"]).contains("Slice needs its input 0"));
}

#[test]
fn overloads_and_functions_named_like_ops() {
    let with = |overload: &str, op: &str| {
        function("F", &["a"], &["b"], G::default().node(op, &["a"], &["b"]), |w| _ = w.text(13, overload))
    };
    let f = [with("", "Relu"), with("flat", "Flatten")];
    let g = x().node_with("l.F", &["x"], &["y"], |n| _ = n.text(8, "flat")).output("y");
    assert_eq!(kinds(&import(model(g, &f)).graph), ["Input", "Flatten"]);
    let twice = [with("", "Relu"), with("", "Relu")];
    assert!(error(model(x(), &twice)).contains("function l.F is defined twice"));
    // A function comes before the op of its name.
    let mut own = Writer::new();
    own.text(1, "Relu").text(4, "a").text(5, "b");
    own.message(7, |n| _ = n.text(1, "a").text(2, "b").text(4, "Flatten"));
    let g = x().node("Relu", &["x"], &["y"]).output("y");
    assert_eq!(kinds(&import(model(g, &[own.finish()])).graph), ["Input", "Flatten"]);
}

#[test]
fn recursion_and_bombs_are_refused() {
    let calls = |name: &str, to: &str| function(name, &["a"], &["b"], G::default().node(to, &["a"], &["b"]), |_| ());
    let g = || x().node("l.A", &["x"], &["y"]).output("y");
    let e = error(model(g(), &[calls("A", "l.B"), calls("B", "l.A")]));
    assert_eq!(e, "node `A_0/B_0/A_0` (l.A): functions cannot call themselves: l.A -> l.B -> l.A");

    // Each function calls the next one twice.
    let mut bomb: Vec<_> = (0..30)
        .map(|i| {
            let next = format!("l.F{}", i + 1);
            let body = G::default().node(&next, &["a"], &["t"]).node(&next, &["t"], &["b"]);
            function(&format!("F{i}"), &["a"], &["b"], body, |_| ())
        })
        .collect();
    bomb.push(function("F30", &["a"], &["b"], G::default().node("Relu", &["a"], &["b"]), |_| ()));
    let g = x().node("l.F0", &["x"], &["y"]).output("y");
    let bytes = model(g, &bomb);
    let limit = |limits: Limits| {
        let options = LoadOptions { limits, ..LoadOptions::default() };
        match load_bytes(bytes.clone(), &options).unwrap_err() {
            LoadError::Limit { limit, .. } => limit,
            other => panic!("{other}"),
        }
    };
    assert_eq!(limit(Limits { function_expansion: 1000, ..Limits::default() }), "function_expansion");
    assert_eq!(limit(Limits { nesting: 8, ..Limits::default() }), "nesting");
}
