//! The same outputs, byte for byte, however a model is run: `same_bits [--runs N] [60-nodes] FOLDER...`.
//!
//! For each model, and for the graph of 60 nodes with control flow that `60-nodes` means: 1, 2 and 4 threads, compiling inline, pipelined, and
//! replaying, passes off and on, N fresh runs each (20). Prints how many runs differ from the first, and a digest.
#![forbid(unsafe_code)]

mod case;
#[path = "../../firstlight-exec/tests/common/mod.rs"]
mod common;

use case::Fallible;
use firstlight::{Pipeline, RunOptions, Session};
use firstlight_exec::PrepareOptions;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How a run goes.
#[derive(Clone, Copy, Debug)]
struct Way {
    threads: usize,
    passes: bool,
    /// `None` replays what an earlier run compiled.
    pipeline: Option<Pipeline>,
}

fn ways() -> impl Iterator<Item = Way> {
    let pipelines = [Some(Pipeline::Inline), Some(Pipeline::On), None];
    let with = move |threads, passes| pipelines.map(|pipeline| Way { threads, passes, pipeline });
    [1, 2, 4].into_iter().flat_map(move |threads| [false, true].into_iter().flat_map(move |p| with(threads, p)))
}

/// The first outputs, and how many later ones are other bytes.
#[derive(Debug, Default)]
struct Tally {
    first: Option<Vec<u8>>,
    n_runs: usize,
    n_different: usize,
    differing: Option<Way>,
}

impl Tally {
    fn take(&mut self, way: Way, bytes: Vec<u8>) {
        self.n_runs += 1;
        match &self.first {
            None => self.first = Some(bytes),
            Some(first) if *first == bytes => {}
            Some(_) => {
                self.n_different += 1;
                self.differing.get_or_insert(way);
            }
        }
    }

    fn print(&self, name: &str) {
        let mut hasher = DefaultHasher::new();
        self.first.hash(&mut hasher);
        print!("model {name} runs {} different {} digest {:016x}", self.n_runs, self.n_different, hasher.finish());
        match self.differing {
            Some(way) => println!(" first {way:?}"),
            None => println!(),
        }
    }
}

fn main() -> Fallible<ExitCode> {
    let mut words = std::env::args().skip(1).peekable();
    let mut n_runs = 20;
    if words.next_if_eq("--runs").is_some() {
        n_runs = words.next().ok_or("--runs needs a number")?.parse()?;
    }
    let mut n_different = 0;
    for folder in words.map(PathBuf::from) {
        let name = case::name(&folder);
        let tally = if name == "60-nodes" { sixty(n_runs)? } else { model(&folder, n_runs)? };
        tally.print(&name);
        n_different += tally.n_different;
    }
    Ok(ExitCode::from(u8::from(n_different > 0)))
}

fn model(folder: &Path, n_runs: usize) -> Fallible<Tally> {
    let inputs = case::read(folder)?;
    let mut tally = Tally::default();
    for way in ways() {
        let session = || {
            let pipeline = way.pipeline.unwrap_or_default();
            let builder = Session::builder().threads(way.threads).passes(way.passes).pipeline(pipeline);
            builder.load(folder.join("model.onnx"))
        };
        let mut kept = case::bind(&session()?, &inputs)?;
        if way.pipeline.is_none() {
            kept.run()?;
        }
        for i in 0..n_runs {
            if way.pipeline.is_some() && i > 0 {
                kept = case::bind(&session()?, &inputs)?;
            }
            kept.run()?;
            tally.take(way, case::output_bytes(&kept));
        }
    }
    Ok(tally)
}

fn sixty(n_runs: usize) -> Fallible<Tally> {
    let graph = common::sixty_nodes();
    let targets: Vec<_> = graph.outputs().iter().map(|(_, value)| *value).collect();
    let known = [(3, true, 2), (3, false, 5), (5, true, 0)].map(|(n, flag, trips)| common::Inputs::new(n, flag, trips));
    let mut tally = Tally::default();
    for way in ways() {
        let executor = common::cpu(way.threads);
        let options = PrepareOptions { passes: way.passes, ..PrepareOptions::default() };
        let run_options = RunOptions { pipeline: way.pipeline.unwrap_or_default(), ..RunOptions::default() };
        let mut prepared = executor.prepare(graph.clone(), &targets, options)?;
        for i in 0..=n_runs {
            if way.pipeline.is_some() {
                prepared = executor.prepare(graph.clone(), &targets, options)?;
            }
            let mut bytes = Vec::new();
            for inputs in &known {
                let outputs = common::run(&executor, &prepared, inputs, &run_options)?.outputs;
                bytes.extend(outputs.into_iter().flat_map(|(_, bytes)| bytes));
            }
            // The first run of a replay compiles.
            if i > 0 {
                tally.take(way, bytes);
            }
        }
    }
    Ok(tally)
}
