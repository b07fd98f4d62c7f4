//! What a model declares of its inputs and outputs, and the check of what is fed.

use crate::buffer::n_elems;
use crate::{Error, InputProblem};
use firstlight_exec::Feed;
use firstlight_graph::GraphInput;
use firstlight_tensor::{DType, Dim, SymShape};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// An input of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputSpec {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Its shape, with the model's symbols by name; `None` when not even the rank is declared.
    pub shape: Option<SymShape>,
    /// True when the model holds a value that is used when nothing is fed.
    pub is_optional: bool,
}

/// An output of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSpec {
    /// Its name.
    pub name: String,
    /// Its element type, where the file declares it.
    pub dtype: Option<DType>,
    /// Its shape, where the file declares it.
    pub shape: Option<SymShape>,
}

/// Compares what is fed with what is declared; allocates nothing when it fits.
#[derive(Debug)]
pub(crate) struct Checker {
    specs: Vec<InputSpec>,
    dims: Vec<Vec<DimRule>>,
    symbols: Vec<Arc<str>>,
}

#[derive(Clone, Copy, Debug)]
enum DimRule {
    Fixed(usize),
    /// The same size as everywhere else where that symbol stands.
    Symbol(usize),
    Any,
}

impl Checker {
    pub(crate) fn new(inputs: &[GraphInput]) -> Checker {
        let mut symbols: Vec<Arc<str>> = vec![];
        let mut rule = |dim: &Dim| match dim {
            Dim::Known(size) => DimRule::Fixed(*size),
            Dim::Unknown => DimRule::Any,
            Dim::Named(name) => DimRule::Symbol(symbols.iter().position(|s| s == name).unwrap_or_else(|| {
                symbols.push(name.clone());
                symbols.len() - 1
            })),
        };
        let rules = |input: &GraphInput| match &input.spec.dims {
            Some(dims) => dims.iter().map(&mut rule).collect(),
            None => vec![],
        };
        let dims = inputs.iter().map(rules).collect();
        let spec = |input: &GraphInput| InputSpec {
            name: input.name.clone(),
            dtype: input.spec.dtype,
            shape: input.spec.dims.clone(),
            is_optional: input.default.is_some(),
        };
        Checker { specs: inputs.iter().map(spec).collect(), dims, symbols }
    }

    pub(crate) fn specs(&self) -> &[InputSpec] {
        &self.specs
    }

    /// The position of an input.
    pub(crate) fn position(&self, name: &str) -> Result<usize, Error> {
        self.specs.iter().position(|spec| spec.name == name).ok_or_else(|| Error::Input {
            name: name.to_owned(),
            problem: InputProblem::Unknown { known: self.specs.iter().map(|spec| spec.name.clone()).collect() },
        })
    }

    /// Puts named values in the order of the inputs.
    pub(crate) fn arrange<'a, 'n>(
        &self,
        named: impl Iterator<Item = (&'n str, Feed<'a>)>,
    ) -> Result<SmallVec<[Option<Feed<'a>>; 16]>, Error> {
        let mut feeds: SmallVec<[Option<Feed<'a>>; 16]> = SmallVec::new();
        feeds.resize_with(self.specs.len(), || None);
        for (name, feed) in named {
            let slot = &mut feeds[self.position(name)?];
            if slot.is_some() {
                return Err(Error::Input { name: name.to_owned(), problem: InputProblem::Twice });
            }
            *slot = Some(feed);
        }
        Ok(feeds)
    }

    /// Checks values in the order of the inputs.
    pub(crate) fn check(&self, feeds: &[Option<Feed<'_>>]) -> Result<(), Error> {
        let mut sizes: SmallVec<[Option<(usize, usize)>; 8]> = SmallVec::from_elem(None, self.symbols.len());
        for (i, spec) in self.specs.iter().enumerate() {
            let fail = |problem| Err(Error::Input { name: spec.name.clone(), problem });
            let Some(feed) = feeds.get(i).and_then(Option::as_ref) else {
                if spec.is_optional {
                    continue;
                }
                return fail(InputProblem::Missing);
            };
            if feed.dtype != spec.dtype {
                return fail(InputProblem::DType { expected: spec.dtype, got: feed.dtype });
            }
            if feed.dtype == DType::String {
                return fail(InputProblem::Unsupported { dtype: feed.dtype });
            }
            let misfit =
                |shape: &SymShape| fail(InputProblem::Shape { expected: shape.clone(), got: feed.dims.into() });
            if let Some(shape) = &spec.shape {
                let rules = &self.dims[i];
                if rules.len() != feed.dims.len() {
                    return misfit(shape);
                }
                for (&rule, &size) in rules.iter().zip(feed.dims) {
                    match rule {
                        DimRule::Any => {}
                        DimRule::Fixed(expected) if expected == size => {}
                        DimRule::Fixed(_) => return misfit(shape),
                        DimRule::Symbol(symbol) => match sizes[symbol] {
                            None => sizes[symbol] = Some((size, i)),
                            Some((other_size, _)) if other_size == size => {}
                            Some((other_size, other)) => {
                                return fail(InputProblem::Symbol {
                                    symbol: self.symbols[symbol].to_string(),
                                    size,
                                    other: self.specs[other].name.clone(),
                                    other_size,
                                });
                            }
                        },
                    }
                }
            }
            let expected = n_elems(feed.dims).and_then(|n| feed.dtype.size_bytes(n));
            if expected != Some(feed.bytes.len()) {
                let expected = expected.unwrap_or(usize::MAX);
                return fail(InputProblem::Bytes { expected, got: feed.bytes.len() });
            }
        }
        Ok(())
    }
}

impl fmt::Display for InputSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.dtype)?;
        match &self.shape {
            Some(shape) => shape.fmt(f),
            None => f.write_str("[..]"),
        }
    }
}

impl fmt::Display for OutputSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.dtype.map_or("?", DType::name))?;
        match &self.shape {
            Some(shape) => shape.fmt(f),
            None => f.write_str("[..]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_graph::{Graph, Spec};
    use firstlight_tensor::Tensor;

    fn checker() -> Checker {
        let mut graph = Graph::new("g");
        let symbolic = |dims: &[Dim]| Spec { dtype: DType::F32, dims: Some(dims.iter().cloned().collect()) };
        let n = || Dim::Named("N".into());
        graph.input("a", symbolic(&[n(), Dim::Known(2)]), None);
        graph.input("b", symbolic(&[n(), Dim::Unknown]), None);
        graph.input("c", symbolic(&[]), Some(Tensor::scalar(1f32)));
        graph.input("d", Spec { dtype: DType::I64, dims: None }, Some(Tensor::scalar(1i64)));
        Checker::new(graph.inputs())
    }

    fn says(feeds: &[(&str, DType, &[usize])]) -> String {
        let checker = checker();
        let zeros = [0u8; 256];
        let feed = |dtype: DType, dims: &'static [usize], n: usize| Feed { dtype, dims, bytes: &zeros[..n] };
        let feeds = feeds.iter().map(|&(name, dtype, dims)| {
            let dims: &'static [usize] = Box::leak(dims.to_vec().into());
            (name, feed(dtype, dims, dims.iter().product::<usize>() * dtype.bits() / 8))
        });
        let result = checker.arrange(feeds).and_then(|feeds| checker.check(&feeds));
        result.map_or_else(|e| e.to_string(), |()| "fits".to_owned())
    }

    #[test]
    fn each_misfit_is_named() {
        use DType::*;
        let a = ("a", F32, &[3, 2][..]);
        let b = ("b", F32, &[3, 5][..]);
        assert_eq!(says(&[a, b]), "fits");
        assert_eq!(says(&[b, a, ("c", F32, &[]), ("d", I64, &[1, 2, 3])]), "fits");
        assert_eq!(says(&[a]), "input \"b\": it is not given, and the model has no default for it");
        assert_eq!(says(&[a, a, b]), "input \"a\": it is given twice");
        let unknown = says(&[a, b, ("x", F32, &[1])]);
        assert_eq!(unknown, "input \"x\": the model has no such input; its inputs are \"a\", \"b\", \"c\", \"d\"");
        assert_eq!(says(&[("a", F64, &[3, 2]), b]), "input \"a\": expected elements of f32, got f64");
        let rank = says(&[("a", F32, &[3, 2, 1]), b]);
        assert_eq!(rank, "input \"a\": expected rank 2 (shape [N,2]), got rank 3 (shape [3,2,1])");
        assert_eq!(says(&[("a", F32, &[3, 3]), b]), "input \"a\": expected shape [N,2], got [3,3]");
        let symbol = says(&[a, ("b", F32, &[4, 5])]);
        assert_eq!(symbol, "input \"b\": dimension \"N\" is 4 here and 3 in input \"a\"; it must be the same");
    }

    #[test]
    fn bytes_must_be_as_many_as_the_shape_asks() {
        let checker = checker();
        let a = Feed { dtype: DType::F32, dims: &[1, 2], bytes: &[0; 7] };
        let error = checker.arrange([("a", a)].into_iter()).and_then(|feeds| checker.check(&feeds)).unwrap_err();
        assert_eq!(error.to_string(), "input \"a\": its shape takes 8 bytes, got 7");
    }
}
