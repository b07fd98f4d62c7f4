//! Order, back-pressure, closing. Threads here sleep without a bound, so a lost wake-up hangs a test.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use super::*;

/// The number of rounds; some of them where a round costs much more than on the machine itself.
const fn rounds(n: usize) -> usize {
    if cfg!(miri) { 8 } else { n }
}

fn pool(threads: usize) -> Pool {
    Pool::new(threads).expect("a pool")
}

#[test]
fn items_come_out_in_order_and_bounds_hold() {
    let channel = BoundedChannel::new(3, 100);
    assert!(channel.is_empty());
    assert_eq!(channel.try_push('a', 40), Ok(()));
    assert_eq!(channel.try_push('b', 60), Ok(()));
    assert_eq!(channel.try_push('c', 1), Err('c'), "101 bytes");
    assert_eq!(channel.try_push('c', 0), Ok(()));
    assert_eq!(channel.try_push('d', 0), Err('d'), "four items");
    assert_eq!(channel.len(), 3);
    assert_eq!((channel.try_pop(), channel.try_pop()), (Some('a'), Some('b')));
    assert_eq!(channel.try_push('d', 100), Ok(()), "60 and 40 bytes are free again");
    assert_eq!((channel.try_pop(), channel.try_pop(), channel.try_pop()), (Some('c'), Some('d'), None));
}

#[test]
fn nothing_is_too_large_to_pass() {
    let channel = BoundedChannel::new(0, 10);
    assert_eq!(channel.try_push(1, usize::MAX), Ok(()));
    assert_eq!(channel.try_push(2, 1), Err(2));
    assert_eq!(channel.try_pop(), Some(1));
    let channel = BoundedChannel::new(9, usize::MAX);
    assert_eq!(channel.try_push(1, usize::MAX), Ok(()));
    assert_eq!(channel.try_push(2, 1), Err(2), "the sum does not wrap");
    assert_eq!(channel.try_push(2, 0), Ok(()));
    assert_eq!((channel.try_pop(), channel.try_pop()), (Some(1), Some(2)));
    assert_eq!(channel.try_push(3, usize::MAX), Ok(()));
}

#[test]
fn a_closed_channel_gives_back_what_is_pushed_and_gives_out_what_it_has() {
    let pool = pool(1);
    let channel = BoundedChannel::new(4, 100);
    channel.push(1, 1, &pool).expect("open");
    channel.push(2, 1, &pool).expect("open");
    drop(channel.close_on_drop());
    assert!(channel.is_closed());
    assert_eq!(channel.try_push(3, 1), Err(3));
    assert_eq!(channel.push(3, 1, &pool), Err(3));
    assert_eq!(channel.pop(&pool), Some(1));
    assert_eq!(channel.pop(&pool), Some(2));
    assert_eq!(channel.pop(&pool), None);
    assert!(format!("{channel:?}").contains("closed: true"));
}

/// Passes `n` items from a job to the caller and checks order and back-pressure.
fn pass(pool: &Pool, n: usize, max_items: usize, max_bytes: usize) {
    let channel = BoundedChannel::new(max_items, max_bytes);
    let n_popped = AtomicUsize::new(0);
    let mut most_ahead = 0;
    let mut job = || {
        let _close = channel.close_on_drop();
        for item in 0..n {
            channel.push(item, 1 + item % 7, pool).expect("open");
            // `n_popped` may lag behind the pops by one: the one that the consumer has not counted yet.
            most_ahead = most_ahead.max((item + 1).saturating_sub(n_popped.load(SeqCst)));
        }
    };
    let main = || {
        let mut expected = 0;
        while let Some(item) = channel.pop(pool) {
            n_popped.fetch_add(1, SeqCst);
            assert_eq!(item, expected);
            expected += 1;
            if item % 5 == 0 {
                // A consumer with work of its own, in which the waiting producer takes part.
                pool.parallel_for(3, &|_| ()).expect("no panic");
            }
        }
        expected
    };
    let (n_seen, job) = pool.try_with_job(&mut job, main).expect("a worker is free");
    job.expect("no panic");
    assert_eq!(n_seen, n);
    assert!(most_ahead <= max_items + 1, "{most_ahead} items ahead with room for {max_items}");
}

#[test]
fn a_job_feeds_the_caller() {
    for threads in [2, 4] {
        let pool = pool(threads);
        for (max_items, max_bytes) in [(1, 1), (1, 1000), (2, 8), (8, 20), (64, 1 << 20)] {
            pass(&pool, rounds(1_000), max_items, max_bytes);
            let _run = pool.run_guard();
            pass(&pool, rounds(1_000), max_items, max_bytes);
        }
        for round in 0..rounds(500) {
            pass(&pool, round % 12, 2, 100);
        }
    }
}

#[test]
fn a_consumer_that_gives_up_stops_the_producer_within_one_item() {
    let pool = pool(2);
    for round in 0..rounds(2_000) {
        let channel = BoundedChannel::new(1 + round % 3, 1000);
        let n_pushed = AtomicUsize::new(0);
        let mut returned = None;
        let mut job = || {
            for item in 0usize.. {
                match channel.push(item, 1, &pool) {
                    Ok(()) => n_pushed.fetch_add(1, SeqCst),
                    Err(item) => return returned = Some(item),
                };
            }
        };
        let main = || {
            let _close = channel.close_on_drop();
            for expected in 0..round % 5 {
                assert_eq!(channel.pop(&pool), Some(expected));
            }
        };
        let ((), ended) = pool.try_with_job(&mut job, main).expect("a worker is free");
        ended.expect("no panic");
        assert_eq!(returned, Some(n_pushed.load(SeqCst)), "the item that did not go in comes back");
        assert!(n_pushed.load(SeqCst) <= round % 5 + 1 + round % 3);
    }
}

#[test]
fn a_producer_that_fails_ends_the_consumer() {
    let pool = pool(2);
    for round in 0..rounds(200) {
        let channel = BoundedChannel::new(2, 1000);
        let mut job = || {
            let _close = channel.close_on_drop();
            for item in 0..round % 5 {
                channel.push(item, 1, &pool).expect("open");
            }
            panic!("the compiler fails");
        };
        let main = || std::iter::from_fn(|| channel.pop(&pool)).count();
        let (n_seen, ended) = pool.try_with_job(&mut job, main).expect("a worker is free");
        assert_eq!(n_seen, round % 5);
        assert_eq!(ended.expect_err("it panics").message, "the compiler fails");
    }
}

#[test]
fn many_producers_and_consumers_lose_nothing() {
    let pool = pool(2);
    for (max_items, max_bytes) in [(1, 100), (3, 5), (16, 1000)] {
        let channel = BoundedChannel::new(max_items, max_bytes);
        let per_thread = rounds(1_500);
        let (sum, n) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            let consume = || {
                while let Some(item) = channel.pop(&pool) {
                    sum.fetch_add(item, SeqCst);
                    n.fetch_add(1, SeqCst);
                }
            };
            let consumers: Vec<_> = (0..3).map(|_| scope.spawn(consume)).collect();
            let produce = || (0..per_thread).for_each(|i| channel.push(i, 1 + i % 3, &pool).expect("open"));
            let producers: Vec<_> = (0..3).map(|_| scope.spawn(produce)).collect();
            producers.into_iter().for_each(|producer| producer.join().expect("joined"));
            channel.close();
            consumers.into_iter().for_each(|consumer| consumer.join().expect("joined"));
        });
        assert_eq!(n.load(SeqCst), 3 * per_thread);
        assert_eq!(sum.load(SeqCst), 3 * per_thread * (per_thread - 1) / 2);
    }
}

#[test]
fn items_left_inside_are_dropped_with_the_channel() {
    let item = Arc::new(());
    let channel = BoundedChannel::new(2, 10);
    assert!(channel.try_push(Arc::clone(&item), 1).is_ok());
    channel.close();
    drop(channel);
    assert_eq!(Arc::strong_count(&item), 1);
}
