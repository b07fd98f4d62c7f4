//! Looking at models and plans through the door.

mod common;

use common::{D, F32, Model, Weight};
use firstlight::explain::{RowVerdict, WhyNoStep};
use firstlight::{ErrorKind, InputProblem, Runtime, Session, Shape, Tensor, catalog};

fn shape(dims: &[usize]) -> Shape {
    Shape::from(dims)
}

#[test]
fn explaining_for_shapes_compiles_and_leaves_no_trace() {
    let session = Session::builder().load_bytes(common::add_relu()).unwrap();
    assert_eq!(session.explain(), []);
    let told = session.explain_for([("x", shape(&[3, 4]))]).unwrap();
    assert_eq!((session.stats().plans, session.stats().compiled_nodes), (0, 0));
    let step = &told.segments[0].steps[0];
    assert_eq!((step.node.as_str(), step.parts.len(), told.is_whole), ("relu", 2, true));
    assert_eq!(told.without_step[0].why, WhyNoStep::Pass { pass: "fuse-elementwise", into: Some("relu".into()) });

    // What a run does is what was told.
    session.run([("x", Tensor::from_slice([3, 4], &[1f32; 12]).unwrap())]).unwrap();
    assert_eq!(session.explain(), [told]);
    // A step has the row that the table offers first among those that take it.
    for step in session.explain().iter().flat_map(|plan| &plan.segments).flat_map(|segment| &segment.steps) {
        let chosen: Vec<_> = step.rows.iter().filter(|row| row.verdict == RowVerdict::Chosen).collect();
        assert_eq!((chosen.len(), chosen[0].source), (1, step.source));
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let session = Session::builder().load_bytes(common::add_relu()).unwrap();
    let problem = |shapes: Vec<(&str, Shape)>| match session.explain_for(shapes).unwrap_err() {
        firstlight::Error::Input { problem, .. } => problem,
        other => panic!("{other}"),
    };
    assert!(matches!(problem(vec![]), InputProblem::Missing));
    assert!(matches!(problem(vec![("z", shape(&[1]))]), InputProblem::Unknown { .. }));
    assert!(matches!(problem(vec![("x", shape(&[3, 5]))]), InputProblem::Shape { .. }));
    assert!(matches!(problem(vec![("x", shape(&[3]))]), InputProblem::Shape { .. }));
}

#[test]
fn a_check_has_all_problems_or_the_session() {
    let folder = std::env::temp_dir().join(format!("firstlight-look-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("m.onnx");
    std::fs::write(&path, common::add_relu()).unwrap();
    let check = Session::builder().check(&path).unwrap();
    assert!(check.problems.is_empty() && check.session.is_some());
    let bad = Model::new("bad")
        .input("x", F32, &[D::N(4)])
        .weight(&Weight::external("w", &[4], "gone.bin", 16))
        .node("NoSuchOp", "first", &["x"], &["a"])
        .node("Add", "second", &["x", "w"], &["b"])
        .node("Add", "third", &["b", "nowhere"], &["c"]);
    std::fs::write(&path, bad.output("c", F32).finish()).unwrap();
    let check = Session::builder().check(&path).unwrap();
    let kinds: Vec<ErrorKind> = check.problems.iter().map(|problem| problem.kind()).collect();
    assert_eq!(kinds, [ErrorKind::Unsupported, ErrorKind::InvalidModel, ErrorKind::InvalidModel]);
    assert!(check.session.is_none());
    let told = firstlight::inspect(&path).unwrap();
    assert_eq!((told.nodes, told.weights.len()), (3, 1));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(firstlight::inspect(&path).unwrap_err().kind(), ErrorKind::File);
}

#[test]
fn the_catalog_has_every_import_and_every_kernel() {
    let runtime = Runtime::shared().unwrap();
    let ops = catalog(&runtime);
    let n_kernels: usize = ops.iter().map(|op| op.kernels.len()).sum();
    assert_eq!(n_kernels, firstlight::core::CPU_BINDINGS.iter().map(|rows| rows.len()).sum::<usize>());
    let imports: Vec<&str> = firstlight::core::onnx::imported_ops().map(|import| import.name).collect();
    assert!(imports.iter().all(|name| ops.iter().any(|op| op.name == *name && op.import.is_some())));
}
