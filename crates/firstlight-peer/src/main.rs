//! Firstlight as a peer of the side-by-side benchmark; `bench/README.md` has the protocol.
//!
//! `--set` takes `pipeline=auto|inline|on`, `map=0|1`, `passes=0|1`.
#![forbid(unsafe_code)]

mod case;
mod clock;

use case::Input;
use clock::Stamp;
use firstlight::{Binding, DType, Pipeline, Session, SessionBuilder, TensorBuf, f16};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What the benchmark asks for.
#[derive(Debug)]
struct Args {
    model: PathBuf,
    case: PathBuf,
    threads: usize,
    iters: usize,
    secs: f64,
    out: Option<PathBuf>,
    set: Vec<(String, String)>,
}

fn main() -> ExitCode {
    let main = Stamp::now();
    match measure(main) {
        Ok(line) => {
            let mut out = std::io::stdout().lock();
            let written = writeln!(out, "{line}").and_then(|()| out.flush());
            // Tearing the session down is no part of what is measured.
            std::process::exit(if written.is_ok() { 0 } else { 3 })
        }
        Err(problem) => {
            // The reader sees the exit status where it cannot see the line.
            let _ = writeln!(std::io::stdout(), "{}", json!({ "error": problem }));
            ExitCode::from(3)
        }
    }
}

fn measure(main: Stamp) -> Result<Value, String> {
    let args = Args::parse(std::env::args().skip(1))?;
    let inputs = case::list(&args.case)?;
    let session = args.builder()?.load(&args.model).map_err(|error| format!("load: {error}"))?;
    let load = Stamp::now();
    let mut binding = bind(&session, &inputs)?;
    binding.run().map_err(|error| format!("run: {error}"))?;
    let first = Stamp::now();
    let hwm_first_kb = clock::peak_resident_kb();
    if let Some(folder) = &args.out {
        write_outputs(folder, &binding)?;
    }
    let (mut wall, mut cpu) = (Vec::with_capacity(args.iters), Vec::with_capacity(args.iters));
    let begin = Stamp::now();
    for _ in 0..args.iters {
        let from = Stamp::now();
        binding.run().map_err(|error| format!("run: {error}"))?;
        let to = Stamp::now();
        wall.push(to.wall - from.wall);
        cpu.push(to.cpu - from.cpu);
        if (to.wall - begin.wall) as f64 * 1e-9 > args.secs && wall.len() >= 3 {
            break;
        }
    }
    Ok(json!({
        "main": main.wall, "load": load.wall, "first": first.wall,
        "c_main": main.cpu, "c_load": load.cpu, "c_first": first.cpu,
        "hwm_first_kb": hwm_first_kb, "hwm_kb": clock::peak_resident_kb(),
        "wall": wall, "cpu": cpu,
        "marks": { "owned_peak_bytes": session.stats().owned_peak_bytes },
    }))
}

fn bind(session: &Session, inputs: &[Input]) -> Result<Binding, String> {
    let mut binding = session.bind();
    for input in inputs {
        let bytes = binding.input_bytes(&input.name, input.dtype, &input.dims).map_err(|error| error.to_string())?;
        input.read_to(bytes)?;
    }
    Ok(binding)
}

impl Args {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
        let (mut model, mut case) = (None, None);
        let (mut threads, mut iters, mut secs, mut out, mut set) = (1, 0, 2.0, None, vec![]);
        fn number<T: std::str::FromStr>(key: &str, text: &str) -> Result<T, String> {
            text.parse().map_err(|_| format!("{key} {text:?} is not a number"))
        }
        while let Some(key) = words.next() {
            let value = words.next().ok_or_else(|| format!("{key} needs a value"))?;
            match key.as_str() {
                "--model" => model = Some(PathBuf::from(value)),
                "--case" => case = Some(PathBuf::from(value)),
                "--threads" => threads = number(&key, &value)?,
                "--iters" => iters = number(&key, &value)?,
                "--secs" => secs = number(&key, &value)?,
                "--out" => out = Some(PathBuf::from(value)),
                "--set" => {
                    let (name, value) = value.split_once('=').ok_or_else(|| format!("--set {value:?} is not K=V"))?;
                    set.push((name.to_owned(), value.to_owned()));
                }
                other => return Err(format!("unknown argument {other}")),
            }
        }
        let model = model.ok_or("--model is missing")?;
        let case = case.ok_or("--case is missing")?;
        Ok(Args { model, case, threads, iters, secs, out, set })
    }

    fn builder(&self) -> Result<SessionBuilder, String> {
        let mut builder = Session::builder().threads(self.threads);
        for (name, value) in &self.set {
            builder = match (name.as_str(), value.as_str()) {
                ("pipeline", "auto") => builder.pipeline(Pipeline::Auto),
                ("pipeline", "inline") => builder.pipeline(Pipeline::Inline),
                ("pipeline", "on") => builder.pipeline(Pipeline::On),
                ("map", "0" | "1") => builder.map(value == "1"),
                ("passes", "0" | "1") => builder.passes(value == "1"),
                _ => return Err(format!("--set {name}={value}: pipeline=auto|inline|on, map=0|1 or passes=0|1")),
            };
        }
        Ok(builder)
    }
}

/// Writes `outputs.txt` and the outputs as raw f32 files.
fn write_outputs(folder: &Path, binding: &Binding) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(fail)?;
    let mut list = String::new();
    for (i, output) in binding.outputs().iter().enumerate() {
        let bytes: Vec<u8> = as_f32(output)?.into_iter().flat_map(f32::to_le_bytes).collect();
        std::fs::write(folder.join(format!("o{i}.bin")), bytes).map_err(fail)?;
        let dims: Vec<String> = output.shape().iter().map(usize::to_string).collect();
        list.push_str(&format!("{}|o{i}.bin\n", dims.join(",")));
    }
    std::fs::write(folder.join("outputs.txt"), list).map_err(fail)
}

fn as_f32(output: &TensorBuf) -> Result<Vec<f32>, String> {
    let said = |error: firstlight::TensorError| error.to_string();
    Ok(match output.dtype() {
        DType::F32 => output.values::<f32>().map_err(said)?.to_vec(),
        DType::F64 => output.values::<f64>().map_err(said)?.iter().map(|&v| v as f32).collect(),
        DType::F16 => output.values::<f16>().map_err(said)?.iter().map(|v| v.to_f32()).collect(),
        _ => {
            let tensor = output.to_tensor().map_err(said)?;
            tensor.to_i64s().map_err(said)?.into_iter().map(|v| v as f32).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Args, String> {
        Args::parse(words.iter().map(|&word| word.to_owned()))
    }

    #[test]
    fn arguments() {
        let args = parse(&["--model", "m", "--case", "c", "--threads", "2", "--set", "map=0", "--set", "pipeline=on"]);
        let args = args.unwrap();
        assert_eq!((args.threads, args.iters, args.set.len()), (2, 0, 2));
        assert!(args.builder().is_ok());
        for bad in
            [&["--model", "m"][..], &["--model"], &["--what", "1"], &["--model", "m", "--case", "c", "--iters", "x"]]
        {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        let unknown = parse(&["--model", "m", "--case", "c", "--set", "speed=11"]).unwrap();
        assert!(unknown.builder().unwrap_err().contains("speed=11"));
    }
}
