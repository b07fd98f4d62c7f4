//! Finds the first node of a model whose values are wrong: against each node's reference, against the graph without
//! passes, or against saved values.
//!
//! What is looked at is the graph that runs: fused and folded where the session's passes did so, with the branches that
//! the given inputs take in place of each `If`, named as steps are. The body of a loop is looked at as one node.
//!
//! ```
//! # fn main() -> Result<(), firstlight::Error> {
//! use firstlight::{Session, Tensor, compare};
//!
//! # let model = firstlight::doc::one_add();
//! let session = Session::builder().load_bytes(model)?;
//! let inputs = [("x".to_owned(), Tensor::from_slice([4], &[1f32, 2., 3., 4.])?)];
//! let options = compare::Options::default();
//! assert!(compare::against_references(&session, &inputs, &options)?.first().is_none());
//!
//! let saved = [("y".to_owned(), Tensor::from_slice([4], &[2f32, 4., 6., 9.])?)];
//! let report = compare::against_saved(&session, &inputs, &saved, &options)?;
//! let first = report.first().ok_or(firstlight::Error::Output { problem: "equal".to_owned() })?;
//! assert_eq!((first.difference.absolute, first.difference.index.as_slice()), (1., &[3][..]));
//! assert_eq!(first.cause, compare::Cause::Fed); // the kernel agrees with its reference: the saved value is wrong
//! # Ok(())
//! # }
//! ```

mod branches;
mod difference;
mod values;

pub use difference::{Difference, Tolerance};

use crate::{Error, Session};
use firstlight_graph::{Exactness, Graph, Node, NodeId, Op, ValueId};
use firstlight_tensor::{DType, Tensor};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use values::{Tested, reference_of};

/// How values are compared.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// What differences are let pass; `None`: those of [`Tolerance::of`] for references and saved values, none at all
    /// for the graph without passes.
    pub tolerance: Option<Tolerance>,
    /// Goes on after the first node that differs.
    pub all: bool,
    /// The most bytes to own while values are looked at; more values than fit are computed in several runs.
    pub max_bytes: usize,
    /// Told how many nodes of how many have been looked at.
    pub progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
}

/// What a comparison found.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Values compared: for references, nodes.
    pub n_compared: usize,
    /// What differs, in topological order: the first one is the one to look at.
    pub differing: Vec<Differs>,
    /// Saved values that the model does not have, and values that could not be compared, with the reason.
    pub not_compared: Vec<(String, String)>,
}

/// A value that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Differs {
    /// The node that computes it, named as in the model, outermost subgraph first.
    pub node: String,
    /// Its op; one made by a pass is not ONNX's.
    pub op: &'static str,
    /// Nodes of the model that it stands for, where a pass made one of several.
    pub parts: Vec<String>,
    /// The kernel row that computed it; empty where no kernel ran.
    pub source: String,
    /// The value's name.
    pub value: String,
    /// By how much.
    pub difference: Difference,
    /// Where the difference comes from.
    pub cause: Cause,
}

/// Where a difference comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// The node: on the values that it was fed, its reference gives something else, by this much.
    Node(Difference),
    /// The node, as nothing that it reads differs; its reference agrees with it.
    Fed,
    /// Another node, whose difference is passed on: the node's reference agrees with it.
    Inherited,
    /// A node before it that was not compared, and that its own reference contradicts: this one.
    Earlier(Box<Differs>),
    /// None of the nodes between values that agree and this one: each agrees with its reference.
    Elsewhere,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { tolerance: None, all: false, max_bytes: 1 << 30, progress: None }
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { tolerance, all, max_bytes, progress } = self;
        let mut f = f.debug_struct("Options");
        f.field("tolerance", tolerance).field("all", all).field("max_bytes", max_bytes);
        f.field("progress", &progress.is_some()).finish()
    }
}

impl Report {
    /// The first node that differs.
    pub fn first(&self) -> Option<&Differs> {
        self.differing.first()
    }
}

/// Compares each node with its reference, on the values that the session's run feeds it: what nodes before it did to
/// them is not held against it.
///
/// **Errors**: as a run; the reference of a node fails; values of one node that take more than `max_bytes`.
pub fn against_references(
    session: &Session,
    inputs: &[(String, Tensor)],
    options: &Options<'_>,
) -> Result<Report, Error> {
    let tested = Tested::of(session, inputs, options.max_bytes)?;
    let nodes: Vec<usize> = tested.steps().collect();
    let (differing, n_compared) = tested.check_nodes(&nodes, options)?;
    Ok(Report { n_compared, differing, not_compared: vec![] })
}

/// Compares each value of the session's graph with that of the graph as it is written; every bit must be the same.
///
/// **Errors**: as a run; values of one node that take more than `max_bytes`.
pub fn against_no_passes(
    session: &Session,
    inputs: &[(String, Tensor)],
    options: &Options<'_>,
) -> Result<Report, Error> {
    let tested = Tested::of(session, inputs, options.max_bytes)?;
    let written = Tested::written(session, inputs, options.max_bytes)?;
    let names: HashMap<&str, ValueId> = written.named_values().map(|(value, name)| (name, value)).collect();
    let pairs: Vec<(ValueId, ValueId)> = tested
        .named_values()
        .filter_map(|(value, name)| Some((value, *names.get(name)?)))
        .filter(|(value, other)| !(tested.is_given(*value) && written.is_given(*other)))
        .collect();
    let mut report = Report { n_compared: 0, differing: vec![], not_compared: vec![] };
    let mut marks = HashMap::new();
    let tolerance = options.tolerance.unwrap_or(Tolerance::NONE);
    in_batches(pairs.len(), |batch| {
        let part = &pairs[batch.clone()];
        let got = tested.values(&part.iter().map(|(value, _)| *value).collect::<Vec<_>>())?;
        let want = written.values(&part.iter().map(|(_, value)| *value).collect::<Vec<_>>())?;
        for &(value, other) in part {
            report.n_compared += 1;
            let difference = Difference::between(&got[&value], &want[&other], tolerance);
            marks.insert(value, difference.is_some());
            if let Some(difference) = difference {
                report.differing.push(tested.differs(value, difference, Cause::Elsewhere));
            }
        }
        options.tell(batch.end, pairs.len());
        Ok(options.all || report.differing.is_empty())
    })?;
    tested.find_causes(&mut report, &marks, options)?;
    Ok(report)
}

/// Compares outputs of the session with saved values of their names. Load the session with the names in
/// [`keep_intermediates`](crate::SessionBuilder::keep_intermediates), so that passes leave them there.
///
/// Where a value differs, the nodes between it and the values that agree are compared with their references, so that
/// the one at fault is named even where its own value was not saved.
///
/// **Errors**: as [`against_references`].
pub fn against_saved(
    session: &Session,
    inputs: &[(String, Tensor)],
    saved: &[(String, Tensor)],
    options: &Options<'_>,
) -> Result<Report, Error> {
    let tested = Tested::of(session, inputs, options.max_bytes)?;
    let mut report = Report { n_compared: 0, differing: vec![], not_compared: vec![] };
    let mut pairs: Vec<(ValueId, &Tensor)> = vec![];
    for (name, tensor) in saved {
        match session.outputs().iter().position(|spec| spec.name == *name).and_then(|i| tested.target(i)) {
            Some(value) => pairs.push((value, tensor)),
            None => report.not_compared.push((name.clone(), "the session does not return it".to_owned())),
        }
    }
    pairs.sort_by_key(|(value, _)| *value);
    let mut marks = HashMap::new();
    in_batches(pairs.len(), |batch| {
        let part = &pairs[batch.clone()];
        let got = tested.values(&part.iter().map(|(value, _)| *value).collect::<Vec<_>>())?;
        for &(value, want) in part {
            report.n_compared += 1;
            let tolerance = options.tolerance.unwrap_or_else(|| Tolerance::of(got[&value].dtype()));
            let difference = Difference::between(&got[&value], want, tolerance);
            marks.insert(value, difference.is_some());
            if let Some(difference) = difference {
                report.differing.push(tested.differs(value, difference, Cause::Elsewhere));
            }
        }
        options.tell(batch.end, pairs.len());
        Ok(options.all || report.differing.is_empty())
    })?;
    tested.find_causes(&mut report, &marks, options)?;
    Ok(report)
}

impl Options<'_> {
    fn tell(&self, done: usize, of: usize) {
        if let Some(progress) = self.progress {
            progress(done, of);
        }
    }
}

/// Calls `work` for parts of `0..n`, all at once first, then smaller parts where memory does not suffice; it says
/// whether to go on.
fn in_batches(n: usize, mut work: impl FnMut(Range<usize>) -> Result<bool, Error>) -> Result<(), Error> {
    let (mut from, mut size) = (0, n.max(1));
    while from < n {
        let to = (from + size).min(n);
        match work(from..to) {
            Ok(true) => from = to,
            Ok(false) => return Ok(()),
            Err(Error::Run(error)) if error.is_over_budget() && to - from > 1 => size = (to - from).div_ceil(2),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Tested<'_> {
    /// Compares nodes with their references; what differs comes in order, and the number of nodes compared.
    fn check_nodes(&self, nodes: &[usize], options: &Options<'_>) -> Result<(Vec<Differs>, usize), Error> {
        let mut found = vec![];
        let n_done = AtomicUsize::new(0);
        in_batches(nodes.len(), |batch| {
            let part = &nodes[batch];
            let values = self.values(&self.operands(part))?;
            let next = AtomicUsize::new(0);
            let state = Mutex::new(Checked { stop_after: usize::MAX, differing: vec![], error: None });
            let work = || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&node) = part.get(i) else { return };
                    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
                    {
                        let state = lock();
                        if state.stop_after < i || state.error.is_some() {
                            return;
                        }
                    }
                    match self.check_node(node, &values, options) {
                        Ok(None) => {}
                        Ok(Some(differs)) => {
                            let mut state = lock();
                            state.differing.push((i, differs));
                            if !options.all {
                                state.stop_after = state.stop_after.min(i);
                            }
                        }
                        Err(error) => return lock().error = Some(error),
                    }
                    options.tell(n_done.fetch_add(1, Ordering::Relaxed) + 1, nodes.len());
                }
            };
            std::thread::scope(|scope| {
                for _ in 1..self.threads().min(part.len()) {
                    scope.spawn(work);
                }
                work();
            });
            let Checked { mut differing, error, .. } = state.into_inner().unwrap_or_else(PoisonError::into_inner);
            if let Some(error) = error {
                return Err(error);
            }
            differing.sort_by_key(|(i, _)| *i);
            if !options.all {
                differing.truncate(1);
            }
            let is_clean = differing.is_empty();
            found.extend(differing.into_iter().map(|(_, differs)| differs));
            Ok(options.all || is_clean)
        })?;
        Ok((found, n_done.into_inner()))
    }

    /// Compares a node with its reference on these values.
    fn check_node(
        &self,
        node: usize,
        values: &HashMap<ValueId, Tensor>,
        options: &Options<'_>,
    ) -> Result<Option<Differs>, Error> {
        let at = &self.graph.nodes()[node];
        if at.op.info().exactness == Exactness::Random {
            return Ok(None);
        }
        let wants = reference_of(&self.graph, at, values)?;
        let mut worst: Option<(ValueId, Difference)> = None;
        for (output, want) in wants.into_iter().enumerate() {
            let value = ValueId { node: NodeId(node as u32), output: output as u32 };
            let (Some(want), Some(got)) = (want, values.get(&value)) else { continue };
            let tolerance = options.tolerance.unwrap_or_else(|| tolerance_of(at, got.dtype()));
            let difference = Difference::between(got, &want, tolerance);
            if let Some(difference) = difference
                && worst.as_ref().is_none_or(|(_, worst)| worst.relative < difference.relative)
            {
                worst = Some((value, difference));
            }
        }
        let differs = |(value, difference): (ValueId, Difference)| {
            self.differs(value, difference.clone(), Cause::Node(difference))
        };
        Ok(worst.map(differs))
    }

    /// Says of each difference where it comes from; of the first one only, unless all are asked for.
    fn find_causes(
        &self,
        report: &mut Report,
        marks: &HashMap<ValueId, bool>,
        options: &Options<'_>,
    ) -> Result<(), Error> {
        if !options.all {
            report.differing.truncate(1);
        }
        for differs in &mut report.differing {
            let Some(value) = self.value_of(differs) else { continue };
            let mut inherited = false;
            let nodes = self.cone(value, |input| match marks.get(&input) {
                Some(true) => {
                    inherited = true;
                    false
                }
                Some(false) => false,
                None => true,
            });
            let own = value.node.0 as usize;
            // Whatever was let pass between two runs, a kernel is held to what its op lets pass.
            let (mut found, _) = self.check_nodes(&nodes, &Options { all: false, tolerance: None, ..*options })?;
            differs.cause = match found.pop() {
                Some(first) if Some(first.node.as_str()) == self.graph.nodes().get(own).map(|n| n.name.as_str()) => {
                    first.cause
                }
                Some(first) => Cause::Earlier(Box::new(first)),
                None if inherited => Cause::Inherited,
                None if nodes.len() <= 1 => Cause::Fed,
                None => Cause::Elsewhere,
            };
        }
        Ok(())
    }
}

/// What threads found in a batch of nodes.
struct Checked {
    /// Nodes from there on need not be looked at.
    stop_after: usize,
    differing: Vec<(usize, Differs)>,
    error: Option<Error>,
}

/// What a node's kernel may differ from its reference by.
fn tolerance_of(node: &Node, dtype: DType) -> Tolerance {
    match node.op.info().exactness {
        Exactness::Exact => Tolerance::EQUAL,
        Exactness::Rounding | Exactness::Random => Tolerance::of(dtype),
    }
}

/// True for what is given and not computed.
fn is_given(op: &Op) -> bool {
    matches!(op, Op::Const(_) | Op::Input(_))
}

/// The graph behind an `Arc`, with its targets.
type Targeted = (Arc<Graph>, Vec<ValueId>);
