//! Project tasks: `cargo xtask VERB`. See `USAGE` for the verbs.
#![forbid(unsafe_code)]

mod args;
mod bars;
mod checks;
mod fuzz;
mod project;
mod python;
mod readme;
mod tidy;
mod validate;

use std::process::ExitCode;

use args::Args;
use project::{Failure, Project};

const USAGE: &str = "\
cargo xtask VERB

  validate [--only STAGE,...]      everything that CI runs; stages: fmt clippy docs test fault tidy python build
                                   checkers suite agree
  tidy [--fix]                     rooms, file sizes, unsafe modules, comments, licences, generated pages
                                   (--fix: write the counts of ARCHITECTURE.md and README.md)
  ops-page                         writes docs/ops.md from the op table
  suite [--only REGEX] [--device D] [--update-baseline]
                                   the official ONNX suite, against crates/conformance/suite/baseline.json
  agree [DIR] [--only REGEX]       agreement with onnxruntime, value by value, on one-add, silero-vad and two
                                   stand-ins; on the models of DIR (DIR/NAME/model.onnx) instead of the first two
  readme [--skip-validate] [--share-target]
                                   the two commands of README.md in a fresh clone of the commit, built from nothing:
                                   9 of 10 digits right, the demo under 100 ms; --skip-validate leaves the second out,
                                   --share-target builds into this checkout's target folder
  fuzz [--n N] [--from N] [--seed S] [--target door|references] [--models DIR]
                                   mutated models (100,000): no panic, no abort, none over 1 s or 256 MiB
  models [--only NAME,...]         the models of the bars, made in target/models (large: needs torch, set up by itself)
  bars SET [--only BAR,...] [--models DIR] [--model NAME,...] [--rounds N] [--json FILE]
                                   the measurable bars of a set (core, first-answer, tool): figure, spread, PASS or MISS
                                   (--model: only these of a bar's models)

Exit status: 0; 1 if a check failed or a bar was missed; 2 if the task itself went wrong.
Default of --models: target/models.";

fn main() -> ExitCode {
    let (code, message) = match run(Args::new(std::env::args().skip(1))) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Found(message)) => (1, message),
        Err(Failure::Broken(message)) => (2, message),
    };
    eprintln!("xtask: {message}");
    ExitCode::from(code)
}

fn run(mut args: Args) -> Result<(), Failure> {
    let asks = args.flag("--help") || args.flag("-h");
    let verb = if asks { Some("help".to_owned()) } else { args.word() };
    let verb = verb.ok_or_else(|| Failure::Broken(format!("no verb given\n\n{USAGE}")))?;
    if verb == "help" {
        println!("{USAGE}");
        return Ok(());
    }
    let project = Project::find()?;
    match verb.as_str() {
        "validate" => validate::run(&project, args),
        "tidy" => tidy::run(&project, args),
        "ops-page" => tidy::ops_page_verb(&project, args),
        "suite" => checks::suite_verb(&project, args),
        "agree" => checks::agree_verb(&project, args),
        "readme" => readme::verb(&project, args),
        "fuzz" => fuzz::verb(&project, args),
        "models" => checks::models_verb(&project, args),
        "bars" => bars::run(&project, args),
        other => Err(Failure::Broken(format!("no verb {other:?}\n\n{USAGE}"))),
    }
}
