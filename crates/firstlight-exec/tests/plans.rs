//! Plans: the segment tree, replays, plan classes, the StorageCache, persistent outputs.

mod common;

use common::{Inputs, answer, assert_close, cpu, cpu_with_limit, prepare, run, sim, sixty_nodes};
use firstlight_exec::{
    PersistentOutputs, Pipeline, PrepareOptions, RealizeRequest, Realized, RunError, RunOptions, StorageCache,
};
use firstlight_graph::{Graph, Spec, ValueId, ops};
use firstlight_tensor::{DType, Dim, SymShape, Tensor};
use std::sync::Arc;

#[test]
fn sixty_nodes_agree_on_both_devices_in_every_way_of_running() {
    let graph = sixty_nodes();
    for threads in [1, 2, 4] {
        for pipeline in [Pipeline::Inline, Pipeline::On] {
            let executor = cpu(threads);
            let prepared = prepare(&executor, &graph);
            let options = RunOptions { pipeline, ..Default::default() };
            for (rows, flag, trips) in [(3, true, 2), (3, false, 5), (5, true, 0), (3, true, 2), (1, false, 1)] {
                let inputs = Inputs::new(rows, flag, trips);
                let first = run(&executor, &prepared, &inputs, &options).unwrap();
                assert_close(&first, &answer(&inputs), 1e-5);
                assert_eq!(
                    first,
                    run(&executor, &prepared, &inputs, &options).unwrap(),
                    "a replay gives the same bits"
                );
            }
        }
    }
}

#[test]
fn the_same_bits_whatever_the_threads_and_the_pipeline() {
    let graph = sixty_nodes();
    let inputs = Inputs::new(7, true, 3);
    let mut seen = None;
    for threads in [1, 2, 4] {
        for pipeline in [Pipeline::Inline, Pipeline::On] {
            let executor = cpu(threads);
            let prepared = prepare(&executor, &graph);
            for _ in 0..20 {
                let options = RunOptions { pipeline, ..Default::default() };
                let got = run(&executor, &prepared, &inputs, &options).unwrap();
                assert_eq!(*seen.get_or_insert(got.clone()), got, "{threads} threads, {pipeline:?}");
            }
        }
    }
}

#[test]
fn known_segments_are_replayed_and_new_keys_compile_only_what_is_new() {
    let executor = cpu(1);
    let graph = sixty_nodes();
    let prepared = prepare(&executor, &graph);
    let compiled = |inputs: &Inputs| {
        let before = prepared.n_compiled();
        run(&executor, &prepared, inputs, &RunOptions::default()).unwrap();
        prepared.n_compiled() - before
    };
    let all = compiled(&Inputs::new(3, true, 2));
    assert!(all >= 25, "{all}");
    assert_eq!(compiled(&Inputs::new(3, true, 2)), 0, "a replay compiles nothing");
    let arm = compiled(&Inputs::new(3, false, 2));
    assert!(arm > 0 && arm < all, "the other arm shares what comes before it: {arm} of {all}");
    assert_eq!(compiled(&Inputs::new(3, false, 2)), 0);
    // The specs of the loop's scanned output change with the trip count, and nothing before it.
    let trips = compiled(&Inputs::new(3, true, 4));
    assert!(trips > 0 && trips < arm + 12, "{trips}");
    assert_eq!(compiled(&Inputs::new(3, true, 4)), 0);
    assert_eq!(compiled(&Inputs::new(4, true, 2)), all, "another plan class compiles all");
    assert_eq!(prepared.n_plans(), 2);
}

fn add_const() -> (Arc<Graph>, ValueId, ValueId, ValueId) {
    let mut graph = Graph::new("add");
    let dims = SymShape(vec![Dim::Unknown]);
    let x = graph.input("x", Spec { dtype: DType::F32, dims: Some(dims) }, None);
    let c = graph.constant("c", Tensor::from_slice([2], &[10f32, 20.]).unwrap());
    let y = graph.op(ops::Add.into(), &[x, c]).unwrap();
    graph.output("y", y).unwrap();
    (Arc::new(graph), x, c, y)
}

#[test]
fn a_fed_constant_is_adopted_and_is_its_own_result() {
    let (graph, x, c, y) = add_const();
    let executor = cpu(1);
    let floats = |values: &[f32]| Realized::from_tensor(&Tensor::from_slice([values.len()], values).unwrap());
    let mut inputs = StorageCache::new();
    inputs.insert(x, floats(&[1., 2.]));
    let sum = |cache: &StorageCache| cache.get(y).unwrap().to_tensor().unwrap().values::<f32>().unwrap().to_vec();
    assert_eq!(sum(&executor.realize(&graph, &[y], &inputs).unwrap()), [11., 22.]);
    let fed = floats(&[100., 200.]);
    inputs.insert(c, fed.clone());
    for _ in 0..2 {
        let out = executor.realize(&graph, &[y, c], &inputs).unwrap();
        assert_eq!(sum(&out), [101., 202.]);
        assert!(Arc::ptr_eq(&out.get(c).unwrap().storage, &fed.storage));
    }
    inputs.insert(c, floats(&[0., 0.]));
    assert_eq!(sum(&executor.realize(&graph, &[y], &inputs).unwrap()), [1., 2.], "another storage, another plan");
}

#[test]
fn wrong_inputs_are_named() {
    let (graph, x, _, y) = add_const();
    let executor = cpu(1);
    let missing = executor.realize(&graph, &[y], &StorageCache::new()).unwrap_err();
    assert!(matches!(&missing, RunError::Input { name, .. } if name == "x"), "{missing}");
    let mut inputs = StorageCache::new();
    inputs.insert(x, Realized::from_tensor(&Tensor::from_slice([2], &[1i64, 2]).unwrap()));
    let dtype = executor.realize(&graph, &[y], &inputs).unwrap_err();
    assert_eq!(dtype.to_string(), "input \"x\": expected f32[?], got i64[2]");
    inputs.insert(x, Realized::from_tensor(&Tensor::from_slice([3], &[1f32, 2., 3.]).unwrap()));
    let shapes = executor.realize(&graph, &[y], &inputs).unwrap_err().to_string();
    assert!(shapes.contains("Add") && shapes.contains("f32[3]") && shapes.contains("f32[2]"), "{shapes}");
}

#[test]
fn persistent_outputs_record_then_reuse() {
    let (graph, x, _, y) = add_const();
    let executor = cpu(1);
    let config = executor.config();
    let mut own = PersistentOutputs::new(config.device.clone(), config.budget.clone());
    let realize = |values: &[f32], own: &mut PersistentOutputs| {
        let mut inputs = StorageCache::new();
        inputs.insert(x, Realized::from_tensor(&Tensor::from_slice([values.len()], values).unwrap()));
        executor.realize_with(RealizeRequest {
            graph: &graph,
            targets: &[y],
            inputs: &inputs,
            prepare: PrepareOptions { keep_all: true, ..Default::default() },
            options: RunOptions::default(),
            persistent: Some(own),
        })
    };
    realize(&[1., 2.], &mut own).unwrap();
    let (bytes, outputs, steps) = (own.n_bytes(), own.n_outputs(), own.captured().n_steps());
    assert_eq!((outputs, steps), (1, 1));
    realize(&[3., 4.], &mut own).unwrap();
    assert_eq!((own.n_bytes(), own.n_outputs(), own.captured().n_steps()), (bytes, outputs, steps), "reused");
    let (spec, held) = own.read("Add_2", 0).unwrap();
    assert_eq!(spec.to_string(), "f32[2]");
    assert_eq!(held, [13f32, 24.].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>());
    let other = realize(&[1.], &mut own).unwrap_err();
    assert!(matches!(other, RunError::Persistent(_)), "another plan class is refused: {other}");
    assert!(own.read("nothing", 0).is_err());
}

#[test]
fn copies_to_the_simulated_device_are_counted() {
    let (executor, device) = sim(1);
    let graph = sixty_nodes();
    let prepared = prepare(&executor, &graph);
    let inputs = Inputs::new(3, true, 2);
    run(&executor, &prepared, &inputs, &RunOptions::default()).unwrap();
    let before = device.counters();
    run(&executor, &prepared, &inputs, &RunOptions::default()).unwrap();
    let after = device.counters();
    assert_eq!(after.n_allocations, before.n_allocations, "a replay allocates nothing on the device");
    // Three inputs, and the condition of each iteration; nobody reads the iteration number.
    assert_eq!(after.n_uploads - before.n_uploads, 3 + 2, "{after:?}");
}

#[test]
fn a_memory_limit_refuses_with_a_figure_and_is_kept() {
    let graph = sixty_nodes();
    let inputs = Inputs::new(2000, true, 3);
    let free = cpu(1);
    run(&free, &prepare(&free, &graph), &inputs, &RunOptions::default()).unwrap();
    let peak = free.config().budget.peak();
    let tight = cpu_with_limit(1, Some(peak * 9 / 10));
    let refused = run(&tight, &prepare(&tight, &graph), &inputs, &RunOptions::default()).unwrap_err();
    assert!(refused.is_over_budget() && refused.to_string().contains("raise the limit to"), "{refused}");
    assert!(tight.config().budget.peak() <= peak * 9 / 10);
    let roomy = cpu_with_limit(1, Some(peak * 11 / 10));
    run(&roomy, &prepare(&roomy, &graph), &inputs, &RunOptions::default()).unwrap();
    assert!(roomy.config().budget.peak() <= peak * 11 / 10);
}

#[test]
fn at_the_limit_concurrent_runs_take_turns() {
    let graph = sixty_nodes();
    let inputs = Inputs::new(500, true, 2);
    let free = cpu(1);
    let expected = run(&free, &prepare(&free, &graph), &inputs, &RunOptions::default()).unwrap();
    let executor = cpu_with_limit(1, Some(free.config().budget.peak() * 3 / 2));
    let prepared = prepare(&executor, &graph);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..10 {
                    assert_eq!(run(&executor, &prepared, &inputs, &RunOptions::default()).unwrap(), expected);
                }
            });
        }
    });
}

#[test]
fn eight_threads_with_differing_shapes_are_all_right() {
    let graph = sixty_nodes();
    let executor = cpu(2);
    let prepared = prepare(&executor, &graph);
    std::thread::scope(|scope| {
        for thread in 0..8usize {
            let (executor, prepared) = (&executor, &prepared);
            scope.spawn(move || {
                for i in 0..60usize {
                    let inputs = Inputs::new(1 + (thread + i) % 3, i % 2 == 0, (i % 4) as i64);
                    let got = run(executor, prepared, &inputs, &RunOptions::default()).unwrap();
                    if i < 12 {
                        assert_close(&got, &answer(&inputs), 1e-5);
                    }
                }
            });
        }
    });
}

#[test]
fn values_that_differ_in_every_run_do_not_fill_memory() {
    let executor = cpu(1);
    let graph = sixty_nodes();
    let prepared = prepare(&executor, &graph);
    let used_after = |trips: std::ops::Range<i64>| {
        for trips in trips {
            run(&executor, &prepared, &Inputs::new(3, true, trips), &RunOptions::default()).unwrap();
        }
        executor.config().budget.used()
    };
    let few = used_after(0..20);
    let many = used_after(20..400);
    assert!(many <= few * 2, "{few} bytes after 20 trip counts, {many} after 400");
}
