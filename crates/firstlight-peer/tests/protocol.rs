//! The benchmark's protocol, from outside.

#[path = "../../firstlight/tests/common/mod.rs"]
mod common;

use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn peer(root: &Path, more: &[&str]) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firstlight-peer"));
    command.arg("--model").arg(root.join("model.onnx")).arg("--case").arg(root.join("case")).args(more);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let last = text.lines().last().unwrap_or_default();
    (output.status.code(), serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {text}")))
}

#[test]
fn stamps_outputs_and_errors_are_as_the_protocol_says() {
    let root = std::env::temp_dir().join(format!("firstlight-peer-protocol-{}", std::process::id()));
    let case = root.join("case");
    std::fs::create_dir_all(&case).unwrap();
    std::fs::write(root.join("model.onnx"), common::add_relu()).unwrap();
    std::fs::write(case.join("inputs.txt"), "x|f32|1,4|x.bin\n").unwrap();
    std::fs::write(case.join("x.bin"), [0u8; 16]).unwrap();
    let out = root.join("out");
    let out_text = out.to_string_lossy().into_owned();
    for set in ["pipeline=inline", "pipeline=on", "map=0", "passes=0"] {
        let (code, line) = peer(&root, &["--iters", "5", "--threads", "2", "--out", &out_text, "--set", set]);
        assert_eq!(code, Some(0), "{line}");
        let stamp = |key: &str| line[key].as_u64().unwrap_or_else(|| panic!("no {key} in {line}"));
        assert!(stamp("main") <= stamp("load") && stamp("load") <= stamp("first"), "{line}");
        assert!(stamp("c_main") <= stamp("c_load") && stamp("c_load") <= stamp("c_first"), "{line}");
        assert!(stamp("hwm_first_kb") > 0 && stamp("hwm_kb") >= stamp("hwm_first_kb"));
        assert_eq!(line["wall"].as_array().map(Vec::len), Some(5));
        assert_eq!(line["cpu"].as_array().map(Vec::len), Some(5));
        assert_eq!(std::fs::read_to_string(out.join("outputs.txt")).unwrap(), "1,4|o0.bin\n");
        let bytes: Vec<u8> = [1f32, 0., 3., 0.].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(std::fs::read(out.join("o0.bin")).unwrap(), bytes);
        std::fs::remove_dir_all(&out).unwrap();
    }
    let (code, line) = peer(&root, &[]);
    assert_eq!((code, line["wall"].as_array().map(Vec::len)), (Some(0), Some(0)));
    std::fs::write(case.join("inputs.txt"), "q|f32|1,4|x.bin\n").unwrap();
    let (code, line) = peer(&root, &[]);
    assert_eq!(code, Some(3));
    assert!(line["error"].as_str().unwrap().contains("\"q\""), "{line}");
    std::fs::remove_dir_all(root).unwrap();
}
