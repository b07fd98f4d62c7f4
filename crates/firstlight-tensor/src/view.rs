//! Borrowed tensors: what a reference implementation reads and fills.

use crate::{DType, Element, Layout, Shape, TensorError};
use std::borrow::Cow;

/// A borrowed tensor of any layout.
#[derive(Clone, Debug)]
pub struct TensorView<'a> {
    dtype: DType,
    layout: Layout,
    bytes: &'a [u8],
}

impl<'a> TensorView<'a> {
    /// A dense view. The bytes must be as many as dtype and shape ask for; [`TensorView::values`] checks it.
    pub fn dense(dtype: DType, shape: &Shape, bytes: &'a [u8]) -> TensorView<'a> {
        TensorView { dtype, layout: Layout::dense(shape), bytes }
    }

    /// A view of any layout over `bytes`.
    pub fn new(dtype: DType, layout: Layout, bytes: &'a [u8]) -> TensorView<'a> {
        TensorView { dtype, layout, bytes }
    }

    /// The same view under a shorter borrow.
    pub fn reborrow(&self) -> TensorView<'_> {
        self.clone()
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape.
    pub fn shape(&self) -> &Shape {
        self.layout.shape()
    }

    /// Layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Number of elements.
    pub fn n_elems(&self) -> usize {
        self.shape().n_elems().unwrap_or(0)
    }

    /// All bytes that the layout indexes into.
    pub fn raw(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements in logical (row-major) order, borrowed where the view is dense and aligned.
    ///
    /// **Errors**: the view holds another element type, or its layout reaches beyond its bytes.
    pub fn values<T: Element>(&self) -> Result<Cow<'a, [T]>, TensorError> {
        if self.dtype != T::DTYPE {
            return Err(TensorError::WrongDType { expected: T::DTYPE, got: self.dtype });
        }
        self.words()
    }

    /// The elements as words of `T`'s width, whatever the element type: for ops that only move data.
    ///
    /// **Errors**: the layout reaches beyond the bytes, or `T` has another width than the elements.
    pub fn words<T: bytemuck::Pod>(&self) -> Result<Cow<'a, [T]>, TensorError> {
        let width = size_of::<T>();
        let wrong_size = || TensorError::WrongSize {
            dtype: self.dtype,
            shape: self.shape().clone(),
            expected_bytes: self.n_elems().saturating_mul(self.dtype.bits() / 8),
            got_bytes: self.bytes.len(),
        };
        let n_elems = self.shape().n_elems().ok_or_else(wrong_size)?;
        if self.dtype.bits() != width * 8 {
            return Err(wrong_size());
        }
        if self.layout.is_dense() {
            let from = self.layout.offset().checked_mul(width);
            let range = from.and_then(|from| Some(from..from.checked_add(n_elems.checked_mul(width)?)?));
            let bytes = range.and_then(|range| self.bytes.get(range)).ok_or_else(wrong_size)?;
            return Ok(match bytemuck::try_cast_slice(bytes) {
                Ok(values) => Cow::Borrowed(values),
                Err(_) => Cow::Owned(bytemuck::allocation::pod_collect_to_vec(bytes)),
            });
        }
        let word = |at: usize| {
            let from = at.checked_mul(width)?;
            self.bytes.get(from..from.checked_add(width)?).map(bytemuck::pod_read_unaligned)
        };
        let values: Option<Vec<T>> = self.layout.positions().map(word).collect();
        values.map(Cow::Owned).ok_or_else(wrong_size)
    }

    /// The elements of a bool view; any byte but 0 is true.
    ///
    /// **Errors**: as [`TensorView::values`].
    pub fn bools(&self) -> Result<Vec<bool>, TensorError> {
        match self.dtype {
            DType::Bool => Ok(self.words::<u8>()?.iter().map(|&byte| byte != 0).collect()),
            got => Err(TensorError::WrongDType { expected: DType::Bool, got }),
        }
    }
}

/// A borrowed dense tensor to fill.
#[derive(Debug)]
pub struct TensorViewMut<'a> {
    dtype: DType,
    shape: Shape,
    bytes: &'a mut [u8],
}

impl<'a> TensorViewMut<'a> {
    /// A dense view to fill; `bytes` may be longer than needed.
    pub fn new(dtype: DType, shape: Shape, bytes: &'a mut [u8]) -> TensorViewMut<'a> {
        TensorViewMut { dtype, shape, bytes }
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

    /// Shrinks the shape of a data-sized output to what was found.
    pub fn set_shape(&mut self, shape: Shape) {
        self.shape = shape;
    }

    /// The elements, to write.
    ///
    /// **Errors**: the view holds another element type, or too few or unaligned bytes.
    pub fn values_mut<T: Element>(&mut self) -> Result<&mut [T], TensorError> {
        if self.dtype != T::DTYPE {
            return Err(TensorError::WrongDType { expected: T::DTYPE, got: self.dtype });
        }
        self.words_mut()
    }

    /// The elements as words of `T`'s width, whatever the element type: for ops that only move data.
    ///
    /// **Errors**: too few or unaligned bytes, or `T` has another width than the elements.
    pub fn words_mut<T: bytemuck::Pod>(&mut self) -> Result<&mut [T], TensorError> {
        let expected_bytes = self.n_elems().saturating_mul(size_of::<T>());
        let wrong_size = TensorError::WrongSize {
            dtype: self.dtype,
            shape: self.shape.clone(),
            expected_bytes,
            got_bytes: self.bytes.len(),
        };
        if self.dtype.bits() != size_of::<T>() * 8 || self.shape.n_elems().is_none() {
            return Err(wrong_size);
        }
        if expected_bytes == 0 {
            // The address of no bytes need not be aligned.
            return Ok(&mut []);
        }
        let bytes = self.bytes.get_mut(..expected_bytes).ok_or(wrong_size.clone())?;
        bytemuck::try_cast_slice_mut(bytes).map_err(|_| wrong_size)
    }

    /// The bytes, to write.
    pub fn raw_mut(&mut self) -> &mut [u8] {
        self.bytes
    }
}
