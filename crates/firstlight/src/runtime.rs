//! What sessions share: threads, kernels, a device, perhaps a memory limit.

use crate::Error;
use firstlight_backend::pool::TileSpan;
use firstlight_backend::{BackendId, Budget, Device, KernelBindingTable, Pool, reference_kernel};
use firstlight_cpu::CpuDevice;
use std::sync::{Arc, OnceLock};

/// Threads and kernels that sessions share; clones are the same runtime.
///
/// Threads are created when a first run can use them, and never again. A session that names no runtime uses
/// [`Runtime::shared`].
#[derive(Clone, Debug)]
pub struct Runtime {
    pub(crate) pool: Arc<Pool>,
    pub(crate) table: Arc<KernelBindingTable>,
    pub(crate) device: Arc<dyn Device>,
    /// Shared by all sessions, where the runtime has a limit.
    pub(crate) budget: Option<Arc<Budget>>,
}

/// Options of a [`Runtime`].
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is made before `build`"]
pub struct RuntimeBuilder {
    threads: usize,
    memory_limit: Option<usize>,
    device: Option<(Arc<dyn Device>, Arc<KernelBindingTable>)>,
}

impl Runtime {
    /// Options to choose.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// The runtime of sessions that name none: as many threads as the process may use, made when first asked for.
    ///
    /// **Errors**: as [`RuntimeBuilder::build`].
    pub fn shared() -> Result<Runtime, Error> {
        static SHARED: OnceLock<Runtime> = OnceLock::new();
        if let Some(runtime) = SHARED.get() {
            return Ok(runtime.clone());
        }
        let runtime = Runtime::builder().build()?;
        Ok(SHARED.get_or_init(|| runtime).clone())
    }

    /// Working threads, the calling one included.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Begins or ends to record which thread works when, for a trace; recording allocates.
    pub fn record_threads(&self, on: bool) {
        self.pool.record(on);
    }

    /// What was recorded since it was last taken: stretches in which a thread ran parts of a kernel.
    ///
    /// **Edge cases**: kernels that run on the calling thread alone are not recorded.
    pub fn take_recorded_threads(&self) -> Vec<TileSpan> {
        self.pool.take_recorded()
    }

    /// Bytes that all sessions of the runtime own together, where the runtime has a limit.
    pub fn owned_bytes(&self) -> Option<usize> {
        self.budget.as_ref().map(|budget| budget.used())
    }
}

impl RuntimeBuilder {
    /// Working threads, the calling one included; 0, the default, is as many as the process may use.
    pub fn threads(mut self, threads: usize) -> RuntimeBuilder {
        self.threads = threads;
        self
    }

    /// The most memory that all sessions of the runtime may own together: arenas, scratch, copies, outputs in the making.
    ///
    /// **Units**: bytes. Mapped weights are not counted.
    pub fn memory_limit(mut self, bytes: usize) -> RuntimeBuilder {
        self.memory_limit = Some(bytes);
        self
    }

    /// Another device than the host, with the kernels that run on it.
    pub fn device(mut self, device: Arc<dyn Device>, table: Arc<KernelBindingTable>) -> RuntimeBuilder {
        self.device = Some((device, table));
        self
    }

    /// Makes the runtime; no thread is created yet.
    ///
    /// **Errors**: more threads than a pool takes, or a system that cannot say how many there are.
    pub fn build(self) -> Result<Runtime, Error> {
        let pool = Pool::new(self.threads);
        let pool = pool.map_err(|error| Error::Option { option: "threads", problem: error.to_string() })?;
        let (device, table) = match self.device {
            Some(given) => given,
            None => (Arc::new(CpuDevice) as Arc<dyn Device>, Arc::new(cpu_table())),
        };
        let budget = self.memory_limit.map(|limit| Budget::new(Some(limit)));
        Ok(Runtime { pool: Arc::new(pool), table, device, budget })
    }
}

/// The kernels of the host.
fn cpu_table() -> KernelBindingTable {
    KernelBindingTable::of_constants(firstlight_cpu::BINDINGS, &[(BackendId::CPU, reference_kernel)])
}
