use super::*;
use crate::CpuDevice;
use firstlight_backend::{Budget, Completion, Guards, KernelCall, KernelQuery, Loc, OperandSpec, Pool, RunMemory};
use firstlight_graph::ops::MatMul;
use firstlight_graph::{Op, RefCtx};
use firstlight_tensor::{Element, Tensor, TensorViewMut};
use std::sync::Arc;

/// Values that round when they are summed, with no pattern.
pub(in crate::kernels) fn noise(dims: &[usize], seed: u32) -> Tensor {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..dims.iter().product()).map(|_| next()).collect();
    Tensor::from_slice(dims, &values).unwrap()
}

/// `x` as another element type, scaled up for integers.
pub(in crate::kernels) fn converted<T: Element>(x: &Tensor, to: impl Fn(f32) -> T) -> Tensor {
    let values: Vec<T> = x.values::<f32>().unwrap().iter().map(|x| to(*x)).collect();
    Tensor::from_slice(x.shape().clone(), &values).unwrap()
}

/// Runs a row with 1 to 3 threads, on inputs that lie at odd addresses, and demands the reference's bits.
pub(in crate::kernels) fn check(row: &KernelBinding, op: impl Into<Op>, inputs: &[Option<Tensor>], out_dims: &[usize]) {
    let op = op.into();
    let dtype = inputs[0].as_ref().unwrap().dtype();
    let specs = inputs.iter().map(|x| x.as_ref().map(|x| OperandSpec { dtype: x.dtype(), dims: x.shape().clone() }));
    let inputs_specs: SmallVec<[Option<OperandSpec>; 4]> = specs.collect();
    let out = OperandSpec { dtype, dims: out_dims.into() };
    let what = format!("{op:?} of {inputs_specs:?}");

    let mut want = Tensor::zeros(dtype, out_dims).unwrap().as_bytes().to_vec();
    if !want.is_empty() {
        let views = inputs.iter().map(|x| x.as_ref().map(Tensor::view)).collect();
        let outputs = SmallVec::from_iter([TensorViewMut::new(dtype, out_dims.into(), &mut want)]);
        op.def().reference(&mut RefCtx::new(views, outputs)).unwrap();
    }

    for threads in 1..=3 {
        let outputs = [out.clone()];
        let query = KernelQuery { op: &op, inputs: &inputs_specs, outputs: &outputs, threads };
        assert!((row.accepts)(&query), "{what}");
        let scratch_bytes = (row.scratch_bytes)(&query);
        let call = KernelCall {
            op: op.clone(),
            kernel: row.kernel,
            inputs: inputs_specs.clone(),
            outputs: outputs.into_iter().collect(),
            data_sized: false,
            scratch_bytes,
        };
        let (pool, guards) = (Pool::new(threads).unwrap(), Guards::default());
        let mut memory = RunMemory::new(Arc::new(CpuDevice), Budget::new(None));
        let mut end = 1;
        let mut place = |n_bytes: usize, align: usize| {
            let offset = usize::next_multiple_of(end, align) + usize::from(align == 1);
            end = offset + n_bytes;
            Loc::Arena { chunk: 0, offset }
        };
        let locs: Vec<Option<Loc>> = inputs.iter().map(|x| x.as_ref().map(|x| place(x.as_bytes().len(), 1))).collect();
        let to = place(want.len(), 64);
        let scratch = place(scratch_bytes, 64);
        memory.ensure_chunk(0, end).unwrap();
        for (loc, x) in locs.iter().zip(inputs) {
            if let (Some(loc), Some(x)) = (loc, x) {
                memory.write(loc, x.as_bytes()).unwrap();
            }
        }
        let scratch = (scratch_bytes > 0).then_some(&scratch);
        let step = memory.resolve(&call, &locs, std::slice::from_ref(&to), scratch, &guards).unwrap();
        let done = memory.launch(&call, &step, &pool, &guards).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(done, Completion::Ready);
        let mut got = vec![0; want.len()];
        memory.read(&to, &mut got, &guards).unwrap();
        let differ = got.iter().zip(&want).position(|(got, want)| got != want);
        assert!(differ.is_none(), "{what}, {threads} threads: byte {differ:?} of {}", want.len());
    }
}

pub(in crate::kernels) fn row_of(rows: &'static [KernelBinding], dtype: DType) -> &'static KernelBinding {
    rows.iter().find(|row| row.types == [dtype]).unwrap()
}

/// Shapes of A, B and the result.
const SHAPES: &[(&[usize], &[usize], &[usize])] = &[
    (&[3, 5], &[5, 7], &[3, 7]),
    (&[5], &[5, 70], &[70]),
    (&[50, 33], &[33], &[50]),
    (&[4], &[4], &[]),
    (&[1, 300], &[300, 129], &[1, 129]),
    (&[130, 40], &[40, 200], &[130, 200]),
    (&[200, 70], &[70, 1000], &[200, 1000]),
    (&[2, 3, 20, 16], &[2, 3, 16, 20], &[2, 3, 20, 20]),
    (&[2, 1, 9, 4], &[3, 4, 17], &[2, 3, 9, 17]),
    (&[3, 11, 8], &[8, 50], &[3, 11, 50]),
    (&[3, 11, 8], &[1, 8, 50], &[3, 11, 50]),
    (&[11, 8], &[4, 8, 50], &[4, 11, 50]),
    (&[2, 5, 6], &[6], &[2, 5]),
    (&[6], &[2, 6, 5], &[2, 5]),
    (&[2, 0], &[0, 3], &[2, 3]),
    (&[0, 2, 2], &[2, 2], &[0, 2, 2]),
];

#[test]
fn products_have_the_bits_of_the_reference() {
    let swapped = |dims: &[usize]| match dims {
        [lead @ .., k, n] => Some([lead, &[*n, *k]].concat()),
        _ => None,
    };
    let as_they_are = SHAPES.iter().map(|(a, b, out)| (a, b.to_vec(), out, false));
    let transposed = SHAPES.iter().filter_map(|(a, b, out)| Some((a, swapped(b)?, out, true)));
    for (a, b, out, transpose_b) in as_they_are.chain(transposed) {
        let (a, b) = (noise(a, 1), noise(&b, 2));
        let op = MatMul { transpose_b };
        let on = |dtype, a: Tensor, b: Tensor| check(row_of(BINDINGS, dtype), op.clone(), &[Some(a), Some(b)], out);
        on(DType::F32, a.clone(), b.clone());
        if a.n_elems() < 5_000 {
            on(DType::F64, converted(&a, f64::from), converted(&b, f64::from));
            on(DType::F16, converted(&a, f16::from_f32), converted(&b, f16::from_f32));
            on(DType::BF16, converted(&a, bf16::from_f32), converted(&b, bf16::from_f32));
            on(DType::I32, converted(&a, |x| (x * 2e9) as i32), converted(&b, |x| (x * 2e9) as i32));
            on(DType::I64, converted(&a, |x| (x * 9e18) as i64), converted(&b, |x| (x * 9e18) as i64));
            on(DType::U32, converted(&a, |x| (x * 4e9) as u32), converted(&b, |x| (x * 4e9) as u32));
            on(DType::U64, converted(&a, |x| (x * 1e19) as u64), converted(&b, |x| (x * 1e19) as u64));
        }
    }
}
