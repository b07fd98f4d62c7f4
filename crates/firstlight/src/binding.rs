//! Inputs and outputs that stay from one run to the next.

use crate::buffer::{TensorBuf, TensorRef};
use crate::{Error, Session};
use firstlight_exec::RunOptions;
use firstlight_tensor::{DType, Element, Tensor};
use smallvec::SmallVec;

/// Buffers for a session's inputs and outputs: fill, run, read, again and again.
///
/// Once the sizes have been seen a run allocates nothing (up to 16 inputs). A binding is for one thread at a time;
/// each thread makes its own.
///
/// ```
/// # fn main() -> Result<(), firstlight::Error> {
/// # let session = firstlight::Session::builder().load_bytes(firstlight::doc::one_add())?;
/// let mut binding = session.bind();
/// for i in 0..3 {
///     binding.input::<f32>("x", &[4])?.fill(i as f32);
///     binding.run()?;
///     assert_eq!(binding.output("y")?.values::<f32>()?, [2. * i as f32; 4]);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Binding {
    session: Session,
    inputs: Vec<Slot>,
    outputs: Vec<TensorBuf>,
}

#[derive(Clone, Debug)]
struct Slot {
    source: Source,
    buffer: TensorBuf,
}

#[derive(Clone, Debug)]
enum Source {
    /// Nothing: the model's default, where it has one.
    Empty,
    /// A tensor whose bytes are shared.
    Shared(Tensor),
    /// The slot's own buffer.
    Buffer,
}

impl Binding {
    pub(crate) fn new(session: Session) -> Binding {
        let slot = || Slot { source: Source::Empty, buffer: TensorBuf::new() };
        let inputs = session.inputs().iter().map(|_| slot()).collect();
        let outputs = session.outputs().iter().map(|_| TensorBuf::new()).collect();
        Binding { session, inputs, outputs }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The buffer of an input, to fill with elements in row-major order; they hold what was there before.
    ///
    /// **Edge cases**: a smaller shape keeps the buffer's memory; a larger one than any before allocates.
    /// **Errors**: the model has no such input; a shape that memory cannot hold. Whether element type and shape fit the
    /// model is checked by the run.
    pub fn input<T: Element>(&mut self, name: &str, dims: &[usize]) -> Result<&mut [T], Error> {
        Ok(self.own_buffer(name)?.fill(dims)?)
    }

    /// As [`Binding::input`], as bytes: for bools (0 or 1) and element types that Rust has no type for.
    ///
    /// **Errors**: as [`Binding::input`].
    pub fn input_bytes(&mut self, name: &str, dtype: DType, dims: &[usize]) -> Result<&mut [u8], Error> {
        Ok(self.own_buffer(name)?.fill_bytes(dtype, dims)?)
    }

    /// Gives an input a tensor, whose bytes are shared and not copied.
    ///
    /// **Errors**: the model has no such input. Whether element type and shape fit the model is checked by the run.
    pub fn set(&mut self, name: &str, tensor: Tensor) -> Result<(), Error> {
        self.slot(name)?.source = Source::Shared(tensor);
        Ok(())
    }

    /// Takes an input away: the next run uses the model's default, where it has one.
    ///
    /// **Errors**: the model has no such input.
    pub fn clear(&mut self, name: &str) -> Result<(), Error> {
        self.slot(name)?.source = Source::Empty;
        Ok(())
    }

    /// Runs the model on what the inputs hold.
    ///
    /// **Errors**: as [`Session::run`](crate::Session::run); the outputs are as they were then.
    pub fn run(&mut self) -> Result<(), Error> {
        self.run_with(&RunOptions::default())
    }

    /// [`Binding::run`] with a cancel token, a deadline, an event sink or another pipeline.
    ///
    /// **Errors**: as [`Session::run_with`](crate::Session::run_with).
    pub fn run_with(&mut self, options: &RunOptions<'_>) -> Result<(), Error> {
        let feeds: SmallVec<[_; 16]> = self.inputs.iter().map(|slot| slot.given().map(TensorRef::feed)).collect();
        self.session.model.run_to_buffers(&feeds, &mut self.outputs, options)
    }

    /// The output of a name, as the last run left it.
    ///
    /// **Edge cases**: before the first run it is an empty f32 tensor.
    /// **Errors**: the session has no such output.
    pub fn output(&self, name: &str) -> Result<&TensorBuf, Error> {
        let position = self.session.outputs().iter().position(|spec| spec.name == name);
        position.and_then(|i| self.outputs.get(i)).ok_or_else(|| {
            let known: Vec<&str> = self.session.outputs().iter().map(|spec| spec.name.as_str()).collect();
            Error::Output { problem: format!("the session has no output {name:?}; its outputs are {known:?}") }
        })
    }

    /// All outputs, in order.
    pub fn outputs(&self) -> &[TensorBuf] {
        &self.outputs
    }

    fn slot(&mut self, name: &str) -> Result<&mut Slot, Error> {
        let position = self.session.model.checker.position(name)?;
        Ok(&mut self.inputs[position])
    }

    fn own_buffer(&mut self, name: &str) -> Result<&mut TensorBuf, Error> {
        let slot = self.slot(name)?;
        slot.source = Source::Buffer;
        Ok(&mut slot.buffer)
    }
}

impl Slot {
    fn given(&self) -> Option<TensorRef<'_>> {
        match &self.source {
            Source::Empty => None,
            Source::Shared(tensor) => Some(tensor.into()),
            Source::Buffer => Some((&self.buffer).into()),
        }
    }
}
