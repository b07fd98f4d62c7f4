//! Dtypes, shapes, layouts and host tensors of Firstlight.
