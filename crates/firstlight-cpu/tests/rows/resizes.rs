//! Random operands of Resize.

use crate::random::Random;
use crate::samples::Sample;
use firstlight_backend::KernelBinding;
use firstlight_graph::OpKind;
use firstlight_graph::ops::Resize;
use firstlight_graph::ops::nn::resampling::{Coordinates, Filter, NearestMode};
use firstlight_tensor::{DType, Tensor};

const COORDINATES: [Coordinates; 6] = [
    Coordinates::HalfPixel,
    Coordinates::HalfPixelSymmetric,
    Coordinates::PytorchHalfPixel,
    Coordinates::AlignCorners,
    Coordinates::Asymmetric,
    Coordinates::TfHalfPixelForNn,
];

/// What to try rows of Resize on.
pub(crate) fn resizes(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    if row.op != OpKind::Resize {
        return vec![];
    }
    let nearest = [NearestMode::Floor, NearestMode::Ceil, NearestMode::RoundPreferCeil].map(Filter::Nearest);
    let filters = nearest.into_iter().chain([Filter::Linear, Filter::Cubic(-0.5)]);
    let all: [(&[usize], &[f32]); 11] = [
        (&[5], &[2.0]),
        (&[7], &[0.6]),
        (&[2, 3], &[3.0, 4.0]),
        (&[1, 2, 5, 6], &[1.0, 1.0, 2.0, 2.0]),
        (&[1, 2, 5, 6], &[1.0, 1.0, 4.0, 4.0]),
        (&[1, 2, 5, 6], &[1.0, 1.0, 1.0, 1.7]),
        (&[1, 2, 5, 6], &[1.0, 1.0, 0.5, 1.0]),
        (&[2, 3, 4, 5], &[1.0, 2.0, 1.5, 1.0]),
        // The size stays, the scale does not.
        (&[3, 3, 3], &[1.1, 1.1, 1.1]),
        (&[1, 0, 4, 4], &[1.0, 1.0, 2.0, 2.0]),
        (&[1, 3, 100, 90], &[1.0, 1.0, 2.0, 2.5]),
    ];
    let mut samples = vec![];
    for filter in filters {
        for coordinates in COORDINATES {
            for (dims, scales) in all {
                let is_large = dims.iter().product::<usize>() > 10_000;
                if is_large && (row.types[0] != DType::F32 || coordinates != Coordinates::HalfPixel) {
                    continue;
                }
                for exclude_outside in [false, true] {
                    let op = Resize { coordinates, exclude_outside, filter, ..Resize::default() };
                    let scales = Tensor::from_slice([scales.len()], scales).unwrap();
                    samples.push(Sample {
                        name: format!("{op:?} of {dims:?} by {scales:?}"),
                        op: op.into(),
                        inputs: vec![Some(random.finite(row.types[0], dims)), None, Some(scales)],
                        n_outputs: 1,
                    });
                    if matches!(filter, Filter::Nearest(_)) {
                        break;
                    }
                }
            }
        }
    }
    samples
}
