//! The protocol of `suite/run_suite.py`: cases of the official suite, answered on the public API.

use firstlight::{Error, ErrorKind, RunError, Runtime, Session, Tensor, files};
use firstlight_graph::OpErrorKind;
use firstlight_plan::{NodeError, PlanError};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its outputs are written.
    Ok,
    /// It uses an op, a type or an attribute that is not built.
    Unsupported(String),
    /// Anything else.
    Error(String),
}

/// The most memory that a case may own.
const MEMORY_LIMIT: usize = 4 << 30;

/// Works through a plan, a line for each case: its id, its folder, the folder for its outputs.
///
/// **Errors**: a line of another form; an answer that cannot be written.
pub fn answer(plan: &str, runtime: &Runtime, to: &mut dyn Write) -> io::Result<()> {
    for line in plan.lines().filter(|line| !line.is_empty()) {
        let mut parts = line.split('\t');
        let (Some(id), Some(case), Some(out), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("no case: {line:?}")));
        };
        writeln!(to, "begin\t{id}")?;
        to.flush()?;
        match run_case(runtime, Path::new(case), Path::new(out)) {
            Verdict::Ok => writeln!(to, "ok\t{id}")?,
            Verdict::Unsupported(reason) => writeln!(to, "unsupported\t{id}\t{}", one_line(&reason))?,
            Verdict::Error(reason) => writeln!(to, "error\t{id}\t{}", one_line(&reason))?,
        }
        to.flush()?;
    }
    Ok(())
}

/// Runs all data sets of a case in one session.
pub fn run_case(runtime: &Runtime, case: &Path, out: &Path) -> Verdict {
    match catch_unwind(AssertUnwindSafe(|| data_sets(runtime, case, out))) {
        Ok(Ok(())) => Verdict::Ok,
        Ok(Err(error)) if is_unsupported(&error) => Verdict::Unsupported(error.to_string()),
        Ok(Err(error)) => Verdict::Error(error.to_string()),
        Err(payload) => {
            let text = payload.downcast_ref::<&str>().copied();
            let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            Verdict::Error(format!("panic: {}", text.unwrap_or("no message")))
        }
    }
}

fn data_sets(runtime: &Runtime, case: &Path, out: &Path) -> Result<(), Error> {
    // A runtime with a limit of its own has its say; the others get one here.
    let builder = Session::builder().runtime(runtime);
    let builder = if runtime.owned_bytes().is_some() { builder } else { builder.memory_limit(MEMORY_LIMIT) };
    let session = builder.load(case.join("model.onnx"))?;
    for (n, data_set) in numbered(case, "test_data_set_", "")? {
        let mut inputs = vec![];
        for (i, path) in numbered(&data_set, "input_", ".pb")? {
            inputs.push(named(&session, i, files::read_pb(&path)?, &path)?);
        }
        let outputs = session.run(inputs)?;
        let folder = out.join(format!("test_data_set_{n}"));
        std::fs::create_dir_all(&folder).map_err(|error| bad(&folder, &error))?;
        for (i, (name, tensor)) in outputs.iter().enumerate() {
            files::write_pb(folder.join(format!("output_{i}.pb")), name, tensor)?;
        }
    }
    Ok(())
}

/// The input that a file is for: the one that its tensor names, else the one at its position.
fn named(session: &Session, i: usize, read: (String, Tensor), path: &Path) -> Result<(String, Tensor), Error> {
    let (name, tensor) = read;
    let inputs = session.inputs();
    if inputs.iter().any(|spec| spec.name == name) {
        return Ok((name, tensor));
    }
    match inputs.iter().filter(|spec| !spec.is_optional).nth(i) {
        Some(spec) => Ok((spec.name.clone(), tensor)),
        None => Err(bad(path, &"the model has no input at that position")),
    }
}

/// The entries of a folder that are named `prefix`, a number, `suffix`, by number.
fn numbered(folder: &Path, prefix: &str, suffix: &str) -> Result<Vec<(usize, PathBuf)>, Error> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).map_err(|error| bad(folder, &error))? {
        let path = entry.map_err(|error| bad(folder, &error))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok());
        found.extend(number.map(|number| (number, path)));
    }
    found.sort();
    Ok(found)
}

fn bad(path: &Path, problem: &dyn std::fmt::Display) -> Error {
    Error::File { path: path.into(), problem: problem.to_string() }
}

/// Whether an error says that something is not built, rather than wrong.
fn is_unsupported(error: &Error) -> bool {
    let lacks_type = |node: &NodeError| *node.source.kind() == OpErrorKind::DType;
    match error {
        _ if error.kind() == ErrorKind::Unsupported => true,
        // The suite's models are well typed, so an op that refuses a type lacks it.
        Error::Run(RunError::Node(node) | RunError::Plan(PlanError::Node(node))) => lacks_type(node),
        _ => false,
    }
}

/// The protocol has one line a case, its parts set apart by tabs.
fn one_line(reason: &str) -> String {
    reason.split(['\n', '\r', '\t']).map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_one_line() {
        assert_eq!(one_line("2 ops are not supported:\n  a\tb\n"), "2 ops are not supported: | a | b");
    }
}
