//! The executor: runs what the compiler emits while later nodes are still being compiled, keeps it, and replays it.
//!
//! [`PipelinedExecutor::realize`] is the short form; [`PipelinedExecutor::prepare`] and [`PipelinedExecutor::run`] are
//! what a session uses. The executor makes no choices: it runs steps in order, follows the segment tree by comparing
//! keys, and copies targets out after the last step.
//!
//! What is not here: kernel choice, shapes, addresses (plan); kernels (cpu and its like).
#![forbid(unsafe_code)]

mod cache;
mod control;
mod engine;
mod error;
mod executor;
mod flights;
mod loops;
mod pipeline;
mod prepared;
mod state;

pub use cache::{Realized, StorageCache};
pub use control::{Event, EventSink, LoadStage, Pipeline, Readiness, RunOptions};
pub use engine::execute_compiled;
pub use error::RunError;
pub use executor::{ExecutorConfig, Feed, Outputs, PipelinedExecutor, RealizeRequest};
pub use prepared::{PrepareOptions, Prepared};
pub use state::{CapturedRun, PersistentOutputs, ReplayList};

pub use firstlight_plan::Progress;
pub use firstlight_tensor::CancelToken;
