//! Judges mutated models and prints a summary as JSON; exits with 1 when any is bad.
#![forbid(unsafe_code)]

use clap::{Parser, ValueEnum};
use firstlight_fuzz::target::Target;
use firstlight_fuzz::worker::{self, Misdeed, Plant, Work};
use firstlight_fuzz::{Case, Corpus, oracle};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Loads and runs mutated models; counts panics, aborts, and cases over their limits.
#[derive(Debug, Parser)]
struct Arguments {
    /// Base models besides the built-in ones (some written by hand, and every op's named cases): files, and folders that are searched for .onnx files.
    #[arg(long, num_args = 1..)]
    models: Vec<PathBuf>,
    /// Number of cases.
    #[arg(long, default_value_t = 1000)]
    n: u64,
    /// Number of the first case.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Other seeds give other cases.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What a case is driven through.
    #[arg(long, value_enum, default_value = "door")]
    target: Target,
    #[arg(long, default_value_t = 1000)]
    time_limit_ms: u64,
    /// Bytes, with K, M or G.
    #[arg(long, default_value = "256M", value_parser = parse_bytes)]
    memory_limit: usize,
    /// Worker processes at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Where bad models are saved.
    #[arg(long, default_value = "fuzz-findings")]
    out: PathBuf,
    /// Judge the models as they are, once each (for models that were saved).
    #[arg(long)]
    unchanged: bool,
    /// Write the case of this number to a file of its number in the output folder, and judge nothing.
    #[arg(long)]
    write_case: Option<u64>,
    /// Make a case misbehave, to check the oracle: panic@N, abort@N, over_time@N, over_memory@N.
    #[arg(long, value_parser = parse_plant)]
    plant: Vec<Plant>,
    /// Be a worker.
    #[arg(long, hide = true)]
    worker: bool,
    /// The worker's cases.
    #[arg(hide = true, value_parser = parse_range)]
    cases: Option<std::ops::Range<u64>>,
}

fn parse_bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        other => return Err(format!("{other:?} is none of K, M, G")),
    };
    let n: usize = digits.parse().map_err(|error| format!("{text:?}: {error}"))?;
    n.checked_mul(1 << shift).ok_or_else(|| format!("{text:?} is too large"))
}

fn parse_plant(text: &str) -> Result<Plant, String> {
    let (what, case) = text.split_once('@').ok_or("expected KIND@CASE")?;
    let what = match what {
        "panic" => Misdeed::Panic,
        "abort" => Misdeed::Abort,
        "over_time" => Misdeed::OverTime,
        "over_memory" => Misdeed::OverMemory,
        other => return Err(format!("{other:?} is none of panic, abort, over_time, over_memory")),
    };
    Ok(Plant { what, case: case.parse().map_err(|error| format!("{case:?}: {error}"))? })
}

fn parse_range(text: &str) -> Result<std::ops::Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("expected FROM..TO")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
    Ok(number(from)?..number(to)?)
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// True when nothing is bad.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let mut corpus = Corpus::built_in();
    let n_built_in = corpus.len() as u64;
    for path in &arguments.models {
        let n = corpus.add(path).map_err(|error| format!("{}: {error}", path.display()))?;
        if n == 0 && !arguments.worker {
            eprintln!("{}: no model of at most 16 MiB", path.display());
        }
    }
    let cases = match &arguments.cases {
        Some(cases) => cases.clone(),
        // The models given, or else the built-in ones.
        None if arguments.unchanged && arguments.models.is_empty() => 0..n_built_in,
        None if arguments.unchanged => n_built_in..corpus.len() as u64,
        None => arguments.from..arguments.from.saturating_add(arguments.n),
    };
    let work = Work {
        seed: arguments.seed,
        cases,
        unchanged: arguments.unchanged,
        target: arguments.target,
        time_limit: Duration::from_millis(arguments.time_limit_ms),
        memory_limit_bytes: arguments.memory_limit,
        plant: arguments.plant.clone(),
    };
    if arguments.worker {
        return worker::run(&corpus, &work, std::io::stdout().lock()).map(|()| true).map_err(|error| error.to_string());
    }
    if let Some(number) = arguments.write_case {
        let case = Case::of(&corpus, &work, number).ok_or_else(|| format!("there is no case {number}"))?;
        let file = arguments.out.join(format!("{number}.onnx"));
        let written = std::fs::create_dir_all(&arguments.out).and_then(|()| std::fs::write(&file, &case.bytes));
        written.map_err(|error| format!("{}: {error}", file.display()))?;
        println!("{}: {}", file.display(), case.origin);
        return Ok(true);
    }
    let options =
        oracle::Options { work, jobs: arguments.jobs, out: arguments.out.clone(), worker: worker_command(arguments)? };
    let summary = oracle::run(&corpus, &options).map_err(|error| error.to_string())?;
    let mut out = std::io::stdout().lock();
    let printed = serde_json::to_writer_pretty(&mut out, &summary).map_err(std::io::Error::from);
    printed.and_then(|()| out.write_all(b"\n")).map_err(|error| error.to_string())?;
    Ok(summary.is_good())
}

/// This program again, as a worker of the same corpus.
fn worker_command(arguments: &Arguments) -> Result<Vec<String>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = vec![program.display().to_string(), "--worker".to_owned()];
    command.push(format!("--seed={}", arguments.seed));
    command.push(format!("--memory-limit={}", arguments.memory_limit));
    command.push(format!("--time-limit-ms={}", arguments.time_limit_ms));
    let target = arguments.target.to_possible_value().map(|value| value.get_name().to_owned());
    command.push(format!("--target={}", target.unwrap_or_default()));
    command.extend(arguments.models.iter().map(|path| format!("--models={}", path.display())));
    command.extend(arguments.unchanged.then(|| "--unchanged".to_owned()));
    for plant in &arguments.plant {
        let kind = serde_json::to_string(&plant.what).map_err(|error| error.to_string())?;
        command.push(format!("--plant={}@{}", kind.trim_matches('"'), plant.case));
    }
    Ok(command)
}
