//! `Concat`.

use super::{MoveWords, case_tensor, check_output, product, same_dim};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo, normalise_axis};
use firstlight_tensor::{Dim, Shape, SymShape, Tensor, TensorView};
use smallvec::SmallVec;

/// Tensors joined along one axis.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Concat {
    /// The axis to join along; negative counts from the last.
    pub axis: i64,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Concat",
    doc: "Tensors joined along one axis. All other sizes must be equal; empty tensors join like others.",
    attributes: &[AttrDoc { name: "axis", doc: "the axis to join along; negative counts from the last" }],
    inputs: &[Param { name: "inputs", ty: TypeRef::Var(0), arity: Arity::Variadic(1) }],
    outputs: &[Param { name: "concat_result", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Concat {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("axis", AttrValue::Int(self.axis))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let mut dims = ctx.dims(0)?.clone();
        let axis = normalise_axis(self.axis, dims.rank())?;
        for i in 1..ctx.n_inputs() {
            let next = ctx.dims(i)?;
            let misfit = || {
                OpError::shape(format!(
                    "cannot join {next} (input {i}) to {dims} along axis {axis}: other sizes differ"
                ))
            };
            if next.rank() != dims.rank() {
                return Err(misfit());
            }
            let joined: Option<SymShape> = dims
                .iter()
                .zip(next.iter())
                .enumerate()
                .map(|(d, (a, b))| match (a, b) {
                    (Dim::Known(x), Dim::Known(y)) if d == axis => x.checked_add(*y).map(Dim::Known),
                    (x, Dim::Known(0)) if d == axis => Some(x.clone()),
                    (Dim::Known(0), y) if d == axis => Some(y.clone()),
                    _ if d == axis => Some(Dim::Unknown),
                    _ => same_dim(a, b),
                })
                .collect();
            dims = joined.ok_or_else(misfit)?;
        }
        Ok(OutInfo::new(ctx.dtype(0)?, dims).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.move_elements(ctx)
    }
}

impl Concat {
    /// The shape that inputs of given shapes join to, and the axis.
    ///
    /// **Errors**: no input, ranks or sizes that differ, an axis that the inputs lack.
    pub fn geometry(&self, inputs: &[&[usize]]) -> Result<(Shape, usize), OpError> {
        let first = *inputs.first().ok_or_else(|| OpError::shape("Concat needs at least one input"))?;
        let axis = normalise_axis(self.axis, first.len())?;
        let mut joined = Shape::from(first);
        for (i, &dims) in inputs.iter().enumerate().skip(1) {
            let fits = dims.len() == first.len() && (0..first.len()).all(|d| d == axis || dims[d] == first[d]);
            let size = if fits { joined[axis].checked_add(dims[axis]) } else { None };
            joined[axis] = size.ok_or_else(|| {
                let (dims, first) = (Shape::from(dims), Shape::from(first));
                OpError::shape(format!(
                    "cannot join {dims} (input {i}) to {first} along axis {axis}: other sizes differ"
                ))
            })?;
        }
        Ok((joined, axis))
    }
}

impl MoveWords for Concat {
    fn move_words<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let inputs: Vec<TensorView<'_>> = (0..ctx.n_inputs()).map(|i| ctx.input(i)).collect::<Result<_, _>>()?;
        let shapes: Vec<&[usize]> = inputs.iter().map(|input| &input.shape()[..]).collect();
        let (shape, axis) = self.geometry(&shapes)?;
        check_output(ctx, 0, &shape)?;
        let output = ctx.output(0)?.words_mut::<W>()?;
        if output.is_empty() {
            return Ok(());
        }
        // The output is not empty, so no size but an input's own along the axis is 0.
        let row = product(&shape[axis..])?;
        let mut from = 0;
        for input in &inputs {
            let len = product(&input.shape()[axis..])?;
            if len > 0 {
                let words = input.words::<W>()?;
                for (to, piece) in output.chunks_exact_mut(row).zip(words.chunks_exact(len)) {
                    to[from..from + len].copy_from_slice(piece);
                }
            }
            from += len;
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let case = |name, axis, inputs: &[Tensor], output: Tensor| Case {
        name,
        op: Concat { axis }.into(),
        inputs: inputs.iter().cloned().map(Some).collect(),
        outputs: vec![output],
    };
    let t = case_tensor::<i64>;
    vec![
        case("first axis", 0, &[t(&[1, 2], &[1, 2]), t(&[2, 2], &[3, 4, 5, 6])], t(&[3, 2], &[1, 2, 3, 4, 5, 6])),
        case("last axis", -1, &[t(&[2, 1], &[1, 4]), t(&[2, 2], &[2, 3, 5, 6])], t(&[2, 3], &[1, 2, 3, 4, 5, 6])),
        case("one input", 0, &[t(&[2], &[7, 8])], t(&[2], &[7, 8])),
        case("an empty input", 0, &[t(&[0], &[]), t(&[2], &[7, 8]), t(&[0], &[])], t(&[2], &[7, 8])),
        case("all empty", 1, &[t(&[0, 1], &[]), t(&[0, 2], &[])], t(&[0, 3], &[])),
        case(
            "bytes, middle axis",
            1,
            &[case_tensor::<u8>(&[2, 1, 2], &[1, 2, 5, 6]), case_tensor::<u8>(&[2, 1, 2], &[3, 4, 7, 8])],
            case_tensor::<u8>(&[2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8]),
        ),
    ]
}
