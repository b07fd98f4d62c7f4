//! A kernel with the specs of its operands, and the kernel that runs any op's reference.

use crate::binding::{KernelFn, OperandSpec};
use crate::memory::KernelCtx;
use firstlight_graph::{Op, OpError, RefCtx};
use firstlight_tensor::{Layout, TensorView, TensorViewMut};
use smallvec::SmallVec;
use std::fmt;

/// Everything of a launch but its addresses.
pub struct KernelCall {
    /// The op with its attributes, which the kernel reads.
    pub op: Op,
    /// The function that is launched.
    pub kernel: KernelFn,
    /// `None`: omitted.
    pub inputs: SmallVec<[Option<OperandSpec>; 4]>,
    /// Data-sized outputs carry their upper bound.
    pub outputs: SmallVec<[OperandSpec; 1]>,
    /// True when the kernel sets the final shapes of its outputs.
    pub data_sized: bool,
    /// Bytes of scratch that the row asked for.
    pub scratch_bytes: usize,
}

impl fmt::Debug for KernelCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.op.info().name)?;
        for (i, input) in self.inputs.iter().enumerate() {
            write!(f, "{}", if i == 0 { "" } else { ", " })?;
            match input {
                Some(spec) => write!(f, "{spec}")?,
                None => write!(f, "_")?,
            }
        }
        write!(f, ")")
    }
}

/// Runs the op's reference: the host's row of last resort.
///
/// **Errors**: what the reference says.
pub fn reference_kernel(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let call = ctx.call();
    let mut inputs: SmallVec<[Option<TensorView<'_>>; 4]> = SmallVec::new();
    for (i, spec) in call.inputs.iter().enumerate() {
        inputs.push(match spec {
            Some(spec) => Some(TensorView::new(spec.dtype, Layout::dense(&spec.dims), ctx.bytes(i)?)),
            None => None,
        });
    }
    let mut outputs = SmallVec::new();
    for (i, spec) in call.outputs.iter().enumerate() {
        outputs.push(TensorViewMut::new(spec.dtype, spec.dims.clone(), ctx.output::<u8>(i)?));
    }
    let mut reference = RefCtx::new(inputs, outputs);
    call.op.def().reference(&mut reference)?;
    if call.data_sized {
        for i in 0..call.outputs.len() {
            ctx.set_dims(i, reference.outputs()[i].shape())?;
        }
    }
    Ok(())
}
