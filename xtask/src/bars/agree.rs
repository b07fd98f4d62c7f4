//! Agreement with onnxruntime, value by value.

use serde_json::Value;

use super::{Bench, Figure};
use crate::checks::{self, Agree};
use crate::project::{Failure, array, read_json};

/// Every value that is looked at within 1e-4 of its scale, a process for each set of inputs and a session for all.
pub(super) fn agreement(bench: &Bench, models: &[&str]) -> Result<Vec<Figure>, Failure> {
    let models = bench.models_of(models)?;
    checks::build(bench.project)?;
    let only = format!("^({})$", models.join("|"));
    let check = Agree { models: bench.models.clone(), only, json: Some(bench.work.clone()) };
    let outcome = check.run(bench.project);
    let mut figures = Vec::new();
    for drive in ["run", "session"] {
        let rows = read_json(&bench.work.join(format!("agree-{drive}.json")));
        let Ok(rows) = rows else { continue };
        for model in &models {
            let mine: Vec<&Value> = array(&rows).iter().filter(|row| row["model"] == **model).collect();
            let problem = mine.iter().filter_map(|row| row["problem"].as_str()).find(|text| !text.is_empty());
            let errors: Vec<f64> = mine.iter().filter_map(|row| row["worst"].as_f64()).collect();
            let worst = errors.iter().copied().fold(0.0, f64::max);
            let n_decided: u64 = mine.iter().filter_map(|row| row["decided"].as_u64()).sum();
            figures.push(Figure {
                what: format!("{model}, one {drive}, {} sets of inputs", mine.len()),
                value: problem.map_or_else(|| format!("{worst:.1e} of scale"), |text| text.chars().take(100).collect()),
                spread: if n_decided > 0 { format!("{n_decided} by float64") } else { String::new() },
                bound: "1e-4".into(),
                is_met: problem.is_none() && !mine.is_empty() && worst <= 1e-4,
            });
        }
    }
    if figures.is_empty() { outcome.map(|_| figures) } else { Ok(figures) }
}
