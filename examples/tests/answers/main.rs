//! The examples, run on models, pictures and sounds that are made here, so that their answers are known.

mod build_graph;
mod classify;
mod embed;
mod ocr_detect;
#[path = "../../../crates/firstlight/tests/common/mod.rs"]
mod onnx;
mod vad;

use firstlight::core::wire::Writer;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A file of its own: tests run side by side, and a file that a program has mapped must not change.
fn file(name: &str, bytes: &[u8]) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("{}-{name}", NEXT.fetch_add(1, Ordering::Relaxed));
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    path.into_os_string().into_string().unwrap()
}

/// What a program prints.
fn answer(program: &str, args: &[&str]) -> String {
    text(Command::new(program).args(args).output().unwrap())
}

/// What a program prints that reads a file as its standard input.
fn answer_to(program: &str, args: &[&str], input: &str) -> String {
    let input = std::fs::File::open(input).unwrap();
    text(Command::new(program).args(args).stdin(Stdio::from(input)).output().unwrap())
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a program says before it fails.
fn complaint(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    String::from_utf8(output.stderr).unwrap()
}

/// Writes a list of numbers as an attribute.
fn ints(w: &mut Writer, name: &str, values: &[i64]) {
    w.message(5, |a| _ = a.text(1, name).packed_i64(8, values).i64(20, 7));
}

/// Writes a number as an attribute.
fn int(w: &mut Writer, name: &str, value: i64) {
    w.message(5, |a| _ = a.text(1, name).i64(3, value).i64(20, 2));
}

#[test]
fn a_model_that_is_not_there_is_named() {
    let wav = vad::recording("missing.wav", 16_000, 1);
    let page = file("missing.png", &ocr_detect::png(&image::RgbImage::new(8, 8)));
    for (program, arg) in [
        (env!("CARGO_BIN_EXE_classify"), page.as_str()),
        (env!("CARGO_BIN_EXE_vad"), &wav),
        (env!("CARGO_BIN_EXE_ocr_detect"), &page),
    ] {
        let said = complaint(program, &["no/such.onnx", arg]);
        assert!(said.starts_with("error: ") && said.contains("no/such.onnx"), "{said}");
    }
}
