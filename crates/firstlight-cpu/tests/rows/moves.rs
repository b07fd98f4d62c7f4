//! Random operands of ops that move elements.

use crate::random::Random;
use crate::samples::Sample;
use firstlight_backend::KernelBinding;
use firstlight_graph::OpKind;
use firstlight_graph::ops;
use firstlight_tensor::Tensor;

/// What to try rows of these families on.
pub(crate) fn moves(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    match row.op {
        OpKind::Split => splits(row, random),
        _ => vec![],
    }
}

fn splits(row: &KernelBinding, random: &mut Random) -> Vec<Sample> {
    type Cut = (&'static [usize], i64, Option<&'static [i64]>, usize);
    let all: [Cut; 9] = [
        (&[6, 4], 0, None, 3),
        (&[3, 7], 1, None, 4),
        (&[3, 4, 5], -2, Some(&[1, 0, 3]), 3),
        (&[2, 5, 3, 2], 1, Some(&[4, 1]), 2),
        (&[10, 3], 1, None, 3),
        (&[0, 4], 1, None, 2),
        (&[5], 0, None, 4),
        (&[300, 400], 0, Some(&[100, 200]), 2),
        (&[30, 20, 300], 2, Some(&[1, 200, 99]), 3),
    ];
    let sample = |(dims, axis, sizes, n_outputs): Cut| {
        let sizes = sizes.map(|sizes| Tensor::from_slice([sizes.len()], sizes).unwrap());
        let name = format!("{n_outputs} parts of {dims:?} along {axis}: {sizes:?}");
        let inputs = vec![Some(random.tensor(row.types[0], dims)), sizes];
        Sample { name, op: ops::Split { axis }.into(), inputs, n_outputs }
    };
    all.into_iter().map(sample).collect()
}
