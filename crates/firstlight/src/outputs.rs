//! What a run returns, and how it gets there.

use crate::Error;
use crate::buffer::TensorBuf;
use crate::spec::OutputSpec;
use firstlight_backend::{Budget, Reservation};
use firstlight_exec::Outputs as TakeOutputs;
use firstlight_graph::{OpError, OpErrorKind};
use firstlight_tensor::{DType, OwnedBytes, Shape, Tensor};
use std::ops::Index;
use std::sync::Arc;

/// The outputs of a run, by name or position.
#[derive(Clone, Debug)]
pub struct Outputs {
    specs: Arc<[OutputSpec]>,
    tensors: Vec<Tensor>,
}

impl Outputs {
    pub(crate) fn new(specs: Arc<[OutputSpec]>, collector: Collector<'_>) -> Result<Outputs, Error> {
        Ok(Outputs { specs, tensors: collector.into_tensors()? })
    }

    /// The output of a name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(self.specs.iter().position(|spec| spec.name == name)?)
    }

    /// Number of outputs.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// True when there is no output.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Names and tensors, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Tensor)> {
        self.specs.iter().map(|spec| spec.name.as_str()).zip(&self.tensors)
    }

    /// The tensors, in order.
    pub fn into_tensors(self) -> Vec<Tensor> {
        self.tensors
    }
}

impl Index<usize> for Outputs {
    type Output = Tensor;

    /// The output of that position.
    ///
    /// Panics where there is none, as indexing a slice does.
    fn index(&self, index: usize) -> &Tensor {
        &self.tensors[index]
    }
}

impl Index<&str> for Outputs {
    type Output = Tensor;

    /// The output of that name.
    ///
    /// Panics where there is none, as indexing a map does; [`Outputs::get`] does not.
    fn index(&self, name: &str) -> &Tensor {
        match self.get(name) {
            Some(tensor) => tensor,
            None => panic!("no output {name:?}"),
        }
    }
}

/// Collects outputs as tensors of their own.
pub(crate) struct Collector<'a> {
    tensors: Vec<Option<Tensor>>,
    budget: &'a Arc<Budget>,
    /// Held until the run has returned; the tensors are the caller's from then on.
    reserved: Vec<Reservation>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(n_outputs: usize, budget: &'a Arc<Budget>) -> Collector<'a> {
        Collector { tensors: vec![None; n_outputs], budget, reserved: Vec::with_capacity(n_outputs) }
    }

    /// What was collected, in order.
    ///
    /// **Errors**: an output that the run did not give.
    pub(crate) fn into_tensors(self) -> Result<Vec<Tensor>, Error> {
        let n_outputs = self.tensors.len();
        let tensors: Vec<Tensor> = self.tensors.into_iter().flatten().collect();
        match tensors.len() == n_outputs {
            true => Ok(tensors),
            false => Err(Error::Output { problem: format!("the run gave {} of {n_outputs} outputs", tensors.len()) }),
        }
    }
}

impl TakeOutputs for Collector<'_> {
    fn output(
        &mut self,
        index: usize,
        dtype: DType,
        dims: &[usize],
        copy: &mut dyn FnMut(&mut [u8]) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        if index == 0 {
            // A run that waited for memory starts over.
            self.reserved.clear();
        }
        let shape = Shape::from(dims);
        let n_bytes = shape.n_elems().and_then(|n| dtype.size_bytes(n));
        let n_bytes = n_bytes.ok_or_else(|| OpError::shape(format!("an output {dtype}{shape} has no fixed size")))?;
        let reserved = self.budget.reserve(n_bytes);
        self.reserved.push(reserved.map_err(|refusal| OpError::new(OpErrorKind::Memory, refusal.to_string()))?);
        let mut bytes = OwnedBytes::zeroed(n_bytes);
        copy(bytes.as_mut_slice())?;
        if let Some(slot) = self.tensors.get_mut(index) {
            *slot = Some(Tensor::new(dtype, shape, bytes.into())?);
        }
        Ok(())
    }
}

/// Writes outputs into the caller's buffers.
pub(crate) struct Writer<'a> {
    pub(crate) buffers: &'a mut [TensorBuf],
}

impl TakeOutputs for Writer<'_> {
    fn output(
        &mut self,
        index: usize,
        dtype: DType,
        dims: &[usize],
        copy: &mut dyn FnMut(&mut [u8]) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        match self.buffers.get_mut(index) {
            Some(buffer) => copy(buffer.fill_bytes(dtype, dims)?),
            None => Ok(()),
        }
    }
}
