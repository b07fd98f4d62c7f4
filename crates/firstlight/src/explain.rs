//! What a plan does and why: plain data, read from the plans that runs left behind or from one compiled for the purpose.

use crate::session::Model;
use crate::{Error, InputProblem, Session};
use firstlight_backend::{BackendStorage, HostStorage, KernelQuery, Loc, OperandSpec};
use firstlight_graph::{Graph, Node, NodeId, Op, ValueId, bind_types};
use firstlight_plan::passes::Rewrite;
use firstlight_plan::{CompiledNode, Plan, Program, Segment, SegmentEnd, StepKind, Watch};
use firstlight_tensor::{Bytes, DType, Shape};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};

/// What runs do for one set of input sizes, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The inputs: name, element type and shape; an input that is not fed keeps the model's default and is left out.
    pub inputs: Vec<(String, DType, Shape)>,
    /// Chains of steps. The first is where a run starts; each other one follows another, for one key.
    pub segments: Vec<ExplainedSegment>,
    /// What passes rewrote: the pass, the node that stands for the others, and those it was made of.
    pub rewrites: Vec<Rewrite>,
    /// Nodes of the main graph that need no step, in order, and why.
    pub without_step: Vec<NoStep>,
    /// False where compiling stopped at a value that only a run can tell.
    pub is_whole: bool,
    /// Bytes of the memory that intermediate values share.
    pub arena_bytes: usize,
    /// Bytes that intermediate values would take if none shared memory with another.
    pub unshared_bytes: usize,
    /// Bytes of mapped files that steps read.
    pub mapped_bytes: usize,
    /// Bytes of constants in memory that steps read: decoded, folded or aligned.
    pub held_bytes: usize,
    /// Arithmetic operations of all steps; bodies of loops are not counted.
    pub operations: u64,
}

/// Steps whose shapes are known before the first of them runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedSegment {
    /// Its number.
    pub index: u32,
    /// The segment that it follows, and what was found there.
    pub after: After,
    /// Its steps, in the order in which they run.
    pub steps: Vec<ExplainedStep>,
    /// What ends it.
    pub end: ExplainedEnd,
}

/// A segment and the dims, values or conditions that were found at its end, flat; `None` for the first segment.
pub type After = Option<(u32, Vec<i64>)>;

/// What ends a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplainedEnd {
    /// All outputs are computed; where each lies.
    Done(Vec<ExplainedOperand>),
    /// The shape of the last step's results.
    Shape,
    /// The elements of small values: a shape or a condition depends on them.
    Values(Vec<ExplainedOperand>),
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedStep {
    /// The node, named as in the model, outermost subgraph first.
    pub node: String,
    /// Its op; one made by a pass is not ONNX's.
    pub op: &'static str,
    /// Nodes of the model that the step stands for, with their ops, where a pass made one of several.
    pub parts: Vec<(String, &'static str)>,
    /// The kernel row that computes it, "reference", or "loop".
    pub source: &'static str,
    /// Rows that there are for its element types, first choice first.
    pub rows: Vec<ExplainedRow>,
    /// What it reads; `None` for an input that is left out.
    pub inputs: Vec<Option<ExplainedOperand>>,
    /// What it writes; bounds where `finds_shape`.
    pub outputs: Vec<ExplainedOperand>,
    /// True where the kernel finds the shape of its results.
    pub finds_shape: bool,
    /// Memory that the kernel works in.
    pub scratch: Option<(ExplainedPlace, usize)>,
    /// Arithmetic operations, as the planner counts them.
    pub operations: u64,
    /// What the body of a loop does, for each set of sizes that entered it.
    pub bodies: Vec<Explanation>,
}

/// A kernel that a step could use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplainedRow {
    /// Its name.
    pub source: &'static str,
    /// What became of it.
    pub verdict: RowVerdict,
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowVerdict {
    /// It computes the step.
    Chosen,
    /// It does not take these shapes or attributes.
    Refused,
    /// An earlier one was chosen.
    NotAsked,
}

/// A value that a step reads or writes; always dense, in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedOperand {
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: Shape,
    /// Size in bytes.
    pub bytes: usize,
    /// Where it lies.
    pub place: ExplainedPlace,
}

/// Where a value lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplainedPlace {
    /// In the memory that values share.
    Arena {
        /// The piece of memory.
        chunk: u32,
        /// The first byte in it.
        offset: usize,
    },
    /// In a buffer that grows while a loop runs.
    Grown(u32),
    /// In the mapped file, from that byte on.
    Mapped(usize),
    /// In memory of its own: a constant.
    Held,
    /// In storage that the caller fed.
    Fed,
}

/// A node that needs no step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoStep {
    /// The node.
    pub node: String,
    /// Its op.
    pub op: &'static str,
    /// Why.
    pub why: WhyNoStep,
}

/// Why a node needs no step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyNoStep {
    /// A pass computed, removed or merged it; `into` is the node that stands for it, where there is one.
    Pass {
        /// The pass.
        pass: &'static str,
        /// The node that it became a part of.
        into: Option<String>,
    },
    /// Its result is the bytes of its input under another shape.
    View,
    /// Its result follows from shapes and constants.
    Known,
    /// Its branches are walked: the steps of the one taken stand for it.
    Branch,
    /// No output needs it, or none does after the passes.
    Unneeded,
    /// Compiling stopped before it.
    NotReached,
}

impl Session {
    /// What runs so far do, for each set of input sizes that is kept, the one used last at the end.
    pub fn explain(&self) -> Vec<Explanation> {
        let mut all = vec![];
        self.model.prepared.for_each_plan(|plan| all.push(self.model.explained(plan)));
        all
    }

    /// What a run on inputs of these shapes would do, by compiling for them and running nothing: up to the end, or to
    /// the first value that only a run can tell. Nothing that runs use is changed.
    ///
    /// **Errors**: inputs that do not fit what the model declares; a node that cannot be compiled for them.
    pub fn explain_for<N: AsRef<str>>(
        &self,
        shapes: impl IntoIterator<Item = (N, Shape)>,
    ) -> Result<Explanation, Error> {
        let model = &*self.model;
        let mut specs: Vec<Option<OperandSpec>> = vec![None; self.inputs().len()];
        for (name, dims) in shapes {
            let at = model.checker.position(name.as_ref())?;
            let declared = &self.inputs()[at];
            let fits = declared.shape.as_ref().is_none_or(|shape| {
                let known = |(dim, &size): (&firstlight_tensor::Dim, &usize)| dim.known().is_none_or(|d| d == size);
                shape.rank() == dims.rank() && shape.iter().zip(&dims).all(known)
            });
            if let Some(expected) = declared.shape.as_ref().filter(|_| !fits) {
                let problem = InputProblem::Shape { expected: expected.clone(), got: dims };
                return Err(Error::Input { name: name.as_ref().to_owned(), problem });
            }
            specs[at] = Some(OperandSpec { dtype: declared.dtype, dims });
        }
        if let Some(missing) =
            self.inputs().iter().zip(&specs).find(|(input, spec)| !input.is_optional && spec.is_none())
        {
            return Err(Error::Input { name: missing.0.name.clone(), problem: InputProblem::Missing });
        }
        let plan = model.executor.compile_only(&model.prepared, &specs)?;
        Ok(model.explained(&plan))
    }
}

impl Model {
    fn explained(&self, plan: &Plan) -> Explanation {
        let rewrites: Vec<Rewrite> = self.prepared.rewrites().iter().chain(&plan.rewrites).cloned().collect();
        let origins = Origins::of(&self.graph, &rewrites);
        let mut explained = self.explained_steps(plan, &origins);
        explained.without_step = origins.without_step(&self.graph, &plan.program, &explained);
        explained.rewrites = rewrites;
        explained
    }

    fn explained_steps(&self, plan: &Plan, origins: &Origins<'_>) -> Explanation {
        let fed = plan.program.graph().inputs().iter().zip(&plan.key.inputs);
        let mut out = Explanation {
            inputs: fed
                .filter_map(|(i, spec)| spec.as_ref().map(|s| (i.name.clone(), s.dtype, s.dims.clone())))
                .collect(),
            segments: vec![],
            rewrites: vec![],
            without_step: vec![],
            is_whole: true,
            arena_bytes: 0,
            unshared_bytes: 0,
            mapped_bytes: 0,
            held_bytes: 0,
            operations: 0,
        };
        let (mut chunks, mut consts) = (HashMap::new(), HashSet::new());
        chunks.extend(plan.chunks.iter().copied());
        for spec in plan.inputs.iter().zip(&plan.key.inputs).filter_map(|(loc, spec)| loc.as_ref().and(spec.as_ref())) {
            out.unshared_bytes = out.unshared_bytes.saturating_add(spec.n_bytes());
        }
        let mut queue: Vec<(After, Arc<Segment>)> = vec![];
        queue.extend(plan.root().map(|root| (None, root.clone())));
        while let Some((after, segment)) = queue.pop() {
            for step in &segment.steps {
                chunks.extend(step.chunks.iter().copied());
                out.operations = out.operations.saturating_add(step.n_operations);
                let written = step.call.outputs.iter().map(OperandSpec::n_bytes).chain([step.call.scratch_bytes]);
                out.unshared_bytes = written.fold(out.unshared_bytes, usize::saturating_add);
                for loc in step.inputs.iter().flatten() {
                    let Loc::Const(storage) = loc else { continue };
                    if consts.insert(Arc::as_ptr(storage)) {
                        let sum =
                            if mapped_offset(storage).is_some() { &mut out.mapped_bytes } else { &mut out.held_bytes };
                        *sum = sum.saturating_add(storage.len());
                    }
                }
            }
            let mut children = segment.children();
            out.is_whole &= matches!(segment.end, SegmentEnd::Done(_)) || !children.is_empty();
            children.reverse();
            queue.extend(children.into_iter().map(|(key, child)| (Some((segment.index, key.to_vec())), child)));
            out.segments.push(ExplainedSegment {
                index: segment.index,
                after,
                steps: segment.steps.iter().map(|step| self.explained_step(step, origins)).collect(),
                end: explained_end(&segment.end),
            });
        }
        out.arena_bytes = chunks.values().fold(0, |sum: usize, n_bytes| sum.saturating_add(*n_bytes));
        out
    }

    fn explained_step(&self, step: &CompiledNode, origins: &Origins<'_>) -> ExplainedStep {
        let call = &step.call;
        let operand = |(spec, loc): (&OperandSpec, &Loc)| explained_operand(spec, loc);
        let inputs = call.inputs.iter().zip(&step.inputs);
        let bodies = match &step.kind {
            StepKind::Kernel => vec![],
            StepKind::Loop(looped) => {
                let plans = looped.plans.lock().unwrap_or_else(PoisonError::into_inner).clone();
                plans.iter().map(|plan| self.explained_steps(plan, origins)).collect()
            }
        };
        ExplainedStep {
            node: step.name.to_string(),
            op: call.op.info().name,
            parts: origins.parts(&step.name),
            source: step.source,
            rows: self.rows(step),
            inputs: inputs.map(|(spec, loc)| spec.as_ref().zip(loc.as_ref()).map(operand)).collect(),
            outputs: call.outputs.iter().zip(&step.outputs).map(operand).collect(),
            finds_shape: call.data_sized,
            scratch: step.scratch.as_ref().map(|loc| (explained_place(loc), call.scratch_bytes)),
            operations: step.n_operations,
            bodies,
        }
    }

    /// The rows that the planner had to choose from.
    fn rows(&self, step: &CompiledNode) -> Vec<ExplainedRow> {
        let call = &step.call;
        let inputs: Vec<Option<DType>> = call.inputs.iter().map(|spec| Some(spec.as_ref()?.dtype)).collect();
        let outputs: Vec<DType> = call.outputs.iter().map(|spec| spec.dtype).collect();
        let Ok(types) = bind_types(call.op.info(), &inputs, &outputs) else { return vec![] };
        let threads = self.runtime.pool.threads();
        let query = KernelQuery { op: &call.op, inputs: &call.inputs, outputs: &call.outputs, threads };
        let rows = self.runtime.table.rows(call.op.kind(), &types, self.runtime.device.backend());
        let rows: Vec<_> = rows.collect();
        let chosen = rows.iter().position(|row| (row.accepts)(&query));
        let verdict = |i: usize| match chosen {
            Some(chosen) if i == chosen => RowVerdict::Chosen,
            Some(chosen) if i > chosen => RowVerdict::NotAsked,
            _ => RowVerdict::Refused,
        };
        rows.iter().enumerate().map(|(i, row)| ExplainedRow { source: row.source, verdict: verdict(i) }).collect()
    }
}

/// Which nodes of the model a node of the rewritten graph stands for.
struct Origins<'a> {
    /// Ops of the model's nodes by their names, those around them included.
    ops: HashMap<String, &'static str>,
    /// Nodes of the model that a node stands for, where it is more than itself.
    parts: HashMap<&'a str, Vec<&'a str>>,
    /// The node that stands for each of those.
    holders: HashMap<&'a str, &'a str>,
    /// The first rewrite that each node was a source of.
    rewritten_by: HashMap<&'a str, &'a Rewrite>,
}

impl<'a> Origins<'a> {
    fn of(graph: &Graph, rewrites: &'a [Rewrite]) -> Origins<'a> {
        let mut ops = HashMap::new();
        collect_ops(graph, "", &mut ops);
        let mut parts: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut rewritten_by = HashMap::new();
        for rewrite in rewrites {
            for source in &rewrite.sources {
                rewritten_by.entry(source.as_str()).or_insert(rewrite);
            }
            if rewrite.sources.len() < 2 {
                continue;
            }
            let sources = rewrite.sources.iter();
            let whole =
                sources.flat_map(|source| parts.remove(source.as_str()).unwrap_or_else(|| vec![source])).collect();
            parts.insert(&rewrite.node, whole);
        }
        let holders = parts.iter().flat_map(|(holder, parts)| parts.iter().map(|part| (*part, *holder))).collect();
        Origins { ops, parts, holders, rewritten_by }
    }

    fn parts(&self, node: &str) -> Vec<(String, &'static str)> {
        let parts = self.parts.get(node).into_iter().flatten();
        parts.map(|&part| (part.to_owned(), self.ops.get(part).copied().unwrap_or(""))).collect()
    }

    fn without_step(&self, graph: &Graph, program: &Program, explained: &Explanation) -> Vec<NoStep> {
        let with_step: HashSet<&str> =
            explained.segments.iter().flat_map(|segment| &segment.steps).map(|step| step.node.as_str()).collect();
        let rewritten: HashMap<&str, usize> =
            program.graph().nodes().iter().enumerate().map(|(i, node)| (node.name.as_str(), i)).collect();
        // The last node with a step, where compiling stopped: what comes later was not reached.
        let reached = match explained.is_whole {
            true => usize::MAX,
            false => with_step.iter().filter_map(|name| rewritten.get(name)).max().copied().unwrap_or(0),
        };
        let known = known_nodes(program, &with_step);
        let why = |node: &Node| {
            if let Some((pass, into)) = self.pass_of(&node.name, &rewritten) {
                return WhyNoStep::Pass { pass, into };
            }
            let Some(&at) = rewritten.get(node.name.as_str()).filter(|at| program.is_needed(**at)) else {
                return WhyNoStep::Unneeded;
            };
            let op = &program.graph().nodes()[at].op;
            match op {
                _ if at > reached && !known.contains(&at) => WhyNoStep::NotReached,
                Op::If(_) => WhyNoStep::Branch,
                _ if op.def().is_view() && !known.contains(&at) => WhyNoStep::View,
                _ => WhyNoStep::Known,
            }
        };
        let silent =
            |node: &&Node| !matches!(node.op, Op::Const(_) | Op::Input(_)) && !with_step.contains(node.name.as_str());
        let told = |node: &Node| NoStep { node: node.name.clone(), op: node.op.info().name, why: why(node) };
        graph.nodes().iter().filter(silent).map(told).collect()
    }

    /// The pass that took a node away, and the node that it became a part of.
    fn pass_of(&self, node: &str, rewritten: &HashMap<&str, usize>) -> Option<(&'static str, Option<String>)> {
        let rewrite = self.rewritten_by.get(node)?;
        if rewrite.node != node {
            return Some((rewrite.rule, Some(self.stands_for(node, &rewrite.node))));
        }
        // A pass that made the node of itself alone made it a constant or nothing.
        let is_gone = !rewritten.contains_key(node) || rewrite.sources.len() == 1;
        let into = self.stands_for(node, node);
        if into != node { Some((rewrite.rule, Some(into))) } else { is_gone.then_some((rewrite.rule, None)) }
    }

    /// The node that stands for `node` at the end; `first` is the one that a pass put in its place.
    fn stands_for(&self, node: &str, first: &str) -> String {
        self.holders.get(node).copied().unwrap_or(first).to_owned()
    }
}

/// Nodes of the main graph whose results follow from shapes and constants: they have no step, and neither is the
/// reason for it that they are views of something that has.
fn known_nodes(program: &Program, with_step: &HashSet<&str>) -> HashSet<usize> {
    let nodes = program.graph().nodes();
    let mut known = HashSet::new();
    for (i, node) in nodes.iter().enumerate() {
        let from = |value: &ValueId| known.contains(&(value.node.0 as usize));
        let is_known = match &node.op {
            Op::Const(_) => true,
            Op::Input(_) | Op::If(_) | Op::Loop(_) => false,
            _ if with_step.contains(node.name.as_str()) => false,
            Op::Shape(_) | Op::Size(_) => true,
            _ => node.inputs.iter().flatten().all(from),
        };
        if is_known {
            known.insert(NodeId(i as u32).0 as usize);
        }
    }
    known
}

fn collect_ops(graph: &Graph, prefix: &str, ops: &mut HashMap<String, &'static str>) {
    for node in graph.nodes() {
        if matches!(node.op, Op::Const(_) | Op::Input(_)) {
            continue;
        }
        let name = format!("{prefix}{}", node.name);
        node.op.subgraphs().for_each(|subgraph| collect_ops(subgraph, &format!("{name}/"), ops));
        ops.insert(name, node.op.info().name);
    }
}

fn explained_end(end: &SegmentEnd) -> ExplainedEnd {
    match end {
        SegmentEnd::Done(outputs) => {
            ExplainedEnd::Done(outputs.iter().map(|output| explained_operand(&output.spec, &output.loc)).collect())
        }
        SegmentEnd::Await(watched) => {
            let values: Vec<ExplainedOperand> = watched
                .iter()
                .filter_map(|watch| match watch {
                    Watch::Value { spec, loc } => Some(explained_operand(spec, loc)),
                    Watch::Dims { .. } => None,
                })
                .collect();
            if values.is_empty() { ExplainedEnd::Shape } else { ExplainedEnd::Values(values) }
        }
    }
}

fn explained_operand(spec: &OperandSpec, loc: &Loc) -> ExplainedOperand {
    let place = explained_place(loc);
    ExplainedOperand { dtype: spec.dtype, shape: spec.dims.clone(), bytes: spec.n_bytes(), place }
}

fn explained_place(loc: &Loc) -> ExplainedPlace {
    match loc {
        Loc::Arena { chunk, offset } => ExplainedPlace::Arena { chunk: *chunk, offset: *offset },
        Loc::Grown(index) => ExplainedPlace::Grown(*index),
        Loc::Adopted(_) => ExplainedPlace::Fed,
        Loc::Const(storage) => mapped_offset(storage).map_or(ExplainedPlace::Held, ExplainedPlace::Mapped),
    }
}

fn mapped_offset(storage: &BackendStorage) -> Option<usize> {
    match storage {
        BackendStorage::Host(HostStorage::Bytes(Bytes::Mapped { file, offset, .. })) if file.is_mapped() => {
            Some(*offset)
        }
        _ => None,
    }
}
