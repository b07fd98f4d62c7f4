//! One first run of a model in this process: `first_run inline|auto|on THREADS FOLDER [--events]`.
//!
//! Prints what loading and the first run took, and with `--events` what compiling and executing took inside it, and how long
//! workers ran parts of kernels, in microseconds.
#![forbid(unsafe_code)]

mod case;

use case::Fallible;
use firstlight::{Event, EventSink, Pipeline, RunOptions, Session};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Time between the beginnings and the ends of compiles, and of steps.
#[derive(Debug, Default)]
struct Clock(Mutex<Times>);

#[derive(Debug, Default)]
struct Times {
    compile_from: Option<Instant>,
    compile: Duration,
    /// Steps that are running: a loop's holds its body's.
    running: Vec<Instant>,
    execute: Duration,
}

impl EventSink for Clock {
    fn event(&self, event: &Event<'_>) -> Result<(), String> {
        let now = Instant::now();
        let mut times = self.0.lock().map_err(|_| "a thread panicked")?;
        match event {
            Event::Compiling { .. } => times.compile_from = Some(now),
            Event::Compiled { .. } | Event::Awaiting => {
                if let Some(from) = times.compile_from.take() {
                    times.compile += now - from;
                }
            }
            Event::Running { .. } => times.running.push(now),
            Event::Ran { .. } => {
                if let (Some(from), true) = (times.running.pop(), times.running.is_empty()) {
                    times.execute += now - from;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn main() -> Fallible<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [pipeline, threads, folder, rest @ ..] = &words[..] else {
        return Err("first_run inline|auto|on THREADS FOLDER [--events]".into());
    };
    let pipeline = match pipeline.as_str() {
        "inline" => Pipeline::Inline,
        "auto" => Pipeline::Auto,
        "on" => Pipeline::On,
        other => return Err(format!("{other:?} is not inline, auto or on").into()),
    };
    let clock = Clock::default();
    let folder = Path::new(folder);
    let inputs = case::read(folder)?;
    let begin = Instant::now();
    let session = Session::builder().threads(threads.parse()?).load(folder.join("model.onnx"))?;
    let load = begin.elapsed();
    let mut binding = case::bind(&session, &inputs)?;
    let is_timed = rest.iter().any(|word| word == "--events");
    let events = if is_timed { Some(&clock as &dyn EventSink) } else { None };
    session.runtime().record_threads(is_timed);
    let begin = Instant::now();
    binding.run_with(&RunOptions { pipeline, events, ..RunOptions::default() })?;
    let first = begin.elapsed();
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    print!("load_us {:.1} first_us {:.1}", us(load), us(first));
    if is_timed {
        let times = clock.0.into_inner()?;
        let workers = session.runtime().take_recorded_threads().into_iter().filter(|span| span.thread > 0);
        let helped: Duration = workers.map(|span| span.to - span.from).sum();
        print!(" compile_us {:.1} execute_us {:.1}", us(times.compile), us(times.execute));
        print!(" helped_us {:.1}", us(helped));
    }
    println!();
    Ok(())
}
