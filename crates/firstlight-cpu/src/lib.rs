//! The CPU back end of Firstlight.
