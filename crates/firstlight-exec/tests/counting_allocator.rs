//! A replay allocates nothing on the heap.

mod common;

use common::{Buffers, Inputs, cpu, prepare, sixty_nodes};
use firstlight_exec::{Feed, Pipeline, RunOptions};
use firstlight_graph::{Graph, Spec, ops};
use firstlight_tensor::{DType, Tensor};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static N_ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        N_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        N_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(start, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// One test, so that no other thread allocates meanwhile.
#[test]
fn replays_allocate_nothing() {
    for threads in [1, 2] {
        let executor = cpu(threads);
        let graph = sixty_nodes();
        let prepared = prepare(&executor, &graph);
        let mut buffers = Buffers::default();
        let known: Vec<Inputs> = [(3, true, 2), (3, false, 5), (5, true, 0), (3, true, 5), (5, false, 1)]
            .map(|(rows, flag, trips)| Inputs::new(rows, flag, trips))
            .into();
        let mut run = |inputs: &Inputs| {
            let options = RunOptions { pipeline: Pipeline::Auto, ..Default::default() };
            inputs.with_feeds(|feeds| executor.run(&prepared, feeds, &options, &mut buffers)).unwrap();
        };
        for _ in 0..3 {
            known.iter().for_each(&mut run);
        }
        let before = N_ALLOCATIONS.load(Ordering::SeqCst);
        for _ in 0..10 {
            known.iter().for_each(&mut run);
        }
        assert_eq!(N_ALLOCATIONS.load(Ordering::SeqCst) - before, 0, "{threads} threads, 60 nodes");
    }
    let mut graph = Graph::new("adds");
    let x = graph.input("x", Spec::known(DType::F32, &[16]), None);
    let c = graph.constant("c", Tensor::from_slice([16], &[1f32; 16]).unwrap());
    let mut v = x;
    for _ in 0..1000 {
        v = graph.op(ops::Add.into(), &[v, c]).unwrap();
    }
    graph.output("y", v).unwrap();
    let executor = cpu(1);
    let prepared = prepare(&executor, &Arc::new(graph));
    let mut buffers = Buffers::default();
    let bytes = [0u8; 64];
    let mut run = || {
        let feed = Some(Feed { dtype: DType::F32, dims: &[16], bytes: &bytes });
        executor.run(&prepared, &[feed], &RunOptions::default(), &mut buffers).unwrap();
    };
    (0..3).for_each(|_| run());
    let before = N_ALLOCATIONS.load(Ordering::SeqCst);
    (0..10).for_each(|_| run());
    assert_eq!(N_ALLOCATIONS.load(Ordering::SeqCst) - before, 0, "1,000 adds");
}
