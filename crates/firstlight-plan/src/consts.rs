//! Constants as a device's storage: shared by all plans of a session, made once, when a node first needs them.

use firstlight_backend::{BackendId, BackendStorage, Budget, Completion, Device, HostBuf, HostStorage, Reservation};
use firstlight_graph::{OpError, OpErrorKind};
use firstlight_tensor::{Bytes, Tensor};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Constants that plans read, by the bytes they came from.
///
/// On the host a constant is the graph's own bytes, mapped or owned, and nothing is copied; only a kernel that cannot
/// read a mapped weight at its alignment gets a copy, made once. On another device each constant is uploaded once.
pub struct ConstPool {
    device: Arc<dyn Device>,
    budget: Arc<Budget>,
    made: Mutex<HashMap<Key, Made>>,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    address: usize,
    len: usize,
    copied: bool,
}

struct Made {
    storage: Arc<BackendStorage>,
    /// Keeps the bytes alive, so that their address is not used again.
    _source: Bytes,
    _reserved: Option<Reservation>,
}

impl ConstPool {
    /// An empty pool for a device.
    pub fn new(device: Arc<dyn Device>, budget: Arc<Budget>) -> ConstPool {
        ConstPool { device, budget, made: Mutex::new(HashMap::new()) }
    }

    /// Storage of a constant, aligned to `align` bytes.
    ///
    /// **Errors**: the mapped file changed since it was opened; the budget or the device refuses.
    pub fn storage(&self, tensor: &Tensor, align: usize) -> Result<Arc<BackendStorage>, OpError> {
        let bytes = tensor.bytes();
        let address = bytes.as_slice().as_ptr() as usize;
        let on_host = self.device.backend() == BackendId::CPU;
        let copied = !on_host || !address.is_multiple_of(align.max(1));
        let key = Key { address, len: bytes.len(), copied };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = made.get(&key) {
            return Ok(found.storage.clone());
        }
        if let Bytes::Mapped { file, .. } = bytes
            && !file.unchanged()
        {
            let path = file.path().display();
            let message = format!("{path} changed on disk since it was opened; load the model again");
            return Err(OpError::new(OpErrorKind::Device, message));
        }
        let reserve = |n_bytes: usize| {
            let refused =
                |refused: firstlight_backend::OverBudget| OpError::new(OpErrorKind::Memory, refused.to_string());
            self.budget.reserve(n_bytes).map(Some).map_err(refused)
        };
        let (storage, reserved) = match (on_host, copied) {
            (true, false) => (BackendStorage::Host(HostStorage::Bytes(bytes.clone())), None),
            (true, true) => {
                let reserved = reserve(bytes.len())?;
                let mut copy = HostBuf::zeroed(bytes.len())?;
                copy.as_mut_slice().copy_from_slice(bytes.as_slice());
                (BackendStorage::Host(HostStorage::Buf(copy)), reserved)
            }
            (false, _) => {
                let reserved = reserve(bytes.len())?;
                let mut copy = self.device.allocate(bytes.len())?;
                match self.device.upload(bytes.as_slice(), &mut copy, 0)? {
                    Completion::Ready => {}
                    Completion::Pending(event) => self.device.wait(event)?,
                }
                (copy, reserved)
            }
        };
        let storage = Arc::new(storage);
        made.insert(key, Made { storage: storage.clone(), _source: bytes.clone(), _reserved: reserved });
        Ok(storage)
    }
}

impl fmt::Debug for ConstPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "{} constants on {}", made.len(), self.device.backend())
    }
}
