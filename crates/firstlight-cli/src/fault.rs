//! A build with one wrong kernel, for trying whether `compare` finds it.
//!
//! `FIRSTLIGHT_FAULT=OP[:N][+SIZE]`: the kernels of the op run, and then the middle element of their first output is
//! SIZE too large (0.25 where it is not said); with N only in the N-th launch of the op in the process, from 1 on.

use crate::Failure;
use firstlight::core::{
    BackendId, CPU_BINDINGS, CpuDevice, KernelBinding, KernelBindingTable, KernelCtx, KernelQuery, OpError, OpKind,
    OperandSpec, bind_types, reference_kernel,
};
use firstlight::{DType, Runtime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

const VARIABLE: &str = "FIRSTLIGHT_FAULT";

#[derive(Clone, Copy, Debug, PartialEq)]
struct Fault {
    op: OpKind,
    /// The launch that goes wrong; `None`: all.
    launch: Option<u64>,
    size: f32,
}

static FAULT: OnceLock<Fault> = OnceLock::new();
static LAUNCHES: AtomicU64 = AtomicU64::new(0);

/// A runtime whose kernels of the op that the environment names are wrong; `None` where it names none.
pub(crate) fn runtime(threads: usize) -> Result<Option<Runtime>, Failure> {
    let Ok(text) = std::env::var(VARIABLE) else { return Ok(None) };
    let fault = parse(&text).ok_or_else(|| Failure::BadUse(format!("{VARIABLE}={text:?} is not OP[:N][+SIZE]")))?;
    let fault = *FAULT.get_or_init(|| fault);
    let mut families: Vec<&'static [KernelBinding]> = vec![];
    for row in CPU_BINDINGS.iter().flat_map(|rows| rows.iter()) {
        let kernel = if row.op == fault.op { wrong } else { row.kernel };
        families.push(Box::leak(Box::new([KernelBinding { kernel, ..*row }])));
    }
    let table = KernelBindingTable::finalize(&families, &[(BackendId::CPU, reference_kernel)]);
    let table = table.map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(Some(Runtime::builder().threads(threads).device(Arc::new(CpuDevice), Arc::new(table)).build()?))
}

fn parse(text: &str) -> Option<Fault> {
    let (text, size) = match text.split_once('+') {
        Some((text, size)) => (text, size.parse().ok()?),
        None => (text, 0.25),
    };
    let (name, launch) = match text.split_once(':') {
        Some((name, launch)) => (name, Some(launch.parse().ok()?)),
        None => (text, None),
    };
    let op = OpKind::ALL.iter().copied().find(|op| op.name() == name)?;
    Some(Fault { op, launch, size })
}

/// Runs the kernel that the planner chose, then spoils one element.
fn wrong(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let call = ctx.call();
    let inputs: Vec<Option<DType>> = call.inputs.iter().map(|spec| Some(spec.as_ref()?.dtype)).collect();
    let outputs: Vec<DType> = call.outputs.iter().map(|spec| spec.dtype).collect();
    let types = bind_types(call.op.info(), &inputs, &outputs)?;
    let threads = ctx.pool().threads();
    let query = KernelQuery { op: &call.op, inputs: &call.inputs, outputs: &call.outputs, threads };
    let mut rows = CPU_BINDINGS.iter().flat_map(|rows| rows.iter());
    let chosen = rows.find(|row| row.op == call.op.kind() && row.types == &types[..] && (row.accepts)(&query));
    let kernel = chosen.ok_or_else(|| OpError::unsupported("no kernel to spoil"))?.kernel;
    kernel(ctx)?;
    let Some(fault) = FAULT.get() else { return Ok(()) };
    let launch = LAUNCHES.fetch_add(1, Ordering::Relaxed) + 1;
    if fault.launch.is_none_or(|at| at == launch) && call.outputs.first().map(|spec| spec.dtype) == Some(DType::F32) {
        let n_elems = call.outputs.first().map(OperandSpec::n_bytes).unwrap_or(0) / size_of::<f32>();
        if let Some(element) = ctx.output::<f32>(0)?.get_mut(n_elems / 2) {
            *element += fault.size;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_an_op_a_launch_and_a_size() {
        assert_eq!(parse("Add"), Some(Fault { op: OpKind::Add, launch: None, size: 0.25 }));
        assert_eq!(parse("Add:3+1.5"), Some(Fault { op: OpKind::Add, launch: Some(3), size: 1.5 }));
        assert!(["", "Ad", "Add:x", "Add+"].into_iter().all(|text| parse(text).is_none()));
    }
}
