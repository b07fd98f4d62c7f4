//! Vector and matrix kernels of Firstlight: tiles only, no threads, no allocation.
//!
//! Start at [`Isa`]: `Isa::detect()` picks the CPU's best instruction set once, and its methods are the kernels. All instruction sets
//! give the same bits; `docs/numerics.md` fixes the order of every rounding.
//!
//! | to compute | use |
//! | --- | --- |
//! | exp, tanh, sigmoid, erf, sqrt, relu, .. of a slice | [`Isa::unary`], [`Isa::unary_in_place`] with [`Unary`] |
//! | add, sub, mul, div, max, min of slices or a slice and a scalar | [`Isa::binary`], [`Isa::binary_scalar`], [`Isa::scalar_binary`] and `_in_place`, with [`Binary`] |
//! | sum, max, min of a row, or over an outer axis | [`Isa::reduce`], [`Isa::reduce_rows`] with [`Reduce`] |
//! | the same and more in pieces: sums of squares or exponentials, products | [`FoldLanes`], [`FoldColumns`] with [`Fold`] |
//! | 16-bit floats to f32 and back | [`Isa::widen_f16`], [`Isa::narrow_f16`] and `_bf16` |
//! | softmax, layer normalisation of a row | [`Isa::softmax_row`], [`Isa::layer_norm_row`] |
//! | matrix products and convolutions, a tile at a time, with bias, residual and relu | [`Isa::product_tile`] with [`Product`], [`Out`] |
//! | depthwise convolution, max, average and norm pooling, some rows at a time | [`Isa::window_rows`] with [`Window`] |
//!
//! Inputs are [`Src`]: `&[f32]` converts into it, and so do the unaligned bytes of a mapped weight.
//!
//! ```
//! use firstlight_gemm::{Binary, Isa, Reduce, Unary};
//! let isa = Isa::detect();
//! let mut y = [0.0; 3];
//! isa.unary(Unary::Relu, &[-1.0, 0.5, 2.0], &mut y);
//! isa.binary_scalar_in_place(Binary::Mul, &mut y, 2.0);
//! assert_eq!((y, isa.reduce(Reduce::Sum, &y)), ([0.0, 1.0, 4.0], 5.0));
//! ```

mod fold;
mod halves;
mod isa;
mod math;
mod product;
mod simd;
mod slices;
mod src;
mod table;
mod window;

pub use fold::{Fold, FoldColumns, FoldLanes};
pub use isa::{Isa, IsaKind};
pub use product::{
    Addend, Block, ConvInput, Epilogue, Finish, Geometry, Lhs, Matrix, NR, Out, PRODUCT_SCRATCH_ELEMS, Product, Rhs,
    SMALL_M,
};
pub use slices::{Binary, Reduce, Unary};
pub use src::Src;
pub use window::{WINDOW_SCRATCH_ELEMS, Window, WindowPlan};
