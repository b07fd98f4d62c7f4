//! The verbs: one file each, with its arguments, its page of help and its work.
//!
//! The examples of a page of help are run by `tests/examples.rs`: each line of [`Command`]'s long help that starts with
//! `$ firstlight` is a command.

mod bench;
mod check;
mod compare;
mod explain;
mod inspect;
mod ops;
mod run;
mod trace;

use crate::Failure;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure how long a model takes, cold and warm apart, and where the time goes
    Bench(bench::BenchArgs),
    /// Say whether a model can run here, and everything that stands in its way
    Check(check::CheckArgs),
    /// Find the first node whose values are wrong, and by how much
    Compare(compare::CompareArgs),
    /// Show what a run does, step by step, and why
    Explain(explain::ExplainArgs),
    /// Show what a model file holds: inputs, outputs, symbols, ops, weights
    Inspect(inspect::InspectArgs),
    /// Show the ops that models may use, and what computes them
    Ops(ops::OpsArgs),
    /// Run a model and print or write its outputs
    Run(run::RunArgs),
    /// Write what was compiled and executed when, as a Chrome trace or a picture
    Trace(trace::TraceArgs),
}

impl Command {
    /// Does what the verb says.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Command::Bench(args) => bench::bench(args),
            Command::Check(args) => check::check(args),
            Command::Compare(args) => compare::compare(args),
            Command::Explain(args) => explain::explain(args),
            Command::Inspect(args) => inspect::inspect(args),
            Command::Ops(args) => ops::ops(args),
            Command::Run(args) => run::run(args),
            Command::Trace(args) => trace::trace(args),
        }
    }
}
