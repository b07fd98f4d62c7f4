//! Runs trained ONNX models. Compiling and executing a model are one pipeline, so the first answer comes sooner, and
//! later answers replay what the first one left behind.
//!
//! ```
//! use firstlight::{Session, Tensor};
//!
//! # fn main() -> Result<(), firstlight::Error> {
//! # let model = firstlight::doc::one_add();
//! let session = Session::builder().load_bytes(model)?; // a file: Session::load("model.onnx")?
//! for input in session.inputs() {
//!     println!("{input}"); // x f32[4]
//! }
//! let x = Tensor::from_slice([4], &[1f32, 2., 3., 4.])?;
//! let outputs = session.run([("x", x)])?;
//! assert_eq!(outputs["y"].values::<f32>()?[..], [2., 4., 6., 8.]);
//! # Ok(())
//! # }
//! ```
//!
//! - [`Session`]: a loaded model. `&self` runs from any number of threads; [`SessionBuilder`] has the options.
//! - [`Tensor`]: values with element type and shape, which clones share; [`TensorRef`] lends the caller's, [`TensorBuf`]
//!   is filled again and again.
//! - [`Session::bind`] and [`Session::run_into`]: runs that allocate nothing.
//! - [`Runtime`]: threads and a memory limit to share between sessions.
//! - [`RunOptions`]: cancel, deadline, events of one run.
//! - [`inspect()`]: what a model file holds, whatever its ops; [`SessionBuilder::check`]: everything that stands in its way.
//! - [`catalog()`]: every op, its imports and its kernels.
//! - [`Session::explain`]: what runs do, and why; [`explain`] has its parts.
//! - [`compare`]: the first node whose values are wrong.
//! - [`files`]: tensors from and to `.npy`, `.npz` and `.pb`.
//! - [`Error`]: one enum; its message names node, op, shapes.
//! - [`core`]: what a session is made of.
//!
//! | feature | by default | gives |
//! | --- | --- | --- |
//! | `ndarray` | off | `Tensor::from_array` and `Tensor::array`, `TensorRef::from_array` and `TensorBuf::array`: arrays of the `ndarray` crate, taken and given |
//!
//! No CPU is named when it is built: each process finds the best instruction set that its CPU has (AVX-512, AVX2 with
//! FMA, or what every CPU has), and all of them give the same bits. The program on top of this crate is `firstlight-cli`.
//!
//! What is not here: kernels, planning, file formats; each is a crate of its own below this one.
#![forbid(unsafe_code)]

#[cfg(feature = "ndarray")]
mod array;
mod binding;
mod buffer;
mod builder;
mod catalog;
pub mod compare;
pub mod core;
#[doc(hidden)]
pub mod doc;
mod error;
pub mod explain;
pub mod files;
mod inspect;
mod outputs;
mod runtime;
mod session;
mod spec;

/// The Rust of README.md compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

pub use binding::Binding;
pub use buffer::{TensorBuf, TensorRef};
pub use builder::{Check, SessionBuilder};
pub use catalog::{OpEntry, catalog};
pub use error::{Error, ErrorKind, InputProblem};
pub use explain::Explanation;
pub use inspect::{inspect, model};
pub use outputs::Outputs;
pub use runtime::{Runtime, RuntimeBuilder};
pub use session::{Session, Stats};
pub use spec::{InputSpec, OutputSpec};

pub use firstlight_backend::pool::TileSpan;
pub use firstlight_exec::{
    CancelToken, Event, EventSink, LoadStage, Pipeline, Progress, Readiness, RunError, RunOptions,
};
pub use firstlight_onnx::{Limits, LoadError, ModelMetadata, UnsupportedOp};
pub use firstlight_tensor::{DType, Dim, Element, Shape, SymShape, Tensor, TensorError, TensorView, bf16, f16};
