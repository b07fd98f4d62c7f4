//! Loads a model, prints what it takes and gives, and runs it twice on zeros.
//!
//! `cargo run --release --example run_model -- model.onnx`

use firstlight::{Dim, Session, Tensor};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: run_model MODEL.onnx")?;
    let session = Session::load(&path)?;
    let mut inputs = vec![];
    for input in session.inputs() {
        println!("input  {input}");
        let shape = input.shape.as_ref().ok_or("an input without a declared rank")?;
        let dims: Vec<usize> = shape.iter().map(|dim| dim.known().unwrap_or(1)).collect();
        if shape.iter().any(|dim| matches!(dim, Dim::Named(_))) {
            println!("       its named dimensions are taken to be 1");
        }
        inputs.push((input.name.clone(), Tensor::zeros(input.dtype, &dims[..])?));
    }
    for run in ["first run (compiles)", "second run (replays)"] {
        let clock = Instant::now();
        let outputs = session.run(inputs.iter().map(|(name, tensor)| (name, tensor)))?;
        println!("{run}: {:.3} ms", clock.elapsed().as_secs_f64() * 1e3);
        for (name, tensor) in outputs.iter() {
            println!("output {name} {}{}", tensor.dtype(), tensor.shape());
        }
    }
    Ok(())
}
