//! Kernels by family.
//!
//! A family's file holds its functions and their rows. What they share: `spread` (work over the pool), `runs`
//! (broadcasting), `strided` (views), `number` (element types), `rows` (rows of many element types).

mod arg;
mod average_pool;
mod batch_norm;
mod bitwise;
mod cast;
mod chain;
mod compress;
mod concat;
mod conv;
mod conv_transpose;
mod copy;
mod cum_sum;
mod elementwise;
mod epilogue;
mod expand;
mod gather;
mod gemm;
mod global_pool;
mod instance_norm;
mod log_softmax;
mod lp_pool;
mod lrn;
mod lstm;
mod matmul;
mod matmul_plain;
mod matmul_tiles;
mod max_unpool;
mod modulo;
mod norm;
mod number;
mod one_hot;
mod ordered;
mod pad;
mod pool;
mod pow;
mod real;
mod reduce;
mod resize;
mod rms_norm;
mod rows;
mod runs;
mod scatter;
mod select;
mod shapes;
mod slice;
mod softmax;
mod split;
mod spread;
mod strided;
mod tile;
mod top_k;
mod transpose;
mod trilu;
mod tuples;
mod unary;

use firstlight_backend::KernelBinding;
use firstlight_graph::{OpError, OpErrorKind};

/// The rows of all families.
pub const BINDINGS: &[&[KernelBinding]] = &[
    elementwise::BINDINGS,
    elementwise::NUMBERS,
    ordered::BINDINGS,
    modulo::BINDINGS,
    bitwise::BINDINGS,
    unary::BINDINGS,
    chain::BINDINGS,
    cast::BINDINGS,
    select::BINDINGS,
    pow::BINDINGS,
    reduce::BINDINGS,
    softmax::BINDINGS,
    norm::BINDINGS,
    instance_norm::BINDINGS,
    arg::BINDINGS,
    log_softmax::BINDINGS,
    rms_norm::BINDINGS,
    top_k::BINDINGS,
    shapes::BINDINGS,
    transpose::BINDINGS,
    concat::BINDINGS,
    split::BINDINGS,
    tile::BINDINGS,
    trilu::BINDINGS,
    tuples::BINDINGS,
    scatter::BINDINGS,
    one_hot::BINDINGS,
    compress::BINDINGS,
    cum_sum::BINDINGS,
    slice::BINDINGS,
    gather::BINDINGS,
    gather::ELEMENTS,
    expand::BINDINGS,
    pad::BINDINGS,
    copy::BINDINGS,
    matmul::BINDINGS,
    gemm::BINDINGS,
    conv::BINDINGS,
    conv_transpose::BINDINGS,
    resize::BINDINGS,
    pool::BINDINGS,
    average_pool::BINDINGS,
    lp_pool::BINDINGS,
    max_unpool::BINDINGS,
    lrn::BINDINGS,
    batch_norm::BINDINGS,
    global_pool::BINDINGS,
    lstm::BINDINGS,
];

/// The error of a kernel that was launched for an op of another kind.
fn other_op(expected: &str) -> OpError {
    OpError::new(OpErrorKind::Device, format!("broken plan: a kernel of {expected} was launched for another op"))
}
