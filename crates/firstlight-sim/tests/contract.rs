//! The contract between a `RunMemory` and a device that is not the host.

use firstlight_backend::{
    BackendId, BackendStorage, Budget, Completion, Device, DeviceCall, Guards, HostBuf, HostStorage,
    KernelBindingTable, KernelCall, Loc, OperandAddr, OperandSpec, Pool, RunMemory, StepAddrs, Storage,
};
use firstlight_graph::ops::{Add, NonZero, Relu};
use firstlight_graph::{Op, OpError, OpErrorKind};
use firstlight_sim::{POISON, SIM, SimCall, SimDevice, SimOptions, reference_row};
use firstlight_tensor::DType;
use smallvec::SmallVec;
use std::sync::{Arc, RwLock};

const N: usize = 4;

/// A device, and memory on it of one chunk of 256 bytes.
struct Fixture {
    device: SimDevice,
    memory: RunMemory,
    pool: Pool,
}

impl Fixture {
    fn new(options: SimOptions) -> Fixture {
        let device = SimDevice::new(options);
        let mut memory = RunMemory::new(Arc::new(device.clone()), Budget::new(None));
        memory.ensure_chunk(0, 256).unwrap();
        Fixture { device, memory, pool: Pool::new(1).unwrap() }
    }

    fn eager() -> Fixture {
        Fixture::new(SimOptions::default())
    }

    fn deferred() -> Fixture {
        Fixture::new(SimOptions { deferred: true, ..SimOptions::default() })
    }

    fn write(&mut self, offset: usize, values: &[f32; N]) {
        self.memory.write(&at(offset), bytemuck::cast_slice(values)).unwrap();
    }

    fn read(&self, offset: usize) -> [f32; N] {
        let mut values = [0f32; N];
        self.memory.read(&at(offset), bytemuck::cast_slice_mut(&mut values), &Guards::default()).unwrap();
        values
    }

    fn resolve(&self, call: &KernelCall, inputs: &[usize], output: usize) -> StepAddrs {
        let inputs: Vec<_> = inputs.iter().map(|&offset| Some(at(offset))).collect();
        self.memory.resolve(call, &inputs, &[at(output)], None, &Guards::default()).unwrap()
    }

    fn launch(&mut self, call: &KernelCall, inputs: &[usize], output: usize) -> Result<Completion, OpError> {
        let step = self.resolve(call, inputs, output);
        self.memory.launch(call, &step, &self.pool, &Guards::default())
    }
}

fn at(offset: usize) -> Loc {
    Loc::Arena { chunk: 0, offset }
}

fn call(op: impl Into<Op>, n_inputs: usize) -> KernelCall {
    let spec = OperandSpec { dtype: DType::F32, dims: [N].into() };
    let table = KernelBindingTable::finalize(&[], &[reference_row()]).unwrap();
    KernelCall {
        op: op.into(),
        kernel: table.reference(SIM).unwrap(),
        inputs: SmallVec::from_elem(Some(spec.clone()), n_inputs),
        outputs: SmallVec::from_iter([spec]),
        data_sized: false,
        scratch_bytes: 0,
    }
}

fn relu() -> KernelCall {
    call(Relu, 1)
}

fn event(completion: Completion) -> u64 {
    match completion {
        Completion::Pending(event) => event,
        Completion::Ready => panic!("done before it was waited for"),
    }
}

/// True when every value is poison (NaN).
fn is_poison(values: [f32; N]) -> bool {
    values.iter().all(|value| value.is_nan())
}

#[test]
fn a_step_runs_by_its_reference() {
    let mut sim = Fixture::eager();
    sim.write(0, &[-1., 2., -3., 4.]);
    assert_eq!(sim.launch(&relu(), &[0], 64).unwrap(), Completion::Ready);
    assert_eq!(sim.launch(&call(Add, 2), &[0, 64], 128).unwrap(), Completion::Ready);
    assert_eq!(sim.read(128), [-1., 4., -3., 8.]);
}

#[test]
fn an_omitted_input_is_omitted() {
    let mut sim = Fixture::eager();
    let call = KernelCall { inputs: SmallVec::from_iter([None]), ..relu() };
    let step = sim.memory.resolve(&call, &[None], &[at(64)], None, &Guards::default()).unwrap();
    let error = sim.memory.launch(&call, &step, &sim.pool, &Guards::default()).unwrap_err();
    assert_eq!(error.kind(), &OpErrorKind::Arity);
}

#[test]
fn a_data_sized_step_gives_its_final_shapes() {
    for mut sim in [Fixture::eager(), Fixture::deferred()] {
        sim.write(0, &[-1., 2., -3., 4.]);
        let _later = sim.launch(&relu(), &[0], 64).unwrap();
        let call = KernelCall { data_sized: true, ..relu() };
        assert_eq!(sim.launch(&call, &[64], 128).unwrap(), Completion::Ready, "its shapes are asked for");
        assert_eq!(sim.memory.found_dims(), [[N].into()]);
        assert_eq!(sim.read(128), [0., 2., 0., 4.]);
    }
}

#[test]
fn a_shape_that_data_determines_is_found() {
    for mut sim in [Fixture::eager(), Fixture::deferred()] {
        sim.write(0, &[0., 2., 0., 4.]);
        let bound = OperandSpec { dtype: DType::I64, dims: [1, N].into() };
        let call = KernelCall { outputs: SmallVec::from_iter([bound]), data_sized: true, ..call(NonZero, 1) };
        assert_eq!(sim.launch(&call, &[0], 64).unwrap(), Completion::Ready);
        assert_eq!(sim.memory.found_dims(), [[1, 2].into()]);
        let mut places = [0i64; 2];
        sim.memory.read(&at(64), bytemuck::cast_slice_mut(&mut places), &Guards::default()).unwrap();
        assert_eq!(places, [1, 3]);
    }
}

#[test]
fn the_host_cannot_reach_device_memory() {
    let mut storage = Storage::new(DType::F32, SimDevice::new(SimOptions::default()).allocate(64).unwrap());
    assert!(!storage.backend().is_host());
    let error = storage.host_bytes().unwrap_err();
    assert!(error.message().contains("host access to bytes of backend sim"), "{error}");
    assert!(storage.backend_mut().host_bytes_mut().is_err());
    let address = storage.backend().address();
    let sign_extended = ((address as i64) << 7 >> 7) as u64;
    assert_ne!(address, sign_extended, "an address that no processor of 57 address bits can have");
    assert_eq!(address % 64, 0);
}

#[test]
fn a_step_launched_on_the_host_is_refused() {
    #[derive(Debug)]
    struct Host;
    impl Device for Host {
        fn backend(&self) -> BackendId {
            BackendId::CPU
        }
        fn allocate(&self, n_bytes: usize) -> Result<BackendStorage, OpError> {
            Ok(BackendStorage::Host(HostStorage::Buf(HostBuf::zeroed(n_bytes)?)))
        }
        fn upload(&self, _: &[u8], _: &mut BackendStorage, _: usize) -> Result<Completion, OpError> {
            Err(OpError::unsupported("no upload"))
        }
        fn download(&self, _: &BackendStorage, _: usize, _: &mut [u8]) -> Result<(), OpError> {
            Err(OpError::unsupported("no download"))
        }
        fn copy(&self, _: OperandAddr, _: OperandAddr) -> Result<Completion, OpError> {
            Err(OpError::unsupported("no copy"))
        }
        fn launch(&self, _: DeviceCall<'_>) -> Result<Completion, OpError> {
            Err(OpError::unsupported("no launch"))
        }
        fn wait(&self, _: u64) -> Result<(), OpError> {
            Ok(())
        }
    }
    let mut memory = RunMemory::new(Arc::new(Host), Budget::new(None));
    memory.ensure_chunk(0, 256).unwrap();
    let (call, guards) = (relu(), Guards::default());
    let step = memory.resolve(&call, &[Some(at(0))], &[at(64)], None, &guards).unwrap();
    let error = memory.launch(&call, &step, &Pool::new(1).unwrap(), &guards).unwrap_err();
    assert_eq!(error.message(), "Relu was planned for sim and launched on the host");
}

#[test]
fn constants_have_to_be_uploaded_first() {
    let mut sim = Fixture::eager();
    let (call, guards) = (relu(), Guards::default());
    let host = BackendStorage::Host(HostStorage::Buf(HostBuf::zeroed(16).unwrap()));
    let on_host = [Some(Loc::Const(Arc::new(host)))];
    assert!(sim.memory.resolve(&call, &on_host, &[at(0)], None, &guards).is_err());
    let mut constant = sim.device.allocate(16).unwrap();
    let bytes = bytemuck::cast_slice(&[-1f32, 2., -3., 4.]);
    assert_eq!(sim.device.upload(bytes, &mut constant, 0).unwrap(), Completion::Ready);
    let on_device = [Some(Loc::Const(Arc::new(constant)))];
    let step = sim.memory.resolve(&call, &on_device, &[at(0)], None, &guards).unwrap();
    assert_eq!(sim.memory.launch(&call, &step, &sim.pool, &guards).unwrap(), Completion::Ready);
    assert_eq!(sim.read(0), [0., 2., 0., 4.]);
}

#[test]
fn adopted_storage_is_read_under_its_guard() {
    let mut sim = Fixture::eager();
    let mut fed = Storage::new(DType::F32, sim.device.allocate(16).unwrap());
    let bytes = bytemuck::cast_slice(&[-1f32, 2., -3., 4.]);
    assert_eq!(sim.device.upload(bytes, fed.backend_mut(), 0).unwrap(), Completion::Ready);
    let fed = Arc::new(RwLock::new(fed));
    let guards = Guards::take([&fed]).unwrap();
    let (call, loc) = (relu(), [Some(Loc::Adopted(fed.clone()))]);
    let step = sim.memory.resolve(&call, &loc, &[at(0)], None, &guards).unwrap();
    assert_eq!(sim.memory.launch(&call, &step, &sim.pool, &guards).unwrap(), Completion::Ready);
    assert_eq!(sim.read(0), [0., 2., 0., 4.]);
    assert!(sim.memory.launch(&call, &step, &sim.pool, &Guards::default()).is_err());
}

#[test]
fn memory_of_another_device_is_refused() {
    let (first, second) =
        (SimDevice::new(SimOptions::default()), SimDevice::new(SimOptions { ordinal: 1, ..SimOptions::default() }));
    let mut storage = first.allocate(64).unwrap();
    let error = second.upload(&[0; 4], &mut storage, 0).unwrap_err();
    assert!(error.message().contains("is not memory of sim:1"), "{error}");
    assert!(second.download(&storage, 0, &mut [0; 4]).is_err());
    let mut host = BackendStorage::Host(HostStorage::Buf(HostBuf::zeroed(64).unwrap()));
    assert!(first.upload(&[0; 4], &mut host, 0).is_err());
    let addr = |storage: &BackendStorage| OperandAddr { address: storage.address(), n_bytes: 4 };
    let own = second.allocate(64).unwrap();
    let error = second.copy(addr(&storage), addr(&own)).unwrap_err();
    assert!(error.message().contains("in no allocation of this device"), "{error}");
}

#[test]
fn fresh_memory_is_poison() {
    let sim = Fixture::eager();
    assert!(is_poison(sim.read(0)));
    assert!(f32::from_bits(u32::from_le_bytes([POISON[0], POISON[1], POISON[0], POISON[1]])).is_nan());
    let mut bytes = [0; 7];
    sim.device.download(&sim.device.allocate(7).unwrap(), 0, &mut bytes).unwrap();
    assert_eq!(bytes, [0xFD, 0xFF, 0xFD, 0xFF, 0xFD, 0xFF, 0xFD]);
}

#[test]
fn accesses_beyond_an_allocation_are_errors() {
    let device = SimDevice::new(SimOptions::default());
    let mut storage = device.allocate(64).unwrap();
    let error = device.upload(&[0; 8], &mut storage, 60).unwrap_err();
    assert!(error.message().contains("reach beyond the allocation of 64 bytes"), "{error}");
    assert!(device.download(&storage, 64, &mut [0; 1]).is_err());
    assert!(device.download(&storage, usize::MAX, &mut [0; 1]).is_err());
    assert!(device.download(&storage, 0, &mut [0; 64]).is_ok());
    let other = device.allocate(64).unwrap();
    let addr = |offset, n_bytes| OperandAddr { address: storage.address() + offset, n_bytes };
    let to = OperandAddr { address: other.address(), n_bytes: 8 };
    assert!(device.copy(addr(60, 8), to).is_err());
    assert!(device.copy(addr(64, 8), to).is_err(), "the gap behind it");
    assert!(device.copy(addr(8, 16), to).is_err(), "lengths that differ");
    assert!(device.copy(addr(56, 8), to).is_ok());
}

#[test]
fn use_after_free_names_the_address() {
    let device = SimDevice::new(SimOptions::default());
    let (freed, kept) = (device.allocate(64).unwrap(), device.allocate(64).unwrap());
    let from = OperandAddr { address: freed.address() + 8, n_bytes: 16 };
    let to = OperandAddr { address: kept.address(), n_bytes: 16 };
    assert_eq!(device.copy(from, to).unwrap(), Completion::Ready);
    drop(freed);
    let message = device.copy(from, to).unwrap_err().message().to_owned();
    assert!(message.contains(&format!("{:#x}", from.address)) && message.ends_with("which was freed"), "{message}");
    let (call, inputs, outputs) = (relu(), [Some(from)], [to]);
    let scratch = OperandAddr { address: 0, n_bytes: 0 };
    let launch = DeviceCall { call: &call, inputs: &inputs, outputs: &outputs, scratch, found: &mut [] };
    assert!(device.launch(launch).unwrap_err().message().ends_with("which was freed"));
    let inputs = [Some(to)];
    let launch = DeviceCall { call: &call, inputs: &inputs, outputs: &[from], scratch, found: &mut [] };
    assert!(device.launch(launch).unwrap_err().message().ends_with("which was freed"));
}

#[test]
fn a_broken_launch_is_refused() {
    let sim = Fixture::eager();
    let call = KernelCall { scratch_bytes: 64, ..relu() };
    let storage = sim.device.allocate(256).unwrap();
    let addr = |offset, n_bytes| OperandAddr { address: storage.address() + offset, n_bytes };
    let launch = |inputs: &[Option<OperandAddr>], outputs: &[OperandAddr], scratch: OperandAddr| {
        sim.device.launch(DeviceCall { call: &call, inputs, outputs, scratch, found: &mut [] })
    };
    assert!(launch(&[Some(addr(0, 16))], &[addr(64, 16)], addr(128, 64)).is_ok());
    assert!(launch(&[Some(addr(0, 12))], &[addr(64, 16)], addr(128, 64)).is_err(), "too short an input");
    assert!(launch(&[None], &[addr(64, 16)], addr(128, 64)).is_err(), "an input without an address");
    assert!(launch(&[], &[addr(64, 16)], addr(128, 64)).is_err(), "too few inputs");
    assert!(launch(&[Some(addr(0, 16))], &[addr(64, 16)], addr(128, 32)).is_err(), "too little scratch");
    assert!(launch(&[Some(addr(0, 16))], &[addr(64, 16)], addr(224, 64)).is_err(), "scratch beyond its allocation");
}

#[test]
fn the_budget_refuses_with_figures_and_gets_freed_bytes_back() {
    let device = SimDevice::new(SimOptions { limit_bytes: 128, ..SimOptions::default() });
    let held = device.allocate(100).unwrap();
    let error = device.allocate(50).unwrap_err();
    assert_eq!(error.message(), "device memory: 50 bytes asked for, 100 of 128 in use");
    assert!(device.allocate(usize::MAX).is_err());
    drop(held);
    let second = device.allocate(128).unwrap();
    let counters = device.counters();
    assert_eq!((counters.n_allocations, counters.n_frees), (2, 1));
    assert_eq!((counters.used_bytes, counters.peak_bytes), (128, 128));
    drop(second);
    let mut memory = RunMemory::new(Arc::new(device.clone()), Budget::new(None));
    assert!(memory.ensure_chunk(0, 200).is_err());
    memory.ensure_chunk(0, 128).unwrap();
    drop(memory);
    assert_eq!(device.counters().used_bytes, 0);
}

#[test]
fn copies_and_growth_stay_on_the_device() {
    let mut sim = Fixture::eager();
    sim.write(0, &[1., 2., 3., 4.]);
    let guards = Guards::default();
    sim.memory.ensure_grown(0, 16, 0).unwrap();
    sim.memory.copy(&at(0), &Loc::Grown(0), 0, 16, &guards).unwrap();
    let epoch = sim.memory.epoch();
    sim.memory.ensure_grown(0, 32, 16).unwrap();
    assert_ne!(sim.memory.epoch(), epoch);
    sim.memory.copy(&Loc::Grown(0), &at(64), 0, 16, &guards).unwrap();
    assert_eq!(sim.read(64), [1., 2., 3., 4.]);
    assert!(sim.memory.copy(&at(0), &at(8), 0, 16, &guards).is_err(), "overlap");
    let counters = sim.device.counters();
    assert_eq!((counters.n_copies, counters.copied_bytes), (3, 48));
    assert_eq!((counters.n_uploads, counters.uploaded_bytes), (1, 16));
    assert_eq!((counters.n_downloads, counters.downloaded_bytes), (1, 16));
}

#[test]
fn every_call_can_be_made_to_fail_once() {
    let mut sim = Fixture::eager();
    let guards = Guards::default();
    type Run = fn(&mut Fixture) -> Result<(), OpError>;
    let cases: [(SimCall, Run); 5] = [
        (SimCall::Allocate, |sim| sim.device.allocate(16).map(drop)),
        (SimCall::Upload, |sim| sim.memory.write(&at(0), &[0; 16])),
        (SimCall::Download, |sim| sim.memory.read(&at(0), &mut [0; 16], &Guards::default())),
        (SimCall::Copy, |sim| sim.memory.copy(&at(0), &at(64), 0, 16, &Guards::default())),
        (SimCall::Launch, |sim| sim.launch(&relu(), &[0], 64).map(|done| assert_eq!(done, Completion::Ready))),
    ];
    for (at_call, run) in cases {
        sim.device.fail_nth(at_call, 2, format!("no {at_call:?}"));
        for (other, run) in cases {
            if other != at_call {
                run(&mut sim).unwrap();
            }
        }
        run(&mut sim).unwrap();
        run(&mut sim).unwrap();
        let error = run(&mut sim).unwrap_err();
        assert_eq!((error.kind(), error.message()), (&OpErrorKind::Device, format!("no {at_call:?}").as_str()));
        run(&mut sim).unwrap();
    }
    sim.device.fail_nth(SimCall::Copy, 0, "never");
    sim.device.clear_faults();
    sim.memory.copy(&at(0), &at(64), 0, 16, &guards).unwrap();
}

#[test]
fn a_failed_launch_writes_nothing_and_is_not_counted() {
    let mut sim = Fixture::eager();
    sim.write(0, &[1.; N]);
    sim.device.fail_nth(SimCall::Launch, 0, "no");
    assert!(sim.launch(&relu(), &[0], 64).is_err());
    assert!(is_poison(sim.read(64)));
    assert_eq!(sim.device.counters().n_launches, 0);
}

#[test]
fn a_panicking_kernel_is_an_error_and_the_device_goes_on() {
    let mut sim = Fixture::eager();
    sim.write(0, &[1.; N]);
    sim.device.panic_nth_launch(1, "boom");
    assert!(sim.launch(&relu(), &[0], 64).is_ok());
    let error = sim.launch(&relu(), &[0], 64).unwrap_err();
    assert_eq!((error.kind(), error.message()), (&OpErrorKind::Panic, "panicked: boom"));
    assert!(sim.launch(&relu(), &[0], 64).is_ok());
    assert_eq!(sim.device.counters().n_launches, 2);
}

#[test]
fn deferred_work_is_done_in_order_when_it_is_waited_for() {
    let mut sim = Fixture::deferred();
    sim.write(0, &[-1., 2., -3., 4.]);
    let first = event(sim.launch(&relu(), &[0], 64).unwrap());
    let second = event(sim.launch(&call(Add, 2), &[0, 64], 128).unwrap());
    assert!(is_poison(sim.read(128)), "nobody waited");
    sim.device.wait(first).unwrap();
    assert_eq!(sim.read(64), [0., 2., 0., 4.]);
    assert!(is_poison(sim.read(128)), "nobody waited for the second");
    sim.device.wait(second).unwrap();
    assert_eq!(sim.read(128), [-1., 4., -3., 8.]);
    sim.device.wait(first).unwrap();
    assert!(sim.device.wait(second + 1).is_err(), "an event that nobody named");
}

#[test]
fn a_deferred_copy_waits_for_the_launch_before_it() {
    let mut sim = Fixture::deferred();
    sim.write(0, &[-1., 2., -3., 4.]);
    let _not_awaited = sim.launch(&relu(), &[0], 64).unwrap();
    sim.memory.copy(&at(64), &at(128), 0, 16, &Guards::default()).unwrap();
    assert_eq!(sim.read(128), [0., 2., 0., 4.]);
}

#[test]
fn deferred_work_that_fails_takes_what_is_behind_it_along() {
    let mut sim = Fixture::deferred();
    sim.write(0, &[1.; N]);
    sim.device.panic_nth_launch(1, "boom");
    let events: Vec<u64> = (0..3).map(|i| event(sim.launch(&relu(), &[64 * i], 64 * (i + 1)).unwrap())).collect();
    let error = sim.device.wait(events[2]).unwrap_err();
    assert_eq!((error.kind(), error.message()), (&OpErrorKind::Panic, "panicked: boom"));
    assert_eq!(sim.device.wait(events[1]).unwrap_err(), error);
    sim.device.wait(events[0]).unwrap();
    assert_eq!(sim.read(64), [1.; N]);
    assert!(is_poison(sim.read(128)) && is_poison(sim.read(192)));
    let again = event(sim.launch(&relu(), &[64], 128).unwrap());
    sim.device.wait(again).unwrap();
    assert_eq!(sim.read(128), [1.; N]);
}

#[test]
fn memory_freed_before_its_work_is_done_is_found() {
    let sim = Fixture::deferred();
    let (freed, kept) = (sim.device.allocate(64).unwrap(), sim.device.allocate(64).unwrap());
    let addr = |storage: &BackendStorage| OperandAddr { address: storage.address(), n_bytes: 16 };
    let event = event(sim.device.copy(addr(&freed), addr(&kept)).unwrap());
    drop(freed);
    assert!(sim.device.wait(event).unwrap_err().message().ends_with("which was freed"));
}

#[test]
fn many_threads_share_a_device() {
    let device = SimDevice::new(SimOptions::default());
    std::thread::scope(|scope| {
        for i in 0..4 {
            let device = device.clone();
            scope.spawn(move || {
                let mut memory = RunMemory::new(Arc::new(device), Budget::new(None));
                memory.ensure_chunk(0, 256).unwrap();
                let (pool, guards, call) = (Pool::new(1).unwrap(), Guards::default(), call(Add, 2));
                memory.write(&at(0), bytemuck::cast_slice(&[i as f32; N])).unwrap();
                let step = memory.resolve(&call, &[Some(at(0)), Some(at(0))], &[at(64)], None, &guards).unwrap();
                for _ in 0..50 {
                    assert_eq!(memory.launch(&call, &step, &pool, &guards).unwrap(), Completion::Ready);
                }
                let mut values = [0f32; N];
                memory.read(&at(64), bytemuck::cast_slice_mut(&mut values), &guards).unwrap();
                assert_eq!(values, [2. * i as f32; N]);
            });
        }
    });
    let counters = device.counters();
    assert_eq!((counters.n_launches, counters.used_bytes, counters.n_frees), (200, 0, 4));
}
