//! The CPU backend: the host as a device, and its kernels.
//!
//! `kernels/<family>.rs` holds functions and their `BINDINGS`; [`BINDINGS`] lists the families. Kernels follow the
//! accumulation orders of `docs/numerics.md`, so that rows of one key agree bit for bit.
#![deny(unsafe_code)]

mod device;
pub mod kernels;

pub use device::CpuDevice;
pub use kernels::BINDINGS;
