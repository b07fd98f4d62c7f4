//! The device: the whole contract, over the address space and the queue.

use crate::faults::{Fault, Faults, SimCall};
use crate::queue::Queue;
use crate::space::Space;
use crate::work::{Launch, What, Work};
use firstlight_backend::{
    BackendId, BackendStorage, Completion, Device, DeviceCall, DeviceStorage, HostBuf, OperandAddr,
};
use firstlight_graph::{OpError, OpErrorKind};
use firstlight_tensor::Shape;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The simulated device's backend.
pub const SIM: BackendId = BackendId("sim");

/// A simulated device; clones are the same device.
#[derive(Clone)]
pub struct SimDevice {
    shared: Arc<Shared>,
}

/// How a device is simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// Bytes of device memory.
    pub limit_bytes: usize,
    /// Uploads, copies and launches join one in-order queue and are done when their event, or a later one, is waited
    /// for. A download waits for nothing, so what was not waited for reads as poison. A data-sized launch waits for
    /// all before it, since its shapes are asked for. Memory may only be freed once its work is done. When work fails,
    /// what is queued behind it is dropped with the same error: one run at a time.
    pub deferred: bool,
    /// Which of several devices it is; their addresses differ.
    pub ordinal: u8,
}

impl Default for SimOptions {
    /// 1 GiB, nothing deferred, the first device.
    fn default() -> SimOptions {
        SimOptions { limit_bytes: 1 << 30, deferred: false, ordinal: 0 }
    }
}

/// What a device has done so far; calls that failed are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimCounters {
    /// Storages handed out.
    pub n_allocations: u64,
    /// Storages dropped.
    pub n_frees: u64,
    /// In use now.
    pub used_bytes: usize,
    /// The most that were in use at once.
    pub peak_bytes: usize,
    /// Host to device.
    pub n_uploads: u64,
    /// Bytes of all uploads.
    pub uploaded_bytes: u64,
    /// Device to host.
    pub n_downloads: u64,
    /// Bytes of all downloads.
    pub downloaded_bytes: u64,
    /// Within the device.
    pub n_copies: u64,
    /// Bytes of all copies within the device.
    pub copied_bytes: u64,
    /// Kernels launched.
    pub n_launches: u64,
    /// Completions waited for.
    pub n_waits: u64,
}

struct Shared {
    options: SimOptions,
    state: Mutex<State>,
    /// Held by whoever does queued work, so that it is done in order.
    draining: Mutex<()>,
}

struct State {
    space: Space,
    queue: Queue,
    faults: Faults,
    counters: SimCounters,
}

/// Bytes of a simulated device; freed when dropped.
#[derive(Debug)]
struct SimStorage {
    device: SimDevice,
    address: u64,
    len: usize,
}

impl SimDevice {
    /// A device with empty memory.
    pub fn new(options: SimOptions) -> SimDevice {
        let state = State {
            space: Space::new(options.ordinal, options.limit_bytes),
            queue: Queue::default(),
            faults: Faults::default(),
            counters: SimCounters::default(),
        };
        SimDevice { shared: Arc::new(Shared { options, state: Mutex::new(state), draining: Mutex::new(()) }) }
    }

    /// What it has done so far.
    pub fn counters(&self) -> SimCounters {
        self.state().counters
    }

    /// Makes a call fail with a message, once, after `after` more calls of it went through.
    pub fn fail_nth(&self, call: SimCall, after: u64, message: impl Into<String>) {
        self.state().faults.add(call, after, Fault::Fail(message.into()));
    }

    /// Makes a kernel panic with a message, once, after `after` more launches went through.
    pub fn panic_nth_launch(&self, after: u64, message: impl Into<String>) {
        self.state().faults.add(SimCall::Launch, after, Fault::Panic(message.into()));
    }

    /// Forgets the faults that have not struck yet.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Kernels run without the lock, and nothing under it leaves the state half changed.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The storage, when it is this device's, and the address of `n_bytes` of it from `offset` on.
    fn address(&self, storage: &BackendStorage, offset: usize, n_bytes: usize) -> Result<OperandAddr, OpError> {
        let own = match storage {
            BackendStorage::Device(storage) => storage.as_any().downcast_ref::<SimStorage>(),
            BackendStorage::Host(_) => None,
        };
        match own {
            Some(own) if Arc::ptr_eq(&own.device.shared, &self.shared) => {
                let address = own.address.checked_add(offset as u64);
                let address = address.ok_or_else(|| failed(format!("an offset of {offset} bytes")))?;
                Ok(OperandAddr { address, n_bytes })
            }
            _ => Err(failed(format!("{storage:?} is not memory of {self:?}"))),
        }
    }

    /// Does work now, or queues it on a deferred device.
    fn submit(&self, work: Work) -> Result<Completion, OpError> {
        if self.shared.options.deferred {
            return Ok(Completion::Pending(self.state().queue.push(work)));
        }
        self.perform(work)?;
        Ok(Completion::Ready)
    }

    /// Does work; gives the final shapes of a launch's outputs.
    fn perform(&self, work: Work) -> Result<Vec<Shape>, OpError> {
        match work.what {
            What::Upload { from, to } => {
                work.fault.map_or(Ok(()), Fault::happen)?;
                self.state().upload(&from, to)?;
                Ok(vec![])
            }
            What::Copy { from, to } => {
                work.fault.map_or(Ok(()), Fault::happen)?;
                self.state().copy(from, to)?;
                Ok(vec![])
            }
            What::Launch(launch) => self.perform_launch(&launch, work.fault),
        }
    }

    fn perform_launch(&self, launch: &Launch, fault: Option<Fault>) -> Result<Vec<Shape>, OpError> {
        let inputs = self.state().fetch(launch)?;
        let outputs = launch.compute(&inputs, fault)?;
        let mut state = self.state();
        for ((_, at), (bytes, _)) in launch.outputs.iter().zip(&outputs) {
            state.space.write(*at, bytes.as_slice())?;
        }
        state.counters.n_launches += 1;
        Ok(outputs.into_iter().map(|(_, shape)| shape).collect())
    }

    /// Does the queued work up to an event, in order.
    fn drain(&self, event: u64) -> Result<(), OpError> {
        let _draining = self.shared.draining.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let work = self.state().queue.pop(event)?;
            let Some(work) = work else { return Ok(()) };
            if let Err(error) = self.perform(work) {
                self.state().queue.fail(error.clone());
                return Err(error);
            }
        }
    }
}

impl State {
    fn upload(&mut self, from: &[u8], to: OperandAddr) -> Result<(), OpError> {
        self.space.write(to, from)?;
        self.counters.n_uploads += 1;
        self.counters.uploaded_bytes += from.len() as u64;
        Ok(())
    }

    fn copy(&mut self, from: OperandAddr, to: OperandAddr) -> Result<(), OpError> {
        let bytes = self.space.read(from)?.to_vec();
        self.space.write(to, &bytes)?;
        self.counters.n_copies += 1;
        self.counters.copied_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Copies of a launch's inputs, after a check of every address that it has.
    fn fetch(&self, launch: &Launch) -> Result<Vec<Option<HostBuf>>, OpError> {
        for at in launch.outputs.iter().map(|(_, at)| *at).chain([launch.scratch]) {
            self.space.read(at)?;
        }
        let fetch = |at: OperandAddr| {
            let from = self.space.read(at)?;
            let mut bytes = HostBuf::zeroed(from.len())?;
            bytes.as_mut_slice().copy_from_slice(from);
            Ok(bytes)
        };
        launch.inputs.iter().map(|input| input.as_ref().map(|(_, at)| fetch(*at)).transpose()).collect()
    }
}

impl Device for SimDevice {
    fn backend(&self) -> BackendId {
        SIM
    }

    fn allocate(&self, n_bytes: usize) -> Result<BackendStorage, OpError> {
        let mut state = self.state();
        let state = &mut *state;
        state.faults.strike(SimCall::Allocate).map_or(Ok(()), Fault::happen)?;
        let address = state.space.allocate(n_bytes)?;
        state.counters.n_allocations += 1;
        state.counters.used_bytes = state.space.used();
        state.counters.peak_bytes = state.counters.peak_bytes.max(state.space.used());
        Ok(BackendStorage::Device(Box::new(SimStorage { device: self.clone(), address, len: n_bytes })))
    }

    fn upload(&self, from: &[u8], to: &mut BackendStorage, offset: usize) -> Result<Completion, OpError> {
        let to = self.address(to, offset, from.len())?;
        let fault = self.state().faults.strike(SimCall::Upload);
        self.submit(Work { what: What::Upload { from: from.to_vec(), to }, fault })
    }

    fn download(&self, from: &BackendStorage, offset: usize, to: &mut [u8]) -> Result<(), OpError> {
        let from = self.address(from, offset, to.len())?;
        let mut state = self.state();
        state.faults.strike(SimCall::Download).map_or(Ok(()), Fault::happen)?;
        to.copy_from_slice(state.space.read(from)?);
        state.counters.n_downloads += 1;
        state.counters.downloaded_bytes += to.len() as u64;
        Ok(())
    }

    fn copy(&self, from: OperandAddr, to: OperandAddr) -> Result<Completion, OpError> {
        let fault = self.state().faults.strike(SimCall::Copy);
        self.submit(Work { what: What::Copy { from, to }, fault })
    }

    fn launch(&self, call: DeviceCall<'_>) -> Result<Completion, OpError> {
        let launch = Launch::new(&call)?;
        let fault = self.state().faults.strike(SimCall::Launch);
        if !launch.data_sized {
            return self.submit(Work { what: What::Launch(launch), fault });
        }
        let last = self.state().queue.last();
        self.drain(last)?;
        let shapes = self.perform_launch(&launch, fault)?;
        for (found, shape) in call.found.iter_mut().zip(shapes) {
            *found = shape;
        }
        Ok(Completion::Ready)
    }

    fn wait(&self, event: u64) -> Result<(), OpError> {
        self.drain(event)?;
        self.state().counters.n_waits += 1;
        Ok(())
    }
}

impl DeviceStorage for SimStorage {
    fn backend(&self) -> BackendId {
        SIM
    }

    fn len(&self) -> usize {
        self.len
    }

    fn address(&self) -> u64 {
        self.address
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for SimStorage {
    fn drop(&mut self) {
        let mut state = self.device.state();
        state.space.free(self.address);
        state.counters.n_frees += 1;
        state.counters.used_bytes = state.space.used();
    }
}

impl fmt::Debug for SimDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SIM}:{}", self.shared.options.ordinal)
    }
}

fn failed(message: String) -> OpError {
    OpError::new(OpErrorKind::Device, message)
}
