//! The generator of all randomness here.

/// Xorshift with a multiplied output; the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator of a seed and the number of a stream.
    pub fn new(seed: u64, stream: u64) -> Rng {
        // Two rounds of splitmix, so that near seeds give streams that have nothing in common.
        let mut state = seed ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for _ in 0..2 {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            state ^= state >> 31;
        }
        Rng(state | 1)
    }

    /// Any number.
    pub fn u64(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.u64() >> 32) as usize).checked_rem(n).unwrap_or(0)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of some values.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A number up to `most` whose magnitude, not value, is evenly spread.
    pub fn magnitude(&mut self, most: usize) -> usize {
        let bits = self.below(most.max(1).ilog2() as usize + 2);
        (self.u64() as usize & ((1usize << bits) - 1)).min(most)
    }

    /// An integer that code tends to get wrong, or any.
    pub fn odd_i64(&mut self) -> i64 {
        const ODD: &[i64] = &[
            0,
            1,
            -1,
            2,
            -2,
            3,
            7,
            8,
            63,
            64,
            65,
            127,
            128,
            255,
            256,
            1000,
            65_535,
            65_536,
            1 << 24,
            i32::MAX as i64,
            i32::MIN as i64,
            1 << 31,
            1 << 32,
            (1 << 32) - 1,
            1 << 40,
            1 << 48,
            1 << 61,
            1 << 62,
            -(1 << 62),
            i64::MAX,
            i64::MAX - 1,
            i64::MIN,
            i64::MIN + 1,
        ];
        match self.below(8) {
            0 => self.u64() as i64,
            1 => self.below(32) as i64 - 8,
            _ => *self.pick(ODD),
        }
    }

    /// A float that code tends to get wrong, or any.
    pub fn odd_f64(&mut self) -> f64 {
        const ODD: &[f64] = &[0., -0., 1., -1., 0.5, 1e-30, 1e30, -1e30, 9.3e18, f64::MAX, f64::MIN_POSITIVE];
        match self.below(6) {
            0 => f64::from_bits(self.u64()),
            1 => f64::NAN,
            2 => f64::INFINITY,
            3 => f64::NEG_INFINITY,
            _ => *self.pick(ODD),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_reproducible_and_differ() {
        let draw = |seed, stream| {
            let mut rng = Rng::new(seed, stream);
            (0..8).map(|_| rng.u64()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
        let mut rng = Rng::new(0, 0);
        assert!((0..1000).all(|_| rng.below(3) < 3 && rng.magnitude(100) <= 100));
        assert_eq!(rng.below(0), 0);
    }
}
