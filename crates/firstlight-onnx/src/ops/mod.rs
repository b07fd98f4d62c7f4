//! The ONNX ops that can be imported: one line each, one function each.
//!
//! A function reads the node's attributes and inputs as they were at the model's opset and appends the graph's op,
//! which is the same for all opsets.

mod control;
mod elementwise;
mod layout;

use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};

/// How an ONNX op is imported.
#[derive(Debug)]
pub(crate) struct OpImport {
    pub(crate) domain: &'static str,
    pub(crate) name: &'static str,
    /// The first version of the domain's operator set that has the op.
    pub(crate) since: i64,
    pub(crate) import: fn(&mut NodeCtx<'_, '_>) -> Result<Values, LoadError>,
}

const fn onnx(
    name: &'static str,
    since: i64,
    import: fn(&mut NodeCtx<'_, '_>) -> Result<Values, LoadError>,
) -> OpImport {
    OpImport { domain: "ai.onnx", name, since, import }
}

/// Sorted by domain and name.
const OPS: &[OpImport] = &[
    onnx("Add", 1, elementwise::add),
    onnx("Constant", 1, control::constant),
    onnx("If", 1, control::if_),
    onnx("Loop", 1, control::loop_),
    onnx("Relu", 1, elementwise::relu),
    onnx("Reshape", 1, layout::reshape),
];

/// Looks up an op.
pub(crate) fn find(domain: &str, name: &str) -> Option<&'static OpImport> {
    let i = OPS.binary_search_by(|op| (op.domain, op.name).cmp(&(domain, name))).ok()?;
    OPS.get(i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_has_no_op_twice() {
        assert!(OPS.windows(2).all(|w| (w[0].domain, w[0].name) < (w[1].domain, w[1].name)));
    }
}
