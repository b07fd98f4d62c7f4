//! The pipeline is real: the first step runs while later nodes are still to be compiled, and the compiler is ahead of
//! the executor. Proven by who waits for whom; no clock decides.

mod common;

use common::{Inputs, prepare_as_is, run, sim, sixty_nodes};
use firstlight_exec::{Event, EventSink, Pipeline, RunOptions};
use firstlight_graph::{Graph, Spec, ops};
use firstlight_tensor::DType;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Notes the order of events; holds one of them back until another has been seen.
#[derive(Default)]
struct Gate {
    log: Mutex<Vec<String>>,
    changed: Condvar,
    hold: String,
    until: String,
}

impl EventSink for Gate {
    fn event(&self, event: &Event<'_>) -> Result<(), String> {
        let name = match event {
            Event::Compiling { node, .. } => format!("compiling {node}"),
            Event::Compiled { node, .. } => format!("compiled {node}"),
            Event::Running { node, .. } => format!("running {node}"),
            Event::Ran { node, .. } => format!("ran {node}"),
            _ => return Ok(()),
        };
        let mut log = self.log.lock().unwrap();
        if name == self.hold {
            // Bounded, so that a run without a pipeline fails instead of hanging.
            let waited =
                self.changed.wait_timeout_while(log, Duration::from_secs(20), |log| !log.contains(&self.until));
            let (held, timeout) = waited.unwrap();
            if timeout.timed_out() {
                return Err(format!("{} did not happen before {}", self.until, self.hold));
            }
            log = held;
        }
        log.push(name);
        self.changed.notify_all();
        Ok(())
    }
}

fn chain(n: usize) -> Arc<Graph> {
    let mut graph = Graph::new("chain");
    let x = graph.input("x", Spec::known(DType::F32, &[16]), None);
    let mut v = x;
    for i in 0..n {
        let id = graph.push(format!("n{i}"), ops::Sigmoid.into(), &[Some(v)], &[&format!("v{i}")]).unwrap();
        v = id.into();
    }
    graph.output("y", v).unwrap();
    Arc::new(graph)
}

fn run_chain(graph: &Arc<Graph>, gate: &Gate) -> Vec<String> {
    let (executor, _) = sim(2);
    let prepared = prepare_as_is(&executor, graph);
    let bytes = [0u8; 64];
    let feed = firstlight_exec::Feed { dtype: DType::F32, dims: &[16], bytes: &bytes };
    let options = RunOptions { pipeline: Pipeline::On, events: Some(gate), ..Default::default() };
    executor.run(&prepared, &[Some(feed)], &options, &mut common::Buffers::default()).unwrap();
    gate.log.lock().unwrap().clone()
}

fn at(log: &[String], event: &str) -> usize {
    log.iter().position(|entry| entry == event).unwrap_or_else(|| panic!("{event} is missing"))
}

#[test]
fn the_first_step_runs_while_the_compiler_is_still_slow_at_the_last_node() {
    let gate = Gate { hold: "compiling n29".into(), until: "ran n0".into(), ..Default::default() };
    let log = run_chain(&chain(30), &gate);
    assert!(at(&log, "ran n0") < at(&log, "compiling n29"));
    assert!(at(&log, "compiled n29") < at(&log, "running n29"));
}

#[test]
fn the_last_node_is_compiled_while_the_executor_is_still_slow_at_the_first() {
    let gate = Gate { hold: "ran n0".into(), until: "compiled n29".into(), ..Default::default() };
    let log = run_chain(&chain(30), &gate);
    assert!(at(&log, "compiled n29") < at(&log, "ran n0"));
}

#[test]
fn the_compiler_is_held_back_by_the_channel() {
    // With the executor held at its first step, at most the channel's items are compiled ahead.
    let gate = Gate { hold: "ran n0".into(), until: "compiled n40".into(), ..Default::default() };
    let log = run_chain(&chain(300), &gate);
    let ahead = log[..at(&log, "ran n0")].iter().filter(|entry| entry.starts_with("compiled")).count();
    assert!((40..=70).contains(&ahead), "{ahead}");
}

#[test]
fn steps_run_in_the_order_in_which_they_were_compiled() {
    struct Log(Mutex<(Vec<String>, Vec<String>)>);
    impl EventSink for Log {
        fn event(&self, event: &Event<'_>) -> Result<(), String> {
            let mut log = self.0.lock().unwrap();
            match event {
                Event::Compiled { node, .. } => log.0.push((*node).to_owned()),
                Event::Running { node, .. } => log.1.push((*node).to_owned()),
                _ => {}
            }
            Ok(())
        }
    }
    let (executor, _) = sim(2);
    let graph = chain(100);
    let prepared = prepare_as_is(&executor, &graph);
    let bytes = [0u8; 64];
    let log = Log(Mutex::default());
    let feed = firstlight_exec::Feed { dtype: DType::F32, dims: &[16], bytes: &bytes };
    let options = RunOptions { pipeline: Pipeline::On, events: Some(&log), ..Default::default() };
    executor.run(&prepared, &[Some(feed)], &options, &mut common::Buffers::default()).unwrap();
    let (compiled, ran) = log.0.into_inner().unwrap();
    assert_eq!((compiled.len(), compiled), (100, ran));
}

#[test]
fn an_awaited_value_holds_the_compiler_and_nothing_else() {
    let (executor, _) = sim(2);
    let graph = sixty_nodes();
    let prepared = prepare_as_is(&executor, &graph);
    let gate = Gate::default();
    let options = RunOptions { pipeline: Pipeline::On, events: Some(&gate), ..Default::default() };
    run(&executor, &prepared, &Inputs::new(3, true, 2), &options).unwrap();
    let log = gate.log.into_inner().unwrap();
    let non_zero = log.iter().find(|entry| entry.starts_with("ran NonZero")).cloned().unwrap();
    let behind = log.iter().find(|entry| entry.starts_with("compiling Cast") || entry.starts_with("compiled Cast"));
    assert!(behind.is_none_or(|behind| at(&log, &non_zero) < at(&log, behind)), "{log:?}");
}
