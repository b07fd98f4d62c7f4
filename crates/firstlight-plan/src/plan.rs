//! Plans: trees of segments.

use crate::compile::CompiledNode;
use crate::compiler::Snapshot;
use crate::passes::Rewrite;
use crate::program::Program;
use firstlight_backend::{Loc, OperandSpec, Reservation};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// What everything of a plan is numbered by; shared by all branches of its tree.
#[derive(Debug, Default)]
pub struct PlanCounters {
    /// Number of the chunk for each place in the order of chunks on a path, and size.
    chunks: Mutex<HashMap<(usize, usize), u32>>,
    grown: AtomicU32,
    segments: AtomicU32,
    nodes: AtomicUsize,
}

impl PlanCounters {
    /// A number for the chunk that is the `place`-th on its path through the tree. Paths that part share the chunks of
    /// equal place and size: only one of them is run at a time in one memory.
    pub(crate) fn chunk(&self, place: usize, n_bytes: usize) -> u32 {
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        let next = chunks.len() as u32;
        *chunks.entry((place, n_bytes)).or_insert(next)
    }

    pub(crate) fn new_grown(&self) -> u32 {
        self.grown.fetch_add(1, Ordering::Relaxed)
    }

    /// A number for a new segment.
    pub fn new_segment(&self) -> u32 {
        self.segments.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn count_node(&self) {
        self.nodes.fetch_add(1, Ordering::Relaxed);
    }

    /// True when the tree has become so large that a new plan should take its place: values that differ in every run
    /// must not fill memory.
    pub fn is_worn(&self) -> bool {
        self.segments.load(Ordering::Relaxed) > MAX_SEGMENTS
    }

    /// Nodes compiled so far.
    pub fn n_compiled(&self) -> usize {
        self.nodes.load(Ordering::Relaxed)
    }
}

/// What a plan is valid for: specs of the inputs, in order, and the storages adopted for constants.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PlanKey {
    /// `None`: fixed for the plan.
    pub inputs: Vec<Option<OperandSpec>>,
    /// Address of each adopted storage with the value it stands for; the plan holds the storage, so an address is not
    /// used again while the plan lives.
    pub adopted: Vec<(u32, usize)>,
}

/// The tree of one plan class.
#[derive(Debug)]
pub struct Plan {
    id: u64,
    /// What it is valid for.
    pub key: PlanKey,
    /// What is compiled: the graph as passes made it for the class.
    pub program: Arc<Program>,
    /// What the passes of the class rewrote, in order.
    pub rewrites: Vec<Rewrite>,
    /// The budget's share of constants that they computed.
    pub held: Vec<Reservation>,
    /// Where each input is copied to before the first step; `None` for an input that nothing reads.
    pub inputs: Vec<Option<Loc>>,
    /// Chunks that the inputs take.
    pub chunks: Vec<(u32, usize)>,
    /// Counts of what was compiled, shared with whoever reports them.
    pub counters: Arc<PlanCounters>,
    /// Where compiling starts.
    pub start: Snapshot,
    root: OnceLock<Arc<Segment>>,
}

/// The dims, values and conditions that ended a segment, flat.
pub type SegmentKey = SmallVec<[i64; 16]>;

/// Steps whose shapes are known before the first of them runs, and what comes after.
#[derive(Debug)]
pub struct Segment {
    /// Number of the segment in its plan.
    pub index: u32,
    /// The steps, in the order in which they run.
    pub steps: Vec<Arc<CompiledNode>>,
    /// What comes after the last step.
    pub end: SegmentEnd,
    children: RwLock<Vec<(SegmentKey, Arc<Segment>)>>,
    /// Where compiling goes on when the key is a new one.
    resume: Mutex<Option<Snapshot>>,
}

/// What ends a segment.
#[derive(Debug)]
pub enum SegmentEnd {
    /// The plan is done; where each target lies.
    Done(Vec<PlanOutput>),
    /// The next segment depends on these.
    Await(Vec<Watch>),
}

/// Something that the next segment depends on.
#[derive(Clone, Debug)]
pub enum Watch {
    /// Final spec of the last step's output of that number.
    Dims {
        /// Index among the step's outputs.
        output: usize,
    },
    /// The elements of a small value.
    Value {
        /// Element type and shape of the value.
        spec: OperandSpec,
        /// Where the step before left it.
        loc: Loc,
    },
}

/// Where a target's value lies after the last step.
#[derive(Clone, Debug)]
pub struct PlanOutput {
    /// Element type and shape of the value.
    pub spec: OperandSpec,
    /// Where it is copied out from.
    pub loc: Loc,
}

/// Segments of a plan beyond which it is replaced.
const MAX_SEGMENTS: u32 = 4096;

/// Children of a segment beyond which the oldest goes: a value that differs in every run must not fill memory.
const MAX_CHILDREN: usize = 256;

impl Plan {
    /// A plan of which nothing is compiled yet.
    pub fn new(
        key: PlanKey,
        program: Arc<Program>,
        inputs: Vec<Option<Loc>>,
        chunks: Vec<(u32, usize)>,
        counters: Arc<PlanCounters>,
        start: Snapshot,
    ) -> Plan {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = OnceLock::new();
        Plan { id, key, program, rewrites: vec![], held: vec![], inputs, chunks, counters, start, root }
    }

    /// Never used twice in a process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The first segment, once it is published.
    pub fn root(&self) -> Option<&Arc<Segment>> {
        self.root.get()
    }

    /// Publishes the first segment; false when another run was quicker.
    pub fn publish_root(&self, segment: Arc<Segment>) -> bool {
        self.root.set(segment).is_ok()
    }
}

impl Segment {
    /// A segment without children.
    pub fn new(index: u32, steps: Vec<Arc<CompiledNode>>, end: SegmentEnd, resume: Option<Snapshot>) -> Segment {
        Segment { index, steps, end, children: RwLock::new(vec![]), resume: Mutex::new(resume) }
    }

    /// The child of a key, last published first.
    pub fn child(&self, key: &[i64]) -> Option<Arc<Segment>> {
        let children = self.children.read().unwrap_or_else(PoisonError::into_inner);
        children.iter().rev().find(|(held, _)| held[..] == *key).map(|(_, segment)| segment.clone())
    }

    /// The children with their keys, first published first.
    pub fn children(&self) -> Vec<(SegmentKey, Arc<Segment>)> {
        self.children.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Publishes a child; false when another run was quicker.
    pub fn publish(&self, key: SegmentKey, segment: Arc<Segment>) -> bool {
        let mut children = self.children.write().unwrap_or_else(PoisonError::into_inner);
        if children.iter().any(|(held, _)| *held == key) {
            return false;
        }
        if children.len() >= MAX_CHILDREN {
            children.remove(0);
        }
        children.push((key, segment));
        true
    }

    /// Where compiling goes on when the key is a new one.
    pub fn resume(&self) -> Option<Snapshot> {
        self.resume.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "segment {}", self.index)?;
        for step in &self.steps {
            writeln!(f, "  {step}")?;
        }
        match &self.end {
            SegmentEnd::Done(_) => writeln!(f, "  done"),
            SegmentEnd::Await(watch) => writeln!(f, "  await {watch:?}"),
        }
    }
}
