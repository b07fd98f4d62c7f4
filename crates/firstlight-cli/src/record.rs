//! Keeps a run's events and pairs them to spans: what was compiled and executed when.

use firstlight::{Event, EventSink, LoadStage};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Keeps every event with its time and thread.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// Zero of all times.
    pub(crate) clock: Instant,
    records: Mutex<Vec<Record>>,
}

/// An event and when it happened.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) at: Duration,
    pub(crate) thread: ThreadId,
    pub(crate) what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Loading(LoadStage),
    Compiling,
    Compiled { node: Box<str>, op: Box<str>, source: Box<str> },
    Awaiting,
    Running,
    Ran { node: Box<str>, op: Box<str> },
    FirstAnswer,
}

/// What a recording tells, each list in the order in which things ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans<'a> {
    /// Nodes that were compiled to a step.
    pub(crate) compiled: Vec<Span<'a>>,
    /// Steps that ran.
    pub(crate) ran: Vec<Span<'a>>,
    /// When the compiler began to wait for a value.
    pub(crate) awaited: Vec<Duration>,
    /// When all outputs were there for the first time.
    pub(crate) first_answers: Vec<Duration>,
    /// What loading went through.
    pub(crate) loading: Vec<(&'static str, Duration, Duration)>,
}

/// A stretch of time that a node took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span<'a> {
    pub(crate) node: &'a str,
    pub(crate) op: &'a str,
    /// The kernel row; empty where the recording does not hold the node's compile.
    pub(crate) source: &'a str,
    pub(crate) from: Duration,
    pub(crate) to: Duration,
    /// How many steps it ran inside of: 0, or more in the body of a loop.
    pub(crate) depth: usize,
}

impl Recorder {
    pub(crate) fn new() -> Recorder {
        Recorder { clock: Instant::now(), records: Mutex::new(Vec::with_capacity(4096)) }
    }

    /// What was recorded, in order; the recorder begins anew.
    pub(crate) fn take(&self) -> Vec<Record> {
        std::mem::take(&mut self.records.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl EventSink for Recorder {
    fn event(&self, event: &Event<'_>) -> Result<(), String> {
        let what = match *event {
            Event::Loading(stage) => What::Loading(stage),
            Event::Compiling { .. } => What::Compiling,
            Event::Compiled { node, op, source } => {
                What::Compiled { node: node.into(), op: op.into(), source: source.into() }
            }
            Event::Awaiting => What::Awaiting,
            Event::Running { .. } => What::Running,
            Event::Ran { node, op, .. } => What::Ran { node: node.into(), op: op.into() },
            Event::FirstAnswer => What::FirstAnswer,
            // Kinds of events that no track shows.
            _ => return Ok(()),
        };
        let record = Record { at: self.clock.elapsed(), thread: std::thread::current().id(), what };
        self.records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
        Ok(())
    }
}

impl Span<'_> {
    pub(crate) fn time(&self) -> Duration {
        self.to.saturating_sub(self.from)
    }
}

impl Spans<'_> {
    /// Pairs the beginnings and ends of a recording.
    pub(crate) fn of(records: &[Record]) -> Spans<'_> {
        // When the thread last turned to a node, and the steps that it is inside of (a loop's step holds its body's).
        let mut compiling: HashMap<ThreadId, Duration> = HashMap::new();
        let mut running: HashMap<ThreadId, Vec<Duration>> = HashMap::new();
        let mut sources: HashMap<&str, &str> = HashMap::new();
        let mut spans = Spans::default();
        let mut stage: Option<(&'static str, Duration)> = None;
        for record in records {
            let to = record.at;
            match &record.what {
                What::Loading(next) => {
                    if let Some((name, from)) = stage.take() {
                        spans.loading.push((name, from, to));
                    }
                    stage = stage_name(*next).map(|name| (name, to));
                }
                What::Compiling => _ = compiling.insert(record.thread, to),
                What::Awaiting => {
                    compiling.remove(&record.thread);
                    spans.awaited.push(to);
                }
                What::Compiled { node, op, source } => {
                    let from = compiling.remove(&record.thread).unwrap_or(to);
                    sources.insert(node, source);
                    spans.compiled.push(Span { node, op, source, from, to, depth: 0 });
                }
                What::Running => running.entry(record.thread).or_default().push(to),
                What::Ran { node, op } => {
                    let inside = running.entry(record.thread).or_default();
                    let from = inside.pop().unwrap_or(to);
                    let source = sources.get(&**node).copied().unwrap_or_default();
                    spans.ran.push(Span { node, op, source, from, to, depth: inside.len() });
                }
                What::FirstAnswer => spans.first_answers.push(to),
            }
        }
        spans
    }
}

/// What a stage of loading is called; nothing where it only ends the one before.
pub(crate) fn stage_name(stage: LoadStage) -> Option<&'static str> {
    match stage {
        LoadStage::Map => Some("map"),
        LoadStage::Parse => Some("parse"),
        LoadStage::Rewrite => Some("rewrite"),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Records of one thread at these microseconds.
    pub(crate) fn records(list: &[(u64, What)]) -> Vec<Record> {
        let thread = std::thread::current().id();
        list.iter().map(|(at, what)| Record { at: Duration::from_micros(*at), thread, what: what.clone() }).collect()
    }

    pub(crate) fn compiled(node: &str) -> What {
        What::Compiled { node: node.into(), op: "Add".into(), source: "avx2".into() }
    }

    pub(crate) fn ran(node: &str) -> What {
        What::Ran { node: node.into(), op: "Add".into() }
    }

    #[test]
    fn beginnings_and_ends_are_paired_and_a_loop_holds_its_body() {
        let list = records(&[
            (1, What::Compiling),
            (3, compiled("loop")),
            (4, What::Running),
            (5, What::Compiling),
            (7, compiled("body")),
            (8, What::Running),
            (9, ran("body")),
            (12, ran("loop")),
            (13, What::FirstAnswer),
        ]);
        let spans = Spans::of(&list);
        let us = |spans: &[Span<'_>]| -> Vec<(u128, u128, usize)> {
            spans.iter().map(|s| (s.from.as_micros(), s.to.as_micros(), s.depth)).collect()
        };
        assert_eq!(us(&spans.compiled), [(1, 3, 0), (5, 7, 0)]);
        assert_eq!(us(&spans.ran), [(8, 9, 1), (4, 12, 0)]);
        assert_eq!(spans.ran[0].source, "avx2");
        assert_eq!(spans.first_answers, [Duration::from_micros(13)]);
    }
}
