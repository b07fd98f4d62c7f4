//! What is fuzzed: a model from bytes to its outputs.

use firstlight::{Limits, RunOptions, Runtime, Session};
use firstlight_graph::{Graph, Op, OutInfo, ValueId, ValueInfo, infer_known, run_reference};
use firstlight_onnx::{LoadOptions, load_bytes};
use firstlight_tensor::{DType, Dim, Shape, SymShape, Tensor, TensorView};
use std::collections::HashMap;
use std::time::{Duration, Instant};

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

/// Which way a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// As a user's does: a session, run once.
    Door,
    /// Import, then every node by inference and reference, without plan, kernels or control flow.
    References,
}

/// Loads models and runs them on zeros.
#[derive(Debug)]
pub struct Driver {
    target: Target,
    /// Shared by all sessions, so that threads are started once.
    runtime: Runtime,
    memory_limit_bytes: usize,
    /// Time after which a run is asked to stop.
    patience: Duration,
}

impl Driver {
    /// A driver of a target.
    ///
    /// **Errors**: there is no runtime.
    pub fn new(target: Target, memory_limit_bytes: usize, time_limit: Duration) -> Result<Driver, firstlight::Error> {
        let runtime = Runtime::builder().threads(2).build()?;
        Ok(Driver { target, runtime, memory_limit_bytes, patience: time_limit / 4 })
    }

    /// Loads and runs a model on inputs of zeros of small shapes.
    pub fn drive(&self, bytes: Vec<u8>) -> Verdict {
        let limits = Limits::default();
        let limits = Limits {
            folded_bytes: limits.folded_bytes.min(self.memory_limit_bytes / 4),
            struct_bytes: limits.struct_bytes.min(self.memory_limit_bytes / 4),
            ..limits
        };
        match self.target {
            Target::Door => self.drive_door(bytes, limits),
            Target::References => drive_references(bytes, limits),
        }
    }

    fn drive_door(&self, bytes: Vec<u8>, limits: Limits) -> Verdict {
        let builder = Session::builder().runtime(&self.runtime).limits(limits).memory_limit(self.memory_limit_bytes);
        let session = match builder.load_bytes(bytes) {
            Ok(session) => session,
            Err(error) => return Verdict::Refused(error.to_string()),
        };
        let mut inputs = vec![];
        for input in session.inputs().iter().filter(|input| !input.is_optional) {
            match zeros(input.dtype, input.shape.as_ref()) {
                Some(tensor) => inputs.push((input.name.as_str(), tensor)),
                None => return Verdict::Loaded(format!("input {}: too large", input.name)),
            }
        }
        let options = RunOptions { deadline: Some(Instant::now() + self.patience), ..RunOptions::default() };
        let run = session.run_with(inputs, &options);
        let owned = session.stats().owned_peak_bytes;
        assert!(owned <= self.memory_limit_bytes, "the session owned {owned} bytes, more than its limit");
        match run {
            Ok(_) => Verdict::Ran,
            Err(error) => Verdict::Loaded(error.to_string()),
        }
    }
}

fn drive_references(bytes: Vec<u8>, limits: Limits) -> Verdict {
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
                    None => zeros(declared.spec.dtype, declared.spec.dims.as_ref())
                        .ok_or_else(|| fail(&"too large an input"))?,
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
fn zeros(dtype: DType, dims: Option<&SymShape>) -> Option<Tensor> {
    let dims = dims.map_or(&[Dim::Unknown][..], |dims| &dims.0);
    let shape: Shape = dims.iter().map(|dim| dim.known().unwrap_or(FREE_DIM)).collect();
    shape.n_elems().filter(|&n| n <= MAX_ELEMS)?;
    Tensor::zeros(dtype, shape).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Content, Kind, Message};
    use std::collections::BTreeSet;

    fn driver(target: Target) -> Driver {
        Driver::new(target, 256 << 20, Duration::from_secs(600)).unwrap()
    }

    /// The names of the ops in a model, those in subgraphs and functions included.
    fn ops_of(bytes: &[u8]) -> BTreeSet<String> {
        let mut ops = BTreeSet::new();
        Message::parse(Kind::Model, bytes).unwrap().visit(&mut |parent, field| {
            if let (Kind::Node, 4, Content::Bytes(_, name)) = (parent.kind, field.number, &field.content) {
                ops.insert(String::from_utf8(name.clone()).unwrap());
            }
        });
        ops
    }

    #[test]
    fn base_models_run() {
        for target in [Target::Door, Target::References] {
            let driver = driver(target);
            for (name, bytes) in crate::base::models() {
                let verdict = driver.drive(bytes);
                match (name, target, &verdict) {
                    ("external", _, Verdict::Refused(error)) => assert!(error.contains("weights.bin"), "{error}"),
                    ("branch" | "loop", Target::References, Verdict::Loaded(error)) => {
                        assert!(error.contains("control flow"), "{name}: {error}");
                    }
                    _ => assert_eq!(verdict, Verdict::Ran, "{name} by {target:?}"),
                }
            }
        }
    }

    /// What does not run unchanged would seldom reach a kernel when mutated.
    #[test]
    fn every_op_that_is_imported_is_in_a_base_model_that_runs() {
        let driver = driver(Target::Door);
        let mut failed = vec![];
        let mut ran: BTreeSet<String> = BTreeSet::new();
        let of_ops = crate::cases::models().into_iter().flat_map(|op| op.models);
        for (name, bytes) in of_ops.chain(crate::base::models().into_iter().map(|(name, bytes)| (name.into(), bytes))) {
            match driver.drive(bytes.clone()) {
                Verdict::Ran => ran.extend(ops_of(&bytes)),
                _ if name == "external" => {}
                verdict => failed.push(format!("{name}: {verdict:?}")),
            }
        }
        assert!(failed.is_empty(), "src/cases.rs writes these otherwise than ONNX does: {failed:#?}");
        let missing: Vec<&str> =
            firstlight_onnx::imported_ops().map(|op| op.name).filter(|name| !ran.contains(*name)).collect();
        assert!(missing.is_empty(), "no named case and no model of src/base.rs has {missing:?}");
    }
}
