//! Matrix products, convolution, pooling and recurrent ops, and what they share.

pub mod activation;
pub mod average_pool;
pub mod batch_normalization;
pub mod conv;
pub mod conv_transpose;
pub mod fused;
pub mod gemm;
pub mod global_average_pool;
pub mod global_lp_pool;
pub mod global_max_pool;
pub mod lp_pool;
pub mod lrn;
pub mod lstm;
pub mod matmul;
pub mod max_pool;
pub mod max_unpool;
pub mod pooling;
pub mod resampling;
pub mod resize;
pub mod window;

pub(crate) mod arith;
