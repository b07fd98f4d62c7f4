//! Planning: from a graph to compiled nodes, one at a time.
//!
//! [`passes::rewrite`] makes a graph simpler and keeps its bits; a [`Program`] is a graph made ready: uses counted. A [`Compiler`] walks it in topological order and
//! emits [`CompiledNode`]s until the plan is done or a value has to be awaited; what it emitted between two such points
//! is a [`Segment`], and segments form the append-only tree of a [`Plan`].
//!
//! What is not here: running anything, threads, memory. Start reading at [`Compiler`], then [`compile_node`].
#![forbid(unsafe_code)]

mod arena;
mod compile;
mod compiler;
mod consts;
mod error;
pub mod passes;
mod plan;
mod program;

pub use arena::{Arena, Region};
pub use compile::{
    Compiled, CompiledNode, InputPlace, LoopStep, NodeRequest, PlanCtx, Progress, StepKind, compile_node,
};
pub use compiler::{Adopted, Compiler, Emit, Fed, Snapshot, push_spec};
pub use consts::ConstPool;
pub use error::{NodeError, PlanError};
pub use plan::{Plan, PlanCounters, PlanKey, PlanOutput, Segment, SegmentEnd, SegmentKey, Watch};
pub use program::Program;
