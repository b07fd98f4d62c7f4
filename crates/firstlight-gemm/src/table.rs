//! The function-pointer tables: every kernel, instantiated once per instruction set.

use crate::fold::{self, Fold, Rows};
use crate::product::micro::{self, MicroOut, Part, Slab};
use crate::product::{self, Lhs, Matrix, Out, Product, Rhs, few, pack, small};
use crate::slices::{self, Binary, Reduce, Unary};
use crate::src::Src;
use crate::window::{self, Window, WindowPlan};
use std::ops::Range;

/// Declares [`Table`] and one static table per instruction set. Each line names a generic function over `S: Simd`.
macro_rules! tables {
    ($( $path:ident :: $name:ident ( $($arg:ident : $ty:ty),* $(,)? ) $(-> $ret:ty)? ; )*) => {
        /// One entry per kernel. Calling one needs the CPU features of the table it came from, and what the generic function of
        /// the same name demands.
        pub(crate) struct Table { $( pub(crate) $name: unsafe fn($($ty),*) $(-> $ret)? ),* }

        pub(crate) static PORTABLE: Table = {
            $(
                /// # Safety
                /// As the generic function of the same name.
                unsafe fn $name($($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: the caller keeps the promises of the generic function.
                    unsafe { $path::$name(crate::simd::Portable, $($arg),*) }
                }
            )*
            Table { $($name),* }
        };

        #[cfg(target_arch = "x86_64")]
        pub(crate) static AVX2: Table = {
            $(
                /// # Safety
                /// The CPU has AVX2 and FMA; the rest as the generic function of the same name.
                #[target_feature(enable = "avx2,fma")]
                unsafe fn $name($($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: the caller vouches for the features and keeps the promises of the generic function.
                    unsafe { $path::$name(crate::simd::Avx2::assume(), $($arg),*) }
                }
            )*
            Table { $($name),* }
        };

        #[cfg(target_arch = "x86_64")]
        pub(crate) static AVX512: Table = {
            $(
                /// # Safety
                /// The CPU has AVX-512 F, BW, DQ and VL, and AVX2 and FMA; the rest as the generic function of the same name.
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                unsafe fn $name($($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: the caller vouches for the features and keeps the promises of the generic function.
                    unsafe { $path::$name(crate::simd::Avx512::assume(), $($arg),*) }
                }
            )*
            Table { $($name),* }
        };
    };
}

tables! {
    slices::unary(op: Unary, x: *const f32, out: *mut f32, n: usize);
    slices::binary(op: Binary, a: *const f32, b: *const f32, out: *mut f32, n: usize);
    slices::binary_scalar(op: Binary, a: *const f32, b: f32, swap: bool, out: *mut f32, n: usize);
    slices::reduce(op: Reduce, x: *const f32, n: usize) -> f32;
    slices::reduce_rows(op: Reduce, x: *const f32, rows: usize, stride: usize, out: *mut f32, n: usize);
    fold::fold_run(fold: Fold, shift: f32, x: *const f32, n: usize, lanes: *mut f32, first: usize);
    fold::fold_rows(fold: Fold, shifts: *const f32, x: &Rows, lanes: *mut f32, first: usize);
    fold::fold_finish(fold: Fold, lanes: *const f32, out: *mut f32, n: usize);
    slices::sum_squared_deviations(x: *const f32, n: usize, mean: f32) -> f32;
    slices::softmax_row(x: *const f32, out: *mut f32, n: usize);
    slices::layer_norm_row(x: *const f32, scale: *const f32, bias: *const f32, eps: f32, out: *mut f32, n: usize) -> (f32, f32);
    product::product_tile(product: &Product<'_>, out: Out<'_>, rows: Range<usize>, cols: Range<usize>, scratch: *mut f32);
    micro::rows_1(slab: &Slab, out: &MicroOut<'_>, part: Part);
    micro::rows_2(slab: &Slab, out: &MicroOut<'_>, part: Part);
    micro::rows_3(slab: &Slab, out: &MicroOut<'_>, part: Part);
    small::row_major(lhs: &Lhs<'_>, b: &Matrix<'_>, out: &MicroOut<'_>, rows: Range<usize>, cols: Range<usize>);
    small::transposed(lhs: &Lhs<'_>, b: &Matrix<'_>, out: &MicroOut<'_>, rows: Range<usize>, cols: Range<usize>);
    pack::panel(rhs: &Rhs<'_>, k0: usize, kc: usize, col: usize, width: usize, to: *mut f32);
    window::window_rows(plan: &WindowPlan, window: &Window<'_>, input: Src<'_>, rows: Range<usize>, out: *mut f32, scratch: *mut f32);
    few::few_columns(slab: &Slab, out: &MicroOut<'_>, part: Part) -> bool;
}
