//! `Gemm`.

use super::arith::{Math, Matrix, Stored, add_product, widened};
use super::matmul::PRODUCT_TYPES;
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::elementwise::{broadcast_view, unlisted};
use crate::ops::layout::{case_tensor, check_output, product, same_dim};
use crate::{InferCtx, OpError, OutInfo, broadcast_dims};
use firstlight_tensor::{DType, Dim, Shape, SymShape, Tensor, bf16, f16};
use smallvec::SmallVec;

/// A scaled matrix product plus a scaled matrix: `alpha A B + beta C`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gemm {
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of the addend.
    pub beta: f32,
    /// True when A is given transposed.
    pub trans_a: bool,
    /// True when B is given transposed.
    pub trans_b: bool,
}

impl Default for Gemm {
    fn default() -> Gemm {
        Gemm { alpha: 1.0, beta: 1.0, trans_a: false, trans_b: false }
    }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Gemm",
    doc: "A scaled matrix product plus a scaled matrix: `alpha A B + beta C`, where C broadcasts and may be omitted. \
          For integers alpha and beta must be whole, and sums wrap.",
    attributes: &[
        AttrDoc { name: "alpha", doc: "factor of the product" },
        AttrDoc { name: "beta", doc: "factor of the addend" },
        AttrDoc { name: "trans_a", doc: "A is given transposed" },
        AttrDoc { name: "trans_b", doc: "B is given transposed" },
    ],
    inputs: &[
        Param { name: "A", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "B", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "C", ty: TypeRef::Var(0), arity: Arity::Optional },
    ],
    outputs: &[Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: PRODUCT_TYPES }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for Gemm {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![
            ("alpha", AttrValue::Float(self.alpha)),
            ("beta", AttrValue::Float(self.beta)),
            ("trans_a", AttrValue::Bool(self.trans_a)),
            ("trans_b", AttrValue::Bool(self.trans_b)),
        ]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (m, _, n) = self.sizes(ctx.dims(0)?, ctx.dims(1)?)?;
        let mut dims = SymShape(vec![m, n]);
        if ctx.has(2) {
            let c = ctx.dims(2)?;
            let grown = broadcast_dims(&dims, c)?;
            // C may not make the result larger; it may tell sizes that are not known otherwise.
            let fits =
                grown.rank() == 2 && dims.iter().zip(grown.iter()).all(|(dim, grown)| same_dim(dim, grown).is_some());
            if !fits {
                return Err(OpError::shape(format!("C {c} does not broadcast to {dims}")));
            }
            let lead = 2 - c.rank();
            for (dim, c) in dims.0[lead..].iter_mut().zip(c.iter()) {
                if let (None, Some(size)) = (dim.known(), c.known().filter(|&size| size != 1)) {
                    *dim = Dim::Known(size);
                }
            }
        }
        Ok(OutInfo::new(ctx.dtype(0)?, dims).one())
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
            other => Err(unlisted("Gemm", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        let k = inputs.first().and_then(|a| a.get(usize::from(!self.trans_a))).map_or(0, |&k| k as u64);
        let outputs = outputs.first().map_or(0, |y| y.iter().fold(1u64, |n, &dim| n.saturating_mul(dim as u64)));
        outputs.saturating_mul(k).saturating_mul(2)
    }
}

/// Sizes of a [`Gemm`]: A is `m` by `k`, B `k` by `n`, once transposed as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GemmGeometry {
    /// Rows of A and of the result.
    pub m: usize,
    /// Columns of A and rows of B: the length of each dot product.
    pub k: usize,
    /// Columns of B and of the result.
    pub n: usize,
    /// Elements of A from one row to the next and from one column to the next.
    pub a_strides: (usize, usize),
    /// Elements of B from one row to the next and from one column to the next.
    pub b_strides: (usize, usize),
}

impl Gemm {
    /// Sizes of the product of dense inputs of shapes `a` and `b`.
    ///
    /// **Errors**: inputs that are no matrices or whose sizes do not fit; sizes that overflow.
    pub fn geometry(&self, a: &[usize], b: &[usize]) -> Result<GemmGeometry, OpError> {
        let known = |dims: &[usize]| dims.iter().map(|&dim| Dim::Known(dim)).collect::<SymShape>();
        self.sizes(&known(a), &known(b))?;
        let (m, k) = if self.trans_a { (a[1], a[0]) } else { (a[0], a[1]) };
        let n = if self.trans_b { b[0] } else { b[1] };
        product(&[m, n])?;
        let a_strides = if self.trans_a { (1, m) } else { (k, 1) };
        let b_strides = if self.trans_b { (1, k) } else { (n, 1) };
        Ok(GemmGeometry { m, k, n, a_strides, b_strides })
    }

    fn sizes(&self, a: &SymShape, b: &SymShape) -> Result<(Dim, Dim, Dim), OpError> {
        let misfit = |why: &str| {
            let turned = |trans| if trans { " transposed" } else { "" };
            OpError::shape(format!(
                "cannot multiply A {a}{} by B {b}{}: {why}",
                turned(self.trans_a),
                turned(self.trans_b)
            ))
        };
        let ([a0, a1], [b0, b1]) = (&a[..], &b[..]) else { return Err(misfit("both must have 2 dimensions")) };
        let (m, ka) = if self.trans_a { (a1, a0) } else { (a0, a1) };
        let (kb, n) = if self.trans_b { (b1, b0) } else { (b0, b1) };
        let k = same_dim(ka, kb).ok_or_else(|| misfit("the inner sizes differ"))?;
        Ok((m.clone(), k, n.clone()))
    }

    fn compute<T: Stored>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        let geometry = self.geometry(a.shape(), b.shape())?;
        let GemmGeometry { m, k, n, a_strides, b_strides } = geometry;
        let factor = |name: &str, value: f32| {
            let wrong = || OpError::value(format!("{name} is {value}, which is no number of {}", T::DTYPE));
            T::Math::from_attribute(value).ok_or_else(wrong)
        };
        let (alpha, beta) = (factor("alpha", self.alpha)?, factor("beta", self.beta)?);
        check_output(ctx, 0, &[m, n])?;
        let c = match ctx.optional(2) {
            Some(c) => Some(widened::<T>(&broadcast_view(&c, &Shape::from([m, n]))?)?),
            None => None,
        };
        let output = ctx.output(0)?.values_mut::<T>()?;
        if output.is_empty() {
            return Ok(());
        }
        let (a, b) = (widened::<T>(&a)?, widened::<T>(&b)?);
        let a = Matrix { values: &a, row: a_strides.0, column: a_strides.1 };
        let b = Matrix { values: &b, row: b_strides.0, column: b_strides.1 };
        let mut sums = vec![T::Math::ZERO; m * n];
        add_product(a, b, k, n, &mut sums);
        for (i, (to, sum)) in output.iter_mut().zip(sums).enumerate() {
            let scaled = sum.times(alpha);
            *to = T::narrow(c.as_ref().map_or(scaled, |c| scaled.plus(c[i].times(beta))));
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let case = |name, op: Gemm, inputs: &[Tensor], y: Tensor| Case {
        name,
        op: op.into(),
        inputs: inputs.iter().cloned().map(Some).collect(),
        outputs: vec![y],
    };
    let t = case_tensor::<f32>;
    let plain = Gemm::default;
    let (a, b) = (t(&[2, 3], &[1., 2., 3., 4., 5., 6.]), t(&[3, 2], &[1., 0., 0., 1., 1., 1.]));
    let (at, bt) = (t(&[3, 2], &[1., 4., 2., 5., 3., 6.]), t(&[2, 3], &[1., 0., 1., 0., 1., 1.]));
    let y = t(&[2, 2], &[4., 5., 10., 11.]);
    let scaled = Gemm { alpha: 0.5, beta: 2.0, ..plain() };
    vec![
        case("product", plain(), &[a.clone(), b.clone()], y.clone()),
        case("both transposed", Gemm { trans_a: true, trans_b: true, ..plain() }, &[at, bt], y),
        case(
            "scaled, a row added",
            scaled.clone(),
            &[a.clone(), b.clone(), t(&[2], &[1., 10.])],
            t(&[2, 2], &[4., 22.5, 7., 25.5]),
        ),
        case(
            "a column added",
            plain(),
            &[a.clone(), b.clone(), t(&[2, 1], &[1., 10.])],
            t(&[2, 2], &[5., 6., 20., 21.]),
        ),
        case("a scalar added", plain(), &[a, b, t(&[], &[1.])], t(&[2, 2], &[5., 6., 11., 12.])),
        case("no terms", scaled, &[t(&[1, 0], &[]), t(&[0, 2], &[]), t(&[1], &[3.])], t(&[1, 2], &[6., 6.])),
        case("no rows", plain(), &[t(&[0, 1], &[]), t(&[1, 2], &[1., 2.])], t(&[0, 2], &[])),
        case(
            "integers wrap",
            Gemm { alpha: 2.0, ..plain() },
            &[case_tensor(&[1, 1], &[i32::MAX]), case_tensor(&[1, 1], &[2i32]), case_tensor(&[], &[1i32])],
            case_tensor(&[1, 1], &[-3i32]),
        ),
    ]
}
