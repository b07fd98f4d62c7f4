//! `Trilu`.

use super::{MoveWords, case_tensor, check_output, optional_ints};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Tensor};
use smallvec::SmallVec;
use std::ops::Range;

/// The upper or lower triangle of the matrices in the last two dimensions; zeros elsewhere.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Trilu {
    /// Whether the upper triangle is kept; otherwise the lower one.
    pub upper: bool,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "Trilu",
    doc: "The upper or lower triangle of the matrices in the last two dimensions; zeros elsewhere. The triangle \
          includes diagonal `k`: 0 (the default) is the main one, positive ones lie above it.",
    attributes: &[AttrDoc { name: "upper", doc: "whether the upper triangle is kept; otherwise the lower one" }],
    inputs: &[
        Param { name: "input", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "k", ty: TypeRef::Fixed(DType::I64), arity: Arity::Optional },
    ],
    outputs: &[Param { name: "output", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for Trilu {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("upper", AttrValue::Bool(self.upper))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let dims = ctx.dims(0)?;
        check_rank(dims.rank())?;
        Ok(OutInfo::new(ctx.dtype(0)?, dims.clone()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.move_elements(ctx)
    }
}

impl Trilu {
    /// The columns of row `row` that are kept of a matrix with `cols` columns.
    pub fn kept(&self, row: usize, cols: usize, k: i64) -> Range<usize> {
        let diagonal = row as i128 + i128::from(k) + i128::from(!self.upper);
        let at = diagonal.clamp(0, cols as i128) as usize;
        if self.upper { at..cols } else { 0..at }
    }

    /// The diagonal that an optional input gives.
    ///
    /// **Errors**: more or fewer elements than one.
    pub fn diagonal(given: Option<&[i64]>) -> Result<i64, OpError> {
        match given {
            None => Ok(0),
            Some(&[k]) => Ok(k),
            Some(other) => Err(OpError::shape(format!("k should hold one element, it holds {}", other.len()))),
        }
    }
}

fn check_rank(rank: usize) -> Result<(), OpError> {
    match rank {
        0 | 1 => {
            Err(OpError::shape(format!("an input of rank {rank} holds no matrices; Trilu takes rank 2 and above")))
        }
        _ => Ok(()),
    }
}

impl MoveWords for Trilu {
    fn move_words<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let input = ctx.input(0)?;
        let k = Trilu::diagonal(optional_ints(ctx, 1)?.as_deref())?;
        let shape = input.shape().clone();
        check_rank(shape.rank())?;
        check_output(ctx, 0, &shape)?;
        let (rows, cols) = (shape[shape.rank() - 2], shape[shape.rank() - 1]);
        let output = ctx.output(0)?.words_mut::<W>()?;
        if output.is_empty() {
            return Ok(());
        }
        let words = input.words::<W>()?;
        for (i, (to, from)) in output.chunks_exact_mut(cols).zip(words.chunks_exact(cols)).enumerate() {
            let kept = self.kept(i % rows, cols, k);
            to.fill(W::zeroed());
            to[kept.clone()].copy_from_slice(&from[kept]);
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let case = |name, upper, input: Tensor, k: Option<i64>, output: Tensor| Case {
        name,
        op: Trilu { upper }.into(),
        inputs: [Some(input)].into_iter().chain(k.map(|k| Some(Tensor::scalar(k)))).collect(),
        outputs: vec![output],
    };
    let square = case_tensor(&[3, 3], &[1f32, 2., 3., 4., 5., 6., 7., 8., 9.]);
    let of_square = |values: &[f32]| case_tensor(&[3, 3], values);
    vec![
        case("upper", true, square.clone(), None, of_square(&[1., 2., 3., 0., 5., 6., 0., 0., 9.])),
        case("lower", false, square.clone(), None, of_square(&[1., 0., 0., 4., 5., 0., 7., 8., 9.])),
        case("above the diagonal", true, square.clone(), Some(1), of_square(&[0., 2., 3., 0., 0., 6., 0., 0., 0.])),
        case("below the diagonal", false, square.clone(), Some(-1), of_square(&[0., 0., 0., 4., 0., 0., 7., 8., 0.])),
        case("nothing is left", true, square.clone(), Some(i64::MAX), of_square(&[0.; 9])),
        case("all is left", true, square.clone(), Some(i64::MIN), square),
        case(
            "two wide matrices of bytes",
            false,
            case_tensor(&[2, 2, 3], &[1u8, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
            Some(1),
            case_tensor(&[2, 2, 3], &[1u8, 2, 0, 4, 5, 6, 7, 8, 0, 10, 11, 12]),
        ),
        case("no rows", true, case_tensor::<i64>(&[0, 3], &[]), None, case_tensor::<i64>(&[0, 3], &[])),
        case("no columns", false, case_tensor::<i64>(&[3, 0], &[]), None, case_tensor::<i64>(&[3, 0], &[])),
    ]
}
