//! `ReverseSequence`.

use super::{MoveWords, case_tensor, check_output, product, view_ints};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::types::BYTE_SIZED;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Shape, Tensor};
use smallvec::SmallVec;

/// Sequences of a batch, each with its first elements in reverse.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ReverseSequence {
    /// Whether the batch is the first axis and time the second; otherwise the other way round.
    pub batch_first: bool,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "ReverseSequence",
    doc: "Sequences of a batch, each with as many of its first elements in reverse as `sequence_lens` says; the others \
          stay in place.",
    attributes: &[AttrDoc {
        name: "batch_first",
        doc: "whether the batch is the first axis and time the second; otherwise the other way round",
    }],
    inputs: &[
        Param { name: "input", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "sequence_lens", ty: TypeRef::Fixed(DType::I64), arity: Arity::One },
    ],
    outputs: &[Param { name: "Y", ty: TypeRef::Var(0), arity: Arity::One }],
    types: &[TypeVar { name: "T", allowed: BYTE_SIZED }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for ReverseSequence {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("batch_first", AttrValue::Bool(self.batch_first))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (dims, lens) = (ctx.dims(0)?, ctx.dims(1)?);
        let batch = if self.batch_first { 0 } else { 1 };
        let fits = dims.rank() >= 2 && lens.rank() == 1;
        if !fits || super::same_dim(&dims[batch], &lens[0]).is_none() {
            return Err(OpError::shape(format!(
                "{lens} lengths do not fit sequences {dims} with the batch in axis {batch}"
            )));
        }
        Ok(OutInfo::new(ctx.dtype(0)?, dims.clone()).one())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        self.move_elements(ctx)
    }
}

impl ReverseSequence {
    /// Elements of an item, sizes of the batch and of time, in an input of given dimensions.
    ///
    /// **Errors**: fewer than two dimensions; not one length an item of the batch.
    pub fn geometry(&self, dims: &[usize], lens: &[usize]) -> Result<[usize; 3], OpError> {
        let fits = |batch: usize| lens == [batch];
        match (dims, self.batch_first) {
            (&[batch, time, ref rest @ ..], true) | (&[time, batch, ref rest @ ..], false) if fits(batch) => {
                Ok([product(rest)?, batch, time])
            }
            _ => {
                let (dims, lens) = (Shape::from(dims), Shape::from(lens));
                Err(OpError::shape(format!("{lens} lengths do not fit sequences {dims}")))
            }
        }
    }

    /// The time whose item stands at a time in the output, in a sequence of a length.
    #[inline]
    pub fn source(time: usize, len: usize) -> usize {
        if time < len { len - 1 - time } else { time }
    }

    /// A length of a sequence.
    ///
    /// **Errors**: it is negative or longer than there is time.
    pub fn length(len: i64, time: usize) -> Result<usize, OpError> {
        let len_or = usize::try_from(len).ok().filter(|&len| len <= time);
        len_or.ok_or_else(|| OpError::value(format!("a sequence length is {len}, expected 0 to {time}")))
    }
}

impl MoveWords for ReverseSequence {
    fn move_words<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let (input, lens) = (ctx.input(0)?, ctx.input(1)?);
        let [item, batch, time] = self.geometry(input.shape(), lens.shape())?;
        check_output(ctx, 0, input.shape())?;
        let lens: Vec<usize> =
            view_ints(&lens)?.into_iter().map(|len| ReverseSequence::length(len, time)).collect::<Result<_, _>>()?;
        let output = ctx.output(0)?.words_mut::<W>()?;
        if output.is_empty() {
            return Ok(());
        }
        let words = input.words::<W>()?;
        for (i, to) in output.chunks_exact_mut(item).enumerate() {
            let (b, t) = if self.batch_first { (i / time, i % time) } else { (i % batch, i / batch) };
            let source = ReverseSequence::source(t, lens[b]);
            let from = if self.batch_first { b * time + source } else { source * batch + b };
            to.copy_from_slice(&words[from * item..(from + 1) * item]);
        }
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let case = |name, batch_first, input: Tensor, lens: &[i64], output: Tensor| Case {
        name,
        op: ReverseSequence { batch_first }.into(),
        inputs: vec![Some(input), Some(case_tensor(&[lens.len()], lens))],
        outputs: vec![output],
    };
    let t = case_tensor::<f32>;
    vec![
        case(
            "time first",
            false,
            t(&[3, 2], &[1., 4., 2., 5., 3., 6.]),
            &[3, 2],
            t(&[3, 2], &[3., 5., 2., 4., 1., 6.]),
        ),
        case(
            "batch first, items of two, lengths 0 and 2",
            true,
            t(&[2, 2, 2], &[1., 2., 3., 4., 5., 6., 7., 8.]),
            &[0, 2],
            t(&[2, 2, 2], &[1., 2., 3., 4., 7., 8., 5., 6.]),
        ),
        case("empty", true, t(&[0, 3], &[]), &[], t(&[0, 3], &[])),
        case("bytes", true, case_tensor(&[1, 3], &[1u8, 2, 3]), &[3], case_tensor(&[1, 3], &[3u8, 2, 1])),
    ]
}
