//! The oracle: spreads cases over worker processes and counts what is bad.

use crate::worker::{Ending, Line, Misdeed, Work};
use crate::{Case, Corpus};
use firstlight_graph::OpKind;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Cases that a worker process judges at most.
const BLOCK: u64 = 2000;

/// What a process may hold beyond the memory limit, which counts a session's own bytes: code, stacks, the model's bytes
/// and structure, free heap that the allocator keeps.
const OVERHEAD_BYTES: u64 = 48 << 20;

/// How often an over-long or over-large case is judged again, alone in a fresh process, before it counts.
const RETRIES: usize = 2;

/// What to judge, and how.
#[derive(Debug)]
pub struct Options {
    /// Which cases, and the limits they are held to.
    pub work: Work,
    /// Worker processes at a time.
    pub jobs: usize,
    /// Where bad models are saved.
    pub out: PathBuf,
    /// The worker's program and its arguments, to which the range of cases is appended as `FROM..TO`.
    pub worker: Vec<String>,
}

/// How cases ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Cases judged.
    pub n: u64,
    /// Panics, caught ones included.
    pub panics: u64,
    /// Processes that died.
    pub aborts: u64,
    /// Cases beyond the time limit.
    pub over_time: u64,
    /// Cases beyond the memory limit.
    pub over_memory: u64,
    /// Models that were not loaded: the good ending of a bad one.
    pub refused: u64,
    /// Loaded, whether run or not.
    pub loaded: u64,
    /// Loaded and run.
    pub ran: u64,
    /// Time of the slowest case.
    pub slowest_ms: u64,
    /// Memory of the largest case.
    pub peak_bytes: u64,
    /// Ops of which a model made from a named case was run to its end.
    pub n_ops_ran: usize,
    /// The other ops that have named cases.
    pub ops_never_ran: BTreeSet<&'static str>,
    /// Each bad case, for a person to look at.
    pub bad: Vec<Bad>,
}

/// A case that is bad.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bad {
    /// Number of the case, which with the seed makes it again.
    pub case: u64,
    /// What is bad about it.
    pub what: Misdeed,
    /// What it was made from.
    pub origin: String,
    /// What the process said.
    pub message: String,
    /// Where the model was saved.
    pub file: PathBuf,
}

impl Summary {
    /// True when nothing is bad.
    pub fn is_good(&self) -> bool {
        self.bad.is_empty()
    }

    fn end(&mut self, line: &Line, corpus: &Corpus, work: &Work) {
        if let Line::End { case, ending, millis, peak_bytes, .. } = line {
            self.n += 1;
            self.slowest_ms = self.slowest_ms.max(*millis);
            self.peak_bytes = self.peak_bytes.max(*peak_bytes);
            match ending {
                Ending::Refused => self.refused += 1,
                Ending::Loaded => self.loaded += 1,
                Ending::Ran => {
                    self.loaded += 1;
                    self.ran += 1;
                    if let Some(op) = Case::op_of(corpus, work, *case)
                        && self.ops_never_ran.remove(op.name())
                    {
                        self.n_ops_ran += 1;
                    }
                }
                Ending::Panicked => {}
            }
        }
    }

    fn bad(&mut self, bad: Bad) {
        match bad.what {
            Misdeed::Panic => self.panics += 1,
            Misdeed::Abort => self.aborts += 1,
            Misdeed::OverTime => self.over_time += 1,
            Misdeed::OverMemory => self.over_memory += 1,
        }
        self.bad.push(bad);
    }
}

/// Judges all cases.
///
/// **Errors**: a worker cannot be started, or a bad model cannot be saved.
pub fn run(corpus: &Corpus, options: &Options) -> io::Result<Summary> {
    let ops_never_ran = corpus.ops().map(OpKind::name).collect();
    let summary = Mutex::new(Summary { ops_never_ran, ..Summary::default() });
    let next = Mutex::new(options.work.cases.start);
    let claim = || {
        let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
        let from = *next;
        *next = options.work.cases.end.min(from.saturating_add(BLOCK));
        from..*next
    };
    let job = || {
        loop {
            let mut block = claim();
            if block.is_empty() {
                return Ok(());
            }
            while !block.is_empty() {
                block.start = judge_until_bad(corpus, options, block.clone(), &summary)?;
            }
        }
    };
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..options.jobs.max(1)).map(|_| scope.spawn(job)).collect();
        let ended = jobs.into_iter().map(|job| job.join().unwrap_or_else(|_| Err(io::Error::other("a job panicked"))));
        ended.collect::<io::Result<Vec<()>>>()
    })?;
    let mut summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.bad.sort_by_key(|bad| bad.case);
    Ok(summary)
}

/// Judges cases in one worker until it is lost or done; gives the first case not judged.
fn judge_until_bad(corpus: &Corpus, options: &Options, block: Range<u64>, summary: &Mutex<Summary>) -> io::Result<u64> {
    let mut worker = Worker::start(options, block.clone())?;
    let mut at = block.start;
    while at < block.end {
        let (line, found) = worker.judge(options);
        if let Some(line) = &line {
            summary.lock().unwrap_or_else(PoisonError::into_inner).end(line, corpus, &options.work);
        }
        let lost = line.is_none();
        if let Some((what, message)) = found {
            let noise = matches!(what, Misdeed::OverTime | Misdeed::OverMemory)
                && (0..RETRIES).any(|_| is_good_alone(corpus, options, at, summary, lost));
            if !noise {
                let bad = save(corpus, options, at, what, message)?;
                let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
                summary.n += u64::from(lost);
                summary.bad(bad);
            }
        }
        at += 1;
        if lost {
            break;
        }
    }
    Ok(at)
}

/// Judges a case again, alone; counts its ending when the first try gave none.
fn is_good_alone(corpus: &Corpus, options: &Options, case: u64, summary: &Mutex<Summary>, count: bool) -> bool {
    let Ok(mut worker) = Worker::start(options, case..case + 1) else { return false };
    let (line, found) = worker.judge(options);
    match (line, found) {
        (Some(line), None) => {
            if count {
                summary.lock().unwrap_or_else(PoisonError::into_inner).end(&line, corpus, &options.work);
            }
            true
        }
        _ => false,
    }
}

fn save(corpus: &Corpus, options: &Options, case: u64, what: Misdeed, message: String) -> io::Result<Bad> {
    let model = Case::of(corpus, &options.work, case);
    let model = model.ok_or_else(|| io::Error::other(format!("case {case} does not exist")))?;
    let name = format!("{what:?}-{}-{case}", options.work.seed).to_lowercase();
    std::fs::create_dir_all(&options.out)?;
    let file = options.out.join(format!("{name}.onnx"));
    std::fs::write(&file, &model.bytes)?;
    std::fs::write(options.out.join(format!("{name}.txt")), format!("{}\n{message}\n", model.origin))?;
    Ok(Bad { case, what, origin: model.origin, message, file })
}

/// A worker process; killed when dropped.
struct Worker {
    child: Child,
    lines: Receiver<Line>,
    stderr: Option<std::thread::JoinHandle<String>>,
}

impl Worker {
    fn start(options: &Options, cases: Range<u64>) -> io::Result<Worker> {
        let mut command = limited(&options.worker, options.work.memory_limit_bytes);
        command.arg(format!("{}..{}", cases.start, cases.end));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (send, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                let read = BufReader::new(stdout).lines().map_while(Result::ok);
                for line in read.filter_map(|line| serde_json::from_str(&line).ok()) {
                    if send.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        let stderr = child.stderr.take().map(|stderr| {
            std::thread::spawn(move || {
                let mut text = vec![];
                // The last words of a process; it never says much.
                let _ = stderr.take(1 << 16).read_to_end(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        });
        Ok(Worker { child, lines, stderr })
    }

    /// Waits for the next case's end; what is bad about it. No line: the worker is lost.
    fn judge(&mut self, options: &Options) -> (Option<Line>, Option<(Misdeed, String)>) {
        // A busy machine is not the model's fault, hence the factor; the case's own clock decides.
        let patience = options.work.time_limit.saturating_mul(4).saturating_add(Duration::from_secs(3));
        loop {
            match self.lines.recv_timeout(patience) {
                Ok(Line::Begin { .. }) => {}
                Ok(line) => {
                    let found = bad(&line, options);
                    return (Some(line), found);
                }
                Err(RecvTimeoutError::Timeout) => {
                    return (None, Some((Misdeed::OverTime, format!("no end after {patience:?}"))));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
                    let said = self.stderr.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
                    let what = match said.contains("memory allocation of") {
                        true => Misdeed::OverMemory,
                        false => Misdeed::Abort,
                    };
                    return (None, Some((what, format!("{status}: {}", said.trim()))));
                }
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn bad(line: &Line, options: &Options) -> Option<(Misdeed, String)> {
    let Line::End { ending, message, millis, peak_bytes, .. } = line else { return None };
    if *ending == Ending::Panicked {
        return Some((Misdeed::Panic, message.clone()));
    }
    if u128::from(*millis) > options.work.time_limit.as_millis() {
        return Some((Misdeed::OverTime, format!("{millis} ms; {message}")));
    }
    let limit = options.work.memory_limit_bytes as u64;
    (*peak_bytes > limit.saturating_add(OVERHEAD_BYTES))
        .then(|| (Misdeed::OverMemory, format!("{peak_bytes} bytes; {message}")))
}

/// The worker's command, under a limit of address space well above the memory limit, so that an absurd allocation fails
/// at once even where nobody touches it.
fn limited(worker: &[String], memory_limit_bytes: usize) -> Command {
    let (program, arguments) = worker.split_first().map_or(("", worker), |(first, rest)| (first.as_str(), rest));
    if !cfg!(unix) || !Path::new("/bin/sh").exists() {
        let mut command = Command::new(program);
        command.args(arguments);
        return command;
    }
    let kib = (memory_limit_bytes / 1024).saturating_mul(4).saturating_add(2 << 20);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -v \"$0\"; ulimit -c 0; exec \"$@\"", &kib.to_string(), program]).args(arguments);
    command
}
