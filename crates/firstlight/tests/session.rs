//! The door from outside: what a session says and does.

mod common;

use common::{D, F32, Model, Weight};
use firstlight::{
    CancelToken, ErrorKind, Event, EventSink, Pipeline, Readiness, RunOptions, Runtime, Session, Tensor, TensorBuf,
    TensorRef,
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn floats(dims: &[usize], value: f32) -> Tensor {
    Tensor::from_slice(dims, &vec![value; dims.iter().product()]).unwrap()
}

fn session(model: Vec<u8>) -> Session {
    Session::builder().load_bytes(model).unwrap()
}

fn is_send_and_sync<T: Send + Sync>() {}

#[test]
fn a_session_tells_its_inputs_and_outputs() {
    is_send_and_sync::<Session>();
    is_send_and_sync::<Runtime>();
    is_send_and_sync::<firstlight::Error>();
    let session = session(common::add_relu());
    assert_eq!(session.inputs()[0].to_string(), "x f32[N,4]");
    assert_eq!(session.outputs()[0].to_string(), "y f32[..]");
    assert!(session.warnings().is_empty());
    assert_eq!(session.metadata().opsets, [(String::new(), 17)]);
    assert!(session.graph().to_string().contains("Add(%"));
}

#[test]
fn inputs_go_by_name_or_by_position_and_outputs_come_by_both() {
    let session = session(common::add_relu());
    let x = floats(&[1, 4], 1.0);
    let by_name = session.run([("x", &x)]).unwrap();
    assert_eq!(by_name["y"].values::<f32>().unwrap()[..], [2., 0., 4., 0.]);
    let by_position = session.run_positional(std::slice::from_ref(&x)).unwrap();
    assert_eq!(by_name[0], by_position[0]);
    assert_eq!(by_name.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["y"]);
    assert!(by_name.get("z").is_none());
    let error = session.run_positional(&[x.clone(), x]).unwrap_err();
    assert_eq!(error.to_string(), "2 inputs are given by position, the model asks for 1");
    let map = std::collections::HashMap::from([("x".to_owned(), floats(&[2, 4], 0.0))]);
    assert_eq!(&session.run(&map).unwrap()[0].shape()[..], [2, 4]);
}

#[test]
fn a_default_is_used_and_can_be_overridden() {
    let model = Model::new("g")
        .input("x", F32, &[D::N(2)])
        .input("w", F32, &[D::N(2)])
        .weight(&Weight::f32("w", &[2], &[10., 20.]))
        .node("Add", "add", &["x", "w"], &["y"])
        .output("y", F32);
    let session = session(model.finish());
    assert!(session.inputs()[1].is_optional && !session.inputs()[0].is_optional);
    let x = floats(&[2], 1.0);
    assert_eq!(session.run([("x", &x)]).unwrap()[0].values::<f32>().unwrap()[..], [11., 21.]);
    let both = session.run([("x", &x), ("w", &x)]).unwrap();
    assert_eq!(both[0].values::<f32>().unwrap()[..], [2., 2.]);
    assert_eq!(session.run_positional(&[x]).unwrap()[0].values::<f32>().unwrap()[..], [11., 21.]);
}

#[test]
fn outputs_can_be_chosen_and_intermediates_kept() {
    let load = |builder: firstlight::SessionBuilder| builder.load_bytes(common::add_relu());
    let kept = load(Session::builder().keep_intermediates(["sum"])).unwrap();
    let outputs = kept.run([("x", floats(&[1, 4], 0.0))]).unwrap();
    assert_eq!(outputs.len(), 2);
    assert_eq!(outputs["sum"].values::<f32>().unwrap()[..], [1., -2., 3., -4.]);
    let chosen = load(Session::builder().outputs(["sum", "w"])).unwrap();
    let outputs = chosen.run([("x", floats(&[1, 4], 0.0))]).unwrap();
    assert_eq!(outputs.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["sum", "w"]);
    assert_eq!(outputs["w"].values::<f32>().unwrap()[..], [1., -2., 3., -4.]);
    let error = load(Session::builder().outputs(["none"])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(error.to_string(), "the graph has no value \"none\"; the model's outputs are [\"y\"]");
}

#[test]
fn the_same_bits_whatever_the_options() {
    let x = floats(&[3, 16], 0.1);
    let mut answers = vec![];
    for threads in [1, 2, 4] {
        for pipeline in [Pipeline::Inline, Pipeline::On, Pipeline::Auto] {
            for passes in [true, false] {
                let builder = Session::builder().threads(threads).pipeline(pipeline).passes(passes);
                let session = builder.load_bytes(common::adds(40)).unwrap();
                for _ in 0..3 {
                    answers.push(session.run([("x", &x)]).unwrap()[0].clone());
                }
                assert_eq!(session.stats().plans, 1);
            }
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}

#[test]
fn eight_threads_run_one_session_with_differing_shapes() {
    let session = Session::builder().threads(2).load_bytes(common::adds(30)).unwrap();
    std::thread::scope(|scope| {
        for t in 0..8usize {
            let session = &session;
            scope.spawn(move || {
                let mut binding = session.bind();
                for i in 0..50 {
                    let n = 1 + (t + i) % 5;
                    let value = (t * 100 + i) as f32;
                    if i % 2 == 0 {
                        let outputs = session.run([("x", floats(&[n, 16], value))]).unwrap();
                        assert_eq!(outputs[0], floats(&[n, 16], value + 30.0), "thread {t} run {i}");
                    } else {
                        binding.input::<f32>("x", &[n, 16]).unwrap().fill(value);
                        binding.run().unwrap();
                        let got = binding.output("y").unwrap().to_tensor().unwrap();
                        assert_eq!(got, floats(&[n, 16], value + 30.0), "thread {t} run {i}");
                    }
                }
            });
        }
    });
    assert_eq!(session.stats().plans, 5);
}

#[test]
fn run_into_fills_the_callers_buffers_and_leaves_them_alone_when_it_fails() {
    let session = session(common::add_relu());
    let mut outputs = [TensorBuf::new()];
    session.run_into(&[("x", TensorRef::new(&[1, 4], &[1f32; 4]))], &mut outputs).unwrap();
    assert_eq!(outputs[0].values::<f32>().unwrap(), [2., 0., 4., 0.]);
    let before = outputs[0].clone();
    let wrong = session.run_into(&[("x", TensorRef::new(&[1, 4], &[1f32; 3]))], &mut outputs).unwrap_err();
    assert_eq!(wrong.to_string(), "input \"x\": its shape takes 16 bytes, got 12");
    let token = CancelToken::new();
    token.cancel();
    let mut binding = session.bind();
    binding.set("x", floats(&[1, 4], 1.0)).unwrap();
    binding.run().unwrap();
    binding.set("x", floats(&[1, 4], 7.0)).unwrap();
    let options = RunOptions { cancel: Some(&token), ..RunOptions::default() };
    assert_eq!(binding.run_with(&options).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(binding.outputs()[0].as_bytes(), before.as_bytes());
    assert_eq!(outputs[0].as_bytes(), before.as_bytes());
    assert!(session.run_into(&[], &mut []).unwrap_err().to_string().contains("0 buffers are given for 1 outputs"));
    binding.clear("x").unwrap();
    assert_eq!(binding.run().unwrap_err().kind(), ErrorKind::Input);
    assert!(binding.output("q").is_err() && binding.set("q", floats(&[1], 0.0)).is_err());
}

#[test]
fn a_run_obeys_cancel_and_deadline_and_the_next_one_works() {
    // As it is written, so that the first node keeps its name.
    let session = Session::builder().passes(false).load_bytes(common::adds(30)).unwrap();
    let x = floats(&[1, 16], 0.0);
    let token = CancelToken::new();
    token.cancel();
    let cancelled = RunOptions { cancel: Some(&token), ..RunOptions::default() };
    let error = session.run_with([("x", &x)], &cancelled).unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Cancelled, Some("add0")));
    let past = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
    let late = RunOptions { deadline: Some(past), ..RunOptions::default() };
    assert_eq!(session.run_with([("x", &x)], &late).unwrap_err().kind(), ErrorKind::DeadlineExceeded);
    assert_eq!(session.run([("x", &x)]).unwrap()[0], floats(&[1, 16], 30.0));
}

#[derive(Default)]
struct Seen {
    events: Mutex<Vec<String>>,
    refuse: Option<&'static str>,
}

impl EventSink for Seen {
    fn event(&self, event: &Event<'_>) -> Result<(), String> {
        let text = match event {
            Event::Compiled { node, .. } => format!("compiled {node}"),
            Event::Ran { node, .. } => format!("ran {node}"),
            Event::Running { node, .. } if self.refuse == Some(node) => return Err("refused".into()),
            Event::FirstAnswer => "first answer".into(),
            _ => return Ok(()),
        };
        self.events.lock().unwrap().push(text);
        Ok(())
    }
}

#[test]
fn events_tell_what_happens_and_a_refusal_names_the_node() {
    let session = Session::builder().passes(false).pipeline(Pipeline::Inline).load_bytes(common::add_relu()).unwrap();
    let x = floats(&[1, 4], 0.0);
    let refusing = Seen { refuse: Some("relu"), ..Seen::default() };
    let options = RunOptions { events: Some(&refusing), ..RunOptions::default() };
    let error = session.run_with([("x", &x)], &options).unwrap_err();
    assert_eq!((error.node(), error.op()), (Some("relu"), Some("Relu")));
    assert!(error.to_string().contains("refused") && error.to_string().contains("f32[1,4]"), "{error}");
    let seen = Seen::default();
    let options = RunOptions { events: Some(&seen), ..RunOptions::default() };
    session.run_with([("x", &x)], &options).unwrap();
    let first = std::mem::take(&mut *seen.events.lock().unwrap());
    assert_eq!(first, ["compiled add", "ran add", "compiled relu", "ran relu", "first answer"]);
    session.run_with([("x", &x)], &options).unwrap();
    assert_eq!(*seen.events.lock().unwrap(), ["ran add", "ran relu"]);
}

#[test]
fn a_memory_limit_refuses_and_is_kept() {
    let big = floats(&[4096, 16], 1.0);
    let open = |limit| Session::builder().memory_limit(limit).load_bytes(common::adds(30));
    let free = open(usize::MAX >> 1).unwrap();
    free.run([("x", &big)]).unwrap();
    let peak = free.stats().owned_peak_bytes;
    assert!(peak >= 4096 * 16 * 4, "{peak}");
    let tight = open(peak + peak / 10).unwrap();
    tight.run([("x", &big)]).unwrap();
    assert!(tight.stats().owned_peak_bytes <= peak + peak / 10);
    let small = open(peak - peak / 10).unwrap();
    let error = small.run([("x", &big)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Memory);
    assert!(error.to_string().contains(&format!("memory limit of {} bytes", peak - peak / 10)), "{error}");
    assert!(small.stats().owned_peak_bytes <= peak - peak / 10);
    small.run([("x", floats(&[1, 16], 1.0))]).unwrap();
    let error = open(10).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Memory);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let runtime = Runtime::builder().threads(1).memory_limit(1 << 20).build().unwrap();
    let both = Session::builder().runtime(&runtime).threads(2).load_bytes(common::add_relu());
    assert_eq!(both.unwrap_err().kind(), ErrorKind::Usage);
    let both = Session::builder().runtime(&runtime).memory_limit(1).load_bytes(common::add_relu());
    assert_eq!(both.unwrap_err().kind(), ErrorKind::Usage);
    let error = Runtime::builder().threads(100_000).build().unwrap_err();
    assert!(error.to_string().contains("100000"), "{error}");
    let first = Session::builder().runtime(&runtime).load_bytes(common::add_relu()).unwrap();
    let second = Session::builder().runtime(&runtime).load_bytes(common::adds(3)).unwrap();
    first.run([("x", floats(&[1, 4], 0.0))]).unwrap();
    let after_first = runtime.owned_bytes().unwrap();
    second.run([("x", floats(&[1, 16], 0.0))]).unwrap();
    assert!(runtime.owned_bytes().unwrap() > after_first && after_first > 0);
}

#[test]
fn sessions_give_back_what_they_own() {
    let runtime = Runtime::builder().threads(1).memory_limit(1 << 20).build().unwrap();
    for _ in 0..20 {
        let session = Session::builder().runtime(&runtime).load_bytes(common::add_relu()).unwrap();
        session.run([("x", floats(&[3, 4], 0.0))]).unwrap();
        let failed = session.run([("x", floats(&[3, 4], 0.0)), ("q", floats(&[1], 0.0))]);
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Input);
    }
    assert_eq!(runtime.owned_bytes(), Some(0));
}

#[derive(Default)]
struct Stages(Mutex<Vec<String>>);

impl EventSink for Stages {
    fn event(&self, event: &Event<'_>) -> Result<(), String> {
        let text = match event {
            Event::Loading(stage) => format!("{stage:?}"),
            Event::Compiling { progress, .. } => format!("compiling {}/{}", progress.index, progress.of),
            Event::Ran { progress, .. } => format!("ran {}/{}", progress.index, progress.of),
            Event::FirstAnswer => "first answer".into(),
            Event::Settled => "settled".into(),
            _ => return Ok(()),
        };
        self.0.lock().unwrap().push(text);
        Ok(())
    }
}

#[test]
fn loading_and_runs_say_how_far_they_are_and_readiness_follows() {
    let sink = Arc::new(Stages::default());
    let builder = Session::builder().threads(1).passes(false).events(sink.clone());
    let session = builder.load_bytes(common::adds(2)).unwrap();
    let take = || std::mem::take(&mut *sink.0.lock().unwrap());
    assert_eq!(take(), ["Parse", "Rewrite", "Done"]);
    assert_eq!(session.readiness(), Readiness::Loaded);
    let x = floats(&[1, 16], 0.0);
    session.run([("x", &x)]).unwrap();
    let ran: Vec<String> = take().into_iter().filter(|event| !event.starts_with("compiling 2/2")).collect();
    // What follows the last node is told as the last node.
    assert_eq!(ran, ["compiling 1/2", "ran 1/2", "ran 2/2", "first answer"]);
    assert_eq!(session.readiness(), Readiness::Answers);
    session.run([("x", &x)]).unwrap();
    assert_eq!(take(), ["ran 1/2", "ran 2/2", "settled"]);
    session.run([("x", &x)]).unwrap();
    assert_eq!((take().len(), session.readiness()), (2, Readiness::Settled));
    session.run([("x", &floats(&[2, 16], 0.0))]).unwrap();
    assert_eq!(session.readiness(), Readiness::Answers, "other sizes start over");
}

#[test]
fn loading_obeys_cancel() {
    let token = CancelToken::new();
    let load = || Session::builder().cancel(&token).load_bytes(common::adds(3));
    load().unwrap();
    token.cancel();
    let error = load().unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Cancelled, Some("add0")));
}
