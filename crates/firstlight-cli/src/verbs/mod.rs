//! The verbs: one file each, with its arguments, its page of help and its work.
//!
//! The examples of a page of help are run by `tests/examples.rs`: each line of [`Command`]'s long help that starts with
//! `$ firstlight` is a command.

mod bench;
mod check;
mod compare;
mod demo;
mod explain;
mod inspect;
mod ops;
mod run;
mod trace;

use crate::Failure;
use clap::Subcommand;

/// The first line of what a verb's arguments say of themselves is the verb's line in the overview.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(bench::BenchArgs),
    Check(check::CheckArgs),
    Compare(compare::CompareArgs),
    Demo(demo::DemoArgs),
    Explain(explain::ExplainArgs),
    Inspect(inspect::InspectArgs),
    Ops(ops::OpsArgs),
    Run(run::RunArgs),
    Trace(trace::TraceArgs),
}

impl Command {
    /// Does what the verb says.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Command::Bench(args) => bench::bench(args),
            Command::Check(args) => check::check(args),
            Command::Compare(args) => compare::compare(args),
            Command::Demo(args) => demo::demo(args),
            Command::Explain(args) => explain::explain(args),
            Command::Inspect(args) => inspect::inspect(args),
            Command::Ops(args) => ops::ops(args),
            Command::Run(args) => run::run(args),
            Command::Trace(args) => trace::trace(args),
        }
    }
}
