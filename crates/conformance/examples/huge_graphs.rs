//! What each node of a huge graph costs: `huge_graphs NODES...`, on one thread with a stack of 1 MB.
//!
//! Two kinds of chains: `fused` (additions, which passes make one op of where they can) and `plain` (products of small
//! matrices). Prints what loading, the first run and a later run took, in microseconds, the least of several.
#![forbid(unsafe_code)]

use firstlight::{Session, Tensor};
use firstlight_tensor::wire::Writer;
use std::time::{Duration, Instant};

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const STACK_BYTES: usize = 1 << 20;
const SIZE: i64 = 4;

/// A chain of nodes of one op, each of which reads the one before it and a constant.
fn chain(op: &str, n: usize) -> Vec<u8> {
    let tensor = |w: &mut Writer, name: &str| {
        w.text(1, name).message(2, |w| {
            w.message(1, |w| {
                w.i64(1, 1).message(2, |w| {
                    for _ in 0..2 {
                        w.message(1, |w| {
                            w.i64(1, SIZE);
                        });
                    }
                });
            });
        });
    };
    let mut model = Writer::new();
    model.i64(1, 10).message(8, |w| {
        w.text(1, "").i64(2, 17);
    });
    model.message(7, |graph| {
        for i in 0..n {
            let (from, to) = (format!("v{i}"), format!("v{}", i + 1));
            graph.message(1, |node| {
                node.text(1, &from).text(1, "c").text(2, &to).text(3, &format!("node_{i}")).text(4, op);
            });
        }
        graph.text(2, "chain").message(5, |w| {
            let values: Vec<f32> = (0..SIZE * SIZE).map(|i| if i % (SIZE + 1) == 0 { 1.0 } else { 0.0 }).collect();
            w.packed_i64(1, &[SIZE, SIZE]).i64(2, 1).packed_f32(4, &values).text(8, "c");
        });
        graph.message(11, |w| tensor(w, "v0")).message(12, |w| tensor(w, &format!("v{n}")));
    });
    model.finish()
}

/// Load, first run and later run.
fn measure(model: &[u8]) -> Fallible<[Duration; 3]> {
    let begin = Instant::now();
    let session = Session::builder().threads(1).load_bytes(model)?;
    let load = begin.elapsed();
    let x = Tensor::from_slice([SIZE as usize, SIZE as usize], &[1f32; (SIZE * SIZE) as usize])?;
    let begin = Instant::now();
    session.run([("v0", &x)])?;
    let first = begin.elapsed();
    session.run([("v0", &x)])?;
    let begin = Instant::now();
    session.run([("v0", &x)])?;
    Ok([load, first, begin.elapsed()])
}

fn all() -> Fallible<()> {
    for n in std::env::args().skip(1) {
        let n: usize = n.parse()?;
        for (kind, op) in [("fused", "Add"), ("plain", "MatMul")] {
            let model = chain(op, n);
            let mut least = [Duration::MAX; 3];
            for _ in 0..3 {
                least = std::array::from_fn({
                    let times = measure(&model)?;
                    move |i| least[i].min(times[i])
                });
            }
            let [load, first, later] = least.map(|time| time.as_secs_f64() * 1e6);
            println!("kind {kind} nodes {n} load_us {load:.1} first_us {first:.1} later_us {later:.1}");
        }
    }
    Ok(())
}

fn main() -> Fallible<()> {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(all)?;
    thread.join().unwrap_or_else(|_| Err("the thread panicked".into()))
}
