//! What stays behind: `leaks FOLDER...`, each with `model.onnx` and `case`.
//!
//! For each model 1,000 sessions are opened, run and dropped; threads, descriptors and resident memory are read after
//! the first 100 and after all. Then eight threads make 500 runs each of one graph, with differing shapes, arms and
//! trip counts; each answer is compared with that of a single thread.
#![forbid(unsafe_code)]

mod case;
#[path = "../../firstlight-exec/tests/common/mod.rs"]
mod common;

use case::Fallible;
use firstlight::{RunOptions, Session};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

const N_SESSIONS: usize = 1000;
const N_FIRST: usize = 100;

/// What the process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    threads: usize,
    descriptors: usize,
    resident_kb: usize,
}

impl Held {
    fn now() -> Fallible<Held> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let figure = |key: &str| -> Fallible<usize> {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).ok_or("no such line")?;
            Ok(line.split_whitespace().next().ok_or("no figure")?.parse()?)
        };
        let descriptors = std::fs::read_dir("/proc/self/fd")?.count();
        Ok(Held { threads: figure("Threads:")?, descriptors, resident_kb: figure("VmRSS:")? })
    }
}

fn main() -> Fallible<()> {
    for folder in std::env::args().skip(1).map(PathBuf::from) {
        let inputs = case::read(&folder)?;
        let mut first = Held::now()?;
        for i in 0..N_SESSIONS {
            if i == N_FIRST {
                first = Held::now()?;
            }
            let session = Session::builder().threads(2).load(folder.join("model.onnx"))?;
            case::bind(&session, &inputs)?.run()?;
        }
        let last = Held::now()?;
        println!(
            "sessions {N_SESSIONS} model {} threads {} {} descriptors {} {} resident_kb {} {}",
            case::name(&folder),
            first.threads,
            last.threads,
            first.descriptors,
            last.descriptors,
            first.resident_kb,
            last.resident_kb
        );
    }
    let (n_runs, n_wrong) = many_threads();
    println!("threads 8 runs {n_runs} wrong {n_wrong}");
    Ok(())
}

/// Runs, and how many of them failed or gave another answer than one thread alone.
fn many_threads() -> (usize, usize) {
    let graph = common::sixty_nodes();
    let known: Vec<_> = (0..12).map(|i| common::Inputs::new(1 + i % 7, i % 2 == 0, (i % 5) as i64)).collect();
    let alone = common::cpu(1);
    let prepared = common::prepare(&alone, &graph);
    let answer = |inputs| common::run(&alone, &prepared, inputs, &RunOptions::default());
    let wanted: Vec<_> = known.iter().map(|inputs| answer(inputs).ok()).collect();
    let executor = common::cpu(2);
    let prepared = common::prepare(&executor, &graph);
    let (n_runs, n_wrong) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (executor, prepared, known, wanted) = (&executor, &prepared, &known, &wanted);
            let (n_runs, n_wrong) = (&n_runs, &n_wrong);
            scope.spawn(move || {
                for i in 0..500 {
                    let at = (i * 5 + thread) % known.len();
                    let got = common::run(executor, prepared, &known[at], &RunOptions::default()).ok();
                    n_runs.fetch_add(1, Ordering::Relaxed);
                    if got.is_none() || got != wanted[at] {
                        n_wrong.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    (n_runs.into_inner(), n_wrong.into_inner())
}
