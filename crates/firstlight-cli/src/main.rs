//! The `firstlight` program: data on standard output, everything else on standard error.
//!
//! Exit codes: 0 done, 1 failed, 2 bad use.
#![forbid(unsafe_code)]

mod args;
mod digits;
mod draw;
#[cfg(feature = "planted-fault")]
mod fault;
mod feeds;
mod near;
mod print;
mod progress;
mod random;
mod record;
mod svg;
mod table;
mod timeline;
mod verbs;

use args::Cli;
use clap::Parser;
use firstlight::{Error, InputProblem, LoadError};
use std::path::Path;
use std::process::ExitCode;

/// Why the program ends with something other than success; the message is for standard error.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The work failed: exit code 1.
    Failed(String),
    /// The answer is no and has been printed: exit code 1.
    Told,
    /// The command line asks for something that makes no sense: exit code 2.
    BadUse(String),
}

fn main() -> ExitCode {
    match Cli::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Told) => ExitCode::from(1),
        Err(Failure::Failed(message)) => {
            print::error(&message);
            ExitCode::from(1)
        }
        Err(Failure::BadUse(message)) => {
            print::error(&format!("{message}\n\nFor more information, try '--help'."));
            ExitCode::from(2)
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match &error {
            Error::Option { .. } => Failure::BadUse(error.to_string()),
            Error::Input { name, problem: InputProblem::Missing } => {
                Failure::Failed(format!("{error}: feed it with --input {name}=FILE, or let --random make it up"))
            }
            _ => Failure::Failed(error.to_string()),
        }
    }
}

impl Failure {
    /// Of loading a model file: its path comes first, where the error names no file itself.
    pub(crate) fn of_model(path: &Path, error: Error) -> Failure {
        match error {
            Error::Load(LoadError::Io { .. }) => error.into(),
            Error::Load(error) => Failure::Failed(format!("{}: {error}", path.display())),
            error => error.into(),
        }
    }
}

/// Makes a folder and those above it; one that is there is fine.
pub(crate) fn make_folder(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path)
        .map_err(|error| Failure::Failed(format!("{}: cannot make this folder: {error}", path.display())))
}
