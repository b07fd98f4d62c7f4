//! Memory at the first output, and the limit that a caller sets.

use std::process::Command;

use serde_json::Value;

use super::runtime::{capture, figure, inputs};
use super::{Bench, Figure};
use crate::checks::CLI;
use crate::project::Failure;

/// Owned bytes and resident megabytes (of 1e6 bytes) at the first output.
const BOUNDS: [(&str, f64, f64); 2] = [("resnet50", 45.0, 170.0), ("minilm", 30.0, 140.0)];

/// The least that can be mapped.
const PAGE_BYTES: u64 = 4096;

/// The models that have bounds of their own: these, and what holds for any model.
pub(super) fn bounded(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    of_models(bench, &BOUNDS.map(|(model, ..)| model))
}

/// Owned and resident bytes where they are bounded; weights mapped; a limit kept, or refused with a figure.
pub(super) fn of_models(bench: &Bench, models: &[&str]) -> Result<Vec<Figure>, Failure> {
    let models = bench.models_of(models)?;
    bench.project.build_release(&[CLI.1, "firstlight-peer"])?;
    let mut figures = Vec::new();
    for model in models {
        match of_model(bench, model) {
            Ok(of_model) => figures.extend(of_model),
            Err(why) => figures.push(figure(model, why.message().chars().take(110).collect(), "runs", false)),
        }
    }
    Ok(figures)
}

fn of_model(bench: &Bench, model: &str) -> Result<Vec<Figure>, Failure> {
    let (owned, mapped) = owned_bytes(bench, model, None)?.map_err(Failure::Found)?;
    let owned_mb = owned as f64 / 1e6;
    let mut figures = Vec::new();
    let bounds = BOUNDS.iter().find(|(name, ..)| *name == model);
    if let Some((_, bound, _)) = bounds {
        let (what, value) = (format!("{model}: owned at the first output"), format!("{owned_mb:.1} MB"));
        figures.push(figure(&what, value, &format!("< {bound} MB"), owned_mb < *bound));
    }
    let file = bench.models.join(model).join("model.onnx");
    let size = std::fs::metadata(&file).map_or(0, |stat| stat.len());
    let value =
        format!("{:.1} MB mapped, {owned_mb:.1} MB owned, file {:.1} MB", mapped as f64 / 1e6, size as f64 / 1e6);
    let what = format!("{model}: weights mapped, not copied");
    // Constants of a file of less than a page are decoded, and the map is let go.
    let is_mapped = mapped == size || (mapped == 0 && size < PAGE_BYTES);
    figures.push(figure(&what, value, "whole file", is_mapped && size > 0));
    if let Some((_, _, bound)) = bounds {
        for threads in ["1", "2"] {
            let resident = resident_kb(bench, model, threads)? * 1024.0 / 1e6;
            let what = format!("{model}: resident peak at the first output, threads {threads}");
            figures.push(figure(&what, format!("{resident:.1} MB"), &format!("< {bound} MB"), resident < *bound));
        }
    }
    figures.push(refusal(bench, model, owned)?);
    let above = owned * 11 / 10;
    let (value, is_met) = match owned_bytes(bench, model, Some(above))? {
        Ok((peak, _)) => (format!("peak {peak}"), peak <= above),
        Err(why) => (why.chars().take(110).collect(), false),
    };
    figures.push(figure(&format!("{model}: limit at 110%, {above} bytes"), value, "runs within it", is_met));
    Ok(figures)
}

/// A run that needs less under a limit keeps within it; below what it needs it is refused with the limit's figure.
fn refusal(bench: &Bench, model: &str, owned: u64) -> Result<Figure, Failure> {
    let (mut needed, mut what) = (owned, String::new());
    // Each turn that runs needs at most nine tenths of the one before.
    for _ in 0..32 {
        let limit = needed * 9 / 10;
        what = format!("{model}: limit at 90% of {needed} bytes");
        match owned_bytes(bench, model, Some(limit))? {
            Ok((peak, _)) if peak <= limit => needed = peak,
            Ok((peak, _)) => return Ok(figure(&what, format!("ran, {peak} owned"), "refused with a figure", false)),
            Err(why) => {
                let at = why.find("memory limit of").unwrap_or(0);
                let value = why[at..].chars().take(110).collect();
                return Ok(figure(&what, value, "refused with a figure", why.contains(&limit.to_string())));
            }
        }
    }
    Ok(figure(&what, format!("still ran, {needed} owned"), "refused with a figure", false))
}

/// The peak of owned bytes and the mapped bytes of one run, or what the program says instead.
fn owned_bytes(bench: &Bench, model: &str, limit: Option<u64>) -> Result<Result<(u64, u64), String>, Failure> {
    let mut command = Command::new(bench.project.program(CLI.0));
    command.arg("run").arg(bench.models.join(model).join("model.onnx")).args(inputs(bench, model)?);
    command.args(["--threads", "1", "--json"]);
    if let Some(limit) = limit {
        command.args(["--memory-limit", &limit.to_string()]);
    }
    let (is_good, printed, errors) = capture(&mut command)?;
    if !is_good {
        return Ok(Err(errors.trim().lines().next().unwrap_or("no message").to_owned()));
    }
    let line: Value = serde_json::from_str(&printed).map_err(|e| Failure::Broken(format!("firstlight run: {e}")))?;
    let number = |key: &str| line[key].as_u64().ok_or_else(|| Failure::Broken(format!("firstlight run: no {key}")));
    Ok(Ok((number("owned_peak_bytes")?, number("mapped_bytes")?)))
}

fn resident_kb(bench: &Bench, model: &str, threads: &str) -> Result<f64, Failure> {
    let folder = bench.models.join(model);
    let mut command = Command::new(bench.project.program("firstlight-peer"));
    command.arg("--model").arg(folder.join("model.onnx")).arg("--case").arg(folder.join("case"));
    let (_, printed, errors) = capture(command.args(["--threads", threads, "--iters", "0"]))?;
    let line: Value = serde_json::from_str(&printed).unwrap_or_default();
    let figure = line["hwm_first_kb"].as_f64().filter(|kb| *kb > 0.0);
    figure.ok_or_else(|| Failure::Broken(format!("firstlight-peer gave no hwm_first_kb: {printed}{errors}")))
}
