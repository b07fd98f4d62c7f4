//! Files written by the `onnx` package, whose encoder is not ours.

use firstlight_graph::{Graph, Op};
use firstlight_onnx::{Imported, LoadOptions, load};
use firstlight_tensor::{DType, Tensor};
use std::path::{Path, PathBuf};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

fn imported(name: &str) -> Imported {
    let imported = load(&file(name), &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    imported.graph.verify().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(imported.warnings, Vec::<String>::new());
    assert_eq!(imported.metadata.ir_version, 10);
    imported
}

fn constant<'g>(graph: &'g Graph, name: &str) -> &'g Tensor {
    let value = graph.value_named(name).unwrap_or_else(|| panic!("no {name} in {graph}"));
    match &graph.node(value.node).op {
        Op::Const(op) => &op.tensor,
        other => panic!("{name} is {other:?}"),
    }
}

fn kinds(graph: &Graph) -> Vec<&'static str> {
    graph.nodes().iter().map(|n| n.op.kind().name()).collect()
}

#[test]
fn encodings() {
    let graph = imported("encodings.onnx").graph;
    let get = |name| constant(&graph, name);
    assert_eq!(&get("f32").values::<f32>().unwrap()[..], [1.5, -2.0]);
    assert_eq!((get("f16").dtype(), get("f16").as_bytes()), (DType::F16, &[0, 0x3c, 0, 0x40][..]));
    assert_eq!((get("i4").dtype(), get("i4").as_bytes()), (DType::I4, &[0xe1, 0x03][..]));
    assert_eq!(&get("i64").values::<i64>().unwrap()[..], [1, -1]);
    assert_eq!(&get("u64").values::<u64>().unwrap()[..], [1 << 63]);
    assert_eq!(&get("f64").values::<f64>().unwrap()[..], [0.5]);
    assert_eq!(get("b").bools().unwrap(), [true, false]);
    assert_eq!(get("s").strings().unwrap(), ["a", "é"]);
    assert_eq!(&get("raw").values::<f32>().unwrap()[..], [4.0]);
    assert_eq!(get("raw").bytes().owned_len(), 0);
}

#[test]
fn functions() {
    let graph = imported("functions.onnx").graph;
    assert_eq!(kinds(&graph), ["Input", "Const", "Mul", "Const", "Mul"]);
    assert_eq!(&constant(&graph, "call/Scaled_0/k").values::<f32>().unwrap()[..], [2.0]);
    assert_eq!(&constant(&graph, "call/Scaled_1/k").values::<f32>().unwrap()[..], [3.0]);
    assert_eq!(graph.value_named("y"), Some(graph.outputs()[0].1));
    assert_eq!(graph.inputs()[0].spec.to_string(), "f32[n]");
}

#[test]
fn control_flow() {
    let graph = imported("control.onnx").graph;
    assert_eq!(kinds(&graph), ["Input", "Input", "Input", "Relu", "If", "Loop"]);
    let Op::If(op) = &graph.nodes()[4].op else { panic!("{graph}") };
    assert_eq!(kinds(&op.then_branch), ["Input", "Const", "Add", "Input"]);
    assert_eq!(kinds(&op.else_branch), ["Input", "Input", "Relu"]);
    let Op::Loop(op) = &graph.nodes()[5].op else { panic!("{graph}") };
    assert_eq!((op.n_carried, kinds(&op.body)), (1, vec!["Input", "Input", "Input", "Identity", "Input", "Add"]));
}

#[test]
fn external_data() {
    let graph = imported("external.onnx").graph;
    assert_eq!(&constant(&graph, "w").values::<f32>().unwrap()[..], [0., 1., 2., 3., 4., 5.]);
    assert_eq!(&constant(&graph, "v").values::<f32>().unwrap()[..], [10., 20., 30.]);
    assert_eq!(constant(&graph, "w").bytes().owned_len(), 0);
    // Without its folder the model has no weights.
    let bytes = std::fs::read(file("external.onnx")).unwrap();
    let e = firstlight_onnx::load_bytes(bytes.clone(), &LoadOptions::default()).unwrap_err().to_string();
    assert!(e.contains("tensor `w`: external data in \"external.bin\": a model from bytes has no folder"), "{e}");
    let here = LoadOptions { folder: Some(file("")), ..LoadOptions::default() };
    assert!(firstlight_onnx::load_bytes(bytes, &here).is_ok());
}
