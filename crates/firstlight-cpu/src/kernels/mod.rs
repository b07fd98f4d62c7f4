//! Kernels by family.

use firstlight_backend::KernelBinding;

/// The rows of all families.
pub const BINDINGS: &[&[KernelBinding]] = &[];
