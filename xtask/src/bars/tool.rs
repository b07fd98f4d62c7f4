//! The bars of the program that people pick up.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Bar, Bench, Figure, models};
use crate::checks::CLI;
use crate::project::{Failure, array, make_folder, read, run};
use crate::readme::{BOUND, Readme};

pub(super) const BARS: &[Bar] = &[
    Bar { name: "1", what: "the demo of README.md, from a fresh clone", is_long: false, measure: demo },
    models::AGREEMENT,
    models::SAME_BITS,
    models::REPLAY,
    models::MEMORY,
    models::HOSTILE,
    Bar { name: "3", what: "`compare` names the planted fault", is_long: false, measure: planted_fault },
    models::EXAMPLES,
    models::SPEED,
];

/// Without the second command: `cargo xtask readme` runs both.
fn demo(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let demo = Readme { share_target: false, skip_validate: true }.run(bench.project)?;
    let right = Figure {
        what: "digits read right".to_owned(),
        value: format!("{} of {}", demo.n_right, demo.n_shown),
        spread: String::new(),
        bound: "9 of 10".to_owned(),
        is_met: demo.is_right(),
    };
    let time = Figure {
        what: "process of the demo, best of 5".to_owned(),
        value: format!("{:.1} ms", demo.best().as_secs_f64() * 1e3),
        spread: demo.spread(),
        bound: format!("under {} ms", BOUND.as_millis()),
        is_met: demo.best() < BOUND,
    };
    Ok(vec![right, time])
}

/// Models, and the size of the fault that is planted in each.
const FAULTS: [(&str, f64); 3] = [("resnet50", 64.0), ("minilm", 16.0), ("silero-vad", 8.0)];

/// Builds the program with a wrong kernel, that of the dearest op of each model, and asks `compare` for the node.
fn planted_fault(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    // In a folder of its own, so that no other check runs the program that this leaves.
    let target = bench.work.join("planted");
    let words = ["build", "--release", "--package", CLI.1, "--features", "planted-fault", "--target-dir"];
    run(bench.project.cargo(&words).arg(&target), "cargo build")?;
    let program = target.join("release").join(CLI.0);
    FAULTS.iter().map(|(model, size)| planted_in(bench, &program, model, *size)).collect()
}

fn planted_in(bench: &Bench, program: &Path, model: &str, size: f64) -> Result<Figure, Failure> {
    let folder = bench.models.join(model);
    let inputs = as_npy(&folder.join("case"), &bench.work.join("planted-inputs").join(model))?;
    let ask = |verb: &str, fault: &str| -> Result<(Option<i32>, Value), Failure> {
        let mut command = Command::new(program);
        command.arg(verb).arg(folder.join("model.onnx")).arg("--json").env_remove("FIRSTLIGHT_FAULT");
        inputs.iter().for_each(|input| _ = command.arg("--input").arg(input));
        if !fault.is_empty() {
            command.env("FIRSTLIGHT_FAULT", fault);
        }
        let done = command.stdin(Stdio::null()).output();
        let done = done.map_err(|e| Failure::Broken(format!("{}: {e}", program.display())))?;
        let said = String::from_utf8_lossy(&done.stderr);
        let value = serde_json::from_slice(&done.stdout);
        Ok((done.status.code(), value.map_err(|_| Failure::Broken(format!("{model}: {verb}: {}", said.trim())))?))
    };
    let (_, plan) = ask("explain", "")?;
    let steps: Vec<&Value> =
        array(&plan["plan"]["segments"]).iter().flat_map(|segment| array(&segment["steps"])).collect();
    let op = dearest_op(&steps).ok_or_else(|| Failure::Broken(format!("{model}: no step")))?;
    let expected = steps.iter().find(|step| step["op"] == op).map(|step| &step["node"]).cloned().unwrap_or_default();
    let (sound, _) = ask("compare", "")?;
    let (code, report) = ask("compare", &format!("{op}+{size}"))?;
    let first = &report["first"];
    let found = &first["difference"];
    let number = |key: &str| found[key].as_f64().unwrap_or(f64::INFINITY);
    let is_size = (number("max_abs") - size).abs() <= 1e-3 * size + 1e-4 * number("scale");
    let is_named = first["node"] == expected && first["op"] == op && found["beyond"] == 1;
    Ok(Figure {
        what: format!("{model}, every {op} wrong by {size}"),
        value: format!("{}, {} by {:.4}", first["node"], first["op"].as_str().unwrap_or("?"), number("max_abs")),
        spread: match sound {
            Some(0) => "without the fault: equal".to_owned(),
            code => format!("without the fault: exit code {code:?}"),
        },
        bound: format!("{expected} by {size}"),
        is_met: sound == Some(0) && code == Some(1) && is_named && is_size,
    })
}

/// The op whose kernels do most of the arithmetic.
fn dearest_op(steps: &[&Value]) -> Option<String> {
    let mut ops: BTreeMap<&str, u64> = BTreeMap::new();
    for step in steps.iter().filter(|step| step["source"] != "loop" && step["source"] != "reference") {
        *ops.entry(step["op"].as_str()?).or_default() += step["operations"].as_u64().unwrap_or(0);
    }
    ops.into_iter().max_by_key(|(_, operations)| *operations).map(|(op, _)| op.to_owned())
}

/// The inputs of a case (`inputs.txt`: name|type|dims|file a line) as `NAME=FILE.npy`.
fn as_npy(case: &Path, to: &Path) -> Result<Vec<String>, Failure> {
    make_folder(to)?;
    let broken = |path: &PathBuf, e: std::io::Error| Failure::Broken(format!("{}: {e}", path.display()));
    let mut inputs = Vec::new();
    for (i, line) in read(&case.join("inputs.txt"))?.lines().enumerate() {
        let [name, dtype, dims, file] = line.split('|').collect::<Vec<_>>()[..] else {
            return Err(Failure::Broken(format!("{}: cannot read {line:?}", case.display())));
        };
        let descr = match dtype {
            "f32" => "<f4",
            "i64" => "<i8",
            "i32" => "<i4",
            other => return Err(Failure::Broken(format!("{}: elements of {other}", case.display()))),
        };
        let dims: String = dims.split(',').filter(|dim| !dim.is_empty()).map(|dim| format!("{dim},")).collect();
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}");
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{header:117}\n").as_bytes());
        let from = case.join(file);
        bytes.extend(std::fs::read(&from).map_err(|e| broken(&from, e))?);
        let path = to.join(format!("{i}.npy"));
        std::fs::write(&path, bytes).map_err(|e| broken(&path, e))?;
        inputs.push(format!("{name}={}", path.display()));
    }
    Ok(inputs)
}
