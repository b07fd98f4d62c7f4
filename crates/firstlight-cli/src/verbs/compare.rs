//! `firstlight compare`.

use crate::args::ModelArgs;
use crate::feeds::{Feeds, check_use, feeds};
use crate::progress::Progress;
use crate::table::shown;
use crate::{Failure, print};
use clap::Args;
use firstlight::compare::{
    Cause, Difference, Differs, Options, Report, Tolerance, against_no_passes, against_references, against_saved,
};
use firstlight::{DType, Session, files};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Finds the first node of a model whose values are wrong, and says by how much.
///
/// Against `reference` (the default) each node is computed once more by its plain reference implementation, on the
/// values that this run fed it, so that a node is not blamed for what nodes before it did. Floats may differ by rounding:
/// by 1e-4 of the scale for f32 (1e-9 for f64, 4e-3 for f16, 3e-2 for bf16), which is the greatest magnitude in the
/// tensor; what computes without rounding must be equal.
///
/// Against `no-passes` each value of the fused and folded graph is compared with that of the graph as it is written:
/// every bit must be the same.
///
/// Against `saved FILE...` values are compared by name with files: .npz as `run --output` writes them, with --keep for
/// values inside the graph; .npy and .pb by the file's name; folders of input_N.pb and output_N.pb, whose inputs are fed.
/// A value that differs is followed back to the node at fault.
///
/// What is looked at is the graph that runs, with the branches taken in place of each If. The body of a loop counts as
/// one node. Exit codes: 0 equal, 1 different, 2 bad use.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// What to compare with: reference, no-passes, or saved FILE...
    #[arg(long, num_args = 1.., value_name = "WHAT", default_value = "reference")]
    against: Vec<String>,
    /// How much an element may differ, absolutely [default: 0]
    #[arg(long, value_name = "X", value_parser = parse_tolerance)]
    atol: Option<f64>,
    /// How much an element may differ, as a part of the tensor's greatest magnitude [default: by element type; see above]
    #[arg(long, value_name = "X", value_parser = parse_tolerance)]
    rtol: Option<f64>,
    /// Go on after the first node that differs
    #[arg(long)]
    all: bool,
    /// Print one JSON object instead of lines
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  Is any kernel wrong on this model? Made-up values will do to find out:
  $ firstlight compare model.onnx --random

  Do fusing and folding change a bit?
  $ firstlight compare model.onnx --random --against no-passes

  Values of today against values of yesterday, one inside the graph too:
  $ firstlight run model.onnx -i x=x.npy --keep sum --output saved.npz
  $ firstlight compare model.onnx -i x=x.npy --against saved saved.npz
";

/// What to compare with.
#[derive(Debug)]
enum Against<'a> {
    References,
    NoPasses,
    Saved(&'a [String]),
}

pub(crate) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    check_use(&args.model)?;
    let against = match args.against.split_first() {
        Some((what, [])) if what == "reference" => Against::References,
        Some((what, [])) if what == "no-passes" => Against::NoPasses,
        Some((what, files)) if what == "saved" && !files.is_empty() => Against::Saved(files),
        _ => {
            let given = args.against.join(" ");
            let problem = format!("--against {given:?} is none of: reference, no-passes, saved FILE...");
            return Err(Failure::BadUse(problem));
        }
    };
    if matches!(against, Against::NoPasses) && args.model.no_passes {
        return Err(Failure::BadUse("--no-passes and --against no-passes: both sides would be the same".to_owned()));
    }
    let mut session = args.model.load(&[])?;
    let (mut saved, mut missing) = (Feeds::new(), vec![]);
    let mut given = Feeds::new();
    if let Against::Saved(paths) = &against {
        for path in *paths {
            read_saved(&session, Path::new(path), &mut saved, &mut given)?;
        }
        let outputs: Vec<String> = session.outputs().iter().map(|spec| spec.name.clone()).collect();
        let graph = session.graph().clone();
        saved.retain(|(name, _)| {
            let is_known = outputs.contains(name) || graph.value_named(name).is_some();
            missing.extend((!is_known).then(|| (name.clone(), "the model has no value of that name".to_owned())));
            is_known
        });
        if saved.is_empty() {
            return Err(Failure::Failed(format!(
                "none of the saved values is one of the model's: {}",
                names(&missing)
            )));
        }
        let inside: Vec<String> = saved.iter().map(|(n, _)| n.clone()).filter(|n| !outputs.contains(n)).collect();
        if !inside.is_empty() {
            session = args.model.load(&inside)?;
        }
    }
    let feeds = feeds_with(&session, &args.model, given)?;
    let progress = Progress::new("comparing");
    let told = |done: usize, of: usize| progress.set_of(done, of);
    let options = Options {
        tolerance: tolerance(args, &against),
        all: args.all,
        max_bytes: args.model.memory_limit.unwrap_or(1 << 30),
        progress: Some(&told),
    };
    let mut report = match &against {
        Against::References => against_references(&session, &feeds, &options)?,
        Against::NoPasses => against_no_passes(&session, &feeds, &options)?,
        Against::Saved(_) => against_saved(&session, &feeds, &saved, &options)?,
    };
    drop(progress);
    report.not_compared.extend(missing);
    for (name, why) in &report.not_compared {
        print::warning(&format!("{} is not compared: {why}", shown(name)));
    }
    match args.json {
        true => print::json(&as_json(args, &report))?,
        false => print::data(&lines(&against, &report))?,
    }
    if report.differing.is_empty() { Ok(()) } else { Err(Failure::Told) }
}

/// What is fed: the command line's inputs, then those of a folder of saved values, then made-up ones.
fn feeds_with(session: &Session, args: &ModelArgs, given: Feeds) -> Result<Feeds, Failure> {
    if given.is_empty() {
        return feeds(session, args);
    }
    if !args.inputs.is_empty() {
        return Err(Failure::BadUse("--input and a folder that holds inputs: give one or the other".to_owned()));
    }
    Ok(given)
}

fn tolerance(args: &CompareArgs, against: &Against<'_>) -> Option<Tolerance> {
    if args.atol.is_none() && args.rtol.is_none() {
        return None;
    }
    let rel = match against {
        Against::NoPasses => 0.,
        Against::References | Against::Saved(_) => Tolerance::of(DType::F32).rel,
    };
    // Whoever says how much is too much absolutely does not mean a part of the scale besides.
    let rel = args.rtol.unwrap_or(if args.atol.is_some() { 0. } else { rel });
    Some(Tolerance { abs: args.atol.unwrap_or(0.), rel, same_bits: false })
}

/// Reads saved values, and the inputs where a folder has some.
fn read_saved(session: &Session, path: &Path, saved: &mut Feeds, given: &mut Feeds) -> Result<(), Failure> {
    let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if path.is_dir() {
        return read_folder(session, path, saved, given);
    }
    let end = path.extension().and_then(|end| end.to_str()).map(str::to_ascii_lowercase);
    match end.as_deref() {
        Some("npz") => saved.extend(files::read_npz(path)?),
        Some("npy") => saved.push((stem(), files::read_npy(path)?)),
        Some("pb") => {
            let (name, tensor) = files::read_pb(path)?;
            saved.push((if name.is_empty() { stem() } else { name }, tensor));
        }
        _ => {
            let problem = "is neither a folder nor a file that ends in .npz, .npy or .pb";
            return Err(Failure::Failed(format!("{}: {problem}", path.display())));
        }
    }
    Ok(())
}

/// A folder as test data comes in: `input_0.pb`, `output_0.pb` and so on; any other tensor file is a value of its name.
fn read_folder(session: &Session, folder: &Path, saved: &mut Feeds, given: &mut Feeds) -> Result<(), Failure> {
    let fail = |error: std::io::Error| Failure::Failed(format!("{}: {error}", folder.display()));
    let entries = std::fs::read_dir(folder).map_err(fail)?;
    let mut paths: Vec<PathBuf> = vec![];
    for entry in entries {
        paths.push(entry.map_err(fail)?.path());
    }
    paths.sort();
    let before = saved.len() + given.len();
    for path in &paths {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_pb = path.extension().is_some_and(|end| end == "pb");
        let numbered = |prefix: &str| stem.strip_prefix(prefix).and_then(|n| n.parse::<usize>().ok()).filter(|_| is_pb);
        let position = |i: usize, names: Vec<&str>| match names.get(i) {
            Some(name) => Ok((*name).to_owned()),
            None => Err(Failure::Failed(format!("{}: the model has only {}", path.display(), names.len()))),
        };
        if let Some(i) = numbered("input_") {
            let (name, tensor) = files::read_pb(path)?;
            let known: Vec<&str> = session.inputs().iter().map(|spec| spec.name.as_str()).collect();
            let is_known = known.contains(&name.as_str());
            given.push((if is_known { name } else { position(i, known)? }, tensor));
        } else if let Some(i) = numbered("output_") {
            let (name, tensor) = files::read_pb(path)?;
            let known: Vec<&str> = session.outputs().iter().map(|spec| spec.name.as_str()).collect();
            let is_known = known.contains(&name.as_str());
            saved.push((if is_known { name } else { position(i, known)? }, tensor));
        } else if path.extension().is_some_and(|end| end == "npy" || end == "npz" || end == "pb") {
            read_saved(session, path, saved, given)?;
        }
    }
    if saved.len() + given.len() == before {
        return Err(Failure::Failed(format!("{}: holds no .npz, .npy or .pb", folder.display())));
    }
    Ok(())
}

fn names(of: &[(String, String)]) -> String {
    of.iter().map(|(name, _)| shown(name)).collect::<Vec<_>>().join(", ")
}

fn lines(against: &Against<'_>, report: &Report) -> String {
    let n = report.n_compared;
    let Some(first) = report.first() else {
        return match against {
            Against::References => format!("equal: {n} nodes agree with their references\n"),
            Against::NoPasses => format!("equal: {n} values have the same bits with passes and without\n"),
            Against::Saved(_) => format!("equal: {n} values agree with the saved ones\n"),
        };
    };
    let mut out = String::new();
    let subject = if let Cause::Earlier(culprit) = &first.cause { &**culprit } else { first };
    // Writing to a string does not fail.
    let _ = writeln!(out, "different, first at node {}", shown(&subject.node));
    describe(&mut out, subject);
    let _ = writeln!(out, "  cause    {}", cause(&first.cause));
    if let Cause::Earlier(_) = &first.cause {
        let _ = writeln!(out, "it was looked for behind value {} of node {}", shown(&first.value), shown(&first.node));
        let _ = writeln!(out, "  differs  {}", text_of(&first.difference));
    }
    for other in report.differing.iter().skip(1) {
        let _ = writeln!(out, "also node {}", shown(&other.node));
        describe(&mut out, other);
        let _ = writeln!(out, "  cause    {}", cause(&other.cause));
    }
    out
}

fn describe(out: &mut String, differs: &Differs) {
    let Differs { op, source, value, difference, parts, .. } = differs;
    let by = if source.is_empty() { String::new() } else { format!(", computed by {source:?}") };
    let _ = writeln!(out, "  op       {op}{by}");
    if !parts.is_empty() {
        let parts: Vec<String> = parts.iter().map(|part| shown(part)).collect();
        let _ = writeln!(out, "  made of  {}", parts.join(", "));
    }
    let _ = writeln!(out, "  value    {} {}{}", shown(value), difference.dtype, difference.shape);
    let _ = writeln!(out, "  differs  {}", text_of(difference));
}

fn text_of(difference: &Difference) -> String {
    let Difference { n_beyond, n_elems, absolute, relative, scale, index, value, expected, dtype, shape, .. } =
        difference;
    if let Some((got_dtype, got_shape)) = &difference.got {
        return format!("expected {dtype}{shape}, got {got_dtype}{got_shape}");
    }
    format!(
        "by {absolute:.6} ({relative:.3e} of the scale {scale:.6}) at {index:?}: {value} instead of {expected}; \
         {n_beyond} of {n_elems} elements are beyond the tolerance"
    )
}

fn cause(cause: &Cause) -> String {
    match cause {
        Cause::Node(own) => {
            let off = own.absolute;
            format!("this node: on the values that it was fed its reference gives something else, by {off:.6}")
        }
        Cause::Fed => "the two sides compute this node differently, and its reference agrees with this one".to_owned(),
        Cause::Inherited => "a node before it: on what it was fed this node agrees with its reference".to_owned(),
        Cause::Earlier(_) => {
            "this node: its own value is not among those compared, but its reference contradicts it".to_owned()
        }
        Cause::Elsewhere => {
            "none of the nodes before it: each agrees with its reference on what it was fed, so the other \
                             side comes from other inputs, another model, or other rounding"
                .to_owned()
        }
    }
}

fn as_json(args: &CompareArgs, report: &Report) -> Value {
    json!({
        "model": args.model.model.display().to_string(),
        "against": args.against.first(),
        "equal": report.differing.is_empty(),
        "compared": report.n_compared,
        "first": report.first().map(differs_json),
        "differing": report.differing.iter().map(differs_json).collect::<Vec<_>>(),
        "not_compared": report.not_compared.iter().map(|(name, why)| json!({"name": name, "why": why})).collect::<Vec<_>>(),
    })
}

fn differs_json(differs: &Differs) -> Value {
    let (cause, of) = match &differs.cause {
        Cause::Node(own) => ("node", difference_json(own)),
        Cause::Fed => ("fed", Value::Null),
        Cause::Inherited => ("inherited", Value::Null),
        Cause::Earlier(culprit) => ("earlier", differs_json(culprit)),
        Cause::Elsewhere => ("elsewhere", Value::Null),
    };
    json!({
        "node": differs.node, "op": differs.op, "parts": differs.parts, "source": differs.source, "value": differs.value,
        "difference": difference_json(&differs.difference), "cause": cause, "cause_detail": of,
    })
}

fn difference_json(d: &Difference) -> Value {
    let dims: &[usize] = &d.shape;
    let got = d.got.as_ref().map(|(dtype, shape)| format!("{dtype}{shape}"));
    json!({
        "dtype": d.dtype.name(), "shape": dims, "got": got, "max_abs": d.absolute, "max_rel": d.relative, "scale": d.scale,
        "beyond": d.n_beyond, "elements": d.n_elems, "index": d.index, "value": d.value, "expected": d.expected,
    })
}

/// A number that is not negative.
fn parse_tolerance(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim().parse().ok().filter(|number: &f64| *number >= 0. && number.is_finite());
    number.ok_or_else(|| format!("{text:?} is no tolerance: give a number from 0 on, such as 1e-4"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances() {
        assert_eq!(parse_tolerance("1e-4"), Ok(1e-4));
        assert!(["", "-1", "inf", "NaN", "x"].into_iter().all(|text| parse_tolerance(text).is_err()));
    }
}
