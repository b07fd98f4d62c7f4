//! The bars of the first answer: process start to first output, beside every peer and against our own warm runs.

use std::cell::OnceCell;

use serde_json::Value;

use super::models::MODELS;
use super::runtime::{Example, folder, number_after};
use super::side_by_side::{OURS, SideBySide, geometric_mean, median, paired, times};
use super::{Bar, Bench, Figure};
use crate::project::Failure;

/// Peers with their caches, and without.
const PEERS: [&str; 6] = ["ort", "ort-saved", "openvino", "openvino-cache", "rten", "rten-mmap"];

pub(super) const BARS: &[Bar] = &[
    Bar {
        name: "1",
        what: "2 threads, page cache warm: sooner than every peer",
        is_long: false,
        measure: |bench| {
            let ask = Ask { phase: "cold", threads: 2, is_pinned: false, geomean: Some(0.5), against_ort: Some(0.15) };
            ask.measure(bench)
        },
    },
    Bar {
        name: "2",
        what: "1 thread, pinned to a core: sooner than every peer",
        is_long: false,
        measure: |bench| {
            let ask = Ask { phase: "cold", threads: 1, is_pinned: true, geomean: Some(0.65), against_ort: None };
            ask.measure(bench)
        },
    },
    Bar {
        name: "3",
        what: "page cache cold: sooner than every peer",
        is_long: false,
        measure: |bench| {
            let ask = Ask { phase: "evict", threads: 2, is_pinned: false, geomean: None, against_ort: None };
            ask.measure(bench)
        },
    },
    Bar { name: "4", what: "cold against our own warm run", is_long: false, measure: against_warm },
    Bar { name: "5", what: "what the overlap of compiling and executing brings", is_long: false, measure: overlap },
    Bar { name: "6", what: "the smallest model, and huge graphs", is_long: false, measure: extremes },
];

/// Cold starts beside the peers.
#[derive(Clone, Copy)]
struct Ask {
    phase: &'static str,
    threads: usize,
    is_pinned: bool,
    /// The most that the geometric mean of the ratios to each model's best peer may be.
    geomean: Option<f64>,
    /// The same to onnxruntime.
    against_ort: Option<f64>,
}

impl Ask {
    fn measure(self, bench: &Bench) -> Result<Vec<Figure>, Failure> {
        let models = bench.models_of(&MODELS)?;
        let results = SideBySide {
            models: &models,
            peers: &PEERS,
            phases: &["check", self.phase],
            threads: &[self.threads],
            rounds: bench.rounds,
            steady_rounds: 1,
            is_pinned: self.is_pinned,
            file: &format!("first-answer-{}{}.json", self.phase, self.threads),
        }
        .run(bench)?;
        let (mut figures, mut to_best, mut to_ort) = (Vec::new(), Vec::new(), Vec::new());
        for model in models {
            let starts = Starts::of(&results[model], &format!("{}{}", self.phase, self.threads));
            to_best.extend(starts.best().map(|best| best.ratio));
            to_ort.extend(starts.ratio_to("ort"));
            figures.push(starts.figure(model));
        }
        let n = figures.len();
        for (what, ratios, bound) in [
            ("geometric mean of ours / each model's best peer", to_best, self.geomean),
            ("geometric mean of ours / onnxruntime", to_ort, self.against_ort),
        ] {
            let Some(bound) = bound else { continue };
            let mean = geometric_mean(&ratios);
            figures.push(Figure {
                what: what.to_owned(),
                value: format!("{mean:.3}"),
                spread: format!("{} of {n} models", ratios.len()),
                bound: format!("<= {bound}"),
                is_met: mean <= bound && ratios.len() == n,
            });
        }
        Ok(figures)
    }
}

/// The starts of one model.
struct Starts {
    ours: Vec<f64>,
    /// Those that ran.
    peers: Vec<Peer>,
    failing: Vec<&'static str>,
}

struct Peer {
    name: &'static str,
    times: Vec<f64>,
    /// Ours over its, round by round.
    ratios: Vec<f64>,
    /// The median of them.
    ratio: f64,
}

impl Starts {
    fn of(result: &Value, phase: &str) -> Starts {
        let ours = times(result, OURS, phase, "total");
        let mut starts = Starts { ours, peers: vec![], failing: vec![] };
        for name in PEERS {
            let times = times(result, name, phase, "total");
            if times.is_empty() {
                starts.failing.push(name);
                continue;
            }
            let ratios = paired(&starts.ours, &times);
            starts.peers.push(Peer { name, ratio: median(&ratios), ratios, times });
        }
        starts
    }

    /// The peer that starts soonest.
    fn best(&self) -> Option<&Peer> {
        self.peers.iter().min_by(|a, b| median(&a.times).total_cmp(&median(&b.times)))
    }

    fn ratio_to(&self, name: &str) -> Option<f64> {
        self.peers.iter().find(|peer| peer.name == name).map(|peer| peer.ratio)
    }

    fn figure(&self, model: &str) -> Figure {
        let what = format!("{model}: ours / the peer that starts soonest");
        let bound = "< 1 of every peer".to_owned();
        let (Some(best), false) = (self.best(), self.ours.is_empty()) else {
            return Figure { what, value: "no rounds".into(), spread: String::new(), bound, is_met: false };
        };
        let (low, high) = (best.ratios[0], best.ratios[best.ratios.len() - 1]);
        let failing = match self.failing.is_empty() {
            true => String::new(),
            false => format!("; fails: {}", self.failing.join(" ")),
        };
        Figure {
            what,
            value: format!("{:.2} of {} ({}, {})", best.ratio, best.name, ms(&self.ours), ms(&best.times)),
            spread: format!("{low:.2} to {high:.2}, {} rounds{failing}", best.ratios.len()),
            bound,
            is_met: self.peers.iter().all(|peer| peer.ratio < 1.0),
        }
    }
}

fn ms(times: &[f64]) -> String {
    format!("{:.2} ms", median(times) / 1e6)
}

/// How much longer than a warm run the first answer may take: what every start needs.
const WARM_FACTOR: f64 = 1.6;
const START_MS: f64 = 5.0;

/// Cold, two threads: at most 1.6 times a warm run, the time that two threads need to touch the mapped weights, and 5 ms.
fn against_warm(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let models = bench.models_of(&MODELS)?;
    let touch = Example::build(bench, "firstlight-conformance", "touch")?;
    let mut figures = Vec::new();
    let results = SideBySide {
        models: &models,
        peers: &[],
        phases: &["check", "cold", "steady"],
        threads: &[2],
        rounds: bench.rounds,
        steady_rounds: bench.rounds.div_ceil(3),
        is_pinned: false,
        file: "first-answer-warm.json",
    }
    .run(bench)?;
    for model in models {
        let file = format!("{}/model.onnx", folder(bench, model));
        let touches: Result<Vec<f64>, Failure> = (0..bench.rounds)
            .map(|_| Ok(number_after(&touch.run_quiet(&["2".into(), file.clone()])?, "touch_us") / 1e3))
            .collect();
        let touch_ms = median(&touches?);
        let cold = times(&results[model], OURS, "cold2", "total");
        let middle = |values: &[f64]| median(values) / 1e6;
        let (cold_ms, warm_ms) = (middle(&cold), middle(&times(&results[model], OURS, "steady2", "med")));
        let most = WARM_FACTOR * warm_ms + touch_ms + START_MS;
        let least = cold.iter().copied().fold(f64::INFINITY, f64::min) / 1e6;
        figures.push(Figure {
            what: format!("{model}: cold, against 1.6 warm + touch + 5 ms"),
            value: format!("{cold_ms:.2} ms"),
            spread: format!("warm {warm_ms:.2} ms, touch {touch_ms:.2} ms, least cold {least:.2} ms"),
            bound: format!("<= {most:.2} ms"),
            is_met: cold_ms <= most,
        });
    }
    Ok(figures)
}

/// Gains that are less than this part of the first run are beyond what a clock tells on a shared machine.
const MAX_RATIO: f64 = 1.02;
const LEAST_PART: f64 = 0.6;

/// First runs inline and pipelined, in turn, on two threads; and what compiling and executing take, apart.
fn overlap(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let models = bench.models_of(&MODELS)?;
    let example = Example::build(bench, "firstlight-conformance", "first_run")?;
    let mut figures = Vec::new();
    for model in models {
        let run = |pipeline: &str, threads: &str, more: &[&str]| -> Result<String, Failure> {
            let mut words = vec![pipeline.to_owned(), threads.to_owned(), folder(bench, model)];
            words.extend(more.iter().map(|&word| word.to_owned()));
            example.run_quiet(&words)
        };
        let first = |pipeline: &str| Ok(number_after(&run(pipeline, "2", &[])?, "first_us"));
        let (mut inline, mut pipelined, mut compile, mut execute, mut helped) =
            (vec![], vec![], vec![], vec![], vec![]);
        for round in 0..bench.rounds {
            // Whoever starts second finds the machine as the first left it: they take turns.
            match round % 2 {
                0 => (inline.push(first("inline")?), pipelined.push(first("auto")?)),
                _ => (pipelined.push(first("auto")?), inline.push(first("inline")?)),
            };
            if round % 3 == 0 {
                let apart = run("inline", "2", &["--events"])?;
                compile.push(number_after(&apart, "compile_us"));
                execute.push(number_after(&apart, "execute_us"));
                helped.push(number_after(&apart, "helped_us"));
            }
        }
        let ratios = paired(&pipelined, &inline);
        let ratio = median(&ratios);
        let (c, e, h) = (median(&compile), median(&execute), median(&helped));
        let allowed = allowed_gain(c, e, h);
        let gain = median(&inline) - median(&pipelined);
        figures.push(Figure {
            what: format!("{model}: pipelined / inline, first run, threads 2"),
            value: format!("{ratio:.3} ({:.2} ms, {:.2} ms)", median(&pipelined) / 1e3, median(&inline) / 1e3),
            spread: format!("{:.2} to {:.2}, {} rounds", ratios[0], ratios[ratios.len() - 1], ratios.len()),
            bound: format!("<= {MAX_RATIO}"),
            is_met: ratio <= MAX_RATIO,
        });
        figures.push(Figure {
            what: format!("{model}: gain of the overlap"),
            value: format!("{gain:.0} us of {allowed:.0} us"),
            spread: format!("compile {c:.0} us; execute {e:.0} us, {h:.0} us of it with the second thread"),
            bound: format!(">= {:.0}%", LEAST_PART * 100.0),
            is_met: gain >= LEAST_PART * allowed,
        });
    }
    Ok(figures)
}

/// What overlapping can save of `compile` and then `execute`, in which the second thread is busy for `helped`: no schedule on
/// two threads is shorter than half of all that they do, nor than compiling, nor than executing.
fn allowed_gain(compile: f64, execute: f64, helped: f64) -> f64 {
    let shortest = ((compile + execute + helped) / 2.0).max(execute).max(compile);
    (compile + execute - shortest).max(0.0)
}

/// Nodes of the huge graphs; what a node may take beyond its kernel; how much more a node of the largest may take than one
/// of the smaller.
const SIZES: [usize; 2] = [10_000, 200_000];
const NODE_US: f64 = 3.0;
const LINEAR: f64 = 1.5;

fn extremes(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    if bench.models_of(&["one-add"]).is_ok_and(|models| !models.is_empty()) {
        for threads in [1, 2] {
            figures.push(one_add(bench, threads)?);
        }
    }
    let huge = Example::build(bench, "firstlight-conformance", "huge_graphs")?;
    let printed = huge.run(&SIZES.map(|n| n.to_string()))?;
    for kind in ["fused", "plain"] {
        let per_node = OnceCell::new();
        for n in SIZES {
            let line = printed.lines().find(|line| line.starts_with(&format!("kind {kind} nodes {n} ")));
            let line = line.unwrap_or_default();
            let [load, first, later] = ["load_us", "first_us", "later_us"].map(|key| number_after(line, key));
            let us = (load + first - later) / n as f64;
            let smaller = *per_node.get_or_init(|| us);
            figures.push(Figure {
                what: format!("{n} nodes, {kind}: a node beyond its kernel, stack of 1 MB"),
                value: format!("{us:.2} us"),
                spread: format!("load {:.1} ms, first {:.1} ms, later {:.1} ms", load / 1e3, first / 1e3, later / 1e3),
                bound: format!("<= {NODE_US} us, linear"),
                is_met: us <= NODE_US && us <= LINEAR * smaller,
            });
        }
    }
    Ok(figures)
}

/// The smallest model beside the mapped peer.
fn one_add(bench: &Bench, threads: usize) -> Result<Figure, Failure> {
    let results = SideBySide {
        models: &["one-add"],
        peers: &["rten-mmap"],
        phases: &["check", "cold"],
        threads: &[threads],
        rounds: 2 * bench.rounds,
        steady_rounds: 1,
        is_pinned: threads == 1,
        file: "first-answer-one-add.json",
    }
    .run(bench)?;
    let starts = Starts::of(&results["one-add"], &format!("cold{threads}"));
    let ratio = starts.ratio_to("rten-mmap").unwrap_or(f64::NAN);
    let mut figure = starts.figure("one-add");
    figure.what = format!("one-add, threads {threads}: ours / rten-mmap");
    figure.bound = "<= 0.7".to_owned();
    figure.is_met = ratio <= 0.7;
    Ok(figure)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_best_peer_is_the_soonest_and_every_peer_counts() {
        let rounds = |times: &[f64]| times.iter().map(|t| json!({"total": t})).collect::<Value>();
        let result = json!({
            OURS: {"cold2": rounds(&[2e6, 2e6, 2e6])},
            "ort": {"cold2": rounds(&[9e6, 9e6, 9e6])},
            "rten": {"cold2": rounds(&[4e6, 3e6, 5e6])},
        });
        let starts = Starts::of(&result, "cold2");
        let figure = starts.figure("m");
        assert!(figure.value.starts_with("0.50 of rten (2.00 ms, 4.00 ms)"), "{}", figure.value);
        assert!(figure.is_met && figure.spread.contains("fails: ort-saved openvino"));
        assert!(starts.ratio_to("ort").is_some_and(|ratio| ratio < 0.23));
        let late = json!({OURS: {"cold2": rounds(&[6e6])}, "ort": {"cold2": rounds(&[9e6])}, "rten": {"cold2": rounds(&[5e6])}});
        assert!(!Starts::of(&late, "cold2").figure("m").is_met);
    }

    #[test]
    fn overlap_saves_what_the_threads_leave_idle() {
        assert_eq!(allowed_gain(10.0, 100.0, 100.0), 5.0, "both threads are busy executing");
        assert_eq!(allowed_gain(10.0, 100.0, 0.0), 10.0, "one thread is idle while executing");
        assert_eq!(allowed_gain(100.0, 10.0, 0.0), 10.0, "compiling is longer");
    }
}
