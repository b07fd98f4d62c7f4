//! Walks a plan: replays the segments that are known, streams the rest from the compiler.

use crate::RunError;
use crate::control::{Event, RunOptions, panic_message};
use crate::pipeline::{Ahead, InlineSource, Item, Source, run_pipelined};
use crate::state::{CapturedRun, PersistentOutputs, ReplayList};
use firstlight_backend::{Budget, Completion, Device, Guards, KernelBindingTable, Pool, RunMemory, StepAddrs};
use firstlight_graph::OpError;
use firstlight_plan::{
    CompiledNode, Compiler, ConstPool, Plan, PlanCtx, Segment, SegmentEnd, SegmentKey, Snapshot, StepKind, Watch,
    push_spec,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Everything a run reads.
#[derive(Debug)]
pub(crate) struct Engine<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) table: &'a KernelBindingTable,
    pub(crate) device: &'a Arc<dyn Device>,
    pub(crate) budget: &'a Arc<Budget>,
    pub(crate) consts: &'a ConstPool,
    pub(crate) options: &'a RunOptions<'a>,
    pub(crate) guards: &'a Guards<'a>,
    /// True when the program is large enough to gain from compiling on another thread.
    pub(crate) gains_from_pipeline: bool,
}

/// The most elements of a value that a shape may wait for.
const MAX_AWAITED_ELEMS: usize = 4096;

/// Launches a compiled step.
///
/// **Errors**: what the kernel says; a panic of the kernel.
pub fn execute_compiled(
    step: &CompiledNode,
    addrs: &StepAddrs,
    memory: &mut RunMemory,
    pool: &Pool,
    guards: &Guards<'_>,
) -> Result<Completion, OpError> {
    memory.launch(&step.call, addrs, pool, guards)
}

impl<'a> Engine<'a> {
    pub(crate) fn plan_ctx(&self) -> PlanCtx<'a> {
        PlanCtx {
            table: self.table,
            backend: self.device.backend(),
            consts: self.consts,
            threads: self.pool.threads(),
            max_awaited_elems: MAX_AWAITED_ELEMS,
        }
    }

    /// Runs a plan whose inputs lie in their places; returns its last segment.
    pub(crate) fn run_plan(&self, plan: &Plan, state: &mut PersistentOutputs) -> Result<Arc<Segment>, RunError> {
        let mut parent: Option<Arc<Segment>> = None;
        let mut known = plan.root().cloned();
        while let Some(segment) = known {
            self.replay(&segment, state)?;
            self.settle(state)?;
            match &segment.end {
                SegmentEnd::Done(_) => return Ok(segment),
                SegmentEnd::Await(watch) => self.read_key(watch, &segment, state)?,
            }
            known = segment.child(&state.key);
            parent = Some(segment);
        }
        self.stream(plan, parent, state)
    }

    fn replay(&self, segment: &Segment, state: &mut PersistentOutputs) -> Result<(), RunError> {
        let mut list = match state.captured.take(segment.index) {
            Some(list) => list,
            None => {
                segment.steps.iter().for_each(|step| state.record(step));
                ReplayList::new(u64::MAX)
            }
        };
        list.refresh(segment, &mut state.memory, self.guards)?;
        for (i, step) in segment.steps.iter().enumerate() {
            self.run_step(step, i, &mut list, state)?;
        }
        state.captured.keep(segment.index, list);
        Ok(())
    }

    /// Runs step `i` of a list whose addresses are resolved.
    fn run_step(
        &self,
        step: &CompiledNode,
        i: usize,
        list: &mut ReplayList,
        state: &mut PersistentOutputs,
    ) -> Result<(), RunError> {
        self.options.check(step, i)?;
        let fail = |error| RunError::node(step, error);
        if self.options.events.is_some() {
            let running = Event::Running { node: &step.name, op: step.call.op.info().name };
            self.options.tell(&running).map_err(fail)?;
        }
        match (&step.kind, list.steps.get(i)) {
            (StepKind::Kernel, Some(Some(addrs))) => {
                match execute_compiled(step, addrs, &mut state.memory, self.pool, self.guards).map_err(fail)? {
                    Completion::Ready => {}
                    Completion::Pending(event) => state.pending = Some(event),
                }
            }
            (StepKind::Loop(looped), _) => {
                self.settle(state)?;
                let loop_state = list.looped.get_or_insert_default();
                self.run_loop(step, looped, loop_state, &mut state.memory)?;
            }
            _ => return Err(RunError::Persistent(format!("node {:?} has no recorded outputs", step.name))),
        }
        if self.options.events.is_some() {
            let (op, progress) = (step.call.op.info().name, step.progress);
            let ran = Event::Ran { node: &step.name, op, progress };
            self.options.tell(&ran).map_err(fail)?;
        }
        Ok(())
    }

    /// Waits for what launches left pending.
    pub(crate) fn settle(&self, state: &mut PersistentOutputs) -> Result<(), RunError> {
        match state.pending.take() {
            None => Ok(()),
            Some(event) => self.device.wait(event).map_err(|error| RunError::Pool(error.message().to_owned())),
        }
    }

    /// Reads what the next segment depends on.
    fn read_key(&self, watch: &[Watch], segment: &Segment, state: &mut PersistentOutputs) -> Result<(), RunError> {
        let Some(last) = segment.steps.last() else {
            return self.read_values(watch, None, state);
        };
        let looped = match &last.kind {
            StepKind::Loop(_) => state.captured.take(segment.index),
            StepKind::Kernel => None,
        };
        let result = self.read_values(watch, Some((last, looped.as_ref())), state);
        if let Some(list) = looped {
            state.captured.keep(segment.index, list);
        }
        result
    }

    fn read_values(
        &self,
        watch: &[Watch],
        last: Option<(&Arc<CompiledNode>, Option<&ReplayList>)>,
        state: &mut PersistentOutputs,
    ) -> Result<(), RunError> {
        state.key.clear();
        for watched in watch {
            match watched {
                Watch::Dims { output } => {
                    let found = last.and_then(|(step, list)| match &step.kind {
                        StepKind::Kernel => {
                            let dims = state.memory.found_dims().get(*output)?;
                            Some((step.call.outputs.get(*output)?.dtype, dims))
                        }
                        StepKind::Loop(_) => {
                            let spec = list?.looped.as_ref()?.outputs.get(*output)?;
                            Some((spec.dtype, &spec.dims))
                        }
                    });
                    let (dtype, dims) =
                        found.ok_or_else(|| RunError::Persistent("a step found no shapes".to_owned()))?;
                    push_spec(&mut state.key, dtype, dims);
                }
                Watch::Value { spec, loc } => {
                    let width = spec.dtype.bits() / 8;
                    state.bytes.clear();
                    state.bytes.resize(spec.n_bytes(), 0);
                    let read = state.memory.read(loc, &mut state.bytes, self.guards);
                    read.map_err(|error| RunError::Persistent(error.message().to_owned()))?;
                    for element in state.bytes.chunks_exact(width.max(1)) {
                        let mut bits = [0u8; 8];
                        bits[..element.len()].copy_from_slice(element);
                        state.key.push(i64::from_le_bytes(bits));
                    }
                }
            }
        }
        Ok(())
    }

    /// Compiles and runs from where the known segments end.
    fn stream(
        &self,
        plan: &Plan,
        parent: Option<Arc<Segment>>,
        state: &mut PersistentOutputs,
    ) -> Result<Arc<Segment>, RunError> {
        let resume = match &parent {
            None => Some(plan.start.clone()),
            Some(parent) => parent.resume(),
        };
        let resume = resume.ok_or_else(|| RunError::Persistent("a segment that cannot go on".to_owned()))?;
        let mut compiler = Compiler::new(resume);
        if parent.is_some() {
            compiler.resume(&state.key)?;
        }
        state.streamed = true;
        let is_fresh = state.memory.has_only(&plan.chunks);
        let mut consumer = Consumer::new(plan, parent, state);
        let hand_over_after = match self.options.pipeline {
            crate::Pipeline::Auto if self.gains_from_pipeline => INLINE_AT_FIRST,
            crate::Pipeline::Auto | crate::Pipeline::Inline => Duration::MAX,
            crate::Pipeline::On => Duration::ZERO,
        };
        let mut source = InlineSource { compiler, ctx: self.plan_ctx(), options: self.options };
        let begin = Instant::now();
        let mut seat = None;
        let mut hands_over = || {
            let hands_over = hand_over_after != Duration::MAX && begin.elapsed() >= hand_over_after;
            if hands_over {
                seat = self.pool.reserve_worker();
            }
            seat.is_some()
        };
        if let Some(last) = self.consume(&mut consumer, state, &mut source, &mut hands_over)? {
            return Ok(last);
        }
        let InlineSource { compiler, .. } = source;
        // Memory that a path beside this one left is used again; where there is none, it is made ahead.
        let maker = is_fresh.then(|| state.memory.maker());
        let seat = seat.ok_or_else(|| RunError::Pool("a run was handed over to nobody".to_owned()))?;
        let last = run_pipelined(self, seat, compiler, maker, |source| {
            self.consume(&mut consumer, state, source, &mut || false)
        })?;
        last.ok_or_else(|| RunError::Persistent("a run that was handed over ended before its plan".to_owned()))
    }

    /// Runs what the compiler emits, keeps it as segments, and publishes each when all its steps have run. Gives the last
    /// segment, or nothing where `pauses` asked for a pause between two items.
    fn consume(
        &self,
        consumer: &mut Consumer<'_>,
        state: &mut PersistentOutputs,
        source: &mut dyn Source,
        pauses: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Arc<Segment>>, RunError> {
        loop {
            if pauses() {
                return Ok(None);
            }
            match source.next()? {
                Item::Step(step, made) => {
                    made.into_iter().for_each(|(i, chunk)| state.memory.adopt_chunk(i, chunk));
                    consumer.list.push(&step, &mut state.memory, self.guards)?;
                    state.record(&step);
                    self.run_step(&step, consumer.steps.len(), &mut consumer.list, state)?;
                    consumer.steps.push(step);
                }
                Item::End(end, resume) => {
                    self.settle(state)?;
                    let segment = consumer.end_segment(end, resume, state)?;
                    match &segment.end {
                        SegmentEnd::Done(_) => return Ok(Some(segment)),
                        SegmentEnd::Await(watch) => self.read_key(watch, &segment, state)?,
                    }
                    consumer.key = state.key.clone();
                    source.answer(&state.key)?;
                    consumer.list = ReplayList::new(state.memory.epoch());
                    consumer.parent = Some(segment);
                }
            }
        }
    }
}

/// How long a run that may gain from a second thread compiles on its own: one that has ended by then would have lost more by
/// waking the thread than it could gain.
const INLINE_AT_FIRST: Duration = Duration::from_micros(500);

/// What a run has consumed of the segment at hand.
struct Consumer<'a> {
    plan: &'a Plan,
    parent: Option<Arc<Segment>>,
    key: SegmentKey,
    publish: bool,
    steps: Vec<Arc<CompiledNode>>,
    list: ReplayList,
}

impl<'a> Consumer<'a> {
    fn new(plan: &'a Plan, parent: Option<Arc<Segment>>, state: &PersistentOutputs) -> Consumer<'a> {
        let list = ReplayList::new(state.memory.epoch());
        Consumer { plan, parent, key: state.key.clone(), publish: true, steps: vec![], list }
    }

    /// Makes a segment of what was consumed and publishes it.
    fn end_segment(
        &mut self,
        end: SegmentEnd,
        resume: Option<Snapshot>,
        state: &mut PersistentOutputs,
    ) -> Result<Arc<Segment>, RunError> {
        let mut list = std::mem::replace(&mut self.list, ReplayList::new(state.memory.epoch()));
        list.epoch = if list.looped.is_some() { u64::MAX } else { list.epoch };
        let index = self.plan.counters.new_segment();
        let segment = Arc::new(Segment::new(index, std::mem::take(&mut self.steps), end, resume));
        CapturedRun::validate(&segment).map_err(RunError::Persistent)?;
        state.captured.keep(index, list);
        self.publish = self.publish
            && match &self.parent {
                None => self.plan.publish_root(segment.clone()),
                Some(parent) => parent.publish(std::mem::take(&mut self.key), segment.clone()),
            };
        Ok(segment)
    }
}

/// Compiles the next item, telling events; a panic becomes an error.
pub(crate) fn compile_next(
    compiler: &mut Compiler,
    ctx: &PlanCtx<'_>,
    ahead: Ahead<'_>,
    options: &RunOptions<'_>,
) -> Result<Item, RunError> {
    options.check_compiling(|| compiler.upcoming().map(|(node, _)| node.to_string()))?;
    let upcoming = options.events.and_then(|_| compiler.upcoming());
    let fail = |error: OpError| {
        let (node, op) = upcoming.as_ref().map_or(("", ""), |(node, op)| (&**node, *op));
        let node = firstlight_plan::NodeError { node: node.to_owned(), op, inputs: vec![], source: error };
        RunError::Plan(firstlight_plan::PlanError::Node(Box::new(node)))
    };
    if let Some((node, op)) = &upcoming {
        options.tell(&Event::Compiling { node, op, progress: compiler.progress() }).map_err(fail)?;
    }
    let emitted = match catch_unwind(AssertUnwindSafe(|| compiler.next(ctx))) {
        Ok(emitted) => emitted?,
        Err(payload) => {
            let (node, op) = compiler.upcoming().unwrap_or_default();
            let source = OpError::new(firstlight_graph::OpErrorKind::Panic, panic_message(&*payload));
            let node = firstlight_plan::NodeError { node: node.to_string(), op, inputs: vec![], source };
            return Err(RunError::Plan(firstlight_plan::PlanError::Node(Box::new(node))));
        }
    };
    match emitted {
        firstlight_plan::Emit::Node(step) => {
            let made = ahead.get_ready(&step);
            if options.events.is_some() {
                let op = step.call.op.info().name;
                options.tell(&Event::Compiled { node: &step.name, op, source: step.source }).map_err(fail)?;
            }
            Ok(Item::Step(step, made))
        }
        firstlight_plan::Emit::Await(watch) => {
            options.tell(&Event::Awaiting).map_err(fail)?;
            let resume: Snapshot = compiler.snapshot();
            Ok(Item::End(SegmentEnd::Await(watch), Some(resume)))
        }
        firstlight_plan::Emit::Done(outputs) => Ok(Item::End(SegmentEnd::Done(outputs), None)),
    }
}
