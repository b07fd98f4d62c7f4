//! Concrete shapes and symbolic dimensions.

use smallvec::SmallVec;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A concrete shape: the size of each dimension, outermost first. Rank 0 is a scalar.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Shape(SmallVec<[usize; 6]>);

impl Shape {
    /// The shape of a scalar.
    pub fn scalar() -> Shape {
        Shape::default()
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Product of the dimensions, or `None` when the address space cannot hold that many elements of 16 bytes.
    ///
    /// **Edge cases**: the dimensions of an empty tensor, its zeros left out, must fit as well, so that no product of
    /// some of a shape's dimensions overflows, in elements or in bytes.
    pub fn n_elems(&self) -> Option<usize> {
        const MOST: usize = isize::MAX as usize / 16;
        let product = self.0.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim.max(1)))?;
        let n_elems = if self.0.contains(&0) { 0 } else { product };
        (product <= MOST).then_some(n_elems)
    }

    /// Appends a dimension.
    pub fn push(&mut self, dim: usize) {
        self.0.push(dim);
    }

    /// Row-major strides in elements.
    ///
    /// **Edge cases**: strides of dims that [`Shape::n_elems`] refuses saturate.
    pub fn strides(&self) -> SmallVec<[usize; 6]> {
        let mut strides: SmallVec<[usize; 6]> = SmallVec::from_elem(1, self.rank());
        for i in (1..self.rank()).rev() {
            strides[i - 1] = strides[i].saturating_mul(self.0[i].max(1));
        }
        strides
    }

    /// The shape that two operands broadcast to, by NumPy's rules, or `None` when they do not fit.
    pub fn broadcast(a: &[usize], b: &[usize]) -> Option<Shape> {
        let rank = a.len().max(b.len());
        let at = |dims: &[usize], i: usize| (i + dims.len()).checked_sub(rank).map_or(1, |j| dims[j]);
        (0..rank)
            .map(|i| match (at(a, i), at(b, i)) {
                (x, y) if x == y => Some(x),
                (1, y) => Some(y),
                (x, 1) => Some(x),
                _ => None,
            })
            .collect()
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl DerefMut for Shape {
    fn deref_mut(&mut self) -> &mut [usize] {
        &mut self.0
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Shape {
        Shape(SmallVec::from_slice(dims))
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Shape {
        Shape::from(&dims[..])
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(iter: I) -> Shape {
        Shape(iter.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a Shape {
    type Item = &'a usize;
    type IntoIter = std::slice::Iter<'a, usize>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[")?;
        for (i, dim) in self.0.iter().enumerate() {
            write!(f, "{}{dim}", if i == 0 { "" } else { "," })?;
        }
        write!(f, "]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One dimension of a shape that may not be known yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A size that is fixed.
    Known(usize),
    /// A size that the model's author named; equal names are equal sizes.
    Named(Arc<str>),
    /// A size of which nothing is known.
    Unknown,
}

impl Dim {
    /// The size, where it is fixed.
    pub fn known(&self) -> Option<usize> {
        match self {
            Dim::Known(size) => Some(*size),
            Dim::Named(_) | Dim::Unknown => None,
        }
    }
}

impl From<usize> for Dim {
    fn from(size: usize) -> Dim {
        Dim::Known(size)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Known(size) => write!(f, "{size}"),
            Dim::Named(name) => f.write_str(name),
            Dim::Unknown => f.write_str("?"),
        }
    }
}

/// A shape whose dimensions may be symbolic.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct SymShape(pub Vec<Dim>);

impl SymShape {
    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The concrete shape, where every dimension is known.
    pub fn known(&self) -> Option<Shape> {
        self.0.iter().map(Dim::known).collect()
    }
}

impl From<&Shape> for SymShape {
    fn from(shape: &Shape) -> SymShape {
        SymShape(shape.iter().map(|&size| Dim::Known(size)).collect())
    }
}

impl FromIterator<Dim> for SymShape {
    fn from_iter<I: IntoIterator<Item = Dim>>(iter: I) -> SymShape {
        SymShape(iter.into_iter().collect())
    }
}

impl Deref for SymShape {
    type Target = [Dim];
    fn deref(&self) -> &[Dim] {
        &self.0
    }
}

impl fmt::Display for SymShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[")?;
        for (i, dim) in self.0.iter().enumerate() {
            write!(f, "{}{dim}", if i == 0 { "" } else { "," })?;
        }
        write!(f, "]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_follows_numpy() {
        let b = |a: &[usize], b: &[usize]| Shape::broadcast(a, b).map(|s| s.to_vec());
        assert_eq!(b(&[2, 1], &[3]), Some(vec![2, 3]));
        assert_eq!(b(&[0], &[1]), Some(vec![0]));
        assert_eq!(b(&[], &[4, 5]), Some(vec![4, 5]));
        assert_eq!(b(&[2], &[3]), None);
    }

    #[test]
    fn element_counts_do_not_overflow() {
        assert_eq!(Shape::from([usize::MAX, 2]).n_elems(), None);
        assert_eq!(Shape::from([usize::MAX, 2, 0]).n_elems(), None);
        assert_eq!(Shape::from([usize::MAX / 8]).n_elems(), None);
        assert_eq!(Shape::from([1 << 57, 2, 0]).n_elems(), Some(0));
        assert_eq!(Shape::scalar().n_elems(), Some(1));
    }
}
