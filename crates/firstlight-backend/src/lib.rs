//! The contract between the planner and the devices: storage, memory, kernel bindings, pool.
//!
//! A [`Device`] allocates [`Storage`] and moves bytes; a kernel is a plain function and a [`KernelBinding`] row in a
//! [`KernelBindingTable`]; a [`RunMemory`] owns the chunks that a run's values live in and is the only way to launch.
//!
//! What is not here: which kernel or address a node gets (plan), in which order steps run (exec).
//! Unsafe code is confined to `memory.rs` and `pool.rs`.
#![deny(unsafe_code)]

mod binding;
mod budget;
pub mod channel;
mod device;
mod kernel;
mod memory;
pub mod pool;
mod storage;

pub use binding::{BindingError, Caps, KernelBinding, KernelBindingTable, KernelFn, KernelQuery, OperandSpec, ROW};
pub use budget::{Budget, OverBudget, Reservation};
pub use device::{BackendId, Completion, Device, DeviceCall, OperandAddr};
pub use kernel::{KernelCall, reference_kernel};
pub use memory::{
    ALIGN, Chunk, ChunkMaker, Guards, HUGE_PAGE_BYTES, HostBuf, KernelCtx, Loc, RunMemory, StepAddrs, Words,
    for_chunks_mut, for_chunks_mut_cost, for_chunks_with_scratch_cost, for_tiles_with_scratch,
    for_tiles_with_scratch_cost,
};
pub use pool::Pool;
pub use storage::{BackendStorage, DeviceStorage, HostStorage, Storage};
