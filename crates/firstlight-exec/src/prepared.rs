//! A graph made ready once: its program, its constants, its plans and their idle states.

use crate::RunError;
use crate::executor::ExecutorConfig;
use crate::state::PersistentOutputs;
use firstlight_backend::{Budget, Device, Reservation};
use firstlight_graph::{Graph, ValueId};
use firstlight_plan::passes::{PassCtx, PassSet, Rewrite, Rewritten, rewrite};
use firstlight_plan::{ConstPool, Plan, Program};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

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
    flight: Mutex<Flight>,
    landed: Condvar,
    /// Held by the run that has the memory to itself.
    alone: Mutex<()>,
}

/// Runs under way.
#[derive(Debug, Default)]
struct Flight {
    n_now: usize,
    n_started: u64,
    n_queued: usize,
}

/// A run under way; ends when dropped.
#[derive(Debug)]
pub(crate) struct InFlight<'a> {
    prepared: &'a Prepared,
    /// Number of runs started before, this one included.
    started: u64,
}

/// The memory to itself: no other run that met the limit goes on meanwhile.
#[derive(Debug)]
pub(crate) struct Alone<'a> {
    _turn: MutexGuard<'a, ()>,
}

/// A plan with the states that no run uses now.
#[derive(Debug)]
pub(crate) struct PlanEntry {
    pub(crate) plan: Plan,
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    state: Box<PersistentOutputs>,
    last_use: u64,
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
    ) -> Result<Prepared, RunError> {
        let ExecutorConfig { pool, table, device, budget } = config;
        let rewritten = match options.passes && !options.keep_all {
            true => {
                let PrepareOptions { disabled_passes: disabled, max_folded_bytes, .. } = options;
                rewrite(&graph, targets, &PassCtx { table, device, budget, pool, disabled, max_folded_bytes })?
            }
            false => Rewritten { graph, targets: targets.to_vec(), rewrites: vec![], held: vec![] },
        };
        let Rewritten { graph, targets, rewrites, held } = rewritten;
        let program = Arc::new(Program::new(graph, targets)?);
        Ok(Prepared {
            gains_from_pipeline: program.n_needed() >= PIPELINE_FROM_NODES
                && program.n_const_bytes() >= PIPELINE_FROM_BYTES,
            program,
            consts: ConstPool::new(device.clone(), budget.clone()),
            options,
            rewrites,
            _held: held,
            plans: Mutex::new(vec![]),
            clock: AtomicU64::new(0),
            flight: Mutex::default(),
            landed: Condvar::new(),
            alone: Mutex::new(()),
        })
    }

    /// What passes rewrote, in order.
    pub fn rewrites(&self) -> &[Rewrite] {
        &self.rewrites
    }

    /// The program that is run: its graph is the one that passes made, with the inputs of the one that was prepared.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
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

    /// The plan that `fits`, the last one used first, or the one that `make` gives.
    pub(crate) fn plan(
        &self,
        fits: impl Fn(&Plan) -> bool,
        make: impl FnOnce() -> Result<Plan, RunError>,
    ) -> Result<Arc<PlanEntry>, RunError> {
        let mut plans = self.lock_plans();
        if let Some(at) = plans.iter().rposition(|entry| fits(&entry.plan)) {
            if !plans[at].plan.counters.is_worn() {
                plans[at..].rotate_left(1);
                return Ok(plans[plans.len() - 1].clone());
            }
            plans.remove(at);
        }
        let entry = Arc::new(PlanEntry { plan: make()?, idle: Mutex::new(vec![]) });
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

    fn lock_flight(&self) -> MutexGuard<'_, Flight> {
        self.flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a run; behind those that wait for the memory to themselves, where there are any.
    pub(crate) fn start(&self, alone: Option<&Alone<'_>>) -> InFlight<'_> {
        let mut flight = self.lock_flight();
        if alone.is_none() && flight.n_queued > 0 {
            drop(flight);
            drop(self.alone.lock().unwrap_or_else(PoisonError::into_inner));
            flight = self.lock_flight();
        }
        flight.n_now += 1;
        flight.n_started += 1;
        InFlight { prepared: self, started: flight.n_started }
    }

    /// Waits for the other runs to end and drops idle memory, so that the next run has all of it.
    pub(crate) fn alone(&self) -> Alone<'_> {
        self.lock_flight().n_queued += 1;
        let turn = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let mut flight = self.lock_flight();
        while flight.n_now > 0 {
            flight = self.landed.wait(flight).unwrap_or_else(PoisonError::into_inner);
        }
        flight.n_queued -= 1;
        drop(flight);
        self.trim(0);
        Alone { _turn: turn }
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

impl InFlight<'_> {
    /// True when no other run started since this one did.
    pub(crate) fn was_alone(&self) -> bool {
        self.prepared.lock_flight().n_started == self.started
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.prepared.lock_flight().n_now -= 1;
        self.prepared.landed.notify_all();
    }
}
