//! Every op's named cases, each as a graph of one node run by the executor.

use crate::compare::difference;
use firstlight_exec::{PipelinedExecutor, PrepareOptions, RealizeRequest, Realized, RunOptions, StorageCache};
use firstlight_graph::{Case, Graph, OpKind, Spec, ValueId};
use std::sync::Arc;

/// How a case's inputs enter the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// As inputs, whose values are not known before the run.
    Fed,
    /// As constants.
    Constant,
}

/// Runs a case twice in one way and compares both answers: the first is compiled, the second replayed.
///
/// **Errors**: what is wrong.
pub fn run(
    kind: OpKind,
    case: &Case,
    executor: &PipelinedExecutor,
    options: &RunOptions<'_>,
    given: Given,
) -> Result<(), String> {
    let mut graph = Graph::new(case.name);
    let mut fed = StorageCache::new();
    let mut values = vec![];
    for (i, input) in case.inputs.iter().enumerate() {
        values.push(input.as_ref().map(|tensor| match given {
            Given::Constant => graph.constant(format!("in{i}"), tensor.clone()),
            Given::Fed => {
                let spec = Spec { dtype: tensor.dtype(), dims: None };
                let value = graph.input(format!("in{i}"), spec, None);
                fed.insert(value, Realized::from_tensor(tensor));
                value
            }
        }));
    }
    let names: Vec<String> = (0..case.outputs.len()).map(|i| format!("out{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let node = graph.push("node", case.op.clone(), &values, &names).map_err(|error| error.to_string())?;
    graph.verify().map_err(|error| error.to_string())?;
    let graph = Arc::new(graph);
    let targets: Vec<ValueId> = (0..names.len()).map(|i| ValueId { node, output: i as u32 }).collect();
    for run in ["first run", "replay"] {
        let request = RealizeRequest {
            graph: &graph,
            targets: &targets,
            inputs: &fed,
            prepare: PrepareOptions::default(),
            options: *options,
            persistent: None,
        };
        let realized = executor.realize_with(request).map_err(|error| format!("{run}: {error}"))?;
        for (i, (target, want)) in targets.iter().zip(&case.outputs).enumerate() {
            let got = realized.get(*target).ok_or_else(|| format!("{run}: no output {i}"))?;
            let got = got.to_tensor().map_err(|error| format!("{run}: output {i}: {error}"))?;
            if let Some(problem) = difference(&got, want, kind.info().exactness) {
                return Err(format!("{run}: output {i}: {problem}"));
            }
        }
    }
    Ok(())
}
