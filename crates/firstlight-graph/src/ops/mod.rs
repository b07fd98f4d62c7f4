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
        pub enum Op { $($name($name),)* }

        /// An op without its attributes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    Add: elementwise::add,
    And: elementwise::and,
    AveragePool: nn::average_pool,
    BatchNormalization: nn::batch_normalization,
    Cast: elementwise::cast,
    Clip: elementwise::clip,
    Concat: layout::concat,
    Const: control::constant,
    ConstantOfShape: shape::constant_of_shape,
    Conv: nn::conv,
    Div: elementwise::div,
    Elementwise: elementwise::chain,
    Equal: elementwise::equal,
    Erf: elementwise::erf,
    Exp: elementwise::exp,
    Expand: layout::expand,
    Flatten: layout::flatten,
    Fused: nn::fused,
    Gather: layout::gather,
    GatherElements: layout::gather_elements,
    Gemm: nn::gemm,
    GlobalAveragePool: nn::global_average_pool,
    GlobalMaxPool: nn::global_max_pool,
    Greater: elementwise::greater,
    GreaterOrEqual: elementwise::greater_or_equal,
    HardSigmoid: elementwise::hard_sigmoid,
    HardSwish: elementwise::hard_swish,
    Identity: elementwise::identity,
    If: control::if_op,
    Input: control::input,
    LSTM: nn::lstm,
    LayerNormalization: reduce::layer_normalization,
    Less: elementwise::less,
    LessOrEqual: elementwise::less_or_equal,
    Loop: control::loop_op,
    MatMul: nn::matmul,
    Max: elementwise::max,
    MaxPool: nn::max_pool,
    Min: elementwise::min,
    Mod: elementwise::mod_op,
    Mul: elementwise::mul,
    NonZero: shape::non_zero,
    Not: elementwise::not,
    Pad: layout::pad,
    Pow: elementwise::pow,
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
    Shape: shape::shape_op,
    Sigmoid: elementwise::sigmoid,
    Size: shape::size,
    Slice: layout::slice,
    Softmax: reduce::softmax,
    Split: layout::split,
    Sqrt: elementwise::sqrt,
    Squeeze: layout::squeeze,
    Sub: elementwise::sub,
    Tanh: elementwise::tanh,
    Transpose: layout::transpose,
    Unsqueeze: layout::unsqueeze,
    Where: elementwise::where_op,
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
