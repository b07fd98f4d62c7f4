//! `fold-constants`: nodes that read constants only are computed once, by the kernel that would have run.

use super::{Action, Scope};
use crate::arena::Arena;
use crate::compile::{InputPlace, NodeRequest, PlanCtx, compile_node};
use crate::consts::ConstPool;
use crate::plan::PlanCounters;
use firstlight_backend::{Completion, Guards, Loc, OperandSpec, Reservation, RunMemory};
use firstlight_graph::{Exactness, Node, Op, OpError, OutInfo, ValueId, ValueInfo, infer_known};
use firstlight_tensor::{OwnedBytes, Shape, SymShape, Tensor};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes up to which a result may be any number of times as large as what it is made of.
const SMALL_BYTES: usize = 64 << 10;
/// How many times larger a result may be beyond that.
const MAX_GROWTH: usize = 4;
/// Arithmetic operations that all folded nodes take together, at most.
const MAX_OPERATIONS: u64 = 1 << 26;

/// Folds in topological order, so that a folded node is a constant to its readers.
pub(super) fn find(scope: &mut Scope<'_, '_>) -> Vec<(usize, Action)> {
    let mut folder: Option<Folder> = None;
    let mut folded: HashMap<usize, Vec<Folded>> = HashMap::new();
    let candidates: Vec<usize> = scope.nodes().filter(|(_, node)| is_foldable(node)).map(|(i, _)| i).collect();
    for i in candidates {
        if scope.ctx.is_cancelled() {
            break;
        }
        let node = &scope.graph.nodes()[i];
        let constant = |value: ValueId| match folded.get(&(value.node.0 as usize)) {
            Some(outputs) => outputs.get(value.output as usize).map(|(tensor, _)| tensor.clone()),
            None => scope.constant(value).cloned(),
        };
        let inputs = node.inputs.iter().map(|input| match input {
            None => Some(None),
            Some(value) => constant(*value).map(Some),
        });
        let Some(inputs) = inputs.collect::<Option<SmallVec<[Option<Tensor>; 4]>>>() else { continue };
        // What cannot be computed now is for the run to report.
        if let Ok(Some(outputs)) = fold(scope, &mut folder, node, &inputs) {
            folded.insert(i, outputs);
        }
    }
    let mut actions: Vec<_> = folded.into_iter().map(|(i, outputs)| (i, Action::Fold(outputs))).collect();
    actions.sort_unstable_by_key(|(i, _)| *i);
    actions
}

type Folded = (Tensor, Option<Reservation>);

fn is_foldable(node: &Node) -> bool {
    !matches!(node.op, Op::Input(_) | Op::Const(_) | Op::If(_) | Op::Loop(_))
        && node.op.info().exactness != Exactness::Random
        && node.inputs.iter().any(Option::is_some)
}

/// What launching needs, made for the first node that is launched.
struct Folder {
    arena: Arena,
    memory: RunMemory,
    consts: ConstPool,
}

/// The outputs of a node of constants; `None` where folding would take too much.
fn fold(
    scope: &mut Scope<'_, '_>,
    folder: &mut Option<Folder>,
    node: &Node,
    inputs: &[Option<Tensor>],
) -> Result<Option<Vec<Folded>>, OpError> {
    let info = |tensor: &Tensor| ValueInfo {
        dtype: tensor.dtype(),
        dims: SymShape::from(tensor.shape()),
        value: Some(tensor.clone()),
    };
    let infos: SmallVec<[Option<ValueInfo>; 4]> = inputs.iter().map(|input| input.as_ref().map(info)).collect();
    let outputs = infer_known(&node.op, &infos, node.outputs.len())?;
    if outputs.iter().all(|output| output.value.is_some()) {
        return Ok(Some(outputs.into_iter().filter_map(|output| output.value).map(|value| (value, None)).collect()));
    }
    if let ([output], true, Some(Some(input))) = (&outputs[..], node.op.def().is_view(), inputs.first()) {
        let shape = output.dims.known().ok_or_else(|| OpError::shape("a view of unknown shape"))?;
        return Ok(Some(vec![(input.reshape(shape)?, None)]));
    }
    let sizes = outputs.iter().map(n_bytes).collect::<Option<SmallVec<[usize; 2]>>>();
    let n_bytes = sizes.and_then(|sizes| sizes.into_iter().try_fold(0usize, usize::checked_add));
    let from: usize = inputs.iter().flatten().map(|tensor| tensor.as_bytes().len()).sum();
    let left = scope.ctx.max_folded_bytes.saturating_sub(scope.state.folded_bytes);
    let fits = |n: &usize| *n <= left && (*n <= SMALL_BYTES || *n <= from.saturating_mul(MAX_GROWTH));
    let Some(n_bytes) = n_bytes.filter(fits) else { return Ok(None) };
    let folder = folder.get_or_insert_with(|| Folder {
        arena: Arena::new(Arc::new(PlanCounters::default()), false),
        memory: RunMemory::new(scope.ctx.device.clone(), scope.ctx.budget.clone()),
        consts: ConstPool::new(scope.ctx.device.clone(), scope.ctx.budget.clone()),
    });
    let launched = launch(scope, folder, node, inputs, &outputs)?;
    if launched.is_some() {
        scope.state.folded_bytes += n_bytes;
    }
    Ok(launched)
}

fn n_bytes(output: &OutInfo) -> Option<usize> {
    let shape = output.dims.known()?;
    output.dtype.size_bytes(shape.n_elems()?)
}

fn launch(
    scope: &mut Scope<'_, '_>,
    folder: &mut Folder,
    node: &Node,
    inputs: &[Option<Tensor>],
    outputs: &[OutInfo],
) -> Result<Option<Vec<Folded>>, OpError> {
    let ctx = scope.ctx;
    let Folder { arena, memory, consts } = folder;
    let plan_ctx = PlanCtx {
        table: ctx.table,
        backend: ctx.device.backend(),
        consts,
        threads: ctx.pool.threads(),
        max_awaited_elems: 0,
    };
    let spec = |tensor: &Tensor| OperandSpec { dtype: tensor.dtype(), dims: tensor.shape().clone() };
    let request = NodeRequest {
        op: &node.op,
        inputs: inputs.iter().map(|input| input.as_ref().map(spec)).collect(),
        places: inputs.iter().map(|input| input.as_ref().map(InputPlace::Const)).collect(),
        outputs,
    };
    let compiled = compile_node(&plan_ctx, arena, request)?;
    compiled.regions.iter().for_each(|&region| arena.release(region));
    // Chunks of a node that is not launched are needed all the same: the arena counts on them.
    for &(chunk, n_bytes) in &compiled.chunks {
        memory.ensure_chunk(chunk, n_bytes)?;
    }
    let operations = scope.state.folded_operations.saturating_add(compiled.n_operations);
    if operations > MAX_OPERATIONS {
        return Ok(None);
    }
    scope.state.folded_operations = operations;
    let guards = Guards::default();
    let call = &compiled.call;
    let addrs = memory.resolve(call, &compiled.inputs, &compiled.outputs, compiled.scratch.as_ref(), &guards)?;
    match memory.launch(call, &addrs, ctx.pool, &guards)? {
        Completion::Ready => {}
        Completion::Pending(event) => ctx.device.wait(event)?,
    }
    let found: SmallVec<[Shape; 2]> = memory.found_dims().iter().cloned().collect();
    let read = |(i, (spec, loc)): (usize, (&OperandSpec, &Loc))| -> Result<Folded, OpError> {
        let dims = match call.data_sized {
            true => found.get(i).cloned().ok_or_else(|| OpError::shape("a step found no shapes"))?,
            false => spec.dims.clone(),
        };
        let spec = OperandSpec { dtype: spec.dtype, dims };
        let refused = |refused: firstlight_backend::OverBudget| {
            OpError::new(firstlight_graph::OpErrorKind::Memory, refused.to_string())
        };
        let reserved = ctx.budget.reserve(spec.n_bytes()).map_err(refused)?;
        let mut bytes = OwnedBytes::zeroed(spec.n_bytes());
        memory.read(loc, bytes.as_mut_slice(), &guards)?;
        Ok((Tensor::new(spec.dtype, spec.dims, bytes.into())?, Some(reserved)))
    };
    call.outputs.iter().zip(&compiled.outputs).enumerate().map(read).collect::<Result<_, _>>().map(Some)
}
