//! Cold starts: this program in fresh processes.

use super::stats::{Stats, ms};
use crate::args::ModelArgs;
use crate::feeds::feeds;
use crate::progress::Progress;
use crate::{Failure, print};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What fresh processes took.
#[derive(Debug)]
pub(super) struct Cold {
    /// From before the process was started to when its answer was there.
    pub(super) total: Stats,
    pub(super) load: Stats,
    pub(super) first: Stats,
    /// The most memory that any of them had resident.
    pub(super) resident: Option<usize>,
}

impl Cold {
    pub(super) fn json(&self) -> Value {
        let Cold { total, load, first, resident } = self;
        json!({"total": total.json(), "load": load.json(), "first": first.json(), "resident_peak_bytes": resident})
    }
}

/// Measures fresh processes, after one that is not counted.
pub(super) fn measure(n: u32) -> Result<Option<Cold>, Failure> {
    if n == 0 {
        return Ok(None);
    }
    let progress = Progress::new("cold start", 0);
    let (mut totals, mut loads, mut firsts, mut resident) = (vec![], vec![], vec![], None);
    for i in 0..=n {
        let (total, said) = start()?;
        progress.set_of(i as usize, n as usize);
        if i == 0 {
            continue;
        }
        let time = |key: &str| Duration::from_secs_f64(said[key].as_f64().unwrap_or(0.).max(0.) / 1e3);
        totals.push(total);
        loads.push(time("load_ms"));
        firsts.push(time("first_ms"));
        resident = resident.max(said["resident_peak_bytes"].as_u64().map(|bytes| bytes as usize));
    }
    let stats = |times: &[Duration]| Stats::of(times).ok_or_else(|| Failure::Failed("no cold start".to_owned()));
    Ok(Some(Cold { total: stats(&totals)?, load: stats(&loads)?, first: stats(&firsts)?, resident }))
}

/// Starts this program again with the same words, and waits for its line.
fn start() -> Result<(Duration, Value), Failure> {
    let fail = |error: &dyn std::fmt::Display| Failure::Failed(format!("a fresh process: {error}"));
    let program = std::env::current_exe().map_err(|error| fail(&error))?;
    let mut command = Command::new(program);
    command.args(["bench", "--cold-child"]).args(std::env::args_os().skip(2));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let clock = Instant::now();
    let mut child = command.spawn().map_err(|error| fail(&error))?;
    let mut line = String::new();
    let read = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
    let total = clock.elapsed();
    let output = child.wait_with_output().map_err(|error| fail(&error))?;
    if !output.status.success() {
        return Err(fail(&String::from_utf8_lossy(&output.stderr).trim().trim_start_matches("error: ")));
    }
    match read {
        Some(Err(error)) => Err(fail(&error)),
        _ => Ok((total, serde_json::from_str(&line).map_err(|error| fail(&error))?)),
    }
}

/// The work of a fresh process: one run, then a line about it.
pub(super) fn child(args: &ModelArgs) -> Result<(), Failure> {
    let clock = Instant::now();
    let session = args.load(&[])?;
    let load = clock.elapsed();
    let feeds = feeds(&session, args)?;
    let clock = Instant::now();
    let outputs = session.run(feeds.iter().map(|(name, tensor)| (name, tensor)))?;
    let first = clock.elapsed();
    let told = json!({
        "load_ms": ms(load), "first_ms": ms(first), "outputs": outputs.len(),
        "resident_peak_bytes": peak_resident_bytes(),
    });
    print::data(&format!("{told}\n"))
}

/// The most memory that this process had resident, mapped pages included, where the system tells.
pub(super) fn peak_resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}
