//! A second device in plain Rust: strict where real ones are silent, deterministic, and the one to copy.
//!
//! A [`SimDevice`] has an address space of its own, which the host cannot reach; a byte budget; poisoned fresh memory;
//! a check of bounds and liveness at every access; counters; faults on demand ([`SimDevice::fail_nth`]); and, with
//! [`SimOptions::deferred`], a queue whose work is done when it is waited for and not before. Every op runs by its
//! reference, over copies of its operands.
//!
//! A back end is copied from here thus: `device.rs` is the whole contract; [`reference_row`] becomes rows of real
//! kernels; `space.rs`, `queue.rs` and `faults.rs` are what a driver would be.
//!
//! What is not here: kernels, clocks, placement. Start reading at [`SimDevice`].
#![forbid(unsafe_code)]

mod device;
mod faults;
mod queue;
mod space;
mod work;

pub use device::{SIM, SimCounters, SimDevice, SimOptions};
pub use faults::SimCall;
pub use space::POISON;

use firstlight_backend::{BackendId, KernelCtx, KernelFn};
use firstlight_graph::{OpError, OpErrorKind};

/// The row that makes every op runnable here: `KernelBindingTable::finalize(&[], &[reference_row()])`.
pub fn reference_row() -> (BackendId, KernelFn) {
    (SIM, on_the_host)
}

/// Stands in the table for what [`SimDevice`] does itself; a call of it means that a step of this device was launched
/// on the host.
fn on_the_host(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let op = ctx.op().info().name;
    Err(OpError::new(OpErrorKind::Device, format!("{op} was planned for {SIM} and launched on the host")))
}
