//! Mutated-model generator and its oracle.
