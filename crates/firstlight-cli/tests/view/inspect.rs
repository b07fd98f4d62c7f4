//! `firstlight inspect`.

use crate::support::common::{self, BOOL, D, F32, I64, Model, Weight, graph_attribute};
use crate::support::{Folder, fails};
use crate::{has_in_order, json, says};

/// Unknown ops, a subgraph, missing external data, symbols in several places, a name with an escape sequence.
fn odd() -> Vec<u8> {
    let branch = |op: &str| Model::new("branch").node(op, "inner", &["x"], &["b"]).output("b", F32).into_graph();
    let (yes, no) = (branch("Relu"), branch("NoSuchOp"));
    Model::new("odd")
        .input("x", F32, &[D::Sym("N"), D::N(4)])
        .input("ids", I64, &[D::Sym("N"), D::Sym("length"), D::Any])
        .input("flag", BOOL, &[])
        .weight(&Weight::f32("small", &[4], &[1., 2., 3., 4.]))
        .weight(&Weight::external("big", &[256, 4], "gone.bin", 4096))
        .node("NoSuchOp", "un\u{1b}[31known", &["x", "small"], &["a"])
        .node("Add", "add", &["a", "big"], &["s"])
        .node_with("If", "choice", &["flag"], &["y"], |w| {
            graph_attribute(w, "then_branch", &yes);
            graph_attribute(w, "else_branch", &no);
        })
        .output("y", F32)
        .finish()
}

#[test]
fn a_model_is_shown_whatever_its_ops_and_its_data() {
    let folder = Folder::new("inspect");
    let model = folder.write("odd.onnx", &odd());
    let page = says(&[&"inspect", &model]);
    has_in_order(
        &page,
        &[
            "IR version 10, opset 17",
            "odd: 3 nodes, and 2 nodes in 2 subgraphs",
            "INPUTS\n",
            "x     f32[N,4]\n",
            "ids   i64[N,length,?]\n",
            "OUTPUTS\n",
            "y  f32[..]\n",
            "SYMBOLS",
            "N       input x axis 0, input ids axis 0\n",
            "length  input ids axis 1\n",
            "OPS  5 nodes\n",
            "NoSuchOp  2  not supported\n",
            "SUBGRAPHS\n",
            "then_branch of choice (If)  1 node\n",
            "WEIGHTS  2 tensors, 4.1 kB\n",
            "big    f32[256,4]  4.1 kB  in gone.bin at 0\n",
            "small  f32[4]        16 B  at ",
        ],
    );
    let short = says(&[&"inspect", &model, &"--top", &"1"]);
    assert!(short.contains("and 1 more; --top 0 lists all") && !short.contains("small  f32"), "{short}");
    assert!(says(&[&"inspect", &model, &"--top", &"0"]).contains("small  f32"));
}

#[test]
fn json_has_everything() {
    let folder = Folder::new("inspect-json");
    let model = folder.write("odd.onnx", &odd());
    let (told, code) = json(&[&"inspect", &model, &"--json"]);
    assert_eq!(code, Some(0));
    assert_eq!(told["inputs"][1]["shape"], serde_json::json!(["N", "length", null]));
    assert_eq!(told["symbols"][0]["places"][1], serde_json::json!({"value": "ids", "is_input": true, "axis": 0}));
    let ops: Vec<_> = told["ops"].as_array().unwrap().iter().map(|op| (&op["name"], &op["support"])).collect();
    assert!(ops.iter().any(|(name, support)| *name == "NoSuchOp" && *support == "unsupported"), "{ops:?}");
    assert_eq!(told["subgraphs"].as_array().map(Vec::len), Some(2));
    assert_eq!(told["weights"][0]["file"], "gone.bin");
    assert_eq!(told["weights"][0]["bytes"], 4096);
    assert_eq!(told["weights"][1]["place"], "inline");
    let offset = told["weights"][1]["offset"].as_u64().unwrap();
    assert_eq!(told["weights"][1]["aligned"], offset % 4 == 0);
    let at = offset as usize;
    assert_eq!(std::fs::read(&model).unwrap()[at..at + 4], 1f32.to_le_bytes());
}

#[test]
fn what_is_no_model_is_refused() {
    let folder = Folder::new("inspect-bad");
    let missing = fails(1, &[&"inspect", &folder.path("none.onnx")]);
    assert!(missing.contains("none.onnx: there is no such file"), "{missing}");
    let prose = folder.write("prose.onnx", b"This is not a model, it is a sentence.\n");
    assert!(fails(1, &[&"inspect", &prose]).contains(&format!("{}: not a readable ONNX model", prose.display())));
    fails(2, &[&"inspect"]);
    fails(2, &[&"inspect", &prose, &"--top", &"many"]);
    let whole = common::add_relu();
    for end in (0..whole.len()).step_by(5) {
        // A cut file is a shorter model or an error, and never a panic.
        let cut = folder.write("cut.onnx", &whole[..end]);
        let output = crate::support::firstlight(&[&"inspect", &cut]);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{end}");
    }
}
