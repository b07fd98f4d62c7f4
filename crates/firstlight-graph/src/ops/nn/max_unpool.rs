//! `MaxUnpool`.

use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::checks::expect_shape;
use crate::ops::layout::{MoveWords, check_output, optional_ints, product, same_dim};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, Shape, SymShape, bf16, f16};
use smallvec::SmallVec;

/// The elements put back where [`MaxPool`](super::max_pool::MaxPool) found them; zeros elsewhere.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MaxUnpool {
    /// Taps of the pooling's windows in each spatial dimension.
    pub kernel_shape: Vec<i64>,
    /// Padding of the pooling before each spatial dimension, then after each; 0 everywhere when empty.
    pub pads: Vec<i64>,
    /// Distance of the pooling's windows in each spatial dimension; 1 everywhere when empty.
    pub strides: Vec<i64>,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "MaxUnpool",
    doc: "The elements of X put back where MaxPool found them, zeros elsewhere. I holds the index of each in the whole \
          pooled tensor, whose spatial sizes are `(size - 1) * stride + kernel - pads`; of two elements for one place the \
          later one stays. An output_shape that is larger leaves zeros behind that tensor in each dimension.",
    attributes: &[
        AttrDoc { name: "kernel_shape", doc: "taps of the pooling's windows" },
        AttrDoc {
            name: "pads",
            doc: "padding of the pooling before each spatial dimension, then after each; 0 everywhere when empty",
        },
        AttrDoc { name: "strides", doc: "distance of the pooling's windows; 1 everywhere when empty" },
    ],
    inputs: &[
        Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "I", ty: TypeRef::Fixed(DType::I64), arity: Arity::One },
        Param { name: "output_shape", ty: TypeRef::Fixed(DType::I64), arity: Arity::Optional },
    ],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T1", allowed: FLOATS }],
    exactness: Exactness::Exact,
    cases,
};

/// Where elements go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpoolGeometry {
    /// The shape that indices count in.
    pooled: Shape,
    /// Shape of the output, no smaller.
    pub out: Shape,
}

impl UnpoolGeometry {
    /// The place in the output of an index.
    ///
    /// **Errors**: an index outside the pooled tensor.
    pub fn place(&self, index: i64) -> Result<usize, OpError> {
        let n_elems = self.pooled.n_elems().unwrap_or(0);
        let Some(mut rest) = usize::try_from(index).ok().filter(|&index| index < n_elems) else {
            return Err(OpError::value(format!(
                "index {index} is outside 0..{n_elems}, the elements of {}",
                self.pooled
            )));
        };
        if self.pooled == self.out {
            return Ok(rest);
        }
        let (mut place, mut step) = (0, 1);
        for (&pooled, &out) in self.pooled.iter().zip(self.out.iter()).rev() {
            place += rest % pooled * step;
            rest /= pooled;
            step *= out;
        }
        Ok(place)
    }
}

impl OpDef for MaxUnpool {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![
            ("kernel_shape", AttrValue::Ints(self.kernel_shape.clone())),
            ("pads", AttrValue::Ints(self.pads.clone())),
            ("strides", AttrValue::Ints(self.strides.clone())),
        ]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (x, indices) = (ctx.dims(0)?, ctx.dims(1)?);
        self.check(x.rank())?;
        if x.rank() != indices.rank() || x.iter().zip(indices.iter()).any(|(a, b)| same_dim(a, b).is_none()) {
            return Err(OpError::shape(format!("I has shape {indices}, expected that of X, {x}")));
        }
        let mut dims = SymShape(x[..2].to_vec());
        for (d, dim) in x[2..].iter().enumerate() {
            dims.0.push(match dim.known() {
                Some(size) => Dim::Known(self.along(d, size)?),
                None => Dim::Unknown,
            });
        }
        if ctx.has(2) {
            let shape = ctx.ints(2)?;
            let fits = |(dim, &size): (&Dim, &i64)| usize::try_from(size).is_ok_and(|size| dim.known() <= Some(size));
            if shape.len() != dims.rank() || !dims.iter().zip(&shape).all(fits) {
                return Err(misfit(&shape, &dims));
            }
            dims = shape.iter().map(|&size| Dim::Known(size as usize)).collect();
        }
        Ok(OutInfo::new(ctx.dtype(0)?, dims).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.move_elements(ctx)
    }
}

impl MoveWords for MaxUnpool {
    fn move_words<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let (x, indices) = (ctx.input(0)?, ctx.input(1)?);
        let geometry = self.geometry(x.shape(), optional_ints(ctx, 2)?.as_deref())?;
        expect_shape("I", x.shape(), indices.shape())?;
        check_output(ctx, 0, &geometry.out)?;
        let (x, indices) = (x.words::<W>()?, indices.values::<i64>()?);
        let out = ctx.output(0)?.words_mut::<W>()?;
        out.fill(W::zeroed());
        for (&x, &index) in x.iter().zip(indices.iter()) {
            out[geometry.place(index)?] = x;
        }
        Ok(())
    }
}

fn misfit(shape: &[i64], pooled: &SymShape) -> OpError {
    OpError::value(format!("output_shape {shape:?} does not hold the pooled tensor, which has shape {pooled}"))
}

impl MaxUnpool {
    /// Where the elements of an input of shape `x` go.
    ///
    /// **Errors**: a rank, attributes or an output shape that do not fit each other; sizes that overflow.
    pub fn geometry(&self, x: &[usize], output_shape: Option<&[i64]>) -> Result<UnpoolGeometry, OpError> {
        self.check(x.len())?;
        let mut pooled = Shape::from(&x[..2]);
        for (d, &size) in x[2..].iter().enumerate() {
            pooled.push(self.along(d, size)?);
        }
        let out = match output_shape {
            None => pooled.clone(),
            Some(shape) => {
                let sizes: Result<Shape, _> = shape.iter().map(|&size| usize::try_from(size)).collect();
                let fits =
                    |out: &Shape| out.rank() == pooled.rank() && pooled.iter().zip(out.iter()).all(|(a, b)| a <= b);
                sizes.ok().filter(fits).ok_or_else(|| misfit(shape, &SymShape::from(&pooled)))?
            }
        };
        product(&out)?;
        Ok(UnpoolGeometry { pooled, out })
    }

    /// Checks the attributes against the rank of X.
    fn check(&self, rank: usize) -> Result<(), OpError> {
        let spatial = self.kernel_shape.len();
        let fits = |values: &[i64], n: usize| values.is_empty() || values.len() == n;
        if rank < 3 || spatial != rank - 2 || !fits(&self.strides, spatial) || !fits(&self.pads, 2 * spatial) {
            return Err(OpError::shape(format!(
                "MaxUnpool takes batch, channels and as many spatial dimensions as kernel_shape {:?}, strides {:?} and \
                 pads {:?} are for; got {rank} dimensions",
                self.kernel_shape, self.strides, self.pads
            )));
        }
        let below = |values: &[i64], least: i64| values.iter().any(|&value| value < least);
        if below(&self.kernel_shape, 1) || below(&self.strides, 1) || below(&self.pads, 0) {
            return Err(OpError::value(format!(
                "kernel_shape {:?} and strides {:?} must be at least 1 everywhere, pads {:?} at least 0",
                self.kernel_shape, self.strides, self.pads
            )));
        }
        Ok(())
    }

    /// Size of the pooled tensor along spatial dimension `d`, once the attributes are checked.
    fn along(&self, d: usize, size: usize) -> Result<usize, OpError> {
        let value = |values: &[i64], i: usize, default: i64| i128::from(values.get(i).copied().unwrap_or(default));
        let pads = value(&self.pads, d, 0) + value(&self.pads, self.kernel_shape.len() + d, 0);
        let pooled = (size as i128 - 1) * value(&self.strides, d, 1) + value(&self.kernel_shape, d, 1) - pads;
        usize::try_from(pooled).ok().filter(|&pooled| pooled <= isize::MAX as usize).ok_or_else(|| {
            OpError::shape(format!("{size} elements are not what a pooling with these attributes leaves of {pooled}"))
        })
    }
}

fn cases() -> Vec<Case> {
    let t = tensor::<f32>;
    let i = tensor::<i64>;
    let op = |kernel: &[i64], strides: &[i64]| MaxUnpool {
        kernel_shape: kernel.to_vec(),
        strides: strides.to_vec(),
        ..MaxUnpool::default()
    };
    let square = || [t(&[1, 1, 2, 2], &[1., 2., 3., 4.]), i(&[1, 1, 2, 2], &[5, 7, 13, 15])];
    let with = |[x, indices]: [_; 2], shape: &[i64]| [x, indices, tensor(&[shape.len()], shape)];
    vec![
        case(
            "2-D",
            op(&[2, 2], &[2, 2]),
            &square(),
            &[t(&[1, 1, 4, 4], &[0., 0., 0., 0., 0., 1., 0., 2., 0., 0., 0., 0., 0., 3., 0., 4.])],
        ),
        case(
            "an output shape leaves zeros behind",
            op(&[2, 2], &[2, 2]),
            &with(square(), &[1, 1, 5, 4]),
            &[t(&[1, 1, 5, 4], &[0., 0., 0., 0., 0., 1., 0., 2., 0., 0., 0., 0., 0., 3., 0., 4., 0., 0., 0., 0.])],
        ),
        case(
            "an output shape moves rows apart",
            op(&[1, 2], &[1, 2]),
            &with([t(&[1, 1, 2, 1], &[1., 2.]), i(&[1, 1, 2, 1], &[1, 2])], &[1, 2, 2, 3]),
            &[t(&[1, 2, 2, 3], &[0., 1., 0., 2., 0., 0., 0., 0., 0., 0., 0., 0.])],
        ),
        case(
            "indices count all channels and images",
            op(&[2], &[2]),
            &[t(&[2, 2, 1], &[1., 2., 3., 4.]), i(&[2, 2, 1], &[1, 2, 5, 7])],
            &[t(&[2, 2, 2], &[0., 1., 2., 0., 0., 3., 0., 4.])],
        ),
        case(
            "pads",
            MaxUnpool { pads: vec![1, 0], ..op(&[2], &[2]) },
            &[t(&[1, 1, 2], &[1., 2.]), i(&[1, 1, 2], &[0, 2])],
            &[t(&[1, 1, 3], &[1., 0., 2.])],
        ),
        case(
            "the later of two elements stays",
            op(&[2], &[]),
            &[t(&[1, 1, 2], &[1., 2.]), i(&[1, 1, 2], &[1, 1])],
            &[t(&[1, 1, 3], &[0., 2., 0.])],
        ),
        case("no image", op(&[2], &[2]), &[t(&[0, 1, 2], &[]), i(&[0, 1, 2], &[])], &[t(&[0, 1, 4], &[])]),
        case(
            "f64",
            op(&[2], &[2]),
            &[tensor(&[1, 1, 1], &[1f64]), i(&[1, 1, 1], &[1])],
            &[tensor(&[1, 1, 2], &[0f64, 1.])],
        ),
        case(
            "f16",
            op(&[2], &[2]),
            &[tensor(&[1, 1, 1], &[f16::ONE]), i(&[1, 1, 1], &[0])],
            &[tensor(&[1, 1, 2], &[f16::ONE, f16::ZERO])],
        ),
        case(
            "bf16",
            op(&[2], &[2]),
            &[tensor(&[1, 1, 1], &[bf16::ONE]), i(&[1, 1, 1], &[0])],
            &[tensor(&[1, 1, 2], &[bf16::ONE, bf16::ZERO])],
        ),
    ]
}
