//! What the pool promises, under every number of threads. Threads here sleep without a bound, so a lost wake-up hangs a test.

use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::thread;
use std::time::Duration;

use super::*;

const THREADS: [usize; 4] = [1, 2, 4, 8];

/// The number of rounds; a few of them where a round costs much more than on the machine itself.
const fn rounds(n: usize) -> usize {
    if cfg!(miri) { 3 } else { n }
}

fn pool(threads: usize) -> Pool {
    Pool::new(threads).expect("a pool")
}

/// Runs `n` tiles and checks that each ran once.
fn check_each_tile_once(pool: &Pool, n: usize) {
    let counts: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
    pool.parallel_for(n, &|tile| {
        counts[tile].fetch_add(1, Relaxed);
    })
    .expect("no panic");
    assert!(counts.iter().all(|count| count.load(Relaxed) == 1), "{n} tiles on {} threads", pool.threads());
}

#[test]
fn every_tile_runs_once() {
    for threads in THREADS {
        let pool = pool(threads);
        for n in [0, 1, 2, 3, 7, 64, 10 * rounds(100)] {
            check_each_tile_once(&pool, n);
        }
    }
}

/// Memory that the pool alone orders: a missing order is a data race that Miri and the thread sanitizer report.
#[derive(Default)]
struct Plain(UnsafeCell<u64>);

// SAFETY: in each call one tile accesses one cell, and the caller accesses cells between calls only.
unsafe impl Sync for Plain {}

impl Plain {
    fn add(&self, n: u64) -> u64 {
        // SAFETY: see `Sync`; no reference to the content is handed out.
        unsafe {
            *self.0.get() = (*self.0.get()).wrapping_add(n);
            *self.0.get()
        }
    }
}

#[test]
fn many_small_calls() {
    for threads in THREADS {
        let pool = pool(threads);
        let _run = pool.run_guard();
        let n_rounds = rounds(80_000) as u64;
        let cells: [Plain; 8] = Default::default();
        for round in 0..n_rounds {
            let n = 1 + (round % 8) as usize;
            let before = cells[n - 1].add(round);
            pool.parallel_for(n, &|tile| {
                let after = cells[tile].add(1);
                assert!(tile != n - 1 || after == before + 1);
            })
            .expect("no panic");
            cells[n - 1].add(0u64.wrapping_sub(round));
        }
        let expected: u64 = (0..n_rounds).map(|round| 1 + round % 8).sum();
        assert_eq!(cells.iter().map(|cell| cell.add(0)).sum::<u64>(), expected);
    }
}

#[test]
fn calls_that_find_the_workers_parked() {
    for threads in [2, 4] {
        let pool = pool(threads);
        for _ in 0..rounds(20_000) {
            check_each_tile_once(&pool, 3);
        }
    }
}

#[test]
fn a_worker_takes_part() {
    let pool = pool(2);
    // Two tiles that wait for each other end only if two threads run them.
    let both = Barrier::new(2);
    for _ in 0..rounds(200) {
        // The caller may be quicker than the worker and start the second tile itself if the first had ended; it cannot here.
        pool.parallel_for(2, &|_| {
            both.wait();
        })
        .expect("no panic");
    }
}

#[test]
fn callers_from_many_threads() {
    for threads in [2, 4] {
        let pool = pool(threads);
        let total = AtomicU64::new(0);
        let callers = if cfg!(miri) { 4 } else { 24 };
        thread::scope(|scope| {
            for caller in 0..callers {
                let (pool, total) = (&pool, &total);
                scope.spawn(move || {
                    for round in 0..rounds(2_000) {
                        let n = 1 + (caller + round) % 9;
                        let mine = AtomicU64::new(0);
                        pool.parallel_for(n, &|tile| {
                            mine.fetch_add(tile as u64 + 1, Relaxed);
                        })
                        .expect("no panic");
                        assert_eq!(mine.load(Relaxed), (n * (n + 1) / 2) as u64);
                        total.fetch_add(1, Relaxed);
                    }
                });
            }
        });
        assert_eq!(total.load(Relaxed), (callers * rounds(2_000)) as u64);
    }
}

#[test]
fn a_panic_in_a_tile_is_an_error_and_the_pool_goes_on() {
    for threads in THREADS {
        let pool = pool(threads);
        for round in 0..rounds(100) {
            let n_run = AtomicUsize::new(0);
            let error = pool
                .parallel_for(500, &|tile| {
                    n_run.fetch_add(1, Relaxed);
                    if tile == 3 {
                        if round % 2 == 0 { panic!("tile three") } else { panic!("tile {tile}, formatted") }
                    }
                    thread::yield_now();
                })
                .expect_err("it panics");
            assert_eq!(error.tile, Some(3));
            assert_eq!(error.message, if round % 2 == 0 { "tile three" } else { "tile 3, formatted" });
            if threads == 1 {
                assert_eq!(n_run.load(Relaxed), 4, "the rest is skipped");
            }
            check_each_tile_once(&pool, 20);
        }
    }
}

#[test]
fn the_rest_is_skipped_after_a_panic() {
    let pool = pool(2);
    let n_run = AtomicUsize::new(0);
    let other_is_in = AtomicBool::new(false);
    let over = AtomicBool::new(false);
    let error = pool
        .parallel_for(1_000, &|tile| {
            n_run.fetch_add(1, Relaxed);
            if tile == 0 {
                wait_for(&other_is_in);
                over.store(true, Release);
                panic!("the first");
            }
            other_is_in.store(true, Release);
            wait_for(&over);
            // The panic needs a while to be recorded; without it the thread would go on to the end.
            thread::sleep(Duration::from_millis(2));
        })
        .expect_err("it panics");
    assert_eq!(error, TilePanic { tile: Some(0), message: "the first".to_owned() });
    assert!(n_run.load(Relaxed) < 1_000);
}

fn wait_for(flag: &AtomicBool) {
    while !flag.load(Acquire) {
        thread::yield_now();
    }
}

#[test]
fn a_payload_that_is_no_string_and_panics_when_dropped() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in the payload's drop");
        }
    }
    for threads in [1, 2] {
        let pool = pool(threads);
        let error = pool.parallel_for(2, &|_| std::panic::panic_any(Bomb)).expect_err("it panics");
        assert_eq!(error.message, "a panic whose payload is not a string");
        check_each_tile_once(&pool, 20);
    }
}

#[test]
fn a_nested_call_runs_inside_its_tile() {
    for threads in THREADS {
        let (outer, other) = (pool(threads), pool(4));
        let n = AtomicUsize::new(0);
        outer
            .parallel_for(16, &|_| {
                let me = thread::current().id();
                for pool in [&outer, &other] {
                    let count = |_| {
                        assert!(threads == 1 || thread::current().id() == me, "on the tile's own thread");
                        n.fetch_add(1, Relaxed);
                    };
                    pool.parallel_for(4, &count).expect("no panic");
                }
                assert!(threads == 1 || outer.reserve_worker().is_none(), "no jobs from inside a tile");
            })
            .expect("no panic");
        assert_eq!(n.load(Relaxed), 16 * 4 * 2);
        let error = outer.parallel_for(2, &|_| outer.parallel_for(2, &|_| panic!("inner")).expect("inner failed"));
        assert!(error.expect_err("it panics").message.contains("inner failed"));
    }
}

#[test]
fn a_job_runs_beside_main() {
    for threads in [2, 4, 8] {
        let pool = pool(threads);
        for round in 0..rounds(2_000) {
            // Each waits for the other, so both must run at once.
            let (to_job, to_main) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let mut seen_by_job = 0;
            let mut job = || {
                to_main.store(round + 1, Release);
                pool.notify();
                pool.help_until(&|| to_job.load(Acquire) != 0);
                seen_by_job = to_job.load(Acquire);
            };
            let main = || {
                pool.wait_until(&|| to_main.load(Acquire) != 0);
                to_job.store(round + 7, Release);
                pool.notify();
                to_main.load(Acquire)
            };
            let (seen_by_main, ended) = pool.try_with_job(&mut job, main).expect("a worker is free");
            ended.expect("no panic");
            assert_eq!((seen_by_main, seen_by_job), (round + 1, round + 7));
        }
    }
}

#[test]
fn a_job_without_a_worker_is_refused_and_nothing_runs() {
    let one = pool(1);
    assert_eq!(one.try_with_job(&mut || panic!("not run"), || panic!("not run")), Err::<((), _), _>(NoWorker));

    let two = pool(2);
    let first = two.reserve_worker().expect("one worker");
    assert!(two.reserve_worker().is_none());
    drop(first);
    let seat = two.reserve_worker().expect("given back");
    let (inner, ended) = seat.run(&mut || (), || two.try_with_job(&mut || (), || ()).is_err());
    assert!(inner && ended.is_ok());
    assert!(two.try_with_job(&mut || (), || ()).is_ok(), "given back after the job");
}

#[test]
fn a_job_that_nobody_began_runs_on_the_caller() {
    let pool = pool(2);
    let n_inside = AtomicUsize::new(0);
    let leave = AtomicBool::new(false);
    thread::scope(|scope| {
        // The tiles of another caller hold it and the worker.
        let other = scope.spawn(|| {
            pool.parallel_for(2, &|_| {
                n_inside.fetch_add(1, Release);
                wait_for(&leave);
            })
        });
        while n_inside.load(Acquire) < 2 {
            thread::yield_now();
        }
        let mut ran_on = None;
        let result = pool.try_with_job(&mut || ran_on = Some(thread::current().id()), || 3);
        assert_eq!(result, Ok((3, Ok(()))));
        assert_eq!(ran_on, Some(thread::current().id()));

        let result = pool.try_with_job(&mut || panic!("on the caller"), || 4);
        assert_eq!(result, Ok((4, Err(TilePanic { tile: None, message: "on the caller".to_owned() }))));

        let mut ran = false;
        let mut job = || ran = true;
        let caught = catch_unwind(AssertUnwindSafe(|| pool.try_with_job::<()>(&mut job, || panic!("main"))));
        assert!(caught.is_err() && !ran, "nobody began it and nobody wants it");
        leave.store(true, Release);
        other.join().expect("joined").expect("no panic");
    });
    assert_eq!(pool.try_with_job(&mut || (), || ()), Ok(((), Ok(()))));
}

#[test]
fn panics_of_job_and_main() {
    for threads in [2, 4] {
        let pool = pool(threads);
        for _ in 0..rounds(100) {
            let begun = AtomicBool::new(false);
            let mut job = || {
                begun.store(true, Release);
                panic!("job fails");
            };
            let ((), ended) = pool.try_with_job(&mut job, || wait_for(&begun)).expect("a worker is free");
            assert_eq!(ended, Err(TilePanic { tile: None, message: "job fails".to_owned() }));

            let (begun, ended) = (AtomicBool::new(false), AtomicBool::new(false));
            let mut job = || {
                begun.store(true, Release);
                thread::yield_now();
                ended.store(true, Release);
            };
            let main = || {
                wait_for(&begun);
                panic!("main fails")
            };
            let caught = catch_unwind(AssertUnwindSafe(|| pool.try_with_job::<()>(&mut job, main)));
            assert_eq!(caught.expect_err("passed on").downcast_ref::<&str>(), Some(&"main fails"));
            assert!(ended.load(Acquire), "the job has ended before");
        }
        check_each_tile_once(&pool, 50);
    }
}

#[test]
fn a_waiting_job_runs_tiles() {
    let pool = pool(2);
    for guarded in [false, true] {
        let _run = guarded.then(|| pool.run_guard());
        for _ in 0..rounds(500) {
            let over = AtomicBool::new(false);
            let both = Barrier::new(2);
            let mut job = || pool.help_until(&|| over.load(Acquire));
            // The one worker is in the job; the two tiles end only if it runs one of them.
            let main = || {
                let result = pool.parallel_for(2, &|_| {
                    both.wait();
                });
                over.store(true, Release);
                pool.notify();
                result
            };
            let (tiles, job) = pool.try_with_job(&mut job, main).expect("a worker is free");
            tiles.expect("no panic");
            job.expect("no panic");
        }
    }
}

#[test]
fn jobs_and_tiles_from_many_threads() {
    for threads in [2, 4, 8] {
        let pool = pool(threads);
        let (n_jobs, n_refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..rounds(1_000) {
                        let sum = AtomicU64::new(0);
                        let mut in_job = 0;
                        let work = || {
                            let add = |tile| {
                                sum.fetch_add(tile as u64, Relaxed);
                            };
                            pool.parallel_for(5, &add).expect("no panic");
                        };
                        let mut job = || {
                            work();
                            in_job += 1;
                        };
                        match pool.try_with_job(&mut job, work) {
                            Ok(((), ended)) => {
                                ended.expect("no panic");
                                assert_eq!((in_job, sum.load(Relaxed)), (1, 20));
                                n_jobs.fetch_add(1, Relaxed);
                            }
                            Err(NoWorker) => {
                                assert_eq!((in_job, sum.load(Relaxed)), (0, 0));
                                n_refused.fetch_add(1, Relaxed);
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(n_jobs.load(Relaxed) + n_refused.load(Relaxed), 6 * rounds(1_000));
        assert!(n_jobs.load(Relaxed) > 0);
    }
}

#[test]
fn small_work_with_a_known_cost_stays_on_the_caller() {
    let pool = pool(4);
    let me = thread::current().id();
    pool.parallel_for_cost(8, SPAWN_AFTER_NS / 2, &|_| assert_eq!(thread::current().id(), me)).expect("no panic");
    assert!(!pool.shared.has_workers(), "no threads for that");
    pool.parallel_for_cost(8, SPAWN_AFTER_NS, &|_| ()).expect("no panic");
    assert!(pool.shared.has_workers());
    while pool.shared.n_started() < 3 || pool.shared.n_parked() < 3 {
        thread::yield_now();
    }
    for _ in 0..100 {
        pool.parallel_for_cost(8, WAKE_NS - 1, &|_| assert_eq!(thread::current().id(), me)).expect("no panic");
    }
}

#[test]
fn small_work_during_a_run_wakes_the_workers_for_the_next() {
    let pool = pool(2);
    pool.parallel_for(2, &|_| ()).expect("no panic");
    while pool.shared.n_asleep() < 1 || pool.shared.n_parked() < 1 {
        thread::yield_now();
    }
    let small = || pool.parallel_for_cost(2, WAKE_NS - 1, &|_| ()).expect("no panic");
    for _ in 0..20 {
        small();
    }
    assert_eq!(pool.shared.n_asleep(), 1, "nobody is woken outside of a run");
    let _run = pool.run_guard();
    // Ends only if one of the calls wakes the worker, which is asleep again soon after.
    while pool.shared.n_asleep() == 1 {
        small();
    }
}

#[test]
fn guards_count_and_wake_is_harmless() {
    let pool = pool(3);
    let outer = pool.run_guard();
    outer.wake();
    drop(pool.run_guard());
    assert_eq!(pool.shared.guards.load(Relaxed), 1);
    check_each_tile_once(&pool, 9);
    outer.wake();
    drop(outer);
    assert_eq!(pool.shared.guards.load(Relaxed), 0);
    // Without a guard all workers park in the end.
    while pool.shared.n_started() < 2 || pool.shared.n_parked() < 2 {
        thread::yield_now();
    }
    let run = pool.run_guard();
    run.wake();
    check_each_tile_once(&pool, 9);
}

#[test]
fn sizes() {
    assert!(Pool::new(0).expect("as many as there are").threads() >= 1);
    assert_eq!(pool(3).threads(), 3);
    assert!(Pool::new(MAX_THREADS + 1).is_err());
    assert!(format!("{:?}", pool(3)).contains("threads: 3"));
}
