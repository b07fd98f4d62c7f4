//! Tensors of the file as tensors of the graph: ranges of it where possible, decoded copies where not.

use crate::error::LoadError;
use crate::external::ExternalFiles;
use crate::proto::SparseTensorProto;
use firstlight_tensor::pb::{PbError, TensorProto};
use firstlight_tensor::{DType, MappedFile, OwnedBytes, Shape, Tensor};
use std::collections::HashMap;
use std::sync::Arc;

/// Reads tensors, each once.
#[derive(Debug)]
pub(crate) struct Tensors {
    file: Arc<MappedFile>,
    external: ExternalFiles,
    /// Tensors read so far, by the offset of their message.
    read: HashMap<usize, Tensor>,
    folded_bytes: usize,
    folded_bytes_left: usize,
}

impl Tensors {
    pub(crate) fn new(file: Arc<MappedFile>, external: ExternalFiles, folded_bytes: usize) -> Self {
        Self { file, external, read: HashMap::new(), folded_bytes, folded_bytes_left: folded_bytes }
    }

    /// The tensor of a message.
    pub(crate) fn dense(&mut self, proto: &TensorProto<'_>) -> Result<Tensor, LoadError> {
        if let Some(tensor) = self.read.get(&proto.body.offset) {
            return Ok(tensor.clone());
        }
        let tensor = if proto.is_external {
            self.external.tensor(proto)?
        } else {
            if proto.raw_data.is_none() {
                // Strings are at most as long as their fields, and their offsets are few beside them.
                self.fold(proto.n_bytes()?.unwrap_or(proto.body.bytes.len()), proto.name)?;
            }
            proto.tensor(Some(&self.file))?
        };
        self.read.insert(proto.body.offset, tensor.clone());
        Ok(tensor)
    }

    /// A sparse tensor made dense.
    pub(crate) fn sparse(&mut self, proto: &SparseTensorProto<'_>) -> Result<Tensor, LoadError> {
        let key = proto.values.body.offset;
        if let Some(tensor) = self.read.get(&key) {
            return Ok(tensor.clone());
        }
        let name = proto.values.name;
        let fail = |problem: String| {
            LoadError::Tensor(PbError::Invalid { tensor: name.into(), problem: format!("sparse tensor: {problem}") })
        };
        let shape = proto.dims.iter().map(|&d| usize::try_from(d).ok()).collect::<Option<Shape>>();
        let shape = shape.ok_or_else(|| fail(format!("dims {:?} cannot be negative", &proto.dims[..])))?;
        let (values, indices) = (self.dense(&proto.values)?, self.dense(&proto.indices)?);
        let dtype = values.dtype();
        if dtype.bits() < 8 {
            return Err(fail(format!("values of {dtype} are not supported")));
        }
        let n_bytes = shape.n_elems().and_then(|n| dtype.size_bytes(n));
        let n_bytes = n_bytes.ok_or_else(|| fail(format!("{dtype}{shape} is larger than memory can hold")))?;
        self.fold(n_bytes, name)?;
        let positions = positions(&shape, values.n_elems(), &indices).map_err(fail)?;
        let mut dense = OwnedBytes::zeroed(n_bytes);
        let item = dtype.bits() / 8;
        for (value, at) in values.as_bytes().chunks_exact(item).zip(positions) {
            let place = at.checked_mul(item).and_then(|from| dense.as_mut_slice().get_mut(from..from + item));
            place.ok_or_else(|| fail(format!("index {at} is outside {shape}")))?.copy_from_slice(value);
        }
        let tensor = Tensor::new(dtype, shape, dense.into()).map_err(|e| fail(e.to_string()))?;
        self.read.insert(key, tensor.clone());
        Ok(tensor)
    }

    fn fold(&mut self, n_bytes: usize, tensor: &str) -> Result<(), LoadError> {
        self.folded_bytes_left = self.folded_bytes_left.checked_sub(n_bytes).ok_or_else(|| LoadError::Limit {
            limit: "folded_bytes",
            value: self.folded_bytes,
            what: format!("tensor `{tensor}` takes {n_bytes} bytes"),
        })?;
        Ok(())
    }
}

/// Row-major positions of the indices `[n]` (linear) or `[n, rank]`.
fn positions(shape: &Shape, n: usize, indices: &Tensor) -> Result<Vec<usize>, String> {
    let misfit = || format!("{n} values of {shape} do not fit indices {}{}", indices.dtype(), indices.shape());
    if indices.dtype() != DType::I64 {
        return Err(misfit());
    }
    let flat = indices.to_i64s().map_err(|e| e.to_string())?;
    let flat = flat.iter().map(|&i| usize::try_from(i).map_err(|_| format!("index {i} is negative")));
    let flat = flat.collect::<Result<Vec<_>, _>>()?;
    match &indices.shape()[..] {
        [count] if *count == n => Ok(flat),
        [count, rank] if *count == n && *rank == shape.rank() && *rank > 0 => flat
            .chunks_exact(*rank)
            .map(|index| {
                if index.iter().zip(shape).any(|(i, dim)| i >= dim) {
                    return Err(format!("index {index:?} is outside {shape}"));
                }
                Ok(index.iter().zip(shape).fold(0, |at, (i, dim)| at * dim + i))
            })
            .collect(),
        _ => Err(misfit()),
    }
}
