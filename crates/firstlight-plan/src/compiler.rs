//! The compiler: walks a program in topological order and emits steps.
//!
//! Its whole state is a [`Snapshot`], so that a segment can keep where compiling goes on and a new key can resume
//! there. Branches of `If` are walked in place once their condition is known; a `Loop` is one step whose body is
//! planned when the specs that enter it are known. Values that follow from shapes get no step.

use crate::arena::{Arena, Region};
use crate::compile::{
    Compiled, CompiledNode, InputPlace, LoopStep, NodeRequest, PlanCtx, Progress, StepKind, broken, compile_node,
    out_spec,
};
use crate::error::{NodeError, PlanError};
use crate::plan::{Plan, PlanCounters, PlanKey, PlanOutput, Watch};
use crate::program::Program;
use firstlight_backend::{KernelCall, KernelCtx, Loc, OperandSpec, Storage};
use firstlight_graph::{NodeId, Op, OpError, OpErrorKind, OutInfo, ValueId, ValueInfo, infer_known};
use firstlight_tensor::{DType, OwnedBytes, Shape, SymShape, Tensor};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::{Arc, Mutex, RwLock};

/// Storages that the caller feeds for constants of the root graph, by the dense index of the value.
pub type Adopted = BTreeMap<u32, (OperandSpec, Arc<RwLock<Storage>>)>;

/// How an input enters a plan.
#[derive(Clone, Debug)]
pub enum Fed {
    /// Bytes that each run brings.
    Runtime(OperandSpec),
    /// Bytes that stay where they are put from one run to the next (what a loop's body captures).
    Pinned(OperandSpec),
    /// A value that is fixed for the plan.
    Known(Tensor),
}

/// What the compiler emits.
#[derive(Debug)]
pub enum Emit {
    /// A step.
    Node(Arc<CompiledNode>),
    /// The next step depends on these; go on with [`Compiler::resume`].
    Await(Vec<Watch>),
    /// The plan is done; where each target lies.
    Done(Vec<PlanOutput>),
}

/// State of the compiler between two steps.
#[derive(Clone, Debug)]
pub struct Snapshot {
    frames: Vec<Frame>,
    arena: Arena,
    counters: Arc<PlanCounters>,
    pending: Option<Pending>,
    /// Nodes of the outermost graph that compute something and lie behind.
    n_walked: u32,
}

/// A graph that is being walked: the program itself, or a branch inside it.
#[derive(Clone, Debug)]
struct Frame {
    program: Arc<Program>,
    /// Names of the nodes around it, each followed by a slash.
    prefix: Arc<str>,
    next: usize,
    live: HashMap<u32, Live>,
    adopted: Arc<Adopted>,
}

/// A value that is still to be read.
#[derive(Clone, Debug)]
struct Live {
    value: Value,
    uses: u32,
}

#[derive(Clone, Debug)]
struct Value {
    spec: OperandSpec,
    /// The value itself, where it is a constant or follows from shapes.
    known: Option<Tensor>,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Region(Region),
    Grown(u32),
    Adopted(Arc<RwLock<Storage>>),
    /// `known` is the place.
    Known,
}

/// What the next key is about.
#[derive(Clone, Debug)]
enum Pending {
    /// Specs of all outputs of the node.
    Dims(Vec<Place>),
    /// Elements of the value of that index, of the top frame.
    Value(u32),
}

/// Walks a program and emits steps.
#[derive(Debug)]
pub struct Compiler {
    state: Snapshot,
}

impl Compiler {
    /// The plan of a program for given inputs; nothing is compiled yet.
    ///
    /// **Errors**: another number of inputs than the program has.
    pub fn plan(program: &Arc<Program>, fed: &[Fed], adopted: Adopted, keep_all: bool) -> Result<Plan, PlanError> {
        let inputs = program.graph().inputs();
        if inputs.len() != fed.len() {
            let message = format!("{} inputs fed to a program of {}", fed.len(), inputs.len());
            return Err(PlanError::Internal(message));
        }
        let counters = Arc::new(PlanCounters::default());
        let mut arena = Arena::new(counters.clone(), keep_all);
        let (mut chunks, mut locs, mut live) = (vec![], vec![], HashMap::new());
        for (input, fed) in inputs.iter().zip(fed) {
            let index = program.index(input.value);
            let uses = program.n_uses(index);
            let value = match fed {
                Fed::Runtime(_) | Fed::Pinned(_) if uses == 0 => {
                    locs.push(None);
                    continue;
                }
                Fed::Runtime(spec) | Fed::Pinned(spec) => {
                    let region = arena.take(spec.n_bytes(), &mut chunks);
                    locs.push(arena.loc(region));
                    if let Fed::Pinned(_) = fed {
                        // A reference that nobody drops.
                        arena.share(region);
                    }
                    Value { spec: spec.clone(), known: None, place: Place::Region(region) }
                }
                Fed::Known(tensor) => {
                    locs.push(None);
                    Value::known(tensor.clone())
                }
            };
            if uses > 0 {
                live.insert(index, Live { value, uses });
            }
        }
        let key = PlanKey {
            inputs: fed.iter().map(Fed::spec).collect(),
            adopted: adopted.iter().map(|(index, (_, storage))| (*index, Arc::as_ptr(storage) as usize)).collect(),
        };
        let frame = Frame { program: program.clone(), prefix: "".into(), next: 0, live, adopted: Arc::new(adopted) };
        let start = Snapshot { frames: vec![frame], arena, counters: counters.clone(), pending: None, n_walked: 0 };
        Ok(Plan::new(key.sorted(), program.clone(), locs, chunks, counters, start))
    }

    /// A compiler that goes on where a snapshot was taken.
    pub fn new(state: Snapshot) -> Compiler {
        Compiler { state }
    }

    /// The state, to go on from later.
    pub fn snapshot(&self) -> Snapshot {
        self.state.clone()
    }

    /// Compiles on to the next step or the next thing to wait for.
    ///
    /// **Errors**: the node that cannot be compiled, and why.
    pub fn next(&mut self, ctx: &PlanCtx<'_>) -> Result<Emit, PlanError> {
        if let Some(Pending::Dims(places)) = &self.state.pending {
            return Ok(Emit::Await((0..places.len()).map(|output| Watch::Dims { output }).collect()));
        }
        loop {
            let Some(frame) = self.state.frames.last() else {
                return Err(PlanError::Internal("no graph is left to walk".to_owned()));
            };
            let program = frame.program.clone();
            let next = frame.next;
            let Some(node) = program.graph().nodes().get(next) else {
                match self.finish_frame(ctx) {
                    Ok(Some(outputs)) => return Ok(Emit::Done(outputs)),
                    Ok(None) => continue,
                    Err(error) => return Err(self.error(&program, next.saturating_sub(1), error)),
                }
            };
            if !program.is_needed(next) {
                self.advance();
                continue;
            }
            let emitted = match &node.op {
                // Bound when the frame was made.
                Op::Input(_) => {
                    self.advance();
                    Ok(None)
                }
                Op::Const(constant) => {
                    self.bind_const(&program, next, &constant.tensor);
                    self.advance();
                    Ok(None)
                }
                Op::If(_) => self.walk_branch(ctx, &program, next),
                Op::Loop(_) => self.compile_loop(ctx, &program, next),
                _ => self.compile_op(ctx, &program, next),
            };
            match emitted {
                Ok(Some(emit)) => return Ok(emit),
                Ok(None) => {}
                Err(error) => return Err(self.error(&program, next, error)),
            }
        }
    }

    /// Name and op of the node that is compiled next; inputs, constants and unneeded nodes are passed over.
    pub fn upcoming(&self) -> Option<(Arc<str>, &'static str)> {
        let frame = self.state.frames.last()?;
        let nodes = frame.program.graph().nodes();
        let next = (frame.next..nodes.len()).find(|i| frame.program.computes(*i))?;
        Some((self.node_name(&frame.program, next), nodes[next].op.info().name))
    }

    /// Goes on with what was awaited.
    ///
    /// **Errors**: a key that does not fit what was awaited.
    pub fn resume(&mut self, key: &[i64]) -> Result<(), PlanError> {
        let misfit = || PlanError::Internal("a key that does not fit what was awaited".to_owned());
        match self.state.pending.take() {
            None => Err(misfit()),
            Some(Pending::Value(index)) => {
                let live = self.frame_mut().live.get_mut(&index).ok_or_else(misfit)?;
                let spec = &live.value.spec;
                live.value.known = Some(tensor_from_bits(spec, key).ok_or_else(misfit)?);
                Ok(())
            }
            Some(Pending::Dims(places)) => {
                let mut rest = key;
                let frame = self.frame_mut();
                let (program, node) = (frame.program.clone(), frame.next);
                for (output, place) in places.into_iter().enumerate() {
                    let spec = split_spec(&mut rest).ok_or_else(misfit)?;
                    self.bind(&program, node, output, Value { spec, known: None, place });
                }
                self.release_inputs(&program, node);
                self.advance();
                Ok(())
            }
        }
    }

    fn frame_mut(&mut self) -> &mut Frame {
        let last = self.state.frames.len() - 1;
        &mut self.state.frames[last]
    }

    fn advance(&mut self) {
        let frame = self.frame_mut();
        let counts = frame.program.computes(frame.next);
        frame.next += 1;
        if counts && self.state.frames.len() == 1 {
            self.state.n_walked += 1;
        }
    }

    /// How far compiling has come: the node of the outermost graph that is at hand.
    pub fn progress(&self) -> Progress {
        let of = self.state.frames.first().map_or(0, |frame| frame.program.n_computing());
        Progress { index: (self.state.n_walked + 1).min(of), of }
    }

    fn live(&self, program: &Program, input: ValueId) -> Result<&Value, OpError> {
        let live = self.state.frames.last().and_then(|frame| frame.live.get(&program.index(input)));
        live.map(|live| &live.value).ok_or_else(|| broken("a value that is read and not live"))
    }

    /// Makes a value readable under an output of a node; one that nobody reads is given back at once.
    fn bind(&mut self, program: &Program, node: usize, output: usize, value: Value) {
        let index = program.index(ValueId { node: NodeId(node as u32), output: output as u32 });
        match program.n_uses(index) {
            0 => self.release(&value),
            uses => drop(self.frame_mut().live.insert(index, Live { value, uses })),
        }
    }

    fn bind_const(&mut self, program: &Program, node: usize, tensor: &Tensor) {
        let index = program.index(NodeId(node as u32).into());
        let adopted = self.frame_mut().adopted.get(&index).cloned();
        let value = match adopted {
            Some((spec, storage)) => Value { spec, known: None, place: Place::Adopted(storage) },
            None => Value::known(tensor.clone()),
        };
        self.bind(program, node, 0, value);
    }

    fn share(&mut self, value: &Value) {
        if let Place::Region(region) = value.place {
            self.state.arena.share(region);
        }
    }

    fn release(&mut self, value: &Value) {
        if let Place::Region(region) = value.place {
            self.state.arena.release(region);
        }
    }

    /// Counts a node's reads; a value's last reader frees it.
    fn release_inputs(&mut self, program: &Program, node: usize) {
        for &input in program.graph().nodes()[node].inputs.iter().flatten() {
            let index = program.index(input);
            let frame = self.frame_mut();
            let Some(live) = frame.live.get_mut(&index) else { continue };
            live.uses -= 1;
            if live.uses == 0
                && let Some(dead) = frame.live.remove(&index)
            {
                self.release(&dead.value);
            }
        }
    }

    fn loc(&self, ctx: &PlanCtx<'_>, value: &Value) -> Result<Loc, OpError> {
        match &value.place {
            Place::Region(region) => {
                self.state.arena.loc(*region).ok_or_else(|| broken("a value whose region was given back"))
            }
            Place::Grown(index) => Ok(Loc::Grown(*index)),
            Place::Adopted(storage) => Ok(Loc::Adopted(storage.clone())),
            Place::Known => match &value.known {
                Some(tensor) => Ok(Loc::Const(ctx.consts.storage(tensor, 1)?)),
                None => Err(broken("a value without a place")),
            },
        }
    }

    /// Asks for the elements of a value of the top frame.
    fn await_value(&mut self, ctx: &PlanCtx<'_>, program: &Program, input: ValueId) -> Result<Option<Emit>, OpError> {
        let value = self.live(program, input)?.clone();
        let n_elems = value.spec.dims.n_elems().unwrap_or(usize::MAX);
        if value.known.is_some() {
            return Err(broken("a known value was awaited"));
        }
        if n_elems > ctx.max_awaited_elems || !(8..=64).contains(&value.spec.dtype.bits()) {
            return Err(OpError::unsupported(format!(
                "a shape depends on {n_elems} values of {}; at most {} of at most 64 bits are awaited",
                value.spec.dtype, ctx.max_awaited_elems
            )));
        }
        let loc = self.loc(ctx, &value)?;
        self.state.pending = Some(Pending::Value(program.index(input)));
        Ok(Some(Emit::Await(vec![Watch::Value { spec: value.spec, loc }])))
    }

    fn compile_op(&mut self, ctx: &PlanCtx<'_>, program: &Arc<Program>, next: usize) -> Result<Option<Emit>, OpError> {
        let node = &program.graph().nodes()[next];
        let mut values: SmallVec<[Option<Value>; 4]> = SmallVec::new();
        for input in &node.inputs {
            values.push(input.map(|input| self.live(program, input).cloned()).transpose()?);
        }
        let infos: SmallVec<[Option<ValueInfo>; 4]> =
            values.iter().map(|value| value.as_ref().map(Value::info)).collect();
        let outputs = match infer_known(&node.op, &infos, node.outputs.len()) {
            Ok(outputs) => outputs,
            Err(error) => match (error.kind(), node.inputs.get(needed_input(&error))) {
                (OpErrorKind::NeedsValue(_), Some(Some(input))) => return self.await_value(ctx, program, *input),
                _ => return Err(error),
            },
        };
        if outputs.iter().all(|output| output.value.is_some()) {
            for (i, output) in outputs.into_iter().enumerate() {
                if let Some(tensor) = output.value {
                    self.bind(program, next, i, Value::known(tensor));
                }
            }
        } else if node.op.def().is_view() && outputs.len() == 1 {
            let value = values.first().cloned().flatten().ok_or_else(|| broken("a view of nothing"))?;
            let view = value.viewed_as(out_spec(&outputs[0])?)?;
            self.share(&view);
            self.bind(program, next, 0, view);
        } else {
            return self.emit_kernel(ctx, program, next, &values, &outputs).map(Some);
        }
        self.release_inputs(program, next);
        self.advance();
        Ok(None)
    }

    fn emit_kernel(
        &mut self,
        ctx: &PlanCtx<'_>,
        program: &Arc<Program>,
        next: usize,
        values: &[Option<Value>],
        outputs: &[OutInfo],
    ) -> Result<Emit, OpError> {
        let node = &program.graph().nodes()[next];
        let mut places: SmallVec<[Option<InputPlace<'_>>; 4]> = SmallVec::new();
        for value in values {
            places.push(match value {
                None => None,
                Some(Value { place: Place::Known, known: Some(tensor), .. }) => Some(InputPlace::Const(tensor)),
                Some(value) => Some(InputPlace::At(self.loc(ctx, value)?)),
            });
        }
        let inputs = values.iter().map(|value| value.as_ref().map(|value| value.spec.clone())).collect();
        let request = NodeRequest { op: &node.op, inputs, places, outputs };
        let compiled = compile_node(ctx, &mut self.state.arena, request)?;
        let Compiled { call, inputs, outputs: locs, regions, scratch, chunks, source, capture_safe, n_operations } =
            compiled;
        let (specs, data_sized) = (call.outputs.clone(), call.data_sized);
        let step = CompiledNode {
            name: self.node_name(program, next),
            call,
            inputs,
            outputs: locs,
            scratch,
            chunks,
            source,
            capture_safe,
            n_operations,
            progress: self.progress(),
            kind: StepKind::Kernel,
        };
        self.state.counters.count_node();
        let places = regions.into_iter().map(Place::Region);
        if data_sized {
            self.state.pending = Some(Pending::Dims(places.collect()));
        } else {
            for (i, (place, spec)) in places.zip(specs).enumerate() {
                self.bind(program, next, i, Value { spec, known: outputs[i].value.clone(), place });
            }
            self.release_inputs(program, next);
            self.advance();
        }
        Ok(Emit::Node(Arc::new(step)))
    }

    fn walk_branch(&mut self, ctx: &PlanCtx<'_>, program: &Arc<Program>, next: usize) -> Result<Option<Emit>, OpError> {
        let node = &program.graph().nodes()[next];
        let cond = node.inputs.first().copied().flatten().ok_or_else(|| broken("an If without condition"))?;
        let value = self.live(program, cond)?;
        if value.spec.dtype != DType::Bool || value.spec.dims.n_elems() != Some(1) {
            return Err(OpError::shape(format!("the condition must be one bool, got {}", value.spec)));
        }
        let Some(known) = &value.known else { return self.await_value(ctx, program, cond) };
        let which = if known.as_bytes().first().is_some_and(|&byte| byte != 0) { 0 } else { 1 };
        let branch = program.subprogram(NodeId(next as u32), which).ok_or_else(|| broken("a branch is missing"))?;
        let branch = branch.clone();
        if self.state.frames.len() >= MAX_DEPTH {
            return Err(OpError::unsupported(format!("subgraphs are nested deeper than {MAX_DEPTH}")));
        }
        let mut live = HashMap::new();
        for (input, outer) in branch.graph().inputs().iter().zip(&node.inputs[1..]) {
            let index = branch.index(input.value);
            let uses = branch.n_uses(index);
            if let (Some(outer), true) = (*outer, uses > 0) {
                let value = self.live(program, outer)?.clone();
                self.share(&value);
                live.insert(index, Live { value, uses });
            }
        }
        self.release_inputs(program, next);
        let prefix = format!("{}/", self.node_name(program, next)).into();
        self.state.frames.push(Frame { program: branch, prefix, next: 0, live, adopted: Arc::default() });
        Ok(None)
    }

    /// Ends the top frame: the plan is done, or a branch's outputs become its node's.
    fn finish_frame(&mut self, ctx: &PlanCtx<'_>) -> Result<Option<Vec<PlanOutput>>, OpError> {
        let program = self.frame_mut().program.clone();
        let mut results = vec![];
        for &target in program.targets() {
            results.push(self.live(&program, target)?.clone());
        }
        if self.state.frames.len() == 1 {
            let output = |value: &Value| Ok(PlanOutput { spec: value.spec.clone(), loc: self.loc(ctx, value)? });
            return results.iter().map(output).collect::<Result<_, _>>().map(Some);
        }
        for value in &results {
            self.share(value);
        }
        if let Some(frame) = self.state.frames.pop() {
            for live in frame.live.values() {
                self.release(&live.value);
            }
        }
        let (program, node) = (self.frame_mut().program.clone(), self.frame_mut().next);
        for (i, value) in results.into_iter().enumerate() {
            self.bind(&program, node, i, value);
        }
        self.advance();
        Ok(None)
    }

    fn compile_loop(
        &mut self,
        ctx: &PlanCtx<'_>,
        program: &Arc<Program>,
        next: usize,
    ) -> Result<Option<Emit>, OpError> {
        let node = &program.graph().nodes()[next];
        let Op::Loop(op) = &node.op else { return Err(broken("a loop that is none")) };
        let body = program.subprogram(NodeId(next as u32), 0).ok_or_else(|| broken("a body is missing"))?.clone();
        if self.state.frames.len() >= MAX_DEPTH {
            return Err(OpError::unsupported(format!("subgraphs are nested deeper than {MAX_DEPTH}")));
        }
        let n_carried = op.n_carried;
        let (mut specs, mut locs, mut known_captures) = (SmallVec::new(), SmallVec::new(), vec![]);
        for (i, input) in node.inputs.iter().enumerate() {
            let value = input.map(|input| self.live(program, input).cloned()).transpose()?;
            let one = value.as_ref().is_none_or(|value| value.spec.dims.n_elems() == Some(1));
            let typed = |dtype| value.as_ref().is_none_or(|value| value.spec.dtype == dtype);
            if i < 2 && !(one && typed([DType::I64, DType::Bool][i])) {
                let what = ["the trip count must be one i64", "the condition must be one bool"][i];
                return Err(OpError::shape(what));
            }
            let capture = i >= 2 + n_carried;
            let known = value.as_ref().filter(|_| capture).and_then(|value| value.known.clone());
            let loc = match &value {
                Some(value) if known.is_none() => Some(self.loc(ctx, value)?),
                _ => None,
            };
            specs.push(value.as_ref().filter(|_| known.is_none()).map(|value| value.spec.clone()));
            locs.push(loc);
            if capture {
                known_captures.push(known);
            }
        }
        let grown: Vec<u32> = node.outputs.iter().map(|_| self.state.counters.new_grown()).collect();
        let places = grown.iter().map(|&index| Place::Grown(index)).collect();
        let step = LoopStep { body, n_carried, grown, known_captures, plans: Mutex::new(vec![]) };
        let call = KernelCall {
            op: node.op.clone(),
            kernel: not_launched,
            inputs: specs,
            outputs: SmallVec::new(),
            data_sized: true,
            scratch_bytes: 0,
        };
        let step = CompiledNode {
            name: self.node_name(program, next),
            call,
            inputs: locs,
            outputs: SmallVec::new(),
            scratch: None,
            chunks: vec![],
            source: "loop",
            capture_safe: true,
            n_operations: 0,
            progress: self.progress(),
            kind: StepKind::Loop(Box::new(step)),
        };
        self.state.counters.count_node();
        self.state.pending = Some(Pending::Dims(places));
        Ok(Some(Emit::Node(Arc::new(step))))
    }

    /// Name of a node with the names around it.
    fn node_name(&self, program: &Program, node: usize) -> Arc<str> {
        let prefix = self.state.frames.last().map_or("", |frame| &frame.prefix);
        format!("{prefix}{}", program.graph().nodes()[node].name).into()
    }

    fn error(&self, program: &Program, node: usize, source: OpError) -> PlanError {
        let Some(at) = program.graph().nodes().get(node) else { return PlanError::Internal(source.to_string()) };
        let inputs = at.inputs.iter().map(|input| match input {
            None => "_".to_owned(),
            Some(input) => self.live(program, *input).map_or("?".to_owned(), |value| {
                let mut text = value.spec.to_string();
                if let Some(known) = value.known.as_ref().filter(|known| known.n_elems() <= 8)
                    && let Ok(ints) = known.to_i64s()
                {
                    let _ = write!(text, "={ints:?}");
                }
                text
            }),
        });
        PlanError::Node(Box::new(NodeError {
            node: self.node_name(program, node).to_string(),
            op: at.op.info().name,
            inputs: inputs.collect(),
            source,
        }))
    }
}

/// Depth of nested branches that are walked; the importer's limit is lower.
const MAX_DEPTH: usize = 256;

fn not_launched(_ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    Err(broken("a loop was launched as a kernel"))
}

impl Fed {
    /// The spec of an input that is not fixed.
    pub fn spec(&self) -> Option<OperandSpec> {
        match self {
            Fed::Runtime(spec) | Fed::Pinned(spec) => Some(spec.clone()),
            Fed::Known(_) => None,
        }
    }
}

fn needed_input(error: &OpError) -> usize {
    match error.kind() {
        OpErrorKind::NeedsValue(i) => *i,
        _ => usize::MAX,
    }
}

impl Value {
    fn known(tensor: Tensor) -> Value {
        let spec = OperandSpec { dtype: tensor.dtype(), dims: tensor.shape().clone() };
        Value { spec, known: Some(tensor), place: Place::Known }
    }

    fn info(&self) -> ValueInfo {
        ValueInfo { dtype: self.spec.dtype, dims: SymShape::from(&self.spec.dims), value: self.known.clone() }
    }

    /// The same bytes under another spec.
    fn viewed_as(self, spec: OperandSpec) -> Result<Value, OpError> {
        if spec.n_bytes() != self.spec.n_bytes() {
            return Err(broken("a view of another size"));
        }
        let known = self.known.map(|tensor| tensor.reshape(spec.dims.clone())).transpose()?;
        Ok(Value { spec, known, place: self.place })
    }
}

impl PlanKey {
    fn sorted(mut self) -> PlanKey {
        self.adopted.sort_unstable();
        self
    }
}

/// A value from the bits of its elements, one key entry an element.
fn tensor_from_bits(spec: &OperandSpec, bits: &[i64]) -> Option<Tensor> {
    let width = spec.dtype.bits() / 8;
    if spec.dims.n_elems()? != bits.len() || !(1..=8).contains(&width) {
        return None;
    }
    let mut bytes = OwnedBytes::zeroed(bits.len() * width);
    for (element, bits) in bytes.as_mut_slice().chunks_exact_mut(width).zip(bits) {
        element.copy_from_slice(&bits.to_le_bytes()[..width]);
    }
    Tensor::new(spec.dtype, spec.dims.clone(), bytes.into()).ok()
}

/// Takes one spec off a key: element type, rank, dims.
fn split_spec(key: &mut &[i64]) -> Option<OperandSpec> {
    let (&dtype, rest) = key.split_first()?;
    let (&rank, rest) = rest.split_first()?;
    let (dims, rest) = rest.split_at_checked(usize::try_from(rank).ok()?)?;
    *key = rest;
    let dtype = *DType::ALL.get(usize::try_from(dtype).ok()?)?;
    let dims = dims.iter().map(|&dim| usize::try_from(dim).ok()).collect::<Option<Shape>>()?;
    Some(OperandSpec { dtype, dims })
}

/// Appends a spec to a key, as [`Watch::Dims`] wants it.
pub fn push_spec(key: &mut crate::SegmentKey, dtype: DType, dims: &[usize]) {
    let index = DType::ALL.iter().position(|&other| other == dtype).unwrap_or(usize::MAX);
    key.push(index as i64);
    key.push(dims.len() as i64);
    key.extend(dims.iter().map(|&dim| dim as i64));
}
