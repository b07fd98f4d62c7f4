//! Whether a result is the right one.

use firstlight_graph::Exactness;
use firstlight_tensor::{DType, Tensor, TensorError, bf16, f16};

/// What is wrong with `got` where `want` is right; `None` when nothing is.
///
/// An exact op must give the same elements (any NaN is as good as another); a rounding one may be off by a few units
/// of the element type; of a random one only element type and shape count.
pub fn difference(got: &Tensor, want: &Tensor, exactness: Exactness) -> Option<String> {
    if (got.dtype(), got.shape()) != (want.dtype(), want.shape()) {
        return Some(format!("{}{} for {}{}", got.dtype(), got.shape(), want.dtype(), want.shape()));
    }
    let eps = match exactness {
        Exactness::Random => return None,
        Exactness::Exact => 0.0,
        Exactness::Rounding => match want.dtype() {
            DType::F64 => 1e-12,
            DType::F16 => 2e-3,
            DType::BF16 => 1.6e-2,
            _ => 5e-6,
        },
    };
    let (Ok(a), Ok(b)) = (floats(got), floats(want)) else { return Some("unreadable".to_owned()) };
    let Some((a, b)) = a.zip(b) else {
        return (got.as_bytes() != want.as_bytes()).then(|| format!("{got:?} for {want:?}"));
    };
    let is_close = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= eps * (1.0 + b.abs());
    let at = a.iter().zip(&b).position(|(&a, &b)| !is_close(a, b))?;
    Some(format!("{} for {} at element {at} of {}", a[at], b[at], a.len()))
}

/// The elements of a floating point tensor.
fn floats(tensor: &Tensor) -> Result<Option<Vec<f64>>, TensorError> {
    Ok(Some(match tensor.dtype() {
        DType::F64 => tensor.values::<f64>()?.into_owned(),
        DType::F32 => tensor.values::<f32>()?.iter().map(|&v| v.into()).collect(),
        DType::F16 => tensor.values::<f16>()?.iter().map(|&v| v.into()).collect(),
        DType::BF16 => tensor.values::<bf16>()?.iter().map(|&v| v.into()).collect(),
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_found() {
        let t = |values: &[f32]| Tensor::from_slice([values.len()], values).unwrap();
        let (exact, rounding) = (Exactness::Exact, Exactness::Rounding);
        assert_eq!(difference(&t(&[1., f32::NAN]), &t(&[1., f32::NAN]), exact), None);
        assert_eq!(difference(&t(&[1.0]), &t(&[1.000001]), rounding), None);
        assert_eq!(difference(&t(&[0.0]), &t(&[-0.0]), exact), None);
        assert!(difference(&t(&[1.0]), &t(&[1.000001]), exact).is_some());
        assert!(difference(&t(&[1.0]), &t(&[1.0001]), rounding).is_some());
        assert!(difference(&t(&[1.0]), &t(&[f32::NAN]), rounding).is_some());
        assert!(difference(&t(&[f32::INFINITY]), &t(&[1.0]), rounding).is_some());
        assert!(difference(&t(&[1.0]), &t(&[1.0, 1.0]), Exactness::Random).is_some());
        let i = |values: &[i32]| Tensor::from_slice([values.len()], values).unwrap();
        assert!(difference(&i(&[1]), &t(&[1.0]), rounding).is_some());
        assert!(difference(&i(&[1]), &i(&[2]), rounding).is_some());
        assert_eq!(difference(&i(&[1]), &i(&[1]), exact), None);
    }
}
