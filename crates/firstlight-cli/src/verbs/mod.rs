//! The verbs: one file each, with its arguments, its page of help and its work.
//!
//! The examples of a page of help are run by `tests/examples.rs`: each line of [`Command`]'s long help that starts with
//! `$ firstlight` is a command.

mod run;
mod trace;

use crate::Failure;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a model and print or write its outputs
    Run(run::RunArgs),
    /// Run a model once and write what was compiled and executed when, as a Chrome trace
    Trace(trace::TraceArgs),
}

impl Command {
    /// Does what the verb says.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Command::Run(args) => run::run(args),
            Command::Trace(args) => trace::trace(args),
        }
    }
}
