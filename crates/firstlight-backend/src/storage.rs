//! One storage type for all devices.

use crate::HostBuf;
use crate::device::BackendId;
use firstlight_graph::OpError;
use firstlight_tensor::{Bytes, DType, Tensor};
use std::any::Any;
use std::fmt;

/// Layout-free bytes of one element type on one device; never resized, never moved.
#[derive(Debug)]
pub struct Storage {
    dtype: DType,
    bytes: BackendStorage,
}

/// Bytes on the host or on a device.
#[derive(Debug)]
pub enum BackendStorage {
    /// Memory that kernels of the host take slices of.
    Host(HostStorage),
    /// Memory that only its device can reach.
    Device(Box<dyn DeviceStorage>),
}

/// Bytes that the host can reach.
#[derive(Debug)]
pub enum HostStorage {
    /// Memory to compute in.
    Buf(HostBuf),
    /// A constant: owned or mapped, never written.
    Bytes(Bytes),
}

/// Bytes in a device's own address space.
pub trait DeviceStorage: Send + Sync + fmt::Debug {
    /// The backend whose memory it is.
    fn backend(&self) -> BackendId;
    /// Length in bytes.
    fn len(&self) -> usize;
    /// True when there is no byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Where the bytes start in the device's address space; fixed for life.
    fn address(&self) -> u64;
    /// For the backend that made it.
    fn as_any(&self) -> &dyn Any;
}

impl Storage {
    /// Storage of given bytes.
    pub fn new(dtype: DType, bytes: BackendStorage) -> Storage {
        Storage { dtype, bytes }
    }

    /// Host storage that shares a tensor's bytes.
    pub fn from_tensor(tensor: &Tensor) -> Storage {
        Storage { dtype: tensor.dtype(), bytes: BackendStorage::Host(HostStorage::Bytes(tensor.bytes().clone())) }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The bytes, wherever they are.
    pub fn backend(&self) -> &BackendStorage {
        &self.bytes
    }

    /// The bytes, wherever they are, to write through a device.
    pub fn backend_mut(&mut self) -> &mut BackendStorage {
        &mut self.bytes
    }

    /// The bytes, where the host can reach them.
    ///
    /// **Errors**: the bytes are a device's.
    pub fn host_bytes(&self) -> Result<&[u8], OpError> {
        self.bytes.host_bytes()
    }
}

impl BackendStorage {
    /// Length in bytes.
    pub fn len(&self) -> usize {
        match self {
            BackendStorage::Host(HostStorage::Buf(buf)) => buf.len(),
            BackendStorage::Host(HostStorage::Bytes(bytes)) => bytes.len(),
            BackendStorage::Device(device) => device.len(),
        }
    }

    /// True when there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the bytes start: a host address, or one in the device's address space.
    pub fn address(&self) -> u64 {
        match self {
            BackendStorage::Host(HostStorage::Buf(buf)) => buf.address(),
            BackendStorage::Host(HostStorage::Bytes(bytes)) => bytes.as_slice().as_ptr() as u64,
            BackendStorage::Device(device) => device.address(),
        }
    }

    /// True when the host can reach the bytes.
    pub fn is_host(&self) -> bool {
        match self {
            BackendStorage::Host(_) => true,
            BackendStorage::Device(_) => false,
        }
    }

    /// The bytes, where the host can reach them.
    ///
    /// **Errors**: the bytes are a device's.
    pub fn host_bytes(&self) -> Result<&[u8], OpError> {
        match self {
            BackendStorage::Host(HostStorage::Buf(buf)) => Ok(buf.as_slice()),
            BackendStorage::Host(HostStorage::Bytes(bytes)) => Ok(bytes.as_slice()),
            BackendStorage::Device(device) => Err(unreachable_from_host(device.backend())),
        }
    }

    /// The bytes to write, where the host can reach them and they are no constant.
    ///
    /// **Errors**: the bytes are a device's, or a constant's.
    pub fn host_bytes_mut(&mut self) -> Result<&mut [u8], OpError> {
        match self {
            BackendStorage::Host(HostStorage::Buf(buf)) => Ok(buf.as_mut_slice()),
            BackendStorage::Host(HostStorage::Bytes(_)) => {
                Err(OpError::new(firstlight_graph::OpErrorKind::Device, "a constant's bytes cannot be written"))
            }
            BackendStorage::Device(device) => Err(unreachable_from_host(device.backend())),
        }
    }
}

fn unreachable_from_host(backend: BackendId) -> OpError {
    let message = format!("host access to bytes of backend {backend}; copy them with Device::download");
    OpError::new(firstlight_graph::OpErrorKind::Device, message)
}
