//! Threads come late, once, and go with the pool. Counts the threads of this process, so it is alone in its file.
#![cfg(target_os = "linux")]

use std::fs;
use std::thread;
use std::time::Duration;

use firstlight_backend::pool::Pool;

/// The pool's threads in this process.
fn n_workers() -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("procfs");
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("firstlight-")).count()
}

/// The system removes a thread from the list a moment after it can be joined, and adds one a moment before it has its name.
fn settles_at(n: usize) -> bool {
    (0..500).any(|_| {
        let settled = n_workers() == n;
        if !settled {
            thread::sleep(Duration::from_millis(2));
        }
        settled
    })
}

#[test]
fn threads_come_late_once_and_go_with_the_pool() {
    for threads in [1, 2, 3, 8, 40] {
        let pool = Pool::new(threads).expect("a pool");
        pool.parallel_for(1, &|_| ()).expect("no panic");
        pool.parallel_for_cost(100, 20_000, &|_| ()).expect("no panic");
        drop(pool.run_guard());
        assert_eq!(n_workers(), 0, "nothing yet was worth a thread");
        pool.parallel_for(100, &|_| ()).expect("no panic");
        assert!(settles_at(threads - 1), "{threads} threads, the caller included: {} workers", n_workers());
        pool.parallel_for(100, &|_| ()).expect("no panic");
        assert_eq!(n_workers(), threads - 1);
        drop(pool);
        assert!(settles_at(0), "{} workers are left", n_workers());
    }

    // A job is reason enough, and a pool that is dropped while its threads are still being created joins them too.
    for round in 0..300 {
        let pool = Pool::new(2 + round % 7).expect("a pool");
        assert!(pool.try_with_job(&mut || (), || ()).is_ok(), "a worker that is only starting can be given a job");
        drop(pool);
    }
    assert!(settles_at(0), "{} workers are left", n_workers());

    // Callers that all come first at once create the threads once.
    for _ in 0..50 {
        let pool = Pool::new(3).expect("a pool");
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| pool.parallel_for(10, &|_| ()).expect("no panic"));
            }
        });
        assert!(settles_at(2), "{} workers", n_workers());
    }
    assert!(settles_at(0), "{} workers are left", n_workers());
}
