//! The rooms: which crate may depend on which.

use super::Report;
use crate::project::{Package, Project};

/// A crate, the workspace crates it may use, and those that only its tests may use.
struct Room {
    name: &'static str,
    uses: &'static [&'static str],
    tests_use: &'static [&'static str],
}

/// Everything the door may reach.
const BELOW_THE_DOOR: &[&str] = &[
    "firstlight-tensor",
    "firstlight-graph",
    "firstlight-backend",
    "firstlight-plan",
    "firstlight-exec",
    "firstlight-gemm",
    "firstlight-cpu",
    "firstlight-sim",
    "firstlight-wgpu",
    "firstlight-cuda",
    "firstlight-onnx",
    "firstlight-gguf",
];
const TENSOR: &[&str] = &["firstlight-tensor"];
const GRAPH: &[&str] = &["firstlight-graph", "firstlight-tensor"];
const BACKEND: &[&str] = &["firstlight-backend", "firstlight-graph", "firstlight-tensor"];
const DOOR: &[&str] = &["firstlight"];

/// Dependencies point down only: a crate may use what stands in its row, and nothing else of the workspace.
const ROOMS: &[Room] = &[
    Room { name: "firstlight-tensor", uses: &[], tests_use: &[] },
    Room { name: "firstlight-graph", uses: TENSOR, tests_use: &[] },
    Room { name: "firstlight-backend", uses: GRAPH, tests_use: &[] },
    Room { name: "firstlight-plan", uses: BACKEND, tests_use: &["firstlight-cpu", "firstlight-sim"] },
    Room {
        name: "firstlight-exec",
        uses: &["firstlight-plan", "firstlight-backend", "firstlight-graph", "firstlight-tensor"],
        tests_use: &["firstlight-cpu", "firstlight-sim"],
    },
    Room { name: "firstlight-gemm", uses: TENSOR, tests_use: &[] },
    Room {
        name: "firstlight-cpu",
        uses: &["firstlight-backend", "firstlight-gemm", "firstlight-graph", "firstlight-tensor"],
        tests_use: &[],
    },
    Room { name: "firstlight-sim", uses: BACKEND, tests_use: &[] },
    Room { name: "firstlight-wgpu", uses: BACKEND, tests_use: &[] },
    Room { name: "firstlight-cuda", uses: BACKEND, tests_use: &[] },
    Room { name: "firstlight-onnx", uses: GRAPH, tests_use: &[] },
    Room { name: "firstlight-gguf", uses: GRAPH, tests_use: &[] },
    Room { name: "firstlight", uses: BELOW_THE_DOOR, tests_use: &[] },
    Room { name: "firstlight-cli", uses: DOOR, tests_use: &[] },
    Room { name: "firstlight-python", uses: DOOR, tests_use: &[] },
    Room { name: "firstlight-server", uses: DOOR, tests_use: &[] },
    Room { name: "firstlight-peer", uses: DOOR, tests_use: &[] },
    Room { name: "firstlight-examples", uses: DOOR, tests_use: &[] },
    Room { name: "firstlight-conformance", uses: &["firstlight"], tests_use: &[] },
    Room {
        name: "firstlight-fuzz",
        uses: &["firstlight", "firstlight-conformance", "firstlight-graph", "firstlight-onnx", "firstlight-tensor"],
        tests_use: &[],
    },
    Room { name: "xtask", uses: &[], tests_use: &[] },
];

pub(super) fn check(project: &Project, report: &mut Report) {
    for package in &project.packages {
        let place = project.relative(&package.folder.join("Cargo.toml"));
        match ROOMS.iter().find(|room| room.name == package.name) {
            Some(room) => check_package(package, room, &place, report),
            None => report.find(place, format!("{} is no room of the design: give it a row in rooms.rs", package.name)),
        }
    }
}

fn check_package(package: &Package, room: &Room, place: &str, report: &mut Report) {
    for dependency in package.dependencies.iter().filter(|d| d.is_local) {
        let name = dependency.name.as_str();
        // The unpublished test room walks every crate below the door.
        let is_test_room = room.name == "firstlight-conformance" && BELOW_THE_DOOR.contains(&name);
        let is_allowed =
            is_test_room || room.uses.contains(&name) || (dependency.is_dev && room.tests_use.contains(&name));
        if !is_allowed {
            let kind = if dependency.is_dev { "its tests may not use" } else { "it may not depend on" };
            report.find(place, format!("{kind} {name}; allowed: {:?} {:?}", room.uses, room.tests_use));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::Value;

    use super::*;
    use crate::project::Dependency;

    fn findings(name: &str, uses: &str, is_dev: bool) -> usize {
        let dependency = Dependency { name: uses.into(), is_dev, is_local: true, has_version: true };
        let dependencies = vec![dependency];
        let package = Package { name: name.into(), folder: PathBuf::new(), dependencies, metadata: Value::Null };
        let mut report = Report::default();
        let room = ROOMS.iter().find(|room| room.name == name);
        check_package(&package, room.unwrap_or(&ROOMS[0]), name, &mut report);
        report.findings.len()
    }

    #[test]
    fn only_edges_of_the_design_pass() {
        assert_eq!(findings("firstlight-exec", "firstlight-plan", false), 0);
        assert_eq!(findings("firstlight-plan", "firstlight-exec", false), 1);
        assert_eq!(findings("firstlight-exec", "firstlight-cpu", false), 1);
        assert_eq!(findings("firstlight-exec", "firstlight-cpu", true), 0);
        assert_eq!(findings("firstlight-cli", "firstlight-plan", false), 1);
        assert_eq!(findings("firstlight-conformance", "firstlight-sim", false), 0);
    }

    #[test]
    fn rows_point_down() {
        for (at, room) in ROOMS.iter().enumerate() {
            for used in room.uses.iter().filter(|used| **used != "firstlight-gemm" && room.name != "firstlight") {
                let below = ROOMS.iter().position(|other| other.name == *used);
                assert!(below.is_some_and(|below| below < at), "{} uses {used}", room.name);
            }
        }
    }
}
