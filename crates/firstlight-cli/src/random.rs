//! Made-up inputs: the same for the same seed on every machine.

use firstlight::{DType, Error, InputProblem, Tensor, bf16, f16};

/// A splitmix64 generator.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From -1 to 1.
    fn float(&mut self) -> f32 {
        let mantissa = (self.next() >> 40) as f32;
        mantissa / (1u32 << 23) as f32 - 1.0
    }

    /// 0 or 1: a valid token, mask, index or flag in about every model.
    fn bit(&mut self) -> u8 {
        (self.next() >> 63) as u8
    }

    /// A tensor of that element type and shape for the input of that name.
    pub(crate) fn tensor(&mut self, name: &str, dtype: DType, dims: &[usize]) -> Result<Tensor, Error> {
        // Refuses what memory cannot hold before anything is drawn.
        let n = Tensor::zeros(if dtype == DType::String { DType::U8 } else { dtype }, dims)?.n_elems();
        let tensor = match dtype {
            DType::F32 => Tensor::from_slice(dims, &self.draw(n, Random::float)),
            DType::F64 => Tensor::from_slice(dims, &self.draw(n, |random| f64::from(random.float()))),
            DType::F16 => Tensor::from_slice(dims, &self.draw(n, |random| f16::from_f32(random.float()))),
            DType::BF16 => Tensor::from_slice(dims, &self.draw(n, |random| bf16::from_f32(random.float()))),
            DType::I64 => Tensor::from_slice(dims, &self.draw(n, |random| i64::from(random.bit()))),
            DType::I32 => Tensor::from_slice(dims, &self.draw(n, |random| i32::from(random.bit()))),
            DType::I16 => Tensor::from_slice(dims, &self.draw(n, |random| i16::from(random.bit()))),
            DType::I8 => Tensor::from_slice(dims, &self.draw(n, |random| random.bit() as i8)),
            DType::U64 => Tensor::from_slice(dims, &self.draw(n, |random| u64::from(random.bit()))),
            DType::U32 => Tensor::from_slice(dims, &self.draw(n, |random| u32::from(random.bit()))),
            DType::U16 => Tensor::from_slice(dims, &self.draw(n, |random| u16::from(random.bit()))),
            DType::U8 => Tensor::from_slice(dims, &self.draw(n, Random::bit)),
            DType::Bool => Tensor::from_bools(dims, &self.draw(n, |random| random.bit() == 1)),
            DType::F8E4M3FN
            | DType::F8E4M3FNUZ
            | DType::F8E5M2
            | DType::F8E5M2FNUZ
            | DType::F8E8M0
            | DType::F6E2M3
            | DType::F6E3M2
            | DType::F4E2M1
            | DType::I4
            | DType::I2
            | DType::U4
            | DType::U2
            | DType::String
            | DType::Complex64
            | DType::Complex128 => {
                return Err(Error::Input { name: name.to_owned(), problem: InputProblem::Unsupported { dtype } });
            }
        };
        Ok(tensor?)
    }

    fn draw<T>(&mut self, n: usize, mut one: impl FnMut(&mut Random) -> T) -> Vec<T> {
        (0..n).map(|_| one(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_in_range_and_repeat() {
        let draw = |seed| Random::new(seed).tensor("x", DType::F32, &[1000]).unwrap();
        let first = draw(7);
        let values = first.values::<f32>().unwrap();
        assert!(values.iter().all(|v| (-1.0..=1.0).contains(v)));
        assert!(values.iter().any(|v| *v < -0.5) && values.iter().any(|v| *v > 0.5));
        assert_eq!(first, draw(7));
        assert_ne!(first, draw(8));
        let bits = Random::new(1).tensor("x", DType::I64, &[100]).unwrap();
        let bits = bits.to_i64s().unwrap();
        assert!(bits.contains(&0) && bits.contains(&1) && bits.iter().all(|v| (0..=1).contains(v)));
        assert!(Random::new(0).tensor("x", DType::String, &[1]).is_err());
        assert!(Random::new(0).tensor("x", DType::F32, &[usize::MAX]).is_err());
    }
}
