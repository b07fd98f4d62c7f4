//! `firstlight run`.

use crate::args::ModelArgs;
use crate::feeds::{check_use, feeds};
use crate::progress::Progress;
use crate::{Failure, make_folder, print};
use clap::Args;
use firstlight::{DType, Outputs, RunOptions, Session, Tensor, bf16, f16, files};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Runs a model and prints or writes its outputs.
///
/// Each output is a line: its name, element type, shape, and its least, mean and greatest element.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Where to write the outputs: a file that ends in .npz, or a folder that gets one file an output
    #[arg(long, value_name = "DIR|FILE.npz")]
    pub(crate) output: Option<PathBuf>,
    /// Values inside the graph to return as well
    #[arg(long, value_name = "NAME")]
    pub(crate) keep: Vec<String>,
    /// How often to run; the outputs are those of the last run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Print one JSON object instead of lines
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  Feed made-up values to every input, and print a line for each output:
  $ firstlight run model.onnx --random

  Feed a file, and keep the outputs for NumPy:
  $ firstlight run model.onnx --input x=x.npy --output outputs.npz

  Choose the size of a named dimension, and time ten runs on one thread:
  $ firstlight run model.onnx --random --dim N=8 --repeat 10 --threads 1
";

/// Runs a model, writes its outputs and prints a line for each.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    check_use(&args.model)?;
    let clock = Instant::now();
    let session = args.model.load(&args.keep)?;
    let load = clock.elapsed();
    let feeds = feeds(&session, &args.model)?;
    let mut times = Vec::new();
    let mut outputs = None;
    for i in 0..args.repeat {
        let progress = (i == 0).then(Progress::of_first_run);
        let clock = Instant::now();
        let events = progress.as_ref().and_then(Progress::events);
        let options = RunOptions { events, ..RunOptions::default() };
        outputs = Some(session.run_with(feeds.iter().map(|(name, tensor)| (name, tensor)), &options)?);
        times.push(clock.elapsed());
    }
    let Some(outputs) = outputs else { return Err(Failure::BadUse("--repeat 0 runs nothing".into())) };
    if let Some(to) = &args.output {
        write(&outputs, to)?;
    }
    let summaries: Vec<Summary<'_>> = outputs.iter().map(|(name, tensor)| Summary::new(name, tensor)).collect();
    if args.json {
        return print::json(&as_json(args, &session, &summaries, load, &times));
    }
    let mut lines = String::new();
    for summary in &summaries {
        // Writing to a string does not fail.
        let _ = writeln!(lines, "{summary}");
    }
    print::data(&lines)?;
    print::note(&notes(&session, load, &times));
    Ok(())
}

/// An output in a line.
#[derive(Debug)]
struct Summary<'a> {
    name: &'a str,
    tensor: &'a Tensor,
    /// Least, mean and greatest element; `None` where there is none, or none that is a number.
    range: Option<[f64; 3]>,
}

impl<'a> Summary<'a> {
    fn new(name: &'a str, tensor: &'a Tensor) -> Summary<'a> {
        Summary { name, tensor, range: range(tensor) }
    }

    fn json(&self) -> Value {
        let [min, mean, max] = self.range.map_or([None; 3], |range| range.map(Some));
        let shape: &[usize] = self.tensor.shape();
        json!({
            "name": self.name, "dtype": self.tensor.dtype().name(), "shape": shape,
            "min": min, "mean": mean, "max": max,
        })
    }
}

impl std::fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}{}", self.name, self.tensor.dtype(), self.tensor.shape())?;
        match self.range {
            Some([min, mean, max]) => write!(f, " min {min:.6} mean {mean:.6} max {max:.6}"),
            None => Ok(()),
        }
    }
}

fn range(tensor: &Tensor) -> Option<[f64; 3]> {
    fn of(values: impl Iterator<Item = f64>) -> Option<[f64; 3]> {
        let (mut n, mut min, mut max, mut sum) = (0u64, f64::INFINITY, f64::NEG_INFINITY, 0.0);
        for value in values {
            (n, min, max, sum) = (n + 1, min.min(value), max.max(value), sum + value);
        }
        (n > 0).then(|| [min, sum / n as f64, max])
    }
    match tensor.dtype() {
        DType::F32 => of(tensor.values::<f32>().ok()?.iter().map(|&v| v.into())),
        DType::F64 => of(tensor.values::<f64>().ok()?.iter().copied()),
        DType::F16 => of(tensor.values::<f16>().ok()?.iter().map(|&v| v.into())),
        DType::BF16 => of(tensor.values::<bf16>().ok()?.iter().map(|&v| v.into())),
        _ => of(tensor.to_i64s().ok()?.into_iter().map(|v| v as f64)),
    }
}

/// Writes the outputs to an `.npz`, or to a folder with one file an output.
fn write(outputs: &Outputs, to: &Path) -> Result<(), Failure> {
    if to.extension().is_some_and(|end| end.eq_ignore_ascii_case("npz")) {
        return Ok(files::write_npz(to, outputs.iter())?);
    }
    make_folder(to)?;
    for (name, tensor) in outputs.iter() {
        let stem = file_stem(name);
        // NumPy has no name for some element types; the other format holds all of them.
        if let Err(error) = files::write_npy(to.join(format!("{stem}.npy")), tensor) {
            match tensor.dtype() {
                DType::F32 | DType::F64 | DType::I64 | DType::I32 | DType::Bool => return Err(error.into()),
                _ => files::write_pb(to.join(format!("{stem}.pb")), name, tensor)?,
            }
        }
    }
    Ok(())
}

/// A value's name as the name of a file: what a path or a shell would trip over becomes `%` and two hex digits.
fn file_stem(name: &str) -> String {
    let mut stem = String::new();
    for (i, byte) in name.bytes().enumerate() {
        match byte {
            b'.' if i == 0 => stem.push_str("%2E"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => stem.push(char::from(byte)),
            // Writing to a string does not fail.
            other => _ = write!(stem, "%{other:02X}"),
        }
    }
    stem
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn as_json(args: &RunArgs, session: &Session, outputs: &[Summary<'_>], load: Duration, times: &[Duration]) -> Value {
    let stats = session.stats();
    let later: Vec<f64> = times.iter().skip(1).copied().map(ms).collect();
    json!({
        "model": args.model.model.display().to_string(),
        "outputs": outputs.iter().map(Summary::json).collect::<Vec<_>>(),
        "warnings": session.warnings(),
        "load_ms": ms(load),
        "first_ms": times.first().copied().map(ms),
        "later_ms": later,
        "owned_peak_bytes": stats.owned_peak_bytes,
        "mapped_bytes": stats.mapped_bytes,
        "compiled_nodes": stats.compiled_nodes,
        "threads": stats.threads,
    })
}

fn notes(session: &Session, load: Duration, times: &[Duration]) -> String {
    let stats = session.stats();
    let mut text = format!("load {:.2} ms", ms(load));
    let mut later: Vec<f64> = times.iter().skip(1).copied().map(ms).collect();
    if let Some(first) = times.first() {
        let _ = write!(text, ", first run {:.2} ms", ms(*first));
    }
    later.sort_by(f64::total_cmp);
    if let (Some(best), Some(median)) = (later.first(), later.get(later.len() / 2)) {
        let _ = write!(text, ", {} later runs: median {median:.3} ms, best {best:.3} ms", later.len());
    }
    let mb = |bytes: usize| bytes as f64 / 1e6;
    let _ = write!(
        text,
        "; {} threads; owned at most {:.1} MB, mapped {:.1} MB",
        stats.threads,
        mb(stats.owned_peak_bytes),
        mb(stats.mapped_bytes)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_names_of_files() {
        assert_eq!(file_stem("logits"), "logits");
        assert_eq!(file_stem("/layer.0/Add:0"), "%2Flayer.0%2FAdd%3A0");
        assert_eq!(file_stem(".."), "%2E.");
    }

    #[test]
    fn ranges() {
        let tensor = Tensor::from_slice([3], &[1f32, 2., 6.]).unwrap();
        assert_eq!(range(&tensor), Some([1., 3., 6.]));
        assert_eq!(range(&Tensor::from_bools([2], &[true, false]).unwrap()), Some([0., 0.5, 1.]));
        assert_eq!(range(&Tensor::zeros(DType::F32, [0]).unwrap()), None);
        assert_eq!(range(&Tensor::from_strings([1], &["a"]).unwrap()), None);
    }
}
