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
mod resize;
mod select;
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
    onnx("Abs", 1, unary::abs),
    onnx("Add", 1, elementwise::add),
    onnx("And", 1, elementwise::and),
    onnx("ArgMax", 1, reduce::arg_max),
    onnx("ArgMin", 1, reduce::arg_min),
    onnx("AveragePool", 1, pool::average_pool),
    onnx("BatchNormalization", 1, normalize::batch_normalization),
    onnx("BitShift", 11, elementwise::bit_shift),
    onnx("BitwiseAnd", 18, elementwise::bitwise_and),
    onnx("BitwiseNot", 18, elementwise::bitwise_not),
    onnx("BitwiseOr", 18, elementwise::bitwise_or),
    onnx("BitwiseXor", 18, elementwise::bitwise_xor),
    onnx("Cast", 1, elementwise::cast),
    onnx("Ceil", 1, unary::ceil),
    onnx("Celu", 12, unary::celu),
    onnx("Clip", 1, unary::clip),
    onnx("Compress", 9, select::compress),
    onnx("Concat", 1, layout::concat),
    onnx("Constant", 1, control::constant),
    onnx("ConstantOfShape", 9, shape::constant_of_shape),
    onnx("Conv", 1, nn::conv),
    onnx("ConvTranspose", 1, nn::conv_transpose),
    onnx("Cos", 7, unary::cos),
    onnx("CumSum", 11, select::cum_sum),
    onnx("DepthToSpace", 1, select::depth_to_space),
    onnx("Div", 1, elementwise::div),
    onnx("Dropout", 1, elementwise::dropout),
    onnx("Elu", 1, unary::elu),
    onnx("Equal", 1, elementwise::equal),
    onnx("Erf", 9, elementwise::erf),
    onnx("Exp", 1, unary::exp),
    onnx("Expand", 8, layout::expand),
    onnx("EyeLike", 9, select::eye_like),
    onnx("Flatten", 1, layout::flatten),
    onnx("Floor", 1, unary::floor),
    onnx("Gather", 1, layout::gather),
    onnx("GatherElements", 11, layout::gather_elements),
    onnx("GatherND", 11, select::gather_nd),
    onnx("Gelu", 20, unary::gelu),
    onnx("Gemm", 1, nn::gemm),
    onnx("GlobalAveragePool", 1, nn::global_average_pool),
    onnx("GlobalLpPool", 1, reduce::global_lp_pool),
    onnx("GlobalMaxPool", 1, reduce::global_max_pool),
    onnx("Greater", 1, elementwise::greater),
    onnx("GreaterOrEqual", 12, elementwise::greater_or_equal),
    onnx("GroupNormalization", 18, normalize::group_normalization),
    onnx("HardSigmoid", 1, unary::hard_sigmoid),
    onnx("HardSwish", 14, unary::hard_swish),
    onnx("Identity", 1, elementwise::identity),
    onnx("If", 1, control::if_),
    onnx("InstanceNormalization", 1, normalize::instance_normalization),
    onnx("IsInf", 10, unary::is_inf),
    onnx("IsNaN", 9, unary::is_nan),
    onnx("LRN", 1, normalize::lrn),
    onnx("LSTM", 1, nn::lstm),
    onnx("LayerNormalization", 17, reduce::layer_normalization),
    onnx("LeakyRelu", 1, unary::leaky_relu),
    onnx("Less", 1, elementwise::less),
    onnx("LessOrEqual", 12, elementwise::less_or_equal),
    onnx("Log", 1, unary::log),
    onnx("LogSoftmax", 1, reduce::log_softmax),
    onnx("Loop", 1, control::loop_),
    onnx("LpNormalization", 1, reduce::lp_normalization),
    onnx("LpPool", 1, pool::lp_pool),
    onnx("MatMul", 1, nn::matmul),
    onnx("Max", 1, elementwise::max),
    onnx("MaxPool", 1, pool::max_pool),
    onnx("MaxUnpool", 9, pool::max_unpool),
    onnx("Mean", 1, elementwise::mean),
    onnx("MeanVarianceNormalization", 9, reduce::mean_variance_normalization),
    onnx("Min", 1, elementwise::min),
    onnx("Mish", 18, unary::mish),
    onnx("Mod", 10, elementwise::mod_),
    onnx("Mul", 1, elementwise::mul),
    onnx("Neg", 1, unary::neg),
    onnx("NonZero", 9, shape::non_zero),
    onnx("Not", 1, elementwise::not),
    onnx("OneHot", 9, select::one_hot),
    onnx("Or", 1, elementwise::or),
    onnx("PRelu", 1, elementwise::p_relu),
    onnx("Pad", 1, layout::pad),
    onnx("Pow", 1, elementwise::pow),
    onnx("RMSNormalization", 23, reduce::rms_normalization),
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
    onnx("Resize", 10, resize::resize),
    onnx("ReverseSequence", 10, select::reverse_sequence),
    onnx("Round", 11, unary::round),
    onnx("Scatter", 9, select::scatter),
    onnx("ScatterElements", 11, select::scatter_elements),
    onnx("ScatterND", 11, select::scatter_nd),
    onnx("Selu", 1, unary::selu),
    onnx("Shape", 1, shape::shape),
    onnx("Sigmoid", 1, elementwise::sigmoid),
    onnx("Sign", 9, unary::sign),
    onnx("Sin", 7, unary::sin),
    onnx("Size", 1, shape::size),
    onnx("Slice", 1, layout::slice),
    onnx("Softmax", 1, reduce::softmax),
    onnx("Softplus", 1, unary::softplus),
    onnx("Softsign", 1, unary::softsign),
    onnx("SpaceToDepth", 1, select::space_to_depth),
    onnx("Split", 1, layout::split),
    onnx("Sqrt", 1, elementwise::sqrt),
    onnx("Squeeze", 1, layout::squeeze),
    onnx("Sub", 1, elementwise::sub),
    onnx("Sum", 1, elementwise::sum),
    onnx("Tanh", 1, unary::tanh),
    onnx("ThresholdedRelu", 10, unary::thresholded_relu),
    onnx("Tile", 1, select::tile),
    onnx("TopK", 1, reduce::top_k),
    onnx("Transpose", 1, layout::transpose),
    onnx("Trilu", 14, select::trilu),
    onnx("Unsqueeze", 1, layout::unsqueeze),
    onnx("Upsample", 1, resize::upsample),
    onnx("Where", 9, elementwise::where_),
    onnx("Xor", 1, elementwise::xor),
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
