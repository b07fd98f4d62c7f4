//! What holds of every op whatever its inputs: inference and reference agree, and bad inputs are errors.

use firstlight_graph::{
    Arity, Case, OpError, OpKind, OutInfo, RefCtx, ValueInfo, infer_known, infer_symbolic, run_reference,
};
use firstlight_tensor::{DType, Dim, Layout, OwnedBytes, Shape, SymShape, Tensor, TensorView, TensorViewMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn cases() -> impl Iterator<Item = (String, Case)> {
    let named = |(kind, case): (&OpKind, Case)| (format!("{} case {:?}", kind.name(), case.name), case);
    OpKind::ALL.iter().flat_map(|kind| (kind.info().cases)().into_iter().map(move |case| (kind, case))).map(named)
}

fn infos(case: &Case) -> Vec<Option<ValueInfo>> {
    let info = |tensor: &Tensor| ValueInfo {
        dtype: tensor.dtype(),
        dims: SymShape::from(tensor.shape()),
        value: Some(tensor.clone()),
    };
    case.inputs.iter().map(|input| input.as_ref().map(info)).collect()
}

fn views(case: &Case) -> Vec<Option<TensorView<'_>>> {
    case.inputs.iter().map(|input| input.as_ref().map(Tensor::view)).collect()
}

/// Inference of the case with some things about its inputs not known.
fn check_specialises(context: &str, case: &Case, forget: impl Fn(&mut ValueInfo, usize)) -> bool {
    let known = infer_known(&case.op, &infos(case), case.outputs.len()).unwrap();
    let mut vague = infos(case);
    for (i, info) in vague.iter_mut().enumerate() {
        if let Some(info) = info {
            forget(info, i);
        }
    }
    let outputs = infer_symbolic(&case.op, &vague, case.outputs.len());
    let Some(outputs) = outputs.unwrap_or_else(|error| panic!("{context}: {error}, of {vague:?}")) else {
        return false;
    };
    for (vague, known) in outputs.iter().zip(&known) {
        assert_eq!((vague.dtype, vague.data_sized), (known.dtype, known.data_sized), "{context}");
        assert_eq!(vague.dims.rank(), known.dims.rank(), "{context}");
        for (vague, known) in vague.dims.iter().zip(known.dims.iter()) {
            let fits = match vague {
                Dim::Known(_) => vague == known,
                // Names are made of sizes below.
                Dim::Named(name) => Some(name.parse().unwrap()) == known.known(),
                Dim::Unknown => true,
            };
            assert!(fits, "{context}: {vague} where all is known gives {known}");
        }
        assert!(vague.value.is_none() || vague.value == known.value, "{context}");
    }
    true
}

#[test]
fn inference_with_symbols_specialises_to_inference_of_sizes() {
    let name = |dim: &mut Dim| *dim = Dim::Named(dim.known().unwrap().to_string().into());
    let forget = |dim: &mut Dim| *dim = Dim::Unknown;
    let mut n_told = 0;
    for (context, case) in cases() {
        for keep_value in [true, false] {
            for change in [&name as &dyn Fn(&mut Dim), &forget] {
                n_told += usize::from(check_specialises(&context, &case, |info, _| {
                    info.dims.0.iter_mut().for_each(change);
                    info.value.take_if(|_| !keep_value);
                }));
                for (input, axis) in (0..case.inputs.len()).flat_map(|input| (0..6).map(move |axis| (input, axis))) {
                    n_told += usize::from(check_specialises(&context, &case, |info, i| {
                        if let Some(dim) = info.dims.0.get_mut(axis).filter(|_| i == input) {
                            change(dim);
                        }
                        info.value.take_if(|_| !keep_value);
                    }));
                }
            }
        }
    }
    assert!(n_told > 1000, "inference told {n_told} times only");
}

/// The tensor's elements at every second place of a buffer, backwards.
fn scatter(tensor: &Tensor) -> Option<(Vec<u8>, Layout)> {
    let (width, n) = (tensor.dtype().bits() / 8, tensor.n_elems());
    if width == 0 || n == 0 {
        return None;
    }
    let mut bytes = vec![0xa5; (2 * n + 1) * width];
    for (i, element) in tensor.as_bytes().chunks_exact(width).enumerate() {
        let at = (2 * (n - 1 - i) + 1) * width;
        bytes[at..at + width].copy_from_slice(element);
    }
    let strides: Vec<isize> = tensor.shape().strides().iter().map(|&stride| -2 * stride as isize).collect();
    let layout = Layout::strided(tensor.shape(), &strides, 2 * (n - 1) + 1, 2 * n + 1).unwrap();
    Some((bytes, layout))
}

#[test]
fn references_read_any_layout() {
    for (context, case) in cases() {
        let outputs = infer_known(&case.op, &infos(&case), case.outputs.len()).unwrap();
        let dense = run_reference(&case.op, &views(&case), &outputs).unwrap();
        let scattered: Vec<_> = case.inputs.iter().map(|input| input.as_ref().and_then(scatter)).collect();
        let views = case.inputs.iter().zip(&scattered).map(|(input, scattered)| match (input, scattered) {
            (Some(input), Some((bytes, layout))) => Some(TensorView::new(input.dtype(), layout.clone(), bytes)),
            _ => input.as_ref().map(Tensor::view),
        });
        let strided = run_reference(&case.op, &views.collect::<Vec<_>>(), &outputs)
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        for (dense, strided) in dense.iter().zip(&strided) {
            assert_eq!(dense.as_bytes(), strided.as_bytes(), "{context}");
        }
    }
}

/// An input or output of another kind than the op wants.
#[derive(Clone, Debug)]
enum Flaw {
    Missing,
    DType(DType),
    Shape(Shape),
    Bytes(usize),
}

fn flaws(dtype: DType, shape: &Shape, n_bytes: usize) -> Vec<Flaw> {
    let other = |dims: &dyn Fn(&mut Vec<usize>)| {
        let mut sizes = shape.to_vec();
        dims(&mut sizes);
        Flaw::Shape(Shape::from(&sizes[..]))
    };
    let mut flaws = vec![Flaw::Missing];
    flaws.extend(DType::ALL.into_iter().filter(|&other| other != dtype).map(Flaw::DType));
    flaws.push(other(&|sizes| sizes.push(2)));
    flaws.push(other(&|sizes| sizes.insert(0, 0)));
    flaws.push(other(&|sizes| sizes.truncate(sizes.len().saturating_sub(1))));
    flaws.push(other(&|sizes| sizes.extend([usize::MAX / 2, usize::MAX])));
    flaws.push(other(&|sizes| sizes.extend([usize::MAX, usize::MAX, 0])));
    flaws.push(other(&|sizes| sizes.iter_mut().for_each(|size| *size += 1)));
    flaws.push(other(&|sizes| sizes.iter_mut().for_each(|size| *size = size.saturating_sub(1))));
    flaws.push(other(&|sizes| sizes.iter_mut().for_each(|size| *size = usize::MAX / 4)));
    flaws.extend((n_bytes > 0).then(|| Flaw::Bytes(n_bytes - 1)));
    flaws
}

/// Runs the reference with one flawed input, and says what it said.
fn run_flawed_input(case: &Case, outputs: &[OutInfo], at: usize, flaw: &Flaw) -> Result<(), OpError> {
    let mut views = views(case);
    if let Some(view) = views[at].take() {
        views[at] = match flaw {
            Flaw::Missing => None,
            Flaw::DType(dtype) => Some(TensorView::dense(*dtype, view.shape(), view.raw())),
            Flaw::Shape(shape) => Some(TensorView::dense(view.dtype(), shape, view.raw())),
            Flaw::Bytes(n) => Some(TensorView::dense(view.dtype(), view.shape(), &view.raw()[..*n])),
        };
    }
    run_reference(&case.op, &views, outputs).map(|_| ())
}

/// Runs the reference with one flawed output, and says what it said.
fn run_flawed_output(case: &Case, outputs: &[OutInfo], at: usize, flaw: &Flaw) -> Result<(), OpError> {
    let specs: Vec<_> = outputs.iter().map(|output| (output.dtype, output.dims.known().unwrap())).collect();
    let n_bytes = |(dtype, shape): &(DType, Shape)| dtype.size_bytes(shape.n_elems().unwrap()).unwrap();
    let mut buffers: Vec<_> = specs.iter().map(|spec| OwnedBytes::zeroed(n_bytes(spec))).collect();
    let mut filled: Vec<_> = specs
        .into_iter()
        .zip(&mut buffers)
        .map(|((dtype, shape), bytes)| TensorViewMut::new(dtype, shape, bytes.as_mut_slice()))
        .collect();
    if matches!(flaw, Flaw::Missing) {
        filled.truncate(at);
    } else {
        let view = filled.remove(at);
        let (dtype, shape) = (view.dtype(), view.shape().clone());
        let mut bytes = OwnedBytes::zeroed(match flaw {
            Flaw::Bytes(n) => *n,
            _ => n_bytes(&(dtype, shape.clone())),
        });
        let (dtype, shape) = match flaw {
            Flaw::DType(dtype) => (*dtype, shape),
            Flaw::Shape(shape) => (dtype, shape.clone()),
            _ => (dtype, shape),
        };
        filled.insert(at, TensorViewMut::new(dtype, shape, bytes.as_mut_slice()));
        let mut ctx = RefCtx::new(views(case).into(), filled.into());
        return case.op.def().reference(&mut ctx);
    }
    case.op.def().reference(&mut RefCtx::new(views(case).into(), filled.into()))
}

#[test]
fn references_refuse_views_that_do_not_fit_and_never_panic() {
    let n_bytes = |info: &OutInfo| {
        let shape = info.dims.known().unwrap();
        (shape.clone(), info.dtype.size_bytes(shape.n_elems().unwrap()).unwrap())
    };
    for (context, case) in cases() {
        let outputs = infer_known(&case.op, &infos(&case), case.outputs.len()).unwrap();
        for (i, tensor) in case.inputs.iter().enumerate().filter_map(|(i, input)| Some((i, input.as_ref()?))) {
            for flaw in flaws(tensor.dtype(), tensor.shape(), tensor.as_bytes().len()) {
                let run = || run_flawed_input(&case, &outputs, i, &flaw);
                let result = catch_unwind(AssertUnwindSafe(run));
                assert!(result.is_ok(), "{context}: panics with input {i} flawed by {flaw:?}");
            }
        }
        let optional = |i| case.op.info().output_param(i).is_none_or(|param| param.arity != Arity::One);
        for (i, info) in outputs.iter().enumerate() {
            let (shape, n_bytes) = n_bytes(info);
            for flaw in flaws(info.dtype, &shape, n_bytes) {
                let run = || run_flawed_output(&case, &outputs, i, &flaw);
                let result = catch_unwind(AssertUnwindSafe(run));
                let result = result.unwrap_or_else(|_| panic!("{context}: panics with output {i} flawed by {flaw:?}"));
                let fits = match flaw {
                    // An output without elements may never be asked for.
                    Flaw::Missing => optional(i) || n_bytes == 0,
                    // A mover of bits may not ask what they mean, and a data-sized output has spare bytes.
                    Flaw::DType(_) | Flaw::Shape(_) => true,
                    Flaw::Bytes(_) => info.data_sized,
                };
                assert!(fits || result.is_err(), "{context}: output {i} flawed by {flaw:?} goes unnoticed");
            }
        }
    }
}

#[test]
fn inference_of_inputs_that_do_not_fit_never_panics() {
    for (context, case) in cases() {
        for (i, tensor) in case.inputs.iter().enumerate().filter_map(|(i, input)| Some((i, input.as_ref()?))) {
            for flaw in flaws(tensor.dtype(), tensor.shape(), 0) {
                let mut infos = infos(&case);
                for keep_value in [true, false] {
                    if let Some(info) = &mut infos[i] {
                        match &flaw {
                            Flaw::Missing => infos[i] = None,
                            Flaw::DType(dtype) => info.dtype = *dtype,
                            Flaw::Shape(shape) => info.dims = SymShape::from(shape),
                            Flaw::Bytes(_) => {}
                        }
                    }
                    if let Some(info) = &mut infos[i] {
                        info.value.take_if(|_| !keep_value);
                    }
                    let run = || infer_known(&case.op, &infos, case.outputs.len());
                    let result = catch_unwind(AssertUnwindSafe(run));
                    assert!(result.is_ok(), "{context}: panics with input {i} flawed by {flaw:?}");
                }
            }
        }
    }
}
