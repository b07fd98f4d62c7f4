//! Borrowed and reused tensors as arrays of the `ndarray` crate.

use crate::{TensorBuf, TensorRef};
use firstlight_tensor::{Element, TensorError};
use ndarray::{ArrayRef, ArrayViewD, Dimension, IxDyn};

/// With the `ndarray` feature.
impl<'a> TensorRef<'a> {
    /// Lends an array's elements to a run without copying them.
    ///
    /// **Errors**: elements that do not lie in row-major order without gaps (a transposed or cut view): copy those with
    /// [`Tensor::from_array`](crate::Tensor::from_array).
    ///
    /// ```
    /// use firstlight::{Error, Session, TensorBuf, TensorRef};
    /// use ndarray::array;
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let session = Session::builder().load_bytes(firstlight::doc::one_add())?;
    /// let x = array![1f32, 2., 3., 4.];
    /// let mut outputs = [TensorBuf::new()];
    /// session.run_into(&[("x", TensorRef::from_array(&x)?)], &mut outputs)?;
    /// assert_eq!(outputs[0].array::<f32>()?, array![2., 4., 6., 8.].into_dyn());
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_array<T: Element, D: Dimension>(array: &'a ArrayRef<T, D>) -> Result<TensorRef<'a>, TensorError> {
        let not_dense = || TensorError::NotDense {
            dtype: T::DTYPE,
            shape: array.shape().into(),
            strides: array.strides().to_vec(),
        };
        Ok(TensorRef::new(array.shape(), array.as_slice().ok_or_else(not_dense)?))
    }
}

/// With the `ndarray` feature.
impl TensorBuf {
    /// A view of the tensor as an array.
    ///
    /// **Errors**: the buffer holds another element type.
    pub fn array<T: Element>(&self) -> Result<ArrayViewD<'_, T>, TensorError> {
        ArrayViewD::from_shape(IxDyn(self.shape()), self.values()?)
            .map_err(|_| TensorError::TooLarge { dtype: self.dtype(), shape: self.shape().clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;
    use ndarray::array;

    #[test]
    fn dense_arrays_are_lent_and_others_refused() {
        let matrix = array![[1u8, 2, 3], [4, 5, 6]];
        let mut buffer = TensorBuf::new();
        buffer.copy_from(TensorRef::from_array(&matrix).unwrap()).unwrap();
        assert_eq!(buffer.array::<u8>().unwrap(), matrix.view().into_dyn());
        buffer.copy_from(TensorRef::from_array(&matrix.row(1)).unwrap()).unwrap();
        assert_eq!(buffer.array::<u8>().unwrap(), array![4, 5, 6].into_dyn());
        assert!(buffer.array::<i8>().is_err());
        let error = TensorRef::from_array(&matrix.t()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a view u8[3,2] with strides [1, 3] cannot be lent: its elements must lie in row-major order without gaps; \
             copy it into a tensor"
        );
        assert_eq!(Tensor::from_array(&matrix.t()).unwrap().values::<u8>().unwrap()[..], [1, 4, 2, 5, 3, 6]);
    }

    #[test]
    fn a_lent_array_keeps_its_place() {
        let matrix = array![[1f32, 2.], [3., 4.]];
        let lent = TensorRef::from_array(&matrix).unwrap();
        assert_eq!(lent.feed().bytes.as_ptr(), matrix.as_ptr().cast());
    }
}
