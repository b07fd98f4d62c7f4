//! The command line: words and `--name value` options, taken out one by one.

use std::str::FromStr;

use crate::project::Failure;

/// What is left of a command line.
#[derive(Debug)]
pub(crate) struct Args(Vec<String>);

impl Args {
    pub(crate) fn new(words: impl Iterator<Item = String>) -> Args {
        // `--name=value` is the same as `--name value`.
        Args(words.flat_map(split_option).collect())
    }

    /// Takes the next word, if the next thing is one.
    pub(crate) fn word(&mut self) -> Option<String> {
        let is_word = self.0.first().is_some_and(|w| !w.starts_with("--"));
        is_word.then(|| self.0.remove(0))
    }

    /// Takes `--name`, wherever it stands.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let at = self.0.iter().position(|w| w == name);
        at.map(|at| self.0.remove(at)).is_some()
    }

    /// Takes `--name VALUE`, wherever it stands.
    pub(crate) fn option(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let Some(at) = self.0.iter().position(|w| w == name) else { return Ok(None) };
        if at + 1 >= self.0.len() {
            return Err(Failure::Broken(format!("{name} needs a value")));
        }
        self.0.remove(at);
        Ok(Some(self.0.remove(at)))
    }

    /// Takes `--name VALUE` and reads the value.
    pub(crate) fn parsed<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, Failure> {
        let Some(text) = self.option(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Failure::Broken(format!("{name}: cannot read {text:?}")))
    }

    /// Takes `--name A,B,C`; empty if it is not there.
    pub(crate) fn list(&mut self, name: &str) -> Result<Vec<String>, Failure> {
        let text = self.option(name)?.unwrap_or_default();
        Ok(text.split(',').filter(|s| !s.is_empty()).map(str::to_owned).collect())
    }

    /// Refuses what nobody took.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(Failure::Broken(format!("not understood: {}", self.0.join(" "))))
    }
}

fn split_option(word: String) -> Vec<String> {
    match word.split_once('=') {
        Some((name, value)) if name.starts_with("--") => vec![name.to_owned(), value.to_owned()],
        _ => vec![word],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Args {
        Args::new(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_stand_anywhere() {
        let mut a = args("validate --only fmt,clippy --json=out --fix");
        assert_eq!(a.word().as_deref(), Some("validate"));
        assert_eq!(a.option("--json").ok().flatten().as_deref(), Some("out"));
        assert!(a.flag("--fix") && !a.flag("--fix"));
        assert_eq!(a.list("--only").ok(), Some(vec!["fmt".to_owned(), "clippy".to_owned()]));
        assert!(a.finish().is_ok());
    }

    #[test]
    fn what_is_left_or_lacks_a_value_is_refused() {
        assert!(args("--odd").finish().is_err());
        assert!(args("--only").option("--only").is_err());
        assert!(args("--rounds many").parsed::<usize>("--rounds").is_err());
    }
}
