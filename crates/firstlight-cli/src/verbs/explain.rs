//! `firstlight explain`.

use crate::args::ModelArgs;
use crate::feeds::{check_use, feeds, shapes};
use crate::near::did_you_mean;
use crate::table::{Table, count, heading, operations, short, shown, size, tail};
use crate::{Failure, print};
use clap::Args;
use firstlight::explain::{
    ExplainedEnd, ExplainedOperand, ExplainedPlace, ExplainedSegment, ExplainedStep, NoStep, RowVerdict, WhyNoStep,
};
use firstlight::{Explanation, Session};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Shows what a run of a model does, step by step, and why.
///
/// With values to run with (--random, --input) the model is run once, and the plan that it left is shown. Without, it
/// is compiled for the sizes of --dim and nothing is run: up to the end, or to the first value that only a run can tell.
///
/// Each step is told with the kernel that computes it and how that was chosen, with shapes, bytes and addresses; each
/// node without a step with the reason for that.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Show one node in detail
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Print one JSON object, with everything
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  The plan for a batch of 8, without running it:
  $ firstlight explain model.onnx --dim N=8

  The plan that a run on made-up values leaves behind:
  $ firstlight explain model.onnx --random

  One node: the kernels that there are for it, and what it reads and writes:
  $ firstlight explain model.onnx --node relu

  The graph as it is written, without fusing or folding:
  $ firstlight explain model.onnx --no-passes
";

/// An explanation, and how it came about.
#[derive(Debug)]
pub(crate) struct Explained {
    pub(crate) plan: Explanation,
    /// Whether the model was run.
    pub(crate) has_run: bool,
    /// Labels of sizes that were made up.
    pub(crate) made_up: Vec<String>,
}

/// Runs or compiles a model as the command line says; where it is only compiled, sizes that are not named are `unnamed`.
pub(crate) fn explained(session: &Session, args: &ModelArgs, unnamed: usize) -> Result<Explained, Failure> {
    let (shapes, made_up) = shapes(session, args, unnamed)?;
    if args.brings_values() {
        let feeds = feeds(session, args)?;
        session.run(feeds.iter().map(|(name, tensor)| (name, tensor)))?;
        let plan = session.explain().pop().ok_or_else(|| Failure::Failed("the run left no plan".to_owned()))?;
        return Ok(Explained { plan, has_run: true, made_up: if args.random { made_up } else { vec![] } });
    }
    let known = shapes.into_iter().map(|(name, shape)| match shape {
        Some(shape) => Ok((name, shape)),
        None => {
            let problem = "the model declares no rank for it, so nothing can be planned; give it with --input";
            Err(Failure::Failed(format!("input {name:?}: {problem}")))
        }
    });
    let known = known.collect::<Result<Vec<_>, Failure>>()?;
    Ok(Explained { plan: session.explain_for(known)?, has_run: false, made_up })
}

pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    check_use(&args.model)?;
    let session = args.model.load(&[])?;
    let explained = explained(&session, &args.model, 1)?;
    if let Some(name) = &args.node {
        return node(args, &explained.plan, name);
    }
    if args.json {
        return print::json(&as_json(args, &session, &explained));
    }
    print::data(&text(&session, &explained))
}

// Text.

fn text(session: &Session, explained: &Explained) -> String {
    let plan = &explained.plan;
    let mut out = String::new();
    let how = if explained.has_run { "as run" } else { "as compiled, nothing was run" };
    let _ = writeln!(out, "Plan for {} ({how})", inputs(plan));
    if !explained.made_up.is_empty() {
        let _ = writeln!(out, "Made up as 1: {}; --dim NAME=N sets a size", shown(&explained.made_up.join(", ")));
    }
    let mut index = 0;
    for segment in &plan.segments {
        segment_text(&mut out, segment, &mut index, plan.segments.len() > 1 || !plan.is_whole);
    }
    without_step(&mut out, &plan.without_step);
    rewrites(&mut out, plan);
    totals(&mut out, session, explained);
    out
}

pub(crate) fn inputs(plan: &Explanation) -> String {
    let inputs = plan.inputs.iter().map(|(name, dtype, shape)| format!("{name} {dtype}{shape}"));
    let inputs: Vec<String> = inputs.collect();
    if inputs.is_empty() { "no inputs".to_owned() } else { shown(&inputs.join(", ")) }
}

fn segment_text(out: &mut String, segment: &ExplainedSegment, index: &mut usize, is_one_of_many: bool) {
    let title = if is_one_of_many { format!("STEPS of segment {}", segment.index) } else { "STEPS".to_owned() };
    let after = match &segment.after {
        Some((after, key)) => format!("after segment {after}, where {} was found", key_text(key)),
        None => String::new(),
    };
    heading(out, &title, &after);
    let mut table = Table::new(&[0, 6, 7, 8]);
    table.row(["#", "node", "op", "kernel", "result", "at", "in", "out", "ops"]);
    steps(&mut table, &segment.steps, index, "");
    table.write(out);
    let _ = match &segment.end {
        ExplainedEnd::Done(_) => Ok(()),
        ExplainedEnd::Shape => writeln!(out, "  then the shape of the last result is awaited"),
        ExplainedEnd::Values(values) => {
            let values: Vec<String> = values.iter().map(|v| format!("{}{}", v.dtype, v.shape)).collect();
            writeln!(out, "  then a value is awaited: {}", values.join(", "))
        }
    };
}

fn steps(table: &mut Table, steps: &[ExplainedStep], index: &mut usize, indent: &str) {
    for step in steps {
        let result: Vec<String> =
            step.outputs.iter().map(|output| format!("{}{}", output.dtype, output.shape)).collect();
        let bound = if step.finds_shape && !result.is_empty() { "at most " } else { "" };
        let at = step.outputs.first().map(range).unwrap_or_default();
        table.row([
            index.to_string(),
            format!("{indent}{}", tail(&step.node, 40)),
            op_text(step),
            kernel_text(step),
            format!("{bound}{}", short(&result.join(", "), 40)),
            at,
            size(sum(step.inputs.iter().flatten())),
            size(sum(step.outputs.iter())),
            operations(step.operations),
        ]);
        *index += 1;
        for body in &step.bodies {
            for segment in &body.segments {
                self::steps(table, &segment.steps, index, &format!("{indent}  "));
            }
        }
    }
}

fn sum<'a>(operands: impl Iterator<Item = &'a ExplainedOperand>) -> usize {
    operands.map(|operand| operand.bytes).fold(0, usize::saturating_add)
}

/// The op, or the ops that the step stands for.
fn op_text(step: &ExplainedStep) -> String {
    if step.parts.is_empty() {
        return step.op.to_owned();
    }
    let ops: Vec<&str> = step.parts.iter().map(|(_, op)| *op).collect();
    short(&ops.join("+"), 32)
}

fn kernel_text(step: &ExplainedStep) -> String {
    let chosen = step.rows.iter().position(|row| row.verdict == RowVerdict::Chosen);
    match (chosen, step.rows.len()) {
        (Some(_), 1) => step.source.to_owned(),
        (Some(at), n) => format!("{} ({} of {n})", step.source, at + 1),
        (None, 0) => step.source.to_owned(),
        (None, n) => format!("{} (none of {n})", step.source),
    }
}

/// Why a step has the kernel that it has.
fn why_kernel(step: &ExplainedStep) -> String {
    let refused: Vec<&str> =
        step.rows.iter().filter(|row| row.verdict == RowVerdict::Refused).map(|row| row.source).collect();
    let is_chosen = step.rows.iter().any(|row| row.verdict == RowVerdict::Chosen);
    match (step.source, is_chosen, refused.is_empty()) {
        ("loop", ..) => "the body is planned for what enters it".to_owned(),
        (_, true, true) => format!("first choice of {} for these element types", count(step.rows.len(), "row")),
        (_, true, false) => {
            format!("first of {} that takes it; not: {}", count(step.rows.len(), "row"), refused.join(", "))
        }
        (_, false, true) => "no row for these element types: the plain reference computes it".to_owned(),
        (_, false, false) => format!("no row takes it (not: {}): the plain reference computes it", refused.join(", ")),
    }
}

fn key_text(key: &[i64]) -> String {
    let shown: Vec<String> = key.iter().take(12).map(i64::to_string).collect();
    format!("[{}{}]", shown.join(","), if key.len() > 12 { ",..." } else { "" })
}

/// Where an operand lies: `chunk:from..to`.
fn range(operand: &ExplainedOperand) -> String {
    place_range(&operand.place, operand.bytes)
}

fn place_range(place: &ExplainedPlace, bytes: usize) -> String {
    match place {
        ExplainedPlace::Arena { chunk, offset } => format!("{chunk}:{offset}..{}", offset.saturating_add(bytes)),
        ExplainedPlace::Grown(index) => format!("loop buffer {index}"),
        ExplainedPlace::Mapped(offset) => format!("file {offset}..{}", offset.saturating_add(bytes)),
        ExplainedPlace::Held => "constant in memory".to_owned(),
        ExplainedPlace::Fed => "fed storage".to_owned(),
    }
}

fn without_step(out: &mut String, nodes: &[NoStep]) {
    if nodes.is_empty() {
        return;
    }
    heading(out, "NO STEP", &count(nodes.len(), "node"));
    let mut table = Table::new(&[]);
    nodes.iter().for_each(|node| table.row([tail(&node.node, 60), node.op.to_owned(), why(&node.why)]));
    table.write(out);
}

fn why(why: &WhyNoStep) -> String {
    match why {
        WhyNoStep::Pass { pass, into: Some(into) } => format!("part of {into} ({pass})"),
        WhyNoStep::Pass { pass: "fold-constants", into: None } => "computed once, at load (fold-constants)".to_owned(),
        WhyNoStep::Pass { pass, into: None } => format!("taken out ({pass})"),
        WhyNoStep::View => "a view: the same bytes under another shape".to_owned(),
        WhyNoStep::Known => "known from shapes and constants".to_owned(),
        WhyNoStep::Branch => "the steps of the branch taken stand for it".to_owned(),
        WhyNoStep::Unneeded => "nothing that runs needs it".to_owned(),
        WhyNoStep::NotReached => "compiling stopped before it".to_owned(),
    }
}

fn rewrites(out: &mut String, plan: &Explanation) {
    let mut by_pass: BTreeMap<&str, usize> = BTreeMap::new();
    plan.rewrites.iter().for_each(|rewrite| *by_pass.entry(rewrite.rule).or_default() += 1);
    if by_pass.is_empty() {
        return;
    }
    heading(out, "PASSES", "");
    let mut table = Table::new(&[1]);
    by_pass.into_iter().for_each(|(pass, n)| table.row([pass.to_owned(), n.to_string(), "rewritten".to_owned()]));
    table.write(out);
}

fn totals(out: &mut String, session: &Session, explained: &Explained) {
    let plan = &explained.plan;
    heading(out, "TOTALS", "");
    let mut table = Table::new(&[]);
    let n_steps: usize = plan.segments.iter().map(|segment| segment.steps.len()).sum();
    let mut steps = format!("{} in {}", count(n_steps, "step"), count(plan.segments.len(), "segment"));
    if !plan.is_whole {
        steps.push_str(", not whole: the rest depends on values; --random runs once and shows all");
    }
    table.row(["steps".to_owned(), steps]);
    table.row(["operations".to_owned(), operations(plan.operations)]);
    let shared = format!("{} (without sharing {})", size(plan.arena_bytes), size(plan.unshared_bytes));
    table.row(["values".to_owned(), shared]);
    let owned = |step: &&ExplainedStep| {
        sum(step.outputs.iter()).saturating_add(step.scratch.as_ref().map_or(0, |(_, bytes)| *bytes))
    };
    if let Some(largest) = all_steps(plan).into_iter().max_by_key(owned) {
        let text = format!("{} for {} ({})", size(owned(&largest)), largest.node, op_text(largest));
        table.row(["largest".to_owned(), text]);
    }
    table.row([
        "weights".to_owned(),
        format!("{} mapped, {} in memory", size(plan.mapped_bytes), size(plan.held_bytes)),
    ]);
    if explained.has_run {
        table.row(["owned".to_owned(), format!("{} at most", size(session.stats().owned_peak_bytes))]);
    }
    table.write(out);
}

// One node.

fn node(args: &ExplainArgs, plan: &Explanation, name: &str) -> Result<(), Failure> {
    let all = all_steps(plan);
    let found: Vec<(usize, &ExplainedStep)> = all
        .iter()
        .enumerate()
        .filter(|(_, step)| step.node == name || step.parts.iter().any(|(part, _)| part == name))
        .map(|(i, step)| (i, *step))
        .collect();
    let silent: Vec<&NoStep> = plan.without_step.iter().filter(|node| node.node == name).collect();
    if found.is_empty() && silent.is_empty() {
        let names = all.iter().map(|step| step.node.as_str()).chain(plan.without_step.iter().map(|n| n.node.as_str()));
        let near = did_you_mean(name, names);
        return Err(Failure::BadUse(format!("the plan has no node {name:?}{near}")));
    }
    if args.json {
        let steps: Vec<Value> = found.iter().map(|(i, step)| step_json(*i, step)).collect();
        let silent: Vec<Value> = silent.iter().map(|node| no_step_json(node)).collect();
        return print::json(&json!({"node": name, "steps": steps, "without_step": silent}));
    }
    let mut out = String::new();
    for node in silent {
        let _ = writeln!(out, "{} ({}): no step, {}", shown(&node.node), node.op, shown(&why(&node.why)));
    }
    found.iter().for_each(|(i, step)| step_text(&mut out, *i, step));
    print::data(&out)
}

fn step_text(out: &mut String, index: usize, step: &ExplainedStep) {
    let _ = writeln!(out, "Step {index}: {} ({})", shown(&step.node), step.op);
    let mut table = Table::new(&[]);
    let line = |table: &mut Table, what: &str, text: String| table.row([what.to_owned(), text]);
    for (i, (part, op)) in step.parts.iter().enumerate() {
        line(&mut table, if i == 0 { "made of" } else { "" }, format!("{part} ({op})"));
    }
    line(&mut table, "kernel", format!("{}: {}", step.source, why_kernel(step)));
    for (i, row) in step.rows.iter().enumerate() {
        let verdict = match row.verdict {
            RowVerdict::Chosen => "chosen",
            RowVerdict::Refused => "does not take these shapes or attributes",
            RowVerdict::NotAsked => "not asked",
        };
        line(&mut table, if i == 0 { "rows" } else { "" }, format!("{}: {verdict}", row.source));
    }
    let operand = |operand: &ExplainedOperand| {
        format!("{}{}, {}, at {}", operand.dtype, operand.shape, size(operand.bytes), range(operand))
    };
    for (i, input) in step.inputs.iter().enumerate() {
        let text = input.as_ref().map_or("left out".to_owned(), operand);
        line(&mut table, &format!("input {i}"), text);
    }
    for (i, output) in step.outputs.iter().enumerate() {
        let bound = if step.finds_shape { "at most " } else { "" };
        line(&mut table, &format!("output {i}"), format!("{bound}{}", operand(output)));
    }
    if let Some((place, bytes)) = &step.scratch {
        line(&mut table, "scratch", format!("{}, at {}", size(*bytes), place_range(place, *bytes)));
    }
    line(&mut table, "operations", operations(step.operations));
    if !step.bodies.is_empty() {
        line(&mut table, "bodies", count(step.bodies.len(), "plan"));
    }
    table.write(out);
}

/// All steps in the order in which they are numbered.
fn all_steps(plan: &Explanation) -> Vec<&ExplainedStep> {
    let mut all = vec![];
    for step in plan.segments.iter().flat_map(|segment| &segment.steps) {
        all.push(step);
        step.bodies.iter().for_each(|body| all.extend(all_steps(body)));
    }
    all
}

// JSON.

fn as_json(args: &ExplainArgs, session: &Session, explained: &Explained) -> Value {
    let rewrites = explained.plan.rewrites.iter();
    let rewrites = rewrites.map(|r| json!({"pass": r.rule, "node": r.node, "sources": r.sources}));
    json!({
        "model": args.model.model.display().to_string(),
        "has_run": explained.has_run,
        "made_up": explained.made_up,
        "rewrites": rewrites.collect::<Vec<_>>(),
        "owned_peak_bytes": session.stats().owned_peak_bytes,
        "threads": session.stats().threads,
        "plan": plan_json(&explained.plan, &mut 0),
    })
}

fn plan_json(plan: &Explanation, index: &mut usize) -> Value {
    let mut segments = vec![];
    for segment in &plan.segments {
        let mut steps = vec![];
        for step in &segment.steps {
            let mut value = step_json(*index, step);
            *index += 1;
            let bodies: Vec<Value> = step.bodies.iter().map(|body| plan_json(body, index)).collect();
            value["bodies"] = bodies.into();
            steps.push(value);
        }
        let (end, awaited) = match &segment.end {
            ExplainedEnd::Done(outputs) => ("done", outputs.as_slice()),
            ExplainedEnd::Shape => ("shape", &[][..]),
            ExplainedEnd::Values(values) => ("values", values.as_slice()),
        };
        let after = segment.after.as_ref().map(|(after, key)| json!({"segment": after, "key": key}));
        let operands: Vec<Value> = awaited.iter().map(operand_json).collect();
        segments.push(json!({
            "index": segment.index, "after": after, "steps": steps, "end": {"kind": end, "operands": operands},
        }));
    }
    let inputs = plan.inputs.iter().map(|(name, dtype, shape)| {
        let shape: &[usize] = shape;
        json!({"name": name, "dtype": dtype.name(), "shape": shape})
    });
    json!({
        "inputs": inputs.collect::<Vec<_>>(),
        "segments": segments,
        "without_step": plan.without_step.iter().map(no_step_json).collect::<Vec<_>>(),
        "is_whole": plan.is_whole,
        "arena_bytes": plan.arena_bytes,
        "unshared_bytes": plan.unshared_bytes,
        "mapped_bytes": plan.mapped_bytes,
        "held_bytes": plan.held_bytes,
        "operations": plan.operations,
    })
}

fn step_json(index: usize, step: &ExplainedStep) -> Value {
    let parts = step.parts.iter().map(|(node, op)| json!({"node": node, "op": op}));
    let rows = step.rows.iter().map(|row| {
        let verdict = match row.verdict {
            RowVerdict::Chosen => "chosen",
            RowVerdict::Refused => "refused",
            RowVerdict::NotAsked => "not asked",
        };
        json!({"source": row.source, "verdict": verdict})
    });
    let scratch = step.scratch.as_ref().map(|(place, bytes)| json!({"place": place_json(place), "bytes": bytes}));
    json!({
        "index": index,
        "node": step.node,
        "op": step.op,
        "parts": parts.collect::<Vec<_>>(),
        "kernel": step.source,
        "why": why_kernel(step),
        "rows": rows.collect::<Vec<_>>(),
        "inputs": step.inputs.iter().map(|input| input.as_ref().map(operand_json)).collect::<Vec<_>>(),
        "outputs": step.outputs.iter().map(operand_json).collect::<Vec<_>>(),
        "finds_shape": step.finds_shape,
        "scratch": scratch,
        "operations": step.operations,
    })
}

fn operand_json(operand: &ExplainedOperand) -> Value {
    let shape: &[usize] = &operand.shape;
    json!({
        "dtype": operand.dtype.name(), "shape": shape, "layout": "dense", "bytes": operand.bytes,
        "place": place_json(&operand.place),
    })
}

fn place_json(place: &ExplainedPlace) -> Value {
    match place {
        ExplainedPlace::Arena { chunk, offset } => json!({"kind": "arena", "chunk": chunk, "offset": offset}),
        ExplainedPlace::Grown(index) => json!({"kind": "loop", "buffer": index}),
        ExplainedPlace::Mapped(offset) => json!({"kind": "mapped", "offset": offset}),
        ExplainedPlace::Held => json!({"kind": "held"}),
        ExplainedPlace::Fed => json!({"kind": "fed"}),
    }
}

fn no_step_json(node: &NoStep) -> Value {
    let (kind, pass, into) = match &node.why {
        WhyNoStep::Pass { pass, into } => ("pass", Some(pass), into.as_ref()),
        WhyNoStep::View => ("view", None, None),
        WhyNoStep::Known => ("known", None, None),
        WhyNoStep::Branch => ("branch", None, None),
        WhyNoStep::Unneeded => ("unneeded", None, None),
        WhyNoStep::NotReached => ("not reached", None, None),
    };
    json!({"node": node.node, "op": node.op, "why": kind, "pass": pass, "into": into})
}
