//! The command line, and what several verbs take.

use crate::Failure;
use crate::verbs::Command;
use clap::{Args, Parser, ValueEnum};
use firstlight::{EventSink, Pipeline, Session, SessionBuilder};
use std::path::PathBuf;
use std::sync::Arc;

/// Runs trained ONNX models: compiling and executing are one pipeline, so the first answer comes sooner.
#[derive(Debug, Parser)]
#[command(name = "firstlight", version, arg_required_else_help = true, after_long_help = AFTER)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER: &str = "\
Data goes to standard output, everything else to standard error.

Exit codes: 0 done, 1 failed (or the answer is no), 2 bad use.

Environment:
  FIRSTLIGHT_NUM_THREADS, OMP_NUM_THREADS  working threads where --threads is not given
  NO_COLOR                                 when set, nothing is coloured

Examples:
  $ firstlight demo
  $ firstlight check model.onnx
  $ firstlight run model.onnx --random
  $ firstlight help run
";

/// Which model, what it is fed, how it runs.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// The ONNX file
    pub(crate) model: PathBuf,
    /// An input from a file: NAME=FILE.npy, NAME=FILE.pb, NAME=FILE.npz (its member NAME), or FILE.npz (all members)
    #[arg(long = "input", short, value_name = "NAME=FILE")]
    pub(crate) inputs: Vec<String>,
    /// Fill inputs that are not given: floats from -1 to 1, integers 0 or 1
    #[arg(long)]
    pub(crate) random: bool,
    /// Where --random starts
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Size of a named dimension, for --random; dimensions not named here are 1
    #[arg(long = "dim", value_name = "SYMBOL=N", value_parser = parse_dim)]
    pub(crate) dims: Vec<(String, usize)>,
    /// Working threads; 0 is as many as the machine offers [default: $FIRSTLIGHT_NUM_THREADS, $OMP_NUM_THREADS, or 0]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// The most memory to own, mapped weights not counted: bytes, or with K, M or G (times 1024)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory_limit: Option<usize>,
    /// Whether a first run compiles on another thread than it executes on
    #[arg(long, value_enum, default_value_t = PipelineArg::Auto)]
    pub(crate) pipeline: PipelineArg,
    /// Run the graph as it is written, without fusing or folding
    #[arg(long)]
    pub(crate) no_passes: bool,
    /// Read files whole instead of mapping them: for files that others can write
    #[arg(long)]
    pub(crate) no_map: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PipelineArg {
    /// On another thread where that is worth it
    Auto,
    /// On the same thread
    Inline,
    /// On another thread wherever one is idle
    On,
}

impl ModelArgs {
    /// Loads the model with the options of the command line, and these values besides its outputs.
    pub(crate) fn load(&self, keep: &[String]) -> Result<Session, Failure> {
        let session = self.builder(keep)?.load(&self.model).map_err(|error| Failure::of_model(&self.model, error))?;
        for warning in session.warnings() {
            crate::print::warning(warning);
        }
        Ok(session)
    }

    /// [`ModelArgs::load`], with a sink for what loading goes through.
    pub(crate) fn load_telling(&self, sink: Arc<dyn EventSink + Send + Sync>) -> Result<Session, Failure> {
        let session = self.builder(&[])?.events(sink).load(&self.model);
        let session = session.map_err(|error| Failure::of_model(&self.model, error))?;
        session.warnings().iter().for_each(|warning| crate::print::warning(warning));
        Ok(session)
    }

    /// The options of the command line, and these values besides the model's outputs.
    pub(crate) fn builder(&self, keep: &[String]) -> Result<SessionBuilder, Failure> {
        let threads = threads(self.threads)?;
        #[cfg(feature = "planted-fault")]
        let faulty = crate::fault::runtime(threads)?;
        #[cfg(not(feature = "planted-fault"))]
        let faulty: Option<firstlight::Runtime> = None;
        let builder = match &faulty {
            Some(runtime) => Session::builder().runtime(runtime),
            None => Session::builder().threads(threads),
        };
        let mut builder =
            builder.pipeline(self.pipeline.into()).passes(!self.no_passes).map(!self.no_map).keep_intermediates(keep);
        if let Some(limit) = self.memory_limit {
            builder = builder.memory_limit(limit);
        }
        Ok(builder)
    }

    /// Whether the command line brings values to run with.
    pub(crate) fn brings_values(&self) -> bool {
        self.random || !self.inputs.is_empty()
    }
}

/// How many threads are asked for, on the command line or by the environment; 0 where nobody says.
pub(crate) fn threads(given: Option<usize>) -> Result<usize, Failure> {
    if let Some(threads) = given {
        return Ok(threads);
    }
    for variable in ["FIRSTLIGHT_NUM_THREADS", "OMP_NUM_THREADS"] {
        let Ok(text) = std::env::var(variable) else { continue };
        return text.trim().parse().map_err(|_| Failure::BadUse(format!("{variable}={text:?} is not a number")));
    }
    Ok(0)
}

impl From<PipelineArg> for Pipeline {
    fn from(arg: PipelineArg) -> Pipeline {
        match arg {
            PipelineArg::Auto => Pipeline::Auto,
            PipelineArg::Inline => Pipeline::Inline,
            PipelineArg::On => Pipeline::On,
        }
    }
}

/// A size such as `256M`.
fn parse_size(text: &str) -> Result<usize, String> {
    let problem = || format!("{text:?} is no size: give bytes, or a number with K, M or G, such as 256M");
    let trimmed = text.trim();
    let number_end = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(number_end);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err(problem()),
    };
    let number: usize = number.parse().map_err(|_| problem())?;
    number.checked_mul(1 << shift).ok_or_else(problem)
}

/// A dimension such as `batch=4`.
fn parse_dim(text: &str) -> Result<(String, usize), String> {
    let problem = || format!("{text:?} is not SYMBOL=N, such as batch=4");
    let (symbol, size) = text.rsplit_once('=').ok_or_else(problem)?;
    Ok((symbol.to_owned(), size.trim().parse().map_err(|_| problem())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("256M"), Ok(256 << 20));
        assert_eq!(parse_size("1 GiB"), Ok(1 << 30));
        assert_eq!(parse_size("12"), Ok(12));
        for bad in ["", "M", "1.5G", "-1", "1T", "99999999999999999999", "18446744073709551615K"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn dims() {
        assert_eq!(parse_dim("batch=4"), Ok(("batch".to_owned(), 4)));
        assert_eq!(parse_dim("a=b=4"), Ok(("a=b".to_owned(), 4)));
        assert!(parse_dim("4").is_err() && parse_dim("n=x").is_err());
    }
}
