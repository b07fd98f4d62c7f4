//! Broadcasting by runs: the longest stretches of an output over which every input is either contiguous or one element.

use firstlight_graph::OpError;
use firstlight_tensor::Shape;
use smallvec::SmallVec;
use std::ops::Range;

/// Sizes or steps, one a dimension; on the stack up to rank 6.
pub(super) type Dims = SmallVec<[usize; 6]>;

/// An output shape with the steps of its `N` dense inputs, neighbouring dimensions joined where every input allows it.
#[derive(Debug)]
pub(super) struct Runs<const N: usize> {
    dims: Dims,
    steps: [Dims; N],
}

impl<const N: usize> Runs<N> {
    /// The runs of inputs of given shapes that broadcast to `out`.
    ///
    /// **Errors**: an input that does not.
    pub(super) fn broadcast(out: &Shape, inputs: [&Shape; N]) -> Result<Runs<N>, OpError> {
        let mut runs = Runs { dims: Dims::new(), steps: std::array::from_fn(|_| Dims::new()) };
        let mut strides: [usize; N] = [1; N];
        // From the innermost dimension out.
        for (back, &dim) in out.iter().rev().enumerate() {
            let mut steps = [0; N];
            for ((step, stride), input) in steps.iter_mut().zip(&mut strides).zip(inputs) {
                let of = input.rank().checked_sub(back + 1).map_or(1, |d| input[d]);
                if of != dim && of != 1 {
                    return Err(OpError::shape(format!("shape {input} does not broadcast to {out}")));
                }
                *step = if of == 1 { 0 } else { *stride };
                *stride *= of;
            }
            runs.push_outer(dim, steps);
        }
        if inputs.iter().any(|input| input.rank() > out.rank()) {
            return Err(OpError::shape(format!("an input of {inputs:?} has more dimensions than the output {out}")));
        }
        runs.dims.reverse();
        runs.steps.iter_mut().for_each(|steps| steps.reverse());
        Ok(runs)
    }

    /// Adds a dimension outside those pushed before.
    fn push_outer(&mut self, dim: usize, steps: [usize; N]) {
        if dim == 1 {
            return;
        }
        if let Some(inner) = self.dims.last_mut() {
            let joins = |(steps, &step): (&Dims, &usize)| steps.last().is_some_and(|&s| step == s * *inner);
            if self.steps.iter().zip(&steps).all(joins) {
                *inner *= dim;
                return;
            }
        }
        self.dims.push(dim);
        self.steps.iter_mut().zip(steps).for_each(|(all, step)| all.push(step));
    }

    /// Elements of a whole run.
    pub(super) fn len(&self) -> usize {
        self.dims.last().copied().unwrap_or(1)
    }

    /// For each input, the step within a run: 1, or 0 for one element.
    pub(super) fn steps(&self) -> [usize; N] {
        std::array::from_fn(|i| self.steps[i].last().copied().unwrap_or(0))
    }

    /// Calls `f(part, starts)` for the runs that make up output elements `from..from + n`: `part` of those elements, and
    /// the element of each input at which it starts.
    pub(super) fn for_each(&self, from: usize, n: usize, mut f: impl FnMut(Range<usize>, [usize; N])) {
        let rank = self.dims.len();
        let mut index: Dims = SmallVec::from_elem(0, rank);
        let mut at = [0; N];
        let mut rest = from;
        for d in (0..rank).rev() {
            index[d] = rest % self.dims[d].max(1);
            rest /= self.dims[d].max(1);
            at.iter_mut().zip(&self.steps).for_each(|(at, steps)| *at += index[d] * steps[d]);
        }
        let (len, inner_steps) = (self.len(), self.steps());
        let mut done = 0;
        while done < n {
            let within = index.last().copied().unwrap_or(0);
            let part = (len - within).min(n - done);
            f(done..done + part, at);
            done += part;
            // On to the next run: the inner index returns to 0, the outer ones count.
            at.iter_mut().zip(inner_steps).for_each(|(at, step)| *at -= within * step);
            if let Some(inner) = index.last_mut() {
                *inner = 0;
            }
            for d in (0..rank.saturating_sub(1)).rev() {
                index[d] += 1;
                at.iter_mut().zip(&self.steps).for_each(|(at, steps)| *at += steps[d]);
                if index[d] < self.dims[d] {
                    break;
                }
                at.iter_mut().zip(&self.steps).for_each(|(at, steps)| *at -= index[d] * steps[d]);
                index[d] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions<const N: usize>(out: &[usize], inputs: [&[usize]; N], from: usize, n: usize) -> Vec<[usize; N]> {
        let inputs = inputs.map(Shape::from);
        let runs = Runs::broadcast(&out.into(), std::array::from_fn(|i| &inputs[i])).unwrap();
        let mut all = vec![];
        runs.for_each(from, n, |part, at: [usize; N]| {
            assert_eq!(part.start, all.len());
            all.extend(part.clone().map(|i| std::array::from_fn(|j| at[j] + (i - part.start) * runs.steps()[j])));
        });
        all
    }

    #[test]
    fn runs_join_dimensions() {
        let runs = |out: &[usize], a: &[usize], b: &[usize]| {
            let runs = Runs::broadcast(&out.into(), [&a.into(), &b.into()]).unwrap();
            (runs.dims.to_vec(), runs.len(), runs.steps())
        };
        assert_eq!(runs(&[2, 3, 4], &[2, 3, 4], &[3, 4]), (vec![2, 12], 12, [1, 1]));
        assert_eq!(runs(&[2, 3, 4], &[2, 3, 4], &[3, 1]), (vec![2, 3, 4], 4, [1, 0]));
        assert_eq!(runs(&[2, 3, 4, 1], &[2, 3, 4, 1], &[1, 1, 1, 1]), (vec![24], 24, [1, 0]));
        assert_eq!(runs(&[], &[], &[]).1, 1);
        assert!(Runs::broadcast(&[2].into(), [&[3].into()]).is_err());
        assert!(Runs::broadcast(&[2].into(), [&[2, 2].into()]).is_err());
    }

    #[test]
    fn every_part_of_the_output_is_found() {
        let shapes: [(&[usize], [&[usize]; 2]); 4] = [
            (&[2, 3, 4], [&[3, 1], &[2, 1, 4]]),
            (&[5, 1, 2], [&[5, 1, 1], &[2]]),
            (&[7], [&[1], &[7]]),
            (&[2, 2, 3, 2], [&[2, 1, 3, 2], &[2, 2, 1, 1]]),
        ];
        for (out, inputs) in shapes {
            let n: usize = out.iter().product();
            let all = positions(out, inputs, 0, n);
            let of = |dims: &[usize], i: usize| {
                let (mut rest, mut at, mut stride) = (i, 0, 1);
                for (back, &dim) in out.iter().rev().enumerate() {
                    let size = dims.len().checked_sub(back + 1).map_or(1, |d| dims[d]);
                    at += (rest % dim) * if size == 1 { 0 } else { stride };
                    (rest, stride) = (rest / dim, stride * size);
                }
                at
            };
            let expected: Vec<_> = (0..n).map(|i| [of(inputs[0], i), of(inputs[1], i)]).collect();
            assert_eq!(all, expected, "{out:?}");
            for from in 0..n {
                for len in 0..n - from {
                    assert_eq!(positions(out, inputs, from, len), all[from..from + len]);
                }
            }
        }
    }
}
