//! The ONNX ops that can be imported: one line each, one function each.
//!
//! A function reads the node's attributes and inputs as they were at the model's opset and appends the graph's op,
//! which is the same for all opsets.

mod control;
mod elementwise;
mod layout;
mod nn;
mod normalize;
mod pool;
mod reduce;
mod shape;
mod unary;

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
    onnx("And", 1, elementwise::and),
    onnx("AveragePool", 1, pool::average_pool),
    onnx("BatchNormalization", 1, normalize::batch_normalization),
    onnx("Cast", 1, elementwise::cast),
    onnx("Clip", 1, unary::clip),
    onnx("Concat", 1, layout::concat),
    onnx("Constant", 1, control::constant),
    onnx("ConstantOfShape", 9, shape::constant_of_shape),
    onnx("Conv", 1, nn::conv),
    onnx("Div", 1, elementwise::div),
    onnx("Equal", 1, elementwise::equal),
    onnx("Erf", 9, elementwise::erf),
    onnx("Exp", 1, unary::exp),
    onnx("Expand", 8, layout::expand),
    onnx("Flatten", 1, layout::flatten),
    onnx("Gather", 1, layout::gather),
    onnx("GatherElements", 11, layout::gather_elements),
    onnx("Gemm", 1, nn::gemm),
    onnx("GlobalAveragePool", 1, nn::global_average_pool),
    onnx("GlobalMaxPool", 1, reduce::global_max_pool),
    onnx("Greater", 1, elementwise::greater),
    onnx("GreaterOrEqual", 12, elementwise::greater_or_equal),
    onnx("HardSigmoid", 1, unary::hard_sigmoid),
    onnx("HardSwish", 14, unary::hard_swish),
    onnx("Identity", 1, elementwise::identity),
    onnx("If", 1, control::if_),
    onnx("LSTM", 1, nn::lstm),
    onnx("LayerNormalization", 17, reduce::layer_normalization),
    onnx("Less", 1, elementwise::less),
    onnx("LessOrEqual", 12, elementwise::less_or_equal),
    onnx("Loop", 1, control::loop_),
    onnx("MatMul", 1, nn::matmul),
    onnx("Max", 1, elementwise::max),
    onnx("MaxPool", 1, pool::max_pool),
    onnx("Min", 1, elementwise::min),
    onnx("Mod", 10, elementwise::mod_),
    onnx("Mul", 1, elementwise::mul),
    onnx("NonZero", 9, shape::non_zero),
    onnx("Not", 1, elementwise::not),
    onnx("Pad", 1, layout::pad),
    onnx("Pow", 1, elementwise::pow),
    onnx("Range", 11, shape::range),
    onnx("Reciprocal", 1, unary::reciprocal),
    onnx("ReduceL1", 1, reduce::reduce_l1),
    onnx("ReduceL2", 1, reduce::reduce_l2),
    onnx("ReduceLogSum", 1, reduce::reduce_log_sum),
    onnx("ReduceLogSumExp", 1, reduce::reduce_log_sum_exp),
    onnx("ReduceMax", 1, reduce::reduce_max),
    onnx("ReduceMean", 1, reduce::reduce_mean),
    onnx("ReduceMin", 1, reduce::reduce_min),
    onnx("ReduceProd", 1, reduce::reduce_prod),
    onnx("ReduceSum", 1, reduce::reduce_sum),
    onnx("ReduceSumSquare", 1, reduce::reduce_sum_square),
    onnx("Relu", 1, elementwise::relu),
    onnx("Reshape", 1, layout::reshape),
    onnx("Shape", 1, shape::shape),
    onnx("Sigmoid", 1, elementwise::sigmoid),
    onnx("Size", 1, shape::size),
    onnx("Slice", 1, layout::slice),
    onnx("Softmax", 1, reduce::softmax),
    onnx("Split", 1, layout::split),
    onnx("Sqrt", 1, elementwise::sqrt),
    onnx("Squeeze", 1, layout::squeeze),
    onnx("Sub", 1, elementwise::sub),
    onnx("Tanh", 1, unary::tanh),
    onnx("Transpose", 1, layout::transpose),
    onnx("Unsqueeze", 1, layout::unsqueeze),
    onnx("Where", 9, elementwise::where_),
];

/// Newest opset of the standard domain that the importer has been checked against.
pub const NEWEST_OPSET: i64 = 28;

/// An ONNX op that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportedOp {
    /// Its domain; `ai.onnx` for the standard one.
    pub domain: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The first version of the domain's operator set that has the op; it is imported as of that and each later one.
    pub since: i64,
}

/// All ONNX ops that can be imported, by domain and name.
pub fn imported_ops() -> impl Iterator<Item = ImportedOp> {
    OPS.iter().map(|op| ImportedOp { domain: op.domain, name: op.name, since: op.since })
}

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
