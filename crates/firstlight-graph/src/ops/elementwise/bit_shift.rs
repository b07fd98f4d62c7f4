//! `BitShift`.

use super::{BINARY_INPUTS, SAME_OUTPUT, infer_binary, map_ints};
use crate::op::{AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, RefCtx, TypeVar};
use crate::ops::cases::{case, tensor};
use crate::ops::types::INTS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::Tensor;
use smallvec::SmallVec;

/// The bits of an integer moved, with broadcasting.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BitShift {
    /// Whether bits move toward the lowest one; otherwise toward the highest.
    pub right: bool,
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "BitShift",
    doc: "The bits of an integer moved, with broadcasting. To the right, a signed integer keeps its sign. By a negative \
          number of bits, or by all of them or more, what is left is 0, or -1 of a negative integer to the right.",
    attributes: &[AttrDoc {
        name: "right",
        doc: "whether bits move toward the lowest one; otherwise toward the highest",
    }],
    inputs: BINARY_INPUTS,
    outputs: SAME_OUTPUT,
    types: &[TypeVar { name: "T", allowed: INTS }],
    exactness: Exactness::Exact,
    cases,
};

impl OpDef for BitShift {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![("right", AttrValue::Bool(self.right))]
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        infer_binary(ctx, None)
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        let bits = ctx.input(0)?.dtype().bits() as i128;
        let right = self.right;
        map_ints(ctx, "BitShift", |x, by| match (0..bits).contains(&by) {
            true if right => x >> by,
            true => x << by,
            false if right && x < 0 => -1,
            false => 0,
        })
    }
}

fn cases() -> Vec<Case> {
    const LEFT: BitShift = BitShift { right: false };
    const RIGHT: BitShift = BitShift { right: true };
    let by = [1u8, 3, 7, 8, 255];
    vec![
        case("left", LEFT, &[tensor(&[5], &[0x81u8; 5]), tensor(&[5], &by)], &[tensor(&[5], &[2u8, 8, 128, 0, 0])]),
        case("right", RIGHT, &[tensor(&[5], &[0x81u8; 5]), tensor(&[5], &by)], &[tensor(&[5], &[64u8, 16, 1, 0, 0])]),
        case(
            "signed right",
            RIGHT,
            &[tensor(&[4], &[-9i32, -9, -9, 9]), tensor(&[4], &[1i32, 32, -1, -1])],
            &[tensor(&[4], &[-5i32, -1, -1, 0])],
        ),
        case(
            "signed left",
            LEFT,
            &[tensor(&[3], &[-1i16, 1, 1]), tensor(&[3], &[15i16, 15, -2])],
            &[tensor(&[3], &[i16::MIN, i16::MIN, 0])],
        ),
        case(
            "broadcast, 64 bits",
            LEFT,
            &[tensor(&[2, 1], &[1u64, 3]), tensor(&[2], &[0u64, 63])],
            &[tensor(&[2, 2], &[1u64, 1 << 63, 3, 1 << 63])],
        ),
        case("empty", RIGHT, &[tensor::<u16>(&[0], &[]), Tensor::scalar(1u16)], &[tensor::<u16>(&[0], &[])]),
    ]
}
