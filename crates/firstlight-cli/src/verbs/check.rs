//! `firstlight check`.

use crate::args::ModelArgs;
use crate::feeds::check_use;
use crate::table::{Table, count, heading, shown, size};
use crate::verbs::explain::{Explained, explained, inputs};
use crate::{Failure, print};
use anstyle::Style;
use clap::Args;
use firstlight::explain::ExplainedStep;
use firstlight::{Check, Error, ErrorKind, Explanation, LoadError, Session, UnsupportedOp};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Says whether a model can run here, and everything that stands in its way.
///
/// All of it at once: ops and element types that are not supported, external data that is missing, a graph that
/// contradicts itself. A model that loads is then compiled for the sizes of --dim (made up where none is given) and
/// nothing is run, to tell which nodes no kernel takes, so that the slow reference computes them, and how much memory a run needs.
/// With values to run with (--random, --input) it is run once as well.
///
/// Exit codes: 0 the model runs, 1 it does not, 2 bad use.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  Can it run, and on what?
  $ firstlight check model.onnx

  With another size, within a memory limit, and run once to be sure:
  $ firstlight check model.onnx --dim N=64 --memory-limit 256M --random

  Everything that stands in the way of a model, for another program:
  $ firstlight check unsupported.onnx --json  # exit code 1
";

/// What was found.
#[derive(Debug)]
struct Found {
    check: Check,
    /// What compiling or running it showed; `None` where it was not reached.
    explained: Option<Explained>,
    /// Why it could not be compiled or run.
    failure: Option<String>,
}

/// Sizes tried for dimensions that the command line does not name: some models need more than one of everything.
const UNNAMED: [usize; 5] = [1, 16, 64, 256, 512];

/// Labels of made-up sizes with the size.
fn made_up_as(labels: Vec<String>, size: usize) -> Vec<String> {
    labels.into_iter().map(|label| format!("{label}={size}")).collect()
}

pub(crate) fn check(args: &CheckArgs) -> Result<(), Failure> {
    check_use(&args.model)?;
    let check = args.model.builder(&[])?.check(&args.model.model)?;
    let mut found = Found { check, explained: None, failure: None };
    if let Some(session) = &found.check.session {
        for unnamed in UNNAMED {
            match explained(session, &args.model, unnamed) {
                Ok(explained) => {
                    found.explained = Some(Explained { made_up: made_up_as(explained.made_up, unnamed), ..explained });
                    found.failure = None;
                    break;
                }
                // The first failure is the one to tell: it is about the sizes that were asked for.
                Err(Failure::Failed(why)) => found.failure = found.failure.or(Some(why)),
                Err(bad) => return Err(bad),
            }
            if args.model.brings_values() {
                break;
            }
        }
    } else if let Some(Error::Load(LoadError::Io { .. })) = found.check.problems.first() {
        // There is no model to say anything about.
        return Err(Failure::Failed(found.check.problems[0].to_string()));
    }
    let runs = found.explained.is_some();
    match args.json {
        true => print::json(&as_json(args, &found))?,
        false => print::data(&text(args, &found))?,
    }
    if runs { Ok(()) } else { Err(Failure::Told) }
}

// Text.

fn text(args: &CheckArgs, found: &Found) -> String {
    let mut out = String::new();
    let name = shown(&args.model.model.display().to_string());
    let verdict = |out: &mut String, style: Style, text: &str| _ = writeln!(out, "{name}: {style}{text}{style:#}");
    match &found.explained {
        Some(explained) if explained.has_run => verdict(&mut out, print::GOOD, "runs here; it was run once"),
        Some(_) => verdict(&mut out, print::GOOD, "runs here"),
        None => verdict(&mut out, print::BAD, "does not run here"),
    }
    problems(&mut out, &found.check);
    if let Some(why) = &found.failure {
        heading(&mut out, "PROBLEM", "the model loads, but cannot be run on these inputs");
        let _ = writeln!(out, "  {}", shown(why));
        out.push_str("  Name sizes that the model is meant for with --dim NAME=N.\n");
    }
    if let (Some(explained), Some(session)) = (&found.explained, &found.check.session) {
        plan(&mut out, session, explained);
    }
    out
}

fn problems(out: &mut String, check: &Check) {
    let (ops, others) = sorted(check);
    if !ops.is_empty() {
        heading(out, "UNSUPPORTED OPS", &count(ops.len(), "op"));
        let mut table = Table::new(&[2]);
        for op in &ops {
            let version = match (op.version, op.since) {
                (None, _) => "its domain is not imported".to_owned(),
                (Some(version), None) => format!("opset {version}"),
                (Some(version), Some(since)) => format!("opset {version}; supported from {since} on"),
            };
            let more = if op.count > op.nodes.len() { ", ..." } else { "" };
            let nodes = format!("{}{more}", op.nodes.join(", "));
            table.row([format!("{}.{}", op.domain, op.op), version, count(op.count, "node"), nodes]);
        }
        table.write(out);
    }
    if !others.is_empty() {
        heading(out, "PROBLEMS", "");
        for problem in &others {
            let _ = writeln!(out, "  {}", shown(&problem.message));
            let more = problem.tensors.len().saturating_sub(3);
            if more > 0 {
                let _ = writeln!(out, "    and {} like it", count(more + 2, "tensor"));
            }
        }
    }
    if check.n_unsure > 0 {
        let _ = writeln!(out, "\n{} behind these could not be looked at.", count(check.n_unsure, "node"));
    }
}

fn plan(out: &mut String, session: &Session, explained: &Explained) {
    let plan = &explained.plan;
    heading(out, "FOR", &inputs(plan));
    let mut table = Table::new(&[]);
    if !explained.made_up.is_empty() {
        table.row(["sizes".to_owned(), format!("made up: {}; --dim NAME=N sets one", explained.made_up.join(", "))]);
    }
    let steps = steps(plan);
    let slow = slow(&steps);
    let n_slow: usize = slow.values().map(Vec::len).sum();
    let mut kernels = format!("{} by kernels, {n_slow} by the slow reference", steps.len() - n_slow);
    if !plan.is_whole {
        kernels.push_str("; the rest depends on values, --random runs once and tells");
    } else if steps.iter().any(|step| step.source == "loop" && step.bodies.is_empty()) {
        kernels.push_str("; bodies of loops are planned when they run, --random runs once and tells");
    }
    table.row(["steps".to_owned(), kernels]);
    let weights = format!("{} mapped, {} in memory", size(plan.mapped_bytes), size(plan.held_bytes));
    table.row(["weights".to_owned(), weights]);
    table.row(["values".to_owned(), format!("{} in memory", size(plan.arena_bytes))]);
    if explained.has_run {
        table.row(["owned".to_owned(), format!("{} at most", size(session.stats().owned_peak_bytes))]);
    }
    table.write(out);
    if !slow.is_empty() {
        heading(out, "SLOW", "no kernel takes these; the plain reference computes them");
        let mut table = Table::new(&[1]);
        for (op, nodes) in &slow {
            let more = if nodes.len() > 5 { ", ..." } else { "" };
            let names: Vec<&str> = nodes.iter().take(5).copied().collect();
            let names = format!("{}{more}", names.join(", "));
            table.styled(print::WARN, [op.clone(), count(nodes.len(), "node"), names]);
        }
        table.write(out);
    }
    if !session.warnings().is_empty() {
        heading(out, "WARNINGS", "");
        session.warnings().iter().for_each(|warning| _ = writeln!(out, "  {}", shown(warning)));
    }
}

/// All steps, those of loops' bodies included.
fn steps(plan: &Explanation) -> Vec<&ExplainedStep> {
    let mut all = vec![];
    for step in plan.segments.iter().flat_map(|segment| &segment.steps) {
        all.push(step);
        step.bodies.iter().for_each(|body| all.extend(steps(body)));
    }
    all
}

/// Nodes that the reference computes, by op and element types.
fn slow<'a>(steps: &[&'a ExplainedStep]) -> BTreeMap<String, Vec<&'a str>> {
    let mut slow: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.source == "reference") {
        let types = step.inputs.iter().map(|input| input.as_ref().map_or("_", |input| input.dtype.name()));
        let op = format!("{}({})", step.op, types.collect::<Vec<_>>().join(", "));
        slow.entry(op).or_default().push(&step.node);
    }
    slow
}

// Problems.

/// A problem that is not an unsupported op; tensors that miss the same thing are told as one.
#[derive(Debug)]
struct Problem {
    kind: &'static str,
    message: String,
    node: Option<String>,
    op: Option<String>,
    /// Of external data.
    tensors: Vec<String>,
}

/// Unsupported ops, and all other problems.
fn sorted(check: &Check) -> (Vec<&UnsupportedOp>, Vec<Problem>) {
    let (mut ops, mut others): (Vec<&UnsupportedOp>, Vec<Problem>) = (vec![], vec![]);
    let mut by_file: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for error in &check.problems {
        let mut tensors = vec![];
        match error {
            Error::Load(LoadError::Unsupported(list)) => {
                ops.extend(list);
                continue;
            }
            Error::Load(LoadError::External { tensor, file, problem }) => {
                if let Some(&at) = by_file.get(&(file.as_str(), problem.as_str())) {
                    others[at].tensors.push(tensor.clone());
                    continue;
                }
                by_file.insert((file, problem), others.len());
                tensors.push(tensor.clone());
            }
            _ => {}
        }
        others.push(Problem {
            kind: kind(error),
            message: error.to_string(),
            node: error.node().map(str::to_owned),
            op: error.op().map(str::to_owned),
            tensors,
        });
    }
    (ops, others)
}

fn kind(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::File => "file",
        ErrorKind::Malformed => "malformed",
        ErrorKind::InvalidModel => match error {
            Error::Load(LoadError::External { .. }) => "external data",
            _ => "invalid model",
        },
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Limit => "limit",
        ErrorKind::Memory => "memory",
        _ => "other",
    }
}

// JSON.

fn as_json(args: &CheckArgs, found: &Found) -> Value {
    let (ops, others) = sorted(&found.check);
    let ops = ops.iter().map(|op| {
        json!({
            "domain": op.domain, "op": op.op, "version": op.version, "supported_since": op.since, "count": op.count,
            "nodes": op.nodes,
        })
    });
    let mut problems: Vec<Value> = others
        .iter()
        .map(|p| json!({"kind": p.kind, "message": p.message, "node": p.node, "op": p.op, "tensors": p.tensors}))
        .collect();
    problems.extend(
        found.failure.iter().map(|why| json!({"kind": "run", "message": why, "node": null, "op": null, "tensors": []})),
    );
    let plan = found.explained.as_ref().map(|explained| {
        let plan = &explained.plan;
        let steps = steps(plan);
        let slow = slow(&steps);
        let inputs = plan.inputs.iter().map(|(name, dtype, shape)| {
            let shape: &[usize] = shape;
            json!({"name": name, "dtype": dtype.name(), "shape": shape})
        });
        json!({
            "inputs": inputs.collect::<Vec<_>>(),
            "made_up": explained.made_up,
            "has_run": explained.has_run,
            "is_whole": plan.is_whole,
            "steps": steps.len(),
            "reference": slow.iter().map(|(op, nodes)| json!({"op": op, "nodes": nodes})).collect::<Vec<_>>(),
            "mapped_bytes": plan.mapped_bytes,
            "held_bytes": plan.held_bytes,
            "arena_bytes": plan.arena_bytes,
        })
    });
    let session = found.check.session.as_ref();
    json!({
        "model": args.model.model.display().to_string(),
        "runs": found.explained.is_some(),
        "unsupported_ops": ops.collect::<Vec<_>>(),
        "problems": problems,
        "unsure_nodes": found.check.n_unsure,
        "warnings": session.map(|session| session.warnings()).unwrap_or_default(),
        "owned_peak_bytes": session.map(|session| session.stats().owned_peak_bytes),
        "plan": plan,
    })
}
