//! Windows that slide over an input's spatial dimensions: what convolution and pooling share.

use crate::OpError;
use firstlight_tensor::Shape;
use smallvec::SmallVec;
use std::ops::Range;

/// How pads are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AutoPad {
    /// As the `pads` attribute says.
    #[default]
    NotSet,
    /// As many outputs as there are strides in the input; an odd pad goes to the end.
    SameUpper,
    /// As many outputs as there are strides in the input; an odd pad goes to the beginning.
    SameLower,
    /// None.
    Valid,
}

impl AutoPad {
    /// ONNX's name of the choice.
    pub fn name(self) -> &'static str {
        match self {
            AutoPad::NotSet => "NOTSET",
            AutoPad::SameUpper => "SAME_UPPER",
            AutoPad::SameLower => "SAME_LOWER",
            AutoPad::Valid => "VALID",
        }
    }

    /// The choice of that name.
    pub fn from_name(name: &str) -> Option<AutoPad> {
        [AutoPad::NotSet, AutoPad::SameUpper, AutoPad::SameLower, AutoPad::Valid]
            .into_iter()
            .find(|pad| pad.name() == name)
    }
}

/// Windows along one spatial dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowDim {
    /// Size of the input.
    pub input: usize,
    /// Taps of a window.
    pub kernel: usize,
    /// Distance of windows.
    pub stride: usize,
    /// Distance of a window's taps.
    pub dilation: usize,
    /// Padding before the input.
    pub pad_begin: usize,
    /// Padding after the input.
    pub pad_end: usize,
    /// Number of windows: the size of the output.
    pub output: usize,
}

impl WindowDim {
    /// The input index under a tap of a window; `None` where it lies in the padding.
    pub fn at(&self, window: usize, tap: usize) -> Option<usize> {
        let reach = window.checked_mul(self.stride)?.checked_add(tap.checked_mul(self.dilation)?)?;
        reach.checked_sub(self.pad_begin).filter(|&at| at < self.input)
    }

    /// The taps of a window that lie in the input, not in the padding.
    pub fn taps(&self, window: usize) -> Range<usize> {
        let from = window.saturating_mul(self.stride);
        let until = self.pad_begin.saturating_add(self.input).saturating_sub(from);
        let end = until.div_ceil(self.dilation.max(1)).min(self.kernel);
        let start = self.pad_begin.saturating_sub(from).div_ceil(self.dilation.max(1));
        start.min(end)..end
    }

    /// Calls `f` for the taps that lie in the input in one of the windows, in order, and maybe for others between them. The
    /// time it takes is bounded by the sizes of input and output, however large the kernel.
    pub fn each_tap_of(&self, windows: Range<usize>, mut f: impl FnMut(usize)) {
        if self.kernel <= self.input.saturating_add(windows.len()) {
            // Such a kernel is gone through sooner than its windows are.
            (0..self.kernel).for_each(f);
            return;
        }
        // Later windows reach the input with earlier taps.
        let mut next = 0;
        for window in windows.rev() {
            let Range { start, end } = self.taps(window);
            (start.max(next)..end).for_each(&mut f);
            next = next.max(end);
        }
    }

    /// How many taps of a window lie in the input or its padding: fewer than all where only a part of the last window
    /// fits.
    pub fn n_padded_taps(&self, window: usize) -> usize {
        let until = self.pad_begin.saturating_add(self.input).saturating_add(self.pad_end);
        until.saturating_sub(window.saturating_mul(self.stride)).div_ceil(self.dilation.max(1)).min(self.kernel)
    }
}

/// The attributes that windows have in common; empty lists stand for their defaults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows<'a> {
    pub kernel: &'a [usize],
    pub strides: &'a [i64],
    pub pads: &'a [i64],
    pub dilations: &'a [i64],
    pub auto_pad: AutoPad,
    pub ceil_mode: bool,
}

impl Windows<'_> {
    /// Number of spatial dimensions.
    pub(crate) fn rank(&self) -> usize {
        self.kernel.len()
    }

    /// Checks the attributes against the number of spatial dimensions.
    pub(crate) fn check(&self) -> Result<(), OpError> {
        let rank = self.rank();
        let wrong = |what: &str, expected: usize, got: usize| {
            Err(OpError::value(format!("{what} has {got} elements, expected {expected} for {rank} spatial dimensions")))
        };
        if !self.strides.is_empty() && self.strides.len() != rank {
            return wrong("strides", rank, self.strides.len());
        }
        if !self.dilations.is_empty() && self.dilations.len() != rank {
            return wrong("dilations", rank, self.dilations.len());
        }
        if !self.pads.is_empty() && self.pads.len() != 2 * rank {
            return wrong("pads", 2 * rank, self.pads.len());
        }
        if self.kernel.contains(&0) {
            return Err(OpError::value(format!("the kernel {} has a size of 0", Shape::from(self.kernel))));
        }
        for (what, values, least) in
            [("strides", self.strides, 1), ("dilations", self.dilations, 1), ("pads", self.pads, 0)]
        {
            if values.iter().any(|&value| value < least) {
                return Err(OpError::value(format!("{what} {values:?} must be at least {least} everywhere")));
            }
        }
        Ok(())
    }

    /// Windows along all dimensions of the spatial sizes `input`, with the attributes checked.
    pub(crate) fn resolve(&self, input: &[usize]) -> Result<SmallVec<[WindowDim; 3]>, OpError> {
        self.check()?;
        if input.len() != self.rank() {
            return Err(OpError::shape(format!(
                "an input of {} spatial dimensions does not fit a kernel of {}",
                input.len(),
                self.rank()
            )));
        }
        input.iter().enumerate().map(|(d, &size)| self.along(d, size)).collect()
    }

    /// Windows along dimension `d` of size `input`, once the attributes are checked.
    pub(crate) fn along(&self, d: usize, input: usize) -> Result<WindowDim, OpError> {
        let value = |values: &[i64], i: usize, default: i64| values.get(i).copied().unwrap_or(default) as i128;
        let (kernel, n) = (self.kernel[d] as i128, input as i128);
        let (stride, dilation) = (value(self.strides, d, 1), value(self.dilations, d, 1));
        let reach = (kernel - 1) * dilation + 1;
        let same = || {
            let output = (n + stride - 1) / stride;
            let total = ((output - 1) * stride + reach - n).max(0);
            (output, total)
        };
        let (pad_begin, pad_end, output) = match self.auto_pad {
            AutoPad::SameUpper => {
                let (output, total) = same();
                (total / 2, total - total / 2, output)
            }
            AutoPad::SameLower => {
                let (output, total) = same();
                (total - total / 2, total / 2, output)
            }
            AutoPad::Valid => (0, 0, (n - reach).div_euclid(stride) + 1),
            AutoPad::NotSet => {
                let (begin, end) = (value(self.pads, d, 0), value(self.pads, self.rank() + d, 0));
                let room = n + begin + end - reach;
                let mut output = room.div_euclid(stride) + 1;
                if self.ceil_mode {
                    // A last window that only partly fits counts; one that would start behind the input does not.
                    output += i128::from(room.rem_euclid(stride) != 0);
                    output -= i128::from((output - 1) * stride >= n + begin);
                }
                (begin, end, output)
            }
        };
        let misfit = |why: &str| {
            OpError::shape(format!(
                "a kernel of {kernel} taps (reach {reach}) does not fit {input} elements padded by {pad_begin} and \
                 {pad_end} in spatial dimension {d}: {why}"
            ))
        };
        let strides_in_nothing = n == 0 && matches!(self.auto_pad, AutoPad::SameUpper | AutoPad::SameLower);
        if output < 1 && !strides_in_nothing {
            return Err(misfit("it reaches beyond the padding"));
        }
        let size = |value: i128| {
            usize::try_from(value).ok().filter(|&value| value <= isize::MAX as usize).ok_or_else(|| misfit("too large"))
        };
        // No tap may lie beyond what an index can say.
        size(n + pad_begin + pad_end)?;
        size((output.max(1) - 1) * stride + reach)?;
        Ok(WindowDim {
            input,
            kernel: size(kernel)?,
            stride: size(stride)?,
            dilation: size(dilation)?,
            pad_begin: size(pad_begin)?,
            pad_end: size(pad_end)?,
            output: size(output)?,
        })
    }
}

/// Advances a row-major index by one; false when it wraps to the first.
pub(crate) fn advance(index: &mut [usize], mut size: impl FnMut(usize) -> usize) -> bool {
    for d in (0..index.len()).rev() {
        index[d] += 1;
        if index[d] < size(d) {
            return true;
        }
        index[d] = 0;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Windows<'static> =
        Windows { kernel: &[3], strides: &[], pads: &[], dilations: &[], auto_pad: AutoPad::NotSet, ceil_mode: false };

    fn dim(windows: Windows<'_>, input: usize) -> (usize, usize, usize) {
        let dim = windows.resolve(&[input]).unwrap()[0];
        (dim.pad_begin, dim.pad_end, dim.output)
    }

    #[test]
    fn pads_and_outputs_follow_the_standard() {
        assert_eq!(dim(PLAIN, 5), (0, 0, 3));
        assert_eq!(dim(Windows { strides: &[2], pads: &[1, 1], ..PLAIN }, 4), (1, 1, 2));
        assert_eq!(dim(Windows { strides: &[2], auto_pad: AutoPad::SameUpper, ..PLAIN }, 4), (0, 1, 2));
        assert_eq!(dim(Windows { strides: &[2], auto_pad: AutoPad::SameLower, ..PLAIN }, 4), (1, 0, 2));
        assert_eq!(dim(Windows { dilations: &[2], auto_pad: AutoPad::Valid, ..PLAIN }, 6), (0, 0, 2));
        assert_eq!(dim(Windows { kernel: &[1], strides: &[3], auto_pad: AutoPad::SameUpper, ..PLAIN }, 5), (0, 0, 2));
    }

    #[test]
    fn a_partial_window_counts_in_ceil_mode_unless_it_starts_in_the_padding() {
        let ceil = Windows { strides: &[2], ceil_mode: true, ..PLAIN };
        assert_eq!(dim(ceil, 4), (0, 0, 2));
        assert_eq!(dim(ceil, 5), (0, 0, 2));
        assert_eq!(dim(Windows { kernel: &[1], strides: &[2], pads: &[0, 1], ..ceil }, 3), (0, 1, 2));
        assert_eq!(dim(Windows { kernel: &[2], strides: &[3], pads: &[1, 1], ..ceil }, 3), (1, 1, 2));
        assert_eq!(dim(Windows { kernel: &[1], strides: &[2], pads: &[1, 1], ..ceil }, 1), (1, 1, 1));
    }

    #[test]
    fn taps_are_those_in_the_input() {
        let windows = Windows { kernel: &[4], dilations: &[2], strides: &[3], pads: &[5, 6], ..PLAIN };
        let dim = windows.resolve(&[4]).unwrap()[0];
        for window in 0..dim.output {
            let inside: Vec<usize> = (0..dim.kernel).filter(|&tap| dim.at(window, tap).is_some()).collect();
            assert_eq!(dim.taps(window).collect::<Vec<_>>(), inside, "window {window}");
        }
        assert_eq!(dim.output, 3);
    }

    #[test]
    fn the_taps_of_all_windows_come_once_and_in_order() {
        let huge = Windows { kernel: &[usize::MAX >> 2], auto_pad: AutoPad::SameLower, strides: &[2], ..PLAIN };
        let sparse = Windows { kernel: &[1 << 40], dilations: &[3], pads: &[1 << 40, 2 << 40], ..PLAIN };
        let far = Windows { kernel: &[1 << 41], strides: &[1 << 40], pads: &[1 << 41, 1 << 41], ..PLAIN };
        for windows in [PLAIN, huge, far] {
            let dim = windows.resolve(&[5]).unwrap()[0];
            let mut expected: Vec<usize> = (0..dim.output).flat_map(|window| dim.taps(window)).collect();
            expected.sort_unstable();
            expected.dedup();
            let mut got = vec![];
            dim.each_tap_of(0..dim.output, |tap| got.push(tap));
            assert_eq!(got, expected, "{windows:?}");
        }
        let dim = sparse.resolve(&[5]).unwrap()[0];
        let mut got = vec![];
        dim.each_tap_of(7..8, |tap| got.push(tap));
        assert_eq!(got, dim.taps(7).collect::<Vec<_>>());
        assert!((1..=2).contains(&got.len()), "{got:?}");
    }

    #[test]
    fn padded_taps_are_those_before_the_end_of_the_padding() {
        let windows = Windows { kernel: &[3], dilations: &[2], strides: &[3], pads: &[1, 1], ceil_mode: true, ..PLAIN };
        let dim = windows.resolve(&[7]).unwrap()[0];
        let padded: Vec<usize> = (0..dim.output).map(|window| dim.n_padded_taps(window)).collect();
        // Windows at 0, 3 and 6 of 9 positions.
        assert_eq!(padded, [3, 3, 2]);
    }

    #[test]
    fn absurd_attributes_are_errors() {
        let bad = [
            Windows { kernel: &[0], ..PLAIN },
            Windows { strides: &[0], ..PLAIN },
            Windows { strides: &[1, 1], ..PLAIN },
            Windows { dilations: &[-1], ..PLAIN },
            Windows { dilations: &[i64::MAX], ..PLAIN },
            Windows { pads: &[i64::MAX, i64::MAX], ..PLAIN },
            Windows { pads: &[-1, 0], ..PLAIN },
            Windows { pads: &[1], ..PLAIN },
            Windows { kernel: &[9], ..PLAIN },
            Windows { kernel: &[usize::MAX], dilations: &[i64::MAX], auto_pad: AutoPad::SameUpper, ..PLAIN },
        ];
        for windows in bad {
            assert!(windows.resolve(&[5]).is_err(), "{windows:?}");
        }
        assert!(PLAIN.resolve(&[5, 5]).is_err());
        assert_eq!(PLAIN.along(0, usize::MAX).ok(), None);
    }
}
