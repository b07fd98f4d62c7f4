//! By how much two tensors differ.

use firstlight_tensor::{DType, Shape, Tensor, bf16, f16};
use std::fmt;

/// How much two tensors may differ: an element may be off by `abs`, or by `rel` of the scale, which is the greatest
/// magnitude among the right values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Absolute part.
    pub abs: f64,
    /// Part of the scale.
    pub rel: f64,
    /// True when every bit must be the same, signs of zeros and NaNs included.
    pub same_bits: bool,
}

/// By how much a tensor differs from the right one.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Element type and shape, of both; of the right one where they are not the same.
    pub shape: Shape,
    /// Element type of the right one.
    pub dtype: DType,
    /// Element type and shape of the wrong one, where they are not those of the right one; the rest is 0 then.
    pub got: Option<(DType, Shape)>,
    /// Number of elements beyond the tolerance.
    pub n_beyond: usize,
    /// Number of elements.
    pub n_elems: usize,
    /// The greatest difference of an element; infinite where one is no number and the other is.
    pub absolute: f64,
    /// The same as a part of the scale.
    pub relative: f64,
    /// The greatest magnitude among the right values.
    pub scale: f64,
    /// Where the greatest difference is, one index a dimension.
    pub index: Vec<usize>,
    /// The wrong element there.
    pub value: f64,
    /// The right one.
    pub expected: f64,
}

impl Tolerance {
    /// None: every bit must be the same.
    pub const NONE: Tolerance = Tolerance { abs: 0., rel: 0., same_bits: true };
    /// Values must be equal; zeros and NaNs may differ in what no comparison sees.
    pub const EQUAL: Tolerance = Tolerance { abs: 0., rel: 0., same_bits: false };

    /// What rounding makes of an element type, as a part of the scale: 1e-4 for f32, 1e-9 for f64, 4e-3 for f16, 3e-2
    /// for bf16; nothing for integers and bools.
    pub fn of(dtype: DType) -> Tolerance {
        let rel = match dtype {
            DType::F32 => 1e-4,
            DType::F64 => 1e-9,
            DType::F16 => 4e-3,
            DType::BF16 => 3e-2,
            _ => 0.,
        };
        Tolerance { rel, ..Tolerance::EQUAL }
    }
}

impl Difference {
    /// Compares; `None` when nothing is beyond the tolerance.
    pub fn between(got: &Tensor, want: &Tensor, tolerance: Tolerance) -> Option<Difference> {
        let mut difference = Difference {
            shape: want.shape().clone(),
            dtype: want.dtype(),
            got: None,
            n_beyond: 0,
            n_elems: want.n_elems(),
            absolute: 0.,
            relative: 0.,
            scale: 0.,
            index: vec![],
            value: 0.,
            expected: 0.,
        };
        if got.dtype() != want.dtype() || got.shape() != want.shape() {
            difference.got = Some((got.dtype(), got.shape().clone()));
            return Some(difference);
        }
        if got.as_bytes() == want.as_bytes() {
            return None;
        }
        let width = (want.dtype().bits() / 8).max(1);
        let same_bits = |i: usize| {
            let range = i * width..(i + 1) * width;
            got.as_bytes().get(range.clone()) == want.as_bytes().get(range)
        };
        let (got, want) = (numbers(got), numbers(want));
        let finite = want.iter().filter(|value| value.is_finite());
        difference.scale = finite.fold(0., |scale: f64, value| scale.max(value.abs()));
        let allowed = tolerance.abs + tolerance.rel * difference.scale;
        let mut worst: Option<usize> = None;
        for (i, (a, b)) in got.iter().zip(&want).enumerate() {
            let off = if a == b || (a.is_nan() && b.is_nan()) {
                0.
            } else {
                let off = (a - b).abs();
                if off.is_nan() { f64::INFINITY } else { off }
            };
            let is_beyond = off > allowed || (tolerance.same_bits && !same_bits(i));
            difference.n_beyond += usize::from(is_beyond);
            if is_beyond && (worst.is_none() || off > difference.absolute) {
                worst = Some(i);
                difference.absolute = off;
            }
        }
        let at = worst?;
        difference.relative = if difference.absolute == 0. { 0. } else { difference.absolute / difference.scale };
        (difference.value, difference.expected) = (got[at], want[at]);
        let mut rest = at;
        for &size in difference.shape.iter().rev() {
            difference.index.push(rest % size.max(1));
            rest /= size.max(1);
        }
        difference.index.reverse();
        Some(difference)
    }
}

/// Elements as numbers; none for strings.
fn numbers(tensor: &Tensor) -> Vec<f64> {
    let floats = match tensor.dtype() {
        DType::F32 => tensor.values::<f32>().map(|v| v.iter().map(|&v| v.into()).collect()),
        DType::F64 => tensor.values::<f64>().map(|v| v.to_vec()),
        DType::F16 => tensor.values::<f16>().map(|v| v.iter().map(|&v| v.into()).collect()),
        DType::BF16 => tensor.values::<bf16>().map(|v| v.iter().map(|&v| v.into()).collect()),
        DType::Bool => tensor.bools().map(|v| v.into_iter().map(f64::from).collect()),
        _ => tensor.to_i64s().map(|v| v.into_iter().map(|v| v as f64).collect()),
    };
    floats.unwrap_or_default()
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { shape, dtype, n_beyond, n_elems, absolute, relative, value, expected, .. } = self;
        if let Some((got_dtype, got_shape)) = &self.got {
            return write!(f, "expected {dtype}{shape}, got {got_dtype}{got_shape}");
        }
        write!(f, "by at most {absolute:.6} ({relative:.3e} of the scale) in {dtype}{shape} at {:?}: ", self.index)?;
        write!(f, "{value} instead of {expected}; {n_beyond} of {n_elems} elements beyond the tolerance")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(values: &[f32]) -> Tensor {
        Tensor::from_slice([values.len() / 2, 2], values).unwrap()
    }

    #[test]
    fn the_worst_element_is_found_with_its_place() {
        let want = tensor(&[1., -200., 3., 4.]);
        let got = tensor(&[1., -200., 3.5, 4.03]);
        let found = Difference::between(&got, &want, Tolerance::of(DType::F32)).unwrap();
        assert_eq!((found.n_beyond, found.n_elems, found.index.as_slice()), (2, 4, &[1, 0][..]));
        assert_eq!((found.absolute, found.scale, found.relative), (0.5, 200., 0.0025));
        assert_eq!((found.value, found.expected), (3.5, 3.));
        assert_eq!(Difference::between(&tensor(&[1., -200., 3.019, 4.]), &want, Tolerance::of(DType::F32)), None);
        assert!(Difference::between(&tensor(&[1., -200., 3.021, 4.]), &want, Tolerance::of(DType::F32)).is_some());
    }

    #[test]
    fn what_is_no_number_differs_from_what_is_one_only() {
        let nan = tensor(&[f32::NAN, f32::INFINITY]);
        assert_eq!(Difference::between(&nan, &nan, Tolerance::NONE), None);
        let other = tensor(&[1., f32::INFINITY]);
        let found = Difference::between(&nan, &other, Tolerance::of(DType::F32)).unwrap();
        assert_eq!((found.absolute, found.n_beyond), (f64::INFINITY, 1));
        assert_eq!(Difference::between(&tensor(&[0., 1.]), &tensor(&[-0., 1.]), Tolerance::EQUAL), None);
        let signs = Difference::between(&tensor(&[0., 1.]), &tensor(&[-0., 1.]), Tolerance::NONE).unwrap();
        assert_eq!((signs.absolute, signs.n_beyond), (0., 1));
    }

    #[test]
    fn another_type_or_shape_differs() {
        let want = tensor(&[1., 2.]);
        let got = Tensor::from_slice([2], &[1i64, 2]).unwrap();
        let found = Difference::between(&got, &want, Tolerance::EQUAL).unwrap();
        assert_eq!(found.to_string(), "expected f32[1,2], got i64[2]");
    }
}
