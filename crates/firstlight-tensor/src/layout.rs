//! How the elements of a view lie in its bytes.

use crate::Shape;
use smallvec::SmallVec;

/// Shape, strides and offset of a view, all in elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    shape: Shape,
    strides: SmallVec<[isize; 6]>,
    offset: usize,
}

impl Layout {
    /// A dense row-major layout that starts at the first element.
    pub fn dense(shape: &Shape) -> Layout {
        let strides = shape.strides().iter().map(|&stride| stride as isize).collect();
        Layout { shape: shape.clone(), strides, offset: 0 }
    }

    /// A layout of given strides and offset.
    ///
    /// **Edge cases**: strides of 0 broadcast, negative ones walk backwards. `None` when the ranks differ or when an
    /// element would lie before the first or beyond `n_elems`.
    pub fn strided(shape: &Shape, strides: &[isize], offset: usize, n_elems: usize) -> Option<Layout> {
        if strides.len() != shape.rank() {
            return None;
        }
        let (mut low, mut high) = (offset as i128, offset as i128);
        for (&dim, &stride) in shape.iter().zip(strides) {
            let reach = stride as i128 * (dim.max(1) as i128 - 1);
            *(if reach < 0 { &mut low } else { &mut high }) += reach;
        }
        let empty = shape.contains(&0);
        (empty || (low >= 0 && high < n_elems as i128)).then(|| Layout {
            shape: shape.clone(),
            strides: strides.into(),
            offset,
        })
    }

    /// The view's shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Steps in elements from one index to the next, for each dimension.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Element at which the view starts.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// True when the elements lie in row-major order without gaps.
    pub fn is_dense(&self) -> bool {
        let mut expected = 1isize;
        for (&dim, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if dim != 1 && stride != expected {
                return false;
            }
            expected = expected.saturating_mul(dim.max(1) as isize);
        }
        true
    }

    /// Positions of all elements in logical (row-major) order.
    pub fn positions(&self) -> Positions<'_> {
        let left = self.shape.n_elems().unwrap_or(0);
        Positions { layout: self, index: SmallVec::from_elem(0, self.shape.rank()), at: self.offset as isize, left }
    }
}

/// Iterator over the element positions of a [`Layout`].
#[derive(Debug)]
pub struct Positions<'a> {
    layout: &'a Layout,
    index: SmallVec<[usize; 6]>,
    at: isize,
    left: usize,
}

impl Iterator for Positions<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let position = self.at as usize;
        for d in (0..self.index.len()).rev() {
            self.index[d] += 1;
            self.at += self.layout.strides[d];
            if self.index[d] < self.layout.shape[d] {
                break;
            }
            self.at -= self.layout.strides[d] * self.index[d] as isize;
            self.index[d] = 0;
        }
        Some(position)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_walk_strided_views() {
        let shape = Shape::from([2, 3]);
        let transposed = Layout::strided(&shape, &[1, 2], 0, 6).unwrap();
        assert_eq!(transposed.positions().collect::<Vec<_>>(), [0, 2, 4, 1, 3, 5]);
        assert!(!transposed.is_dense());
        let broadcast = Layout::strided(&shape, &[0, -1], 2, 3).unwrap();
        assert_eq!(broadcast.positions().collect::<Vec<_>>(), [2, 1, 0, 2, 1, 0]);
        assert!(Layout::dense(&shape).is_dense());
    }

    #[test]
    fn layouts_outside_their_bytes_are_refused() {
        let shape = Shape::from([2, 3]);
        assert!(Layout::strided(&shape, &[3, 1], 1, 6).is_none());
        assert!(Layout::strided(&shape, &[-3, 1], 2, 6).is_none());
        assert!(Layout::strided(&Shape::from([0, 3]), &[3, 1], 100, 6).is_some());
    }
}
