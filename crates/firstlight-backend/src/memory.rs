//! Memory of a run and the operands that kernels are handed: the one room that turns addresses into slices.
//!
//! A [`RunMemory`] owns the chunks that values live in. [`RunMemory::resolve`] turns locations into a [`StepAddrs`],
//! checking that every operand lies inside its storage and that no output overlaps another operand; the result is
//! bound to that memory and its epoch. [`RunMemory::launch`] takes the memory exclusively and refuses addresses that
//! are not its own, so the slices of a [`KernelCtx`] are valid and unaliased for the launch.
#![allow(unsafe_code)]

mod buf;
mod ctx;
mod tiles;

pub use buf::{HUGE_PAGE_BYTES, HostBuf};
pub use ctx::{KernelCtx, Words};
pub use tiles::{
    for_chunks_mut, for_chunks_mut_cost, for_chunks_with_scratch_cost, for_tiles_with_scratch,
    for_tiles_with_scratch_cost,
};

use crate::device::{Completion, Device, DeviceCall, OperandAddr};
use crate::kernel::KernelCall;
use crate::pool::Pool;
use crate::storage::{BackendStorage, HostStorage, Storage};
use crate::{Budget, Reservation};
use firstlight_graph::{OpError, OpErrorKind};
use firstlight_tensor::Shape;
use smallvec::SmallVec;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard};

/// Alignment of every chunk and of every value in it.
pub const ALIGN: usize = 64;

/// Where a value lives.
#[derive(Clone, Debug)]
pub enum Loc {
    /// At a byte offset of a chunk of the run's arena.
    Arena {
        /// Index of the chunk.
        chunk: u32,
        /// Bytes from the chunk's start, a multiple of [`ALIGN`].
        offset: usize,
    },
    /// At the start of a buffer that grows between steps (what a Loop gives).
    Grown(u32),
    /// In a constant of the plan.
    Const(Arc<BackendStorage>),
    /// In storage that the caller fed for a constant; read under its guard.
    Adopted(Arc<RwLock<Storage>>),
}

/// Read guards over adopted storages, held for a whole run.
#[derive(Debug, Default)]
pub struct Guards<'a> {
    held: Vec<(usize, RwLockReadGuard<'a, Storage>)>,
}

impl<'a> Guards<'a> {
    /// Takes the guards, deduplicated and in address order, so that concurrent runs cannot deadlock.
    ///
    /// **Errors**: a storage whose writer panicked.
    pub fn take(storages: impl IntoIterator<Item = &'a Arc<RwLock<Storage>>>) -> Result<Guards<'a>, OpError> {
        let mut sorted: Vec<&'a Arc<RwLock<Storage>>> = storages.into_iter().collect();
        sorted.sort_by_key(|storage| Arc::as_ptr(storage) as usize);
        sorted.dedup_by(|a, b| Arc::ptr_eq(a, b));
        let take = |storage: &'a Arc<RwLock<Storage>>| match storage.read() {
            Ok(guard) => Ok((Arc::as_ptr(storage) as usize, guard)),
            Err(_) => Err(OpError::new(OpErrorKind::Device, "a fed storage is unusable: a writer of it panicked")),
        };
        Ok(Guards { held: sorted.into_iter().map(take).collect::<Result<_, _>>()? })
    }

    /// The storage under its guard, where one is held.
    pub fn get(&self, storage: &Arc<RwLock<Storage>>) -> Option<&Storage> {
        let at = Arc::as_ptr(storage) as usize;
        self.held.iter().find(|(held, _)| *held == at).map(|(_, guard)| &**guard)
    }
}

/// Storage in which values live, with its share of the budget.
#[derive(Debug)]
pub struct Chunk {
    storage: BackendStorage,
    _reserved: Reservation,
}

/// Makes chunks ahead of the run that will need them, on any thread.
#[derive(Clone, Debug)]
pub struct ChunkMaker {
    device: Arc<dyn Device>,
    budget: Arc<Budget>,
}

impl ChunkMaker {
    /// A chunk of `n_bytes`; a large one on the host is backed with memory already. Kernels touch but a part of what small
    /// ones hold.
    ///
    /// **Errors**: the budget or the device refuses.
    pub fn make(&self, n_bytes: usize) -> Result<Chunk, OpError> {
        let chunk = self.allocate(n_bytes)?;
        if let BackendStorage::Host(HostStorage::Buf(buf)) = &chunk.storage
            && n_bytes >= HUGE_PAGE_BYTES
        {
            buf.populate();
        }
        Ok(chunk)
    }

    fn allocate(&self, n_bytes: usize) -> Result<Chunk, OpError> {
        let reserved = self.budget.reserve(n_bytes);
        let reserved = reserved.map_err(|refused| OpError::new(OpErrorKind::Memory, refused.to_string()))?;
        Ok(Chunk { storage: self.device.allocate(n_bytes)?, _reserved: reserved })
    }
}

/// The chunks a run's values live in, on one device.
pub struct RunMemory {
    id: u64,
    epoch: u64,
    maker: ChunkMaker,
    on_host: bool,
    chunks: Vec<Option<Chunk>>,
    grown: Vec<Option<Chunk>>,
    found: SmallVec<[Shape; 2]>,
}

/// The addresses of a step's operands in one [`RunMemory`].
pub struct StepAddrs {
    memory: u64,
    epoch: u64,
    inputs: SmallVec<[Option<OperandAddr>; 4]>,
    outputs: SmallVec<[OperandAddr; 1]>,
    scratch: OperandAddr,
    /// Keeps constants alive, and adopted storages with what must be under guard.
    consts: SmallVec<[Arc<BackendStorage>; 2]>,
    adopted: SmallVec<[Arc<RwLock<Storage>>; 1]>,
}

impl fmt::Debug for StepAddrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x?} -> {:x?}", self.inputs, self.outputs)
    }
}

impl RunMemory {
    /// Memory without a chunk.
    pub fn new(device: Arc<dyn Device>, budget: Arc<Budget>) -> RunMemory {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let on_host = device.backend() == crate::BackendId::CPU;
        let maker = ChunkMaker { device, budget };
        RunMemory { id, epoch: 0, maker, on_host, chunks: vec![], grown: vec![], found: SmallVec::new() }
    }

    /// The device whose memory it is.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.maker.device
    }

    /// Changes whenever addresses resolved before are no longer valid.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Bytes of all chunks.
    pub fn n_bytes(&self) -> usize {
        self.chunks.iter().chain(&self.grown).flatten().map(|chunk| chunk.storage.len()).sum()
    }

    /// Makes sure that chunk `index` exists; a chunk is never resized.
    ///
    /// **Errors**: the budget or the device refuses.
    pub fn ensure_chunk(&mut self, index: u32, n_bytes: usize) -> Result<(), OpError> {
        let index = index as usize;
        if self.chunks.len() <= index {
            self.chunks.resize_with(index + 1, || None);
        }
        match &self.chunks[index] {
            Some(chunk) if chunk.storage.len() >= n_bytes => Ok(()),
            Some(_) => Err(internal("a chunk was planned larger than it is")),
            None => {
                self.chunks[index] = Some(self.maker.allocate(n_bytes)?);
                Ok(())
            }
        }
    }

    /// What makes chunks for this memory ahead of its run.
    pub fn maker(&self) -> ChunkMaker {
        self.maker.clone()
    }

    /// True when no chunk beyond the given ones exists.
    pub fn has_only(&self, chunks: &[(u32, usize)]) -> bool {
        self.chunks.iter().flatten().count() == chunks.len()
    }

    /// Takes a chunk that was made ahead as chunk `index`; where that exists already, it is kept.
    pub fn adopt_chunk(&mut self, index: u32, chunk: Chunk) {
        let index = index as usize;
        if self.chunks.len() <= index {
            self.chunks.resize_with(index + 1, || None);
        }
        self.chunks[index].get_or_insert(chunk);
    }

    /// Makes sure that growing buffer `index` holds `n_bytes`, keeping its first `keep` bytes when it moves.
    ///
    /// **Edge cases**: growing doubles, and makes all resolved addresses of this memory stale.
    ///
    /// **Errors**: the budget or the device refuses.
    pub fn ensure_grown(&mut self, index: u32, n_bytes: usize, keep: usize) -> Result<(), OpError> {
        let index = index as usize;
        if self.grown.len() <= index {
            self.grown.resize_with(index + 1, || None);
        }
        let held = self.grown[index].as_ref().map(|chunk| chunk.storage.len());
        if held.is_some_and(|held| held >= n_bytes) {
            return Ok(());
        }
        let larger = self.maker.allocate(n_bytes.max(held.unwrap_or(0).saturating_mul(2)))?;
        if let Some(old) = self.grown[index].as_ref().filter(|_| keep > 0) {
            let addr = |storage: &BackendStorage| OperandAddr { address: storage.address(), n_bytes: keep };
            if keep > old.storage.len() {
                return Err(internal("more bytes to keep than there are"));
            }
            self.copy_addr(addr(&old.storage), addr(&larger.storage))?;
        }
        self.grown[index] = Some(larger);
        self.epoch += 1;
        Ok(())
    }

    fn chunk(chunks: &[Option<Chunk>], index: u32) -> Result<&Chunk, OpError> {
        let chunk = chunks.get(index as usize).and_then(Option::as_ref);
        chunk.ok_or_else(|| internal("a chunk that does not exist"))
    }

    fn locate(&self, loc: &Loc, n_bytes: usize, guards: &Guards<'_>) -> Result<OperandAddr, OpError> {
        let (address, held, offset) = match loc {
            Loc::Arena { chunk, offset } => {
                let storage = &Self::chunk(&self.chunks, *chunk)?.storage;
                (storage.address(), storage.len(), *offset)
            }
            Loc::Grown(index) => {
                let storage = &Self::chunk(&self.grown, *index)?.storage;
                (storage.address(), storage.len(), 0)
            }
            Loc::Const(storage) => (storage.address(), storage.len(), 0),
            Loc::Adopted(storage) => {
                let storage = guards.get(storage).ok_or_else(|| internal("an adopted storage without its guard"))?;
                (storage.backend().address(), storage.backend().len(), 0)
            }
        };
        if offset.checked_add(n_bytes).is_none_or(|end| end > held) {
            return Err(internal("an operand reaches beyond its storage"));
        }
        Ok(OperandAddr { address: address + offset as u64, n_bytes })
    }

    /// Resolves the locations of a step's operands.
    ///
    /// **Errors**: an operand outside its storage or on another device, an output in a constant, or an output or the
    /// scratch overlapping another operand: a broken plan.
    pub fn resolve(
        &self,
        call: &KernelCall,
        inputs: &[Option<Loc>],
        outputs: &[Loc],
        scratch: Option<&Loc>,
        guards: &Guards<'_>,
    ) -> Result<StepAddrs, OpError> {
        if inputs.len() != call.inputs.len() || outputs.len() != call.outputs.len() {
            return Err(internal("a step with more or fewer operands than its kernel"));
        }
        let mut step = StepAddrs {
            memory: self.id,
            epoch: self.epoch,
            inputs: SmallVec::new(),
            outputs: SmallVec::new(),
            scratch: OperandAddr { address: 0, n_bytes: 0 },
            consts: SmallVec::new(),
            adopted: SmallVec::new(),
        };
        let is_host = self.on_host;
        for (loc, spec) in inputs.iter().zip(&call.inputs) {
            let addr = match (loc, spec) {
                (Some(loc), Some(spec)) => {
                    match loc {
                        Loc::Const(storage) if storage.is_host() == is_host => step.consts.push(storage.clone()),
                        Loc::Adopted(storage) => match guards.get(storage) {
                            Some(held) if held.backend().is_host() == is_host => step.adopted.push(storage.clone()),
                            _ => return Err(internal("an adopted storage on another device")),
                        },
                        Loc::Const(_) => return Err(internal("a constant on another device")),
                        Loc::Arena { .. } | Loc::Grown(_) => {}
                    }
                    Some(self.locate(loc, spec.n_bytes(), guards)?)
                }
                (None, None) => None,
                _ => return Err(internal("an operand without a spec")),
            };
            step.inputs.push(addr);
        }
        let writable = |loc: &Loc| matches!(loc, Loc::Arena { .. } | Loc::Grown(_));
        for (loc, spec) in outputs.iter().zip(&call.outputs) {
            if !writable(loc) {
                return Err(internal("an output in a constant"));
            }
            step.outputs.push(self.locate(loc, spec.n_bytes(), guards)?);
        }
        if let Some(loc) = scratch {
            if !writable(loc) {
                return Err(internal("scratch in a constant"));
            }
            step.scratch = self.locate(loc, call.scratch_bytes, guards)?;
        }
        check_disjoint(&step)?;
        Ok(step)
    }

    /// Runs a step's kernel; a panic of the kernel becomes an error.
    ///
    /// **Errors**: what the kernel says; addresses of another memory or an older epoch.
    pub fn launch(
        &mut self,
        call: &KernelCall,
        step: &StepAddrs,
        pool: &Pool,
        guards: &Guards<'_>,
    ) -> Result<Completion, OpError> {
        let same = step.memory == self.id
            && step.epoch == self.epoch
            && step.inputs.len() == call.inputs.len()
            && step.outputs.len() == call.outputs.len();
        let guarded = step.adopted.iter().all(|storage| guards.get(storage).is_some());
        if !same || !guarded {
            return Err(internal("addresses that are not this run's"));
        }
        if call.data_sized {
            self.found.clear();
            self.found.extend(call.outputs.iter().map(|output| output.dims.clone()));
        }
        let (device, found) = (&self.maker.device, &mut self.found);
        let run = || {
            if self.on_host {
                let mut ctx = KernelCtx { call, step, pool, taken: Cell::new(0), found };
                return (call.kernel)(&mut ctx).map(|()| Completion::Ready);
            }
            let (inputs, outputs, scratch) = (&step.inputs[..], &step.outputs[..], step.scratch);
            device.launch(DeviceCall { call, inputs, outputs, scratch, found })
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(result) => result,
            Err(payload) => Err(OpError::new(OpErrorKind::Panic, panic_message(&*payload))),
        }
    }

    /// Final shapes that the last launched data-sized kernel set.
    pub fn found_dims(&self) -> &[Shape] {
        &self.found
    }

    /// Copies host bytes into a value.
    ///
    /// **Errors**: the bytes do not fit; a location that is not writable.
    pub fn write(&mut self, loc: &Loc, from: &[u8]) -> Result<(), OpError> {
        let (chunk, offset) = match loc {
            Loc::Arena { chunk, offset } => (self.chunks.get_mut(*chunk as usize), *offset),
            Loc::Grown(index) => (self.grown.get_mut(*index as usize), 0),
            Loc::Const(_) | Loc::Adopted(_) => return Err(internal("a write into a constant")),
        };
        let chunk = chunk.and_then(Option::as_mut).ok_or_else(|| internal("a chunk that does not exist"))?;
        match self.maker.device.upload(from, &mut chunk.storage, offset)? {
            Completion::Ready => Ok(()),
            Completion::Pending(event) => self.maker.device.wait(event),
        }
    }

    /// Copies a value to host bytes.
    ///
    /// **Errors**: the value has fewer bytes; an adopted storage without its guard.
    pub fn read(&self, loc: &Loc, to: &mut [u8], guards: &Guards<'_>) -> Result<(), OpError> {
        let (storage, offset) = match loc {
            Loc::Arena { chunk, offset } => (&Self::chunk(&self.chunks, *chunk)?.storage, *offset),
            Loc::Grown(index) => (&Self::chunk(&self.grown, *index)?.storage, 0),
            Loc::Const(storage) => (&**storage, 0),
            Loc::Adopted(storage) => {
                let storage = guards.get(storage).ok_or_else(|| internal("an adopted storage without its guard"))?;
                (storage.backend(), 0)
            }
        };
        self.maker.device.download(storage, offset, to)
    }

    /// Copies `n_bytes` of one value to another of this memory, `to_offset` bytes into it.
    ///
    /// **Edge cases**: the two may not overlap, unless they are the same bytes.
    ///
    /// **Errors**: a range outside its storage, or overlapping ranges.
    pub fn copy(
        &mut self,
        from: &Loc,
        to: &Loc,
        to_offset: usize,
        n_bytes: usize,
        guards: &Guards<'_>,
    ) -> Result<(), OpError> {
        if matches!(to, Loc::Const(_) | Loc::Adopted(_)) {
            return Err(internal("a copy into a constant"));
        }
        let whole = to_offset.checked_add(n_bytes).ok_or_else(|| internal("a copy beyond its storage"))?;
        let to = self.locate(to, whole, guards)?;
        let to = OperandAddr { address: to.address + to_offset as u64, n_bytes };
        let from = self.locate(from, n_bytes, guards)?;
        self.copy_addr(from, to)
    }

    /// Copies a value of another memory of the same device into one of this memory.
    ///
    /// **Errors**: as [`RunMemory::copy`].
    pub fn copy_from(
        &mut self,
        other: &RunMemory,
        from: &Loc,
        to: &Loc,
        to_offset: usize,
        n_bytes: usize,
        guards: &Guards<'_>,
    ) -> Result<(), OpError> {
        if !Arc::ptr_eq(&self.maker.device, &other.maker.device) || matches!(to, Loc::Const(_) | Loc::Adopted(_)) {
            return Err(internal("a copy between devices, or into a constant"));
        }
        let whole = to_offset.checked_add(n_bytes).ok_or_else(|| internal("a copy beyond its storage"))?;
        let to = self.locate(to, whole, guards)?;
        let to = OperandAddr { address: to.address + to_offset as u64, n_bytes };
        let from = other.locate(from, n_bytes, guards)?;
        self.copy_addr(from, to)
    }

    fn copy_addr(&self, from: OperandAddr, to: OperandAddr) -> Result<(), OpError> {
        if from == to || from.n_bytes == 0 {
            return Ok(());
        }
        if from.n_bytes != to.n_bytes || overlap(from, to) {
            return Err(internal("a copy between overlapping ranges"));
        }
        if !self.on_host {
            return match self.maker.device.copy(from, to)? {
                Completion::Ready => Ok(()),
                Completion::Pending(event) => self.maker.device.wait(event),
            };
        }
        // SAFETY: both ranges were located inside live storages of the host (callers take them from `locate` or from a
        // chunk just allocated), they do not overlap, and callers hold `&mut` on the memory that is written.
        unsafe {
            std::ptr::copy_nonoverlapping(from.address as *const u8, to.address as *mut u8, from.n_bytes);
        }
        Ok(())
    }
}

impl fmt::Debug for RunMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} chunks, {} bytes", self.chunks.len() + self.grown.len(), self.n_bytes())
    }
}

fn internal(message: &str) -> OpError {
    OpError::new(OpErrorKind::Device, format!("broken plan: {message}"))
}

fn overlap(a: OperandAddr, b: OperandAddr) -> bool {
    let end = |x: OperandAddr| x.address + x.n_bytes as u64;
    a.n_bytes > 0 && b.n_bytes > 0 && a.address < end(b) && b.address < end(a)
}

fn check_disjoint(step: &StepAddrs) -> Result<(), OpError> {
    let written: SmallVec<[OperandAddr; 4]> = step.outputs.iter().copied().chain([step.scratch]).collect();
    for (i, &a) in written.iter().enumerate() {
        let rest = written[i + 1..].iter().copied();
        if rest.chain(step.inputs.iter().flatten().copied()).any(|b| overlap(a, b)) {
            return Err(internal("an output overlaps another operand"));
        }
    }
    Ok(())
}

/// What a caught panic said.
pub(crate) fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("no message"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostStorage, OperandSpec};
    use firstlight_graph::ops::Relu;

    #[test]
    fn buffers_are_zeroed_and_aligned() {
        let buf = HostBuf::zeroed(100).unwrap();
        assert_eq!(buf.address() % ALIGN as u64, 0);
        assert!(buf.as_slice().iter().all(|&byte| byte == 0));
        assert!(HostBuf::zeroed(usize::MAX).is_err());
        assert!(HostBuf::zeroed(0).unwrap().as_slice().is_empty());
    }

    #[derive(Debug)]
    struct Host;

    impl Device for Host {
        fn backend(&self) -> crate::BackendId {
            crate::BackendId::CPU
        }
        fn allocate(&self, n_bytes: usize) -> Result<BackendStorage, OpError> {
            Ok(BackendStorage::Host(HostStorage::Buf(HostBuf::zeroed(n_bytes)?)))
        }
        fn upload(&self, from: &[u8], to: &mut BackendStorage, offset: usize) -> Result<Completion, OpError> {
            to.host_bytes_mut()?[offset..offset + from.len()].copy_from_slice(from);
            Ok(Completion::Ready)
        }
        fn download(&self, from: &BackendStorage, offset: usize, to: &mut [u8]) -> Result<(), OpError> {
            to.copy_from_slice(&from.host_bytes()?[offset..offset + to.len()]);
            Ok(())
        }
        fn copy(&self, _from: OperandAddr, _to: OperandAddr) -> Result<Completion, OpError> {
            Err(OpError::unsupported("host copies go through RunMemory"))
        }
        fn launch(&self, _call: DeviceCall<'_>) -> Result<Completion, OpError> {
            Err(OpError::unsupported("host launches go through RunMemory"))
        }
        fn wait(&self, _event: u64) -> Result<(), OpError> {
            Ok(())
        }
    }

    fn relu_call() -> KernelCall {
        let spec = OperandSpec { dtype: firstlight_tensor::DType::F32, dims: [4].into() };
        KernelCall {
            op: Relu.into(),
            kernel: crate::reference_kernel,
            inputs: SmallVec::from_iter([Some(spec.clone())]),
            outputs: SmallVec::from_iter([spec]),
            data_sized: false,
            scratch_bytes: 0,
        }
    }

    #[test]
    fn a_step_runs_and_overlaps_and_foreign_addresses_are_refused() {
        let pool = Pool::new(1).unwrap();
        let guards = Guards::default();
        let mut memory = RunMemory::new(Arc::new(Host), Budget::new(None));
        memory.ensure_chunk(0, 256).unwrap();
        let at = |offset| Loc::Arena { chunk: 0, offset };
        memory.write(&at(0), bytemuck::cast_slice(&[-1f32, 2., -3., 4.])).unwrap();
        let call = relu_call();
        let step = memory.resolve(&call, &[Some(at(0))], &[at(64)], None, &guards).unwrap();
        assert_eq!(memory.launch(&call, &step, &pool, &guards).unwrap(), Completion::Ready);
        let mut out = [0f32; 4];
        memory.read(&at(64), bytemuck::cast_slice_mut(&mut out), &guards).unwrap();
        assert_eq!(out, [0., 2., 0., 4.]);
        assert!(memory.resolve(&call, &[Some(at(0))], &[at(8)], None, &guards).is_err(), "overlap");
        assert!(memory.resolve(&call, &[Some(at(0))], &[at(248)], None, &guards).is_err(), "beyond the chunk");
        let mut other = RunMemory::new(Arc::new(Host), Budget::new(None));
        assert!(other.launch(&call, &step, &pool, &guards).is_err(), "another memory's addresses");
        memory.ensure_grown(0, 64, 0).unwrap();
        assert!(memory.launch(&call, &step, &pool, &guards).is_err(), "an older epoch");
    }

    #[test]
    fn lanes_are_exclusive() {
        let pool = Pool::new(4).unwrap();
        let mut scratch = vec![0u32; 4 * 8];
        let total = AtomicU64::new(0);
        for_tiles_with_scratch(&pool, 1000, &mut scratch, 8, &|i, lane| {
            lane.fill(i as u32);
            std::thread::yield_now();
            assert!(lane.iter().all(|&x| x == i as u32));
            total.fetch_add(i as u64, Ordering::Relaxed);
        })
        .unwrap();
        assert_eq!(total.into_inner(), 999 * 1000 / 2);
        assert!(for_tiles_with_scratch(&pool, 1000, &mut scratch, 9, &|_, _| {}).is_err());
        let mut data = vec![0usize; 1001];
        for_chunks_mut(&pool, &mut data, 100, &|i, chunk| chunk.fill(i)).unwrap();
        assert!(data.iter().enumerate().all(|(at, &i)| i == at / 100));
    }

    #[test]
    fn a_panicking_kernel_is_an_error() {
        let pool = Pool::new(1).unwrap();
        let guards = Guards::default();
        let mut memory = RunMemory::new(Arc::new(Host), Budget::new(None));
        memory.ensure_chunk(0, 256).unwrap();
        let at = |offset| Loc::Arena { chunk: 0, offset };
        let call = KernelCall { kernel: |_| panic!("boom"), ..relu_call() };
        let step = memory.resolve(&call, &[Some(at(0))], &[at(64)], None, &guards).unwrap();
        let error = memory.launch(&call, &step, &pool, &guards).unwrap_err();
        assert_eq!((error.kind(), error.message()), (&OpErrorKind::Panic, "panicked: boom"));
    }
}
