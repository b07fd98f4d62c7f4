//! A graph made ready once: its program, its constants, its plans and their idle states.

use crate::RunError;
use crate::control::{Event, Readiness, RunOptions};
use crate::executor::ExecutorConfig;
use crate::flights::Flights;
use crate::state::PersistentOutputs;
use firstlight_backend::{Budget, Device, Reservation};
use firstlight_graph::{Graph, ValueId};
use firstlight_plan::passes::{PassCtx, PassSet, Rewrite, Rewritten, Stage, rewrite};
use firstlight_plan::{Adopted, Compiler, ConstPool, Fed, Plan, Program};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a graph is made ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrepareOptions {
    /// Rewrites the graph (fusion, folding); the results are the same bits either way.
    pub passes: bool,
    /// Passes that do not run, of those that would.
    pub disabled_passes: PassSet,
    /// The most bytes that constants computed by passes take, all together.
    pub max_folded_bytes: usize,
    /// Gives every value bytes of its own, so that all can be read after a run; no pass runs then.
    pub keep_all: bool,
}

impl Default for PrepareOptions {
    fn default() -> PrepareOptions {
        PrepareOptions { passes: true, disabled_passes: PassSet::NONE, max_folded_bytes: 16 << 20, keep_all: false }
    }
}

/// A graph made ready for its targets; shared by all runs.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) program: Arc<Program>,
    pub(crate) consts: ConstPool,
    pub(crate) options: PrepareOptions,
    pub(crate) gains_from_pipeline: bool,
    rewrites: Vec<Rewrite>,
    /// Of the constants that passes computed.
    _held: Vec<Reservation>,
    plans: Mutex<Vec<Arc<PlanEntry>>>,
    clock: AtomicU64,
    /// Runs that came to their end, and whether the last one's plan class was settled.
    answers: AtomicBool,
    settled: AtomicBool,
    pub(crate) flights: Flights,
}

/// A plan with the states that no run uses now.
#[derive(Debug)]
pub(crate) struct PlanEntry {
    pub(crate) plan: Plan,
    /// Whether a run has replayed the plan as a whole.
    settled: AtomicBool,
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    state: Box<PersistentOutputs>,
    last_use: u64,
}

impl PlanEntry {
    /// What a run means for the class: it compiled something, or it was a replay.
    pub(crate) fn ran(&self, streamed: bool) -> Option<Event<'static>> {
        if streamed {
            self.settled.store(false, Ordering::Relaxed);
            return Some(Event::FirstAnswer);
        }
        let settles = !self.settled.load(Ordering::Relaxed) && !self.settled.swap(true, Ordering::Relaxed);
        settles.then_some(Event::Settled)
    }
}

/// Nodes from which on, and bytes of weights from which on, a first run is worth handing over: below, compiling inline
/// takes less than waking a worker and passing items (docs/performance.md).
const PIPELINE_FROM_NODES: usize = 24;
const PIPELINE_FROM_BYTES: usize = 1 << 20;

/// Plan classes kept; beyond, the one not used for longest goes.
const MAX_PLANS: usize = 64;
/// Bytes of idle states kept.
const MAX_IDLE_BYTES: usize = 512 << 20;

impl Prepared {
    pub(crate) fn new(
        graph: Arc<Graph>,
        targets: &[ValueId],
        options: PrepareOptions,
        config: &ExecutorConfig,
        control: &RunOptions<'_>,
    ) -> Result<Prepared, RunError> {
        let Rewritten { graph, targets, rewrites, held } =
            rewritten(&graph, targets, Stage::Graph, options, config, control)?;
        let program = Arc::new(Program::new(graph, targets)?);
        Ok(Prepared {
            gains_from_pipeline: program.n_needed() >= PIPELINE_FROM_NODES
                && program.n_const_bytes() >= PIPELINE_FROM_BYTES,
            program,
            consts: ConstPool::new(config.device.clone(), config.budget.clone()),
            options,
            rewrites,
            _held: held,
            plans: Mutex::new(vec![]),
            clock: AtomicU64::new(0),
            answers: AtomicBool::new(false),
            settled: AtomicBool::new(false),
            flights: Flights::default(),
        })
    }

    /// What the passes that run once a graph rewrote, in order.
    pub fn rewrites(&self) -> &[Rewrite] {
        &self.rewrites
    }

    /// What those passes made of the graph, with the inputs of the one that was prepared; a plan has the program that is
    /// run for its class.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The plan of the class of what is fed, of which nothing is compiled yet.
    pub(crate) fn new_plan(
        &self,
        fed: &[Fed],
        adopted: Adopted,
        config: &ExecutorConfig,
        control: &RunOptions<'_>,
    ) -> Result<Plan, RunError> {
        let (graph, targets) = (self.program.graph(), self.program.targets());
        let Rewritten { graph, targets, rewrites, held } =
            rewritten(graph, targets, Stage::Class(fed), self.options, config, control)?;
        let program = match graph.id() == self.program.graph().id() {
            true => self.program.clone(),
            false => Arc::new(Program::new(graph, targets)?),
        };
        let mut plan = Compiler::plan(&program, fed, adopted, self.options.keep_all)?;
        (plan.rewrites, plan.held) = (rewrites, held);
        Ok(plan)
    }

    /// How ready the session is for the sizes that were run last.
    pub fn readiness(&self) -> Readiness {
        match (self.answers.load(Ordering::Relaxed), self.settled.load(Ordering::Relaxed)) {
            (false, _) => Readiness::Loaded,
            (true, false) => Readiness::Answers,
            (true, true) => Readiness::Settled,
        }
    }

    /// A run of the class came to its end.
    pub(crate) fn note_readiness(&self, entry: &PlanEntry) {
        self.settled.store(entry.settled.load(Ordering::Relaxed), Ordering::Relaxed);
        self.answers.store(true, Ordering::Relaxed);
    }

    /// Number of plan classes seen.
    pub fn n_plans(&self) -> usize {
        self.lock_plans().len()
    }

    /// Nodes compiled so far, over all plan classes.
    pub fn n_compiled(&self) -> usize {
        self.lock_plans().iter().map(|entry| entry.plan.counters.n_compiled()).sum()
    }

    /// Calls `each` for every plan that is kept, the one used last at the end.
    pub fn for_each_plan(&self, mut each: impl FnMut(&Plan)) {
        let plans = self.lock_plans().clone();
        plans.iter().for_each(|entry| each(&entry.plan));
    }

    fn lock_plans(&self) -> MutexGuard<'_, Vec<Arc<PlanEntry>>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan that `fits`, the last one used first, or the one that `make` gives. Other runs go on while it is made.
    pub(crate) fn plan(
        &self,
        fits: impl Fn(&Plan) -> bool,
        make: impl FnOnce() -> Result<Plan, RunError>,
    ) -> Result<Arc<PlanEntry>, RunError> {
        if let Some(entry) = used(&mut self.lock_plans(), &fits) {
            return Ok(entry);
        }
        let entry = Arc::new(PlanEntry { plan: make()?, settled: AtomicBool::new(false), idle: Mutex::new(vec![]) });
        let mut plans = self.lock_plans();
        // Another run of the class may have been quicker.
        if let Some(entry) = used(&mut plans, &fits) {
            return Ok(entry);
        }
        if plans.len() >= MAX_PLANS {
            plans.remove(0);
        }
        plans.push(entry.clone());
        Ok(entry)
    }

    /// Takes an idle state of a plan out, or makes a new one.
    pub(crate) fn check_out(
        &self,
        entry: &PlanEntry,
        device: &Arc<dyn Device>,
        budget: &Arc<Budget>,
    ) -> Box<PersistentOutputs> {
        let idle = entry.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(idle) => idle.state,
            None => {
                let mut state = PersistentOutputs::new(device.clone(), budget.clone());
                state.plan = entry.plan.id();
                Box::new(state)
            }
        }
    }

    /// Gives a state back after a run.
    pub(crate) fn check_in(&self, entry: &PlanEntry, state: Box<PersistentOutputs>) {
        let last_use = self.clock.fetch_add(1, Ordering::Relaxed);
        entry.idle.lock().unwrap_or_else(PoisonError::into_inner).push(Idle { state, last_use });
        self.trim(MAX_IDLE_BYTES);
    }

    /// Drops idle states, the one not used for longest first, until they hold at most `most` bytes; true when any was
    /// dropped.
    pub(crate) fn trim(&self, most: usize) -> bool {
        let mut dropped = false;
        loop {
            let plans = self.lock_plans();
            let mut total = 0;
            let mut oldest: Option<(u64, &Arc<PlanEntry>)> = None;
            for entry in plans.iter() {
                for idle in entry.idle.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                    total += idle.state.n_bytes();
                    if oldest.is_none_or(|(last_use, _)| idle.last_use < last_use) {
                        oldest = Some((idle.last_use, entry));
                    }
                }
            }
            let Some((last_use, entry)) = oldest.filter(|_| total > most) else { return dropped };
            entry.idle.lock().unwrap_or_else(PoisonError::into_inner).retain(|idle| idle.last_use != last_use);
            dropped = true;
        }
    }
}

/// The plan that fits, which becomes the last one; one that is worn goes.
fn used(plans: &mut Vec<Arc<PlanEntry>>, fits: impl Fn(&Plan) -> bool) -> Option<Arc<PlanEntry>> {
    let at = plans.iter().rposition(|entry| fits(&entry.plan))?;
    if plans[at].plan.counters.is_worn() {
        plans.remove(at);
        return None;
    }
    plans[at..].rotate_left(1);
    plans.last().cloned()
}

/// A graph after the passes of a stage, where passes are to run.
fn rewritten(
    graph: &Arc<Graph>,
    targets: &[ValueId],
    stage: Stage<'_>,
    options: PrepareOptions,
    config: &ExecutorConfig,
    control: &RunOptions<'_>,
) -> Result<Rewritten, RunError> {
    let ExecutorConfig { pool, table, device, budget } = config;
    if !options.passes || options.keep_all {
        return Ok(Rewritten { graph: graph.clone(), targets: targets.to_vec(), rewrites: vec![], held: vec![] });
    }
    let PrepareOptions { disabled_passes: disabled, max_folded_bytes, .. } = options;
    let ctx = PassCtx { table, device, budget, pool, disabled, max_folded_bytes, cancel: control.cancel };
    Ok(rewrite(graph, targets, stage, &ctx)?)
}
