//! Ops that move or rename elements without computing on them.

pub mod reshape;

use crate::OpError;
use crate::op::RefCtx;

/// Copies the first input's elements, in logical order, to the first output.
pub(crate) fn copy_elements(ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
    let input = ctx.input(0)?;
    let output = ctx.output(0)?;
    match input.dtype().bits() {
        8 => output.words_mut::<u8>()?.copy_from_slice(&input.words::<u8>()?),
        16 => output.words_mut::<u16>()?.copy_from_slice(&input.words::<u16>()?),
        32 => output.words_mut::<u32>()?.copy_from_slice(&input.words::<u32>()?),
        64 => output.words_mut::<u64>()?.copy_from_slice(&input.words::<u64>()?),
        // Two words an element, since 16-byte alignment is not promised.
        128 => {
            let words = input.words::<[u64; 2]>()?;
            output.words_mut::<[u64; 2]>()?.copy_from_slice(&words);
        }
        _ => return Err(OpError::unsupported(format!("elements of {} cannot be moved one by one", input.dtype()))),
    }
    Ok(())
}
