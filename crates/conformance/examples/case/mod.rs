//! The inputs of a benchmark case: `name|dtype|dims|file` a line, raw little-endian files.
#![allow(dead_code, reason = "each example uses a part")]

use firstlight::{Binding, DType, Session};
use std::path::Path;

pub(crate) type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// An input's name, element type, dims and bytes.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

/// Reads the case of a model's folder.
pub(crate) fn read(folder: &Path) -> Fallible<Vec<Input>> {
    let case = folder.join("case");
    let list = std::fs::read_to_string(case.join("inputs.txt")).map_err(|e| format!("{}: {e}", case.display()))?;
    list.lines().filter(|line| !line.is_empty()).map(|line| input(&case, line)).collect()
}

fn input(case: &Path, line: &str) -> Fallible<Input> {
    let parts: Vec<&str> = line.split('|').collect();
    let [name, dtype, dims, file] = parts[..] else { return Err(format!("not name|dtype|dims|file: {line}").into()) };
    let dtype = DType::from_name(dtype).ok_or_else(|| format!("no element type {dtype}"))?;
    let dims = dims.split(',').filter(|dim| !dim.is_empty()).map(str::parse).collect::<Result<_, _>>()?;
    Ok(Input { name: name.into(), dtype, dims, bytes: std::fs::read(case.join(file))? })
}

/// A binding with the case's inputs in place.
pub(crate) fn bind(session: &Session, inputs: &[Input]) -> Fallible<Binding> {
    let mut binding = session.bind();
    for input in inputs {
        let buffer = binding.input_bytes(&input.name, input.dtype, &input.dims)?;
        if buffer.len() != input.bytes.len() {
            return Err(
                format!("input {}: {} bytes, its dims take {}", input.name, input.bytes.len(), buffer.len()).into()
            );
        }
        buffer.copy_from_slice(&input.bytes);
    }
    Ok(binding)
}

/// Shapes and bytes of all outputs, one after the other.
pub(crate) fn output_bytes(binding: &Binding) -> Vec<u8> {
    let mut all = Vec::new();
    for output in binding.outputs() {
        all.extend(output.shape().iter().flat_map(|dim| dim.to_le_bytes()));
        all.extend_from_slice(output.as_bytes());
    }
    all
}

/// The name of a model's folder.
pub(crate) fn name(folder: &Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
