//! Python environments under the target folder, set up when first asked for.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::project::{Failure, Project, read, run, write};

/// Pins of what the suite and the agreement check need.
pub(crate) const CHECKS: &str = "crates/conformance/suite/requirements.txt";
/// Pins of what exporting the models of the bars needs.
pub(crate) const MODELS: &str = "bench/requirements.txt";
/// Pins of the peers that come as Python packages.
pub(crate) const PEERS: &str = "bench/peers/requirements.txt";

/// The Python of the environment that holds the packages of `requirements`, set up if it is not there yet.
pub(crate) fn environment(project: &Project, requirements: &str) -> Result<PathBuf, Failure> {
    let name = match requirements {
        CHECKS => "venv",
        PEERS => "venv-peers",
        _ => "venv-models",
    };
    let folder = project.target.join(name);
    let python = folder.join("bin/python");
    let wanted = read(&project.path(requirements))?;
    let stamp = folder.join("installed.txt");
    if python.exists() && std::fs::read_to_string(&stamp).is_ok_and(|text| text == wanted) {
        return Ok(python);
    }
    println!("setting up {} from {requirements}", folder.display());
    create(&folder)?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    run(pip.arg(project.path(requirements)), "pip install").map_err(broken)?;
    write(&stamp, &wanted)?;
    Ok(python)
}

/// The value of a `name==value` line of a requirements file.
pub(crate) fn pinned(project: &Project, requirements: &str, name: &str) -> Result<String, Failure> {
    let text = read(&project.path(requirements))?;
    let pin = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("==").map(str::trim));
    pin.map(str::to_owned).ok_or_else(|| Failure::Broken(format!("{requirements} pins no {name}")))
}

/// Makes an empty environment; where Debian keeps `venv` apart and we are root, installs that first.
fn create(folder: &Path) -> Result<(), Failure> {
    let system = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let make = || {
        let mut command = Command::new(&system);
        run(command.args(["-m", "venv", "--clear"]).arg(folder), "python3 -m venv")
    };
    let Err(why) = make() else { return Ok(()) };
    let advice = "install Python 3.11 or later with its venv module (Debian, Ubuntu: apt-get install python3-venv), \
                  or name another interpreter in the variable PYTHON";
    if !is_root() || !Path::new("/usr/bin/apt-get").exists() {
        return Err(Failure::Broken(format!("{}; {advice}", why.message())));
    }
    println!("python3 -m venv does not work here: installing python3-venv");
    let apt =
        |words: &[&str]| run(Command::new("apt-get").args(words).env("DEBIAN_FRONTEND", "noninteractive"), "apt-get");
    apt(&["update", "--quiet"])
        .and_then(|()| apt(&["install", "--quiet", "--yes", "python3", "python3-venv"]))
        .map_err(broken)?;
    make().map_err(|why| Failure::Broken(format!("{}; {advice}", why.message())))
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|out| out.stdout.trim_ascii() == b"0")
}

fn broken(failure: Failure) -> Failure {
    Failure::Broken(failure.message().to_owned())
}
