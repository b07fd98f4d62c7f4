//! Failure is part of the contract: at every step, in the compiler and in the executor, one error names the node, the
//! caller's buffers are untouched, nothing is left behind, and the next run is right.

mod common;

use common::{Buffers, Inputs, cpu, prepare, run, sim, sixty_nodes};
use firstlight_exec::{CancelToken, Event, EventSink, Pipeline, RunError, RunOptions};
use firstlight_sim::SimCall;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Trouble {
    Error,
    Panic,
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Compiler,
    Executor,
}

/// Makes trouble at the k-th node that its side turns to.
struct Saboteur {
    side: Side,
    trouble: Trouble,
    k: usize,
    seen: AtomicUsize,
    hit: Mutex<Option<String>>,
    cancel: CancelToken,
}

impl Saboteur {
    fn new(side: Side, trouble: Trouble, k: usize) -> Saboteur {
        let (seen, hit, cancel) = (AtomicUsize::new(0), Mutex::new(None), CancelToken::new());
        Saboteur { side, trouble, k, seen, hit, cancel }
    }
}

impl EventSink for Saboteur {
    fn event(&self, event: &Event<'_>) -> Result<(), String> {
        let node = match (self.side, event) {
            (Side::Compiler, Event::Compiling { node, .. }) => node,
            (Side::Executor, Event::Running { node, .. }) => node,
            _ => return Ok(()),
        };
        if self.seen.fetch_add(1, Ordering::SeqCst) != self.k {
            return Ok(());
        }
        *self.hit.lock().unwrap() = Some((*node).to_owned());
        match self.trouble {
            Trouble::Error => Err("injected".to_owned()),
            Trouble::Panic => panic!("injected"),
            Trouble::Cancel => {
                self.cancel.cancel();
                Ok(())
            }
        }
    }
}

fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        if !text.contains("injected") {
            eprintln!("{text}");
        }
    }));
}

#[test]
fn trouble_at_every_step_is_one_error_and_the_next_run_is_right() {
    quiet_panics();
    let graph = sixty_nodes();
    let inputs = Inputs::new(3, true, 2);
    let expected = run(&cpu(1), &prepare(&cpu(1), &graph), &inputs, &RunOptions::default()).unwrap();
    for pipeline in [Pipeline::Inline, Pipeline::On] {
        for (side, trouble) in [
            (Side::Compiler, Trouble::Error),
            (Side::Compiler, Trouble::Panic),
            (Side::Compiler, Trouble::Cancel),
            (Side::Executor, Trouble::Error),
            (Side::Executor, Trouble::Panic),
            (Side::Executor, Trouble::Cancel),
        ] {
            let executor = cpu(2);
            let prepared = prepare(&executor, &graph);
            let (mut hits, mut k) = (BTreeSet::new(), 0);
            loop {
                let fresh = prepare(&executor, &graph);
                let saboteur = Saboteur::new(side, trouble, k);
                let mut buffers = Buffers { outputs: vec![(vec![7], vec![1, 2, 3, 4])] };
                let untouched = buffers.clone();
                let options = RunOptions {
                    pipeline,
                    events: Some(&saboteur),
                    cancel: Some(&saboteur.cancel),
                    ..Default::default()
                };
                let result = inputs.with_feeds(|feeds| executor.run(&fresh, feeds, &options, &mut buffers));
                let Some(hit) = saboteur.hit.into_inner().unwrap() else {
                    result.unwrap();
                    break;
                };
                let context = format!("{pipeline:?} {side:?} {trouble:?} at step {k}, node {hit:?}");
                match result {
                    // The last node of all may be past the last check when the flag is set.
                    Ok(()) => assert_eq!(trouble, Trouble::Cancel, "{context}"),
                    Err(error) => {
                        let text = error.to_string();
                        match trouble {
                            Trouble::Cancel => {
                                assert!(matches!(error, RunError::Cancelled { .. }), "{context}: {text}")
                            }
                            _ => assert!(text.contains(&hit) && text.contains("injected"), "{context}: {text}"),
                        }
                        assert_eq!(buffers, untouched, "{context}: the caller's buffers");
                    }
                }
                // The same session answers right after its failure, and so does one that had run before.
                assert_eq!(run(&executor, &fresh, &inputs, &RunOptions::default()).unwrap(), expected, "{context}");
                assert_eq!(run(&executor, &prepared, &inputs, &RunOptions::default()).unwrap(), expected, "{context}");
                hits.insert(hit);
                k += 1;
            }
            assert!(hits.len() >= 30, "{pipeline:?} {side:?} {trouble:?}: {} nodes were hit", hits.len());
        }
    }
}

#[test]
fn trouble_in_a_replay_leaves_it_replayable() {
    quiet_panics();
    let graph = sixty_nodes();
    let inputs = Inputs::new(3, false, 3);
    let executor = cpu(1);
    let prepared = prepare(&executor, &graph);
    let expected = run(&executor, &prepared, &inputs, &RunOptions::default()).unwrap();
    let compiled = prepared.n_compiled();
    for trouble in [Trouble::Error, Trouble::Panic, Trouble::Cancel] {
        for k in 0.. {
            let saboteur = Saboteur::new(Side::Executor, trouble, k);
            let options = RunOptions { events: Some(&saboteur), cancel: Some(&saboteur.cancel), ..Default::default() };
            let result = run(&executor, &prepared, &inputs, &options);
            if saboteur.hit.into_inner().unwrap().is_none() {
                assert_eq!(result.unwrap(), expected);
                break;
            }
            assert!(result.is_err() || trouble == Trouble::Cancel, "{trouble:?} at step {k}");
            assert_eq!(run(&executor, &prepared, &inputs, &RunOptions::default()).unwrap(), expected);
        }
    }
    assert_eq!(prepared.n_compiled(), compiled, "nothing was compiled again");
}

/// Passes the deadline at the k-th step by waiting for it.
struct Sleeper {
    k: usize,
    seen: AtomicUsize,
    deadline: Instant,
}

impl EventSink for Sleeper {
    fn event(&self, event: &Event<'_>) -> Result<(), String> {
        if let Event::Running { .. } = event
            && self.seen.fetch_add(1, Ordering::SeqCst) == self.k
        {
            while Instant::now() < self.deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }
}

#[test]
fn a_missed_deadline_ends_the_run_and_the_next_one_is_right() {
    let graph = sixty_nodes();
    let inputs = Inputs::new(3, true, 2);
    let executor = cpu(2);
    let prepared = prepare(&executor, &graph);
    let expected = run(&executor, &prepared, &inputs, &RunOptions::default()).unwrap();
    for (pipeline, fresh) in [(Pipeline::Inline, true), (Pipeline::On, true), (Pipeline::Inline, false)] {
        for k in 0..40 {
            let own = if fresh { prepare(&executor, &graph) } else { prepared.clone() };
            let deadline = Instant::now() + Duration::from_millis(5);
            let sleeper = Sleeper { k, seen: AtomicUsize::new(0), deadline };
            let options =
                RunOptions { pipeline, events: Some(&sleeper), deadline: Some(deadline), ..Default::default() };
            match run(&executor, &own, &inputs, &options) {
                Ok(got) => assert_eq!(got, expected),
                Err(error) => assert!(matches!(error, RunError::DeadlineExceeded { .. }), "{error}"),
            }
            assert_eq!(run(&executor, &own, &inputs, &RunOptions::default()).unwrap(), expected);
        }
    }
    let past = RunOptions { deadline: Some(Instant::now()), ..Default::default() };
    let error = run(&executor, &prepared, &inputs, &past).unwrap_err();
    assert!(matches!(error, RunError::DeadlineExceeded { .. }), "{error}");
}

#[test]
fn a_device_that_fails_at_any_call_is_an_error_and_the_next_run_is_right() {
    quiet_panics();
    let graph = sixty_nodes();
    let inputs = Inputs::new(3, true, 2);
    for pipeline in [Pipeline::Inline, Pipeline::On] {
        let (executor, device) = sim(2);
        let expected = run(&executor, &prepare(&executor, &graph), &inputs, &RunOptions::default()).unwrap();
        for call in [SimCall::Allocate, SimCall::Upload, SimCall::Download, SimCall::Copy, SimCall::Launch] {
            let mut n = 0;
            loop {
                let prepared = prepare(&executor, &graph);
                device.fail_nth(call, n, "injected");
                let options = RunOptions { pipeline, ..Default::default() };
                let result = run(&executor, &prepared, &inputs, &options);
                device.clear_faults();
                let held = device.counters().used_bytes;
                match result {
                    Ok(got) => {
                        assert_eq!(got, expected);
                        break;
                    }
                    Err(error) => assert!(error.to_string().contains("injected"), "{call:?} {n}: {error}"),
                }
                assert_eq!(run(&executor, &prepared, &inputs, &options).unwrap(), expected);
                drop(prepared);
                assert!(device.counters().used_bytes <= held, "{call:?} {n}: device memory is given back");
                n += 1;
            }
            assert!(n > 3, "{call:?} was never failed");
        }
        assert_eq!(device.counters().used_bytes, 0, "all device memory is given back");
    }
}
