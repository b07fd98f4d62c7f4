//! Cold starts: this program in fresh processes.

use super::stats::{Stats, ms};
use crate::args::ModelArgs;
use crate::feeds::feeds;
use crate::progress::Progress;
use crate::{Failure, print};
use firstlight::{Event, EventSink, LoadStage};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The rungs from the start of a process to its second answer, in order: what each is called in JSON, and in words.
const LADDER: [(&str, &str); 7] = [
    ("exec", "process, up to the program's own work"),
    ("map", "map the file"),
    ("parse", "parse it, make a graph"),
    ("rewrite", "passes that need no sizes"),
    ("first_kernel", "inputs, passes for their sizes, first node compiled"),
    ("first_answer", "all kernels, the rest compiled beside them"),
    ("second_answer", "second answer"),
];

/// What fresh processes took.
#[derive(Debug)]
pub(super) struct Cold {
    /// From before the process was started to when its answer was there.
    pub(super) total: Stats,
    pub(super) load: Stats,
    pub(super) first: Stats,
    /// Each rung of the way to the second answer.
    pub(super) ladder: Vec<(&'static str, Stats)>,
    /// The most memory that any of them had resident.
    pub(super) resident: Option<usize>,
}

impl Cold {
    pub(super) fn json(&self) -> Value {
        let Cold { total, load, first, ladder, resident } = self;
        let rung = |((key, _), (_, stats)): (&(&str, &str), &(&str, Stats))| ((*key).to_owned(), stats.json());
        let ladder: serde_json::Map<String, Value> = LADDER.iter().zip(ladder).map(rung).collect();
        json!({
            "total": total.json(), "load": load.json(), "first": first.json(), "ladder": ladder,
            "resident_peak_bytes": resident,
        })
    }
}

/// Measures fresh processes, after one that is not counted.
pub(super) fn measure(n: u32) -> Result<Option<Cold>, Failure> {
    if n == 0 {
        return Ok(None);
    }
    let progress = Progress::new("cold start");
    let (mut totals, mut loads, mut firsts, mut resident) = (vec![], vec![], vec![], None);
    let mut rungs: Vec<Vec<Duration>> = vec![vec![]; LADDER.len()];
    for i in 0..=n {
        let (total, said) = start()?;
        progress.set_of(i as usize, n as usize);
        if i == 0 {
            continue;
        }
        let time = |key: &str| Duration::from_secs_f64(said[key].as_f64().unwrap_or(0.).max(0.) / 1e3);
        for ((key, _), times) in LADDER.iter().zip(&mut rungs) {
            times.push(match *key {
                // What the process does not see of itself.
                "exec" => total.saturating_sub(time("answer_ms")),
                key => time(&format!("{key}_ms")),
            });
        }
        totals.push(total);
        loads.push(time("load_ms"));
        firsts.push(time("first_ms"));
        resident = resident.max(said["resident_peak_bytes"].as_u64().map(|bytes| bytes as usize));
    }
    let stats = |times: &[Duration]| Stats::of(times).ok_or_else(|| Failure::Failed("no cold start".to_owned()));
    let rung = |((_, words), times): (&(&'static str, &'static str), &Vec<Duration>)| Ok((*words, stats(times)?));
    let ladder = LADDER.iter().zip(&rungs).map(rung).collect::<Result<_, Failure>>()?;
    Ok(Some(Cold { total: stats(&totals)?, load: stats(&loads)?, first: stats(&firsts)?, ladder, resident }))
}

/// Starts this program again with the same words; how long its answer took, and what it tells of itself.
fn start() -> Result<(Duration, Value), Failure> {
    let fail = |error: &dyn std::fmt::Display| Failure::Failed(format!("a fresh process: {error}"));
    let program = std::env::current_exe().map_err(|error| fail(&error))?;
    let mut command = Command::new(program);
    command.args(["bench", "--cold-child"]).args(std::env::args_os().skip(2));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let clock = Instant::now();
    let mut child = command.spawn().map_err(|error| fail(&error))?;
    let mut out = child.stdout.take().map(BufReader::new);
    let mut read = || -> std::io::Result<String> {
        let mut line = String::new();
        out.as_mut().map_or(Ok(0), |out| out.read_line(&mut line)).map(|_| line)
    };
    let answered = read();
    let total = clock.elapsed();
    let line = answered.and_then(|_| read());
    let output = child.wait_with_output().map_err(|error| fail(&error))?;
    if !output.status.success() {
        return Err(fail(&String::from_utf8_lossy(&output.stderr).trim().trim_start_matches("error: ")));
    }
    let line = line.map_err(|error| fail(&error))?;
    Ok((total, serde_json::from_str(&line).map_err(|error| fail(&error))?))
}

/// When loading turned to each stage, and when the first kernel began.
#[derive(Debug)]
struct Rungs {
    clock: Instant,
    at: Mutex<[Option<Duration>; 5]>,
}

impl EventSink for Rungs {
    fn event(&self, event: &Event<'_>) -> Result<(), String> {
        let i = match event {
            Event::Loading(LoadStage::Map) => 0,
            Event::Loading(LoadStage::Parse) => 1,
            Event::Loading(LoadStage::Rewrite) => 2,
            Event::Loading(LoadStage::Done) => 3,
            Event::Running { .. } => 4,
            _ => return Ok(()),
        };
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        at[i].get_or_insert_with(|| self.clock.elapsed());
        Ok(())
    }
}

/// The work of a fresh process: one run and a line, then another run and a line about both.
pub(super) fn child(args: &ModelArgs) -> Result<(), Failure> {
    let rungs = Arc::new(Rungs { clock: Instant::now(), at: Mutex::new([None; 5]) });
    let session = args.load_telling(rungs.clone())?;
    let load = rungs.clock.elapsed();
    let feeds = feeds(&session, args)?;
    let clock = Instant::now();
    let outputs = session.run(feeds.iter().map(|(name, tensor)| (name, tensor)))?;
    let (first, answer) = (clock.elapsed(), rungs.clock.elapsed());
    print::data("answered\n")?;
    let resident = peak_resident_bytes();
    let clock = Instant::now();
    session.run(feeds.iter().map(|(name, tensor)| (name, tensor)))?;
    let second = clock.elapsed();
    let [map, parse, rewrite, done, kernel] =
        rungs.at.lock().unwrap_or_else(PoisonError::into_inner).map(Option::unwrap_or_default);
    let between = |from: Duration, to: Duration| ms(to.saturating_sub(from));
    let told = json!({
        "answer_ms": ms(answer), "load_ms": ms(load), "first_ms": ms(first), "outputs": outputs.len(),
        "map_ms": between(map, parse), "parse_ms": between(parse, rewrite), "rewrite_ms": between(rewrite, done),
        "first_kernel_ms": between(done, kernel), "first_answer_ms": between(kernel, answer),
        "second_answer_ms": ms(second), "resident_peak_bytes": resident,
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
