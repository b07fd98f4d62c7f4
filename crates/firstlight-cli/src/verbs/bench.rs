//! `firstlight bench`: cold and warm times of a model, apart.

mod cold;
mod profile;
mod stats;

use crate::args::ModelArgs;
use crate::feeds::{Feeds, check_use, feeds};
use crate::progress::Progress;
use crate::table::{Table, heading, size};
use crate::{Failure, print};
use clap::Args;
use firstlight::{Binding, RunOptions, Session};
use serde_json::{Value, json};
use stats::{Stats, ms};
use std::time::{Duration, Instant};

/// Measures how long a model takes, cold and warm apart, and where the time goes.
///
/// Cold: a fresh process each time, from its start to its first answer, with the model's pages in the file cache (one
/// process that is not counted goes ahead). Warm: runs in this process, after the first one, with inputs and outputs in
/// place. Times are of the wall clock; state what else the machine was doing.
///
/// With --profile the warm runs are followed by some whose steps are timed one by one, and what an op, a kernel and a
/// node take is shown: their share of the run, GFLOP/s and GB/s by the planner's counts of operations and of bytes read
/// and written, and the share of the machine's peak. The peak is what one large matrix product reaches on these threads,
/// measured at the time. Timing the steps slows the runs; by how much is printed with them.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Fresh processes to measure; 0 measures none
    #[arg(long, value_name = "N", default_value_t = 5)]
    cold: u32,
    /// Warm runs to measure, instead of as many as --secs takes; 0 measures none
    #[arg(long, value_name = "N", conflicts_with = "secs")]
    warm: Option<u32>,
    /// Seconds of warm runs
    #[arg(long, value_name = "S", default_value_t = 2., value_parser = parse_secs)]
    secs: f64,
    /// Show what ops, kernels and nodes take
    #[arg(long)]
    profile: bool,
    /// Nodes that --profile shows, the dearest ones
    #[arg(long, value_name = "N", default_value_t = 10, requires = "profile")]
    top: usize,
    /// Print one JSON object instead of lines
    #[arg(long)]
    json: bool,
    /// Run once, print what it took, and end: one of the fresh processes
    #[arg(long, hide = true)]
    cold_child: bool,
}

const EXAMPLES: &str = "\
Examples:
  Cold starts and two seconds of warm runs, on one thread:
  $ firstlight bench model.onnx --random --threads 1

  Where do warm runs spend their time?
  $ firstlight bench model.onnx --random --cold 0 --warm 50 --profile --top 5

  Figures for a script:
  $ firstlight bench model.onnx --random --cold 2 --warm 50 --json
";

/// The most warm runs.
const MAX_WARM: usize = 100_000;

/// Runs in this process.
struct Warm {
    load: Duration,
    first: Duration,
    later: Vec<Duration>,
}

pub(crate) fn bench(args: &BenchArgs) -> Result<(), Failure> {
    check_use(&args.model)?;
    if args.cold_child {
        return cold::child(&args.model);
    }
    let clock = Instant::now();
    let session = args.model.load(&[])?;
    let load = clock.elapsed();
    let feeds = feeds(&session, &args.model)?;
    let cold = cold::measure(args.cold)?;
    let mut binding = bound(&session, &feeds)?;
    let warm = warm(args, &mut binding, load)?;
    let profile = match args.profile {
        true => Some(profile::measure(&session, &mut binding, &warm.later)?),
        false => None,
    };
    if args.json {
        let stats = session.stats();
        return print::json(&json!({
            "model": args.model.model.display().to_string(),
            "threads": stats.threads,
            "cold": cold.as_ref().map(cold::Cold::json),
            "load_ms": ms(warm.load),
            "first_ms": ms(warm.first),
            "warm": Stats::of(&warm.later).map(|stats| stats.json()),
            "memory": memory_json(&session),
            "profile": profile.as_ref().map(|profile| profile.json(args.top)),
        }));
    }
    let mut out = String::new();
    times(&mut out, &session, cold.as_ref(), &warm);
    if let Some(profile) = &profile {
        profile.write(&mut out, args.top);
    }
    print::data(&out)
}

/// Buffers that hold the inputs.
fn bound(session: &Session, feeds: &Feeds) -> Result<Binding, Failure> {
    let mut binding = session.bind();
    for (name, tensor) in feeds {
        binding.set(name, tensor.clone())?;
    }
    Ok(binding)
}

fn warm(args: &BenchArgs, binding: &mut Binding, load: Duration) -> Result<Warm, Failure> {
    let progress = Progress::of_first_run();
    let clock = Instant::now();
    binding.run_with(&RunOptions { events: progress.events(), ..RunOptions::default() })?;
    let first = clock.elapsed();
    drop(progress);
    let most = args.warm.map_or(MAX_WARM, |n| (n as usize).min(MAX_WARM));
    if most > 0 {
        // The first replay resolves what later ones find.
        binding.run()?;
    }
    let progress = Progress::new("warm run");
    let begin = Instant::now();
    let mut later = vec![];
    while later.len() < most && (args.warm.is_some() || begin.elapsed().as_secs_f64() < args.secs) {
        let clock = Instant::now();
        binding.run()?;
        later.push(clock.elapsed());
        progress.set_of(later.len(), args.warm.map_or(0, |n| n as usize));
    }
    Ok(Warm { load, first, later })
}

fn times(out: &mut String, session: &Session, cold: Option<&cold::Cold>, warm: &Warm) {
    let mut table = Table::new(&[1, 2, 3, 4, 5, 6, 7]);
    table.row(["ms", "runs", "mean", "median", "p90", "p99", "min", "max"]);
    if let Some(cold) = cold {
        table.row(cold.total.row("cold: process start to first answer"));
        table.row(cold.load.row("  loading"));
        table.row(cold.first.row("  first run"));
        for (what, stats) in &cold.ladder {
            table.row(stats.row(&format!("    {what}")));
        }
    }
    let later = Stats::of(&warm.later);
    if let Some(stats) = &later {
        table.row(stats.row("warm"));
    }
    let stats = session.stats();
    heading(out, "times", &format!("{} threads", stats.threads));
    table.write(out);
    heading(out, "here", "");
    let mut table = Table::new(&[]);
    table.row(["load", &format!("{:.3} ms", ms(warm.load))]);
    table.row(["first run", &format!("{:.3} ms", ms(warm.first))]);
    if let Some(stats) = &later {
        table.row(["throughput", &format!("{:.1} runs a second", stats.per_second())]);
    }
    table.row(["owned at most", &size(stats.owned_peak_bytes)]);
    table.row(["mapped", &size(stats.mapped_bytes)]);
    if let Some(bytes) = cold::peak_resident_bytes() {
        table.row(["resident at most", &size(bytes)]);
    }
    if let Some(bytes) = cold.and_then(|cold| cold.resident) {
        table.row(["resident at most, cold", &size(bytes)]);
    }
    table.write(out);
}

fn memory_json(session: &Session) -> Value {
    let stats = session.stats();
    json!({
        "owned_peak_bytes": stats.owned_peak_bytes,
        "mapped_bytes": stats.mapped_bytes,
        "resident_peak_bytes": cold::peak_resident_bytes(),
    })
}

fn parse_secs(text: &str) -> Result<f64, String> {
    let secs: Option<f64> = text.trim().parse().ok().filter(|secs: &f64| *secs > 0. && *secs <= 86_400.);
    secs.ok_or_else(|| format!("{text:?} is no time: give seconds, such as 0.5"))
}
