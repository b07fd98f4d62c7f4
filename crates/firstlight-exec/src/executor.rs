//! `PipelinedExecutor`: the door to running.

use crate::cache::{Realized, StorageCache};
use crate::control::RunOptions;
use crate::engine::{Engine, compile_next};
use crate::error::RunError;
use crate::pipeline::Ahead;
use crate::pipeline::Item;
use crate::prepared::{PlanEntry, PrepareOptions, Prepared};
use crate::state::PersistentOutputs;
use firstlight_backend::{
    BackendStorage, Budget, Device, Guards, HostBuf, HostStorage, KernelBindingTable, OperandSpec, Pool, Storage,
};
use firstlight_graph::{Graph, GraphId, Op, OpError, ValueId};
use firstlight_plan::{Adopted, Compiler, Fed, Plan, PlanOutput, Segment, SegmentEnd};
use firstlight_tensor::{DType, Layout, Shape};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// What an executor is made of.
#[derive(Clone, Debug)]
pub struct ExecutorConfig {
    /// The threads that run tiles and compile.
    pub pool: Arc<Pool>,
    /// The kernels to choose from.
    pub table: Arc<KernelBindingTable>,
    /// Where values live and kernels run.
    pub device: Arc<dyn Device>,
    /// What all runs together may own.
    pub budget: Arc<Budget>,
}

/// Compiles and runs graphs as one pipeline, and replays what it kept.
#[derive(Debug)]
pub struct PipelinedExecutor {
    config: ExecutorConfig,
    prepared: Mutex<Vec<(PreparedKey, Arc<Prepared>)>>,
}

type PreparedKey = (GraphId, Vec<ValueId>, PrepareOptions);

/// Graphs that `realize` keeps ready; beyond, the one not used for longest goes.
const MAX_PREPARED: usize = 64;

/// An input of a run: host bytes of a dense tensor.
#[derive(Clone, Copy, Debug)]
pub struct Feed<'a> {
    /// Element type of the bytes.
    pub dtype: DType,
    /// Shape of the tensor.
    pub dims: &'a [usize],
    /// The elements in row-major order without gaps.
    pub bytes: &'a [u8],
}

/// Takes the targets after the last step.
pub trait Outputs {
    /// Takes target `index`. `copy` fills a buffer of exactly the value's bytes; it may be called once or not at all.
    ///
    /// **Errors**: a buffer that cannot take the value ends the run.
    fn output(
        &mut self,
        index: usize,
        dtype: DType,
        dims: &[usize],
        copy: &mut dyn FnMut(&mut [u8]) -> Result<(), OpError>,
    ) -> Result<(), OpError>;
}

/// Everything that a realize is told.
#[derive(Debug)]
pub struct RealizeRequest<'a> {
    /// The graph as imported or built; what passes make of it is kept for later realizes.
    pub graph: &'a Arc<Graph>,
    /// The values to compute, in the order they are given back.
    pub targets: &'a [ValueId],
    /// Values of graph inputs, and of constants to be replaced: a constant adopts the fed storage.
    pub inputs: &'a StorageCache,
    /// Passes and constants: what is decided once a graph.
    pub prepare: PrepareOptions,
    /// Cancel, deadline and events of this realize.
    pub options: RunOptions<'a>,
    /// Buffers of the caller's own, instead of the executor's: recorded by the first realize they are given to, reused
    /// by later ones of the same plan class. Undefined after a failure.
    pub persistent: Option<&'a mut PersistentOutputs>,
}

impl PipelinedExecutor {
    /// An executor that has prepared nothing yet.
    pub fn new(config: ExecutorConfig) -> PipelinedExecutor {
        PipelinedExecutor { config, prepared: Mutex::new(vec![]) }
    }

    /// What the executor is made of.
    pub fn config(&self) -> &ExecutorConfig {
        &self.config
    }

    /// Realizes targets of a graph: the short form of [`PipelinedExecutor::realize_with`].
    ///
    /// **Errors**: inputs that are missing or do not fit; a node that cannot be compiled or fails.
    pub fn realize(
        &self,
        graph: &Arc<Graph>,
        targets: &[ValueId],
        inputs: &StorageCache,
    ) -> Result<StorageCache, RunError> {
        self.realize_with(RealizeRequest {
            graph,
            targets,
            inputs,
            prepare: PrepareOptions::default(),
            options: RunOptions::default(),
            persistent: None,
        })
    }

    /// Realizes targets of a graph and gives them back by id.
    ///
    /// **Errors**: as [`PipelinedExecutor::realize`]; cancel, deadline, an event sink's refusal; persistent outputs of
    /// another plan class.
    pub fn realize_with(&self, request: RealizeRequest<'_>) -> Result<StorageCache, RunError> {
        let RealizeRequest { graph, targets, inputs, prepare, options, persistent } = request;
        let is_const = |value: ValueId| {
            graph.nodes().get(value.node.0 as usize).is_some_and(|node| matches!(node.op, Op::Const(_)))
        };
        // Passes compute with constants; one that is fed is none.
        let adopts = inputs.iter().any(|(value, _)| is_const(value));
        let prepared =
            self.prepare_cached(graph, targets, PrepareOptions { passes: prepare.passes && !adopts, ..prepare })?;
        let program = prepared.program();
        let mut adopted = Adopted::new();
        for (value, realized) in inputs.iter() {
            if is_const(value) {
                adopted.insert(program.index(value), (realized.spec.clone(), realized.storage.clone()));
            }
        }
        let guards = Guards::take(inputs.iter().map(|(_, realized)| &realized.storage));
        let guards = guards.map_err(|error| RunError::Persistent(error.message().to_owned()))?;
        let mut copies: Vec<Option<(OperandSpec, Vec<u8>)>> = vec![];
        for input in graph.inputs() {
            let realized = inputs.get(input.value);
            let bytes = realized.map(|realized| -> Result<_, RunError> {
                let fail =
                    |error: OpError| RunError::Input { name: input.name.clone(), message: error.message().to_owned() };
                let mut bytes = vec![0; realized.spec.n_bytes()];
                let storage = guards.get(&realized.storage);
                let storage = storage.ok_or_else(|| RunError::Persistent("an input without its guard".to_owned()))?;
                if storage.backend().is_host() {
                    let held = storage.host_bytes().map_err(fail)?;
                    let held = held.get(..bytes.len()).ok_or_else(|| RunError::Input {
                        name: input.name.clone(),
                        message: format!(
                            "{} takes {} bytes, the storage has {}",
                            realized.spec,
                            bytes.len(),
                            held.len()
                        ),
                    })?;
                    bytes.copy_from_slice(held);
                } else {
                    self.config.device.download(storage.backend(), 0, &mut bytes).map_err(fail)?;
                }
                Ok((realized.spec.clone(), bytes))
            });
            copies.push(bytes.transpose()?);
        }
        let feeds: Vec<Option<Feed<'_>>> = copies
            .iter()
            .map(|copy| copy.as_ref().map(|(spec, bytes)| Feed { dtype: spec.dtype, dims: &spec.dims, bytes }))
            .collect();
        let mut collected = Collected { targets, cache: StorageCache::new(), budget: &self.config.budget };
        self.run_inner(&prepared, &feeds, &options, &adopted, &guards, persistent, &mut collected)?;
        for &target in targets {
            // A constant that was fed is its own result.
            if let Some(fed) = inputs.get(target).filter(|_| is_const(target)) {
                collected.cache.insert(target, fed.clone());
            }
        }
        Ok(collected.cache)
    }

    /// Makes a graph ready for its targets, once for all runs.
    ///
    /// **Errors**: a target that is not the graph's.
    pub fn prepare(
        &self,
        graph: Arc<Graph>,
        targets: &[ValueId],
        options: PrepareOptions,
    ) -> Result<Arc<Prepared>, RunError> {
        self.prepare_with(graph, targets, options, &RunOptions::default())
    }

    /// [`PipelinedExecutor::prepare`], with a cancel token and a deadline.
    ///
    /// **Errors**: as there; cancelled, deadline passed.
    pub fn prepare_with(
        &self,
        graph: Arc<Graph>,
        targets: &[ValueId],
        options: PrepareOptions,
        control: &RunOptions<'_>,
    ) -> Result<Arc<Prepared>, RunError> {
        Ok(Arc::new(Prepared::new(graph, targets, options, &self.config, control)?))
    }

    fn prepare_cached(
        &self,
        graph: &Arc<Graph>,
        targets: &[ValueId],
        options: PrepareOptions,
    ) -> Result<Arc<Prepared>, RunError> {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |key: &PreparedKey| key.0 == graph.id() && key.1 == targets && key.2 == options;
        if let Some(at) = prepared.iter().rposition(|(key, _)| fits(key)) {
            prepared[at..].rotate_left(1);
            return Ok(prepared[prepared.len() - 1].1.clone());
        }
        let made = self.prepare(graph.clone(), targets, options)?;
        if prepared.len() >= MAX_PREPARED {
            prepared.remove(0);
        }
        prepared.push(((graph.id(), targets.to_vec(), options), made.clone()));
        Ok(made)
    }

    /// Runs a prepared graph. `feeds` are in the order of the graph's inputs; `None` takes the input's default.
    ///
    /// **Errors**: as [`PipelinedExecutor::realize_with`].
    pub fn run(
        &self,
        prepared: &Prepared,
        feeds: &[Option<Feed<'_>>],
        options: &RunOptions<'_>,
        outputs: &mut dyn Outputs,
    ) -> Result<(), RunError> {
        self.run_inner(prepared, feeds, options, &Adopted::new(), &Guards::default(), None, outputs)
    }

    /// Compiles a prepared graph for inputs of given specs and runs nothing: up to the end, or to the first value that
    /// only a run can tell. `None` takes the input's default. The plan is the caller's alone.
    ///
    /// **Errors**: inputs without a spec that have no default; a node that cannot be compiled.
    pub fn compile_only(&self, prepared: &Prepared, inputs: &[Option<OperandSpec>]) -> Result<Plan, RunError> {
        let declared = prepared.program.graph().inputs();
        if declared.len() != inputs.len() {
            let message = format!("the graph has {} inputs, {} specs were given", declared.len(), inputs.len());
            return Err(RunError::Input { name: String::new(), message });
        }
        let fed = declared.iter().zip(inputs).map(|(input, spec)| match (spec, &input.default) {
            (Some(spec), _) => Ok(Fed::Runtime(spec.clone())),
            (None, Some(default)) => Ok(Fed::Known(default.clone())),
            (None, None) => Err(missing(&input.name)),
        });
        let fed: Vec<Fed> = fed.collect::<Result<_, RunError>>()?;
        let plan = prepared.new_plan(&fed, Adopted::new(), &self.config, &RunOptions::default())?;
        let ExecutorConfig { pool, table, device, budget } = &self.config;
        let (options, guards) = (RunOptions::default(), Guards::default());
        let engine = Engine {
            pool,
            table,
            device,
            budget,
            consts: &prepared.consts,
            options: &options,
            guards: &guards,
            gains_from_pipeline: false,
        };
        let mut compiler = Compiler::new(plan.start.clone());
        let mut steps = vec![];
        loop {
            match compile_next(&mut compiler, &engine.plan_ctx(), Ahead::Nothing, &options)? {
                Item::Step(step, _) => steps.push(step),
                Item::End(end, resume) => {
                    let segment = Segment::new(plan.counters.new_segment(), steps, end, resume);
                    plan.publish_root(Arc::new(segment));
                    return Ok(plan);
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the one place where everything of a run comes together")]
    fn run_inner(
        &self,
        prepared: &Prepared,
        feeds: &[Option<Feed<'_>>],
        options: &RunOptions<'_>,
        adopted: &Adopted,
        guards: &Guards<'_>,
        persistent: Option<&mut PersistentOutputs>,
        outputs: &mut dyn Outputs,
    ) -> Result<(), RunError> {
        check_feeds(prepared, feeds)?;
        let ExecutorConfig { pool, table, device, budget } = &self.config;
        let engine = Engine {
            pool,
            table,
            device,
            budget,
            consts: &prepared.consts,
            options,
            guards,
            gains_from_pipeline: prepared.gains_from_pipeline,
        };
        let entry = prepared.plan(
            |plan| plan_fits(plan, feeds, adopted),
            || {
                let inputs = prepared.program.graph().inputs().iter().zip(feeds);
                let fed = inputs.map(|(input, feed)| match (feed, &input.default) {
                    (Some(feed), _) => Ok(Fed::Runtime(OperandSpec { dtype: feed.dtype, dims: feed.dims.into() })),
                    (None, Some(default)) => Ok(Fed::Known(default.clone())),
                    (None, None) => Err(missing(&input.name)),
                });
                let fed: Vec<Fed> = fed.collect::<Result<_, RunError>>()?;
                prepared.new_plan(&fed, adopted.clone(), &self.config, options)
            },
        )?;
        let _running = pool.run_guard();
        if let Some(own) = persistent {
            if own.plan != 0 && own.plan != entry.plan.id() {
                return Err(RunError::Persistent("they were recorded for another plan class".to_owned()));
            }
            own.plan = entry.plan.id();
            return run_once(&engine, &entry, own, feeds, outputs);
        }
        let mut flight = prepared.flights.start(options)?;
        loop {
            let mut state = prepared.check_out(&entry, device, budget);
            match run_once(&engine, &entry, &mut state, feeds, outputs) {
                Ok(()) => {
                    prepared.note_readiness(&entry);
                    prepared.check_in(&entry, state);
                    return Ok(());
                }
                // At the memory limit a run takes its turn after the others; one that had all memory has its answer.
                Err(error) if error.is_over_budget() && !flight.alone => {
                    drop(state);
                    drop(flight);
                    flight = prepared.flights.start_alone(options)?;
                    prepared.trim(0);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn run_once(
    engine: &Engine<'_>,
    entry: &PlanEntry,
    state: &mut PersistentOutputs,
    feeds: &[Option<Feed<'_>>],
    outputs: &mut dyn Outputs,
) -> Result<(), RunError> {
    let fail = |error: OpError| {
        RunError::Node(Box::new(firstlight_plan::NodeError {
            node: String::new(),
            op: "Input",
            inputs: vec![],
            source: error,
        }))
    };
    for &(chunk, n_bytes) in &entry.plan.chunks {
        state.memory.ensure_chunk(chunk, n_bytes).map_err(fail)?;
    }
    for (loc, feed) in entry.plan.inputs.iter().zip(feeds) {
        if let (Some(loc), Some(feed)) = (loc, feed) {
            state.memory.write(loc, feed.bytes).map_err(fail)?;
        }
    }
    state.streamed = false;
    let last = engine.run_plan(&entry.plan, state)?;
    engine.settle(state)?;
    if let Some(event) = entry.ran(state.streamed) {
        engine.options.tell(&event).map_err(fail)?;
    }
    let SegmentEnd::Done(results) = &last.end else {
        return Err(RunError::Persistent("the plan ended without its outputs".to_owned()));
    };
    for (index, PlanOutput { spec, loc }) in results.iter().enumerate() {
        let mut copy = |to: &mut [u8]| state.memory.read(loc, to, engine.guards);
        outputs.output(index, spec.dtype, &spec.dims, &mut copy).map_err(|error| match error.kind() {
            firstlight_graph::OpErrorKind::Memory => fail(error),
            _ => RunError::Output { index, message: error.message().to_owned() },
        })?;
    }
    Ok(())
}

fn missing(name: &str) -> RunError {
    RunError::Input { name: name.to_owned(), message: "is not fed and has no default".to_owned() }
}

fn check_feeds(prepared: &Prepared, feeds: &[Option<Feed<'_>>]) -> Result<(), RunError> {
    let inputs = prepared.program.graph().inputs();
    if inputs.len() != feeds.len() {
        let message = format!("the graph has {} inputs, {} were fed", inputs.len(), feeds.len());
        return Err(RunError::Input { name: String::new(), message });
    }
    for (input, feed) in inputs.iter().zip(feeds) {
        let fail = |message| Err(RunError::Input { name: input.name.clone(), message });
        let Some(feed) = feed else {
            if input.default.is_none() {
                return Err(missing(&input.name));
            }
            continue;
        };
        let declared = &input.spec;
        let fits = feed.dtype == declared.dtype
            && declared.dims.as_ref().is_none_or(|dims| {
                dims.len() == feed.dims.len()
                    && dims.iter().zip(feed.dims).all(|(dim, &size)| dim.known().is_none_or(|known| known == size))
            });
        if !fits {
            return fail(format!("expected {declared}, got {}{}", feed.dtype, Shape::from(feed.dims)));
        }
        let size = Shape::from(feed.dims).n_elems().and_then(|n| feed.dtype.size_bytes(n));
        if size != Some(feed.bytes.len()) {
            return fail(format!("{}{} does not take {} bytes", feed.dtype, Shape::from(feed.dims), feed.bytes.len()));
        }
    }
    Ok(())
}

fn plan_fits(plan: &Plan, feeds: &[Option<Feed<'_>>], adopted: &Adopted) -> bool {
    let same = |held: &Option<OperandSpec>, feed: &Option<Feed<'_>>| match (held, feed) {
        (Some(held), Some(feed)) => held.dtype == feed.dtype && held.dims[..] == *feed.dims,
        (None, None) => true,
        _ => false,
    };
    let same_storage = |(index, held): &(u32, usize)| {
        adopted.get(index).is_some_and(|(_, storage)| Arc::as_ptr(storage) as usize == *held)
    };
    plan.key.inputs.len() == feeds.len()
        && plan.key.inputs.iter().zip(feeds).all(|(held, feed)| same(held, feed))
        && plan.key.adopted.len() == adopted.len()
        && plan.key.adopted.iter().all(same_storage)
}

/// Collects targets as storages of their own.
struct Collected<'a> {
    targets: &'a [ValueId],
    cache: StorageCache,
    budget: &'a Arc<Budget>,
}

impl Outputs for Collected<'_> {
    fn output(
        &mut self,
        index: usize,
        dtype: DType,
        dims: &[usize],
        copy: &mut dyn FnMut(&mut [u8]) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let spec = OperandSpec { dtype, dims: dims.into() };
        // Held while the copy is made; what the caller keeps is the caller's.
        let reserved = self.budget.reserve(spec.n_bytes());
        let _reserved = reserved.map_err(|e| OpError::new(firstlight_graph::OpErrorKind::Memory, e.to_string()))?;
        let mut buf = HostBuf::zeroed(spec.n_bytes())?;
        copy(buf.as_mut_slice())?;
        let storage = Storage::new(dtype, BackendStorage::Host(HostStorage::Buf(buf)));
        let realized = Realized { layout: Layout::dense(&spec.dims), spec, storage: Arc::new(RwLock::new(storage)) };
        self.cache.insert(self.targets[index], realized);
        Ok(())
    }
}
