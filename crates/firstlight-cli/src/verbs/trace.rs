//! `firstlight trace`: a Chrome trace of what was compiled and executed when.
//!
//! Tracks: `session` (loading, runs), `compile`, `execute`, and one a thread that ran parts of kernels. An arrow leads from a
//! node's compile to its first run.

use crate::args::ModelArgs;
use crate::feeds::{check_use, feeds};
use crate::record::{Record, Recorder, Spans};
use crate::table::count;
use crate::{Failure, print, svg, timeline};
use clap::Args;
use firstlight::{RunOptions, Session, files};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Writes what was compiled and executed when, as a Chrome trace or a picture.
///
/// The model is run. The first run compiles each node just before it executes it, on another thread where that is worth it; later runs
/// replay. The trace shows the tracks session (loading, runs), compile and execute, and one for each thread that ran parts
/// of kernels; an arrow leads from a node's compile to its first run. It is a Chrome trace: open it in Perfetto or chrome://tracing. With --svg the same is drawn as a
/// picture that any browser shows, with the node, its op, its kernel and its time where the pointer rests.
///
/// A small timeline of text goes to standard error: how busy compiling and executing were.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// The trace file (JSON) [default: MODEL.trace.json in this folder, without --svg]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Draw a picture [default of FILE: MODEL.trace.svg in this folder]
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    svg: Option<Option<PathBuf>>,
    /// How many runs to trace; the first compiles, the others replay
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
}

const EXAMPLES: &str = "\
Examples:
  The first run, which compiles and executes at once, then two that replay it:
  $ firstlight trace model.onnx --random --repeat 3 --out trace.json

  A picture of the first run, model.trace.svg:
  $ firstlight trace model.onnx --random --svg
";

/// Runs a model and writes its trace.
pub(crate) fn trace(args: &TraceArgs) -> Result<(), Failure> {
    check_use(&args.model)?;
    let recorder = Arc::new(Recorder::new());
    let session = args.model.load_telling(recorder.clone())?;
    let mut spans = vec![("model_loading", Duration::ZERO, recorder.clock.elapsed())];
    let feeds = feeds(&session, &args.model)?;
    session.runtime().record_threads(true);
    for i in 0..args.repeat {
        let start = recorder.clock.elapsed();
        let options = RunOptions { events: Some(&*recorder), ..RunOptions::default() };
        session.run_with(feeds.iter().map(|(name, tensor)| (name, tensor)), &options)?;
        let name = if i == 0 { "model_run (first)" } else { "model_run" };
        spans.push((name, start, recorder.clock.elapsed()));
    }
    let records = recorder.take();
    let recorded = Spans::of(&records);
    spans.extend(&recorded.loading);
    let threads = busy_threads(&session, recorder.clock);
    let said = |path: &Path| {
        let (steps, runs) = (count(recorded.ran.len(), "step"), count(args.repeat as usize, "run"));
        print::note(&format!("{steps} of {runs} in {}", path.display()));
    };
    if args.out.is_some() || args.svg.is_none() {
        let trace = chrome_trace(&spans, &threads, &records);
        let mut text = serde_json::to_string(&trace).map_err(|error| Failure::Failed(error.to_string()))?;
        text.push('\n');
        let path = args.out.clone().unwrap_or_else(|| default_path(&args.model.model, "json"));
        files::write(&path, text.as_bytes())?;
        said(&path);
    }
    if let Some(path) = &args.svg {
        let path = path.clone().unwrap_or_else(|| default_path(&args.model.model, "svg"));
        let name = args.model.model.file_name().unwrap_or_default().to_string_lossy();
        let title =
            format!("{name}: {} on {}", count(args.repeat as usize, "run"), count(session.stats().threads, "thread"));
        files::write(&path, svg::timeline(&title, &spans, &threads, &recorded).as_bytes())?;
        said(&path);
    }
    print::note(timeline::text(&records, 80).trim_end());
    Ok(())
}

/// When each thread ran parts of kernels, by its name.
fn busy_threads(session: &Session, zero: Instant) -> Vec<(String, Vec<(Duration, Duration)>)> {
    let mut threads: BTreeMap<usize, Vec<(Duration, Duration)>> = BTreeMap::new();
    for span in session.runtime().take_recorded_threads() {
        let at = |time: Instant| time.saturating_duration_since(zero);
        threads.entry(span.thread).or_default().push((at(span.from), at(span.to)));
    }
    let name = |thread| if thread == 0 { "caller".to_owned() } else { format!("worker {thread}") };
    threads.into_iter().map(|(thread, spans)| (name(thread), spans)).collect()
}

/// A file in the current folder, named after the model.
fn default_path(model: &Path, end: &str) -> PathBuf {
    let mut name = model.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".trace.{end}"));
    name.into()
}

/// Numbers of the tracks.
const SESSION: u32 = 1;
const COMPILE: u32 = 2;
const EXECUTE: u32 = 3;
/// The first of those of threads.
const THREADS: u32 = 4;

/// Threads by name, each with the stretches in which it ran parts of kernels.
type BusyThreads = [(String, Vec<(Duration, Duration)>)];

/// The trace's events: spans of the session, then what the records tell.
fn chrome_trace(spans: &[(&str, Duration, Duration)], threads: &BusyThreads, records: &[Record]) -> Vec<Value> {
    let mut events = Vec::new();
    let tracks = [(SESSION, "session"), (COMPILE, "compile"), (EXECUTE, "execute")];
    let pool = (THREADS..).zip(threads).map(|(track, (name, _))| (track, name.as_str()));
    for (track, name) in tracks.into_iter().chain(pool) {
        events.push(json!({"ph": "M", "pid": 1, "tid": track, "name": "thread_name", "args": {"name": name}}));
        events.push(
            json!({"ph": "M", "pid": 1, "tid": track, "name": "thread_sort_index", "args": {"sort_index": track}}),
        );
    }
    for (name, from, to) in spans {
        events.push(slice(SESSION, "Session", name, *from, *to, json!({})));
    }
    for (track, (_, busy)) in (THREADS..).zip(threads) {
        events.extend(busy.iter().map(|(from, to)| slice(track, "Thread", "tiles", *from, *to, json!({}))));
    }
    let recorded = Spans::of(records);
    let mut flows: HashMap<&str, u64> = HashMap::new();
    for (span, id) in recorded.compiled.iter().zip(1u64..) {
        let args = json!({"op_name": span.op, "node": span.node, "source": span.source});
        let name = format!("{}_compile_time", span.node);
        events.push(slice(COMPILE, "Compile", &name, span.from, span.to, args));
        // Inside the slice, not at its end, where it would be tied to nothing.
        events.push(flow("s", id, COMPILE, span.from + span.time() / 2));
        flows.insert(span.node, id);
    }
    for span in &recorded.ran {
        let args = json!({"op_name": span.op, "node": span.node, "source": span.source, "provider": "cpu"});
        events.push(slice(EXECUTE, "Node", &format!("{}_kernel_time", span.node), span.from, span.to, args));
        // Later runs of the step replay it; no arrow leads to them.
        if let Some(id) = flows.remove(span.node) {
            events.push(flow("f", id, EXECUTE, span.from));
        }
    }
    events.extend(recorded.awaited.iter().map(|at| instant(COMPILE, "awaiting a value", *at)));
    events.extend(recorded.first_answers.iter().map(|at| instant(EXECUTE, "first answer", *at)));
    events
}

fn us(at: Duration) -> f64 {
    at.as_nanos() as f64 / 1e3
}

fn slice(track: u32, cat: &str, name: &str, from: Duration, to: Duration, args: Value) -> Value {
    let dur = us(to.saturating_sub(from));
    json!({"ph": "X", "pid": 1, "tid": track, "cat": cat, "name": name, "ts": us(from), "dur": dur, "args": args})
}

fn instant(track: u32, name: &str, at: Duration) -> Value {
    json!({"ph": "i", "pid": 1, "tid": track, "cat": "Session", "name": name, "ts": us(at), "s": "t"})
}

/// One end of an arrow; it is tied to the slice that its time lies in.
fn flow(ph: &str, id: u64, track: u32, at: Duration) -> Value {
    json!({"ph": ph, "pid": 1, "tid": track, "cat": "flow", "name": "compile to run", "id": id, "ts": us(at), "bp": "e"})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::What;
    use crate::record::tests::{compiled, ran, records};

    #[test]
    fn a_node_is_compiled_then_run_and_an_arrow_joins_them() {
        let list = records(&[
            (1, What::Compiling),
            (3, compiled("a")),
            (4, What::Running),
            (9, ran("a")),
            (10, What::FirstAnswer),
            (20, What::Running),
            (21, ran("a")),
        ]);
        let trace = chrome_trace(
            &[("model_run", Duration::ZERO, Duration::from_micros(30))],
            &[("worker 1".to_owned(), vec![(Duration::from_micros(5), Duration::from_micros(8))])],
            &list,
        );
        let of = |key: &str, value: &str| -> Vec<&Value> { trace.iter().filter(|event| event[key] == value).collect() };
        let (busy, names) = (of("cat", "Thread"), of("name", "thread_name"));
        assert_eq!((busy[0]["ts"].as_f64(), busy[0]["dur"].as_f64()), (Some(5.0), Some(3.0)));
        assert!(names.iter().any(|name| name["tid"] == busy[0]["tid"] && name["args"]["name"] == "worker 1"));
        let compile = of("cat", "Compile");
        assert_eq!((compile[0]["ts"].as_f64(), compile[0]["dur"].as_f64()), (Some(1.0), Some(2.0)));
        assert_eq!(compile[0]["args"]["source"], "avx2");
        let nodes = of("cat", "Node");
        assert_eq!(nodes.len(), 2);
        assert_eq!(nodes[0]["name"], "a_kernel_time");
        assert_eq!((nodes[0]["ts"].as_f64(), nodes[0]["dur"].as_f64()), (Some(4.0), Some(5.0)));
        assert_eq!(nodes[1]["args"]["source"], "avx2");
        let (from, to) = (of("ph", "s"), of("ph", "f"));
        assert_eq!((from.len(), to.len()), (1, 1));
        assert_eq!(from[0]["id"], to[0]["id"]);
        assert_eq!(to[0]["ts"], nodes[0]["ts"]);
    }
}
