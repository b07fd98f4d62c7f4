//! Runs trained models: compiling and executing are one pipeline, so the first answer comes sooner.
