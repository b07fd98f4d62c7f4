//! `ReduceLogSumExp`.

use super::along::{self, Along, Row};
use crate::op::{AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::elementwise::operations;
use crate::ops::nn::arith::{Math, lane_fold};
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::Tensor;
use smallvec::SmallVec;

/// The logarithm of the sum of exponentials along axes; the second input names them.
///
/// With `m` the greatest element, 0 where that is not finite: `log(sum(exp(x - m))) + m`, the sum by the rule of [the module](super).
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceLogSumExp {
    /// True when reduced axes stay, with size 1.
    pub keepdims: bool,
    /// True when no axes mean that nothing is combined; otherwise they mean that all are reduced.
    pub noop_with_empty_axes: bool,
}

impl Default for ReduceLogSumExp {
    fn default() -> ReduceLogSumExp {
        ReduceLogSumExp { keepdims: true, noop_with_empty_axes: false }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ReduceLogSumExp",
    doc: "The natural logarithm of the sum of exponentials along the given axes, which may count from the end; the greatest element is taken out first, so that nothing overflows. Integers are computed in f64 and rounded toward zero. The result of no elements is negative infinity.",
    attributes: along::ATTRIBUTES,
    inputs: along::INPUTS,
    outputs: along::OUTPUTS,
    types: &[TypeVar { name: "T", allowed: along::TYPES }],
    exactness: Exactness::Rounding,
    cases,
};

impl ReduceLogSumExp {
    pub(crate) fn along(&self) -> Along {
        Along { keepdims: self.keepdims, noop_with_empty_axes: self.noop_with_empty_axes }
    }
}

impl OpDef for ReduceLogSumExp {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        self.along().attributes()
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        self.along().infer(ctx)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.along().compute::<Of>(ctx, "ReduceLogSumExp")
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        operations(inputs.get(..1).unwrap_or(&[]), 12)
    }
}

struct Of;

impl Row for Of {
    fn reduce<M: Math>(row: &[M]) -> M {
        if M::IS_INT {
            let row: Vec<f64> = row.iter().map(|x| x.to_real()).collect();
            return M::cast_f64(Of::reduce(&row));
        }
        let lowest = M::cast_f64(f64::NEG_INFINITY);
        let max = lane_fold(row.iter().copied(), lowest, |a, b| if b.to_real() > a.to_real() { b } else { a });
        let shift = if max.to_real().is_finite() { max } else { M::ZERO };
        let minus = M::cast_f64(-shift.to_real());
        let exps = row.iter().map(|x| M::cast_f64(libm::exp(x.plus(minus).to_real())));
        M::cast_f64(libm::log(lane_fold(exps, M::ZERO, M::plus).to_real())).plus(shift)
    }
}

fn cases() -> Vec<Case> {
    let axes = |axes: &[i64]| tensor(&[axes.len()], axes);
    let over = |name, x: Tensor, over: &[i64], y: Tensor| {
        case(name, ReduceLogSumExp { keepdims: false, ..ReduceLogSumExp::default() }, &[x, axes(over)], &[y])
    };
    let all = |name, x: Tensor, y: Tensor| {
        case(name, ReduceLogSumExp { keepdims: false, ..ReduceLogSumExp::default() }, &[x], &[y])
    };
    let noop = ReduceLogSumExp { noop_with_empty_axes: true, ..ReduceLogSumExp::default() };
    let ln2 = std::f32::consts::LN_2;
    let (inf, least) = (f32::INFINITY, f32::NEG_INFINITY);
    let x = || tensor(&[2, 2], &[0f32, 0., 1., 1.]);
    vec![
        over("last axis", x(), &[-1], tensor(&[2], &[ln2, 1. + ln2])),
        over("first axis", tensor(&[2, 2], &[0f32, 1., 0., 1.]), &[0], tensor(&[2], &[ln2, 1. + ln2])),
        case("an axis stays", ReduceLogSumExp::default(), &[x(), axes(&[1])], &[tensor(&[2, 1], &[ln2, 1. + ln2])]),
        over("outer and inner axes", tensor(&[2, 2, 2], &[0f32; 8]), &[2, 0], tensor(&[2], &[2. * ln2; 2])),
        all("nothing overflows", tensor(&[2], &[1000f32, 1000.]), Tensor::scalar(1000. + ln2)),
        all("no axes: all", tensor(&[2], &[0f32, 0.]), Tensor::scalar(ln2)),
        case("empty axes: the elements", noop, &[x(), axes(&[])], &[x()]),
        over("of nothing", tensor::<f32>(&[2, 0], &[]), &[1], tensor(&[2], &[least; 2])),
        over(
            "infinities and NaN",
            tensor(&[4, 2], &[inf, 0., least, 0., least, least, 0., f32::NAN]),
            &[1],
            tensor(&[4], &[inf, 0., least, f32::NAN]),
        ),
        all("integers round toward zero", tensor(&[2], &[10i64, 10]), Tensor::scalar(10i64)),
        all("f64", tensor(&[2], &[0f64, 0.]), Tensor::scalar(std::f64::consts::LN_2)),
    ]
}
