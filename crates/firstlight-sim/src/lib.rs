//! A strict second device in plain Rust, for tests of Firstlight.
