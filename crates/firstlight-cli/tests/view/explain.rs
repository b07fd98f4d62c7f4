//! `firstlight explain`.

use crate::support::common::{self, BOOL, D, F32, I64, Model, Weight, graph_attribute};
use crate::support::{Folder, fails};
use crate::{has_in_order, json, says};
use serde_json::Value;

/// All steps of the first plan.
fn steps(told: &Value) -> Vec<&Value> {
    let segments = told["plan"]["segments"].as_array().unwrap();
    segments.iter().flat_map(|segment| segment["steps"].as_array().unwrap()).collect()
}

#[test]
fn a_fused_step_is_told_with_what_it_is_made_of() {
    let folder = Folder::new("explain");
    let model = folder.write("m.onnx", &common::add_relu());
    let page = says(&[&"explain", &model, &"--dim", &"N=3"]);
    has_in_order(
        &page,
        &[
            "Plan for x f32[3,4] (as compiled, nothing was run)\n",
            "STEPS\n",
            "0  relu  Add+Relu",
            "f32[3,4]",
            "NO STEP  1 node\n",
            "add  Add  part of relu (fuse-elementwise)\n",
            "PASSES\n",
            "fuse-elementwise  1  rewritten\n",
            "TOTALS\n",
            "1 step in 1 segment\n",
            "largest     48 B for relu (Add+Relu)\n",
            "16 B mapped",
        ],
    );
    assert!(says(&[&"explain", &model]).contains("Made up as 1: N;"));
    let plain = says(&[&"explain", &model, &"--no-passes", &"--random"]);
    has_in_order(&plain, &["as run", "0  add   Add", "1  relu  Relu", "2 steps in 1 segment"]);
}

#[test]
fn addresses_and_sizes_are_those_of_the_plan() {
    let folder = Folder::new("explain-json");
    let model = folder.write("m.onnx", &common::add_relu());
    for run in [&["--dim", "N=5"][..], &["--dim", "N=5", "--random"]] {
        let mut args: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"explain", &model, &"--json"];
        args.extend(run.iter().map(|arg| arg as &dyn AsRef<std::ffi::OsStr>));
        let (told, code) = json(&args);
        assert_eq!((code, &told["has_run"]), (Some(0), &Value::from(run.len() == 3)));
        let step = steps(&told)[0];
        assert_eq!((&step["node"], &step["op"]), (&"relu".into(), &"Elementwise".into()));
        assert_eq!(step["parts"][0], serde_json::json!({"node": "add", "op": "Add"}));
        assert_eq!(step["inputs"][0]["bytes"], 5 * 4 * 4);
        assert_eq!(step["inputs"][1]["place"]["kind"], "mapped");
        let at = step["inputs"][1]["place"]["offset"].as_u64().unwrap() as usize;
        assert_eq!(std::fs::read(&model).unwrap()[at..at + 4], 1f32.to_le_bytes());
        assert_eq!(step["outputs"][0]["place"]["kind"], "arena");
        assert_ne!(step["outputs"][0]["place"], step["inputs"][0]["place"]);
        let chosen: Vec<_> = step["rows"].as_array().unwrap().iter().filter(|row| row["verdict"] == "chosen").collect();
        assert_eq!((chosen.len(), &chosen[0]["source"]), (1, &step["kernel"]));
        assert_eq!(told["plan"]["is_whole"], true);
        assert_eq!(told["rewrites"][0]["sources"], serde_json::json!(["add", "relu"]));
    }
}

#[test]
fn one_node_is_told_in_detail() {
    let folder = Folder::new("explain-node");
    let model = folder.write("m.onnx", &common::add_relu());
    let page = says(&[&"explain", &model, &"--node", &"add"]);
    has_in_order(
        &page,
        &[
            "add (Add): no step, part of relu (fuse-elementwise)\n",
            "Step 0: relu (Elementwise)\n",
            "made of     add (Add)\n",
            "relu (Relu)\n",
            "kernel",
            "rows",
            "chosen\n",
            "input 1",
            "at file ",
            "output 0",
            "operations",
        ],
    );
    let (told, _) = json(&[&"explain", &model, &"--node", &"relu", &"--json"]);
    assert_eq!(told["steps"][0]["node"], "relu");
    let message = fails(2, &[&"explain", &model, &"--node", &"rellu"]);
    assert!(message.contains("no node \"rellu\"; did you mean relu?"), "{message}");
    let missing = fails(1, &[&"explain", &model, &"--input", &"x=gone.npy"]);
    assert!(missing.contains("there is no such file"), "{missing}");
}

#[test]
fn shape_chains_views_and_folded_nodes_need_no_step() {
    let folder = Folder::new("explain-silent");
    let bytes = Model::new("g")
        .input("x", F32, &[D::Sym("N"), D::N(4)])
        .weight(&Weight::f32("w", &[4], &[1., 2., 3., 4.]))
        .weight(&Weight::i64("flat", &[1], &[-1]))
        .node("Shape", "shape", &["x"], &["s"])
        .node("Mul", "twice", &["w", "w"], &["ww"])
        .node("Add", "add", &["x", "ww"], &["a"])
        .node("Reshape", "flatten", &["a", "flat"], &["y"])
        .node("Relu", "spare", &["x"], &["t"])
        .output("y", F32)
        .output("s", I64)
        .finish();
    let model = folder.write("g.onnx", &bytes);
    let page = says(&[&"explain", &model]);
    has_in_order(
        &page,
        &[
            "0  add",
            "NO STEP  4 nodes\n",
            "shape    Shape    known from shapes and constants\n",
            "twice    Mul      computed once, at load (fold-constants)\n",
            "flatten  Reshape  a view: the same bytes under another shape\n",
            "spare    Relu     nothing that runs needs it\n",
        ],
    );
}

#[test]
fn what_depends_on_values_ends_a_segment() {
    let folder = Folder::new("explain-segments");
    let bytes = Model::new("g")
        .input("x", F32, &[D::Sym("N")])
        .node("NonZero", "found", &["x"], &["at"])
        .node("Relu", "last", &["x"], &["r"])
        .node("Shape", "size", &["at"], &["y"])
        .node("Add", "sum", &["at", "at"], &["z"])
        .output("z", I64)
        .output("y", I64)
        .output("r", F32)
        .finish();
    let model = folder.write("g.onnx", &bytes);
    let page = says(&[&"explain", &model, &"--dim", &"N=6"]);
    has_in_order(
        &page,
        &["STEPS of segment 0", "0  found", "at most i64[1,6]", "the shape of the last result is awaited", "not whole"],
    );
    assert!(page.contains("sum   Add    compiling stopped before it"), "{page}");
    let (told, _) = json(&[&"explain", &model, &"--dim", &"N=6", &"--random", &"--json"]);
    let segments = told["plan"]["segments"].as_array().unwrap();
    assert_eq!((segments.len(), &told["plan"]["is_whole"]), (2, &true.into()));
    assert_eq!(segments[1]["after"]["segment"], segments[0]["index"]);
    assert_eq!(segments[0]["end"]["kind"], "shape");
    let nodes: Vec<_> = steps(&told).iter().map(|step| step["node"].as_str().unwrap().to_owned()).collect();
    assert_eq!(nodes, ["found", "last", "sum"]);
}

#[test]
fn branches_and_bodies_are_told_by_their_path() {
    let folder = Folder::new("explain-nested");
    let branch = |op: &str| Model::new("b").node(op, "inner", &["x"], &["b"]).output("b", F32).into_graph();
    let (yes, no) = (branch("Relu"), branch("Sqrt"));
    let body = Model::new("body")
        .input("i", I64, &[])
        .input("go", BOOL, &[])
        .input("v", F32, &[D::N(2)])
        .node("Add", "grow", &["v", "v"], &["w"])
        .node("Identity", "on", &["go"], &["on"])
        .output("on", BOOL)
        .output("w", F32)
        .into_graph();
    let bytes = Model::new("g")
        .input("flag", BOOL, &[])
        .input("x", F32, &[D::N(2)])
        .input("n", I64, &[])
        .node_with("If", "choice", &["flag"], &["c"], |w| {
            graph_attribute(w, "then_branch", &yes);
            graph_attribute(w, "else_branch", &no);
        })
        .node_with("Loop", "again", &["n", "", "c"], &["y"], |w| graph_attribute(w, "body", &body))
        .output("y", F32)
        .finish();
    let model = folder.write("g.onnx", &bytes);
    let inputs = [
        ("flag", firstlight::Tensor::from_bools([0; 0], &[true])),
        ("n", firstlight::Tensor::from_slice([0; 0], &[2i64])),
    ];
    for (name, tensor) in inputs {
        firstlight::files::write_npy(folder.path(&format!("{name}.npy")), &tensor.unwrap()).unwrap();
    }
    let (flag, n) =
        (format!("flag={}", folder.path("flag.npy").display()), format!("n={}", folder.path("n.npy").display()));
    let page = says(&[&"explain", &model, &"-i", &flag, &"-i", &n, &"--random"]);
    has_in_order(
        &page,
        &["a value is awaited: bool[]", "choice/inner", "again", "loop", "grow", "choice", "the branch taken"],
    );
    let (told, _) = json(&[&"explain", &model, &"-i", &flag, &"-i", &n, &"--random", &"--json"]);
    let looped = steps(&told).into_iter().find(|step| step["node"] == "again").unwrap();
    let body = &looped["bodies"][0]["segments"][0]["steps"];
    assert!(body.as_array().unwrap().iter().any(|step| step["node"].as_str().unwrap().contains("grow")), "{body}");
}
