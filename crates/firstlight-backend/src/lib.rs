//! The contract between Firstlight and its back ends: storage, memory, pool, kernel bindings.
