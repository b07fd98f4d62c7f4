//! A loaded model and its runs.

use crate::binding::Binding;
use crate::buffer::{TensorBuf, TensorRef};
use crate::builder::{Events, SessionBuilder};
use crate::outputs::{Collector, Outputs, Writer};
use crate::spec::{Checker, InputSpec, OutputSpec};
use crate::{Error, InputProblem, Runtime};
use firstlight_backend::{Budget, Reservation};
use firstlight_exec::{Feed, Outputs as TakeOutputs, Pipeline, PipelinedExecutor, Prepared, Readiness, RunOptions};
use firstlight_graph::Graph;
use firstlight_onnx::ModelMetadata;
use firstlight_tensor::Tensor;
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A loaded model; clones are the same session.
///
/// Any number of threads may run it at once. The first run for a set of input sizes compiles each node just ahead of
/// executing it; later runs of the same sizes replay what was kept.
///
/// ```
/// # fn main() -> Result<(), firstlight::Error> {
/// # let model = firstlight::doc::one_add();
/// use firstlight::{Session, Tensor};
///
/// let session = Session::builder().load_bytes(model)?; // or .load("model.onnx")
/// let outputs = session.run([("x", Tensor::from_slice([4], &[1f32, 2., 3., 4.])?)])?;
/// assert_eq!(outputs["y"].values::<f32>()?[..], [2., 4., 6., 8.]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Session {
    pub(crate) model: Arc<Model>,
}

/// What all clones of a session share.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) runtime: Runtime,
    pub(crate) executor: PipelinedExecutor,
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) graph: Arc<Graph>,
    pub(crate) checker: Checker,
    pub(crate) outputs: Arc<[OutputSpec]>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) pipeline: Pipeline,
    pub(crate) events: Events,
    pub(crate) warnings: Vec<String>,
    pub(crate) metadata: ModelMetadata,
    pub(crate) mapped_bytes: usize,
    /// Weights that the session holds in memory of its own.
    pub(crate) _weights: Reservation,
}

/// Figures of a session.
///
/// **Units**: sizes in bytes, the rest in counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Bytes owned now: arenas, scratch, copies of weights. With a limit on the runtime, those of all its sessions.
    pub owned_bytes: usize,
    /// The most bytes that were owned at once.
    pub owned_peak_bytes: usize,
    /// Bytes of mapped files that hold weights.
    pub mapped_bytes: usize,
    /// Sets of input sizes that a plan is kept for.
    pub plans: usize,
    /// Nodes compiled so far, over all plans.
    pub compiled_nodes: usize,
    /// Working threads.
    pub threads: usize,
}

impl Session {
    /// Loads a model file with all options at their defaults.
    ///
    /// **Source**: an ONNX file; external data lie in its folder or below.
    /// **Errors**: see [`SessionBuilder::load`].
    pub fn load(path: impl AsRef<Path>) -> Result<Session, Error> {
        Session::builder().load(path)
    }

    /// Options to choose.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::default()
    }

    /// The inputs, in the model's order.
    pub fn inputs(&self) -> &[InputSpec] {
        self.model.checker.specs()
    }

    /// The outputs, in the order of the results.
    pub fn outputs(&self) -> &[OutputSpec] {
        &self.model.outputs
    }

    /// What is odd about the model file but did not stop it.
    pub fn warnings(&self) -> &[String] {
        &self.model.warnings
    }

    /// What the model file says about itself.
    pub fn metadata(&self) -> &ModelMetadata {
        &self.model.metadata
    }

    /// The threads and kernels that the session runs on.
    pub fn runtime(&self) -> &Runtime {
        &self.model.runtime
    }

    /// The model as a graph; its `Display` is the text form.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.model.graph
    }

    /// Memory and plans at this moment.
    ///
    /// **Edge cases**: other threads may be running the session, so that two figures need not be of one instant.
    pub fn stats(&self) -> Stats {
        let model = &self.model;
        Stats {
            owned_bytes: model.budget.used(),
            owned_peak_bytes: model.budget.peak(),
            mapped_bytes: model.mapped_bytes,
            plans: model.prepared.n_plans(),
            compiled_nodes: model.prepared.n_compiled(),
            threads: model.runtime.threads(),
        }
    }

    /// How ready the session is for the sizes that were run last: loaded, has answered, settled.
    ///
    /// **Edge cases**: other sizes start over at the first run of theirs, which compiles.
    pub fn readiness(&self) -> Readiness {
        self.model.prepared.readiness()
    }

    /// Runs the model on named inputs and returns its outputs.
    ///
    /// **Shapes**: of the declared rank; a dimension that the model fixes has that size, and a named one has one size
    /// wherever the name stands. Sizes of 0 are sizes like any other.
    /// **Dtypes**: those that the model declares: nothing is converted. Strings cannot be fed.
    /// **Edge cases**: an input that has a default may be left out; the order of the inputs does not matter.
    ///
    /// **Errors**: inputs that do not fit what the model declares (nothing runs then); a node that cannot be compiled
    /// or fails; the memory limit. The session can be used again after any of them.
    pub fn run<N, T>(&self, inputs: impl IntoIterator<Item = (N, T)>) -> Result<Outputs, Error>
    where
        N: AsRef<str>,
        T: Borrow<Tensor>,
    {
        self.run_with(inputs, &RunOptions::default())
    }

    /// [`Session::run`] with a cancel token, a deadline, an event sink or another pipeline.
    ///
    /// **Errors**: as [`Session::run`]; cancelled, deadline passed, the event sink's refusal.
    pub fn run_with<N, T>(
        &self,
        inputs: impl IntoIterator<Item = (N, T)>,
        options: &RunOptions<'_>,
    ) -> Result<Outputs, Error>
    where
        N: AsRef<str>,
        T: Borrow<Tensor>,
    {
        let inputs: SmallVec<[(N, T); 8]> = inputs.into_iter().collect();
        let named = inputs.iter().map(|(name, tensor)| (name.as_ref(), TensorRef::from(tensor.borrow()).feed()));
        let feeds = self.model.checker.arrange(named)?;
        self.model.run_to_tensors(&feeds, options)
    }

    /// Runs the model on inputs by position: the i-th is for the i-th input that has no default.
    ///
    /// **Shapes**, **Dtypes**: as [`Session::run`].
    /// **Errors**: as [`Session::run`]; more inputs than the model has without a default.
    pub fn run_positional<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Result<Outputs, Error> {
        let required: Vec<usize> =
            self.inputs().iter().enumerate().filter(|(_, spec)| !spec.is_optional).map(|(i, _)| i).collect();
        if inputs.len() > required.len() {
            let problem = InputProblem::TooMany { expected: required.len(), got: inputs.len() };
            return Err(Error::Input { name: String::new(), problem });
        }
        let mut feeds: Vec<Option<Feed<'_>>> = self.inputs().iter().map(|_| None).collect();
        for (at, tensor) in required.into_iter().zip(inputs) {
            feeds[at] = Some(TensorRef::from(tensor.borrow()).feed());
        }
        self.model.run_to_tensors(&feeds, &RunOptions::default())
    }

    /// Runs the model and writes its outputs into the caller's buffers, one an output.
    ///
    /// Allocates nothing once the sizes have been seen (up to 16 inputs).
    ///
    /// **Shapes**, **Dtypes**: inputs as [`Session::run`]; each buffer takes the shape and the element type of its output,
    /// whatever it held.
    /// **Errors**: as [`Session::run`]; another number of buffers than outputs. The buffers are as they were then.
    pub fn run_into(&self, inputs: &[(&str, TensorRef<'_>)], outputs: &mut [TensorBuf]) -> Result<(), Error> {
        let feeds = self.model.checker.arrange(inputs.iter().map(|(name, tensor)| (*name, tensor.feed())))?;
        self.model.run_to_buffers(&feeds, outputs, &RunOptions::default())
    }

    /// Buffers for all inputs and outputs, to fill, run and read again and again without allocating.
    pub fn bind(&self) -> Binding {
        Binding::new(self.clone())
    }
}

impl Model {
    fn run_to_tensors(&self, feeds: &[Option<Feed<'_>>], options: &RunOptions<'_>) -> Result<Outputs, Error> {
        let mut collector = Collector::new(self.outputs.len(), &self.budget);
        self.execute(feeds, options, &mut collector)?;
        Outputs::new(self.outputs.clone(), collector)
    }

    pub(crate) fn run_to_buffers(
        &self,
        feeds: &[Option<Feed<'_>>],
        outputs: &mut [TensorBuf],
        options: &RunOptions<'_>,
    ) -> Result<(), Error> {
        if outputs.len() != self.outputs.len() {
            let problem = format!("{} buffers are given for {} outputs", outputs.len(), self.outputs.len());
            return Err(Error::Output { problem });
        }
        self.execute(feeds, options, &mut Writer { buffers: outputs })
    }

    fn execute(
        &self,
        feeds: &[Option<Feed<'_>>],
        options: &RunOptions<'_>,
        outputs: &mut dyn TakeOutputs,
    ) -> Result<(), Error> {
        self.checker.check(feeds)?;
        let mut options = *options;
        if options.pipeline == Pipeline::Auto {
            options.pipeline = self.pipeline;
        }
        if let (None, Some(sink)) = (options.events, &self.events.0) {
            options.events = Some(&**sink);
        }
        Ok(self.executor.run(&self.prepared, feeds, &options, outputs)?)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("graph", &self.model.graph.name())
            .field("inputs", &self.inputs())
            .field("outputs", &self.outputs())
            .finish_non_exhaustive()
    }
}
