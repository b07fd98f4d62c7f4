//! Passes, memory planning and compile_node of Firstlight.
