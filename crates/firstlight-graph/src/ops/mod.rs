//! The op table: one row an op, kept sorted.

mod cases;
mod checks;
pub mod control;
pub mod elementwise;
mod float;
pub mod layout;
pub mod nn;
pub mod reduce;
pub mod shape;
pub mod types;

use crate::op::{OpDef, OpInfo};

/// Declares the enums [`Op`] and [`OpKind`] from rows `Name: path::of::its::module`; the module holds a struct of that
/// name (the attributes) and its `INFO`.
macro_rules! op_table {
    ($($name:ident: $($path:ident)::+,)*) => {
        $(pub use $($path)::+::$name;)*

        /// An op with its attributes.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(missing_docs, reason = "a variant is documented by the op it is named after")]
        pub enum Op { $($name($name),)* }

        /// An op without its attributes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "a variant is documented by the op it is named after")]
        pub enum OpKind { $($name,)* }

        impl Op {
            /// Which op it is.
            pub fn kind(&self) -> OpKind {
                match self { $(Op::$name(_) => OpKind::$name,)* }
            }

            /// What its attributes do.
            pub fn def(&self) -> &dyn OpDef {
                match self { $(Op::$name(op) => op,)* }
            }
        }

        impl OpKind {
            /// Every op.
            pub const ALL: &'static [OpKind] = &[$(OpKind::$name,)*];

            /// What is fixed for the op.
            pub fn info(self) -> &'static OpInfo {
                match self { $(OpKind::$name => &$($path)::+::INFO,)* }
            }
        }

        $(impl From<$name> for Op {
            fn from(op: $name) -> Op { Op::$name(op) }
        })*
    };
}

op_table! {
    Abs: elementwise::abs,
    Add: elementwise::add,
    And: elementwise::and,
    ArgMax: reduce::arg_max,
    ArgMin: reduce::arg_min,
    AveragePool: nn::average_pool,
    BatchNormalization: nn::batch_normalization,
    BitShift: elementwise::bit_shift,
    BitwiseAnd: elementwise::bitwise_and,
    BitwiseNot: elementwise::bitwise_not,
    BitwiseOr: elementwise::bitwise_or,
    BitwiseXor: elementwise::bitwise_xor,
    Cast: elementwise::cast,
    Ceil: elementwise::ceil,
    Celu: elementwise::celu,
    Clip: elementwise::clip,
    Compress: layout::compress,
    Concat: layout::concat,
    Const: control::constant,
    ConstantOfShape: shape::constant_of_shape,
    Conv: nn::conv,
    ConvTranspose: nn::conv_transpose,
    Cos: elementwise::cos,
    CumSum: reduce::cum_sum,
    DepthToSpace: layout::depth_to_space,
    Div: elementwise::div,
    Elementwise: elementwise::chain,
    Elu: elementwise::elu,
    Equal: elementwise::equal,
    Erf: elementwise::erf,
    Exp: elementwise::exp,
    Expand: layout::expand,
    Flatten: layout::flatten,
    Floor: elementwise::floor,
    Fused: nn::fused,
    Gather: layout::gather,
    GatherElements: layout::gather_elements,
    GatherND: layout::gather_nd,
    Gelu: elementwise::gelu,
    Gemm: nn::gemm,
    GlobalAveragePool: nn::global_average_pool,
    GlobalLpPool: nn::global_lp_pool,
    GlobalMaxPool: nn::global_max_pool,
    Greater: elementwise::greater,
    GreaterOrEqual: elementwise::greater_or_equal,
    GroupNormalization: reduce::group_normalization,
    HardSigmoid: elementwise::hard_sigmoid,
    HardSwish: elementwise::hard_swish,
    Identity: elementwise::identity,
    If: control::if_op,
    Input: control::input,
    InstanceNormalization: reduce::instance_normalization,
    IsInf: elementwise::is_inf,
    IsNaN: elementwise::is_nan,
    LRN: nn::lrn,
    LSTM: nn::lstm,
    LayerNormalization: reduce::layer_normalization,
    LeakyRelu: elementwise::leaky_relu,
    Less: elementwise::less,
    LessOrEqual: elementwise::less_or_equal,
    Log: elementwise::log,
    LogSoftmax: reduce::log_softmax,
    Loop: control::loop_op,
    LpPool: nn::lp_pool,
    MatMul: nn::matmul,
    Max: elementwise::max,
    MaxPool: nn::max_pool,
    MaxUnpool: nn::max_unpool,
    Min: elementwise::min,
    Mish: elementwise::mish,
    Mod: elementwise::mod_op,
    Mul: elementwise::mul,
    Neg: elementwise::neg,
    NonZero: shape::non_zero,
    Not: elementwise::not,
    OneHot: layout::one_hot,
    Or: elementwise::or,
    PRelu: elementwise::p_relu,
    Pad: layout::pad,
    Pow: elementwise::pow,
    RMSNormalization: reduce::rms_normalization,
    Range: shape::range,
    Reciprocal: elementwise::reciprocal,
    ReduceL1: reduce::reduce_l1,
    ReduceL2: reduce::reduce_l2,
    ReduceLogSum: reduce::reduce_log_sum,
    ReduceLogSumExp: reduce::reduce_log_sum_exp,
    ReduceMax: reduce::reduce_max,
    ReduceMean: reduce::reduce_mean,
    ReduceMin: reduce::reduce_min,
    ReduceProd: reduce::reduce_prod,
    ReduceSum: reduce::reduce_sum,
    ReduceSumSquare: reduce::reduce_sum_square,
    Relu: elementwise::relu,
    Reshape: layout::reshape,
    Resize: nn::resize,
    ReverseSequence: layout::reverse_sequence,
    Round: elementwise::round,
    ScatterElements: layout::scatter_elements,
    ScatterND: layout::scatter_nd,
    Selu: elementwise::selu,
    Shape: shape::shape_op,
    Sigmoid: elementwise::sigmoid,
    Sign: elementwise::sign,
    Sin: elementwise::sin,
    Size: shape::size,
    Slice: layout::slice,
    Softmax: reduce::softmax,
    Softplus: elementwise::softplus,
    Softsign: elementwise::softsign,
    SpaceToDepth: layout::space_to_depth,
    Split: layout::split,
    Sqrt: elementwise::sqrt,
    Squeeze: layout::squeeze,
    Sub: elementwise::sub,
    Tanh: elementwise::tanh,
    ThresholdedRelu: elementwise::thresholded_relu,
    Tile: layout::tile,
    TopK: reduce::top_k,
    Transpose: layout::transpose,
    Trilu: layout::trilu,
    Unsqueeze: layout::unsqueeze,
    Where: elementwise::where_op,
    Xor: elementwise::xor,
}

impl Op {
    /// What is fixed for the op.
    pub fn info(&self) -> &'static OpInfo {
        self.kind().info()
    }
}

impl OpKind {
    /// The op's name.
    pub fn name(self) -> &'static str {
        self.info().name
    }
}

impl Op {
    /// The subgraphs of the op, in the order of its attributes.
    pub fn subgraphs(&self) -> impl Iterator<Item = &std::sync::Arc<crate::Graph>> {
        let pair = match self {
            Op::If(op) => [Some(&op.then_branch), Some(&op.else_branch)],
            Op::Loop(op) => [Some(&op.body), None],
            _ => [None, None],
        };
        pair.into_iter().flatten()
    }
}
