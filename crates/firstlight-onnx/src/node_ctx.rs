//! What an op's import function reads and writes.

use crate::attributes::Attributes;
use crate::build::{Builder, Subgraph};
use crate::error::LoadError;
use crate::proto::{AttributeValue, GraphProto, NodeProto};
use firstlight_graph::{Op, Spec, ValueId};
use firstlight_tensor::{DType, Element, Tensor};
use smallvec::SmallVec;

/// Values that a node gives, in the order of its outputs.
pub(crate) type Values = SmallVec<[ValueId; 1]>;

type Inputs = SmallVec<[Option<ValueId>; 4]>;

/// One node on its way into the graph.
///
/// Attributes are read by name and kind, and reading marks them: what is left unread at the end is an error, so that no
/// attribute is silently ignored.
#[derive(Debug)]
pub(crate) struct NodeCtx<'b, 'm> {
    builder: &'b mut Builder<'m>,
    node: &'m NodeProto<'m>,
    name: String,
    /// Version of the op's operator set.
    pub(crate) opset: i64,
    /// The node's inputs; `None` for omitted ones.
    pub(crate) inputs: Inputs,
    attributes: Attributes<'m>,
    read: SmallVec<[bool; 8]>,
    n_steps: usize,
}

impl<'b, 'm> NodeCtx<'b, 'm> {
    pub(crate) fn new(
        builder: &'b mut Builder<'m>,
        node: &'m NodeProto<'m>,
        name: String,
        opset: i64,
        inputs: Inputs,
        attributes: Attributes<'m>,
    ) -> Self {
        let read = SmallVec::from_elem(false, attributes.iter().len());
        Self { builder, node, name, opset, inputs, attributes, read, n_steps: 0 }
    }

    /// An error about this node.
    pub(crate) fn error(&self, problem: impl Into<String>) -> LoadError {
        LoadError::Node { node: self.name.clone(), op: self.node.op_type.into(), problem: problem.into() }
    }

    /// An error about something that ONNX allows and that is not supported.
    pub(crate) fn unsupported(&self, problem: impl Into<String>) -> LoadError {
        let (node, op) = (self.name.clone(), self.node.op_type.into());
        LoadError::UnsupportedNode { node, op, problem: problem.into() }
    }

    /// Checks that every attribute has been read.
    pub(crate) fn finish(&self) -> Result<(), LoadError> {
        match self.attributes.iter().zip(&self.read).find(|(_, read)| !**read) {
            None => Ok(()),
            Some(((name, value), _)) => Err(self.error(format!(
                "attribute `{name}` ({}) is not one that the op has at opset {}",
                value.kind(),
                self.opset
            ))),
        }
    }

    // Attributes.

    fn attribute(&mut self, name: &str) -> Option<&'m AttributeValue<'m>> {
        let i = self.attributes.position(name)?;
        if let Some(read) = self.read.get_mut(i) {
            *read = true;
        }
        self.attributes.at(i)
    }

    fn wrong<T>(&self, name: &str, expected: &str, got: &AttributeValue<'_>) -> Result<T, LoadError> {
        Err(self.error(format!("attribute `{name}` should be {expected}, it is {}", got.kind())))
    }

    /// Marks an attribute as read that has no bearing on the result.
    pub(crate) fn ignore(&mut self, name: &str) {
        _ = self.attribute(name);
    }

    /// Whether the node has an attribute; does not mark it.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.attributes.position(name).is_some()
    }

    pub(crate) fn int(&mut self, name: &str) -> Result<Option<i64>, LoadError> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Int(v)) => Ok(Some(*v)),
            Some(other) => self.wrong(name, "INT", other),
        }
    }

    /// An INT that is 0 or 1.
    pub(crate) fn flag(&mut self, name: &str, default: bool) -> Result<bool, LoadError> {
        match self.int(name)? {
            None => Ok(default),
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(other) => Err(self.error(format!("attribute `{name}` should be 0 or 1, it is {other}"))),
        }
    }

    pub(crate) fn float(&mut self, name: &str) -> Result<Option<f32>, LoadError> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Float(v)) => Ok(Some(*v)),
            Some(other) => self.wrong(name, "FLOAT", other),
        }
    }

    pub(crate) fn ints(&mut self, name: &str) -> Result<Option<&'m [i64]>, LoadError> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Ints(v)) => Ok(Some(v)),
            Some(other) => self.wrong(name, "INTS", other),
        }
    }

    pub(crate) fn floats(&mut self, name: &str) -> Result<Option<&'m [f32]>, LoadError> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Floats(v)) => Ok(Some(v)),
            Some(other) => self.wrong(name, "FLOATS", other),
        }
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<&'m str>, LoadError> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::String(v)) => self.utf8(name, v).map(Some),
            Some(other) => self.wrong(name, "STRING", other),
        }
    }

    pub(crate) fn texts(&mut self, name: &str) -> Result<Option<Vec<&'m str>>, LoadError> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Strings(v)) => {
                v.iter().map(|v| self.utf8(name, v)).collect::<Result<_, _>>().map(Some)
            }
            Some(other) => self.wrong(name, "STRINGS", other),
        }
    }

    fn utf8(&self, name: &str, bytes: &'m [u8]) -> Result<&'m str, LoadError> {
        std::str::from_utf8(bytes).map_err(|_| self.error(format!("attribute `{name}` is not UTF-8")))
    }

    pub(crate) fn tensor(&mut self, name: &str) -> Result<Option<Tensor>, LoadError> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Tensor(t)) => self.builder.tensors.dense(t).map(Some),
            Some(other) => self.wrong(name, "TENSOR", other),
        }
    }

    pub(crate) fn sparse_tensor(&mut self, name: &str) -> Result<Option<Tensor>, LoadError> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::SparseTensor(t)) => self.builder.tensors.sparse(t).map(Some),
            Some(other) => self.wrong(name, "SPARSE_TENSOR", other),
        }
    }

    pub(crate) fn graph(&mut self, name: &str) -> Result<&'m GraphProto<'m>, LoadError> {
        match self.attribute(name) {
            None => Err(self.error(format!("attribute `{name}` is missing"))),
            Some(AttributeValue::Graph(g)) => Ok(g),
            Some(other) => self.wrong(name, "GRAPH", other),
        }
    }

    /// The value of an attribute that the op cannot do without.
    pub(crate) fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, LoadError> {
        value.ok_or_else(|| self.error(format!("attribute `{name}` is missing")))
    }

    // Inputs.

    pub(crate) fn input(&self, i: usize) -> Option<ValueId> {
        self.inputs.get(i).copied().flatten()
    }

    pub(crate) fn needed(&self, i: usize) -> Result<ValueId, LoadError> {
        self.input(i).ok_or_else(|| self.error(format!("input {i} is missing")))
    }

    pub(crate) fn dtype(&self, value: ValueId) -> Option<DType> {
        self.builder.level().dtype(value)
    }

    /// The rank of a value, where it is a constant or an input of a declared shape.
    pub(crate) fn rank(&self, value: ValueId) -> Option<usize> {
        let graph = &self.builder.level().graph;
        match &graph.node(value.node).op {
            Op::Const(constant) => Some(constant.tensor.shape().rank()),
            Op::Input(input) => graph.inputs().get(input.index as usize)?.spec.dims.as_ref().map(|dims| dims.rank()),
            _ => None,
        }
    }

    /// How many outputs the node names.
    pub(crate) fn n_outputs(&self) -> usize {
        self.node.outputs.len()
    }

    /// How many outputs the node has up to the last one with a name.
    pub(crate) fn n_named_outputs(&self) -> usize {
        self.node.outputs.iter().rposition(|output| !output.is_empty()).map_or(0, |last| last + 1)
    }

    // Nodes of the graph.

    /// A constant that an attribute gave, as a value.
    pub(crate) fn constant(&mut self, what: &str, tensor: Tensor) -> ValueId {
        self.builder.constant(format!("{}/{what}", self.name), tensor)
    }

    /// A list of numbers that an attribute gave, as a value of one dimension.
    pub(crate) fn list<T: Element>(&mut self, what: &str, values: &[T]) -> Result<ValueId, LoadError> {
        let tensor = Tensor::from_slice([values.len()], values).map_err(|e| self.error(e.to_string()))?;
        Ok(self.constant(what, tensor))
    }

    /// Appends a node that this one needs, with one result.
    pub(crate) fn step(&mut self, op: impl Into<Op>, inputs: &[ValueId]) -> Result<ValueId, LoadError> {
        let op = op.into();
        let name = format!("{}/{}_{}", self.name, op.kind().name(), self.n_steps);
        self.n_steps += 1;
        let inputs: Inputs = inputs.iter().copied().map(Some).collect();
        let node = self.builder.push_internal(&name, op, &inputs)?;
        Ok(ValueId { node, output: 0 })
    }

    /// Appends the node itself with the inputs that the file gives it.
    pub(crate) fn emit(&mut self, op: impl Into<Op>) -> Result<Values, LoadError> {
        let inputs = std::mem::take(&mut self.inputs);
        self.emit_typed(op, &inputs, &[])
    }

    /// Appends the node itself with other inputs.
    pub(crate) fn emit_with(&mut self, op: impl Into<Op>, inputs: &[Option<ValueId>]) -> Result<Values, LoadError> {
        self.emit_typed(op, inputs, &[])
    }

    /// As [`NodeCtx::emit_with`], with the element types of outputs that the op's declaration does not tell.
    pub(crate) fn emit_typed(
        &mut self,
        op: impl Into<Op>,
        inputs: &[Option<ValueId>],
        dtypes: &[Option<DType>],
    ) -> Result<Values, LoadError> {
        let n = inputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let inputs = inputs.get(..n).unwrap_or(inputs);
        let n = self.node.outputs.iter().rposition(|output| !output.is_empty()).map_or(1, |last| last + 1);
        let outputs = match self.node.outputs.get(..n) {
            Some(outputs) => outputs,
            None => &[""],
        };
        let node = self.builder.push(&self.name, op.into(), inputs, outputs, dtypes).map_err(|e| match e {
            // The op's name as the file has it.
            LoadError::Node { node, problem, .. } => LoadError::Node { node, op: self.node.op_type.into(), problem },
            LoadError::UnsupportedNode { problem, .. } => self.unsupported(problem),
            other => other,
        })?;
        Ok((0..outputs.len() as u32).map(|output| ValueId { node, output }).collect())
    }

    /// As [`NodeCtx::emit_typed`] for an op that always has as many outputs as `dtypes`, whether the node names them or
    /// not.
    pub(crate) fn emit_all(
        &mut self,
        op: impl Into<Op>,
        inputs: &[Option<ValueId>],
        dtypes: &[Option<DType>],
    ) -> Result<Values, LoadError> {
        let mut outputs = self.node.outputs.clone();
        outputs.resize(outputs.len().max(dtypes.len()), "");
        let node = self.builder.push(&self.name, op.into(), inputs, &outputs, dtypes)?;
        Ok((0..outputs.len() as u32).map(|output| ValueId { node, output }).collect())
    }

    // Subgraphs.

    /// Builds a subgraph of the node.
    pub(crate) fn subgraph(
        &mut self,
        graph: &'m GraphProto<'m>,
        formals: &[Option<DType>],
        captures: &[ValueId],
    ) -> Result<Subgraph, LoadError> {
        if graph.inputs.len() != formals.len() {
            return Err(self.error(format!(
                "subgraph `{}` should have {} inputs, it has {}",
                graph.name,
                formals.len(),
                graph.inputs.len()
            )));
        }
        let from = self.builder.n_noted();
        let built = self.builder.subgraph(graph, formals, captures).map_err(|e| e.inside(&self.name));
        self.builder.noted_inside(from, &self.name);
        built
    }

    /// Gives a finished subgraph an input for a capture that it does not read.
    pub(crate) fn unread_capture(&self, subgraph: &mut Subgraph, outer: ValueId) -> Result<(), LoadError> {
        let level = self.builder.level();
        let name = level.graph.value_name(outer);
        let dtype = level.dtype(outer);
        let dtype = dtype.ok_or_else(|| self.error(format!("the element type of captured `{name}` is unknown")))?;
        subgraph.graph.input(name, Spec { dtype, dims: None }, None);
        subgraph.captures.push(outer);
        Ok(())
    }
}
