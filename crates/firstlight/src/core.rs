//! The parts that a session is made of: graphs, kernels, plans, devices.
//!
//! For tools, tests and back ends. These items follow the workspace's own needs and change more often than the rest.
//!
//! ```
//! use firstlight::Tensor;
//! use firstlight::core::{
//!     BackendId, Budget, CpuDevice, ExecutorConfig, Graph, KernelBindingTable, PipelinedExecutor, Pool, StorageCache,
//!     ops, reference_kernel,
//! };
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut graph = Graph::new("sum");
//! let a = graph.constant("a", Tensor::from_slice([2], &[1f32, 2.])?);
//! let b = graph.constant("b", Tensor::from_slice([2], &[10f32, 20.])?);
//! let sum = graph.op(ops::Add.into(), &[a, b])?;
//! graph.output("sum", sum)?;
//! let graph = Arc::new(graph);
//!
//! let table = KernelBindingTable::finalize(firstlight::core::CPU_BINDINGS, &[(BackendId::CPU, reference_kernel)])?;
//! let executor = PipelinedExecutor::new(ExecutorConfig {
//!     pool: Arc::new(Pool::new(1)?),
//!     table: Arc::new(table),
//!     device: Arc::new(CpuDevice),
//!     budget: Budget::new(None),
//! });
//! let realized = executor.realize(&graph, &[sum], &StorageCache::new())?;
//! let sum = realized.get(sum).ok_or("no sum")?.to_tensor()?;
//! assert_eq!(sum.values::<f32>()?[..], [11., 22.]);
//! # Ok(())
//! # }
//! ```

pub use firstlight_backend::*;
pub use firstlight_cpu::{BINDINGS as CPU_BINDINGS, CpuDevice};
pub use firstlight_exec::{
    CapturedRun, ExecutorConfig, Feed, Outputs, PersistentOutputs, PipelinedExecutor, PrepareOptions, Prepared,
    RealizeRequest, Realized, ReplayList, RunError, StorageCache, execute_compiled,
};
pub use firstlight_graph::*;
pub use firstlight_onnx as onnx;
pub use firstlight_plan::*;
pub use firstlight_tensor::{Bytes, Dim, Layout, MappedFile, OwnedBytes, TensorView, TensorViewMut, wire};
