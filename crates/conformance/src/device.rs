//! The devices that conformance runs on.

use firstlight::Runtime;
use firstlight_backend::{BackendId, Budget, Device, KernelBindingTable, Pool, reference_kernel};
use firstlight_cpu::CpuDevice;
use firstlight_exec::{ExecutorConfig, PipelinedExecutor};
use firstlight_sim::{SimDevice, SimOptions, reference_row};
use std::sync::Arc;

/// A device by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// The host.
    Cpu,
    /// The simulated second device, each call done at once.
    Sim,
    /// The simulated second device, each call done when it is waited for.
    SimDeferred,
}

impl DeviceKind {
    /// Every device.
    pub const ALL: [DeviceKind; 3] = [DeviceKind::Cpu, DeviceKind::Sim, DeviceKind::SimDeferred];

    /// The device of a name on a command line.
    pub fn from_name(name: &str) -> Option<DeviceKind> {
        DeviceKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Sim => "sim",
            DeviceKind::SimDeferred => "sim-deferred",
        }
    }

    /// A device of the kind, with its kernels.
    ///
    /// **Errors**: kernels that do not make a table.
    pub fn open(self) -> Result<(Arc<dyn Device>, Arc<KernelBindingTable>), String> {
        let (device, table): (Arc<dyn Device>, _) = match self {
            DeviceKind::Cpu => {
                let references = [(BackendId::CPU, reference_kernel as firstlight_backend::KernelFn)];
                (Arc::new(CpuDevice), KernelBindingTable::finalize(firstlight_cpu::BINDINGS, &references))
            }
            DeviceKind::Sim | DeviceKind::SimDeferred => {
                let deferred = self == DeviceKind::SimDeferred;
                let options = SimOptions { deferred, ..SimOptions::default() };
                (Arc::new(SimDevice::new(options)), KernelBindingTable::finalize(&[], &[reference_row()]))
            }
        };
        Ok((device, Arc::new(table.map_err(|error| error.to_string())?)))
    }

    /// A runtime of the door on the device.
    ///
    /// **Errors**: as [`DeviceKind::open`]; too many threads.
    pub fn runtime(self, threads: usize) -> Result<Runtime, String> {
        let (device, table) = self.open()?;
        Runtime::builder().threads(threads).device(device, table).build().map_err(|error| error.to_string())
    }

    /// An executor on the device.
    ///
    /// **Errors**: as [`DeviceKind::runtime`].
    pub fn executor(self, threads: usize) -> Result<PipelinedExecutor, String> {
        let (device, table) = self.open()?;
        let pool = Arc::new(Pool::new(threads).map_err(|error| error.to_string())?);
        Ok(PipelinedExecutor::new(ExecutorConfig { pool, table, device, budget: Budget::new(None) }))
    }
}
