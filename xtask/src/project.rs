//! Where things are, and how programs are started.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Why a task did not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A check failed or a bar was missed: exit status 1.
    Found(String),
    /// The task itself went wrong: exit status 2.
    Broken(String),
}

impl Failure {
    pub(crate) fn message(&self) -> &str {
        match self {
            Failure::Found(message) | Failure::Broken(message) => message,
        }
    }
}

/// A workspace crate and what it depends on inside the workspace and outside it.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    /// All that cargo tells of it.
    pub(crate) metadata: Value,
}

/// One line of a crate's dependencies.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) is_dev: bool,
    pub(crate) is_local: bool,
    /// Whether a version is asked for.
    pub(crate) has_version: bool,
}

/// The checkout this program was built from.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

impl Package {
    /// Whether it may go to a registry.
    pub(crate) fn is_published(&self) -> bool {
        self.metadata["publish"].is_null()
    }
}

impl Project {
    pub(crate) fn find() -> Result<Project, Failure> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf);
        let root = root.ok_or_else(|| Failure::Broken("xtask has no folder above it".into()))?;
        let metadata = cargo_metadata(&root, &["--no-deps"])?;
        let target = metadata["target_directory"].as_str().map(PathBuf::from).unwrap_or_else(|| root.join("target"));
        let mut packages: Vec<Package> = array(&metadata["packages"]).iter().map(package).collect();
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Project { root, target, packages })
    }

    /// A path inside the checkout.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// `path` as seen from the root, with forward slashes.
    pub(crate) fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().replace('\\', "/")
    }

    /// A program of the workspace, as a release build leaves it.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.target.join("release").join(name)
    }

    /// A cargo command in the root.
    pub(crate) fn cargo(&self, words: &[&str]) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root).args(words);
        command
    }

    /// Builds programs in release mode.
    pub(crate) fn build_release(&self, packages: &[&str]) -> Result<(), Failure> {
        let mut command = self.cargo(&["build", "--release"]);
        for package in packages {
            command.args(["--package", package]);
        }
        run(&mut command, "cargo build")
    }
}

/// What a program that starts as soon as it can is linked with: nothing to load or to relocate when it starts
/// (docs/installing.md has the command).
const QUICK_START: &str = "-C target-feature=+crt-static -C relocation-model=static";

impl Project {
    /// Builds a program for the quickest start: statically linked at a fixed address where the system is Linux with glibc, as
    /// a release build leaves it elsewhere.
    pub(crate) fn build_quick(&self, package: &str) -> Result<PathBuf, Failure> {
        let target = "x86_64-unknown-linux-gnu";
        if !cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")) {
            self.build_release(&[package])?;
            return Ok(self.program(package));
        }
        let folder = self.target.join("quick");
        let mut command = self.cargo(&["build", "--release", "--package", package, "--target", target]);
        run(command.env("RUSTFLAGS", QUICK_START).arg("--target-dir").arg(&folder), "cargo build")?;
        Ok(folder.join(target).join("release").join(package))
    }
}

/// Everything cargo knows of the workspace and, without `--no-deps`, of all it depends on.
pub(crate) fn cargo_metadata(root: &Path, words: &[&str]) -> Result<Value, Failure> {
    let mut command = cargo();
    command.current_dir(root).args(["metadata", "--format-version", "1"]).args(words);
    let text = output(&mut command, "cargo metadata")?;
    serde_json::from_str(&text).map_err(|e| Failure::Broken(format!("cargo metadata: {e}")))
}

/// Runs a command whose output the user sees; a failure is the caller's finding.
pub(crate) fn run(command: &mut Command, what: &str) -> Result<(), Failure> {
    let status = command.stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Found(format!("{what} failed ({status})"))),
        Err(e) => Err(Failure::Broken(format!("{what}: cannot start {:?}: {e}", command.get_program()))),
    }
}

/// Runs a command and returns what it wrote on standard output.
pub(crate) fn output(command: &mut Command, what: &str) -> Result<String, Failure> {
    let done = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let done = done.map_err(|e| Failure::Broken(format!("{what}: cannot start {:?}: {e}", command.get_program())))?;
    if !done.status.success() {
        return Err(Failure::Broken(format!("{what} failed ({})", done.status)));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Reads a text file, or says which one it could not read.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|e| Failure::Broken(format!("{}: {e}", path.display())))
}

/// Reads a JSON file.
pub(crate) fn read_json(path: &Path) -> Result<Value, Failure> {
    serde_json::from_str(&read(path)?).map_err(|e| Failure::Broken(format!("{}: {e}", path.display())))
}

/// Writes a file, or says which one it could not write.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| Failure::Broken(format!("{}: {e}", path.display())))
}

/// Makes a folder and those above it.
pub(crate) fn make_folder(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path).map_err(|e| Failure::Broken(format!("{}: {e}", path.display())))
}

/// The items of a JSON array; none if it is not one.
pub(crate) fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn package(value: &Value) -> Package {
    let manifest = PathBuf::from(value["manifest_path"].as_str().unwrap_or_default());
    let dependencies = array(&value["dependencies"]).iter().map(|d| Dependency {
        name: d["name"].as_str().unwrap_or_default().to_owned(),
        is_dev: d["kind"].as_str() == Some("dev"),
        is_local: d["path"].is_string(),
        has_version: d["req"] != "*",
    });
    Package {
        name: value["name"].as_str().unwrap_or_default().to_owned(),
        folder: manifest.parent().map(Path::to_path_buf).unwrap_or_default(),
        dependencies: dependencies.collect(),
        metadata: value.clone(),
    }
}
