//! Random tensors that are the same in every run.

use firstlight_tensor::{Bytes, DType, Element, Shape, Tensor, bf16, f16};

/// A SplitMix64 generator.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `range`.
    pub(crate) fn within(&mut self, range: std::ops::Range<i64>) -> i64 {
        let n = (range.end - range.start).max(1) as u64;
        range.start + (self.bits() % n) as i64
    }

    fn float(&mut self) -> f32 {
        match self.bits() % 64 {
            0 => [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0, 1e-30, 3e38][(self.bits() % 7) as usize],
            1 => self.within(-3..4) as f32,
            _ => (self.bits() >> 40) as f32 / (1u64 << 21) as f32 - 4.0,
        }
    }

    /// A tensor of values of all sorts, or of finite ones near 0.
    pub(crate) fn tensor(&mut self, dtype: DType, dims: &[usize]) -> Tensor {
        self.tensor_where(dtype, dims, true)
    }

    /// A tensor of finite values near 0.
    pub(crate) fn finite(&mut self, dtype: DType, dims: &[usize]) -> Tensor {
        self.tensor_where(dtype, dims, false)
    }

    fn tensor_where(&mut self, dtype: DType, dims: &[usize], wild: bool) -> Tensor {
        let n = dims.iter().product();
        let mut float = || match self.float() {
            x if wild || (x.is_finite() && x.abs() < 10.0) => x,
            _ => 0.5,
        };
        match dtype {
            DType::F32 => make(dims, n, float),
            DType::F64 => make(dims, n, || f64::from(float())),
            DType::F16 => make(dims, n, || f16::from_f32(float())),
            DType::BF16 => make(dims, n, || bf16::from_f32(float())),
            DType::I64 => make(dims, n, || self.int(wild)),
            DType::I32 => make(dims, n, || self.int(wild) as i32),
            DType::I16 => make(dims, n, || self.int(wild) as i16),
            DType::I8 => make(dims, n, || self.int(wild) as i8),
            DType::U64 => make(dims, n, || self.int(wild).unsigned_abs()),
            DType::U32 => make(dims, n, || self.int(wild) as u32),
            DType::U16 => make(dims, n, || self.int(wild) as u16),
            DType::U8 => make(dims, n, || self.int(wild) as u8),
            DType::Bool => self.raw(dtype, dims, n, |bits| (bits % 3) as u8),
            DType::String => Tensor::from_strings(dims, &vec!["a"; n]).unwrap(),
            _ => self.raw(dtype, dims, dtype.size_bytes(n).unwrap(), |bits| bits as u8),
        }
    }

    fn int(&mut self, wild: bool) -> i64 {
        match self.bits() % 16 {
            0 if wild => [i64::MIN, i64::MAX, 0, -1, i32::MIN.into(), 255, 256][(self.bits() % 7) as usize],
            1 if wild => self.bits() as i64,
            _ => self.within(-9..10),
        }
    }

    fn raw(&mut self, dtype: DType, dims: &[usize], n_bytes: usize, byte: impl Fn(u64) -> u8) -> Tensor {
        let bytes: Vec<u8> = (0..n_bytes).map(|_| byte(self.bits())).collect();
        Tensor::new(dtype, Shape::from(dims), Bytes::from(&bytes[..])).unwrap()
    }
}

fn make<T: Element>(dims: &[usize], n: usize, mut value: impl FnMut() -> T) -> Tensor {
    let values: Vec<T> = (0..n).map(|_| value()).collect();
    Tensor::from_slice(dims, &values).unwrap()
}
