//! A replay allocates nothing.

mod common;

use firstlight::{Session, TensorBuf, TensorRef};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static N_ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator as it came; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        N_ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`, which is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above; what is given back came from `alloc` above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations_of(body: impl FnOnce()) -> usize {
    let before = N_ALLOCATIONS.with(Cell::get);
    body();
    N_ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn what_is_allocated_is_counted() {
    assert!(allocations_of(|| drop(std::hint::black_box(vec![1u8; 100]))) > 0);
}

#[test]
fn a_replay_through_a_binding_allocates_nothing() {
    let session = Session::builder().threads(1).load_bytes(common::adds(30)).unwrap();
    let mut binding = session.bind();
    for n in [3, 1, 2] {
        binding.input::<f32>("x", &[n, 16]).unwrap().fill(1.0);
        binding.run().unwrap();
    }
    for n in [1, 2, 3, 1, 3] {
        let count = allocations_of(|| {
            binding.input::<f32>("x", &[n, 16]).unwrap().fill(2.0);
            binding.run().unwrap();
            assert_eq!(binding.output("y").unwrap().values::<f32>().unwrap()[0], 32.0);
        });
        assert_eq!(count, 0, "batch {n}");
    }
}

#[test]
fn a_replay_into_the_callers_buffers_allocates_nothing() {
    let session = Session::builder().threads(2).load_bytes(common::adds(30)).unwrap();
    let mut outputs = [TensorBuf::new()];
    let x = [1f32; 32];
    let mut run = || session.run_into(&[("x", TensorRef::new(&[2, 16], &x))], &mut outputs).unwrap();
    run();
    run();
    assert_eq!(allocations_of(&mut run), 0);
    assert_eq!(outputs[0].values::<f32>().unwrap(), [31.0; 32]);
}
