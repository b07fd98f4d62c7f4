//! Realized values, fed in and given back.

use firstlight_backend::{OperandSpec, Storage};
use firstlight_graph::{OpError, ValueId};
use firstlight_tensor::{Bytes, Layout, Tensor};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// A value with its storage.
#[derive(Clone, Debug)]
pub struct Realized {
    /// Element type and shape.
    pub spec: OperandSpec,
    /// How the elements lie in the storage.
    pub layout: Layout,
    /// The bytes; whoever holds the `Arc` shares them.
    pub storage: Arc<RwLock<Storage>>,
}

/// Values by id: what a realize is fed and what it gives back.
#[derive(Clone, Debug, Default)]
pub struct StorageCache {
    values: BTreeMap<ValueId, Realized>,
}

impl Realized {
    /// A value that shares a tensor's bytes.
    pub fn from_tensor(tensor: &Tensor) -> Realized {
        Realized {
            spec: OperandSpec { dtype: tensor.dtype(), dims: tensor.shape().clone() },
            layout: Layout::dense(tensor.shape()),
            storage: Arc::new(RwLock::new(Storage::from_tensor(tensor))),
        }
    }

    /// A copy of the value as a host tensor.
    ///
    /// **Errors**: the bytes are a device's.
    pub fn to_tensor(&self) -> Result<Tensor, OpError> {
        let storage = self.storage.read().unwrap_or_else(PoisonError::into_inner);
        let bytes = storage.host_bytes()?;
        let bytes = bytes.get(..self.spec.n_bytes()).unwrap_or(bytes);
        Ok(Tensor::new(self.spec.dtype, self.spec.dims.clone(), Bytes::from(bytes))?)
    }
}

impl StorageCache {
    /// No value.
    pub fn new() -> StorageCache {
        StorageCache::default()
    }

    /// Puts a value in; returns what was there.
    pub fn insert(&mut self, value: impl Into<ValueId>, realized: Realized) -> Option<Realized> {
        self.values.insert(value.into(), realized)
    }

    /// The value of an id.
    pub fn get(&self, value: impl Into<ValueId>) -> Option<&Realized> {
        self.values.get(&value.into())
    }

    /// All values by id.
    pub fn iter(&self) -> impl Iterator<Item = (ValueId, &Realized)> {
        self.values.iter().map(|(id, realized)| (*id, realized))
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True when there is no value.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}
