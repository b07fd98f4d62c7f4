//! Looking at models without importing them, and importing on after problems.

use super::*;
use crate::check::Noted;

fn problems(bytes: Vec<u8>) -> (Vec<String>, usize) {
    let mut noted = Noted::default();
    let file = Arc::new(MappedFile::from_vec(bytes));
    let imported = import_noting(&file, None, &LoadOptions::default(), Some(&mut noted));
    if let Err(error) = imported {
        noted.note(error);
    }
    (noted.problems.iter().map(ToString::to_string).collect(), noted.n_unsure)
}

fn external(name: &str, file: &str, dims: &[i64]) -> impl Fn(&mut Writer) {
    let (name, file, dims) = (name.to_owned(), file.to_owned(), dims.to_vec());
    move |w| {
        w.packed_i64(1, &dims).i64(2, 1).text(8, &name).i64(14, 1);
        w.message(13, |e| _ = e.text(1, "location").text(2, &file));
    }
}

#[test]
fn every_problem_is_told() {
    let mut graph = G::default()
        .input("x", 1, &[4])
        .node("NoSuchOp", &["x"], &["a"])
        .node_with("Softmax", &["a"], &["b"], |n| attr_int(n, "no_such_attribute", 1))
        .node_with("Relu", &["x"], &["c"], |n| attr_int(n, "alpha", 1))
        .node("Add", &["c", "nowhere"], &["d"])
        .node("Add", &["x", "w"], &["e"])
        .node("Mul", &["e", "w"], &["f"])
        .node("OtherOp", &["f"], &["y"])
        .output("y")
        .output("z");
    graph.0.message(5, external("w", "w.bin", &[4]));
    let (problems, n_unsure) = problems(graph.model(17));
    assert_eq!(problems.len(), 5, "{problems:#?}");
    assert!(problems[0].contains("ai.onnx.NoSuchOp") && problems[0].contains("ai.onnx.OtherOp"));
    assert!(problems[1].contains("`Relu_2`") && problems[1].contains("alpha"), "{problems:#?}");
    assert!(problems[2].contains("nowhere") && problems[2].contains("Add_3"), "{problems:#?}");
    assert!(problems[3].contains("`w`") && problems[3].contains("w.bin"), "{problems:#?}");
    assert!(problems[4].contains("`z`"), "{problems:#?}");
    // The Softmax reads what nobody knows; its own attribute is not held against it.
    assert_eq!(n_unsure, 1);
}

#[test]
fn problems_inside_subgraphs_say_where() {
    let then = G::default().node("NoSuchOp", &["x"], &["t"]).node("Relu", &["missing"], &["u"]).output("u");
    let other = G::default().node("Relu", &["x"], &["u"]).output("u");
    let graph = G::default().input("c", 9, &[]).input("x", 1, &[4]).node_with("If", &["c"], &["y"], |n| {
        n.text(3, "choice");
        attr_graph(n, "then_branch", then);
        attr_graph(n, "else_branch", other);
    });
    let (problems, _) = problems(graph.output("y").model(17));
    assert_eq!(problems.len(), 2, "{problems:#?}");
    assert!(problems[0].contains("NoSuchOp"));
    assert!(problems[1].contains("`missing`") && problems[1].contains("inside node `choice`"), "{problems:#?}");
}

#[test]
fn a_sound_model_has_no_problem_and_comes_whole() {
    let bytes = G::default().input("x", 1, &[4]).node("Relu", &["x"], &["y"]).output("y").model(17);
    assert_eq!(problems(bytes.clone()), (vec![], 0));
    let cycle = G::default().node("Relu", &["b"], &["a"]).node("Relu", &["a"], &["b"]).output("b").model(17);
    assert!(problems(cycle).0[0].contains("cycle"));
    assert!(problems(vec![1, 2, 3]).0[0].contains("ONNX"));
}

#[test]
fn broken_bytes_are_told_as_the_import_tells_them() {
    let bytes = G::default()
        .input("x", 1, &[4])
        .float("w", &[1., 2., 3., 4.])
        .node("Add", &["x", "w"], &["y"])
        .output("y")
        .model(17);
    for i in 0..bytes.len() {
        for bit in [0, 3, 7] {
            let mut broken = bytes.clone();
            broken[i] ^= 1 << bit;
            let first = load_bytes(broken.clone(), &LoadOptions::default()).err().map(|error| error.to_string());
            let all = problems(broken.clone()).0;
            assert_eq!(first.is_none(), all.is_empty(), "byte {i} bit {bit}: {first:?} {all:?}");
            _ = inspect_slice(&broken, &LoadOptions::default());
        }
    }
}

#[test]
fn a_model_is_told_from_its_structure() {
    let body = G::default().node("NoSuchOp", &["x"], &["u"]).output("u");
    let mut graph = G::default()
        .input("x", 1, &[-1, 4])
        .float("w", &[1., 2., 3., 4.])
        .node("Add", &["x", "w"], &["a"])
        .node("Add", &["a", "big"], &["b"])
        .node("local.Twice", &["b"], &["c"])
        .node_with("If", &["x"], &["y"], |n| attr_graph(n, "then_branch", body))
        .output("y");
    graph.0.message(5, external("big", "big.bin", &[1024]));
    graph.0.message(11, |v| {
        v.text(1, "ids").message(2, |t| {
            t.message(1, |t| {
                t.i64(1, 7).message(2, |s| {
                    s.message(1, |d| _ = d.text(2, "batch")).message(1, |d| _ = d.text(2, "length"));
                });
            });
        });
    });
    let bytes = graph.model_with(17, |w| {
        w.text(2, "maker").message(25, |f| {
            f.text(1, "Twice").text(10, "local").text(4, "v").text(5, "w");
            f.message(7, |n| _ = n.text(1, "v").text(1, "v").text(2, "w").text(4, "Add"));
        });
    });
    let told = inspect_slice(&bytes, &LoadOptions::default()).unwrap();
    assert_eq!((told.metadata.producer.0.as_str(), told.nodes, told.file_bytes), ("maker", 4, bytes.len()));
    let types: Vec<&str> = told.inputs.iter().map(|input| input.ty.as_str()).collect();
    assert_eq!(types, ["f32[?,4]", "i64[batch,length]"]);
    let ops: Vec<_> = told.ops.iter().map(|op| (op.name.as_str(), op.count, op.support)).collect();
    let (yes, no) = (OpSupport::Supported, OpSupport::Unsupported);
    assert_eq!(ops, [("Add", 3, yes), ("If", 1, yes), ("NoSuchOp", 1, no), ("Twice", 1, OpSupport::Function)]);
    let places: Vec<_> = told.symbols[0].places.iter().map(|place| (place.value.as_str(), place.axis)).collect();
    assert_eq!((told.symbols[0].name.as_str(), places), ("batch", vec![("ids", 0)]));
    assert_eq!((told.functions[0].calls, told.functions[0].nodes), (1, 1));
    assert_eq!((told.weights[0].name.as_str(), told.weights[0].bytes), ("big", 4096));
    assert!(matches!(&told.weights[0].place, WeightPlace::External { file, .. } if file == "big.bin"));
    assert!(matches!(told.weights[1].place, WeightPlace::Inline { .. }));
    assert_eq!((told.subgraphs[0].node.as_str(), told.subgraphs[0].nodes), ("If_3", 1));
}
