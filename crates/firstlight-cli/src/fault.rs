//! A build with one wrong kernel, for trying whether `compare` finds it.
//!
//! `FIRSTLIGHT_FAULT=OP[:N][+SIZE]`: the kernels of the op run, and then the middle element of their first output is
//! SIZE too large (0.25 where it is not said); with N only in the N-th launch of the op in the process, from 1 on.

use crate::Failure;
use firstlight::core::{
    BackendId, Budget, CPU_BINDINGS, CpuDevice, ExecutorConfig, Graph, KernelBinding, KernelBindingTable, KernelCtx,
    OpError, OpKind, PipelinedExecutor, Pool, PrepareOptions, RealizeRequest, Realized, Spec, StorageCache, ValueId,
    reference_kernel,
};
use firstlight::{DType, Pipeline, RunOptions, Runtime, Tensor};
use std::fmt::Display;
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

/// Runs the op by the kernel that the planner would have chosen, then spoils one element.
fn wrong(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let call = ctx.call();
    let results = right(ctx)?;
    let Some(fault) = FAULT.get() else { return Err(OpError::unsupported("no fault is planted")) };
    let launch = LAUNCHES.fetch_add(1, Ordering::Relaxed) + 1;
    let is_wrong = fault.launch.is_none_or(|at| at == launch);
    for (i, result) in results.iter().enumerate() {
        let n_bytes = result.as_bytes().len();
        let to = ctx.output::<u8>(i)?;
        let to = to.get_mut(..n_bytes).ok_or_else(|| OpError::unsupported("an output is too small"))?;
        to.copy_from_slice(result.as_bytes());
        if call.data_sized {
            ctx.set_dims(i, result.shape())?;
        }
        if is_wrong && i == 0 && result.dtype() == DType::F32 {
            let at = result.n_elems() / 2 * size_of::<f32>();
            if let Some(element) = to.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
                *element = (f32::from_le_bytes(*element) + fault.size).to_le_bytes();
            }
        }
    }
    Ok(())
}

/// What the op's kernel makes of the inputs, in memory of its own: a launch hands each output out once.
fn right(ctx: &KernelCtx<'_>) -> Result<Vec<Tensor>, OpError> {
    let call = ctx.call();
    let fail = |error: &dyn Display| OpError::unsupported(error.to_string());
    let mut graph = Graph::new("fault");
    let (mut operands, mut fed) = (vec![], StorageCache::new());
    for (i, spec) in call.inputs.iter().enumerate() {
        let Some(spec) = spec else {
            operands.push(None);
            continue;
        };
        let value = graph.input(format!("x{i}"), Spec::known(spec.dtype, &spec.dims), None);
        let tensor = Tensor::new(spec.dtype, spec.dims.clone(), ctx.bytes(i)?.into())?;
        fed.insert(value, Realized::from_tensor(&tensor));
        operands.push(Some(value));
    }
    let names: Vec<String> = (0..call.outputs.len()).map(|i| format!("y{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let node = graph.push("node", call.op.clone(), &operands, &names)?;
    let targets: Vec<ValueId> = (0..names.len() as u32).map(|output| ValueId { node, output }).collect();
    let table = KernelBindingTable::finalize(CPU_BINDINGS, &[(BackendId::CPU, reference_kernel)]);
    let executor = PipelinedExecutor::new(ExecutorConfig {
        pool: Arc::new(Pool::new(1).map_err(|error| fail(&error))?),
        table: Arc::new(table.map_err(|error| fail(&error))?),
        device: Arc::new(CpuDevice),
        budget: Budget::new(None),
    });
    let realized = executor.realize_with(RealizeRequest {
        graph: &Arc::new(graph),
        targets: &targets,
        inputs: &fed,
        prepare: PrepareOptions { passes: false, ..PrepareOptions::default() },
        options: RunOptions { pipeline: Pipeline::Inline, ..RunOptions::default() },
        persistent: None,
    });
    let realized = realized.map_err(|error| fail(&error))?;
    let result = |target: &ValueId| realized.get(*target).ok_or_else(|| fail(&"a result is lost"))?.to_tensor();
    targets.iter().map(result).collect()
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
