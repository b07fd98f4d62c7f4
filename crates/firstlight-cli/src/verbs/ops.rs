//! `firstlight ops`: every op, in a table, one by one, or as the page `docs/ops.md`.

use crate::near::did_you_mean;
use crate::table::{Table, count, heading};
use crate::{Failure, print};
use clap::Args;
use firstlight::core::onnx::NEWEST_OPSET;
use firstlight::core::{Arity, AttrDoc, Exactness, KernelBinding, OpInfo, Param, TypeRef};
use firstlight::{OpEntry, Runtime, catalog};
use serde_json::{Value, json};
use std::fmt::Write;

/// Shows the ops that models may use, and what computes them.
///
/// Without a name: a table of all ops. With one: what the op does, its attributes, inputs and outputs, the ONNX opsets
/// that it is imported from, and its kernels. What no kernel takes is computed by the op's plain reference, which is
/// slow and always there.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct OpsArgs {
    /// The op to show, in upper or lower case
    name: Option<String>,
    /// Print JSON: a list of ops, or the one that is named
    #[arg(long)]
    json: bool,
    /// Print the reference page of all ops
    #[arg(long, conflicts_with_all = ["json", "name"])]
    markdown: bool,
}

const EXAMPLES: &str = "\
Examples:
  All ops:
  $ firstlight ops

  What Conv takes, and which kernels there are for it:
  $ firstlight ops Conv

  For another program:
  $ firstlight ops --json > ops.json
";

pub(crate) fn ops(args: &OpsArgs) -> Result<(), Failure> {
    let ops = catalog(&Runtime::shared()?);
    if args.markdown {
        return print::data(&page(&ops));
    }
    let Some(name) = &args.name else {
        return match args.json {
            true => print::json(&ops.iter().map(op_json).collect()),
            false => print::data(&table(&ops)),
        };
    };
    let found = ops.iter().find(|op| op.name == name);
    let found = found.or_else(|| ops.iter().find(|op| op.name.eq_ignore_ascii_case(name)));
    let Some(op) = found else {
        let near = did_you_mean(name, ops.iter().map(|op| op.name));
        return Err(Failure::BadUse(format!("there is no op {name:?}{near}")));
    };
    if args.json { print::json(&op_json(op)) } else { print::data(&one(op)) }
}

// Facts.

/// A row's competitors of one name: a kernel with the element types that it takes.
#[derive(Debug)]
struct Kernel {
    source: &'static str,
    /// Types of the op's variables, one list a row.
    types: Vec<String>,
}

/// The kernels of an op, first choice first, each once.
fn kernels(rows: &[&'static KernelBinding]) -> Vec<Kernel> {
    let mut kernels: Vec<Kernel> = vec![];
    for row in rows {
        let types: Vec<&str> = row.types.iter().map(|dtype| dtype.name()).collect();
        let types = types.join(",");
        match kernels.iter_mut().find(|kernel| kernel.source == row.source) {
            Some(kernel) => kernel.types.push(types),
            None => kernels.push(Kernel { source: row.source, types: vec![types] }),
        }
    }
    kernels
}

/// The first opset that an op is imported from, and the newest.
fn opsets(op: &OpEntry) -> Option<String> {
    let import = op.import.as_ref()?;
    Some(match import.domain {
        "ai.onnx" => format!("{} to {NEWEST_OPSET}", import.since),
        domain => format!("{domain} {} on", import.since),
    })
}

fn exactness(info: &OpInfo) -> &'static str {
    match info.exactness {
        Exactness::Exact => "exact",
        Exactness::Rounding => "to rounding",
        Exactness::Random => "draws of a generator",
    }
}

fn ty(op: &OpInfo, param: &Param) -> String {
    match param.ty {
        TypeRef::Var(i) => op.types.get(usize::from(i)).map_or("?".to_owned(), |var| var.name.to_owned()),
        TypeRef::Fixed(dtype) => dtype.to_string(),
        TypeRef::Any => "any".to_owned(),
    }
}

fn param(op: &OpInfo, param: &Param) -> String {
    let mark = match param.arity {
        Arity::One => "",
        Arity::Optional => "?",
        Arity::Variadic(_) => "...",
    };
    format!("{}: {}{mark}", param.name, ty(op, param))
}

/// Why an op of the table has no import.
const INTERNAL: &str = "made by passes or by the import; no file holds it";

/// What an ONNX op without a row in the table of ops is.
const AS_OTHERS: &str = "An ONNX op that is imported as other ops of this list.";

// Text.

fn table(ops: &[OpEntry]) -> String {
    let mut out = String::new();
    let n_imported = ops.iter().filter(|op| op.import.is_some()).count();
    let _ = writeln!(out, "{n_imported} ONNX ops are imported; opset {NEWEST_OPSET} is the newest that is known.\n");
    let mut table = Table::new(&[]);
    table.row(["op", "opsets", "types", "kernels", "result"]);
    for op in ops {
        let from = opsets(op).unwrap_or_else(|| "-".to_owned());
        let Some(info) = op.info else {
            table.row([op.name, &from, "", "as other ops", ""]);
            continue;
        };
        let types = info.types.first().map_or(String::new(), |var| types(var.allowed.len(), var.allowed));
        let kernels: Vec<&str> = kernels(&op.kernels).iter().map(|kernel| kernel.source).collect();
        let kernels = if kernels.is_empty() { no_kernel(op).to_owned() } else { kernels.join(", ") };
        table.row([op.name, &from, &types, &kernels, exactness(info)]);
    }
    table.write(&mut out);
    out.push_str("\n`firstlight ops NAME` has the page of one op.\n");
    out
}

/// What computes an op that has no kernel.
fn no_kernel(op: &OpEntry) -> &'static str {
    match op.name {
        "Const" | "Input" => "a value",
        "If" | "Loop" => "control flow",
        _ if op.info.is_some_and(|info| (info.cases)().iter().all(|case| case.op.def().is_view())) => "a view",
        _ => "the reference",
    }
}

fn types(n: usize, allowed: &[firstlight::DType]) -> String {
    let names: Vec<&str> = allowed.iter().take(4).map(|dtype| dtype.name()).collect();
    match n - names.len() {
        0 => names.join(" "),
        more => format!("{} and {more} more", names.join(" ")),
    }
}

fn one(op: &OpEntry) -> String {
    let mut out = format!("{}\n\n", op.name);
    let Some(info) = op.info else {
        let _ = writeln!(out, "{AS_OTHERS}");
        let _ = writeln!(out, "\n  opsets  {}", opsets(op).unwrap_or_default());
        return out;
    };
    for line in wrapped(info.doc, 100) {
        let _ = writeln!(out, "{line}");
    }
    out.push('\n');
    let mut facts = Table::new(&[]);
    facts.row(["opsets".to_owned(), opsets(op).unwrap_or_else(|| INTERNAL.to_owned())]);
    facts.row(["result".to_owned(), format!("{}; {}", exactness(info), count((info.cases)().len(), "worked case"))]);
    facts.write(&mut out);
    for (title, params) in [("INPUTS", info.inputs), ("OUTPUTS", info.outputs)] {
        if params.is_empty() {
            continue;
        }
        heading(&mut out, title, "");
        let mut table = Table::new(&[]);
        for param in params {
            let arity = match param.arity {
                Arity::One => String::new(),
                Arity::Optional => "may be left out".to_owned(),
                Arity::Variadic(least) => format!("{least} or more"),
            };
            table.row([param.name.to_owned(), ty(info, param), arity]);
        }
        table.write(&mut out);
    }
    if !info.types.is_empty() {
        heading(&mut out, "TYPES", "");
        let mut table = Table::new(&[]);
        for var in info.types {
            let names: Vec<&str> = var.allowed.iter().map(|dtype| dtype.name()).collect();
            table.row([var.name.to_owned(), names.join(" ")]);
        }
        table.write(&mut out);
    }
    attributes(&mut out, info.attributes);
    heading(&mut out, "KERNELS", "first choice first; what none of them takes the reference computes");
    let mut table = Table::new(&[]);
    let kernels = kernels(&op.kernels);
    for kernel in &kernels {
        table.row([kernel.source.to_owned(), kernel.types.join(" ")]);
    }
    if kernels.is_empty() {
        table.row(["none", no_kernel(op)]);
    }
    table.write(&mut out);
    out
}

fn attributes(out: &mut String, attributes: &[AttrDoc]) {
    if attributes.is_empty() {
        return;
    }
    heading(out, "ATTRIBUTES", "");
    let width = attributes.iter().map(|attribute| attribute.name.len()).max().unwrap_or(0);
    for attribute in attributes {
        for (i, line) in wrapped(attribute.doc, 100 - width).iter().enumerate() {
            let name = if i == 0 { attribute.name } else { "" };
            let _ = writeln!(out, "  {name:<width$}  {line}");
        }
    }
}

/// Lines of a text, at most `width` characters wide where its words allow.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

// The reference page.

fn page(ops: &[OpEntry]) -> String {
    let mut out = String::new();
    let n_ops = ops.iter().filter(|op| op.info.is_some()).count();
    let n_imported = ops.iter().filter(|op| op.import.is_some()).count();
    let _ = writeln!(out, "# Ops\n\nGenerated from the op table by `cargo xtask ops-page`; {n_ops} ops.");
    let _ = writeln!(out, "{n_imported} ops of ONNX are imported, up to opset {NEWEST_OPSET}.\n");
    out.push_str("A parameter is `name: type`; `?` marks one that may be omitted, `...` one that may occur again.\n");
    out.push_str("Kernels are listed first choice first; what none of them takes the op's reference computes.\n");
    out.push_str("`firstlight ops NAME` shows the same on a terminal.\n");
    ops.iter().for_each(|op| section(&mut out, op));
    out
}

fn section(out: &mut String, op: &OpEntry) {
    let Some(info) = op.info else {
        let _ = writeln!(out, "\n## {}\n\n{AS_OTHERS}\n", op.name);
        let _ = writeln!(out, "- ONNX: opset {}", opsets(op).unwrap_or_default());
        return;
    };
    let _ = writeln!(out, "\n## {}\n\n{}\n", op.name, info.doc);
    let _ = match opsets(op) {
        Some(opsets) => writeln!(out, "- ONNX: opset {opsets}"),
        None => writeln!(out, "- ONNX: {INTERNAL}"),
    };
    let params =
        |params: &[Param]| params.iter().map(|p| format!("`{}`", param(info, p))).collect::<Vec<_>>().join(", ");
    for (what, list) in [("Inputs", info.inputs), ("Outputs", info.outputs)] {
        if !list.is_empty() {
            let _ = writeln!(out, "- {what}: {}", params(list));
        }
    }
    for var in info.types {
        let names: Vec<&str> = var.allowed.iter().map(|dtype| dtype.name()).collect();
        let _ = writeln!(out, "- {}: {}", var.name, names.join(" "));
    }
    for attribute in info.attributes {
        let _ = writeln!(out, "- Attribute `{}`: {}", attribute.name, attribute.doc);
    }
    let kernels = kernels(&op.kernels);
    let kernels: Vec<String> =
        kernels.iter().map(|kernel| format!("{} ({})", kernel.source, kernel.types.join(" "))).collect();
    let kernels = if kernels.is_empty() { no_kernel(op).to_owned() } else { kernels.join("; ") };
    let _ = writeln!(out, "- Kernels: {kernels}");
    let _ = writeln!(out, "- Result: {}; named cases: {}", exactness(info), (info.cases)().len());
}

// JSON.

fn op_json(op: &OpEntry) -> Value {
    let import = op.import.map(|import| {
        let newest = (import.domain == "ai.onnx").then_some(NEWEST_OPSET);
        json!({"domain": import.domain, "since": import.since, "newest": newest})
    });
    let kernels =
        kernels(&op.kernels).into_iter().map(|kernel| json!({"source": kernel.source, "types": kernel.types}));
    let mut value = json!({"name": op.name, "import": import, "kernels": kernels.collect::<Vec<_>>()});
    let Some(info) = op.info else { return value };
    let params = |params: &[Param]| -> Vec<Value> {
        let arity = |param: &Param| match param.arity {
            Arity::One => "one",
            Arity::Optional => "optional",
            Arity::Variadic(_) => "variadic",
        };
        params.iter().map(|p| json!({"name": p.name, "type": ty(info, p), "arity": arity(p)})).collect()
    };
    let types = info.types.iter().map(|var| {
        let allowed: Vec<&str> = var.allowed.iter().map(|dtype| dtype.name()).collect();
        json!({"name": var.name, "allowed": allowed})
    });
    let attributes = info.attributes.iter().map(|attribute| json!({"name": attribute.name, "doc": attribute.doc}));
    value["doc"] = info.doc.into();
    value["inputs"] = params(info.inputs).into();
    value["outputs"] = params(info.outputs).into();
    value["types"] = types.collect::<Vec<_>>().into();
    value["attributes"] = attributes.collect::<Vec<_>>().into();
    value["exactness"] = exactness(info).into();
    value["cases"] = (info.cases)().len().into();
    value
}
