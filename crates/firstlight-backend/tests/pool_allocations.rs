//! Parallel calls, jobs and channels allocate nothing once the pool is warm.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicUsize, Ordering};

use firstlight_backend::channel::BoundedChannel;
use firstlight_backend::pool::Pool;

/// The system's allocator, counting what the test's thread and the pool's workers ask for (the test harness has a thread too).
struct Counting;

static N_ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static COUNTED: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTED.get() {
            N_ALLOCATIONS.fetch_add(1, SeqCst);
        }
        // SAFETY: the caller's promise about `layout` is the one that the system's allocator needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above with this layout, so from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations_in(work: impl FnOnce()) -> usize {
    let before = N_ALLOCATIONS.load(SeqCst);
    work();
    N_ALLOCATIONS.load(SeqCst) - before
}

#[test]
fn a_warm_pool_allocates_nothing() {
    COUNTED.set(true);
    assert!(allocations_in(|| drop(std::hint::black_box(Box::new(1)))) > 0, "the counter counts");
    for threads in [1, 2, 4] {
        let pool = Pool::new(threads).expect("a pool");
        let sum = AtomicUsize::new(0);
        let add = |tile: usize| {
            sum.fetch_add(tile, Relaxed);
        };
        let channel = BoundedChannel::new(4, 100);
        let calls = |pool: &Pool, rounds: usize| {
            for _ in 0..rounds {
                pool.parallel_for(9, &add).expect("no panic");
                let run = pool.run_guard();
                run.wake();
                for _ in 0..20 {
                    pool.parallel_for(9, &add).expect("no panic");
                    pool.parallel_for_cost(9, 20_000, &add).expect("no panic");
                    pool.parallel_for_cost(9, 100_000, &add).expect("no panic");
                }
                let n_pushed = AtomicUsize::new(0);
                let mut job = || {
                    for item in 0..40usize {
                        channel.push(item, 1, pool).expect("open");
                        n_pushed.fetch_add(1, Ordering::Release);
                    }
                };
                let main = || {
                    for item in 0..40 {
                        assert_eq!(channel.pop(pool), Some(item));
                        pool.parallel_for(2, &add).expect("no panic");
                    }
                };
                if let Ok(((), ended)) = pool.try_with_job(&mut job, main) {
                    ended.expect("no panic");
                    assert_eq!(n_pushed.load(Acquire), 40);
                }
            }
        };
        // Threads start late and one after the other: each has to take one of these tiles for them to end.
        let started = AtomicUsize::new(0);
        let arrive = |_| {
            COUNTED.set(true);
            started.fetch_add(1, SeqCst);
            while started.load(SeqCst) < threads {
                std::thread::yield_now();
            }
        };
        pool.parallel_for(threads, &arrive).expect("no panic");
        calls(&pool, 50);
        assert_eq!(allocations_in(|| calls(&pool, 150)), 0, "{threads} threads");
    }
}
