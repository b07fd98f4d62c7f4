//! What a kernel is handed.

use super::{StepAddrs, internal};
use crate::binding::OperandSpec;
use crate::device::OperandAddr;
use crate::kernel::KernelCall;
use crate::pool::Pool;
use firstlight_graph::{Op, OpError, OpErrorKind};
use firstlight_tensor::Shape;
use smallvec::SmallVec;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

/// What a kernel is handed: operands, scratch, the pool. All slices are valid for the launch and outputs are unaliased.
pub struct KernelCtx<'a> {
    pub(super) call: &'a KernelCall,
    pub(super) step: &'a StepAddrs,
    pub(super) pool: &'a Pool,
    /// Bit i: output i was handed out; bit 63: the scratch was.
    pub(super) taken: Cell<u64>,
    pub(super) found: &'a mut SmallVec<[Shape; 2]>,
}

/// Elements at any alignment (a mapped weight).
#[derive(Clone, Copy, Debug)]
pub struct Words<'a, T> {
    start: *const u8,
    len: usize,
    owner: PhantomData<&'a [T]>,
}

// SAFETY: Words is a shared view of immutable bytes, as `&[T]` is.
unsafe impl<T: Sync> Send for Words<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Words<'_, T> {}

impl<T: bytemuck::Pod> Words<'_, T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Element `i`.
    ///
    /// Panics when `i` is out of range, as indexing a slice does.
    pub fn get(&self, i: usize) -> T {
        assert!(i < self.len, "element {i} of {}", self.len);
        // SAFETY: i is in range of the bytes that the view was made over; T is plain data, read unaligned.
        unsafe { self.start.cast::<T>().add(i).read_unaligned() }
    }

    /// Where the elements start: valid for `len` unaligned reads while the view's lifetime lasts.
    pub fn as_ptr(&self) -> *const T {
        self.start.cast()
    }
}

impl<'a> KernelCtx<'a> {
    /// The op with its attributes.
    pub fn op(&self) -> &'a Op {
        &self.call.op
    }

    /// Op and operand specs.
    pub fn call(&self) -> &'a KernelCall {
        self.call
    }

    /// The pool that tiles are spread over.
    pub fn pool(&self) -> &'a Pool {
        self.pool
    }

    /// Number of inputs, omitted ones included.
    pub fn n_inputs(&self) -> usize {
        self.call.inputs.len()
    }

    /// True when input `i` is given.
    pub fn has_input(&self, i: usize) -> bool {
        self.call.inputs.get(i).is_some_and(Option::is_some)
    }

    /// Spec of input `i`.
    ///
    /// **Errors**: the input is omitted.
    pub fn spec(&self, i: usize) -> Result<&'a OperandSpec, OpError> {
        match self.call.inputs.get(i) {
            Some(Some(spec)) => Ok(spec),
            _ => Err(missing("input", i)),
        }
    }

    /// Shape of input `i`.
    ///
    /// **Errors**: the input is omitted.
    pub fn dims(&self, i: usize) -> Result<&'a Shape, OpError> {
        Ok(&self.spec(i)?.dims)
    }

    /// Number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.call.outputs.len()
    }

    /// Shape of output `i` (the upper bound of a data-sized one).
    ///
    /// **Errors**: there is no such output.
    pub fn out_dims(&self, i: usize) -> Result<&'a Shape, OpError> {
        self.call.outputs.get(i).map(|spec| &spec.dims).ok_or_else(|| missing("output", i))
    }

    fn input_addr(&self, i: usize) -> Result<OperandAddr, OpError> {
        self.step.inputs.get(i).copied().flatten().ok_or_else(|| missing("input", i))
    }

    /// The elements of input `i` as words of `T`.
    ///
    /// **Errors**: the input is omitted, or unaligned (a row that takes mapped weights uses [`KernelCtx::words`] and
    /// says so in its caps).
    pub fn input<T: bytemuck::Pod>(&self, i: usize) -> Result<&'a [T], OpError> {
        let addr = self.input_addr(i)?;
        if addr.n_bytes == 0 {
            return Ok(&[]);
        }
        if !(addr.address as usize).is_multiple_of(align_of::<T>())
            || !addr.n_bytes.is_multiple_of(size_of::<T>().max(1))
        {
            return Err(internal("an unaligned input of a kernel that takes aligned ones"));
        }
        // SAFETY: `resolve` located the bytes inside a storage that StepAddrs or the exclusively held RunMemory keeps
        // alive; alignment and size were checked; no output overlaps it; T is plain data.
        Ok(unsafe { std::slice::from_raw_parts(addr.address as *const T, addr.n_bytes / size_of::<T>()) })
    }

    /// The elements of input `i` at any alignment.
    ///
    /// **Errors**: the input is omitted.
    pub fn words<T: bytemuck::Pod>(&self, i: usize) -> Result<Words<'a, T>, OpError> {
        let addr = self.input_addr(i)?;
        Ok(Words { start: addr.address as *const u8, len: addr.n_bytes / size_of::<T>(), owner: PhantomData })
    }

    /// The bytes of input `i`.
    ///
    /// **Errors**: the input is omitted.
    pub fn bytes(&self, i: usize) -> Result<&'a [u8], OpError> {
        self.input::<u8>(i)
    }

    fn take(&self, bit: u32, what: &str) -> Result<(), OpError> {
        let mask = 1u64 << bit;
        if self.taken.replace(self.taken.get() | mask) & mask != 0 {
            return Err(internal(&format!("{what} was taken twice")));
        }
        Ok(())
    }

    /// The elements of output `i` as words of `T`; can be taken once.
    ///
    /// **Errors**: there is no such output, or it was taken before.
    pub fn output<T: bytemuck::Pod>(&self, i: usize) -> Result<&'a mut [T], OpError> {
        let addr = self.step.outputs.get(i).copied().ok_or_else(|| missing("output", i))?;
        if i >= 63 {
            return Err(OpError::unsupported("a kernel takes at most 63 outputs"));
        }
        self.take(i as u32, "an output")?;
        self.slice_mut(addr)
    }

    /// The scratch as words of `T`; can be taken once. It holds whatever an earlier step left there.
    ///
    /// **Errors**: it was taken before.
    pub fn scratch<T: bytemuck::Pod>(&self) -> Result<&'a mut [T], OpError> {
        self.take(63, "the scratch")?;
        self.slice_mut(self.step.scratch)
    }

    fn slice_mut<T: bytemuck::Pod>(&self, addr: OperandAddr) -> Result<&'a mut [T], OpError> {
        if addr.n_bytes < size_of::<T>() {
            return Ok(&mut []);
        }
        if !(addr.address as usize).is_multiple_of(align_of::<T>()) {
            return Err(internal("an unaligned output"));
        }
        // SAFETY: `resolve` located the bytes inside a chunk of the RunMemory that `launch` holds exclusively, and
        // checked that they overlap no other operand; `take` hands each out once; T is plain data and chunks are
        // initialised when they are allocated.
        Ok(unsafe { std::slice::from_raw_parts_mut(addr.address as *mut T, addr.n_bytes / size_of::<T>()) })
    }

    /// Sets the final shape of a data-sized output.
    ///
    /// **Errors**: the output is not data-sized, or the shape exceeds its bound.
    pub fn set_dims(&mut self, i: usize, dims: &[usize]) -> Result<(), OpError> {
        let bound = self.out_dims(i)?;
        let within = dims.len() == bound.rank() && dims.iter().zip(bound).all(|(dim, most)| dim <= most);
        match self.found.get_mut(i) {
            Some(found) if self.call.data_sized && within => {
                found.copy_from_slice(dims);
                Ok(())
            }
            _ => Err(internal("a shape set beyond its bound")),
        }
    }
}

impl fmt::Debug for KernelCtx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}

fn missing(what: &str, i: usize) -> OpError {
    OpError::new(OpErrorKind::Arity, format!("{what} {i} is missing"))
}
