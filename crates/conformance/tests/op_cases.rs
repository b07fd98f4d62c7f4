//! Every named case of every op, on every device, inline and pipelined, fed and constant, first run and replay.

use firstlight_conformance::cases::{Given, run};
use firstlight_conformance::device::DeviceKind;
use firstlight_exec::{Pipeline, RunOptions};
use firstlight_graph::OpKind;
use firstlight_tensor::DType;

#[test]
fn every_case_of_every_op_on_every_device() {
    let mut problems = vec![];
    let mut n_cases = 0;
    for device in DeviceKind::ALL {
        let executor = device.executor(2).unwrap();
        for kind in OpKind::ALL {
            for case in (kind.info().cases)() {
                for pipeline in [Pipeline::Inline, Pipeline::On] {
                    for given in [Given::Fed, Given::Constant] {
                        let has_strings = case.inputs.iter().flatten().any(|tensor| tensor.dtype() == DType::String);
                        if has_strings && given == Given::Fed {
                            // A run takes no strings.
                            continue;
                        }
                        let options = RunOptions { pipeline, ..RunOptions::default() };
                        if let Err(problem) = run(*kind, &case, &executor, &options, given) {
                            let place = format!("{} {:?} on {}", kind.name(), case.name, device.name());
                            problems.push(format!("{place}, {pipeline:?}, {given:?}: {problem}"));
                        }
                        n_cases += 1;
                    }
                }
            }
        }
    }
    assert!(n_cases > 100, "{n_cases} cases");
    assert!(problems.is_empty(), "{} of {n_cases}:\n{}", problems.len(), problems.join("\n"));
}
