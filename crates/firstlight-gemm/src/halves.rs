//! 16-bit floats to f32 and back, with the bits that the `half` crate gives.
//!
//! Plain integer arithmetic without branches: compiled for an instruction set, the loops use its vectors.

use crate::simd::Simd;

/// Applies `f` to `n` elements.
///
/// # Safety
/// `x` is readable and `out` writable for `n` elements, at any alignment.
#[inline(always)]
unsafe fn convert<T: Copy, U>(x: *const T, out: *mut U, n: usize, f: impl Fn(T) -> U) {
    for i in 0..n {
        // SAFETY: i is below n, for which the caller vouches.
        unsafe { out.add(i).write_unaligned(f(x.add(i).read_unaligned())) }
    }
}

/// `out[i]` = the f32 of the f16 whose bits are `x[i]`.
///
/// # Safety
/// `x` is readable and `out` writable for `n` elements, at any alignment.
#[inline(always)]
pub(crate) unsafe fn widen_f16<S: Simd>(_: S, x: *const u16, out: *mut f32, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { convert(x, out, n, f16_to_f32) }
}

/// `out[i]` = the f32 of the bf16 whose bits are `x[i]`.
///
/// # Safety
/// As [`widen_f16`].
#[inline(always)]
pub(crate) unsafe fn widen_bf16<S: Simd>(_: S, x: *const u16, out: *mut f32, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { convert(x, out, n, bf16_to_f32) }
}

/// `out[i]` = the bits of the f16 nearest to `x[i]`, ties to even.
///
/// # Safety
/// As [`widen_f16`].
#[inline(always)]
pub(crate) unsafe fn narrow_f16<S: Simd>(_: S, x: *const f32, out: *mut u16, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { convert(x, out, n, f32_to_f16) }
}

/// `out[i]` = the bits of the bf16 nearest to `x[i]`, ties to even.
///
/// # Safety
/// As [`widen_f16`].
#[inline(always)]
pub(crate) unsafe fn narrow_bf16<S: Simd>(_: S, x: *const f32, out: *mut u16, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { convert(x, out, n, f32_to_bf16) }
}

#[inline(always)]
fn f16_to_f32(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff) << 13;
    // The exponent's bias grows from 15 to 127; that of infinities and NaN to the last one.
    let normal = magnitude + (112 << 23);
    let special = (magnitude + (224 << 23)) | if magnitude > 0x7c00 << 13 { 1 << 22 } else { 0 };
    // A subnormal's bits count units of 2^-24: as the low bits of 2^-14 they are that many above it.
    let least = f32::from_bits(113 << 23);
    let subnormal = (f32::from_bits(magnitude + (113 << 23)) - least).to_bits();
    let wide = if magnitude >= 0x7c00 << 13 { special } else { normal };
    let wide = if magnitude < 0x400 << 13 { subnormal } else { wide };
    f32::from_bits(wide | u32::from(bits & 0x8000) << 16)
}

#[inline(always)]
fn bf16_to_f32(bits: u16) -> f32 {
    let quiet = if bits & 0x7fff > 0x7f80 { 0x40 } else { 0 };
    f32::from_bits(u32::from(bits | quiet) << 16)
}

#[inline(always)]
fn f32_to_f16(x: f32) -> u16 {
    let magnitude = x.to_bits() & 0x7fff_ffff;
    let sign = (x.to_bits() >> 16) & 0x8000;
    // To nearest: half a unit of the last place is added, one less where the bit above it is even.
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
    // The sum with a number whose last place is 2^-24 is rounded to such places.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let narrow = if magnitude < 113 << 23 { subnormal } else { normal };
    let narrow = if magnitude >= 143 << 23 { 0x7c00 } else { narrow };
    let nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
    let narrow = if magnitude > 0x7f80_0000 { nan } else { narrow };
    (sign | narrow) as u16
}

#[inline(always)]
fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let nearest = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let nan = (bits >> 16) | 0x40;
    (if bits & 0x7fff_ffff > 0x7f80_0000 { nan } else { nearest }) as u16
}

#[cfg(test)]
mod tests {
    use crate::{Isa, IsaKind};
    use half::{bf16, f16};

    fn isas() -> impl Iterator<Item = Isa> {
        IsaKind::ALL.into_iter().filter_map(Isa::of)
    }

    #[test]
    fn every_half_widens_to_the_bits_of_the_half_crate() {
        let bits: Vec<u16> = (0..=u16::MAX).collect();
        // One byte behind an aligned address.
        let bytes: Vec<u8> = [0].into_iter().chain(bits.iter().flat_map(|bits| bits.to_ne_bytes())).collect();
        let mut wide = vec![0f32; bits.len()];
        for isa in isas() {
            isa.widen_f16(&bytes[1..], &mut wide);
            for (&bits, wide) in bits.iter().zip(&wide) {
                assert_eq!(wide.to_bits(), f16::from_bits(bits).to_f32().to_bits(), "{isa:?} {bits:x}");
            }
            isa.widen_bf16(&bytes[1..], &mut wide);
            for (&bits, wide) in bits.iter().zip(&wide) {
                assert_eq!(wide.to_bits(), bf16::from_bits(bits).to_f32().to_bits(), "{isa:?} {bits:x}");
            }
        }
    }

    #[test]
    fn f32_narrow_to_the_bits_of_the_half_crate() {
        // Every f16 and bf16, what lies halfway between neighbours, and what lies just beside; then a walk over all f32.
        let near =
            |bits: u32| [0, 1, u32::MAX, 0x1000, 0xfff, 0x1001, 0x8000, 0x7fff, 0x8001].map(|d| bits.wrapping_add(d));
        let halves = (0..=u16::MAX).flat_map(|bits| {
            [f16::from_bits(bits).to_f32().to_bits(), bf16::from_bits(bits).to_f32().to_bits()]
                .into_iter()
                .flat_map(near)
        });
        let walk = (0..u32::MAX).step_by(4099);
        let x: Vec<f32> = halves.chain(walk).map(f32::from_bits).collect();
        let mut narrow = vec![0u16; x.len()];
        for isa in isas() {
            isa.narrow_f16(&x[..], &mut narrow);
            for (x, narrow) in x.iter().zip(&narrow) {
                assert_eq!(*narrow, f16::from_f32(*x).to_bits(), "{isa:?} {:x}", x.to_bits());
            }
            isa.narrow_bf16(&x[..], &mut narrow);
            for (x, narrow) in x.iter().zip(&narrow) {
                assert_eq!(*narrow, bf16::from_f32(*x).to_bits(), "{isa:?} {:x}", x.to_bits());
            }
        }
    }
}
