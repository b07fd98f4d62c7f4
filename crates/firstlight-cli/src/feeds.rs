//! What the model is fed: files, then random values for what is missing.

use crate::Failure;
use crate::args::ModelArgs;
use crate::random::Random;
use firstlight::{Dim, Error, InputProblem, InputSpec, Session, Shape, Tensor, files};
use std::collections::HashMap;
use std::path::Path;

/// Names and tensors.
pub(crate) type Feeds = Vec<(String, Tensor)>;

/// Inputs with their shapes, and labels of the sizes that were made up.
pub(crate) type Shapes = (Vec<(String, Option<Shape>)>, Vec<String>);

/// Where an `--input` comes from.
#[derive(Debug, PartialEq, Eq)]
enum Source<'a> {
    /// A file for one input.
    Named(&'a str, &'a Path),
    /// An `.npz` whose members are inputs.
    All(&'a Path),
}

/// Reads the files of the command line and makes up the rest.
pub(crate) fn feeds(session: &Session, args: &ModelArgs) -> Result<Feeds, Failure> {
    let known: Vec<&str> = session.inputs().iter().map(|spec| spec.name.as_str()).collect();
    let mut feeds = Feeds::new();
    for text in &args.inputs {
        match source(text, &known)? {
            Source::All(path) => feeds.extend(files::read_npz(path)?),
            Source::Named(name, path) => feeds.push((name.to_owned(), read(name, path)?)),
        }
    }
    check_dims(session, args)?;
    if args.random {
        fill(session.inputs(), args, &mut feeds)?;
    }
    Ok(feeds)
}

/// Refuses a `--dim` of a symbol that no input has.
fn check_dims(session: &Session, args: &ModelArgs) -> Result<(), Failure> {
    for (symbol, _) in &args.dims {
        let is_used =
            |spec: &InputSpec| spec.shape.iter().flat_map(|shape| shape.iter()).any(|dim| is_named(dim, symbol));
        if !session.inputs().iter().any(is_used) {
            return Err(Failure::BadUse(format!("--dim {symbol}: no input has a dimension of that name")));
        }
    }
    Ok(())
}

/// Shapes of the inputs that have to be fed, by the sizes of the command line; `None` for one of unknown rank. What is
/// not named there is `unnamed`; the second value tells which sizes were made up so.
pub(crate) fn shapes(session: &Session, args: &ModelArgs, unnamed: usize) -> Result<Shapes, Failure> {
    check_dims(session, args)?;
    let mut made_up: Vec<String> = vec![];
    let mut shapes = vec![];
    for spec in session.inputs().iter().filter(|spec| !spec.is_optional) {
        let mut size = |(axis, dim): (usize, &Dim)| {
            let label = match dim {
                Dim::Known(size) => return *size,
                Dim::Named(symbol) => symbol.to_string(),
                Dim::Unknown => format!("{} axis {axis}", spec.name),
            };
            if let Some((_, size)) = args.dims.iter().find(|(symbol, _)| is_named(dim, symbol)) {
                return *size;
            }
            if !made_up.contains(&label) {
                made_up.push(label);
            }
            unnamed
        };
        shapes.push((
            spec.name.clone(),
            spec.shape.as_ref().map(|shape| shape.iter().enumerate().map(&mut size).collect()),
        ));
    }
    Ok((shapes, made_up))
}

/// Whether the command line's `--input`s can be understood at all; looked at before a model is loaded.
pub(crate) fn check_use(args: &ModelArgs) -> Result<(), Failure> {
    args.inputs.iter().try_for_each(|text| source(text, &[]).map(drop))
}

/// Takes `NAME=FILE` apart. A name may hold `=`: of the model's names that fit, the longest counts.
fn source<'a>(text: &'a str, known: &[&str]) -> Result<Source<'a>, Failure> {
    let ends_in = |end: &str| Path::new(text).extension().is_some_and(|e| e.eq_ignore_ascii_case(end));
    let fits = known.iter().filter(|name| text.strip_prefix(**name).is_some_and(|rest| rest.starts_with('=')));
    let split = match fits.map(|name| name.len()).max() {
        Some(at) => Some((&text[..at], &text[at + 1..])),
        None => text.split_once('='),
    };
    match split {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok(Source::Named(name, Path::new(path))),
        None if ends_in("npz") => Ok(Source::All(Path::new(text))),
        _ => Err(Failure::BadUse(format!("--input {text:?} is neither NAME=FILE nor a file that ends in .npz"))),
    }
}

fn read(name: &str, path: &Path) -> Result<Tensor, Failure> {
    let end = path.extension().map(|end| end.to_ascii_lowercase());
    match end.as_ref().and_then(|end| end.to_str()) {
        Some("npy") => Ok(files::read_npy(path)?),
        Some("pb") => Ok(files::read_pb(path)?.1),
        Some("npz") => {
            let mut members = files::read_npz(path)?;
            let Some(at) = members.iter().position(|(member, _)| member == name) else {
                let members: Vec<&str> = members.iter().map(|(member, _)| member.as_str()).collect();
                let problem = format!("no member {name:?}; it holds {members:?}");
                return Err(Failure::Failed(format!("{}: {problem}", path.display())));
            };
            Ok(members.swap_remove(at).1)
        }
        _ => {
            let path = path.display();
            Err(Failure::Failed(format!("input {name:?}: {path} does not end in .npy, .npz or .pb")))
        }
    }
}

fn is_named(dim: &Dim, symbol: &str) -> bool {
    matches!(dim, Dim::Named(name) if **name == *symbol)
}

/// Makes up what is missing. A symbol has the size that a given input or `--dim` gives it.
fn fill(specs: &[InputSpec], args: &ModelArgs, feeds: &mut Feeds) -> Result<(), Failure> {
    let mut sizes: HashMap<&str, usize> = args.dims.iter().map(|(symbol, size)| (symbol.as_str(), *size)).collect();
    for (name, tensor) in feeds.iter() {
        let shape = specs.iter().find(|spec| spec.name == *name).and_then(|spec| spec.shape.as_ref());
        for (dim, &size) in shape.into_iter().flat_map(|shape| shape.iter()).zip(tensor.shape()) {
            if let Dim::Named(symbol) = dim {
                sizes.insert(symbol, size);
            }
        }
    }
    let mut random = Random::new(args.seed);
    for spec in specs {
        if spec.is_optional || feeds.iter().any(|(name, _)| *name == spec.name) {
            continue;
        }
        let Some(shape) = &spec.shape else {
            let problem = "the model declares no rank for it; give it as a file";
            return Err(Failure::Failed(format!("input {:?}: {problem}", spec.name)));
        };
        let size = |dim: &Dim| match dim {
            Dim::Known(size) => *size,
            Dim::Named(symbol) => sizes.get(&**symbol).copied().unwrap_or(1),
            Dim::Unknown => 1,
        };
        let dims: Vec<usize> = shape.iter().map(size).collect();
        let tensor = random.tensor(&spec.name, spec.dtype, &dims).map_err(|error| match error {
            Error::Input { problem: InputProblem::Unsupported { dtype }, name } => {
                Failure::Failed(format!("input {name:?}: --random makes no elements of {dtype}; give it as a file"))
            }
            other => other.into(),
        })?;
        feeds.push((spec.name.clone(), tensor));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_taken_apart() {
        let named = |text: &'static str, known: &[&str]| source(text, known).unwrap();
        assert_eq!(named("x=a.npy", &[]), Source::Named("x", Path::new("a.npy")));
        assert_eq!(named("x=a=b.npy", &["x"]), Source::Named("x", Path::new("a=b.npy")));
        assert_eq!(named("x=a=b.npy", &["x", "x=a"]), Source::Named("x=a", Path::new("b.npy")));
        assert_eq!(named("all.npz", &["x"]), Source::All(Path::new("all.npz")));
        for bad in ["x", "a.npy", "=a.npy", "x="] {
            assert!(matches!(source(bad, &[]), Err(Failure::BadUse(_))), "{bad}");
        }
    }
}
