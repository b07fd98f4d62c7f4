//! The `firstlight` program: data on standard output, everything else on standard error.
//!
//! Exit codes: 0 done, 1 failed, 2 bad use.
#![forbid(unsafe_code)]

mod args;
mod feeds;
mod print;
mod random;
mod record;
mod run;
mod timeline;
mod trace;

use args::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;

/// Why the program ends with something other than success; the message is for standard error.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The work failed: exit code 1.
    Failed(String),
    /// The command line asks for something that makes no sense: exit code 2.
    BadUse(String),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Trace(args) => trace::trace(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(message)) => {
            print::note(&format!("error: {message}"));
            ExitCode::from(1)
        }
        Err(Failure::BadUse(message)) => {
            print::note(&format!("error: {message}\n\nFor more information, try '--help'."));
            ExitCode::from(2)
        }
    }
}

impl From<firstlight::Error> for Failure {
    fn from(error: firstlight::Error) -> Failure {
        match error {
            firstlight::Error::Option { .. } => Failure::BadUse(error.to_string()),
            _ => Failure::Failed(error.to_string()),
        }
    }
}
