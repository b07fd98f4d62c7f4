//! `cargo xtask readme`: the commands of README.md, in a fresh clone.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::args::Args;
use crate::checks::CLI;
use crate::project::{Failure, Project, make_folder, output, read, run};

/// How often the built program is started; the best time counts.
const N_STARTS: usize = 5;
/// What a start of the demo may take, from the start of its process to its end.
pub(crate) const BOUND: Duration = Duration::from_millis(100);

/// What to run, and where the clone builds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Readme {
    /// Builds into the target folder of this checkout instead of an empty one.
    pub(crate) share_target: bool,
    /// Leaves the second command out.
    pub(crate) skip_validate: bool,
}

/// What the demo did.
#[derive(Clone, Debug)]
pub(crate) struct Demo {
    pub(crate) n_right: usize,
    pub(crate) n_shown: usize,
    /// Of whole processes, the shortest first.
    pub(crate) times: Vec<Duration>,
}

impl Demo {
    /// Ten digits or more, and nine tenths of them right.
    pub(crate) fn is_right(&self) -> bool {
        self.n_shown >= 10 && self.n_right * 10 >= self.n_shown * 9
    }

    pub(crate) fn best(&self) -> Duration {
        self.times.first().copied().unwrap_or(Duration::MAX)
    }

    /// The range of the times, in milliseconds.
    pub(crate) fn spread(&self) -> String {
        let ms = |time: Option<&Duration>| time.map_or(0., |time| time.as_secs_f64() * 1e3);
        format!("{:.1} to {:.1} ms", ms(self.times.first()), ms(self.times.last()))
    }
}

pub(crate) fn verb(project: &Project, mut args: Args) -> Result<(), Failure> {
    let readme = Readme { share_target: args.flag("--share-target"), skip_validate: args.flag("--skip-validate") };
    args.finish()?;
    let demo = readme.run(project)?;
    let (best, bound) = (demo.best(), BOUND.as_millis());
    println!("demo: {} of {} right, at least 9 of 10 asked for", demo.n_right, demo.n_shown);
    println!("demo: {:.1} ms, the best of {N_STARTS} ({}), under {bound} ms asked for", ms(best), demo.spread());
    if readme.skip_validate {
        println!("the second command was left out");
    }
    if demo.is_right() && best < BOUND {
        Ok(())
    } else {
        Err(Failure::Found("the demo misses what is asked for".into()))
    }
}

impl Readme {
    /// Clones what is committed, and runs the commands that the clone's README.md starts with.
    pub(crate) fn run(self, project: &Project) -> Result<Demo, Failure> {
        let work = project.target.join("readme");
        remove(&work)?;
        make_folder(&work)?;
        let checkout = work.join("checkout");
        clone(&project.root, &checkout)?;
        let target = if self.share_target { project.target.clone() } else { work.join("target") };
        let done = self.commands(&checkout, &target);
        remove(&work)?;
        done
    }

    fn commands(self, checkout: &Path, target: &Path) -> Result<Demo, Failure> {
        let commands = commands(&read(&checkout.join("README.md"))?);
        let [first, second] = &commands[..] else {
            let problem = format!("README.md: its first block of commands has {} of them, not 2", commands.len());
            return Err(Failure::Found(problem));
        };
        println!("$ {first}");
        let page = output(&mut shell(first, checkout, target), first).map_err(found)?;
        println!("{page}");
        let (n_right, n_shown) = n_right(&page)
            .ok_or_else(|| Failure::Found(format!("`{first}` does not say how many digits of how many are right")))?;
        let program = target.join("release").join(CLI.0);
        let times = (0..N_STARTS).map(|_| time(&program)).collect::<Result<Vec<_>, _>>();
        let demo = times.map(|mut times| {
            times.sort_unstable();
            Demo { n_right, n_shown, times }
        })?;
        if !self.skip_validate {
            println!("$ {second}");
            run(&mut shell(second, checkout, target), second)?;
        }
        Ok(demo)
    }
}

/// A clone of the commit that is checked out, and of nothing that is not committed.
fn clone(root: &Path, to: &Path) -> Result<(), Failure> {
    let git = |folder: &Path| {
        let mut git = Command::new("git");
        git.arg("-C").arg(folder);
        git
    };
    let changes = output(git(root).args(["status", "--porcelain"]), "git status")?;
    if !changes.is_empty() {
        println!("note: what is not committed is not looked at:\n{}", changes.trim_end());
    }
    let commit = output(git(root).args(["rev-parse", "HEAD"]), "git rev-parse")?;
    run(git(root).args(["clone", "--quiet", "--no-checkout", "."]).arg(to), "git clone").map_err(broken)?;
    run(git(to).args(["checkout", "--quiet", "--detach", commit.trim()]), "git checkout").map_err(broken)
}

/// The lines of the first block of shell commands, without their comments.
fn commands(readme: &str) -> Vec<String> {
    let block = readme.lines().skip_while(|line| *line != "```sh").skip(1).take_while(|line| *line != "```");
    let command = |line: &str| line.split(" #").next().unwrap_or_default().trim().to_owned();
    block.map(command).filter(|command| !command.is_empty()).collect()
}

/// `N of M right`, as the demo's page says it.
fn n_right(page: &str) -> Option<(usize, usize)> {
    let line = page.lines().find_map(|line| Some(line.split_once(" right;")?.0))?;
    let (n_right, n_shown) = line.split_once(" of ")?;
    Some((n_right.parse().ok()?, n_shown.parse().ok()?))
}

/// A line for a shell, as somebody types it in that folder.
fn shell(line: &str, folder: &Path, target: &Path) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder).env("CARGO_TARGET_DIR", target);
    shell
}

/// How long a process of the demo takes.
fn time(program: &PathBuf) -> Result<Duration, Failure> {
    let clock = Instant::now();
    let done = Command::new(program).arg("demo").stdin(Stdio::null()).output();
    let time = clock.elapsed();
    match done {
        Ok(done) if done.status.success() => Ok(time),
        Ok(done) => Err(Failure::Found(format!("{} demo: {}", program.display(), done.status))),
        Err(e) => Err(Failure::Broken(format!("{}: {e}", program.display()))),
    }
}

fn remove(folder: &Path) -> Result<(), Failure> {
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::Broken(format!("{}: {e}", folder.display())))
        }
        _ => Ok(()),
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn found(failure: Failure) -> Failure {
    Failure::Found(failure.message().to_owned())
}

fn broken(failure: Failure) -> Failure {
    Failure::Broken(failure.message().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_starts_with_two_commands() {
        let page = "# X\n\n```sh\n$x one -- two   # why\n\nthree\n```\n\n```sh\nfour\n```\n";
        assert_eq!(commands(page), ["$x one -- two", "three"]);
        assert!(commands("# X\n").is_empty());
        assert_eq!(commands(include_str!("../../README.md")), ["cargo run --release -- demo", "cargo xtask validate"]);
    }

    #[test]
    fn nine_of_ten_must_be_right() {
        let is_right = |page: &str| {
            let (n_right, n_shown) = n_right(page).unwrap();
            Demo { n_right, n_shown, times: vec![] }.is_right()
        };
        assert!(is_right("x\n9 of 10 right; of all 360, 355 right (98.6%)\n") && is_right("10 of 10 right; x"));
        assert!(!is_right("8 of 10 right; x") && !is_right("9 of 9 right; x") && !is_right("17 of 20 right; x"));
        assert_eq!(n_right("right; wrong"), None);
    }
}
