//! Every named case of every op: the reference gives the right answer, and inference agrees with it.

use firstlight_graph::{Exactness, OpKind, ValueInfo, infer_known, ops::Op};
use firstlight_tensor::{DType, SymShape, Tensor};

fn same(got: &Tensor, want: &Tensor, exactness: Exactness) -> bool {
    if (got.dtype(), got.shape()) != (want.dtype(), want.shape()) {
        return false;
    }
    let close = |a: f64, b: f64, eps: f64| match exactness {
        _ if a.is_nan() || b.is_nan() => a.is_nan() && b.is_nan(),
        Exactness::Exact => a.to_bits() == b.to_bits(),
        _ => a == b || (a - b).abs() <= eps * (1.0 + b.abs()),
    };
    match got.dtype() {
        DType::F32 => {
            let (a, b) = (got.values::<f32>().unwrap(), want.values::<f32>().unwrap());
            a.iter().zip(b.iter()).all(|(&a, &b)| close(a.into(), b.into(), 1e-6))
        }
        DType::F64 => {
            let (a, b) = (got.values::<f64>().unwrap(), want.values::<f64>().unwrap());
            a.iter().zip(b.iter()).all(|(&a, &b)| close(a, b, 1e-12))
        }
        _ => got.as_bytes() == want.as_bytes(),
    }
}

#[test]
fn references_give_the_answers_of_the_cases() {
    let mut n_cases = 0;
    for kind in OpKind::ALL {
        for case in (kind.info().cases)() {
            let context = format!("{} case {:?}", kind.name(), case.name);
            assert_eq!(case.op.kind(), *kind, "{context}");
            let infos: Vec<_> = case
                .inputs
                .iter()
                .map(|input| {
                    input.as_ref().map(|tensor| ValueInfo {
                        dtype: tensor.dtype(),
                        dims: SymShape::from(tensor.shape()),
                        value: Some(tensor.clone()),
                    })
                })
                .collect();
            let outputs =
                infer_known(&case.op, &infos, case.outputs.len()).unwrap_or_else(|e| panic!("{context}: {e}"));
            let views = case.inputs.iter().map(|input| input.as_ref().map(Tensor::view)).collect::<Vec<_>>();
            let got = firstlight_graph::run_reference(&case.op, &views, &outputs)
                .unwrap_or_else(|e| panic!("{context}: {e}"));
            for (i, (got, want)) in got.iter().zip(&case.outputs).enumerate() {
                assert!(same(got, want, kind.info().exactness), "{context}: output {i} is {got:?}, expected {want:?}");
                if let Some(known) = &outputs[i].value {
                    assert_eq!(known, want, "{context}: the value that inference follows");
                }
            }
            n_cases += 1;
        }
    }
    assert!(n_cases > 0);
}

#[test]
fn ops_that_compute_have_cases_and_the_table_is_sorted() {
    let names: Vec<_> = OpKind::ALL.iter().map(|kind| kind.name()).collect();
    assert!(names.is_sorted(), "{names:?}");
    for kind in OpKind::ALL {
        let planned = matches!(kind, OpKind::Const | OpKind::Input | OpKind::If | OpKind::Loop);
        assert!(planned || !(kind.info().cases)().is_empty(), "{} has no case", kind.name());
    }
}

#[test]
fn the_text_form_prints_every_node() {
    use firstlight_graph::{Graph, Spec, ops};
    let mut graph = Graph::new("g");
    let x = graph.input("x", Spec::known(DType::F32, &[2]), None);
    let c = graph.constant("c", Tensor::from_slice([2], &[1f32, 2.]).unwrap());
    let sum = graph.op(Op::from(ops::Add), &[x, c]).unwrap();
    graph.output("y", sum).unwrap();
    graph.verify().unwrap();
    assert_eq!(
        graph.to_string(),
        "graph \"g\" {\n  %0 = Input() {index=0}: f32[2] -> \"x\"\n  %1 = Const() {tensor=f32[2]} -> \"c\"\n  %2 = Add(%0, %1) -> \"Add_2\"\n  return \"y\" = %2\n}\n"
    );
}
