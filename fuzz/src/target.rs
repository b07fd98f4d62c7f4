//! What is fuzzed: a model from bytes to its outputs.

use firstlight_graph::{Graph, Op, OutInfo, Spec, ValueId, ValueInfo, infer_known, run_reference};
use firstlight_onnx::{Limits, LoadOptions, load_bytes};
use firstlight_tensor::{Dim, Shape, SymShape, Tensor, TensorView};
use std::collections::HashMap;

/// Elements of a value up to which a model is run.
const MAX_ELEMS: usize = 1 << 16;

/// Operations of a model up to which it is run.
const MAX_OPERATIONS: u64 = 1 << 24;

/// Size that stands for a dimension with a name or none.
const FREE_DIM: usize = 2;

/// How far a model got without anything bad.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was not loaded, with the error.
    Refused(String),
    /// It was loaded, and not run to its end, with the reason.
    Loaded(String),
    /// It was loaded and run.
    Ran,
}

/// Loads a model and runs it, op by op, on inputs of zeros of small shapes.
pub fn drive(bytes: Vec<u8>, memory_limit_bytes: usize) -> Verdict {
    let limits = Limits::default();
    let limits = Limits {
        folded_bytes: limits.folded_bytes.min(memory_limit_bytes / 4),
        struct_bytes: limits.struct_bytes.min(memory_limit_bytes / 4),
        ..limits
    };
    let imported = match load_bytes(bytes, &LoadOptions { limits, ..LoadOptions::default() }) {
        Ok(imported) => imported,
        Err(error) => return Verdict::Refused(error.to_string()),
    };
    if let Err(error) = imported.graph.verify() {
        // What the importer built breaks a rule of graphs: its fault, not the model's.
        panic!("an imported graph is broken: {error}");
    }
    match run(&imported.graph) {
        Ok(()) => Verdict::Ran,
        Err(reason) => Verdict::Loaded(reason),
    }
}

/// Infers and computes every node; control flow ends the run.
fn run(graph: &Graph) -> Result<(), String> {
    let mut values: HashMap<ValueId, Tensor> = HashMap::new();
    let mut budget = MAX_OPERATIONS;
    for (i, node) in graph.nodes().iter().enumerate() {
        let fail = |what: &dyn std::fmt::Display| format!("{}: {what}", node.name);
        let id = |output: usize| ValueId { node: firstlight_graph::NodeId(i as u32), output: output as u32 };
        match &node.op {
            Op::Input(input) => {
                let declared = graph.inputs().get(input.index as usize).ok_or_else(|| fail(&"no such input"))?;
                let tensor = match &declared.default {
                    Some(tensor) => tensor.clone(),
                    None => zeros(&declared.spec).ok_or_else(|| fail(&"too large an input"))?,
                };
                values.insert(id(0), tensor);
                continue;
            }
            Op::Const(constant) => {
                values.insert(id(0), constant.tensor.clone());
                continue;
            }
            Op::If(_) | Op::Loop(_) => return Err(fail(&"control flow")),
            _ => {}
        }
        let inputs: Vec<Option<&Tensor>> =
            node.inputs.iter().map(|input| input.and_then(|value| values.get(&value))).collect();
        let infos: Vec<Option<ValueInfo>> = inputs.iter().map(|input| input.map(info)).collect();
        let outputs = infer_known(&node.op, &infos, node.outputs.len()).map_err(|error| fail(&error))?;
        let n_operations = cost(&node.op, &inputs, &outputs).ok_or_else(|| fail(&"too large an output"))?;
        budget = budget.checked_sub(n_operations).ok_or_else(|| fail(&"too many operations"))?;
        let views: Vec<Option<TensorView<'_>>> = inputs.iter().map(|input| input.map(Tensor::view)).collect();
        let results = run_reference(&node.op, &views, &outputs).map_err(|error| fail(&error))?;
        for (output, tensor) in results.into_iter().enumerate() {
            values.insert(id(output), tensor);
        }
    }
    Ok(())
}

fn info(tensor: &Tensor) -> ValueInfo {
    ValueInfo { dtype: tensor.dtype(), dims: SymShape::from(tensor.shape()), value: Some(tensor.clone()) }
}

/// Operations of a node, or `None` when an output is too large to compute here.
fn cost(op: &Op, inputs: &[Option<&Tensor>], outputs: &[OutInfo]) -> Option<u64> {
    let shapes = outputs.iter().map(|output| output.dims.known()).collect::<Option<Vec<Shape>>>()?;
    if !shapes.iter().all(|shape| shape.n_elems().is_some_and(|n| n <= MAX_ELEMS)) {
        return None;
    }
    let inputs: Vec<&[usize]> = inputs.iter().map(|input| input.map_or(&[][..], |tensor| tensor.shape())).collect();
    let outputs: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    Some(op.def().n_operations(&inputs, &outputs))
}

/// Zeros of a spec, the free dimensions being small.
fn zeros(spec: &Spec) -> Option<Tensor> {
    let dims = spec.dims.as_ref().map(|dims| &dims.0[..]).unwrap_or(&[Dim::Unknown]);
    let shape: Shape = dims.iter().map(|dim| dim.known().unwrap_or(FREE_DIM)).collect();
    shape.n_elems().filter(|&n| n <= MAX_ELEMS)?;
    Tensor::zeros(spec.dtype, shape).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_models_run() {
        for (name, bytes) in crate::base::models() {
            let verdict = drive(bytes, 256 << 20);
            match name {
                "external" => {
                    assert!(matches!(&verdict, Verdict::Refused(e) if e.contains("weights.bin")), "{verdict:?}")
                }
                "branch" | "loop" => {
                    assert!(
                        matches!(&verdict, Verdict::Loaded(e) if e.contains("control flow")),
                        "{name}: {verdict:?}"
                    );
                }
                _ => assert_eq!(verdict, Verdict::Ran, "{name}"),
            }
        }
    }
}
