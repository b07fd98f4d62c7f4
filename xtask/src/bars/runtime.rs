//! Bars on how the runtime behaves: pipeline, replay, failure, same bits, memory, hostile models.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::core::{MODELS, need_models};
use super::{Bench, Figure};
use crate::checks::CLI;
use crate::project::{Failure, array, make_folder, read, read_json, run};

/// Mutated models of bar 9.
const N_MUTATED: &str = "100000";
/// Owned bytes and resident megabytes (of 1e6 bytes) at the first output.
const MEMORY: [(&str, f64, f64); 2] = [("resnet50", 45.0, 170.0), ("minilm", 30.0, 140.0)];

/// The trace of resnet50, and the test that needs no clock.
pub(super) fn pipeline(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    need_models(bench)?;
    bench.project.build_release(&[CLI.1])?;
    let file = bench.work.join("trace.json");
    let mut command = Command::new(bench.project.program(CLI.0));
    command.arg("trace").arg(bench.models.join("resnet50/model.onnx")).args(inputs(bench, "resnet50")?);
    run(command.args(["--threads", "2"]).arg("--out").arg(&file), "firstlight trace")?;
    let trace = read_json(&file)?;
    let compile = span(&trace, "Compile");
    let kernels = span(&trace, "Node");
    let mut figures = Vec::new();
    let ms = |us: f64| us / 1e3;
    for (what, a, b) in [
        ("resnet50: first kernel starts before the last compile ends", kernels.first_start, compile.last_end),
        ("resnet50: last compile ends before the last kernel starts", compile.last_end, kernels.last_start),
    ] {
        let value = format!("{:.2} ms, {:.2} ms", ms(a), ms(b));
        figures.push(figure(what, value, "<", a < b));
    }
    figures.push(test(bench, "firstlight-exec", "pipeline", "order of events on sim, a slow compile, no clock"));
    Ok(figures)
}

/// Allocations of replays and the time of a step.
pub(super) fn replay(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    need_models(bench)?;
    let mut figures = vec![
        test(bench, "firstlight-exec", "counting_allocator", "allocations of the 60-node graph and 1,000 adds: 0"),
        test(bench, "firstlight", "counting_allocator", "allocations of run_into and of a binding: 0"),
    ];
    let printed = example(bench, "firstlight-conformance", "counting_allocator", &folders(bench))?;
    for model in MODELS {
        let mine = printed.lines().filter(|line| word_after(line, "model") == Some(model));
        let counts: Vec<&str> = mine.filter_map(|line| word_after(line, "allocations")).collect();
        let is_met = !counts.is_empty() && counts.iter().all(|n| *n == "0");
        figures.push(figure(
            &format!("{model}: allocations of 10 replays, 1 and 2 threads"),
            counts.join(", "),
            "0",
            is_met,
        ));
    }
    let hashing = sources(&bench.project.path("crates/firstlight-exec/src"))?;
    let n = hashing.iter().map(|text| text.matches("HashMap").count() + text.matches("HashSet").count()).sum::<usize>();
    figures.push(figure("hash tables in the executor's source", n.to_string(), "0", n == 0));
    let printed = example(bench, "firstlight-exec", "chained_adds", &[])?;
    let number = |key: &str| word_after(&printed, key).and_then(|text| text.parse::<f64>().ok()).unwrap_or(f64::NAN);
    let (steps, middle) = (number("steps"), number("median_us"));
    figures.push(figure("chained adds: steps of a run", format!("{steps}"), "1000", steps == 1000.0));
    figures.push(Figure {
        what: "chained adds: time of a step, median".into(),
        value: format!("{middle:.3} us"),
        spread: format!("{:.3} to {:.3}, {} replays", number("least_us"), number("most_us"), number("replays")),
        bound: "< 0.2 us".into(),
        is_met: middle < 0.2,
    });
    Ok(figures)
}

/// Injected failures, and what sessions leave behind.
pub(super) fn failure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    need_models(bench)?;
    let mut figures = vec![test(bench, "firstlight-exec", "failure", "error, panic, cancel, deadline at every step")];
    let models = ["one-add", "silero-vad"].map(|name| bench.models.join(name).display().to_string());
    let printed = example(bench, "firstlight-conformance", "leaks", &models)?;
    for model in ["one-add", "silero-vad"] {
        let line = printed.lines().find(|line| word_after(line, "model") == Some(model)).unwrap_or_default();
        let what = format!("{model}: 1,000 sessions, after 100 and after all");
        let pair = |key: &str| -> Option<(u64, u64)> {
            let at = line.split_whitespace().position(|word| word == key)?;
            let mut numbers = line.split_whitespace().skip(at + 1).map_while(|word| word.parse().ok());
            Some((numbers.next()?, numbers.next()?))
        };
        for (key, slack) in [("threads", 0), ("descriptors", 0), ("resident_kb", 1024)] {
            let Some((first, last)) = pair(key) else {
                figures.push(figure(&what, format!("no figure for {key}"), "flat", false));
                continue;
            };
            let bound = if slack > 0 { format!("flat within {slack}") } else { "flat".to_owned() };
            figures.push(figure(&format!("{what}: {key}"), format!("{first}, {last}"), &bound, last <= first + slack));
        }
    }
    let line = printed.lines().find(|line| line.starts_with("threads 8")).unwrap_or_default();
    let (runs, wrong) = (word_after(line, "runs"), word_after(line, "wrong"));
    let value = format!("{} wrong of {}", wrong.unwrap_or("?"), runs.unwrap_or("?"));
    let is_met = runs == Some("4000") && wrong == Some("0");
    figures.push(figure("eight threads, 500 runs each, differing shapes", value, "0 wrong", is_met));
    Ok(figures)
}

/// Outputs compared byte by byte over all ways to run.
pub(super) fn same_bits(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    need_models(bench)?;
    let printed = example(bench, "firstlight-conformance", "same_bits", &folders(bench))?;
    let names = MODELS.into_iter().chain(["60-nodes"]);
    let row = |model: &str| {
        let line = printed.lines().find(|line| word_after(line, "model") == Some(model)).unwrap_or_default();
        let (runs, different) = (word_after(line, "runs"), word_after(line, "different"));
        let mut value = format!("{} of {} runs differ", different.unwrap_or("?"), runs.unwrap_or("?"));
        if let Some((_, way)) = line.split_once(" first ") {
            value += &format!("; first {way}");
        }
        let what = format!("{model}: threads 1, 2, 4; inline, pipelined, replay; passes off, on; 20 runs");
        figure(&what, value, "0 of 360", different == Some("0") && runs == Some("360"))
    };
    Ok(names.map(row).collect())
}

/// Owned and resident memory at the first output, and the memory limit.
pub(super) fn memory(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    need_models(bench)?;
    bench.project.build_release(&[CLI.1, "firstlight-peer"])?;
    let mut figures = Vec::new();
    for (model, owned_bound, resident_bound) in MEMORY {
        let (owned, mapped) = match owned_bytes(bench, model, None)? {
            Ok(figures) => figures,
            Err(why) => return Err(Failure::Broken(format!("{model}: {why}"))),
        };
        let owned_mb = owned as f64 / 1e6;
        let what = format!("{model}: owned at the first output");
        figures.push(figure(
            &what,
            format!("{owned_mb:.1} MB"),
            &format!("< {owned_bound} MB"),
            owned_mb < owned_bound,
        ));
        let file = bench.models.join(model).join("model.onnx");
        let size = std::fs::metadata(&file).map_or(0, |stat| stat.len());
        let value = format!("{:.1} MB mapped, file {:.1} MB", mapped as f64 / 1e6, size as f64 / 1e6);
        figures.push(figure(
            &format!("{model}: weights mapped, not copied"),
            value,
            "whole file",
            mapped == size && size > 0,
        ));
        for threads in ["1", "2"] {
            let resident = resident_kb(bench, model, threads)? * 1024.0 / 1e6;
            let what = format!("{model}: resident peak at the first output, threads {threads}");
            let bound = format!("< {resident_bound} MB");
            figures.push(figure(&what, format!("{resident:.1} MB"), &bound, resident < resident_bound));
        }
        let below = owned * 9 / 10;
        let (value, is_met) = match owned_bytes(bench, model, Some(below))? {
            Ok((peak, _)) => (format!("ran, {peak} owned"), false),
            Err(why) => {
                let at = why.find("memory limit of").unwrap_or(0);
                let has_figure = why.contains(&below.to_string());
                (why[at..].chars().take(110).collect(), has_figure)
            }
        };
        figures.push(figure(&format!("{model}: limit at 90%, {below} bytes"), value, "refused with a figure", is_met));
        let above = owned * 11 / 10;
        let (value, is_met) = match owned_bytes(bench, model, Some(above))? {
            Ok((peak, _)) => (format!("peak {peak}"), peak <= above),
            Err(why) => (why.chars().take(110).collect(), false),
        };
        figures.push(figure(&format!("{model}: limit at 110%, {above} bytes"), value, "runs within it", is_met));
    }
    Ok(figures)
}

/// Mutated models through the door.
pub(super) fn hostile(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    bench.project.build_release(&["firstlight-fuzz"])?;
    let mut command = Command::new(bench.project.program("firstlight-fuzz"));
    command.args(["--n", N_MUTATED]).arg("--out").arg(bench.work.join("fuzz-findings"));
    let (is_good, printed, errors) = capture(&mut command)?;
    let summary: Value = serde_json::from_str(&printed)
        .map_err(|_| Failure::Found(format!("firstlight-fuzz printed no summary: {}", tail(&errors))))?;
    let fields = summary.as_object().into_iter().flatten();
    let shown: Vec<String> = fields.filter(|(_, v)| v.is_number()).map(|(name, n)| format!("{name} {n}")).collect();
    let what = format!("{N_MUTATED} mutated models: panics, aborts, over 1 s, over 256 MiB");
    Ok(vec![figure(&what, shown.join(", "), "none", is_good)])
}

fn figure(what: &str, value: String, bound: &str, is_met: bool) -> Figure {
    Figure { what: what.to_owned(), value, spread: String::new(), bound: bound.to_owned(), is_met }
}

/// One test binary; the figure says how many tests passed.
fn test(bench: &Bench, package: &str, name: &str, what: &str) -> Figure {
    let mut command = bench.project.cargo(&["test", "--quiet", "--package", package, "--test", name]);
    let (is_met, value) = match capture(&mut command) {
        Ok((is_good, printed, errors)) => {
            let result = printed.lines().find(|line| line.starts_with("test result:"));
            let value = result.and_then(|line| line.split(';').next()).map(str::to_owned);
            (is_good, value.unwrap_or_else(|| tail(&errors)))
        }
        Err(why) => (false, why.message().to_owned()),
    };
    figure(&format!("{what} (tests/{name}.rs)"), value, "all pass", is_met)
}

/// What an example, built in release mode, prints; its exit status only repeats what it prints.
fn example(bench: &Bench, package: &str, name: &str, words: &[String]) -> Result<String, Failure> {
    let project = bench.project;
    let mut build = project.cargo(&["build", "--release", "--package", package, "--example", name]);
    run(&mut build, "cargo build")?;
    let mut command = Command::new(project.target.join("release/examples").join(name));
    let (is_good, printed, errors) = capture(command.args(words))?;
    print!("{printed}");
    if !is_good && (printed.is_empty() || !errors.is_empty()) {
        return Err(Failure::Found(format!("example {name} failed: {}", tail(&errors))));
    }
    Ok(printed)
}

fn capture(command: &mut Command) -> Result<(bool, String, String), Failure> {
    let done = command.stdin(Stdio::null()).output();
    let done = done.map_err(|e| Failure::Broken(format!("cannot start {:?}: {e}", command.get_program())))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((done.status.success(), text(&done.stdout), text(&done.stderr)))
}

fn tail(text: &str) -> String {
    text.trim().lines().last().unwrap_or("no message").to_owned()
}

fn word_after<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let mut words = line.split_whitespace();
    words.find(|word| *word == key)?;
    words.next()
}

fn folders(bench: &Bench) -> Vec<String> {
    MODELS.iter().map(|name| bench.models.join(name).display().to_string()).collect()
}

fn sources(folder: &Path) -> Result<Vec<String>, Failure> {
    let entries = std::fs::read_dir(folder).map_err(|e| Failure::Broken(format!("{}: {e}", folder.display())))?;
    let files =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|p| p.extension().is_some_and(|e| e == "rs"));
    files.map(|file| read(&file)).collect()
}

/// First start, last end and last start of a category's slices, in microseconds.
struct Span {
    first_start: f64,
    last_end: f64,
    last_start: f64,
}

fn span(trace: &Value, category: &str) -> Span {
    let mut span = Span { first_start: f64::INFINITY, last_end: f64::NAN, last_start: f64::NAN };
    for event in array(trace).iter().filter(|event| event["ph"] == "X" && event["cat"] == category) {
        let (Some(at), Some(time)) = (event["ts"].as_f64(), event["dur"].as_f64()) else { continue };
        span.first_start = span.first_start.min(at);
        span.last_end = span.last_end.max(at + time);
        span.last_start = span.last_start.max(at);
    }
    span
}

/// `--input NAME=FILE` for each input of a model's case, its files rewritten as `.npy`.
fn inputs(bench: &Bench, model: &str) -> Result<Vec<String>, Failure> {
    let case = bench.models.join(model).join("case");
    let folder = bench.work.join("inputs").join(model);
    make_folder(&folder)?;
    let mut words = Vec::new();
    for line in read(&case.join("inputs.txt"))?.lines().filter(|line| !line.is_empty()) {
        let parts: Vec<&str> = line.split('|').collect();
        let [name, dtype, dims, file] = parts[..] else {
            return Err(Failure::Broken(format!("{}: not name|dtype|dims|file: {line}", case.display())));
        };
        let raw = case.join(file);
        let bytes = std::fs::read(&raw).map_err(|e| Failure::Broken(format!("{}: {e}", raw.display())))?;
        let to = folder.join(file).with_extension("npy");
        let npy = npy(dtype, dims, &bytes).ok_or_else(|| Failure::Broken(format!("no NumPy type for {dtype}")))?;
        std::fs::write(&to, npy).map_err(|e| Failure::Broken(format!("{}: {e}", to.display())))?;
        words.extend(["--input".to_owned(), format!("{name}={}", to.display())]);
    }
    Ok(words)
}

/// An array file: magic, version 1.0, a padded header, the elements.
fn npy(dtype: &str, dims: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let kind = match dtype {
        "f32" => "<f4",
        "f16" => "<f2",
        "i64" => "<i8",
        "i32" => "<i4",
        "u8" => "|u1",
        "bool" => "|b1",
        _ => return None,
    };
    let comma = if dims.is_empty() { "" } else { "," };
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({dims}{comma}), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let length = u16::try_from(header.len()).ok()?.to_le_bytes();
    Some([b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), bytes].concat())
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_and_spans() {
        assert_eq!(word_after("model a runs 3", "runs"), Some("3"));
        assert_eq!(word_after("model a", "runs"), None);
        let slice = |cat: &str, ts: f64, dur: f64| json!({"ph": "X", "cat": cat, "ts": ts, "dur": dur});
        let trace = json!([slice("Node", 5.0, 2.0), slice("Node", 1.0, 1.0), slice("Compile", 0.0, 9.0)]);
        let span = span(&trace, "Node");
        assert_eq!((span.first_start, span.last_end, span.last_start), (1.0, 7.0, 5.0));
    }

    #[test]
    fn array_files_are_aligned() {
        for (dims, shape) in [("", "()"), ("4", "(4,)"), ("1,2", "(1,2,)")] {
            let file = npy("f32", dims, &[1, 2, 3, 4]).unwrap();
            assert_eq!(file.len() % 64, 4);
            assert!(String::from_utf8_lossy(&file).contains(&format!("'shape': {shape}")));
        }
        assert!(npy("f8", "", &[]).is_none());
    }
}
