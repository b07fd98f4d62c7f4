//! Bars on how the runtime behaves: pipeline, replay, failure, same bits, hostile models.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Bench, Figure};
use crate::checks::CLI;
use crate::fuzz::Fuzz;
use crate::project::{Failure, array, make_folder, read, read_json, run};

/// The trace of resnet50, and the test that needs no clock.
pub(super) fn pipeline(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    bench.models_of(&["resnet50"])?;
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
pub(super) fn replay(bench: &Bench, models: &[&str]) -> Result<Vec<Figure>, Failure> {
    let mut figures = vec![
        test(bench, "firstlight-exec", "counting_allocator", "allocations of the 60-node graph and 1,000 adds: 0"),
        test(bench, "firstlight", "counting_allocator", "allocations of run_into and of a binding: 0"),
    ];
    figures.extend(allocations(bench, models)?);
    let hashing = sources(&bench.project.path("crates/firstlight-exec/src"))?;
    let n = hashing.iter().map(|text| text.matches("HashMap").count() + text.matches("HashSet").count()).sum::<usize>();
    figures.push(figure("hash tables in the executor's source", n.to_string(), "0", n == 0));
    let adds = Example::build(bench, "firstlight-exec", "chained_adds")?;
    let printed = adds.run(&[])?;
    let number = |key: &str| number_after(&printed, key);
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

/// Heap allocations of each model's replays.
pub(super) fn allocations(bench: &Bench, models: &[&str]) -> Result<Vec<Figure>, Failure> {
    let models = bench.models_of(models)?;
    let counting = Example::build(bench, "firstlight-conformance", "counting_allocator")?;
    let row = |model: &str| {
        let what = format!("{model}: allocations of 10 replays, 1 and 2 threads");
        let printed = match counting.run(&[folder(bench, model)]) {
            Ok(printed) => printed,
            Err(why) => return figure(&what, why.message().chars().take(110).collect(), "0", false),
        };
        let counts: Vec<&str> = printed.lines().filter_map(|line| word_after(line, "allocations")).collect();
        let is_met = counts.len() == 2 && counts.iter().all(|n| *n == "0");
        figure(&what, counts.join(", "), "0", is_met)
    };
    Ok(models.into_iter().map(row).collect())
}

/// Injected failures, and what sessions leave behind.
pub(super) fn failure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let models = bench.models_of(&["one-add", "silero-vad"])?;
    let mut figures = vec![test(bench, "firstlight-exec", "failure", "error, panic, cancel, deadline at every step")];
    let leaks = Example::build(bench, "firstlight-conformance", "leaks")?;
    let folders: Vec<String> = models.iter().map(|model| folder(bench, model)).collect();
    let printed = leaks.run(&folders)?;
    for model in models {
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

/// Outputs compared byte by byte over all ways to run, `n_runs` runs each.
pub(super) fn same_bits(bench: &Bench, models: &[&str], n_runs: usize) -> Result<Vec<Figure>, Failure> {
    let models = bench.models_of(models)?;
    models.into_iter().map(|model| same_bits_of(bench, model, n_runs)).collect()
}

/// The same for one model, or for `60-nodes`, a graph with control flow that needs no file.
pub(super) fn same_bits_of(bench: &Bench, model: &str, n_runs: usize) -> Result<Figure, Failure> {
    let what = format!("{model}: threads 1, 2, 4; inline, pipelined, replay; passes off, on; {n_runs} runs");
    let n_all = (n_runs * 18).to_string();
    let bound = format!("0 of {n_all}");
    let given = if model == "60-nodes" { model.to_owned() } else { folder(bench, model) };
    let same = Example::build(bench, "firstlight-conformance", "same_bits")?;
    let printed = match same.run(&["--runs".into(), n_runs.to_string(), given]) {
        Ok(printed) => printed,
        Err(why) => return Ok(figure(&what, why.message().chars().take(110).collect(), &bound, false)),
    };
    let line = printed.lines().find(|line| word_after(line, "model") == Some(model)).unwrap_or_default();
    let (runs, different) = (word_after(line, "runs"), word_after(line, "different"));
    let mut value = format!("{} of {} runs differ", different.unwrap_or("?"), runs.unwrap_or("?"));
    if let Some((_, way)) = line.split_once(" first ") {
        value += &format!("; first {way}");
    }
    Ok(figure(&what, value, &bound, different == Some("0") && runs == Some(&n_all)))
}

/// Mutated models through the door: those of the generator, and of `models` where their files are small.
pub(super) fn hostile(bench: &Bench, models: &[&str], n: u64) -> Result<Vec<Figure>, Failure> {
    let models = bench.models_of(models)?;
    let folders = models.into_iter().map(|model| bench.models.join(model)).collect();
    let fuzz = Fuzz { n, models: folders, out: bench.work.join("fuzz-findings"), ..Fuzz::default() };
    let (is_good, summary) = fuzz.run(bench.project)?;
    let fields = summary.as_object().into_iter().flatten();
    let shown: Vec<String> = fields.filter(|(_, v)| v.is_number()).map(|(name, n)| format!("{name} {n}")).collect();
    let what = format!("{n} mutated models: panics, aborts, over 1 s, over 256 MiB");
    let never = array(&summary["ops_never_ran"]).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
    Ok(vec![
        figure(&what, shown.join(", "), "none", is_good),
        figure("ops of which no mutated model ran", never.clone(), "none", never.is_empty()),
    ])
}

pub(super) fn figure(what: &str, value: String, bound: &str, is_met: bool) -> Figure {
    Figure { what: what.to_owned(), value, spread: String::new(), bound: bound.to_owned(), is_met }
}

/// One test binary; the figure says how many tests passed.
fn test(bench: &Bench, package: &str, name: &str, what: &str) -> Figure {
    tests(bench, &["--package", package, "--test", name], &format!("{what} (tests/{name}.rs)"))
}

/// The tests that `cargo test` runs when given these words.
pub(super) fn tests(bench: &Bench, words: &[&str], what: &str) -> Figure {
    let (is_met, value) = match capture(bench.project.cargo(&["test", "--quiet"]).args(words)) {
        Ok((is_good, printed, errors)) => {
            let count = |word: &str| -> u64 {
                let results = printed.lines().filter(|line| line.starts_with("test result:"));
                results.filter_map(|line| word_before(line, word)?.parse::<u64>().ok()).sum()
            };
            let (passed, failed) = (count("passed;"), count("failed;"));
            let value = if passed + failed > 0 { format!("{passed} passed, {failed} failed") } else { tail(&errors) };
            (is_good && passed > 0, value)
        }
        Err(why) => (false, why.message().to_owned()),
    };
    figure(what, value, "all pass", is_met)
}

/// An example, built in release mode.
pub(super) struct Example {
    name: &'static str,
    program: PathBuf,
}

impl Example {
    pub(super) fn build(bench: &Bench, package: &str, name: &'static str) -> Result<Example, Failure> {
        let mut build = bench.project.cargo(&["build", "--release", "--package", package, "--example", name]);
        run(&mut build, "cargo build")?;
        Ok(Example { name, program: bench.project.target.join("release/examples").join(name) })
    }

    /// What it prints, shown as well; its exit status only repeats that.
    pub(super) fn run(&self, words: &[String]) -> Result<String, Failure> {
        let printed = self.run_quiet(words)?;
        print!("{printed}");
        Ok(printed)
    }

    /// What it prints.
    pub(super) fn run_quiet(&self, words: &[String]) -> Result<String, Failure> {
        let (is_good, printed, errors) = capture(Command::new(&self.program).args(words))?;
        if !is_good && (printed.is_empty() || !errors.is_empty()) {
            return Err(Failure::Found(format!("example {} failed: {}", self.name, tail(&errors))));
        }
        Ok(printed)
    }
}

pub(super) fn capture(command: &mut Command) -> Result<(bool, String, String), Failure> {
    let done = command.stdin(Stdio::null()).output();
    let done = done.map_err(|e| Failure::Broken(format!("cannot start {:?}: {e}", command.get_program())))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((done.status.success(), text(&done.stdout), text(&done.stderr)))
}

fn tail(text: &str) -> String {
    text.trim().lines().last().unwrap_or("no message").to_owned()
}

fn word_before<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == key)?;
    words.get(at.checked_sub(1)?).copied()
}

fn word_after<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let mut words = line.split_whitespace();
    words.find(|word| *word == key)?;
    words.next()
}

/// The number that follows a word; not a number where there is none.
pub(super) fn number_after(text: &str, key: &str) -> f64 {
    word_after(text, key).and_then(|word| word.parse().ok()).unwrap_or(f64::NAN)
}

pub(super) fn folder(bench: &Bench, model: &str) -> String {
    bench.models.join(model).display().to_string()
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
pub(super) fn inputs(bench: &Bench, model: &str) -> Result<Vec<String>, Failure> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_and_spans() {
        assert_eq!(word_after("model a runs 3", "runs"), Some("3"));
        assert_eq!(word_after("model a", "runs"), None);
        assert_eq!(word_before("test result: ok. 3 passed; 1 failed;", "failed;"), Some("1"));
        assert_eq!(word_before("passed;", "passed;"), None);
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
