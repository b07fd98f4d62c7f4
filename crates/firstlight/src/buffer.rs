//! Tensors that the caller owns and runs write to, and borrowed ones that runs read.

use firstlight_exec::Feed;
use firstlight_tensor::{DType, Element, OwnedBytes, Shape, Tensor, TensorError, TensorView};

/// A tensor of changing size in one piece of memory, which grows and never shrinks.
///
/// What [`Session::run_into`](crate::Session::run_into) fills and a [`Binding`](crate::Binding) is made of. Once the
/// largest size has been seen nothing is allocated. Elements are aligned to 8 bytes.
#[derive(Clone, Debug)]
pub struct TensorBuf {
    dtype: DType,
    shape: Shape,
    n_bytes: usize,
    bytes: OwnedBytes,
}

/// Values that the caller lends to a run.
#[derive(Clone, Copy, Debug)]
pub struct TensorRef<'a> {
    dtype: DType,
    dims: &'a [usize],
    bytes: &'a [u8],
}

impl Default for TensorBuf {
    fn default() -> TensorBuf {
        TensorBuf { dtype: DType::F32, shape: [0].into(), n_bytes: 0, bytes: OwnedBytes::default() }
    }
}

impl TensorBuf {
    /// A buffer without memory: an empty f32 tensor.
    pub fn new() -> TensorBuf {
        TensorBuf::default()
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The tensor's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes.as_slice()[..self.n_bytes]
    }

    /// The elements.
    ///
    /// **Errors**: the buffer holds another element type.
    pub fn values<T: Element>(&self) -> Result<&[T], TensorError> {
        let wrong = TensorError::WrongDType { expected: T::DTYPE, got: self.dtype };
        if self.dtype != T::DTYPE { Err(wrong) } else { bytemuck::try_cast_slice(self.as_bytes()).map_err(|_| wrong) }
    }

    /// A view of the tensor.
    pub fn view(&self) -> TensorView<'_> {
        TensorView::dense(self.dtype, &self.shape, self.as_bytes())
    }

    /// A copy of the tensor.
    ///
    /// **Errors**: never for a buffer that a run filled.
    pub fn to_tensor(&self) -> Result<Tensor, TensorError> {
        Tensor::new(self.dtype, self.shape.clone(), self.as_bytes().into())
    }

    /// Gives the buffer an element type and a shape, and its elements to fill; they hold what was there before.
    ///
    /// **Errors**: a shape that memory cannot hold.
    pub fn fill<T: Element>(&mut self, dims: &[usize]) -> Result<&mut [T], TensorError> {
        let bytes = self.fill_bytes(T::DTYPE, dims)?;
        let n_bytes = bytes.len();
        let misfit = |_| TensorError::WrongSize {
            dtype: T::DTYPE,
            shape: dims.into(),
            expected_bytes: n_bytes,
            got_bytes: n_bytes,
        };
        bytemuck::try_cast_slice_mut(bytes).map_err(misfit)
    }

    /// As [`TensorBuf::fill`], as bytes: for bools (0 or 1) and element types that Rust has no type for.
    ///
    /// **Errors**: a shape that memory cannot hold; strings, which have no fixed size.
    pub fn fill_bytes(&mut self, dtype: DType, dims: &[usize]) -> Result<&mut [u8], TensorError> {
        let n_elems = n_elems(dims);
        let n_bytes = n_elems.and_then(|n| dtype.size_bytes(n)).filter(|&n| n <= isize::MAX as usize);
        let n_bytes = n_bytes.ok_or_else(|| TensorError::TooLarge { dtype, shape: dims.into() })?;
        if self.bytes.as_slice().len() < n_bytes {
            self.bytes = OwnedBytes::zeroed(n_bytes);
        }
        self.dtype = dtype;
        self.n_bytes = n_bytes;
        // A long shape lies on the heap; one of the same rank is overwritten in place.
        match self.shape.rank() == dims.len() {
            true => self.shape.copy_from_slice(dims),
            false => self.shape = dims.into(),
        }
        Ok(&mut self.bytes.as_mut_slice()[..n_bytes])
    }

    /// Copies a tensor in.
    ///
    /// **Errors**: strings.
    pub fn copy_from(&mut self, tensor: TensorRef<'_>) -> Result<(), TensorError> {
        let to = self.fill_bytes(tensor.dtype, tensor.dims)?;
        let (expected_bytes, got_bytes) = (to.len(), tensor.bytes.len());
        if expected_bytes != got_bytes {
            let shape = tensor.dims.into();
            return Err(TensorError::WrongSize { dtype: tensor.dtype, shape, expected_bytes, got_bytes });
        }
        to.copy_from_slice(tensor.bytes);
        Ok(())
    }
}

impl<'a> TensorRef<'a> {
    /// A slice of elements in row-major order; a run refuses it where the shape takes more or fewer.
    pub fn new<T: Element>(dims: &'a [usize], values: &'a [T]) -> TensorRef<'a> {
        TensorRef { dtype: T::DTYPE, dims, bytes: bytemuck::cast_slice(values) }
    }

    /// Bytes of an element type in row-major order; a run refuses them where the shape takes more or fewer.
    pub fn from_bytes(dtype: DType, dims: &'a [usize], bytes: &'a [u8]) -> TensorRef<'a> {
        TensorRef { dtype, dims, bytes }
    }

    pub(crate) fn feed(self) -> Feed<'a> {
        Feed { dtype: self.dtype, dims: self.dims, bytes: self.bytes }
    }
}

impl<'a> From<&'a Tensor> for TensorRef<'a> {
    fn from(tensor: &'a Tensor) -> TensorRef<'a> {
        TensorRef { dtype: tensor.dtype(), dims: tensor.shape(), bytes: tensor.as_bytes() }
    }
}

impl<'a> From<&'a TensorBuf> for TensorRef<'a> {
    fn from(buffer: &'a TensorBuf) -> TensorRef<'a> {
        TensorRef { dtype: buffer.dtype, dims: &buffer.shape, bytes: buffer.as_bytes() }
    }
}

/// The product of dims, or `None` when it overflows; a zero makes it zero.
pub(crate) fn n_elems(dims: &[usize]) -> Option<usize> {
    if dims.contains(&0) {
        return Some(0);
    }
    dims.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_keeps_its_memory_and_shows_what_was_put_last() {
        let mut buffer = TensorBuf::new();
        assert_eq!(buffer.values::<f32>().unwrap(), [0f32; 0]);
        buffer.fill::<i64>(&[2, 2]).unwrap().copy_from_slice(&[1, 2, 3, 4]);
        let at = buffer.as_bytes().as_ptr();
        buffer.fill::<f32>(&[3]).unwrap().copy_from_slice(&[1., 2., 3.]);
        assert_eq!(buffer.as_bytes().as_ptr(), at);
        assert_eq!((buffer.values::<f32>().unwrap(), &buffer.shape()[..]), (&[1f32, 2., 3.][..], &[3][..]));
        assert!(buffer.values::<i64>().is_err());
        assert_eq!(buffer.to_tensor().unwrap(), Tensor::from_slice([3], &[1f32, 2., 3.]).unwrap());
        assert!(buffer.fill::<f32>(&[usize::MAX, 8]).is_err());
        assert!(buffer.fill_bytes(DType::String, &[1]).is_err());
        assert!(buffer.copy_from(TensorRef::new(&[3], &[1f32])).is_err());
        buffer.copy_from(TensorRef::new(&[], &[7u8])).unwrap();
        assert_eq!(buffer.values::<u8>().unwrap(), [7]);
    }
}
