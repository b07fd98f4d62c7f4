//! Dense tensors in host memory.

use crate::{Bytes, DType, Element, OwnedBytes, Shape, TensorView};
use std::borrow::Cow;
use std::fmt;

/// A dense row-major tensor in host memory; cheap to clone, since clones share the bytes.
///
/// **Dtypes**: all. Sub-byte types are packed, low bits first. Strings are `n + 1` little-endian `u64` offsets
/// followed by the UTF-8 bytes they delimit.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    dtype: DType,
    shape: Shape,
    bytes: Bytes,
}

/// Why bytes do not make a tensor, or a tensor not a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorError {
    /// The dimensions multiply to more than memory can hold.
    TooLarge {
        /// Element type asked for.
        dtype: DType,
        /// Shape asked for.
        shape: Shape,
    },
    /// The bytes are not as many as dtype and shape ask for.
    WrongSize {
        /// Element type asked for.
        dtype: DType,
        /// Shape asked for.
        shape: Shape,
        /// Bytes that the two take.
        expected_bytes: usize,
        /// Bytes that were given.
        got_bytes: usize,
    },
    /// Another element type was asked for than the tensor holds.
    WrongDType {
        /// Element type asked for.
        expected: DType,
        /// Element type that there is.
        got: DType,
    },
    /// Elements that must lie in row-major order without gaps, and do not.
    NotDense {
        /// Element type of the view.
        dtype: DType,
        /// Shape of the view.
        shape: Shape,
        /// Elements from one place to the next along each dimension.
        strides: Vec<isize>,
    },
    /// String offsets that do not delimit UTF-8 text.
    BadStrings,
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorError::TooLarge { dtype, shape } => {
                write!(f, "a tensor {dtype}{shape} is larger than the address space")
            }
            TensorError::WrongSize { dtype, shape, expected_bytes, got_bytes } => {
                write!(f, "a tensor {dtype}{shape} takes {expected_bytes} bytes, got {got_bytes}")
            }
            TensorError::WrongDType { expected, got } => write!(f, "expected elements of {expected}, got {got}"),
            TensorError::NotDense { dtype, shape, strides } => write!(
                f,
                "a view {dtype}{shape} with strides {strides:?} cannot be lent: its elements must lie in row-major order \
                 without gaps; copy it into a tensor"
            ),
            TensorError::BadStrings => write!(f, "string offsets do not delimit UTF-8 text"),
        }
    }
}

impl std::error::Error for TensorError {}

impl Tensor {
    /// A tensor of given bytes.
    ///
    /// **Errors**: the byte count differs from what dtype and shape ask for; string offsets do not fit.
    pub fn new(dtype: DType, shape: Shape, bytes: Bytes) -> Result<Tensor, TensorError> {
        let n_elems = shape.n_elems().ok_or_else(|| TensorError::TooLarge { dtype, shape: shape.clone() })?;
        if dtype == DType::String {
            check_strings(n_elems, bytes.as_slice())?;
            return Ok(Tensor { dtype, shape, bytes });
        }
        let expected_bytes =
            dtype.size_bytes(n_elems).ok_or_else(|| TensorError::TooLarge { dtype, shape: shape.clone() })?;
        if expected_bytes != bytes.len() {
            return Err(TensorError::WrongSize { dtype, shape, expected_bytes, got_bytes: bytes.len() });
        }
        Ok(Tensor { dtype, shape, bytes })
    }

    /// A tensor that holds a copy of `values`.
    ///
    /// **Errors**: the shape has another number of elements.
    pub fn from_slice<T: Element>(shape: impl Into<Shape>, values: &[T]) -> Result<Tensor, TensorError> {
        Tensor::new(T::DTYPE, shape.into(), bytemuck::cast_slice::<T, u8>(values).into())
    }

    /// A bool tensor.
    ///
    /// **Errors**: the shape has another number of elements.
    pub fn from_bools(shape: impl Into<Shape>, values: &[bool]) -> Result<Tensor, TensorError> {
        Tensor::new(DType::Bool, shape.into(), bytemuck::cast_slice::<bool, u8>(values).into())
    }

    /// A string tensor.
    ///
    /// **Errors**: the shape has another number of elements.
    pub fn from_strings<S: AsRef<str>>(shape: impl Into<Shape>, values: &[S]) -> Result<Tensor, TensorError> {
        let mut bytes = Vec::new();
        let mut end = 0u64;
        bytes.extend_from_slice(&end.to_le_bytes());
        for value in values {
            end += value.as_ref().len() as u64;
            bytes.extend_from_slice(&end.to_le_bytes());
        }
        for value in values {
            bytes.extend_from_slice(value.as_ref().as_bytes());
        }
        Tensor::new(DType::String, shape.into(), bytes.as_slice().into())
    }

    /// A scalar.
    pub fn scalar<T: Element>(value: T) -> Tensor {
        Tensor { dtype: T::DTYPE, shape: Shape::scalar(), bytes: bytemuck::bytes_of(&value).into() }
    }

    /// A tensor of zeros (false, for bool; not for strings).
    ///
    /// **Errors**: the size overflows.
    pub fn zeros(dtype: DType, shape: impl Into<Shape>) -> Result<Tensor, TensorError> {
        let shape = shape.into();
        let n_bytes = shape.n_elems().and_then(|n| dtype.size_bytes(n));
        let n_bytes = n_bytes.ok_or_else(|| TensorError::TooLarge { dtype, shape: shape.clone() })?;
        Ok(Tensor { dtype, shape, bytes: OwnedBytes::zeroed(n_bytes).into() })
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Number of elements.
    pub fn n_elems(&self) -> usize {
        self.shape.n_elems().unwrap_or(0)
    }

    /// The tensor's bytes, shared.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The tensor's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// The same bytes under another shape.
    ///
    /// **Errors**: the shape has another number of elements.
    pub fn reshape(&self, shape: impl Into<Shape>) -> Result<Tensor, TensorError> {
        Tensor::new(self.dtype, shape.into(), self.bytes.clone())
    }

    /// The elements, borrowed where their bytes are aligned and copied where not (a mapped weight).
    ///
    /// **Errors**: the tensor holds another element type.
    pub fn values<T: Element>(&self) -> Result<Cow<'_, [T]>, TensorError> {
        if self.dtype != T::DTYPE {
            return Err(TensorError::WrongDType { expected: T::DTYPE, got: self.dtype });
        }
        Ok(match bytemuck::try_cast_slice(self.as_bytes()) {
            Ok(values) => Cow::Borrowed(values),
            Err(_) => Cow::Owned(bytemuck::allocation::pod_collect_to_vec(self.as_bytes())),
        })
    }

    /// The elements of a bool tensor; any byte but 0 is true.
    ///
    /// **Errors**: the tensor holds another element type.
    pub fn bools(&self) -> Result<Vec<bool>, TensorError> {
        match self.dtype {
            DType::Bool => Ok(self.as_bytes().iter().map(|&byte| byte != 0).collect()),
            got => Err(TensorError::WrongDType { expected: DType::Bool, got }),
        }
    }

    /// The elements of a string tensor.
    ///
    /// **Errors**: the tensor holds another element type.
    pub fn strings(&self) -> Result<Vec<&str>, TensorError> {
        if self.dtype != DType::String {
            return Err(TensorError::WrongDType { expected: DType::String, got: self.dtype });
        }
        string_ranges(self.n_elems(), self.as_bytes())
            .map(|range| std::str::from_utf8(&self.as_bytes()[range?]).map_err(|_| TensorError::BadStrings))
            .collect()
    }

    /// Elements of an integer or bool tensor widened to `i64` (`u64` keeps its bits).
    ///
    /// **Errors**: the tensor does not hold 8- to 64-bit integers or bools.
    pub fn to_i64s(&self) -> Result<Vec<i64>, TensorError> {
        Ok(match self.dtype {
            DType::I64 => self.values::<i64>()?.into_owned(),
            DType::I32 => self.values::<i32>()?.iter().map(|&v| v.into()).collect(),
            DType::I16 => self.values::<i16>()?.iter().map(|&v| v.into()).collect(),
            DType::I8 => self.values::<i8>()?.iter().map(|&v| v.into()).collect(),
            DType::U64 => self.values::<u64>()?.iter().map(|&v| v as i64).collect(),
            DType::U32 => self.values::<u32>()?.iter().map(|&v| v.into()).collect(),
            DType::U16 => self.values::<u16>()?.iter().map(|&v| v.into()).collect(),
            DType::U8 => self.values::<u8>()?.iter().map(|&v| v.into()).collect(),
            DType::Bool => self.as_bytes().iter().map(|&v| (v != 0).into()).collect(),
            got => return Err(TensorError::WrongDType { expected: DType::I64, got }),
        })
    }

    /// A view of the whole tensor.
    pub fn view(&self) -> TensorView<'_> {
        TensorView::dense(self.dtype, &self.shape, self.as_bytes())
    }
}

fn string_ranges(n: usize, bytes: &[u8]) -> impl Iterator<Item = Result<std::ops::Range<usize>, TensorError>> + '_ {
    let text = n.saturating_add(1).saturating_mul(8);
    let offset = move |i: usize| -> Option<usize> {
        let at = i.checked_mul(8)?;
        let word = bytes.get(at..at.checked_add(8)?)?;
        text.checked_add(u64::from_le_bytes(word.try_into().ok()?).try_into().ok()?)
    };
    (0..n).map(move |i| match (offset(i), offset(i + 1)) {
        (Some(from), Some(to)) if from <= to && to <= bytes.len() => Ok(from..to),
        _ => Err(TensorError::BadStrings),
    })
}

fn check_strings(n: usize, bytes: &[u8]) -> Result<(), TensorError> {
    if bytes.len() < n.saturating_add(1).saturating_mul(8) {
        return Err(TensorError::BadStrings);
    }
    string_ranges(n, bytes).try_for_each(|range| match std::str::from_utf8(&bytes[range?]) {
        Ok(_) => Ok(()),
        Err(_) => Err(TensorError::BadStrings),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_come_back() {
        let tensor = Tensor::from_slice([2, 2], &[1f32, 2., 3., 4.]).unwrap();
        assert_eq!(&tensor.values::<f32>().unwrap()[..], [1., 2., 3., 4.]);
        assert_eq!(tensor.values::<i32>(), Err(TensorError::WrongDType { expected: DType::I32, got: DType::F32 }));
        assert!(Tensor::from_slice([3], &[1f32]).is_err());
    }

    #[test]
    fn strings_come_back() {
        let tensor = Tensor::from_strings([2], &["a", "héllo"]).unwrap();
        assert_eq!(tensor.strings().unwrap(), ["a", "héllo"]);
        assert!(Tensor::new(DType::String, [2].into(), Bytes::from(&[9u8; 24][..])).is_err());
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert!(matches!(Tensor::zeros(DType::F64, [usize::MAX / 2]), Err(TensorError::TooLarge { .. })));
    }
}
