//! What a device does: allocate, move bytes, launch.

use crate::{BackendStorage, KernelCall};
use firstlight_graph::OpError;
use firstlight_tensor::Shape;
use std::fmt;

/// A code family that kernels are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BackendId(pub &'static str);

impl BackendId {
    /// The host's processors.
    pub const CPU: BackendId = BackendId("cpu");
}

impl fmt::Display for BackendId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Whether a step's results are there, or something to wait for.
#[must_use = "a pending completion has to be waited for"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// They are there.
    Ready,
    /// The device's event of that number.
    Pending(u64),
}

/// Bytes of an operand, as an address of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandAddr {
    /// Where the bytes start in the device's address space.
    pub address: u64,
    /// Their number; 0 for an operand without elements.
    pub n_bytes: usize,
}

/// A kernel to launch on a device that is not the host.
#[derive(Debug)]
pub struct DeviceCall<'a> {
    /// Op, attributes and the specs of the operands.
    pub call: &'a KernelCall,
    /// One an input (`None`: omitted).
    pub inputs: &'a [Option<OperandAddr>],
    /// One an output, in the op's order.
    pub outputs: &'a [OperandAddr],
    /// Memory that the kernel may use as it likes while it runs; its size is the row's `scratch_bytes`.
    pub scratch: OperandAddr,
    /// Final shapes of data-sized outputs, to be set by the kernel.
    pub found: &'a mut [Shape],
}

/// One piece of hardware (or its simulation).
pub trait Device: Send + Sync + fmt::Debug {
    /// Which kernels run here.
    fn backend(&self) -> BackendId;

    /// Allocates storage of fixed address, aligned to 64 bytes.
    ///
    /// **Errors**: the device has not that much memory left.
    fn allocate(&self, n_bytes: usize) -> Result<BackendStorage, OpError>;

    /// Copies host bytes to storage, from `offset` on.
    ///
    /// **Errors**: the bytes do not fit; the storage is not this device's.
    fn upload(&self, from: &[u8], to: &mut BackendStorage, offset: usize) -> Result<Completion, OpError>;

    /// Copies storage, from `offset` on, to host bytes; they are there when it returns.
    ///
    /// **Errors**: the range reaches beyond the storage; the storage is not this device's.
    fn download(&self, from: &BackendStorage, offset: usize, to: &mut [u8]) -> Result<(), OpError>;

    /// Copies bytes between two addresses of this device's own memory.
    ///
    /// **Errors**: a range outside the device's memory.
    fn copy(&self, from: OperandAddr, to: OperandAddr) -> Result<Completion, OpError>;

    /// Launches a kernel. The host's device is launched by `RunMemory` itself and never through here.
    ///
    /// **Errors**: what the kernel says.
    fn launch(&self, call: DeviceCall<'_>) -> Result<Completion, OpError>;

    /// Waits for an event that a completion named.
    ///
    /// **Errors**: what went wrong on the device before it.
    fn wait(&self, event: u64) -> Result<(), OpError>;
}
