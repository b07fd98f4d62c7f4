//! How long it takes to touch every cache line of a mapped file: `touch THREADS FILE`, in microseconds.
#![forbid(unsafe_code)]

use firstlight_tensor::MappedFile;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

const LINE: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [threads, path] = &words[..] else { return Err("touch THREADS FILE".into()) };
    let threads: usize = threads.parse()?;
    let begin = Instant::now();
    let file = MappedFile::map(Path::new(path))?;
    let bytes = file.as_slice();
    let part = bytes.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        for part in bytes.chunks(part) {
            scope.spawn(move || black_box(part.iter().step_by(LINE).fold(0u8, |sum, byte| sum ^ byte)));
        }
    });
    println!("touch_us {:.1} bytes {}", begin.elapsed().as_secs_f64() * 1e6, bytes.len());
    Ok(())
}
