//! `compile_node`: everything between "the graph says Conv" and "this function, these addresses, this scratch".

use crate::arena::Arena;
use crate::consts::ConstPool;
use crate::plan::Plan;
use crate::program::Program;
use firstlight_backend::{BackendId, Caps, KernelBindingTable, KernelCall, KernelQuery, Loc, OperandSpec};
use firstlight_graph::{Op, OpError, OpErrorKind, OutInfo, Types, bind_types};
use firstlight_tensor::{DType, Tensor};
use smallvec::SmallVec;
use std::fmt;
use std::sync::{Arc, Mutex};

/// What compiling reads and does not change.
#[derive(Debug)]
pub struct PlanCtx<'a> {
    /// The kernels to choose from.
    pub table: &'a KernelBindingTable,
    /// Whose rows are looked up.
    pub backend: BackendId,
    /// Constants as storage: each becomes one once.
    pub consts: &'a ConstPool,
    /// Working threads of the pool that will run the kernels.
    pub threads: usize,
    /// The most elements of a value that may be awaited.
    pub max_awaited_elems: usize,
}

/// A node with its inputs' specs and places, and its outputs' specs.
#[derive(Debug)]
pub struct NodeRequest<'a> {
    /// The op with its attributes.
    pub op: &'a Op,
    /// `None`: omitted.
    pub inputs: SmallVec<[Option<OperandSpec>; 4]>,
    /// Where each input is; `None` where it is omitted.
    pub places: SmallVec<[Option<InputPlace<'a>>; 4]>,
    /// What inference said of the outputs.
    pub outputs: &'a [OutInfo],
}

/// Where an input's bytes are.
#[derive(Debug)]
pub enum InputPlace<'a> {
    /// At a location that is fixed already.
    At(Loc),
    /// In a constant that has to become storage first.
    Const(&'a Tensor),
}

/// A step: a kernel with the locations of its operands, or a loop.
#[derive(Debug)]
pub struct CompiledNode {
    /// Name of the node as in the user's file, outermost subgraph first.
    pub name: Arc<str>,
    /// The kernel with the specs of its operands.
    pub call: KernelCall,
    /// Where each input lies; `None`: omitted.
    pub inputs: SmallVec<[Option<Loc>; 4]>,
    /// Where each output lies.
    pub outputs: SmallVec<[Loc; 1]>,
    /// Where the scratch lies; `None` where the row asks for none.
    pub scratch: Option<Loc>,
    /// Chunks that exist from this step on.
    pub chunks: Vec<(u32, usize)>,
    /// The row that was chosen, or "reference".
    pub source: &'static str,
    /// False for a kernel that must not be part of a captured run.
    pub capture_safe: bool,
    /// Arithmetic operations, for deciding whether the step is dear.
    pub n_operations: u64,
    /// How far compiling had come with it.
    pub progress: Progress,
    /// Whether a kernel runs or a loop.
    pub kind: StepKind,
}

/// How far work on a graph has come, in nodes that compute something.
///
/// **Edge cases**: a node counts with all its subgraphs; the body of a loop counts for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The node at hand, from 1 on.
    pub index: u32,
    /// How many nodes there are.
    pub of: u32,
}

/// What a step does.
#[derive(Debug)]
pub enum StepKind {
    /// Launches the kernel of the step's call.
    Kernel,
    /// Runs a body again and again.
    Loop(Box<LoopStep>),
}

/// A loop: its body is planned for the specs that enter it, and run by the same machinery.
#[derive(Debug)]
pub struct LoopStep {
    /// The body, made ready once.
    pub body: Arc<Program>,
    /// How many values are carried from one iteration to the next.
    pub n_carried: usize,
    /// Growing buffers of the node's outputs: carried values, then scanned ones.
    pub grown: Vec<u32>,
    /// Values that the body captures and that are known or constant.
    pub known_captures: Vec<Option<Tensor>>,
    /// Plans of the body by the specs of its carried inputs, last one first.
    pub plans: Mutex<Vec<Arc<Plan>>>,
}

/// Chooses the kernel of a node, takes its scratch, and fixes the addresses of its operands.
///
/// **Errors**: element types that the op does not take, no row and no reference for them, a constant that cannot
/// become storage.
pub fn compile_node(ctx: &PlanCtx<'_>, arena: &mut Arena, request: NodeRequest<'_>) -> Result<Compiled, OpError> {
    let info = request.op.info();
    let in_types: SmallVec<[Option<DType>; 4]> =
        request.inputs.iter().map(|input| input.as_ref().map(|spec| spec.dtype)).collect();
    let out_types: SmallVec<[DType; 2]> = request.outputs.iter().map(|output| output.dtype).collect();
    let types: Types = bind_types(info, &in_types, &out_types)?;
    let outputs: SmallVec<[OperandSpec; 1]> = request.outputs.iter().map(out_spec).collect::<Result<_, _>>()?;

    let query = KernelQuery { op: request.op, inputs: &request.inputs, outputs: &outputs, threads: ctx.threads };
    let mut rows = ctx.table.rows(request.op.kind(), &types, ctx.backend);
    let row = rows.find(|row| (row.accepts)(&query));
    let (kernel, caps, scratch_bytes, source) = match (row, ctx.table.reference(ctx.backend)) {
        (Some(row), _) => (row.kernel, row.caps, (row.scratch_bytes)(&query), row.source),
        (None, Some(reference)) => (reference, Caps { unaligned: true, capture_safe: true }, 0, "reference"),
        (None, None) => {
            let missing = ctx.table.missing(request.op.kind(), &types, ctx.backend);
            return Err(OpError::unsupported(missing.message));
        }
    };

    let mut inputs: SmallVec<[Option<Loc>; 4]> = SmallVec::new();
    for (place, spec) in request.places.into_iter().zip(&request.inputs) {
        inputs.push(match (place, spec) {
            (Some(InputPlace::At(loc)), Some(_)) => Some(loc),
            (Some(InputPlace::Const(tensor)), Some(spec)) => {
                let align = if caps.unaligned { 1 } else { (spec.dtype.bits() / 8).clamp(1, 8) };
                Some(Loc::Const(ctx.consts.storage(tensor, align)?))
            }
            _ => None,
        });
    }
    let mut chunks = vec![];
    let regions: SmallVec<[crate::Region; 1]> =
        outputs.iter().map(|spec| arena.take(spec.n_bytes(), &mut chunks)).collect();
    let scratch_region = (scratch_bytes > 0).then(|| arena.take(scratch_bytes, &mut chunks));
    let loc = |arena: &Arena, region| arena.loc(region).ok_or_else(|| broken("a region that was not taken"));
    let out_locs: SmallVec<[Loc; 1]> = regions.iter().map(|&region| loc(arena, region)).collect::<Result<_, _>>()?;
    let scratch = scratch_region.map(|region| loc(arena, region)).transpose()?;
    if let Some(region) = scratch_region {
        arena.release(region);
    }
    let data_sized = request.outputs.iter().any(|output| output.data_sized);
    let n_operations = {
        let in_dims: SmallVec<[&[usize]; 4]> =
            request.inputs.iter().map(|input| input.as_ref().map_or(&[][..], |spec| &spec.dims[..])).collect();
        let out_dims: SmallVec<[&[usize]; 2]> = outputs.iter().map(|spec| &spec.dims[..]).collect();
        request.op.def().n_operations(&in_dims, &out_dims)
    };
    let call =
        KernelCall { op: request.op.clone(), kernel, inputs: request.inputs, outputs, data_sized, scratch_bytes };
    Ok(Compiled {
        call,
        inputs,
        outputs: out_locs,
        regions,
        scratch,
        chunks,
        source,
        capture_safe: caps.capture_safe,
        n_operations,
    })
}

/// What [`compile_node`] decides.
#[derive(Debug)]
pub struct Compiled {
    /// The kernel with the specs of its operands.
    pub call: KernelCall,
    /// Where each input lies; `None`: omitted.
    pub inputs: SmallVec<[Option<Loc>; 4]>,
    /// Where each output lies.
    pub outputs: SmallVec<[Loc; 1]>,
    /// The arena's regions of the outputs, one reference each.
    pub regions: SmallVec<[crate::Region; 1]>,
    /// Where the scratch lies; its region is free again once the step is emitted.
    pub scratch: Option<Loc>,
    /// Chunks that the arena began for this node: number and bytes.
    pub chunks: Vec<(u32, usize)>,
    /// The row that was chosen, or "reference".
    pub source: &'static str,
    /// False for a kernel that must not be part of a captured run.
    pub capture_safe: bool,
    /// Arithmetic operations, for deciding whether the step is dear.
    pub n_operations: u64,
}

/// The spec of an output whose dims are known.
pub(crate) fn out_spec(output: &OutInfo) -> Result<OperandSpec, OpError> {
    let dims = output.dims.known().ok_or_else(|| broken("an output without known dims"))?;
    let spec = OperandSpec { dtype: output.dtype, dims };
    let size = spec.dims.n_elems().and_then(|n| spec.dtype.size_bytes(n));
    if size.is_none_or(|n_bytes| n_bytes > isize::MAX as usize / 2) {
        return Err(OpError::shape(format!("an output {spec} cannot be held in memory")));
    }
    Ok(spec)
}

pub(crate) fn broken(message: &str) -> OpError {
    OpError::new(OpErrorKind::Device, format!("internal error of the planner: {message}"))
}

impl fmt::Display for CompiledNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} by {:?}", self.name, self.call, self.source)
    }
}
