//! `firstlight-conformance [--device cpu|sim|sim-deferred] [--threads N] PLAN`: answers `suite/run_suite.py`.
//! `firstlight-conformance --ops`: the ONNX ops that are imported, one a line, for `suite/scope.py`.
#![forbid(unsafe_code)]

use firstlight_conformance::device::DeviceKind;
use firstlight_conformance::suite;
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    match answer(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("firstlight-conformance: {problem}");
            ExitCode::from(2)
        }
    }
}

fn answer(mut words: impl Iterator<Item = String>) -> Result<(), String> {
    let (mut device, mut threads, mut plan) = (DeviceKind::Cpu, 2, None);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--device" => {
                let name = value()?;
                device = DeviceKind::from_name(&name).ok_or_else(|| format!("no device {name:?}"))?;
            }
            "--threads" => {
                let number = value()?;
                threads = number.parse().map_err(|_| format!("--threads {number:?} is not a number"))?;
            }
            "--ops" => return print_ops(&mut std::io::stdout().lock()).map_err(|error| error.to_string()),
            _ if word.starts_with('-') || plan.is_some() => return Err(format!("unknown argument {word}")),
            _ => plan = Some(word),
        }
    }
    let plan = plan.ok_or("usage: firstlight-conformance [--device D] [--threads N] PLAN, or --ops")?;
    let text = std::fs::read_to_string(&plan).map_err(|error| format!("{plan}: {error}"))?;
    let runtime = device.runtime(threads)?;
    suite::answer(&text, &runtime, &mut std::io::stdout().lock()).map_err(|error| error.to_string())
}

/// Op by op, the name alone in the standard domain and `domain.name` in others.
fn print_ops(out: &mut impl Write) -> io::Result<()> {
    for op in firstlight_onnx::imported_ops() {
        match op.domain {
            "ai.onnx" => writeln!(out, "{}", op.name)?,
            domain => writeln!(out, "{domain}.{}", op.name)?,
        }
    }
    Ok(())
}
