//! Values of a graph that is looked at, and the references of its nodes.

use super::branches::{needed, with_branches};
use super::{Cause, Difference, Differs, is_given};
use crate::buffer::TensorRef;
use crate::outputs::Collector;
use crate::{Error, Session};
use firstlight_backend::{BackendId, Budget, KernelBindingTable, OperandSpec, Pool, reference_kernel};
use firstlight_cpu::CpuDevice;
use firstlight_exec::{Event, EventSink, ExecutorConfig, Feed, PipelinedExecutor, PrepareOptions, RunOptions};
use firstlight_graph::{Graph, Node, NodeId, Op, Spec, ValueId};
use firstlight_plan::passes::Rewrite;
use firstlight_tensor::Tensor;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A graph whose values are looked at, with what runs it.
#[derive(Debug)]
pub(super) struct Tested<'a> {
    session: &'a Session,
    pub(super) graph: Arc<Graph>,
    targets: Vec<ValueId>,
    needed: Vec<bool>,
    inputs: &'a [(String, Tensor)],
    executor: PipelinedExecutor,
    sources: Sources,
    /// What passes made of the graph as it is written.
    rewrites: Vec<Rewrite>,
}

/// Kernels by the nodes that they were chosen for.
#[derive(Debug, Default)]
struct Sources(Mutex<HashMap<String, String>>);

impl EventSink for Sources {
    fn event(&self, event: &Event<'_>) -> Result<(), String> {
        if let Event::Compiled { node, source, .. } = event {
            let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            sources.insert((*node).to_owned(), (*source).to_owned());
        }
        Ok(())
    }
}

impl<'a> Tested<'a> {
    /// The graph that the session runs.
    pub(super) fn of(
        session: &'a Session,
        inputs: &'a [(String, Tensor)],
        max_bytes: usize,
    ) -> Result<Tested<'a>, Error> {
        check(session, inputs)?;
        let model = &session.model;
        let spec = |name: &str| {
            let tensor = inputs.iter().find(|(input, _)| input == name).map(|(_, tensor)| tensor)?;
            Some(OperandSpec { dtype: tensor.dtype(), dims: tensor.shape().clone() })
        };
        let specs: Vec<_> = model.graph.inputs().iter().map(|input| spec(&input.name)).collect();
        let plan = model.executor.compile_only(&model.prepared, &specs)?;
        let (graph, targets) = (plan.program.graph().clone(), plan.program.targets().to_vec());
        let rewrites = model.prepared.rewrites().iter().chain(&plan.rewrites).cloned().collect();
        Ok(Tested { rewrites, ..Tested::new(session, graph, targets, inputs, max_bytes)? })
    }

    /// The session's graph as it is written.
    pub(super) fn written(
        session: &'a Session,
        inputs: &'a [(String, Tensor)],
        max_bytes: usize,
    ) -> Result<Tested<'a>, Error> {
        let graph = session.model.graph.clone();
        let targets = session.outputs().iter().map(|spec| {
            let output = graph.outputs().iter().find(|(name, _)| *name == spec.name).map(|(_, value)| *value);
            output
                .or_else(|| graph.value_named(&spec.name))
                .ok_or_else(|| Error::Output { problem: format!("the graph has no value {:?}", spec.name) })
        });
        let targets = targets.collect::<Result<_, _>>()?;
        Tested::new(session, graph, targets, inputs, max_bytes)
    }

    fn new(
        session: &'a Session,
        graph: Arc<Graph>,
        targets: Vec<ValueId>,
        inputs: &'a [(String, Tensor)],
        max_bytes: usize,
    ) -> Result<Tested<'a>, Error> {
        check(session, inputs)?;
        let runtime = &session.model.runtime;
        let executor = PipelinedExecutor::new(ExecutorConfig {
            pool: runtime.pool.clone(),
            table: runtime.table.clone(),
            device: runtime.device.clone(),
            budget: Budget::new(Some(max_bytes)),
        });
        let values_of =
            |graph: &Arc<Graph>, values: &[ValueId]| realize(&executor, graph, values, inputs, &RunOptions::default());
        let (graph, targets) = with_branches(graph, targets, &values_of)?;
        let needed = needed(&graph, &targets);
        Ok(Tested { session, needed, graph, targets, inputs, executor, sources: Sources::default(), rewrites: vec![] })
    }

    /// Working threads.
    pub(super) fn threads(&self) -> usize {
        self.session.model.runtime.threads()
    }

    /// Nodes that compute something the outputs need, in topological order.
    pub(super) fn steps(&self) -> impl Iterator<Item = usize> {
        let is_step = |(i, node): &(usize, &Node)| self.needed[*i] && !is_given(&node.op);
        self.graph.nodes().iter().enumerate().filter(is_step).map(|(i, _)| i)
    }

    /// Values with a name that the outputs need, in topological order.
    pub(super) fn named_values(&self) -> impl Iterator<Item = (ValueId, &str)> {
        let needed = self.graph.nodes().iter().enumerate().filter(|(i, _)| self.needed[*i]);
        needed.flat_map(|(i, node)| {
            let named = node.outputs.iter().enumerate().filter(|(_, name)| !name.is_empty());
            named.map(move |(output, name)| (ValueId { node: NodeId(i as u32), output: output as u32 }, name.as_str()))
        })
    }

    /// True for inputs and constants.
    pub(super) fn is_given(&self, value: ValueId) -> bool {
        is_given(&self.graph.node(value.node).op)
    }

    /// The session's i-th output.
    pub(super) fn target(&self, i: usize) -> Option<ValueId> {
        self.targets.get(i).copied()
    }

    /// What nodes read and write, each value once, constants left out.
    pub(super) fn operands(&self, nodes: &[usize]) -> Vec<ValueId> {
        let mut values: Vec<ValueId> = vec![];
        for &i in nodes {
            let Some(node) = self.graph.nodes().get(i) else { continue };
            let is_const = |value: &ValueId| matches!(self.graph.node(value.node).op, Op::Const(_));
            values.extend(node.inputs.iter().flatten().filter(|value| !is_const(value)));
            let named = |(_, name): &(usize, &String)| !name.is_empty() || node.outputs.len() == 1;
            let outputs = node.outputs.iter().enumerate().filter(named);
            values.extend(outputs.map(|(o, _)| ValueId { node: NodeId(i as u32), output: o as u32 }));
        }
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Computes values in one run.
    pub(super) fn values(&self, values: &[ValueId]) -> Result<HashMap<ValueId, Tensor>, Error> {
        let options = RunOptions { events: Some(&self.sources), ..RunOptions::default() };
        let tensors = realize(&self.executor, &self.graph, values, self.inputs, &options)?;
        Ok(values.iter().copied().zip(tensors).collect())
    }

    /// Nodes behind a value, its own included, in topological order; those behind a value that `enter` refuses are left
    /// out.
    pub(super) fn cone(&self, value: ValueId, mut enter: impl FnMut(ValueId) -> bool) -> Vec<usize> {
        let mut is_in = vec![false; self.graph.nodes().len()];
        is_in[value.node.0 as usize] = true;
        for i in (0..=value.node.0 as usize).rev() {
            if !is_in[i] {
                continue;
            }
            for &input in self.graph.nodes()[i].inputs.iter().flatten() {
                if !self.is_given(input) && enter(input) {
                    is_in[input.node.0 as usize] = true;
                }
            }
        }
        let is_step = |&i: &usize| is_in[i] && !is_given(&self.graph.nodes()[i].op);
        (0..is_in.len()).filter(is_step).collect()
    }

    /// Describes a difference.
    pub(super) fn differs(&self, value: ValueId, difference: Difference, cause: Cause) -> Differs {
        let node = self.graph.node(value.node);
        let mut rewrites = self.rewrites.iter().rev();
        let parts = rewrites.find(|rewrite| rewrite.node == node.name && rewrite.sources.len() > 1);
        let sources = self.sources.0.lock().unwrap_or_else(PoisonError::into_inner);
        Differs {
            node: node.name.clone(),
            op: node.op.info().name,
            parts: parts.map(|rewrite| rewrite.sources.clone()).unwrap_or_default(),
            source: sources.get(&node.name).cloned().unwrap_or_default(),
            value: self.graph.value_name(value).to_owned(),
            difference,
            cause,
        }
    }

    /// The value that a difference was described for.
    pub(super) fn value_of(&self, differs: &Differs) -> Option<ValueId> {
        self.graph.value_named(&differs.value)
    }
}

fn check(session: &Session, inputs: &[(String, Tensor)]) -> Result<(), Error> {
    let checker = &session.model.checker;
    let named = inputs.iter().map(|(name, tensor)| (name.as_str(), TensorRef::from(tensor).feed()));
    checker.check(&checker.arrange(named)?)
}

/// Computes values of a graph in one run, as it is.
fn realize(
    executor: &PipelinedExecutor,
    graph: &Arc<Graph>,
    values: &[ValueId],
    inputs: &[(String, Tensor)],
    options: &RunOptions<'_>,
) -> Result<Vec<Tensor>, Error> {
    let prepare = PrepareOptions { passes: false, ..PrepareOptions::default() };
    let prepared = executor.prepare(graph.clone(), values, prepare)?;
    let feed =
        |name: &str| inputs.iter().find(|(input, _)| input == name).map(|(_, tensor)| TensorRef::from(tensor).feed());
    let feeds: Vec<Option<Feed<'_>>> = graph.inputs().iter().map(|input| feed(&input.name)).collect();
    let mut collector = Collector::new(values.len(), &executor.config().budget);
    executor.run(&prepared, &feeds, options, &mut collector)?;
    collector.into_tensors()
}

/// What a node's reference makes of these values, one tensor an output that they hold.
///
/// **Errors**: what the reference says.
pub(super) fn reference_of(
    graph: &Graph,
    node: &Node,
    values: &HashMap<ValueId, Tensor>,
) -> Result<Vec<Option<Tensor>>, Error> {
    let problem = |what: String| Error::Output { problem: format!("node {:?}: {what}", node.name) };
    let mut alone = Graph::new(graph.name());
    let mut feeds: Vec<(String, Tensor)> = vec![];
    let mut operands = vec![];
    for (i, input) in node.inputs.iter().enumerate() {
        let Some(value) = input else {
            operands.push(None);
            continue;
        };
        operands.push(Some(match &graph.node(value.node).op {
            Op::Const(constant) => alone.constant(format!("c{i}"), constant.tensor.clone()),
            _ => {
                let tensor = values.get(value).ok_or_else(|| problem("an input was not computed".to_owned()))?;
                let name = format!("x{i}");
                feeds.push((name.clone(), tensor.clone()));
                alone.input(name, Spec::known(tensor.dtype(), tensor.shape()), None)
            }
        }));
    }
    let names: Vec<&str> = node.outputs.iter().map(String::as_str).collect();
    let id = alone.push(node.name.clone(), node.op.clone(), &operands, &names);
    let id = id.map_err(|error| problem(error.to_string()))?;
    let table = KernelBindingTable::finalize(&[], &[(BackendId::CPU, reference_kernel)]);
    let pool = Pool::new(1).map_err(|error| Error::Option { option: "threads", problem: error.to_string() })?;
    let executor = PipelinedExecutor::new(ExecutorConfig {
        pool: Arc::new(pool),
        table: Arc::new(table.map_err(|error| problem(error.to_string()))?),
        device: Arc::new(CpuDevice),
        budget: Budget::new(None),
    });
    let asked: Vec<ValueId> = (0..names.len() as u32)
        .filter(|&output| !names[output as usize].is_empty() || names.len() == 1)
        .map(|output| ValueId { node: id, output })
        .collect();
    let tensors = realize(&executor, &Arc::new(alone), &asked, &feeds, &RunOptions::default())?;
    let mut results = vec![None; names.len()];
    for (value, tensor) in asked.iter().zip(tensors) {
        results[value.output as usize] = Some(tensor);
    }
    Ok(results)
}
