//! The pipelined executor of Firstlight.
