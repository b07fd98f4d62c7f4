//! The contract between Firstlight and its back ends: storage, memory, pool, kernel bindings.
pub mod channel;
pub mod pool;
