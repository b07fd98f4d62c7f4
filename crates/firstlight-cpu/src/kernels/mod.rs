//! Kernels by family.
//!
//! A family's file holds its functions and their rows. What they share: [`spread`] (work over the pool), [`runs`]
//! (broadcasting by runs), [`number`] (element types), [`rows`] (rows of many element types).

mod conv;
mod elementwise;
mod gemm;
mod matmul;
mod matmul_plain;
mod matmul_tiles;
mod number;
mod rows;
mod runs;
mod spread;

use firstlight_backend::KernelBinding;

/// The rows of all families.
pub const BINDINGS: &[&[KernelBinding]] = &[elementwise::BINDINGS, matmul::BINDINGS, gemm::BINDINGS, conv::BINDINGS];
