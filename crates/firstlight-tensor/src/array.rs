//! Tensors from and to arrays of the `ndarray` crate.

use crate::{Element, OwnedBytes, Shape, Tensor, TensorError};
use ndarray::{Array, ArrayRef, ArrayView, ArrayViewD, ArrayViewMut, CowArray, Dimension, IxDyn};
use std::borrow::Cow;

/// With the `ndarray` feature.
impl Tensor {
    /// A tensor that holds a copy of an array's elements, whatever their order in memory.
    ///
    /// **Errors**: dimensions that memory cannot hold, which an array of broadcast strides can have.
    ///
    /// ```
    /// use firstlight_tensor::{Tensor, TensorError};
    /// use ndarray::array;
    ///
    /// let matrix = array![[1f32, 2., 3.], [4., 5., 6.]];
    /// let tensor = Tensor::from_array(&matrix.t())?;
    /// assert_eq!(tensor.shape()[..], [3, 2]);
    /// assert_eq!(tensor.values::<f32>()?[..], [1., 4., 2., 5., 3., 6.]);
    /// assert_eq!(tensor.array::<f32>()?.view(), matrix.t().into_dyn());
    /// # Ok::<(), TensorError>(())
    /// ```
    pub fn from_array<T: Element, D: Dimension>(array: &ArrayRef<T, D>) -> Result<Tensor, TensorError> {
        if let Some(values) = array.as_slice() {
            return Tensor::from_slice(array.shape(), values);
        }
        let shape = Shape::from(array.shape());
        let too_large = || TensorError::TooLarge { dtype: T::DTYPE, shape: array.shape().into() };
        let n_elems = shape.n_elems().ok_or_else(too_large)?;
        let mut bytes = OwnedBytes::zeroed(T::DTYPE.size_bytes(n_elems).ok_or_else(too_large)?);
        let values = bytemuck::try_cast_slice_mut(bytes.as_mut_slice()).map_err(|_| too_large())?;
        ArrayViewMut::from_shape(array.raw_dim(), values).map_err(|_| too_large())?.assign(array);
        Tensor::new(T::DTYPE, shape, bytes.into())
    }

    /// The tensor as an array: a view of its bytes where they are aligned, a copy where not (a mapped weight).
    ///
    /// **Errors**: the tensor holds another element type.
    pub fn array<T: Element>(&self) -> Result<CowArray<'_, T, IxDyn>, TensorError> {
        let dims = IxDyn(self.shape());
        let too_large = |_| TensorError::TooLarge { dtype: self.dtype(), shape: self.shape().clone() };
        Ok(match self.values::<T>()? {
            Cow::Borrowed(values) => ArrayViewD::from_shape(dims, values).map_err(too_large)?.into(),
            Cow::Owned(values) => Array::from_shape_vec(dims, values).map_err(too_large)?.into(),
        })
    }
}

impl<T: Element, D: Dimension> TryFrom<ArrayView<'_, T, D>> for Tensor {
    type Error = TensorError;

    fn try_from(array: ArrayView<'_, T, D>) -> Result<Tensor, TensorError> {
        Tensor::from_array(&array)
    }
}

impl<T: Element, D: Dimension> TryFrom<Array<T, D>> for Tensor {
    type Error = TensorError;

    fn try_from(array: Array<T, D>) -> Result<Tensor, TensorError> {
        Tensor::from_array(&array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, DType, f16};
    use ndarray::{Array3, array, s};

    #[test]
    fn arrays_of_any_order_are_copied_in_their_logical_order() {
        let cube = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as i64);
        let layer = cube.slice(s![..1, .., ..]);
        let views = [
            cube.view(),
            cube.slice(s![.., ..;2, 1..3]),
            cube.slice(s![..;-1, .., ..;-2]),
            cube.view().permuted_axes([2, 0, 1]),
            layer.broadcast((2, 3, 4)).unwrap(),
            cube.slice(s![.., 1..1, ..]),
        ];
        for view in views {
            let tensor = Tensor::try_from(view).unwrap();
            assert_eq!(tensor.shape()[..], *view.shape());
            assert_eq!(tensor.values::<i64>().unwrap()[..], view.iter().copied().collect::<Vec<_>>());
            assert_eq!(tensor.array::<i64>().unwrap().view(), view.into_dyn());
        }
        let scalar = Tensor::try_from(ndarray::arr0(f16::from_f32(2.5))).unwrap();
        assert_eq!((scalar.dtype(), scalar.shape().rank()), (DType::F16, 0));
    }

    #[test]
    fn an_array_borrows_the_tensors_bytes() {
        let tensor = Tensor::from_slice([2, 2], &[1f32, 2., 3., 4.]).unwrap();
        let array = tensor.array::<f32>().unwrap();
        assert!(array.is_view());
        assert_eq!(array.as_ptr().cast::<u8>(), tensor.as_bytes().as_ptr());
        assert_eq!(array, array![[1., 2.], [3., 4.]].into_dyn());
        let wrong = TensorError::WrongDType { expected: DType::U8, got: DType::F32 };
        assert_eq!(tensor.array::<u8>().unwrap_err(), wrong);
        let empty = Tensor::new(DType::F32, [0, 3].into(), Bytes::from(&[][..])).unwrap();
        assert_eq!(empty.array::<f32>().unwrap().shape(), [0, 3]);
    }

    #[test]
    fn an_array_larger_than_memory_is_refused() {
        let one = ndarray::arr1(&[1f32]);
        let huge = one.broadcast(usize::MAX / 4).unwrap();
        let too_large = TensorError::TooLarge { dtype: DType::F32, shape: [usize::MAX / 4].into() };
        assert_eq!(Tensor::from_array(&huge).unwrap_err(), too_large);
    }
}
