//! Heap allocations of replays, on all threads: `counting_allocator FOLDER...`, each with `model.onnx` and `case`.
//!
//! Prints a line for each model and number of threads; exits with 1 where a replay allocates.
#![deny(unsafe_code)]

mod case;

use case::Fallible;
use firstlight::Session;
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static N_ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code)]
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

const N_WARM: usize = 3;
const N_REPLAYS: usize = 10;

fn main() -> Fallible<ExitCode> {
    let mut total = 0;
    for folder in std::env::args().skip(1).map(PathBuf::from) {
        for threads in [1, 2] {
            let session = Session::builder().threads(threads).load(folder.join("model.onnx"))?;
            let mut binding = case::bind(&session, &case::read(&folder)?)?;
            for _ in 0..N_WARM {
                binding.run()?;
            }
            let before = N_ALLOCATIONS.load(Ordering::SeqCst);
            for _ in 0..N_REPLAYS {
                binding.run()?;
            }
            let n = N_ALLOCATIONS.load(Ordering::SeqCst) - before;
            println!("model {} threads {threads} replays {N_REPLAYS} allocations {n}", case::name(&folder));
            total += n;
        }
    }
    Ok(ExitCode::from(u8::from(total > 0)))
}
