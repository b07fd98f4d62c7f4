//! The host as a device.

use firstlight_backend::{
    BackendId, BackendStorage, Completion, Device, DeviceCall, HostBuf, HostStorage, OperandAddr,
};
use firstlight_graph::{OpError, OpErrorKind};

/// The host's processors and memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuDevice;

impl Device for CpuDevice {
    fn backend(&self) -> BackendId {
        BackendId::CPU
    }

    fn allocate(&self, n_bytes: usize) -> Result<BackendStorage, OpError> {
        Ok(BackendStorage::Host(HostStorage::Buf(HostBuf::zeroed(n_bytes)?)))
    }

    fn upload(&self, from: &[u8], to: &mut BackendStorage, offset: usize) -> Result<Completion, OpError> {
        let to = to.host_bytes_mut()?;
        let end = offset.checked_add(from.len());
        let to = end.and_then(|end| to.get_mut(offset..end)).ok_or_else(|| beyond(from.len(), offset))?;
        to.copy_from_slice(from);
        Ok(Completion::Ready)
    }

    fn download(&self, from: &BackendStorage, offset: usize, to: &mut [u8]) -> Result<(), OpError> {
        let from = from.host_bytes()?;
        let end = offset.checked_add(to.len());
        let from = end.and_then(|end| from.get(offset..end)).ok_or_else(|| beyond(to.len(), offset))?;
        to.copy_from_slice(from);
        Ok(())
    }

    fn copy(&self, _from: OperandAddr, _to: OperandAddr) -> Result<Completion, OpError> {
        Err(OpError::new(OpErrorKind::Device, "copies between host addresses are RunMemory's"))
    }

    fn launch(&self, _call: DeviceCall<'_>) -> Result<Completion, OpError> {
        Err(OpError::new(OpErrorKind::Device, "kernels on the host are launched by RunMemory"))
    }

    fn wait(&self, event: u64) -> Result<(), OpError> {
        Err(OpError::new(OpErrorKind::Device, format!("the host has no event {event}")))
    }
}

fn beyond(n_bytes: usize, offset: usize) -> OpError {
    OpError::new(OpErrorKind::Device, format!("{n_bytes} bytes at {offset} reach beyond their storage"))
}
