//! What `ScatterND` and `ScatterElements` share.

use super::{MoveWords, dense_bytes};
use crate::OpError;
use crate::op::{AttrDoc, RefCtx};
use crate::ops::float::Float;
use crate::ops::types::NUMERIC;
use firstlight_tensor::{DType, Element, bf16, f16};

/// What becomes of an element that an update meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reduction {
    /// The update takes its place.
    #[default]
    None,
    /// Their sum; integers wrap.
    Add,
    /// Their product; integers wrap.
    Mul,
    /// The greater; NaN wins.
    Max,
    /// The lesser; NaN wins.
    Min,
}

pub(super) const REDUCTION: AttrDoc = AttrDoc {
    name: "reduction",
    doc: "what becomes of an element that an update meets: none (it is replaced), add, mul, max or min",
};

impl Reduction {
    /// The name that ONNX has for it.
    pub fn name(self) -> &'static str {
        match self {
            Reduction::None => "none",
            Reduction::Add => "add",
            Reduction::Mul => "mul",
            Reduction::Max => "max",
            Reduction::Min => "min",
        }
    }

    /// Checks that elements of a type can be reduced.
    ///
    /// **Errors**: they cannot.
    pub fn check(self, dtype: DType) -> Result<(), OpError> {
        match self == Reduction::None || NUMERIC.contains(&dtype) {
            true => Ok(()),
            false => {
                Err(OpError::unsupported(format!("reduction `{}` of {dtype}: only numbers are reduced", self.name())))
            }
        }
    }

    fn of_ints<T: Into<i128>>(self, old: T, new: T) -> i128 {
        let (old, new) = (old.into(), new.into());
        match self {
            Reduction::None => new,
            Reduction::Add => old + new,
            Reduction::Mul => old.wrapping_mul(new),
            Reduction::Max => old.max(new),
            Reduction::Min => old.min(new),
        }
    }

    fn of_floats<T: Float>(self, old: T, new: T) -> T {
        let (a, b) = (old.widen(), new.widen());
        match self {
            Reduction::None => new,
            Reduction::Add => T::narrow(a + b),
            Reduction::Mul => T::narrow(a * b),
            Reduction::Max if b > a || b.partial_cmp(&b).is_none() => new,
            Reduction::Min if b < a || b.partial_cmp(&b).is_none() => new,
            Reduction::Max | Reduction::Min => old,
        }
    }
}

/// Copies the data (input 0), then applies the updates (input 2) in their order, update `i` to element `targets[i]`.
pub(super) fn apply(ctx: &mut RefCtx<'_>, reduction: Reduction, targets: &[usize]) -> Result<(), OpError> {
    let dtype = ctx.input(0)?.dtype();
    reduction.check(dtype)?;
    if reduction == Reduction::None {
        struct Replace<'t>(&'t [usize]);
        impl MoveWords for Replace<'_> {
            fn move_words<W: bytemuck::Pod>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
                let (data, updates) = (ctx.input(0)?.words::<W>()?, ctx.input(2)?.words::<W>()?);
                let output = ctx.output(0)?.words_mut::<W>()?;
                output.copy_from_slice(&data);
                for (&at, &update) in self.0.iter().zip(updates.iter()) {
                    output[at] = update;
                }
                Ok(())
            }
        }
        return Replace(targets).move_elements(ctx);
    }
    match dtype {
        DType::F32 => reduce(ctx, targets, |a: f32, b| reduction.of_floats(a, b)),
        DType::F64 => reduce(ctx, targets, |a: f64, b| reduction.of_floats(a, b)),
        DType::F16 => reduce(ctx, targets, |a: f16, b| reduction.of_floats(a, b)),
        DType::BF16 => reduce(ctx, targets, |a: bf16, b| reduction.of_floats(a, b)),
        DType::I64 => reduce(ctx, targets, |a: i64, b| reduction.of_ints(a, b) as i64),
        DType::I32 => reduce(ctx, targets, |a: i32, b| reduction.of_ints(a, b) as i32),
        DType::I16 => reduce(ctx, targets, |a: i16, b| reduction.of_ints(a, b) as i16),
        DType::I8 => reduce(ctx, targets, |a: i8, b| reduction.of_ints(a, b) as i8),
        DType::U64 => reduce(ctx, targets, |a: u64, b| reduction.of_ints(a, b) as u64),
        DType::U32 => reduce(ctx, targets, |a: u32, b| reduction.of_ints(a, b) as u32),
        DType::U16 => reduce(ctx, targets, |a: u16, b| reduction.of_ints(a, b) as u16),
        DType::U8 => reduce(ctx, targets, |a: u8, b| reduction.of_ints(a, b) as u8),
        other => Err(OpError::dtype(format!("elements of {other} are not reduced"))),
    }
}

fn reduce<T: Element>(ctx: &mut RefCtx<'_>, targets: &[usize], f: impl Fn(T, T) -> T) -> Result<(), OpError> {
    let bytes = dense_bytes(&ctx.input(0)?)?;
    let updates = ctx.input(2)?;
    let updates = updates.values::<T>()?;
    let output = ctx.output(0)?.values_mut::<T>()?;
    for (out, word) in output.iter_mut().zip(bytes.chunks_exact(size_of::<T>())) {
        *out = bytemuck::pod_read_unaligned(word);
    }
    for (&at, &update) in targets.iter().zip(updates.iter()) {
        output[at] = f(output[at], update);
    }
    Ok(())
}
