//! `MatMul`.

use super::arith::{Math, Matrix, Stored, add_product, widened};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::elementwise::unlisted;
use crate::ops::layout::{case_tensor, check_output, product, same_dim};
use crate::{InferCtx, OpError, OutInfo, broadcast_dims};
use firstlight_tensor::{DType, Dim, Shape, SymShape, Tensor, bf16, f16};
use smallvec::SmallVec;

/// Element types that matrix products take.
pub(crate) const PRODUCT_TYPES: &[DType] =
    &[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64, DType::U32, DType::U64];

/// Matrix product by NumPy's rules.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MatMul {
    /// Whether the last two dimensions of B are swapped first. ONNX's op has no such attribute; passes set it.
    pub transpose_b: bool,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "MatMul",
    doc: "Matrix product by NumPy's rules: leading dimensions broadcast; a vector is a row on the left and a column on \
          the right, and loses that dimension in the result. Integers wrap.",
    attributes: &[AttrDoc {
        name: "transpose_b",
        doc: "Whether the last two dimensions of B are swapped first; false unless a pass absorbed a Transpose.",
    }],
    inputs: &[
        Param { name: "A", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "B", ty: TypeRef::Var(0), arity: Arity::One },
    ],
    outputs: &[Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: PRODUCT_TYPES }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for MatMul {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        if self.transpose_b { vec![("transpose_b", AttrValue::Bool(true))] } else { vec![] }
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        Ok(OutInfo::new(ctx.dtype(0)?, output_dims(ctx.dims(0)?, &self.b_dims(ctx.dims(1)?)?)?).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.compute::<f32>(ctx),
            DType::F64 => self.compute::<f64>(ctx),
            DType::F16 => self.compute::<f16>(ctx),
            DType::BF16 => self.compute::<bf16>(ctx),
            DType::I32 => self.compute::<i32>(ctx),
            DType::I64 => self.compute::<i64>(ctx),
            DType::U32 => self.compute::<u32>(ctx),
            DType::U64 => self.compute::<u64>(ctx),
            other => Err(unlisted("MatMul", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        let k = inputs.first().and_then(|a| a.last()).map_or(0, |&k| k as u64);
        let outputs = outputs.first().map_or(0, |y| y.iter().fold(1u64, |n, &dim| n.saturating_mul(dim as u64)));
        outputs.saturating_mul(k).saturating_mul(2)
    }
}

/// Sizes of a [`MatMul`]: for each place of `batch` an `m` by `k` matrix times a `k` by `n` one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatMulGeometry {
    /// Rows of A and of the result.
    pub m: usize,
    /// Columns of A and rows of B: the length of each dot product.
    pub k: usize,
    /// Columns of B and of the result.
    pub n: usize,
    /// Broadcast leading dimensions.
    pub batch: Shape,
    /// For each leading dimension how many matrices of A lie from one place to the next; 0 where A broadcasts.
    pub a_steps: SmallVec<[usize; 4]>,
    /// For each leading dimension how many matrices of B lie from one place to the next; 0 where B broadcasts.
    pub b_steps: SmallVec<[usize; 4]>,
    /// Shape of the output.
    pub out_shape: Shape,
}

impl MatMulGeometry {
    /// Number of products.
    pub fn n_batches(&self) -> usize {
        self.batch.n_elems().unwrap_or(0)
    }

    /// Which matrix of A and which of B make product `i`, in row-major order of the batch.
    pub fn matrices(&self, i: usize) -> (usize, usize) {
        let (mut rest, mut a, mut b) = (i, 0, 0);
        for (d, &size) in self.batch.iter().enumerate().rev() {
            let at = rest % size.max(1);
            rest /= size.max(1);
            a += at * self.a_steps[d];
            b += at * self.b_steps[d];
        }
        (a, b)
    }
}

impl MatMul {
    /// The dimensions of B as the product takes them.
    fn b_dims<D: Clone>(&self, dims: &[D]) -> Result<SmallVec<[D; 6]>, OpError> {
        let mut dims: SmallVec<[D; 6]> = dims.iter().cloned().collect();
        if self.transpose_b {
            let n = dims.len();
            if n < 2 {
                return Err(OpError::shape("transpose_b swaps the last two dimensions of B, which has fewer"));
            }
            dims.swap(n - 2, n - 1);
        }
        Ok(dims)
    }

    /// Sizes of the product of dense inputs of shapes `a` and `b`.
    ///
    /// **Errors**: an input of rank 0, inner sizes that differ, leading dimensions that do not broadcast, sizes that
    /// overflow.
    pub fn geometry(&self, a: &[usize], b: &[usize]) -> Result<MatMulGeometry, OpError> {
        let b = &self.b_dims(b)?[..];
        let known = |dims: &[usize]| dims.iter().map(|&dim| Dim::Known(dim)).collect::<SymShape>();
        let out_shape = output_dims(&known(a), &known(b))?.known();
        let out_shape = out_shape.ok_or_else(|| OpError::shape("MatMul's sizes are not known"))?;
        product(&out_shape)?;
        let (a_batch, m, k) = match a {
            [batch @ .., m, k] => (batch, *m, *k),
            _ => (&[][..], 1, a[0]),
        };
        let (b_batch, n) = match b {
            [batch @ .., _, n] => (batch, *n),
            _ => (&[][..], 1),
        };
        let misfit = || OpError::shape(format!("{} and {} do not broadcast", Shape::from(a), Shape::from(b)));
        let batch = Shape::broadcast(a_batch, b_batch).ok_or_else(misfit)?;
        let steps = |dims: &[usize]| {
            let strides = Shape::from(dims).strides();
            let mut steps: SmallVec<[usize; 4]> = SmallVec::from_elem(0, batch.rank());
            let lead = batch.rank() - dims.len();
            for (d, (&dim, &stride)) in dims.iter().zip(&strides).enumerate() {
                steps[lead + d] = if dim == 1 { 0 } else { stride };
            }
            steps
        };
        product(a_batch)?;
        product(b_batch)?;
        Ok(MatMulGeometry { m, k, n, a_steps: steps(a_batch), b_steps: steps(b_batch), batch, out_shape })
    }

    fn compute<T: Stored>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        let geometry = self.geometry(a.shape(), b.shape())?;
        check_output(ctx, 0, &geometry.out_shape)?;
        let output = ctx.output(0)?.values_mut::<T>()?;
        if output.is_empty() {
            return Ok(());
        }
        let (a, b) = (widened::<T>(&a)?, widened::<T>(&b)?);
        let MatMulGeometry { m, k, n, .. } = geometry;
        let mut sums = vec![T::Math::ZERO; m * n];
        for (i, to) in output.chunks_exact_mut(m * n).enumerate() {
            let (a_at, b_at) = geometry.matrices(i);
            let a = Matrix { values: &a[a_at * m * k..], row: k, column: 1 };
            let (row, column) = if self.transpose_b { (1, k) } else { (n, 1) };
            let b = Matrix { values: &b[b_at * k * n..], row, column };
            sums.fill(T::Math::ZERO);
            add_product(a, b, k, n, &mut sums);
            for (to, &sum) in to.iter_mut().zip(&sums) {
                *to = T::narrow(sum);
            }
        }
        Ok(())
    }
}

fn output_dims(a: &[Dim], b: &[Dim]) -> Result<SymShape, OpError> {
    let shape = |dims: &[Dim]| dims.iter().cloned().collect::<SymShape>();
    let misfit = |why: &str| OpError::shape(format!("cannot multiply {} by {}: {why}", shape(a), shape(b)));
    let (a_batch, m, a_k) = match a {
        [] => return Err(misfit("a scalar is no matrix")),
        [k] => (&[][..], None, k),
        [batch @ .., m, k] => (batch, Some(m), k),
    };
    let (b_batch, b_k, n) = match b {
        [] => return Err(misfit("a scalar is no matrix")),
        [k] => (&[][..], k, None),
        [batch @ .., k, n] => (batch, k, Some(n)),
    };
    same_dim(a_k, b_k).ok_or_else(|| misfit("the inner sizes differ"))?;
    let mut dims = broadcast_dims(a_batch, b_batch).map_err(|_| misfit("the leading dimensions do not broadcast"))?;
    dims.0.extend(m.into_iter().chain(n).cloned());
    Ok(dims)
}

fn cases() -> Vec<Case> {
    let case = |name, a: Tensor, b: Tensor, y: Tensor| Case {
        name,
        op: MatMul::default().into(),
        inputs: vec![Some(a), Some(b)],
        outputs: vec![y],
    };
    let t = case_tensor::<f32>;
    let a = t(&[2, 2], &[1., 2., 3., 4.]);
    let halves = |dims: &[usize], values: &[f32]| {
        let values: Vec<f16> = values.iter().map(|&value| f16::from_f32(value)).collect();
        case_tensor(dims, &values)
    };
    vec![
        case("matrices", a.clone(), t(&[2, 3], &[1., 0., 1., 0., 1., 1.]), t(&[2, 3], &[1., 2., 3., 3., 4., 7.])),
        case("a row", t(&[2], &[1., 10.]), a.clone(), t(&[2], &[31., 42.])),
        case("a column", a.clone(), t(&[2], &[1., 10.]), t(&[2], &[21., 43.])),
        case("two vectors", t(&[2], &[1., 2.]), t(&[2], &[3., 4.]), t(&[], &[11.])),
        case("one matrix for all", t(&[2, 1, 2], &[1., 0., 0., 1.]), a.clone(), t(&[2, 1, 2], &[1., 2., 3., 4.])),
        case(
            "both broadcast",
            t(&[2, 1, 1, 1], &[2., 3.]),
            t(&[1, 2, 1, 1], &[5., 7.]),
            t(&[2, 2, 1, 1], &[10., 14., 15., 21.]),
        ),
        Case {
            op: MatMul { transpose_b: true }.into(),
            ..case(
                "B lies transposed",
                t(&[2, 1, 2], &[1., 10., 2., 20.]),
                t(&[2, 3, 2], &[1., 2., 3., 4., 5., 6., 0., 1., 2., 0., 1., 1.]),
                t(&[2, 1, 3], &[21., 43., 65., 20., 4., 22.]),
            )
        },
        case("no terms", t(&[2, 0], &[]), t(&[0, 1], &[]), t(&[2, 1], &[0., 0.])),
        case("no batch", t(&[0, 2, 2], &[]), a, t(&[0, 2, 2], &[])),
        case(
            "integers wrap",
            case_tensor(&[1, 2], &[u32::MAX, 1]),
            case_tensor(&[2, 1], &[2u32, 1]),
            case_tensor(&[1, 1], &[u32::MAX]),
        ),
        case(
            "f16 rounds once",
            halves(&[1, 3], &[2048., 1., 1.]),
            halves(&[3, 1], &[1., 1., 1.]),
            halves(&[1, 1], &[2050.]),
        ),
        case(
            "one rounding a term",
            // 4097 squared is 16,785,409, which rounds to 16,785,408 on its own.
            t(&[1, 2], &[-1., 4097.]),
            t(&[2, 1], &[16_785_408., 4097.]),
            t(&[1, 1], &[1.]),
        ),
    ]
}
