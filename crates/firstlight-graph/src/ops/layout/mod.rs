//! Ops that move or rename elements without computing on them.

pub mod concat;
pub mod expand;
pub mod flatten;
pub mod gather;
pub mod gather_elements;
pub mod pad;
pub mod reshape;
pub mod slice;
pub mod split;
pub mod squeeze;
pub mod transpose;
pub mod unsqueeze;

use crate::OpError;
use crate::op::RefCtx;
use firstlight_tensor::{DType, Dim, Element, Shape, Tensor, TensorView};

/// Turns an index that may count from the end into one that does not.
///
/// **Errors**: the index is outside `-size..size`.
pub fn normalise_index(index: i64, size: usize) -> Result<usize, OpError> {
    let from_start = if index < 0 { index as i128 + size as i128 } else { index as i128 };
    match usize::try_from(from_start) {
        Ok(at) if at < size => Ok(at),
        _ => Err(OpError::value(format!("index {index} is outside -{size}..{size}"))),
    }
}

/// A reference that moves elements of any type of one width.
pub(crate) trait MoveWords {
    /// Fills the first output with elements as words of their width.
    fn move_words<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError>;

    /// Calls `move_words` with the width of the first input's elements.
    fn move_elements(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let dtype = ctx.input(0)?.dtype();
        match dtype.bits() {
            8 => self.move_words::<u8>(ctx),
            16 => self.move_words::<u16>(ctx),
            32 => self.move_words::<u32>(ctx),
            64 => self.move_words::<u64>(ctx),
            // Two words an element, since 16-byte alignment is not promised.
            128 => self.move_words::<[u64; 2]>(ctx),
            _ => Err(OpError::unsupported(format!("elements of {dtype} cannot be moved one by one"))),
        }
    }
}

/// Copies the first input's elements, in logical order, to the first output.
pub(crate) fn copy_elements(ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
    let input = ctx.input(0)?;
    copy_view(ctx, &input)
}

/// Copies a view's elements, in logical order, to the first output.
pub(crate) fn copy_view(ctx: &mut RefCtx<'_>, view: &TensorView<'_>) -> Result<(), OpError> {
    struct Copy<'v>(&'v TensorView<'v>);
    impl MoveWords for Copy<'_> {
        fn move_words<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
            let output = ctx.output(0)?;
            let shape = output.shape().clone();
            let to = output.words_mut::<W>()?;
            // A broadcast view can have many more elements than bytes: they are read once they are known to fit.
            if to.len() != self.0.n_elems() {
                return Err(OpError::shape(format!(
                    "an output {shape} does not hold the elements of {}",
                    self.0.shape()
                )));
            }
            to.copy_from_slice(&self.0.words::<W>()?);
            Ok(())
        }
    }
    Copy(view).move_elements(ctx)
}

/// Checks that an output has the shape that its op gives.
pub(crate) fn check_output(ctx: &mut RefCtx<'_>, i: usize, dims: &[usize]) -> Result<(), OpError> {
    let output = ctx.output(i)?;
    match &output.shape()[..] == dims {
        true => Ok(()),
        false => {
            Err(OpError::shape(format!("output {i} has shape {}, expected {}", output.shape(), Shape::from(dims))))
        }
    }
}

/// The values of a small integer input.
pub(crate) fn view_ints(view: &TensorView<'_>) -> Result<Vec<i64>, OpError> {
    match view.dtype() {
        DType::I64 => Ok(view.values::<i64>()?.into_owned()),
        DType::I32 => Ok(view.values::<i32>()?.iter().map(|&value| value.into()).collect()),
        other => Err(OpError::dtype(format!("expected integers of i64 or i32, got {other}"))),
    }
}

/// The values of a small integer input that may be omitted.
pub(crate) fn optional_ints(ctx: &RefCtx<'_>, i: usize) -> Result<Option<Vec<i64>>, OpError> {
    ctx.optional(i).map(|view| view_ints(&view)).transpose()
}

/// What two dimensions that must be equal are; `None` when they are known to differ.
pub(crate) fn same_dim(a: &Dim, b: &Dim) -> Option<Dim> {
    match (a, b) {
        (Dim::Known(x), Dim::Known(y)) if x != y => None,
        (Dim::Known(_), _) => Some(a.clone()),
        (_, Dim::Known(_)) => Some(b.clone()),
        (Dim::Named(_), _) => Some(a.clone()),
        _ => Some(b.clone()),
    }
}

/// The product of dimensions, where it is known and fits.
pub(crate) fn product(dims: &[usize]) -> Result<usize, OpError> {
    let shape = Shape::from(dims);
    shape.n_elems().ok_or_else(|| OpError::shape(format!("the product of {shape} is larger than the address space")))
}

/// A tensor of a named case.
pub(crate) fn case_tensor<T: Element>(dims: &[usize], values: &[T]) -> Tensor {
    Tensor::from_slice(dims, values).unwrap_or_else(|error| panic!("a case is wrong: {error}"))
}
