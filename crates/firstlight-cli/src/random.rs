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

    /// `n` different numbers below `of`, in a random order; all of them where `n` is as many or more.
    pub(crate) fn pick(&mut self, n: usize, of: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..of).collect();
        for i in 0..n.min(of) {
            let n_left = (of - i) as u128;
            // The high half of a product: each of the numbers left comes as often, to one part in 2^64.
            let place = (u128::from(self.next()) * n_left) >> 64;
            numbers.swap(i, i + place as usize);
        }
        numbers.truncate(n);
        numbers
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
    fn picks_are_different_and_repeat() {
        let mut picked = Random::new(3).pick(10, 12);
        assert_eq!(picked, Random::new(3).pick(10, 12));
        assert_ne!(picked, Random::new(4).pick(10, 12));
        picked.sort_unstable();
        picked.dedup();
        assert!(picked.len() == 10 && picked.iter().all(|i| *i < 12), "{picked:?}");
        let mut all = Random::new(0).pick(9, 4);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
    }

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
