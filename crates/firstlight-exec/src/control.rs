//! What a run obeys and tells: cancel, deadline, events.

use crate::RunError;
use firstlight_graph::{OpError, OpErrorKind};
use firstlight_plan::{CompiledNode, Progress};
use firstlight_tensor::CancelToken;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// Whether a first run compiles on another thread than it executes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pipeline {
    /// On another thread where the graph is large enough to gain from it and a worker is idle.
    #[default]
    Auto,
    /// Each node is compiled, then run, on the calling thread.
    Inline,
    /// On another thread wherever a worker is idle.
    On,
}

/// How a run goes.
#[derive(Clone, Copy, Default)]
pub struct RunOptions<'a> {
    /// Where a first run compiles.
    pub pipeline: Pipeline,
    /// Ends the run early; `None`: nothing does.
    pub cancel: Option<&'a CancelToken>,
    /// When the run ends without an answer; `None`: never.
    pub deadline: Option<Instant>,
    /// Hears what happens; `None`: nobody.
    pub events: Option<&'a dyn EventSink>,
}

impl std::fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunOptions")
            .field("pipeline", &self.pipeline)
            .field("cancel", &self.cancel)
            .field("deadline", &self.deadline)
            .field("events", &self.events.is_some())
            .finish()
    }
}

/// What happens during a run; carries no time, the sink reads its own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Loading turns to a stage.
    Loading(LoadStage),
    /// The compiler turns to a node.
    Compiling {
        /// The node's name as in the user's file.
        node: &'a str,
        /// The op's name.
        op: &'a str,
        /// How far it has come.
        progress: Progress,
    },
    /// A step was compiled; `source` names the kernel row.
    Compiled {
        /// The node's name as in the user's file.
        node: &'a str,
        /// The op's name.
        op: &'a str,
        /// The kernel row that was chosen, or "reference".
        source: &'a str,
    },
    /// The compiler waits for a value.
    Awaiting,
    /// The executor turns to a step.
    Running {
        /// The node's name as in the user's file.
        node: &'a str,
        /// The op's name.
        op: &'a str,
    },
    /// A step was run.
    Ran {
        /// The node's name as in the user's file.
        node: &'a str,
        /// The op's name.
        op: &'a str,
        /// How far the run has come.
        progress: Progress,
    },
    /// All targets are computed for the first time in this plan.
    FirstAnswer,
    /// The plan was replayed as a whole: later runs of the same sizes find everything in its place.
    Settled,
}

/// What loading a model goes through, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LoadStage {
    /// The file is opened and mapped.
    Map,
    /// Its structure is read, and a graph is made of it.
    Parse,
    /// Passes that need no sizes rewrite the graph.
    Rewrite,
    /// The model is loaded; nothing is compiled yet.
    Done,
}

/// How much of its work a session has behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Readiness {
    /// The model is loaded; the first run has yet to compile it.
    Loaded,
    /// There was an answer for the sizes that were run last.
    Answers,
    /// Runs of those sizes replay a plan that is in its final form.
    Settled,
}

/// Receives events, from the compiling and the executing thread.
pub trait EventSink: Sync {
    /// Takes an event.
    ///
    /// **Errors**: a message ends the run, as a failure of the node that the event names.
    fn event(&self, event: &Event<'_>) -> Result<(), String>;
}

/// Operations from which on a step is dear enough to read the clock before it (some microseconds of arithmetic).
const DEAR_OPERATIONS: u64 = 100_000;

impl RunOptions<'_> {
    /// Tells the sink; a panic of the sink is a failure like any other.
    pub(crate) fn tell(&self, event: &Event<'_>) -> Result<(), OpError> {
        let Some(sink) = self.events else { return Ok(()) };
        match catch_unwind(AssertUnwindSafe(|| sink.event(event))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(message)) => Err(OpError::new(OpErrorKind::Device, message)),
            Err(payload) => Err(OpError::new(OpErrorKind::Panic, panic_message(&*payload))),
        }
    }

    /// Checks cancel, and the deadline where the step is dear or it is one of every 64.
    pub(crate) fn check(&self, step: &CompiledNode, index: usize) -> Result<(), RunError> {
        if self.cancel.is_some_and(CancelToken::is_cancelled) {
            return Err(RunError::Cancelled { node: Some(step.name.to_string()) });
        }
        if let Some(deadline) = self.deadline
            && (step.n_operations >= DEAR_OPERATIONS || index.is_multiple_of(64))
            && Instant::now() >= deadline
        {
            return Err(RunError::DeadlineExceeded { node: Some(step.name.to_string()) });
        }
        Ok(())
    }

    /// Checks cancel and the deadline before a node is compiled.
    pub(crate) fn check_compiling(&self, name: impl FnOnce() -> Option<String>) -> Result<(), RunError> {
        match self.check_waiting() {
            Ok(()) => Ok(()),
            Err(RunError::Cancelled { .. }) => Err(RunError::Cancelled { node: name() }),
            Err(RunError::DeadlineExceeded { .. }) => Err(RunError::DeadlineExceeded { node: name() }),
            Err(other) => Err(other),
        }
    }

    /// Checks cancel and the deadline before any node had its turn.
    pub(crate) fn check_waiting(&self) -> Result<(), RunError> {
        if self.cancel.is_some_and(CancelToken::is_cancelled) {
            return Err(RunError::Cancelled { node: None });
        }
        match self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            true => Err(RunError::DeadlineExceeded { node: None }),
            false => Ok(()),
        }
    }
}

/// What a caught panic said.
pub(crate) fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("no message"))
}
