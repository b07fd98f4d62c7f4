//! Work of the device, owned so that it can be done later.

use crate::faults::Fault;
use crate::space::poisoned;
use firstlight_backend::{DeviceCall, HostBuf, OperandAddr, OperandSpec};
use firstlight_graph::{Op, OpError, OpErrorKind, RefCtx};
use firstlight_tensor::{Layout, Shape, TensorView, TensorViewMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Something to do, and the fault that strikes instead.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) what: What,
    pub(crate) fault: Option<Fault>,
}

#[derive(Debug)]
pub(crate) enum What {
    Upload { from: Vec<u8>, to: OperandAddr },
    Copy { from: OperandAddr, to: OperandAddr },
    Launch(Launch),
}

/// An op with its operands.
#[derive(Debug)]
pub(crate) struct Launch {
    op: Op,
    /// `None`: omitted.
    pub(crate) inputs: Vec<Option<(OperandSpec, OperandAddr)>>,
    pub(crate) outputs: Vec<(OperandSpec, OperandAddr)>,
    pub(crate) scratch: OperandAddr,
    pub(crate) data_sized: bool,
}

impl Launch {
    /// Checks a call and takes what it needs.
    ///
    /// **Errors**: addresses that are not as many, or not as long, as the specs say.
    pub(crate) fn new(call: &DeviceCall<'_>) -> Result<Launch, OpError> {
        let kernel = call.call;
        let broken = |what: &str| OpError::new(OpErrorKind::Device, format!("broken launch of {kernel:?}: {what}"));
        if call.inputs.len() != kernel.inputs.len() || call.outputs.len() != kernel.outputs.len() {
            return Err(broken("more or fewer addresses than operands"));
        }
        if kernel.data_sized && call.found.len() != kernel.outputs.len() {
            return Err(broken("no place for the shapes it finds"));
        }
        if call.scratch.n_bytes < kernel.scratch_bytes {
            return Err(broken("too little scratch"));
        }
        let pair = |spec: &OperandSpec, at: OperandAddr| match spec.n_bytes() == at.n_bytes {
            true => Ok((spec.clone(), at)),
            false => Err(broken(&format!("{} bytes for an operand {spec}", at.n_bytes))),
        };
        let inputs = kernel.inputs.iter().zip(call.inputs).map(|operand| match operand {
            (Some(spec), Some(at)) => pair(spec, *at).map(Some),
            (None, None) => Ok(None),
            _ => Err(broken("an address of an omitted input, or none of a given one")),
        });
        let outputs = kernel.outputs.iter().zip(call.outputs).map(|(spec, at)| pair(spec, *at));
        Ok(Launch {
            op: kernel.op.clone(),
            inputs: inputs.collect::<Result<_, _>>()?,
            outputs: outputs.collect::<Result<_, _>>()?,
            scratch: call.scratch,
            data_sized: kernel.data_sized,
        })
    }

    /// Runs the op's reference on bytes of its inputs (one an input) and gives bytes and final shape of each output.
    /// A panic, the reference's or the fault's, becomes an error.
    ///
    /// **Errors**: what the reference or the fault says; a found shape beyond its bound.
    pub(crate) fn compute(
        &self,
        inputs: &[Option<HostBuf>],
        fault: Option<Fault>,
    ) -> Result<Vec<(HostBuf, Shape)>, OpError> {
        let mut buffers = self.outputs.iter().map(|(_, at)| poisoned(at.n_bytes)).collect::<Result<Vec<_>, _>>()?;
        let inputs = self.inputs.iter().zip(inputs).map(|(operand, bytes)| match (operand, bytes) {
            (Some((spec, _)), Some(bytes)) => {
                Some(TensorView::new(spec.dtype, Layout::dense(&spec.dims), bytes.as_slice()))
            }
            _ => None,
        });
        let outputs = self.outputs.iter().zip(&mut buffers);
        let outputs =
            outputs.map(|((spec, _), bytes)| TensorViewMut::new(spec.dtype, spec.dims.clone(), bytes.as_mut_slice()));
        let mut ctx = RefCtx::new(inputs.collect(), outputs.collect());
        let run = AssertUnwindSafe(|| {
            fault.map_or(Ok(()), Fault::happen)?;
            self.op.def().reference(&mut ctx)
        });
        catch_unwind(run).unwrap_or_else(|payload| Err(OpError::new(OpErrorKind::Panic, panicked(&*payload))))?;
        let found: Vec<Shape> = ctx.outputs().iter().map(|output| output.shape().clone()).collect();
        drop(ctx);
        for ((spec, _), dims) in self.outputs.iter().zip(&found) {
            let within = dims.rank() == spec.dims.rank() && dims.iter().zip(&spec.dims).all(|(dim, most)| dim <= most);
            if !within || (!self.data_sized && *dims != spec.dims) {
                let message = format!("{} found a shape {dims} where {spec} was planned", self.op.info().name);
                return Err(OpError::new(OpErrorKind::Device, message));
            }
        }
        Ok(buffers.into_iter().zip(found).collect())
    }
}

/// What a panic said.
fn panicked(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("no message"))
}
