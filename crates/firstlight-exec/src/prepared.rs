//! A graph made ready once: its program, its constants, its plans and their idle states.

use crate::RunError;
use crate::executor::ExecutorConfig;
use crate::state::PersistentOutputs;
use firstlight_backend::{Budget, Device, Reservation};
use firstlight_graph::{Graph, ValueId};
use firstlight_plan::passes::{PassCtx, PassSet, Rewrite, Rewritten, rewrite};
use firstlight_plan::{ConstPool, Plan, Program};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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
    pub(crate) n_nodes: usize,
    rewrites: Vec<Rewrite>,
    /// Of the constants that passes computed.
    _held: Vec<Reservation>,
    plans: Mutex<Vec<Arc<PlanEntry>>>,
    clock: AtomicU64,
    in_flight: AtomicUsize,
    ended: (Mutex<u64>, Condvar),
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
            n_nodes: program.n_needed(),
            program,
            consts: ConstPool::new(device.clone(), budget.clone()),
            options,
            rewrites,
            _held: held,
            plans: Mutex::new(vec![]),
            clock: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            ended: (Mutex::new(0), Condvar::new()),
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
            let last = plans.len() - 1;
            plans[at..].rotate_left(1);
            return Ok(plans[last].clone());
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
        self.in_flight.fetch_add(1, Ordering::SeqCst);
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

    /// Gives a state back after a run, or drops it after a failed first run.
    pub(crate) fn check_in(&self, entry: &PlanEntry, state: Option<Box<PersistentOutputs>>) {
        if let Some(state) = state {
            let last_use = self.clock.fetch_add(1, Ordering::Relaxed);
            entry.idle.lock().unwrap_or_else(PoisonError::into_inner).push(Idle { state, last_use });
            self.trim(MAX_IDLE_BYTES);
        }
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        *self.ended.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.ended.1.notify_all();
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

    /// Number of runs that ended so far; to be read before trying, and given to [`Prepared::wait_for_end`].
    pub(crate) fn n_ended(&self) -> u64 {
        *self.ended.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another run than those counted in `seen` ends; false when none is in flight.
    pub(crate) fn wait_for_end(&self, seen: u64) -> bool {
        let mut ended = self.ended.0.lock().unwrap_or_else(PoisonError::into_inner);
        while *ended == seen {
            if self.in_flight.load(Ordering::SeqCst) == 0 {
                return false;
            }
            ended = self.ended.1.wait(ended).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }
}
