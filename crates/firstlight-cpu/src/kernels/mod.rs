//! Kernels by family.
//!
//! A family's file holds its functions and their rows. What they share: [`spread`] (work over the pool), [`runs`]
//! (broadcasting by runs), [`number`] (element types), [`rows`] (rows of many element types).

mod elementwise;
mod number;
mod rows;
mod runs;
mod spread;

use firstlight_backend::KernelBinding;

/// The rows of all families.
pub const BINDINGS: &[&[KernelBinding]] = &[elementwise::BINDINGS];
