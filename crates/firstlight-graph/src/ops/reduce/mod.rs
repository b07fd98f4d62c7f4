//! Ops that combine elements along axes, and the order in which they add.
//!
//! Sums follow one rule, whatever the op: with the elements in logical order, lane `i` of 16 adds elements `i`,
//! `i + 16`, `i + 32`, ... in that order, starting from 0; then lane `i` adds lane `i + 8`, then `i + 4`, `i + 2`,
//! `i + 1`. Products are rounded before they are added. 16-bit floats are summed in `f32`.

pub mod along;
pub mod arg;
pub mod arg_max;
pub mod arg_min;
pub mod cum_sum;
pub mod group_normalization;
pub mod instance_normalization;
pub mod layer_normalization;
pub mod log_softmax;
pub mod reduce_l1;
pub mod reduce_l2;
pub mod reduce_log_sum;
pub mod reduce_log_sum_exp;
pub mod reduce_max;
pub mod reduce_mean;
pub mod reduce_min;
pub mod reduce_prod;
pub mod reduce_sum;
pub mod reduce_sum_square;
pub mod rms_normalization;
pub mod softmax;
pub mod top_k;

use crate::OpError;
use firstlight_tensor::{Layout, TensorView};
use smallvec::SmallVec;
use std::ops::Add;

/// The sum of values by the rule of this module.
pub(crate) fn lane_sum<T: Copy + Default + Add<Output = T>>(values: impl IntoIterator<Item = T>) -> T {
    let mut lanes = [T::default(); 16];
    for (i, value) in values.into_iter().enumerate() {
        lanes[i % 16] = lanes[i % 16] + value;
    }
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] = lanes[i] + lanes[i + half];
        }
    }
    lanes[0]
}

/// The view with the axes for which `last` holds moved behind the others, both groups in order.
///
/// **Errors**: the view reaches beyond its bytes; `last` has another length than the rank.
pub(crate) fn axes_last<'a>(view: &TensorView<'a>, last: &[bool]) -> Result<TensorView<'a>, OpError> {
    let misfit = || OpError::shape(format!("a view of shape {} reaches beyond its bytes", view.shape()));
    if last.len() != view.shape().rank() {
        return Err(OpError::shape(format!("{} axes for an input of shape {}", last.len(), view.shape())));
    }
    let group = |wanted: bool| last.iter().enumerate().filter(move |&(_, &is)| is == wanted).map(|(axis, _)| axis);
    let order: SmallVec<[usize; 6]> = group(false).chain(group(true)).collect();
    let shape = order.iter().map(|&axis| view.shape()[axis]).collect();
    let strides: SmallVec<[isize; 6]> = order.iter().map(|&axis| view.layout().strides()[axis]).collect();
    let n_elems = view.raw().len() / (view.dtype().bits() / 8).max(1);
    let layout = Layout::strided(&shape, &strides, view.layout().offset(), n_elems).ok_or_else(misfit)?;
    Ok(TensorView::new(view.dtype(), layout, view.raw()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_tensor::{DType, Shape, Tensor};

    #[test]
    fn sums_follow_the_lane_rule() {
        // 2^24 + 1 is no f32: what a lane adds before the tree decides.
        let mut values = [0f32; 33];
        (values[0], values[16], values[32]) = (16_777_216., 1., 1.);
        assert_eq!(lane_sum(values), 16_777_216.);
        // Here lane 1 holds both ones, so that they add up before they meet the large number.
        let mut values = [0f32; 33];
        (values[0], values[1], values[17]) = (16_777_216., 1., 1.);
        assert_eq!(lane_sum(values), 16_777_218.);
        // Lane 0 meets lane 8 first, then 4, 2 and 1.
        let mut values = [0f32; 16];
        (values[0], values[8], values[1]) = (16_777_216., -16_777_216., 1.);
        assert_eq!(lane_sum(values), 1.);
        let mut values = [0f32; 16];
        (values[0], values[1], values[8]) = (1., 16_777_216., 0.);
        (values[9], values[2]) = (-16_777_216., 1.);
        assert_eq!(lane_sum(values), 2.);
        assert_eq!(lane_sum::<f32>([]).to_bits(), 0);
    }

    #[test]
    fn axes_move_behind_the_others() {
        let tensor = Tensor::from_slice([2, 3], &[1i32, 2, 3, 4, 5, 6]).unwrap();
        let moved = axes_last(&tensor.view(), &[true, false]).unwrap();
        assert_eq!(moved.shape(), &Shape::from([3, 2]));
        assert_eq!(&moved.values::<i32>().unwrap()[..], [1, 4, 2, 5, 3, 6]);
        assert!(axes_last(&tensor.view(), &[true]).is_err());
        let short = TensorView::dense(DType::I32, tensor.shape(), &tensor.as_bytes()[..8]);
        assert!(axes_last(&short, &[true, false]).is_err());
    }
}
