//! Launching a row through a `RunMemory`, and counting what it allocates.

use firstlight_backend::{Budget, Guards, KernelBinding, KernelCall, KernelQuery, Loc, OperandSpec, Pool, RunMemory};
use firstlight_cpu::CpuDevice;
use firstlight_graph::{Op, OpError, OutInfo};
use firstlight_tensor::{Bytes, Tensor};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where inputs lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    Aligned,
    /// One byte behind an aligned address.
    Unaligned,
}

/// What a launch left.
pub(crate) struct Ran {
    pub outputs: Vec<Tensor>,
    /// Allocations of the calling thread during the launch.
    pub n_allocations: usize,
    /// How long the launch took, for the bench.
    #[allow(dead_code)]
    pub elapsed: Duration,
}

struct Counting;

thread_local! {
    static N_ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        N_ALLOCATIONS.set(N_ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What `f` returns, and how often this thread allocated meanwhile.
pub(crate) fn allocations<R>(f: impl FnOnce() -> R) -> (R, usize) {
    let before = N_ALLOCATIONS.get();
    let result = f();
    (result, N_ALLOCATIONS.get() - before)
}

/// Runs a row; `None` when it does not accept the node.
pub(crate) fn launch(
    row: &KernelBinding,
    op: &Op,
    inputs: &[Option<Tensor>],
    outputs: &[OutInfo],
    pool: &Pool,
    placement: Placement,
) -> Option<Result<Ran, OpError>> {
    let spec = |tensor: &Tensor| OperandSpec { dtype: tensor.dtype(), dims: tensor.shape().clone() };
    let input_specs: Vec<_> = inputs.iter().map(|input| input.as_ref().map(spec)).collect();
    let out_spec = |info: &OutInfo| OperandSpec { dtype: info.dtype, dims: info.dims.known().unwrap() };
    let output_specs: Vec<_> = outputs.iter().map(out_spec).collect();
    let query = KernelQuery { op, inputs: &input_specs, outputs: &output_specs, threads: pool.threads() };
    if !(row.accepts)(&query) {
        return None;
    }
    let call = KernelCall {
        op: op.clone(),
        kernel: row.kernel,
        scratch_bytes: (row.scratch_bytes)(&query),
        inputs: input_specs.iter().cloned().collect(),
        outputs: output_specs.iter().cloned().collect(),
        data_sized: outputs.iter().any(|output| output.data_sized),
    };
    Some(run(&call, inputs, pool, placement))
}

fn run(call: &KernelCall, inputs: &[Option<Tensor>], pool: &Pool, placement: Placement) -> Result<Ran, OpError> {
    let mut n_bytes = 0;
    let mut place = |len: usize, shift: usize| {
        let offset = n_bytes + shift;
        n_bytes += (len + shift).next_multiple_of(64);
        Loc::Arena { chunk: 0, offset }
    };
    let shift = usize::from(placement == Placement::Unaligned);
    let from: Vec<_> =
        inputs.iter().map(|input| input.as_ref().map(|tensor| place(tensor.as_bytes().len(), shift))).collect();
    let to: Vec<_> = call.outputs.iter().map(|spec| place(spec.n_bytes(), 0)).collect();
    let scratch = place(call.scratch_bytes, 0);
    let mut memory = RunMemory::new(Arc::new(CpuDevice), Budget::new(None));
    memory.ensure_chunk(0, n_bytes)?;
    memory.write(&Loc::Arena { chunk: 0, offset: 0 }, &vec![0xa5; n_bytes])?;
    for (input, loc) in inputs.iter().zip(&from) {
        if let (Some(input), Some(loc)) = (input, loc) {
            memory.write(loc, input.as_bytes())?;
        }
    }
    let guards = Guards::default();
    let step = memory.resolve(call, &from, &to, Some(&scratch), &guards)?;
    let start = Instant::now();
    let (done, n_allocations) = allocations(|| memory.launch(call, &step, pool, &guards));
    let elapsed = start.elapsed();
    assert_eq!(done?, firstlight_backend::Completion::Ready);
    let mut outputs = vec![];
    for (i, (spec, loc)) in call.outputs.iter().zip(&to).enumerate() {
        let dims = if call.data_sized { memory.found_dims()[i].clone() } else { spec.dims.clone() };
        let spec = OperandSpec { dims, ..spec.clone() };
        let mut bytes = vec![0; spec.n_bytes()];
        memory.read(loc, &mut bytes, &guards)?;
        outputs.push(Tensor::new(spec.dtype, spec.dims.clone(), Bytes::from(&bytes[..]))?);
    }
    Ok(Ran { outputs, n_allocations, elapsed })
}
