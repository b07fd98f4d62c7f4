//! Side by side with onnxruntime: starts and later runs, in interleaved rounds.

use serde_json::Value;

use super::side_by_side::{OURS, SideBySide, median, paired, times};
use super::{Bench, Figure};
use crate::project::Failure;

/// Cold on one and two threads, sooner; warm on one thread, at most `warm` times as long.
pub(super) fn against_onnxruntime(bench: &Bench, models: &[&str], warm: f64) -> Result<Vec<Figure>, Failure> {
    let models = bench.models_of(models)?;
    let results = SideBySide {
        models: &models,
        peers: &["ort"],
        phases: &["check", "cold", "steady"],
        threads: &[1, 2],
        rounds: bench.rounds,
        steady_rounds: bench.rounds.div_ceil(3),
        is_pinned: false,
        file: "speed.json",
    }
    .run(bench)?;
    let mut figures = Vec::new();
    for model in models {
        for (phase, key, bound) in [("cold1", "total", 1.0), ("cold2", "total", 1.0), ("steady1", "med", warm)] {
            figures.push(ratio(&results[model], model, phase, key, bound));
        }
    }
    Ok(figures)
}

/// The median of our times over the median of onnxruntime's; the spread is that of single rounds.
fn ratio(result: &Value, model: &str, phase: &str, key: &str, bound: f64) -> Figure {
    let (ours, theirs) = (times(result, OURS, phase, key), times(result, "ort", phase, key));
    let ratios = paired(&ours, &theirs);
    let is_cold = phase.starts_with("cold");
    let (kind, threads) = (if is_cold { "cold" } else { "warm" }, phase.trim_start_matches(char::is_alphabetic));
    let what = format!("{model} {kind} / onnxruntime, threads {threads}");
    let bound_text = format!("{} {bound}", if is_cold { "<" } else { "<=" });
    let (Some(low), Some(high)) = (ratios.first(), ratios.last()) else {
        let why = result[OURS]["error"].as_str().unwrap_or("no rounds").to_owned();
        return Figure { what, value: why, spread: String::new(), bound: bound_text, is_met: false };
    };
    let middle = median(&ours) / median(&theirs);
    let is_met = if is_cold { middle < bound } else { middle <= bound };
    Figure {
        what,
        value: format!("{middle:.2} ({:.2} ms, {:.2} ms)", median(&ours) / 1e6, median(&theirs) / 1e6),
        spread: format!("{low:.2} to {high:.2}, {} rounds", ratios.len()),
        bound: bound_text,
        is_met,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_ratio_is_that_of_the_medians() {
        let rounds = |times: &[f64]| times.iter().map(|t| json!({"total": t})).collect::<Value>();
        let result =
            json!({"firstlight": {"cold1": rounds(&[1e6, 3e6, 2e6])}, "ort": {"cold1": rounds(&[2e6, 1e6, 9e6])}});
        let figure = ratio(&result, "m", "cold1", "total", 1.0);
        assert!(figure.value.starts_with("1.00 (2.00 ms, 2.00 ms)") && !figure.is_met);
        assert_eq!(figure.spread, "0.22 to 3.00, 3 rounds");
        assert!(ratio(&result, "m", "cold1", "total", 1.1).is_met);
        assert!(!ratio(&json!({}), "m", "cold1", "total", 1.1).is_met);
    }
}
