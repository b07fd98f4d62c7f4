//! Whole models, written message by message.

mod control;
mod functions;
mod look;
mod mutated;
mod opsets;
mod resizes;
mod windows;

use super::*;
use firstlight_graph::Op;
use firstlight_tensor::wire::Writer;
use firstlight_tensor::{DType, Tensor};

/// Writes the parts of a graph.
#[derive(Default)]
pub(crate) struct G(Writer);

impl G {
    pub(crate) fn node(self, op: &str, inputs: &[&str], outputs: &[&str]) -> Self {
        self.node_with(op, inputs, outputs, |_| ())
    }

    pub(crate) fn node_with(mut self, op: &str, i: &[&str], o: &[&str], fill: impl FnOnce(&mut Writer)) -> Self {
        self.0.message(1, |n| {
            let (domain, op) = op.rsplit_once('.').unwrap_or(("", op));
            i.iter().for_each(|name| _ = n.text(1, name));
            o.iter().for_each(|name| _ = n.text(2, name));
            n.text(4, op);
            if !domain.is_empty() {
                n.text(7, domain);
            }
            fill(n);
        });
        self
    }

    pub(crate) fn float(mut self, name: &str, values: &[f32]) -> Self {
        let tensor = Tensor::from_slice([values.len()], values).unwrap();
        self.0.bytes(5, &firstlight_tensor::pb::write_tensor(name, &tensor).unwrap());
        self
    }

    pub(crate) fn input(self, name: &str, dtype: i64, dims: &[i64]) -> Self {
        self.value(11, name, dtype, Some(dims))
    }

    pub(crate) fn output(self, name: &str) -> Self {
        self.value(12, name, 0, None)
    }

    pub(crate) fn value(mut self, field: u32, name: &str, dtype: i64, dims: Option<&[i64]>) -> Self {
        self.0.message(field, |v| {
            v.text(1, name);
            if dtype > 0 {
                v.message(2, |t| {
                    t.message(1, |t| {
                        t.i64(1, dtype);
                        if let Some(dims) = dims {
                            t.message(2, |s| dims.iter().for_each(|d| _ = s.message(1, |w| _ = w.i64(1, *d))));
                        }
                    });
                });
            }
        });
        self
    }

    pub(crate) fn model(self, opset: i64) -> Vec<u8> {
        self.model_with(opset, |_| ())
    }

    pub(crate) fn model_with(self, opset: i64, fill: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut w = Writer::new();
        w.i64(1, 10).message(8, |o| _ = o.i64(2, opset)).bytes(7, &self.0.finish());
        fill(&mut w);
        w.finish()
    }
}

pub(crate) fn attr_int(n: &mut Writer, name: &str, v: i64) {
    n.message(5, |a| _ = a.text(1, name).i64(20, 2).i64(3, v));
}

pub(crate) fn attr_ints(n: &mut Writer, name: &str, v: &[i64]) {
    n.message(5, |a| _ = a.text(1, name).i64(20, 7).packed_i64(8, v));
}

pub(crate) fn attr_text(n: &mut Writer, name: &str, v: &str) {
    n.message(5, |a| _ = a.text(1, name).i64(20, 3).text(4, v));
}

pub(crate) fn attr_graph(n: &mut Writer, name: &str, g: G) {
    n.message(5, |a| _ = a.text(1, name).i64(20, 5).bytes(6, &g.0.finish()));
}

pub(crate) fn attr_ref(n: &mut Writer, name: &str, theirs: &str) {
    n.message(5, |a| _ = a.text(1, name).text(21, theirs).i64(20, 2));
}

pub(crate) fn import(bytes: Vec<u8>) -> Imported {
    let imported = load_bytes(bytes, &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    imported.graph.verify().unwrap_or_else(|e| panic!("{e}\n{}", imported.graph));
    imported
}

pub(crate) fn error(bytes: Vec<u8>) -> String {
    load_bytes(bytes, &LoadOptions::default()).map(|i| i.graph.to_string()).unwrap_err().to_string()
}

/// The ops of a graph, in order.
pub(crate) fn kinds(graph: &Graph) -> Vec<&'static str> {
    graph.nodes().iter().map(|n| n.op.kind().name()).collect()
}

#[test]
fn a_small_model() {
    let bytes = G::default()
        .input("x", 1, &[4])
        .float("w", &[1., 2., 3., 4.])
        .node("Add", &["x", "w"], &["y"])
        .value(12, "y", 1, Some(&[4]))
        .model_with(17, |w| {
            w.text(2, "maker").text(3, "2.0").i64(5, 3);
            w.message(14, |m| _ = m.text(1, "k").text(2, "v"));
        });
    let imported = import(bytes);
    assert_eq!(kinds(&imported.graph), ["Input", "Const", "Add"]);
    assert_eq!(imported.graph.inputs()[0].spec, Spec::known(DType::F32, &[4]));
    assert_eq!(imported.outputs, [("y".into(), Some(Spec::known(DType::F32, &[4])))]);
    assert_eq!(imported.graph.nodes()[2].name, "Add_0");
    assert!(imported.warnings.is_empty());
    let m = imported.metadata;
    assert_eq!((m.ir_version, m.producer, m.model_version), (10, ("maker".into(), "2.0".into()), 3));
    assert_eq!((m.opsets, m.properties), (vec![(String::new(), 17)], vec![("k".into(), "v".into())]));
}

#[test]
fn weights_are_ranges_of_the_file() {
    let bytes = G::default().input("x", 1, &[2]).float("w", &[1., 2.]).node("Add", &["x", "w"], &["y"]).output("y");
    let path = std::env::temp_dir().join(format!("firstlight-onnx-{}.onnx", std::process::id()));
    std::fs::write(&path, bytes.model(17)).unwrap();
    for map in [true, false] {
        let imported = load(&path, &LoadOptions { map, ..LoadOptions::default() }).unwrap();
        let Op::Const(w) = &imported.graph.nodes()[1].op else { panic!("{}", imported.graph) };
        assert_eq!(w.tensor.bytes().owned_len(), 0);
        assert_eq!(&w.tensor.values::<f32>().unwrap()[..], [1., 2.]);
    }
    std::fs::remove_file(&path).unwrap();
    assert!(load(&path, &LoadOptions::default()).unwrap_err().to_string().contains("there is no such file"));
    assert!(load(&std::env::temp_dir(), &LoadOptions::default()).unwrap_err().to_string().contains("directory"));
}

#[test]
fn only_what_is_read_becomes_a_node() {
    let g = G::default().input("x", 1, &[2]).float("unread", &[1.]).node("Relu", &["x"], &["y"]).output("y");
    assert_eq!(kinds(&import(g.model(17)).graph), ["Input", "Relu"]);
}

#[test]
fn initializers_listed_as_inputs_stay_overridable() {
    let g = G::default()
        .float("w", &[1., 2.])
        .input("x", 1, &[2])
        .input("w", 1, &[2])
        .node("Add", &["x", "w"], &["y"])
        .output("y");
    let graph = import(g.model(17)).graph;
    assert_eq!(kinds(&graph), ["Input", "Input", "Add"]);
    assert!(graph.inputs()[0].default.is_none());
    let default = graph.inputs()[1].default.as_ref().unwrap();
    assert_eq!(&default.values::<f32>().unwrap()[..], [1., 2.]);
    let e = error(G::default().float("w", &[1.]).input("w", 7, &[1]).model(17));
    assert!(e.contains("input `w`: it is declared i64, its initializer holds f32"), "{e}");
}

#[test]
fn symbolic_dims_keep_their_names() {
    let mut g = G::default();
    g.0.message(11, |v| {
        v.text(1, "x").message(2, |t| {
            _ = t.message(1, |t| {
                t.i64(1, 1).message(2, |s| {
                    s.message(1, |d| _ = d.text(2, "batch"));
                    s.message(1, |d| _ = d.i64(1, -1));
                    s.message(1, |_| ());
                    s.message(1, |d| _ = d.i64(1, 3));
                });
            });
        });
    });
    let graph = import(g.node("Relu", &["x"], &["y"]).output("y").model(17)).graph;
    assert_eq!(graph.inputs()[0].spec.to_string(), "f32[batch,?,?,3]");
}

#[test]
fn unsorted_nodes_are_sorted_with_a_warning() {
    let g = G::default()
        .input("x", 1, &[2])
        .node("Add", &["a", "b"], &["y"])
        .node("Relu", &["a"], &["b"])
        .node("Relu", &["x"], &["a"])
        .output("y");
    let imported = import(g.model(17));
    assert_eq!(kinds(&imported.graph), ["Input", "Relu", "Relu", "Add"]);
    assert_eq!(imported.warnings, ["the nodes are not in topological order; they were sorted"]);
}

#[test]
fn what_a_subgraph_reads_counts_for_the_order() {
    let branch = || G::default().node("Relu", &["late"], &["r"]).output("r");
    let g = G::default()
        .input("c", 9, &[])
        .input("x", 1, &[2])
        .node_with("If", &["c"], &["y"], |n| {
            attr_graph(n, "then_branch", branch());
            attr_graph(n, "else_branch", branch());
        })
        .node("Relu", &["x"], &["late"])
        .output("y");
    assert_eq!(kinds(&import(g.model(17)).graph), ["Input", "Input", "Relu", "If"]);
}

#[test]
fn contradictions_name_nodes_and_values() {
    let x = || G::default().input("x", 1, &[2]);
    let cycle = x().node("Add", &["x", "b"], &["a"]).node("Relu", &["a"], &["b"]).output("b");
    let e = error(cycle.model(17));
    assert_eq!(e, "the graph has a cycle: node `Add_0` reads `b` of node `Relu_1` reads `a` of node `Add_0`");
    let itself = x().node("Relu", &["a"], &["a"]).output("a");
    assert_eq!(error(itself.model(17)), "the graph has a cycle: node `Relu_0` reads `a` of node `Relu_0`");
    let two = x().node("Relu", &["x"], &["a"]).node_with("Relu", &["x"], &["a"], |n| _ = n.text(3, "second"));
    assert_eq!(error(two.model(17)), "value `a` is written twice: by node `Relu_0` and by node `second`");
    let input = x().node("Relu", &["x"], &["x"]);
    assert!(error(input.model(17)).contains("cycle"));
    let input = x().input("z", 1, &[1]).node("Relu", &["x"], &["z"]);
    assert_eq!(error(input.model(17)), "value `z` is written twice: by an input and by node `Relu_0`");
    let initializer = x().float("w", &[1.]).node("Relu", &["x"], &["w"]);
    assert_eq!(error(initializer.model(17)), "value `w` is written twice: by an initializer and by node `Relu_0`");
    assert!(error(x().float("w", &[1.]).float("w", &[1.]).model(17)).contains("`w` is written twice"));
    assert!(error(x().input("x", 1, &[1]).model(17)).contains("`x` is written twice"));
    let missing = x().node("Add", &["x", "nowhere"], &["y"]).output("y");
    assert_eq!(error(missing.model(17)), "node `Add_0` (Add) reads value `nowhere`, which nothing gives");
    let missing = x().output("nowhere");
    assert_eq!(error(missing.model(17)), "the graph's output `nowhere` reads value `nowhere`, which nothing gives");
    let arity = x().node("Add", &["x"], &["y"]).output("y");
    assert_eq!(error(arity.model(17)), "node `Add_0` (Add): Add needs its input 1 (B)");
    let outputs = x().node("Relu", &["x"], &["y", "z"]).output("z");
    assert!(error(outputs.model(17)).contains("node `Relu_0` (Relu): "));
}

#[test]
fn unsupported_ops_are_listed_all_at_once() {
    let mut g = G::default().input("x", 1, &[2]).node("Relu", &["x"], &["r"]).node("Foo", &["r"], &["f"]);
    for i in 0..7 {
        g = g.node_with("my.domain.Bar", &["x"], &[], |n| _ = n.text(3, &format!("bar{i}")));
    }
    let inner = G::default().node("Baz", &["x"], &["b"]).output("b");
    let g = g.node_with("If", &["x"], &["y"], |n| attr_graph(n, "then_branch", inner)).node("Expand", &["x"], &["e"]);
    let bytes = g.model_with(7, |w| {
        w.message(25, |f| {
            f.text(1, "F").text(10, "local").message(7, |n| _ = n.text(4, "OnlyInside"));
        });
        w.message(25, |f| {
            f.text(1, "Unused").text(10, "local").message(7, |n| _ = n.text(4, "NeverSeen"));
        });
    });
    let mut w = Writer::new();
    w.bytes(1, b"");
    let LoadError::Unsupported(ops) = load_bytes(bytes.clone(), &LoadOptions::default()).unwrap_err() else { panic!() };
    assert_eq!(ops.len(), 4);
    assert_eq!(
        error(bytes),
        "4 ops are not supported:
  ai.onnx.Baz (opset 7), 1 node: `Baz_0`
  ai.onnx.Expand (opset 7, supported from 8 on), 1 node: `Expand_10`
  ai.onnx.Foo (opset 7), 1 node: `Foo_1`
  my.domain.Bar (the model does not import this domain), 7 nodes: `bar0`, `bar1`, `bar2`, `bar3`, `bar4` and 2 more"
    );
    let call = G::default().input("x", 1, &[2]).node("local.F", &["x"], &["y"]).model_with(7, |w| {
        w.message(25, |f| {
            f.text(1, "F").text(10, "local").message(7, |n| _ = n.text(4, "OnlyInside"));
        });
    });
    assert!(error(call).contains("ai.onnx.OnlyInside"));
}

#[test]
fn attributes_are_checked() {
    let node = |op: &str, fill: fn(&mut Writer)| {
        error(G::default().input("x", 1, &[2]).node_with(op, &["x"], &["y"], fill).output("y").model(17))
    };
    let e = node("Relu", |n| attr_int(n, "slope", 1));
    assert_eq!(e, "node `Relu_0` (Relu): attribute `slope` (INT) is not one that the op has at opset 17");
    let e = node("Flatten", |n| attr_ints(n, "axis", &[1]));
    assert_eq!(e, "node `Flatten_0` (Flatten): attribute `axis` should be INT, it is INTS");
    let e = node("Squeeze", |n| attr_ints(n, "axes", &[1]));
    assert!(e.contains("`axes` (INTS) is not one that the op has at opset 17"), "{e}");
    let e = node("Flatten", |n| {
        attr_int(n, "axis", 1);
        attr_int(n, "axis", 1);
    });
    assert!(e.contains("`axis` is given twice"), "{e}");
    let e = node("Concat", |_| ());
    assert!(e.contains("attribute `axis` is missing"), "{e}");
    let e = node("Flatten", |n| attr_ref(n, "axis", "outer"));
    assert!(e.contains("attribute `axis` refers to `outer`, which no function around it declares"), "{e}");
}

#[test]
fn what_is_not_supported_says_so() {
    let load = |op: &str, dtype: i64, fill: fn(&mut Writer)| {
        let g = G::default().input("x", dtype, &[2]).node_with(op, &["x"], &["y"], fill).output("y");
        load_bytes(g.model(27), &LoadOptions::default()).map(|_| ()).map_err(|e| (e.is_unsupported(), e.to_string()))
    };
    assert_eq!(load("Cast", 1, |n| attr_int(n, "to", 1)), Ok(()));
    let e = load("Cast", 22, |n| attr_int(n, "to", 1)).unwrap_err();
    assert_eq!(e, (true, "node `Cast_0` (Cast): elements of i4 are not supported as its input 0 (input)".into()));
    let e = load("Cast", 1, |n| attr_int(n, "to", 22)).unwrap_err();
    assert_eq!(e, (true, "node `Cast_0` (Cast): casts to i4 are not supported".into()));
    assert!(load("Nothing", 1, |_| ()).unwrap_err().0);
    assert!(!load("Cast", 1, |_| ()).unwrap_err().0);
}

#[test]
fn models_that_are_none() {
    assert!(error(b"This is plain text.".to_vec()).contains("not a readable ONNX model: at byte"));
    assert!(error(Vec::new()).contains("holds no graph; is it an ONNX model?"));
    let mut w = Writer::new();
    w.i64(1, 8).message(7, |_| ());
    assert!(error(w.finish()).contains("imports no operator set"));
    let two = G::default().model_with(17, |w| _ = w.message(8, |o| _ = o.text(1, "ai.onnx").i64(2, 18)));
    assert!(error(two).contains("two versions of ai.onnx: 17 and 18"));
    let typeless = G::default().value(11, "x", 0, None);
    assert!(error(typeless.model(17)).contains("input `x`: it has no type"));
    let mut sequence = G::default();
    sequence.0.message(11, |v| _ = v.text(1, "s").message(2, |t| _ = t.message(4, |_| ())));
    assert!(error(sequence.model(17)).contains("value `s`: sequences are not supported"));
    assert!(error(G::default().input("x", 99, &[]).model(17)).contains("element type 99 is unknown"));
    let bad = G::default().value(11, "x", 1, Some(&[1]));
    let future = import(bad.model(99));
    assert!(future.warnings[0].contains("opset 99 is newer"), "{:?}", future.warnings);
}
