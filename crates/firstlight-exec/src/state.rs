//! What one run at a time uses: memory, addresses, captured steps.

use crate::RunError;
use crate::loops::LoopState;
use firstlight_backend::{Budget, Device, Guards, Loc, OperandSpec, RunMemory, StepAddrs};
use firstlight_plan::{CompiledNode, Segment, SegmentKey, StepKind};
use std::sync::Arc;

/// Fixed-address output buffers of a plan's nodes, which survive from one realize to the next.
///
/// The first run through a segment records where each node's outputs are; later runs reuse them and never allocate.
/// A fixed address does not mean exclusive bytes: values with disjoint lifetimes share them, unless the plan was made
/// with `keep_all`.
#[derive(Debug)]
pub struct PersistentOutputs {
    pub(crate) memory: RunMemory,
    /// Never-reused id of the plan whose addresses these are; 0 before the first run.
    pub(crate) plan: u64,
    pub(crate) entries: Vec<(Arc<str>, usize, OperandSpec, Loc)>,
    pub(crate) captured: CapturedRun,
    /// The key being read; kept for its capacity.
    pub(crate) key: SegmentKey,
    pub(crate) bytes: Vec<u8>,
    /// The last event that a launch named and nobody waited for.
    pub(crate) pending: Option<u64>,
    /// True when the present run compiled something.
    pub(crate) streamed: bool,
}

/// A plan's steps with all addresses resolved, one list a segment: what a replay walks.
#[derive(Debug, Default)]
pub struct CapturedRun {
    lists: Vec<Option<ReplayList>>,
}

/// The steps of one segment with their addresses.
#[derive(Debug)]
pub struct ReplayList {
    pub(crate) epoch: u64,
    pub(crate) steps: Vec<Option<StepAddrs>>,
    /// State of the loop that ends the segment, where one does.
    pub(crate) looped: Option<Box<LoopState>>,
}

impl PersistentOutputs {
    /// Buffers of no plan yet: the first realize they are given to records.
    pub fn new(device: Arc<dyn Device>, budget: Arc<Budget>) -> PersistentOutputs {
        PersistentOutputs {
            memory: RunMemory::new(device, budget),
            plan: 0,
            entries: vec![],
            captured: CapturedRun::default(),
            key: SegmentKey::new(),
            bytes: vec![],
            pending: None,
            streamed: false,
        }
    }

    /// Bytes of all buffers.
    pub fn n_bytes(&self) -> usize {
        let loops = self.captured.lists.iter().flatten().filter_map(|list| list.looped.as_ref());
        self.memory.n_bytes() + loops.map(|looped| looped.n_bytes()).sum::<usize>()
    }

    /// Number of recorded outputs.
    pub fn n_outputs(&self) -> usize {
        self.entries.len()
    }

    /// The captured steps.
    pub fn captured(&self) -> &CapturedRun {
        &self.captured
    }

    /// Copies a recorded node output to the host.
    ///
    /// **Edge cases**: without `keep_all` the bytes may be a later value's by now.
    ///
    /// **Errors**: no output of that name and index is recorded.
    pub fn read(&self, node: &str, output: usize) -> Result<(OperandSpec, Vec<u8>), RunError> {
        let found = self.entries.iter().rev().find(|entry| &*entry.0 == node && entry.1 == output);
        let missing = || RunError::Persistent(format!("node {node:?} has no recorded output {output}"));
        let (_, _, spec, loc) = found.ok_or_else(missing)?;
        let mut bytes = vec![0; spec.n_bytes()];
        self.memory
            .read(loc, &mut bytes, &Guards::default())
            .map_err(|error| RunError::Persistent(error.message().to_owned()))?;
        Ok((spec.clone(), bytes))
    }

    /// Records where a step's outputs are.
    pub(crate) fn record(&mut self, step: &CompiledNode) {
        for (i, (spec, loc)) in step.call.outputs.iter().zip(&step.outputs).enumerate() {
            self.entries.push((step.name.clone(), i, spec.clone(), loc.clone()));
        }
    }
}

impl CapturedRun {
    /// Takes the list of a segment out, to be walked.
    pub(crate) fn take(&mut self, segment: u32) -> Option<ReplayList> {
        self.lists.get_mut(segment as usize)?.take()
    }

    /// Keeps the list of a segment.
    pub(crate) fn keep(&mut self, segment: u32, list: ReplayList) {
        let segment = segment as usize;
        if self.lists.len() <= segment {
            self.lists.resize_with(segment + 1, || None);
        }
        self.lists[segment] = Some(list);
    }

    /// Number of steps, over all segments.
    pub fn n_steps(&self) -> usize {
        self.lists.iter().flatten().map(|list| list.steps.len()).sum()
    }

    /// Checks that a segment's steps may be replayed; the answer names the first that may not, and why.
    ///
    /// **Errors**: a step whose kernel sets its own shapes in the middle of a segment, or more or fewer addresses than
    /// steps.
    pub fn validate(segment: &Segment) -> Result<(), String> {
        let last = segment.steps.len().saturating_sub(1);
        for (i, step) in segment.steps.iter().enumerate() {
            let ends = match step.kind {
                StepKind::Kernel => step.call.data_sized,
                StepKind::Loop(_) => true,
            };
            if ends && i != last {
                return Err(format!("step {i}, node {:?}: finds its own shapes and is not the last", step.name));
            }
            if !step.capture_safe {
                return Err(format!("step {i}, node {:?}: kernel {:?} is not capture-safe", step.name, step.source));
            }
        }
        Ok(())
    }
}

impl ReplayList {
    /// An empty list for steps to come.
    pub(crate) fn new(epoch: u64) -> ReplayList {
        ReplayList { epoch, steps: vec![], looped: None }
    }

    /// Resolves one step and appends its addresses.
    pub(crate) fn push(
        &mut self,
        step: &CompiledNode,
        memory: &mut RunMemory,
        guards: &Guards<'_>,
    ) -> Result<(), RunError> {
        let fail = |error| RunError::node(step, error);
        for &(chunk, n_bytes) in &step.chunks {
            memory.ensure_chunk(chunk, n_bytes).map_err(fail)?;
        }
        let addrs = match step.kind {
            StepKind::Loop(_) => None,
            StepKind::Kernel => {
                let scratch = step.scratch.as_ref();
                Some(memory.resolve(&step.call, &step.inputs, &step.outputs, scratch, guards).map_err(fail)?)
            }
        };
        self.steps.push(addrs);
        Ok(())
    }

    /// Resolves all steps of a segment, where they are not resolved for the memory's present addresses.
    pub(crate) fn refresh(
        &mut self,
        segment: &Segment,
        memory: &mut RunMemory,
        guards: &Guards<'_>,
    ) -> Result<(), RunError> {
        if self.epoch == memory.epoch() && self.steps.len() == segment.steps.len() {
            return Ok(());
        }
        self.steps.clear();
        for step in &segment.steps {
            self.push(step, memory, guards)?;
        }
        self.epoch = memory.epoch();
        Ok(())
    }
}
