//! Inference: element types, shapes and small integer values.
//!
//! One function an op serves two callers: [`infer_known`], where every dimension is known and an unknown value that
//! matters is `NeedsValue`, and [`infer_symbolic`], where dimensions may have names and what cannot be told is unknown.

use crate::op::RefCtx;
use crate::ops::Op;
use crate::{OpError, OpErrorKind, OpInfo, TypeRef};
use firstlight_tensor::{DType, Dim, Kind, Shape, SymShape, Tensor, TensorView, TensorViewMut};
use smallvec::SmallVec;

/// Elements up to which integer and bool values are followed through inference.
pub const MAX_KNOWN_ELEMS: usize = 64;

/// What is known of an input.
#[derive(Clone, Debug)]
pub struct ValueInfo {
    /// Element type.
    pub dtype: DType,
    /// Shape, whose dimensions may be named or unknown in [`infer_symbolic`].
    pub dims: SymShape,
    /// The value itself, where it is a constant, or small, integer or bool, and follows from shapes and constants.
    pub value: Option<Tensor>,
}

/// What is known of an output.
#[derive(Clone, Debug, PartialEq)]
pub struct OutInfo {
    /// Element type.
    pub dtype: DType,
    /// Shape, or its upper bound where `data_sized`.
    pub dims: SymShape,
    /// The value, where it follows from dims alone (`Shape`, `Size`).
    pub value: Option<Tensor>,
    /// True when the kernel finds the final shape; `dims` is then its upper bound, dimension by dimension, and
    /// [`RefCtx`] outputs start with it.
    pub data_sized: bool,
}

impl OutInfo {
    /// An output of a shape.
    pub fn new(dtype: DType, dims: SymShape) -> OutInfo {
        OutInfo { dtype, dims, value: None, data_sized: false }
    }

    /// An output of a known shape.
    pub fn known(dtype: DType, dims: impl Into<Shape>) -> OutInfo {
        OutInfo::new(dtype, SymShape::from(&dims.into()))
    }

    /// An output whose final shape the kernel finds, up to `bound`.
    pub fn data_sized(dtype: DType, bound: impl Into<Shape>) -> OutInfo {
        OutInfo { data_sized: true, ..OutInfo::known(dtype, bound) }
    }

    /// One output, as most ops return.
    pub fn one(self) -> SmallVec<[OutInfo; 1]> {
        SmallVec::from_iter([self])
    }
}

/// What an op's inference reads.
#[derive(Debug)]
pub struct InferCtx<'a> {
    inputs: &'a [Option<ValueInfo>],
    n_outputs: usize,
}

impl<'a> InferCtx<'a> {
    /// A context over what is known of each input (`None`: omitted).
    pub fn new(inputs: &'a [Option<ValueInfo>], n_outputs: usize) -> InferCtx<'a> {
        InferCtx { inputs, n_outputs }
    }

    /// Number of inputs, omitted ones included.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Number of outputs that the node names.
    pub fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// True when input `i` is given.
    pub fn has(&self, i: usize) -> bool {
        self.inputs.get(i).is_some_and(Option::is_some)
    }

    /// What is known of input `i`.
    ///
    /// **Errors**: the input is omitted.
    pub fn input(&self, i: usize) -> Result<&'a ValueInfo, OpError> {
        match self.inputs.get(i) {
            Some(Some(info)) => Ok(info),
            _ => Err(OpError::new(OpErrorKind::Arity, format!("input {i} is missing"))),
        }
    }

    /// Element type of input `i`.
    ///
    /// **Errors**: the input is omitted.
    pub fn dtype(&self, i: usize) -> Result<DType, OpError> {
        Ok(self.input(i)?.dtype)
    }

    /// Dimensions of input `i`.
    ///
    /// **Errors**: the input is omitted.
    pub fn dims(&self, i: usize) -> Result<&'a SymShape, OpError> {
        Ok(&self.input(i)?.dims)
    }

    /// The shape of input `i`, where all its dimensions are known.
    ///
    /// **Errors**: the input is omitted; `NeedsValue` when a dimension is symbolic.
    pub fn shape(&self, i: usize) -> Result<Shape, OpError> {
        self.dims(i)?.known().ok_or_else(|| OpError::needs_value(i))
    }

    /// The value of input `i`.
    ///
    /// **Errors**: the input is omitted; `NeedsValue` when it is not known.
    pub fn value(&self, i: usize) -> Result<&'a Tensor, OpError> {
        self.input(i)?.value.as_ref().ok_or_else(|| OpError::needs_value(i))
    }

    /// The value of input `i` as integers.
    ///
    /// **Errors**: as [`InferCtx::value`], and a value that is no integer.
    pub fn ints(&self, i: usize) -> Result<Vec<i64>, OpError> {
        Ok(self.value(i)?.to_i64s()?)
    }
}

/// Broadcasts dimensions by NumPy's rules.
///
/// **Errors**: known sizes that differ and are not 1.
pub fn broadcast_dims(a: &[Dim], b: &[Dim]) -> Result<SymShape, OpError> {
    let rank = a.len().max(b.len());
    let at = |dims: &[Dim], i: usize| (i + dims.len()).checked_sub(rank).map_or(Dim::Known(1), |j| dims[j].clone());
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y && x != Dim::Unknown => Ok(x),
            (Dim::Known(1), y) => Ok(y),
            (x, Dim::Known(1)) => Ok(x),
            // A size above 1 (or 0) decides: the other can only be equal to it or 1.
            (Dim::Known(x), y) if y.known().is_none() => Ok(Dim::Known(x)),
            (x, Dim::Known(y)) if x.known().is_none() => Ok(Dim::Known(y)),
            (Dim::Known(x), Dim::Known(y)) => Err(OpError::shape(format!(
                "shapes {} and {} do not broadcast: {x} against {y} at dimension {i} of {rank}",
                SymShape(a.to_vec()),
                SymShape(b.to_vec())
            ))),
            _ => Ok(Dim::Unknown),
        })
        .collect()
}

/// Turns an axis that may count from the end into one that does not.
///
/// **Errors**: the axis is outside `-rank..rank`.
pub fn normalise_axis(axis: i64, rank: usize) -> Result<usize, OpError> {
    let n = rank as i64;
    if axis < -n || axis >= n {
        return Err(OpError::value(format!("axis {axis} is outside -{rank}..{rank} of a rank-{rank} input")));
    }
    Ok((if axis < 0 { axis + n } else { axis }) as usize)
}

/// Infers a node all of whose input shapes are known.
///
/// Values are followed: when every input's value is known, integer or bool, and the outputs are small, the op's
/// reference computes them.
///
/// **Errors**: what the op says; `NeedsValue(i)` when the value of input `i` has to be awaited.
pub fn infer_known(op: &Op, inputs: &[Option<ValueInfo>], n_outputs: usize) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
    let mut outputs = op.def().infer(&InferCtx::new(inputs, n_outputs))?;
    outputs.truncate(n_outputs);
    if outputs.len() < n_outputs {
        return Err(OpError::new(OpErrorKind::Arity, format!("{} has no output {}", op.info().name, outputs.len())));
    }
    for output in &outputs {
        let elems = output.dims.known().map(|shape| (shape.n_elems(), shape));
        if let Some((None, shape)) = elems {
            return Err(OpError::shape(format!("an output {}{shape} is larger than the address space", output.dtype)));
        }
    }
    follow_values(op, inputs, &mut outputs)?;
    Ok(outputs)
}

fn is_followed(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::SignedInt | Kind::UnsignedInt | Kind::Bool) && dtype.bits() >= 8
}

fn known(info: &ValueInfo) -> Option<&Tensor> {
    info.value.as_ref().filter(|value| is_followed(info.dtype) && value.n_elems() <= MAX_KNOWN_ELEMS)
}

fn follow_values(op: &Op, inputs: &[Option<ValueInfo>], outputs: &mut [OutInfo]) -> Result<(), OpError> {
    let small = |out: &OutInfo| {
        let n = out.dims.known().and_then(|shape| shape.n_elems());
        is_followed(out.dtype) && !out.data_sized && n.is_some_and(|n| n <= MAX_KNOWN_ELEMS)
    };
    let has_reference = !matches!(op, Op::If(_) | Op::Loop(_) | Op::Input(_) | Op::Const(_));
    let all_known = inputs.iter().flatten().all(|info| known(info).is_some());
    if !has_reference || inputs.is_empty() || !all_known || !outputs.iter().all(small) {
        return Ok(());
    }
    if outputs.iter().all(|output| output.value.is_some()) {
        return Ok(());
    }
    let views: Vec<_> = inputs.iter().map(|input| input.as_ref().and_then(known).map(Tensor::view)).collect();
    let values = run_reference(op, &views, outputs)?;
    for (output, value) in outputs.iter_mut().zip(values) {
        output.value = Some(value);
    }
    Ok(())
}

/// Computes an op by its reference into fresh tensors of inferred specs.
///
/// **Errors**: what the reference says; an output whose dims are not known.
pub fn run_reference(op: &Op, inputs: &[Option<TensorView<'_>>], outputs: &[OutInfo]) -> Result<Vec<Tensor>, OpError> {
    let mut buffers = Vec::new();
    for output in outputs {
        let shape = output.dims.known().ok_or_else(|| OpError::shape("an output's shape is not known"))?;
        let n_bytes = shape.n_elems().and_then(|n| output.dtype.size_bytes(n));
        let n_bytes =
            n_bytes.ok_or_else(|| OpError::shape(format!("an output {}{shape} has no size", output.dtype)))?;
        buffers.push((output.dtype, shape, firstlight_tensor::OwnedBytes::zeroed(n_bytes)));
    }
    let views =
        buffers.iter_mut().map(|(dtype, shape, bytes)| TensorViewMut::new(*dtype, shape.clone(), bytes.as_mut_slice()));
    let inputs = inputs.iter().map(|view| view.as_ref().map(TensorView::reborrow));
    let mut ctx = RefCtx::new(inputs.collect(), views.collect());
    op.def().reference(&mut ctx)?;
    let shapes: Vec<Shape> = ctx.outputs().iter().map(|output| output.shape().clone()).collect();
    drop(ctx);
    let tensors = buffers.into_iter().zip(shapes).map(|((dtype, _, bytes), shape)| {
        let n_bytes = shape.n_elems().and_then(|n| dtype.size_bytes(n)).unwrap_or(0);
        let bytes = bytes.as_slice().get(..n_bytes).ok_or_else(|| OpError::shape("an output grew beyond its bound"))?;
        Ok(Tensor::new(dtype, shape, bytes.into())?)
    });
    tensors.collect()
}

/// Infers a node whose input shapes may be symbolic; what cannot be told is `None`.
///
/// **Errors**: what is wrong whatever the unknown sizes are.
pub fn infer_symbolic(
    op: &Op,
    inputs: &[Option<ValueInfo>],
    n_outputs: usize,
) -> Result<Option<SmallVec<[OutInfo; 1]>>, OpError> {
    match infer_known(op, inputs, n_outputs) {
        Ok(outputs) => Ok(Some(outputs)),
        Err(error) if matches!(error.kind(), OpErrorKind::NeedsValue(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The element type of output `i` as the declared parameters tell it without inference, where they do.
pub fn declared_dtype(info: &OpInfo, inputs: &[Option<DType>], i: usize) -> Option<DType> {
    match info.output_param(i)?.ty {
        TypeRef::Fixed(dtype) => Some(dtype),
        TypeRef::Any => None,
        TypeRef::Var(var) => inputs.iter().enumerate().find_map(|(j, &dtype)| {
            let param = info.input_param(j)?;
            (param.ty == TypeRef::Var(var)).then_some(dtype)?
        }),
    }
}
