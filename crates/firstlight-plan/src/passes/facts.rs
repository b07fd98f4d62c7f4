//! What is known of each value of a graph before anything is fed.
//!
//! Sizes that are not known get names of their own, so that two dimensions of one name are equal whatever is fed: names
//! in a file are promises that nobody checks.

use crate::Fed;
use firstlight_graph::{Graph, Op, OutInfo, ValueId, ValueInfo, declared_dtype, infer_symbolic};
use firstlight_tensor::{DType, Dim, SymShape, Tensor};
use smallvec::SmallVec;

/// What is known of a value.
#[derive(Clone, Debug, Default)]
pub(super) struct Fact {
    pub(super) dtype: Option<DType>,
    pub(super) dims: Option<SymShape>,
    value: Option<Tensor>,
}

/// What is known of all values of a graph.
#[derive(Debug)]
pub(super) struct Facts {
    values: Vec<SmallVec<[Fact; 1]>>,
    nothing: Fact,
}

/// Gives names to sizes; never the same one twice.
#[derive(Debug, Default)]
pub(super) struct Fresh(u64);

impl Fresh {
    fn named(&mut self, dims: &SymShape, keep_names: bool) -> SymShape {
        let mut name = |dim: &Dim| match dim {
            Dim::Known(_) => dim.clone(),
            Dim::Named(_) if keep_names => dim.clone(),
            Dim::Named(_) | Dim::Unknown => {
                self.0 += 1;
                Dim::Named(format!("?{}", self.0).into())
            }
        };
        dims.iter().map(&mut name).collect()
    }
}

impl Fact {
    /// Facts of a graph's inputs by what a run checks them against.
    pub(super) fn declared(graph: &Graph, fresh: &mut Fresh) -> Vec<Fact> {
        let fact = |input: &firstlight_graph::GraphInput| Fact {
            dtype: Some(input.spec.dtype),
            dims: input.spec.dims.as_ref().map(|dims| fresh.named(dims, false)),
            value: None,
        };
        graph.inputs().iter().map(fact).collect()
    }

    /// The fact of an input that is fed.
    pub(super) fn fed(fed: &Fed) -> Fact {
        match fed {
            Fed::Runtime(spec) | Fed::Pinned(spec) => {
                Fact { dtype: Some(spec.dtype), dims: Some(SymShape::from(&spec.dims)), value: None }
            }
            Fed::Known(tensor) => Fact::known(tensor.clone()),
        }
    }

    fn known(tensor: Tensor) -> Fact {
        Fact { dtype: Some(tensor.dtype()), dims: Some(SymShape::from(tensor.shape())), value: Some(tensor) }
    }

    fn of_output(output: OutInfo, fresh: &mut Fresh) -> Fact {
        let dims = match output.data_sized {
            // The dims are a bound.
            true => SymShape(vec![Dim::Unknown; output.dims.rank()]),
            false => output.dims,
        };
        Fact { dtype: Some(output.dtype), dims: Some(fresh.named(&dims, true)), value: output.value }
    }

    fn info(&self) -> Option<ValueInfo> {
        Some(ValueInfo { dtype: self.dtype?, dims: self.dims.clone()?, value: self.value.clone() })
    }
}

impl Facts {
    /// Infers what can be told of every value.
    pub(super) fn of(graph: &Graph, inputs: &[Fact], fresh: &mut Fresh) -> Facts {
        let mut facts = Facts { values: Vec::with_capacity(graph.nodes().len()), nothing: Fact::default() };
        for node in graph.nodes() {
            let outputs = match &node.op {
                Op::Input(input) => {
                    SmallVec::from_iter([inputs.get(input.index as usize).cloned().unwrap_or_default()])
                }
                Op::Const(constant) => SmallVec::from_iter([Fact::known(constant.tensor.clone())]),
                Op::If(_) | Op::Loop(_) => SmallVec::from_elem(Fact::default(), node.outputs.len()),
                op => facts.infer(op, &node.inputs, node.outputs.len(), fresh),
            };
            facts.values.push(outputs);
        }
        facts
    }

    fn infer(&self, op: &Op, inputs: &[Option<ValueId>], n_outputs: usize, fresh: &mut Fresh) -> SmallVec<[Fact; 1]> {
        let given = inputs.iter().map(|input| match input {
            None => Some(None),
            Some(input) => self.at(*input).info().map(Some),
        });
        let infos: Option<SmallVec<[Option<ValueInfo>; 4]>> = given.collect();
        if let Some(infos) = infos
            && let Ok(Some(outputs)) = infer_symbolic(op, &infos, n_outputs)
        {
            return outputs.into_iter().map(|output| Fact::of_output(output, fresh)).collect();
        }
        let dtypes: SmallVec<[Option<DType>; 4]> =
            inputs.iter().map(|input| input.and_then(|input| self.at(input).dtype)).collect();
        let dtype = |i| match op {
            Op::Cast(cast) => Some(cast.to),
            _ => declared_dtype(op.info(), &dtypes, i),
        };
        (0..n_outputs).map(|i| Fact { dtype: dtype(i), ..Fact::default() }).collect()
    }

    /// What is known of a value.
    pub(super) fn at(&self, value: ValueId) -> &Fact {
        let outputs = self.values.get(value.node.0 as usize);
        outputs.and_then(|outputs| outputs.get(value.output as usize)).unwrap_or(&self.nothing)
    }
}
