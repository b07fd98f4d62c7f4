//! Loading: options of a session.

use crate::session::Model;
use crate::spec::{Checker, OutputSpec};
use crate::{Error, Runtime, Session};
use firstlight_backend::Budget;
use firstlight_exec::{
    CancelToken, Event, EventSink, ExecutorConfig, LoadStage, Pipeline, PipelinedExecutor, PrepareOptions, RunOptions,
};
use firstlight_graph::{Graph, Op, ValueId};
use firstlight_onnx::{Imported, Limits, LoadError, LoadOptions};
use firstlight_tensor::{Bytes, MappedFile};
use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of a [`Session`]; each method sets one and gives the builder back.
#[derive(Clone, Debug)]
#[must_use = "nothing is loaded before `load` or `load_bytes`"]
pub struct SessionBuilder {
    runtime: Option<Runtime>,
    threads: Option<usize>,
    memory_limit: Option<usize>,
    pipeline: Pipeline,
    passes: bool,
    load: LoadOptions,
    outputs: Option<Vec<String>>,
    kept: Vec<String>,
    events: Events,
}

/// Hears of loading, and of the runs of the session that name no sink of their own.
#[derive(Clone, Default)]
pub(crate) struct Events(pub(crate) Option<Arc<dyn EventSink + Send + Sync>>);

impl Events {
    /// Tells of a stage.
    ///
    /// **Errors**: the sink's refusal ends the loading.
    fn loading(&self, stage: LoadStage) -> Result<(), Error> {
        let told = self.0.as_ref().map_or(Ok(()), |sink| sink.event(&Event::Loading(stage)));
        told.map_err(|problem| Error::Load(LoadError::Model(format!("loading was ended by the event sink: {problem}"))))
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Events({})", self.0.is_some())
    }
}

/// What [`SessionBuilder::check`] found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Check {
    /// Everything that stands in the way: unsupported ops first, in one error, then the rest as it was met.
    pub problems: Vec<Error>,
    /// Nodes behind a problem that could not be looked at themselves.
    pub n_unsure: usize,
    /// The loaded model, where there is no problem.
    pub session: Option<Session>,
}

impl Default for SessionBuilder {
    fn default() -> SessionBuilder {
        SessionBuilder {
            runtime: None,
            threads: None,
            memory_limit: None,
            pipeline: Pipeline::Auto,
            passes: true,
            load: LoadOptions::default(),
            outputs: None,
            kept: vec![],
            events: Events::default(),
        }
    }
}

impl SessionBuilder {
    /// Threads and kernels to share with other sessions; [`Runtime::shared`] where none is named.
    pub fn runtime(mut self, runtime: &Runtime) -> SessionBuilder {
        self.runtime = Some(runtime.clone());
        self
    }

    /// Working threads of the session's own runtime, the calling one included; 0 is as many as the process may use.
    ///
    /// **Edge cases**: contradicts [`SessionBuilder::runtime`], which has its threads; loading says so.
    pub fn threads(mut self, threads: usize) -> SessionBuilder {
        self.threads = Some(threads);
        self
    }

    /// The most memory that the session may own: arenas, scratch, copies of weights, outputs in the making. What would
    /// go beyond is refused with a figure.
    ///
    /// **Units**: bytes. Mapped weights are not counted, nor what the caller keeps.
    /// **Edge cases**: a runtime that has a limit of its own refuses a second one when the model is loaded.
    pub fn memory_limit(mut self, bytes: usize) -> SessionBuilder {
        self.memory_limit = Some(bytes);
        self
    }

    /// Whether first runs compile on another thread than they execute on.
    pub fn pipeline(mut self, pipeline: Pipeline) -> SessionBuilder {
        self.pipeline = pipeline;
        self
    }

    /// False runs the graph as it is written, without fusing or folding; the results are the same bits.
    pub fn passes(mut self, passes: bool) -> SessionBuilder {
        self.passes = passes;
        self
    }

    /// False reads files whole instead of mapping them: for files that others can write while the session lives.
    pub fn map(mut self, map: bool) -> SessionBuilder {
        self.load.map = map;
        self
    }

    /// Bounds on what a model may ask for while it is loaded; the defaults let every ordinary model pass.
    pub fn limits(mut self, limits: Limits) -> SessionBuilder {
        self.load.limits = limits;
        self
    }

    /// The folder that external data must lie in, where it is not the model's own; a model from bytes has none.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> SessionBuilder {
        self.load.folder = Some(folder.into());
        self
    }

    /// The values to return, instead of all outputs of the model: names of outputs or of any values of its graph.
    /// Nodes that none of them needs do not run.
    ///
    /// **Edge cases**: a name that the graph does not have fails when the model is loaded.
    pub fn outputs<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> SessionBuilder {
        self.outputs = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Values inside the graph to return after the outputs; passes leave them there.
    ///
    /// **Edge cases**: a name that the graph does not have fails when the model is loaded.
    pub fn keep_intermediates<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> SessionBuilder {
        self.kept.extend(names.into_iter().map(Into::into));
        self
    }

    /// Hears what loading goes through, and what runs of the session do that name no sink of their own.
    pub fn events(mut self, sink: Arc<dyn EventSink + Send + Sync>) -> SessionBuilder {
        self.events = Events(Some(sink));
        self
    }

    /// Ends loading within one node once the token is cancelled; runs name their own.
    pub fn cancel(mut self, token: &CancelToken) -> SessionBuilder {
        self.load.cancel = Some(token.clone());
        self
    }

    /// Loads a model file. Weights stay in the mapped file; nothing is compiled yet.
    ///
    /// **Source**: an ONNX file; external data lie in its folder or below, or in [`SessionBuilder::folder`].
    /// **Errors**: a file that cannot be read or is no ONNX model, ops that are not supported (all of them, in one
    /// error), a graph that contradicts itself, external data that is missing or outside the model's folder, a limit;
    /// options that contradict each other; cancelled.
    pub fn load(self, path: impl AsRef<Path>) -> Result<Session, Error> {
        let path = path.as_ref();
        let base = self.base()?;
        if !self.load.map
            && let Ok(stat) = std::fs::metadata(path)
        {
            // Only asked: what stays in memory is reserved once the weights are known.
            let size = usize::try_from(stat.len()).unwrap_or(usize::MAX);
            base.1.reserve(size).map_err(|refusal| Error::Memory { what: "reading the file whole", refusal })?;
        }
        self.events.loading(LoadStage::Map)?;
        let file = firstlight_onnx::open(path, &self.load)?;
        self.events.loading(LoadStage::Parse)?;
        let imported = firstlight_onnx::import_file(&file, &self.load)?;
        self.build(base, imported)
    }

    /// Loads a model from bytes. External data need [`SessionBuilder::folder`].
    ///
    /// **Errors**: as [`SessionBuilder::load`].
    pub fn load_bytes(self, bytes: impl Into<Vec<u8>>) -> Result<Session, Error> {
        let base = self.base()?;
        self.events.loading(LoadStage::Parse)?;
        let imported = firstlight_onnx::load_bytes(bytes.into(), &self.load)?;
        self.build(base, imported)
    }

    /// Tells everything that stands in the way of loading a model file, all at once; the session, where nothing does.
    ///
    /// **Errors**: options that contradict each other. What is wrong with the model is in the answer.
    pub fn check(self, path: impl AsRef<Path>) -> Result<Check, Error> {
        let base = self.base()?;
        let checked = firstlight_onnx::check(path.as_ref(), &self.load);
        let problems = checked.problems.into_iter().map(Error::Load).collect();
        let mut check = Check { problems, n_unsure: checked.n_unsure, session: None };
        match checked.imported.map(|imported| self.build(base, imported)) {
            Some(Ok(session)) => check.session = Some(session),
            Some(Err(error)) => check.problems.push(error),
            None => {}
        }
        Ok(check)
    }

    fn base(&self) -> Result<(Runtime, Arc<Budget>), Error> {
        let runtime = match (&self.runtime, self.threads) {
            (Some(_), Some(_)) => {
                let problem = "the named runtime has its threads; set them there".to_owned();
                return Err(Error::Option { option: "threads", problem });
            }
            (Some(runtime), None) => runtime.clone(),
            (None, Some(threads)) => Runtime::builder().threads(threads).build()?,
            (None, None) => Runtime::shared()?,
        };
        let budget = match (&runtime.budget, self.memory_limit) {
            (Some(_), Some(_)) => {
                let problem = "the named runtime has a limit for all its sessions; set one or the other".to_owned();
                return Err(Error::Option { option: "memory_limit", problem });
            }
            (Some(budget), None) => budget.clone(),
            (None, limit) => Budget::new(limit),
        };
        Ok((runtime, budget))
    }

    fn build(self, (runtime, budget): (Runtime, Arc<Budget>), imported: Imported) -> Result<Session, Error> {
        let Imported { graph, outputs: declared, warnings, metadata } = imported;
        let mut weights = Weights::default();
        weights.count(&graph);
        let reserved = budget.reserve(weights.owned);
        let reserved = reserved.map_err(|refusal| Error::Memory { what: "weights that are not mapped", refusal })?;

        let (mut targets, mut outputs) = (vec![], vec![]);
        let names = self.outputs.unwrap_or_else(|| graph.outputs().iter().map(|(name, _)| name.clone()).collect());
        for name in names.into_iter().chain(self.kept) {
            let known = graph.outputs().iter().position(|(output, _)| *output == name);
            let spec = known.and_then(|i| declared.get(i)?.1.as_ref());
            targets.push(match known {
                Some(i) => graph.outputs()[i].1,
                None => value_named(&graph, &name)?,
            });
            outputs.push(OutputSpec {
                dtype: spec.map(|spec| spec.dtype),
                shape: spec.and_then(|spec| spec.dims.clone()),
                name,
            });
        }
        let graph = Arc::new(graph);
        let executor = PipelinedExecutor::new(ExecutorConfig {
            pool: runtime.pool.clone(),
            table: runtime.table.clone(),
            device: runtime.device.clone(),
            budget: budget.clone(),
        });
        let prepare = PrepareOptions { passes: self.passes, ..PrepareOptions::default() };
        self.events.loading(LoadStage::Rewrite)?;
        let control = RunOptions { cancel: self.load.cancel.as_ref(), ..RunOptions::default() };
        let prepared = executor.prepare_with(graph.clone(), &targets, prepare, &control)?;
        self.events.loading(LoadStage::Done)?;
        Ok(Session {
            model: Arc::new(Model {
                checker: Checker::new(graph.inputs()),
                runtime,
                executor,
                prepared,
                graph,
                outputs: outputs.into(),
                budget,
                pipeline: self.pipeline,
                events: self.events,
                warnings,
                metadata,
                mapped_bytes: weights.mapped,
                _weights: reserved,
            }),
        })
    }
}

fn value_named(graph: &Graph, name: &str) -> Result<ValueId, Error> {
    let value = graph.value_named(name).filter(|_| !name.is_empty());
    value.ok_or_else(|| {
        let outputs: Vec<&str> = graph.outputs().iter().map(|(name, _)| name.as_str()).collect();
        let problem = format!("the graph has no value {name:?}; the model's outputs are {outputs:?}");
        Error::Output { problem }
    })
}

/// Memory that a graph's constants take, each file and each buffer counted once.
#[derive(Debug, Default)]
struct Weights {
    owned: usize,
    mapped: usize,
    seen: HashSet<usize>,
}

impl Weights {
    fn count(&mut self, graph: &Graph) {
        for node in graph.nodes() {
            if let Op::Const(constant) = &node.op {
                self.add(constant.tensor.bytes());
            }
            node.op.subgraphs().for_each(|subgraph| self.count(subgraph));
        }
        graph.inputs().iter().filter_map(|input| input.default.as_ref()).for_each(|tensor| self.add(tensor.bytes()));
    }

    fn add(&mut self, bytes: &Bytes) {
        let (at, owned, mapped) = match bytes {
            Bytes::Owned(owned) => (Arc::as_ptr(owned) as usize, bytes.len(), 0),
            Bytes::Mapped { file, .. } => {
                let (owned, mapped) = if file.is_mapped() { (0, file.len()) } else { (file.len(), 0) };
                (Arc::<MappedFile>::as_ptr(file) as usize, owned, mapped)
            }
        };
        if self.seen.insert(at) {
            self.owned = self.owned.saturating_add(owned);
            self.mapped = self.mapped.saturating_add(mapped);
        }
    }
}
