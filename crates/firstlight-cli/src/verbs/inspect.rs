//! `firstlight inspect`.

use crate::table::{Table, count, heading, short, shown, size, tail};
use crate::{Failure, print};
use anstyle::Style;
use clap::Args;
use firstlight::model::{InspectedOp, InspectedValue, InspectedWeight, Inspection, OpSupport, WeightPlace};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Shows what a model file holds.
///
/// Only the file's structure is read: no op need be supported, no external data need be there, and weights are not
/// touched. `check` says whether the model can run.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    /// The ONNX file
    model: PathBuf,
    /// How many weights to list, largest first; 0 lists all
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print one JSON object, with everything
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  Inputs, outputs, symbols, ops and the largest weights:
  $ firstlight inspect model.onnx

  All weights, for another program:
  $ firstlight inspect model.onnx --json > model.json
";

/// Subgraphs that are listed.
const MAX_SUBGRAPHS: usize = 12;

pub(crate) fn inspect(args: &InspectArgs) -> Result<(), Failure> {
    let told = firstlight::inspect(&args.model).map_err(|error| Failure::of_model(&args.model, error))?;
    if args.json {
        return print::json(&as_json(args, &told));
    }
    print::data(&text(args, &told))
}

fn text(args: &InspectArgs, told: &Inspection) -> String {
    let mut out = String::new();
    head(&mut out, args, told);
    for (title, values) in [("INPUTS", &told.inputs), ("OUTPUTS", &told.outputs)] {
        // Old files list every weight as an input too.
        let (defaults, needed): (Vec<&InspectedValue>, Vec<_>) = values.iter().partition(|value| value.has_default);
        heading(&mut out, title, "");
        let mut table = Table::new(&[]);
        needed.iter().for_each(|value| table.row([&*value.name, &value.ty]));
        table.write(&mut out);
        if !defaults.is_empty() {
            let names: Vec<&str> = defaults.iter().take(3).map(|value| value.name.as_str()).collect();
            let more = if defaults.len() > 3 { ", ..." } else { "" };
            let _ = writeln!(out, "  and {} with a default: {}{more}", defaults.len(), shown(&names.join(", ")));
        }
    }
    symbols(&mut out, told);
    ops(&mut out, told);
    functions_and_subgraphs(&mut out, told);
    weights(&mut out, args, told);
    out
}

fn head(out: &mut String, args: &InspectArgs, told: &Inspection) {
    let meta = &told.metadata;
    let mut table = Table::new(&[]);
    let (name, version) = &meta.producer;
    table.row(["file".to_owned(), format!("{}, {}", args.model.display(), size(told.file_bytes))]);
    if !name.is_empty() {
        table.row(["made by".to_owned(), format!("{name} {version}")]);
    }
    let opsets = meta.opsets.iter().map(|(domain, version)| match domain.as_str() {
        "" | "ai.onnx" => format!("opset {version}"),
        other => format!("{other} {version}"),
    });
    let opsets: Vec<String> = opsets.collect();
    table.row(["format".to_owned(), format!("IR version {}, {}", meta.ir_version, opsets.join(", "))]);
    if meta.model_version != 0 || !meta.domain.is_empty() {
        table.row(["model".to_owned(), format!("{} version {}", meta.domain, meta.model_version)]);
    }
    let inside: usize = told.subgraphs.iter().map(|graph| graph.nodes).sum();
    let more = match told.subgraphs.len() {
        0 => String::new(),
        n => format!(", and {} in {}", count(inside, "node"), count(n, "subgraph")),
    };
    table.row(["graph".to_owned(), format!("{}: {}{more}", told.graph, count(told.nodes, "node"))]);
    for (key, value) in &meta.properties {
        table.row(["property".to_owned(), format!("{key} = {}", short(value, 80))]);
    }
    table.write(out);
}

fn symbols(out: &mut String, told: &Inspection) {
    if told.symbols.is_empty() {
        return;
    }
    heading(out, "SYMBOLS", "sizes that inputs decide; --dim NAME=N sets one");
    let mut table = Table::new(&[]);
    for symbol in &told.symbols {
        let place = |is_input: bool, value: &str, axis: usize| {
            format!("{} {value} axis {axis}", if is_input { "input" } else { "output" })
        };
        let mut places: Vec<String> =
            symbol.places.iter().map(|at| place(at.is_input, &at.value, at.axis)).take(6).collect();
        match symbol.places.len() - places.len() {
            0 => {}
            more => places.push(format!("{more} more")),
        }
        if symbol.inner > 0 {
            places.push(count(symbol.inner, "value") + " inside");
        }
        table.row([symbol.name.clone(), places.join(", ")]);
    }
    table.write(out);
}

fn ops(out: &mut String, told: &Inspection) {
    let total = told.ops.iter().map(|op| op.count).sum();
    heading(out, "OPS", &count(total, "node"));
    let mut table = Table::new(&[1]);
    for op in &told.ops {
        let mut note = match op.support {
            OpSupport::Supported => String::new(),
            OpSupport::Function => "a function of the file".to_owned(),
            OpSupport::Unsupported => "not supported".to_owned(),
        };
        if op.support == OpSupport::Unsupported && op.version.is_none() {
            note.push_str(", and the model does not import its domain");
        }
        let style = if op.support == OpSupport::Unsupported { print::BAD } else { Style::new() };
        table.styled(style, [op_name(op), op.count.to_string(), note]);
    }
    table.write(out);
}

fn op_name(op: &InspectedOp) -> String {
    if op.domain == "ai.onnx" { op.name.clone() } else { format!("{}.{}", op.domain, op.name) }
}

fn functions_and_subgraphs(out: &mut String, told: &Inspection) {
    if !told.functions.is_empty() {
        heading(out, "FUNCTIONS", "");
        let mut table = Table::new(&[]);
        for function in &told.functions {
            let overload = if function.overload.is_empty() { "" } else { ":" };
            let name = format!("{}.{}{overload}{}", function.domain, function.name, function.overload);
            let takes = format!("({}) -> ({})", function.inputs.join(", "), function.outputs.join(", "));
            let calls = format!("{}, {}", count(function.nodes, "node"), count(function.calls, "call"));
            table.row([name, short(&takes, 60), calls]);
        }
        table.write(out);
    }
    if !told.subgraphs.is_empty() {
        heading(out, "SUBGRAPHS", "");
        let mut table = Table::new(&[]);
        for graph in told.subgraphs.iter().take(MAX_SUBGRAPHS) {
            let of = format!("{} of {} ({})", graph.attribute, tail(&graph.node, 60), graph.op);
            table.row([of, count(graph.nodes, "node")]);
        }
        table.write(out);
        match told.subgraphs.len().saturating_sub(MAX_SUBGRAPHS) {
            0 => {}
            more => _ = writeln!(out, "  and {more} more; --json lists all"),
        }
    }
}

fn weights(out: &mut String, args: &InspectArgs, told: &Inspection) {
    let total = told.weights.iter().map(|weight| weight.bytes).fold(0, usize::saturating_add);
    heading(out, "WEIGHTS", &format!("{}, {}", count(told.weights.len(), "tensor"), size(total)));
    if told.weights.is_empty() {
        return;
    }
    let mut sums = Table::new(&[1, 2]);
    for (name, (n, bytes)) in sums_by(&told.weights, dtype_name) {
        sums.row([name, n.to_string(), size(bytes)]);
    }
    for (name, (n, bytes)) in sums_by(&told.weights, |weight| place_name(&weight.place)) {
        sums.row([name, n.to_string(), size(bytes)]);
    }
    sums.write(out);
    out.push('\n');
    let mut table = Table::new(&[2]);
    let n_listed = if args.top == 0 { usize::MAX } else { args.top };
    for weight in told.weights.iter().take(n_listed) {
        let ty = format!("{}{}", dtype_name(weight), dims(&weight.dims));
        table.row([tail(&weight.name, 60), ty, size(weight.bytes), place(&weight.place)]);
    }
    table.write(out);
    match told.weights.len().saturating_sub(n_listed) {
        0 => {}
        more => _ = writeln!(out, "  and {more} more; --top 0 lists all"),
    }
}

fn sums_by(weights: &[InspectedWeight], key: impl Fn(&InspectedWeight) -> String) -> BTreeMap<String, (usize, usize)> {
    let mut sums: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for weight in weights {
        let (n, bytes) = sums.entry(key(weight)).or_default();
        (*n, *bytes) = (*n + 1, bytes.saturating_add(weight.bytes));
    }
    sums
}

fn dtype_name(weight: &InspectedWeight) -> String {
    weight.dtype.map_or("unknown type".to_owned(), |dtype| dtype.to_string())
}

fn dims(dims: &[i64]) -> String {
    let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("[{}]", dims.join(","))
}

/// A kind of place, for sums.
fn place_name(place: &WeightPlace) -> String {
    match place {
        WeightPlace::Inline { aligned: true, .. } => "in the file".to_owned(),
        WeightPlace::Inline { aligned: false, .. } => "in the file, unaligned".to_owned(),
        WeightPlace::Encoded => "in the file, to be decoded".to_owned(),
        WeightPlace::Sparse => "in the file, sparse".to_owned(),
        WeightPlace::External { file, .. } => format!("in {file}"),
    }
}

fn place(place: &WeightPlace) -> String {
    let at = |offset: u64, aligned: bool| format!("at {offset}{}", if aligned { "" } else { ", unaligned" });
    match place {
        WeightPlace::Inline { offset, aligned } => at(*offset as u64, *aligned),
        WeightPlace::Encoded => "to be decoded".to_owned(),
        WeightPlace::Sparse => "sparse".to_owned(),
        WeightPlace::External { file, offset, aligned } => format!("in {file} {}", at(*offset, *aligned)),
    }
}

fn as_json(args: &InspectArgs, told: &Inspection) -> Value {
    let meta = &told.metadata;
    let value = |value: &InspectedValue| {
        let shape = value.shape.as_ref().map(|shape| shape.iter().map(print::dim_json).collect::<Vec<_>>());
        json!({
            "name": value.name, "type": value.ty, "dtype": value.dtype.map(|dtype| dtype.name()), "shape": shape,
            "has_default": value.has_default,
        })
    };
    let pairs = |pairs: &[(String, String)]| -> Value { pairs.iter().map(|(k, v)| (k.clone(), json!(v))).collect() };
    let opsets: Vec<Value> =
        meta.opsets.iter().map(|(domain, version)| json!({"domain": domain, "version": version})).collect();
    let symbols = told.symbols.iter().map(|symbol| {
        let places =
            symbol.places.iter().map(|at| json!({"value": at.value, "is_input": at.is_input, "axis": at.axis}));
        json!({"name": symbol.name, "places": places.collect::<Vec<_>>(), "inner": symbol.inner})
    });
    let ops = told.ops.iter().map(|op| {
        let support = match op.support {
            OpSupport::Supported => "supported",
            OpSupport::Function => "function",
            OpSupport::Unsupported => "unsupported",
        };
        json!({"domain": op.domain, "name": op.name, "version": op.version, "count": op.count, "support": support})
    });
    let functions = told.functions.iter().map(|f| {
        json!({
            "domain": f.domain, "name": f.name, "overload": f.overload, "inputs": f.inputs, "outputs": f.outputs,
            "nodes": f.nodes, "calls": f.calls,
        })
    });
    let subgraphs = told.subgraphs.iter().map(|g| {
        json!({
            "node": g.node, "op": g.op, "attribute": g.attribute, "nodes": g.nodes, "inputs": g.inputs,
            "outputs": g.outputs,
        })
    });
    let total = told.weights.iter().map(|weight| weight.bytes).fold(0, usize::saturating_add);
    json!({
        "model": args.model.display().to_string(),
        "file_bytes": told.file_bytes,
        "graph": told.graph,
        "nodes": told.nodes,
        "producer": {"name": meta.producer.0, "version": meta.producer.1},
        "ir_version": meta.ir_version,
        "domain": meta.domain,
        "model_version": meta.model_version,
        "opsets": opsets,
        "properties": pairs(&meta.properties),
        "inputs": told.inputs.iter().map(value).collect::<Vec<_>>(),
        "outputs": told.outputs.iter().map(value).collect::<Vec<_>>(),
        "symbols": symbols.collect::<Vec<_>>(),
        "ops": ops.collect::<Vec<_>>(),
        "functions": functions.collect::<Vec<_>>(),
        "subgraphs": subgraphs.collect::<Vec<_>>(),
        "weights_bytes": total,
        "weights": told.weights.iter().map(weight_json).collect::<Vec<_>>(),
    })
}

fn weight_json(weight: &InspectedWeight) -> Value {
    let (place, file, offset, aligned) = match &weight.place {
        WeightPlace::Inline { offset, aligned } => ("inline", None, Some(*offset as u64), Some(*aligned)),
        WeightPlace::Encoded => ("encoded", None, None, None),
        WeightPlace::Sparse => ("sparse", None, None, None),
        WeightPlace::External { file, offset, aligned } => ("external", Some(file), Some(*offset), Some(*aligned)),
    };
    json!({
        "name": weight.name, "dtype": weight.dtype.map(|dtype| dtype.name()), "dims": weight.dims,
        "bytes": weight.bytes, "place": place, "file": file, "offset": offset, "aligned": aligned,
    })
}
