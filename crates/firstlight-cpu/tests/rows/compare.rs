//! Comparing results with those of a reference.

use crate::samples::Sample;
use firstlight_graph::Exactness;
use firstlight_tensor::{DType, Kind, Tensor, bf16, f16};

/// How far a rounding op may be off: units in the last place, and a part of the largest expected value.
struct Tolerance {
    ulps: f64,
    of_largest: f64,
}

/// Nothing, or the first difference beyond the op's tolerance.
pub(crate) fn differences(sample: &Sample, expected: &[Tensor], got: &[Tensor]) -> Result<(), String> {
    for (i, (expected, got)) in expected.iter().zip(got).enumerate() {
        if expected.shape() != got.shape() {
            return Err(format!("output {i} has shape {}, expected {}", got.shape(), expected.shape()));
        }
        if expected.dtype().kind() != Kind::Float || expected.as_bytes() == got.as_bytes() {
            if expected.as_bytes() != got.as_bytes() {
                return Err(format!("output {i} differs: {}", first(expected, got)));
            }
            continue;
        }
        let Some(epsilon) = epsilon(expected.dtype()) else {
            return Err(format!("output {i} differs"));
        };
        let tolerance = match sample.op.info().exactness {
            Exactness::Exact => Tolerance { ulps: 0.0, of_largest: 0.0 },
            Exactness::Rounding | Exactness::Random => Tolerance { ulps: 8.0, of_largest: 4.0 },
        };
        let (expected, got) = (floats(expected), floats(got));
        let largest = expected.iter().filter(|x| x.is_finite()).fold(0f64, |most, x| most.max(x.abs()));
        for (at, (&e, &g)) in expected.iter().zip(&got).enumerate() {
            let same = (e.is_nan() && g.is_nan()) || e.to_bits() == g.to_bits();
            let near = (e - g).abs() <= epsilon * (tolerance.ulps * e.abs() + tolerance.of_largest * largest);
            if !same && (sample.op.info().exactness == Exactness::Exact || !near) {
                return Err(format!("output {i}, element {at}: {g:e}, expected {e:e}"));
            }
        }
    }
    Ok(())
}

/// Nothing, or the first difference in bits; a NaN is like any other.
pub(crate) fn other_bits(one: &[Tensor], other: &[Tensor]) -> Result<(), String> {
    for (i, (one, other)) in one.iter().zip(other).enumerate() {
        if one.as_bytes() == other.as_bytes() {
            continue;
        }
        if one.shape() != other.shape() || epsilon(one.dtype()).is_none() {
            return Err(format!("output {i} differs: {}", first(one, other)));
        }
        let pairs = floats(one).into_iter().zip(floats(other)).enumerate();
        for (at, (x, y)) in pairs {
            if x.to_bits() != y.to_bits() && !(x.is_nan() && y.is_nan()) {
                return Err(format!("output {i}, element {at}: {x:e} and {y:e}"));
            }
        }
    }
    Ok(())
}

fn first(expected: &Tensor, got: &Tensor) -> String {
    let width = (expected.dtype().bits() / 8).max(1);
    let mut pairs = expected.as_bytes().chunks(width).zip(got.as_bytes().chunks(width)).enumerate();
    match pairs.find(|(_, (e, g))| e != g) {
        Some((at, (e, g))) => format!("element {at}: bytes {g:x?}, expected {e:x?}"),
        None => "in length".to_owned(),
    }
}

fn epsilon(dtype: DType) -> Option<f64> {
    match dtype {
        DType::F32 => Some(f32::EPSILON.into()),
        DType::F64 => Some(f64::EPSILON),
        DType::F16 => Some(f16::EPSILON.into()),
        DType::BF16 => Some(bf16::EPSILON.into()),
        _ => None,
    }
}

fn floats(tensor: &Tensor) -> Vec<f64> {
    match tensor.dtype() {
        DType::F32 => tensor.values::<f32>().unwrap().iter().map(|&x| x.into()).collect(),
        DType::F64 => tensor.values::<f64>().unwrap().to_vec(),
        DType::F16 => tensor.values::<f16>().unwrap().iter().map(|&x| x.into()).collect(),
        _ => tensor.values::<bf16>().unwrap().iter().map(|&x| x.into()).collect(),
    }
}
