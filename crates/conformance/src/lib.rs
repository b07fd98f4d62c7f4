//! Op cases across back ends, graph generator, suite runners.
