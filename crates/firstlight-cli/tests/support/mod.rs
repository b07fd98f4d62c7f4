//! What the tests of the program share: folders, runs, models.
#![allow(dead_code, unreachable_pub, reason = "each test uses its own part of this file")]

#[path = "../../../firstlight/tests/common/mod.rs"]
pub mod common;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A folder of its own for each test, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("firstlight-cli-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Names of everything in the folder.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn firstlight(args: &[&dyn AsRef<std::ffi::OsStr>]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firstlight"));
    command.env_remove("FIRSTLIGHT_NUM_THREADS").env_remove("OMP_NUM_THREADS").stdin(Stdio::null());
    command.args(args.iter().map(|arg| arg.as_ref())).output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The message of a run that must fail with that code, leave nothing on standard output and not panic.
pub fn fails(code: i32, args: &[&dyn AsRef<std::ffi::OsStr>]) -> String {
    let output = firstlight(args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert_eq!(text(&output.stdout), "", "{message}");
    assert!(!message.contains("panicked"), "{message}");
    message
}
