//! GEMM tiles and micro-kernels of Firstlight.
