//! The worker process: judges cases one by one and reports each in a line.

use crate::target::{Driver, Target, Verdict};
use crate::{Case, Corpus};
use firstlight_graph::OpKind;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Stack of the thread that a case runs on: what a thread has by default.
const STACK_BYTES: usize = 2 << 20;

/// What a worker has to know.
#[derive(Clone, Debug)]
pub struct Work {
    /// Chooses what is mutated and how.
    pub seed: u64,
    /// Numbers of the cases to judge.
    pub cases: Range<u64>,
    /// Judge models as they are instead of mutated ones.
    pub unchanged: bool,
    /// What is done with a model.
    pub target: Target,
    /// What a session may own.
    pub memory_limit_bytes: usize,
    /// What a case may take.
    pub time_limit: Duration,
    /// Cases that are made to misbehave, to check the oracle.
    pub plant: Vec<Plant>,
}

/// A case that misbehaves on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plant {
    /// Number of the case.
    pub case: u64,
    /// How it misbehaves.
    pub what: Misdeed,
}

/// What is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Misdeed {
    /// A panic, whether caught or not.
    Panic,
    /// The process died.
    Abort,
    /// The case took longer than it may.
    OverTime,
    /// The process held more memory than it may.
    OverMemory,
}

/// What a worker says: one JSON object a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Line {
    /// A case was begun: what follows it, or does not, is its doing.
    Begin {
        /// Number of the case.
        case: u64,
    },
    /// A case was judged.
    End {
        /// Number of the case.
        case: u64,
        /// How it ended inside the process.
        ending: Ending,
        /// The error or the panic; empty where the model ran.
        message: String,
        /// Time that passed, or that the process was computing where that is less: a busy machine is not the model's doing.
        millis: u64,
        /// The most memory of the process, less what it had at its start; 0 where the system does not tell.
        peak_bytes: u64,
    },
}

/// How a case ended inside its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It was not loaded: an error said why.
    Refused,
    /// It was loaded, and not run to its end.
    Loaded,
    /// It was loaded and run.
    Ran,
    /// Something panicked.
    Panicked,
}

impl Case {
    /// The numbered case of a piece of work.
    pub fn of(corpus: &Corpus, work: &Work, number: u64) -> Option<Case> {
        if work.unchanged { corpus.unchanged(number) } else { Some(corpus.case(work.seed, number)) }
    }

    /// The op whose named case it is or was made from, if it was.
    pub fn op_of(corpus: &Corpus, work: &Work, number: u64) -> Option<OpKind> {
        if work.unchanged { corpus.op_of_model(number) } else { corpus.op_of_case(number) }
    }
}

/// The first panic since it was last taken, of any thread: a panic that is caught somewhere counts too.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

fn take_panic() -> Option<String> {
    PANIC.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Judges cases and reports them.
///
/// **Errors**: nobody reads the reports any more.
pub fn run(corpus: &Corpus, work: &Work, mut report: impl Write) -> io::Result<()> {
    std::panic::set_hook(Box::new(|info| {
        PANIC.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| info.to_string());
    }));
    let mut say = |line: &Line| {
        serde_json::to_writer(&mut report, line)?;
        report.write_all(b"\n")?;
        report.flush()
    };
    let driver = Driver::new(work.target, work.memory_limit_bytes, work.time_limit).map_err(io::Error::other)?;
    let at_start = memory("VmRSS").unwrap_or(0);
    for number in work.cases.clone() {
        let Some(case) = Case::of(corpus, work, number) else { break };
        say(&Line::Begin { case: number })?;
        // Resets the peak to what is held now.
        let measured = fs::write("/proc/self/clear_refs", "5").is_ok();
        take_panic();
        let plant = work.plant.iter().find(|plant| plant.case == number).map(|plant| plant.what);
        let (from, computed_before) = (Instant::now(), computed());
        let (ending, message) = judge(&driver, case.bytes, work.memory_limit_bytes, plant);
        let passed = from.elapsed();
        let computed = computed_before.and_then(|before| computed()?.checked_sub(before));
        let millis = computed.map_or(passed, |computed| passed.min(computed)).as_millis() as u64;
        let peak = if measured { memory("VmHWM").unwrap_or(0) } else { 0 };
        let peak_bytes = peak.saturating_sub(at_start);
        say(&Line::End { case: number, ending, message, millis, peak_bytes })?;
    }
    Ok(())
}

fn judge(driver: &Driver, bytes: Vec<u8>, memory_limit_bytes: usize, plant: Option<Misdeed>) -> (Ending, String) {
    let body = move || {
        misbehave(plant, memory_limit_bytes);
        driver.drive(bytes)
    };
    let body = move || catch_unwind(AssertUnwindSafe(body));
    let verdict = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, body);
        thread.map(|thread| thread.join())
    });
    match (take_panic(), verdict) {
        (None, Ok(Ok(Ok(Verdict::Refused(message))))) => (Ending::Refused, message),
        (None, Ok(Ok(Ok(Verdict::Loaded(message))))) => (Ending::Loaded, message),
        (None, Ok(Ok(Ok(Verdict::Ran)))) => (Ending::Ran, String::new()),
        (None, Err(error)) => (Ending::Refused, format!("no thread: {error}")),
        (Some(message), _) => (Ending::Panicked, message),
        (None, _) => (Ending::Panicked, "a panic without a message".to_owned()),
    }
}

fn misbehave(plant: Option<Misdeed>, memory_limit_bytes: usize) {
    match plant {
        None => {}
        // Caught, as a runtime would: it has to be counted all the same.
        Some(Misdeed::Panic) => drop(catch_unwind(|| panic!("planted"))),
        Some(Misdeed::Abort) => std::process::abort(),
        Some(Misdeed::OverTime) => loop {
            std::thread::park();
        },
        Some(Misdeed::OverMemory) => drop(std::hint::black_box(vec![1u8; memory_limit_bytes + (96 << 20)])),
    }
}

/// Time that the process has been computing, all threads together, where the system tells.
fn computed() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field may hold spaces and ends with the last parenthesis; ticks are hundredths of a second.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |i: usize| fields.get(i)?.parse::<u64>().ok();
    Some(Duration::from_millis(ticks(11)?.checked_add(ticks(12)?)?.checked_mul(10)?))
}

/// A figure of the process, in bytes, where the system tells.
fn memory(what: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
