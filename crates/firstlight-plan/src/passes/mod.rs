//! Passes: rewrites of a graph that keep its results bit for bit.
//!
//! [`rewrite`] runs the passes of [`PASSES`] that belong to a stage one after the other on a graph, then on its
//! subgraphs: some once a graph, whatever is fed; others for each plan class, on its sizes, since files hide sizes in
//! computed shapes. A pass looks at a `Scope` and names an `Action` for each node it changes; `apply` makes the new graph
//! of them.
//! A pass is linear in the graph, and leaves alone whatever it is not sure of.

mod absorb_transpose;
mod apply;
mod drop_identities;
mod facts;
mod fold_constants;
mod fuse_chain;
mod fuse_elementwise;
mod fuse_epilogue;

use crate::{Fed, PlanError};
use facts::{Fact, Facts, Fresh};
use firstlight_backend::{Budget, Device, KernelBindingTable, Pool, Reservation};
use firstlight_graph::{Graph, Node, Op, OpError, ValueId};
use firstlight_tensor::{CancelToken, Tensor};
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::sync::Arc;

/// A pass: its name and what it changes in a graph.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Name by which callers disable it and rewrites are explained.
    pub name: &'static str,
    /// True for a pass that looks at the sizes of a plan class, false for one that runs once a graph.
    pub per_class: bool,
    /// Names an action for each node that is to change.
    find: fn(&mut Scope<'_, '_>) -> Vec<(usize, Action)>,
}

/// All passes, in the order in which they run.
pub const PASSES: &[Pass] = &[
    Pass { name: "absorb-transpose", per_class: false, find: absorb_transpose::find },
    Pass { name: "fold-constants", per_class: false, find: fold_constants::find },
    Pass { name: "drop-identities", per_class: false, find: drop_identities::find },
    Pass { name: "fuse-epilogue", per_class: true, find: fuse_epilogue::find },
    Pass { name: "fuse-elementwise", per_class: true, find: fuse_elementwise::find },
    Pass { name: "fuse-chain", per_class: true, find: fuse_chain::find },
];

/// A set of passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PassSet(u32);

impl PassSet {
    /// No pass.
    pub const NONE: PassSet = PassSet(0);

    /// Every pass.
    pub const ALL: PassSet = PassSet(u32::MAX);

    /// The pass of that name, or `None` when there is no such pass.
    pub fn named(name: &str) -> Option<PassSet> {
        PASSES.iter().position(|pass| pass.name == name).map(|i| PassSet(1 << i))
    }

    /// The passes of both sets.
    pub fn with(self, other: PassSet) -> PassSet {
        PassSet(self.0 | other.0)
    }

    fn has(self, i: usize) -> bool {
        self.0 >> i & 1 == 1
    }
}

/// Which passes run, and what they know of the graph's inputs.
#[derive(Clone, Copy, Debug)]
pub enum Stage<'a> {
    /// Those that run once a graph: no more is known than what runs check inputs against.
    Graph,
    /// Those of a plan class: what is fed, in order.
    Class(&'a [Fed]),
}

/// What passes may use: constants are folded by the kernels that would have run.
#[derive(Clone, Copy, Debug)]
pub struct PassCtx<'a> {
    /// The kernels that fold constants.
    pub table: &'a KernelBindingTable,
    /// Where they run.
    pub device: &'a Arc<dyn Device>,
    /// What folded constants are reserved from.
    pub budget: &'a Arc<Budget>,
    /// The threads that run tiles.
    pub pool: &'a Pool,
    /// Passes that do not run.
    pub disabled: PassSet,
    /// The most bytes that folded constants take, all together.
    pub max_folded_bytes: usize,
    /// Ends the passes early.
    pub cancel: Option<&'a CancelToken>,
}

impl PassCtx<'_> {
    fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(CancelToken::is_cancelled)
    }
}

/// A graph after the passes.
#[derive(Debug)]
pub struct Rewritten {
    /// What the passes made: the graph that was given where nothing changed.
    pub graph: Arc<Graph>,
    /// The targets, as values of `graph`.
    pub targets: Vec<ValueId>,
    /// What was rewritten, in order.
    pub rewrites: Vec<Rewrite>,
    /// The budget's share of folded constants.
    pub held: Vec<Reservation>,
}

/// One rewrite, for explaining a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// Name of the pass.
    pub rule: &'static str,
    /// The node that stands for the sources, outermost subgraph first; it has the last source's name.
    pub node: String,
    /// Names of the nodes it was made of, in order.
    pub sources: Vec<String>,
}

/// What a pass does with a node.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "most actions are of the large kind, and few live at once")]
enum Action {
    /// Whoever reads the node's only output reads this earlier value.
    Replace(ValueId),
    /// The outputs are these constants.
    Fold(Vec<(Tensor, Option<Reservation>)>),
    /// The node becomes another one under its name. `sources` are the nodes it is made of, itself last.
    Become { op: Op, inputs: SmallVec<[Option<ValueId>; 4]>, sources: Vec<usize> },
}

/// The graph that a pass looks at.
struct Scope<'a, 's> {
    graph: &'a Graph,
    ctx: &'a PassCtx<'a>,
    state: &'s mut State,
    /// What is known of the graph's inputs.
    inputs: &'a [Fact],
    /// First dense index of each node's values.
    first_value: Vec<u32>,
    needed: Vec<bool>,
    n_uses: Vec<u32>,
    facts: OnceCell<Facts>,
}

/// What all passes of one rewrite share.
struct State {
    per_class: bool,
    fresh: Fresh,
    folded_bytes: usize,
    folded_operations: u64,
    rewrites: Vec<Rewrite>,
    held: Vec<Reservation>,
}

/// Depth of nested subgraphs that are rewritten; the importer's limit is lower.
const MAX_DEPTH: usize = 256;

/// Runs the passes on a graph and its subgraphs.
///
/// Inputs are kept, in order, with their names and defaults. Node names are kept; a fused node has its last node's name.
///
/// **Errors**: a target that is no value of the graph; a graph that breaks its own rules; cancelled.
pub fn rewrite(
    graph: &Arc<Graph>,
    targets: &[ValueId],
    stage: Stage<'_>,
    ctx: &PassCtx<'_>,
) -> Result<Rewritten, PlanError> {
    apply::first_values(graph, targets).map_err(|error| PlanError::Target(error.message().to_owned()))?;
    let mut state = State {
        per_class: matches!(stage, Stage::Class(_)),
        fresh: Fresh::default(),
        folded_bytes: 0,
        folded_operations: 0,
        rewrites: vec![],
        held: vec![],
    };
    let inputs = match stage {
        Stage::Graph => Fact::declared(graph, &mut state.fresh),
        Stage::Class(fed) => fed.iter().map(Fact::fed).collect(),
    };
    let _running = ctx.pool.run_guard();
    let rewritten = rewrite_graph(graph, targets.to_vec(), &inputs, "", 0, ctx, &mut state);
    if ctx.is_cancelled() {
        return Err(PlanError::Cancelled);
    }
    let (graph, targets) = rewritten.map_err(|error| PlanError::Internal(error.to_string()))?;
    Ok(Rewritten { graph, targets, rewrites: state.rewrites, held: state.held })
}

fn rewrite_graph(
    graph: &Arc<Graph>,
    targets: Vec<ValueId>,
    inputs: &[Fact],
    prefix: &str,
    depth: usize,
    ctx: &PassCtx<'_>,
    state: &mut State,
) -> Result<(Arc<Graph>, Vec<ValueId>), OpError> {
    let (mut graph, mut targets) = (graph.clone(), targets);
    for (i, pass) in PASSES.iter().enumerate() {
        if ctx.disabled.has(i) || pass.per_class != state.per_class || ctx.is_cancelled() {
            continue;
        }
        let mut scope = Scope::new(&graph, &targets, inputs, ctx, state)?;
        let actions = (pass.find)(&mut scope);
        if !actions.is_empty() {
            let applied = apply::apply(&graph, &targets, actions)?;
            let (new_graph, new_targets) = (applied.graph, applied.targets);
            state.held.extend(applied.held);
            for (node, sources) in applied.changed {
                let name = |node: usize| format!("{prefix}{}", graph.nodes()[node].name);
                let sources = sources.into_iter().map(name).collect();
                state.rewrites.push(Rewrite { rule: pass.name, node: name(node), sources });
            }
            (graph, targets) = (Arc::new(new_graph), new_targets);
        }
    }
    if depth < MAX_DEPTH && graph.nodes().iter().any(|node| node.op.subgraphs().next().is_some()) {
        return rewrite_subgraphs(&graph, targets, inputs, prefix, depth, ctx, state);
    }
    Ok((graph, targets))
}

fn rewrite_subgraphs(
    graph: &Arc<Graph>,
    targets: Vec<ValueId>,
    inputs: &[Fact],
    prefix: &str,
    depth: usize,
    ctx: &PassCtx<'_>,
    state: &mut State,
) -> Result<(Arc<Graph>, Vec<ValueId>), OpError> {
    let facts = Facts::of(graph, inputs, &mut state.fresh);
    let mut actions = vec![];
    for (i, node) in graph.nodes().iter().enumerate() {
        // Inputs of the node that enter its subgraphs as they are, from this one on; earlier ones of the subgraph may change.
        let first_capture = match &node.op {
            Op::If(_) => 1,
            Op::Loop(op) => 2usize.saturating_add(op.n_carried),
            _ => continue,
        };
        let captured = node.inputs.get(first_capture..).unwrap_or(&[]);
        let prefix = format!("{prefix}{}/", node.name);
        let inner = |subgraph: &Arc<Graph>, state: &mut State| {
            let before = subgraph.inputs().len().saturating_sub(captured.len());
            let mut inputs = vec![Fact::default(); before];
            inputs
                .extend(captured.iter().map(|value| value.map_or_else(Fact::default, |value| facts.at(value).clone())));
            let outputs = subgraph.outputs().iter().map(|(_, value)| *value).collect();
            rewrite_graph(subgraph, outputs, &inputs, &prefix, depth + 1, ctx, state).map(|(graph, _)| graph)
        };
        let op = match &node.op {
            Op::If(op) => {
                let mut op = op.clone();
                op.then_branch = inner(&op.then_branch, state)?;
                op.else_branch = inner(&op.else_branch, state)?;
                Op::If(op)
            }
            Op::Loop(op) => {
                let mut op = op.clone();
                op.body = inner(&op.body, state)?;
                Op::Loop(op)
            }
            _ => continue,
        };
        let same = op.subgraphs().zip(node.op.subgraphs()).all(|(new, old)| new.id() == old.id());
        if !same {
            actions.push((i, Action::Become { op, inputs: node.inputs.clone(), sources: vec![] }));
        }
    }
    if actions.is_empty() {
        return Ok((graph.clone(), targets));
    }
    let applied = apply::apply(graph, &targets, actions)?;
    Ok((Arc::new(applied.graph), applied.targets))
}

impl<'a, 's> Scope<'a, 's> {
    fn new(
        graph: &'a Graph,
        targets: &[ValueId],
        inputs: &'a [Fact],
        ctx: &'a PassCtx<'a>,
        state: &'s mut State,
    ) -> Result<Scope<'a, 's>, OpError> {
        let first_value = apply::first_values(graph, targets)?;
        let n_values = graph.nodes().iter().map(|node| node.outputs.len()).sum();
        let (needed, n_uses) = (vec![false; graph.nodes().len()], vec![0; n_values]);
        let mut scope = Scope { graph, ctx, state, inputs, first_value, needed, n_uses, facts: OnceCell::new() };
        for &target in targets {
            scope.read(target);
        }
        for (i, node) in graph.nodes().iter().enumerate().rev() {
            if scope.needed[i] {
                node.inputs.iter().flatten().for_each(|&input| scope.read(input));
            }
        }
        Ok(scope)
    }

    fn read(&mut self, value: ValueId) {
        self.needed[value.node.0 as usize] = true;
        self.n_uses[(self.first_value[value.node.0 as usize] + value.output) as usize] += 1;
    }

    /// The nodes that a target depends on, in order.
    fn nodes(&self) -> impl Iterator<Item = (usize, &'a Node)> + use<'a, '_, 's> {
        self.graph.nodes().iter().enumerate().filter(|(i, _)| self.needed[*i])
    }

    /// Dense index of a value.
    fn place(&self, value: ValueId) -> usize {
        (self.first_value[value.node.0 as usize] + value.output) as usize
    }

    /// For each value the node that reads it, where nothing else does, targets included.
    fn sole_readers(&self) -> Vec<Option<usize>> {
        let mut readers = vec![None; self.n_uses.len()];
        for (i, node) in self.nodes() {
            for &input in node.inputs.iter().flatten() {
                readers[self.place(input)] = Some(i).filter(|_| self.n_uses[self.place(input)] == 1);
            }
        }
        readers
    }

    /// What is known of a value.
    fn fact(&mut self, value: ValueId) -> &Fact {
        let fresh = &mut self.state.fresh;
        self.facts.get_or_init(|| Facts::of(self.graph, self.inputs, fresh)).at(value)
    }

    /// A constant's tensor.
    fn constant(&self, value: ValueId) -> Option<&'a Tensor> {
        match &self.graph.node(value.node).op {
            Op::Const(constant) => Some(&constant.tensor),
            _ => None,
        }
    }
}
