//! `cargo xtask fuzz`: many mutated models, which may do no harm.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::args::Args;
use crate::project::{Failure, Project};

/// What to mutate, and how often.
#[derive(Debug, Default)]
pub(crate) struct Fuzz {
    pub(crate) n: u64,
    /// Number of the first case.
    pub(crate) from: u64,
    pub(crate) seed: Option<u64>,
    /// `door` or `references`.
    pub(crate) target: Option<String>,
    /// Models besides the built-in ones: files and folders.
    pub(crate) models: Vec<PathBuf>,
    /// Where bad models are saved.
    pub(crate) out: PathBuf,
}

impl Fuzz {
    /// Whether nothing was bad, and the program's summary.
    pub(crate) fn run(&self, project: &Project) -> Result<(bool, Value), Failure> {
        project.build_release(&["firstlight-fuzz"])?;
        let mut command = Command::new(project.program("firstlight-fuzz"));
        command.args([format!("--n={}", self.n), format!("--from={}", self.from)]);
        command.args(self.seed.map(|seed| format!("--seed={seed}")));
        command.args(self.target.as_ref().map(|target| format!("--target={target}")));
        command.args(self.models.iter().map(|path| format!("--models={}", path.display())));
        command.arg("--out").arg(&self.out).stdin(Stdio::null()).stderr(Stdio::inherit());
        let done = command.output();
        let done = done.map_err(|e| Failure::Broken(format!("cannot start {:?}: {e}", command.get_program())))?;
        let summary = serde_json::from_slice(&done.stdout);
        let summary = summary.map_err(|_| Failure::Found("firstlight-fuzz printed no summary".into()))?;
        Ok((done.status.success(), summary))
    }
}

pub(crate) fn verb(project: &Project, mut args: Args) -> Result<(), Failure> {
    let fuzz = Fuzz {
        n: args.parsed("--n")?.unwrap_or(100_000),
        from: args.parsed("--from")?.unwrap_or(0),
        seed: args.parsed("--seed")?,
        target: args.option("--target")?,
        models: args.option("--models")?.into_iter().map(PathBuf::from).collect(),
        out: project.target.join("fuzz-findings"),
    };
    args.finish()?;
    let (is_good, summary) = fuzz.run(project)?;
    println!("{summary:#}");
    match is_good {
        true => Ok(()),
        false => Err(Failure::Found(format!("bad models are in {}", fuzz.out.display()))),
    }
}
