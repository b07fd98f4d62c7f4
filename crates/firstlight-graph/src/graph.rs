//! Graphs, nodes and values.

use crate::ops::{Const, Input, Op};
use crate::{OpError, OpErrorKind};
use firstlight_tensor::{DType, Dim, SymShape, Tensor};
use smallvec::SmallVec;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A graph in topological order: each node reads values of earlier nodes only.
///
/// Built by appending, so that it is acyclic by construction. Inputs and constants are nodes. A clone gets an id of
/// its own only when it is changed through [`Graph::push`] and its like.
#[derive(Clone, Debug)]
pub struct Graph {
    id: GraphId,
    name: String,
    nodes: Vec<Node>,
    inputs: Vec<GraphInput>,
    outputs: Vec<(String, ValueId)>,
}

/// Identity of a graph's content; never used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphId(u64);

/// Index of a node in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// One result of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId {
    /// The node that computes it.
    pub node: NodeId,
    /// Which of the node's results.
    pub output: u32,
}

/// Element type and shape of a value; `dims` is `None` when not even the rank is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Element type, which is always known.
    pub dtype: DType,
    /// Shape, whose dimensions may be known, named or unknown; `None` where the rank is unknown.
    pub dims: Option<SymShape>,
}

/// An op in the graph with the values it reads.
#[derive(Clone, Debug)]
pub struct Node {
    /// The node's name as in the user's file; made up from op and index where the file has none.
    pub name: String,
    /// What is computed.
    pub op: Op,
    /// The values read; `None` for an omitted optional input.
    pub inputs: SmallVec<[Option<ValueId>; 4]>,
    /// Names of the results as in the user's file; an empty name is a result that nobody asked for.
    pub outputs: SmallVec<[String; 1]>,
}

/// A value that the caller feeds.
#[derive(Clone, Debug)]
pub struct GraphInput {
    /// Name that the caller feeds it by.
    pub name: String,
    /// What the caller has to feed.
    pub spec: Spec,
    /// The result of the input's node, which stands for what is fed.
    pub value: ValueId,
    /// Used when the caller feeds nothing (an initialiser that the file also lists as an input).
    pub default: Option<Tensor>,
}

impl Graph {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> Graph {
        Graph { id: GraphId::fresh(), name: name.into(), nodes: vec![], inputs: vec![], outputs: vec![] }
    }

    /// Appends an input.
    ///
    /// **Edge cases**: `dtype` and `dims` are promises that a realize checks; unknown dims accept any size.
    pub fn input(&mut self, name: impl Into<String>, spec: Spec, default: Option<Tensor>) -> ValueId {
        let name = name.into();
        let index = self.inputs.len() as u32;
        let value = self.append(name.clone(), Op::Input(Input { index }), SmallVec::new(), [name.clone()].into());
        self.inputs.push(GraphInput { name, spec, value, default });
        value
    }

    /// Appends a constant.
    pub fn constant(&mut self, name: impl Into<String>, tensor: Tensor) -> ValueId {
        let name = name.into();
        self.append(name.clone(), Op::Const(Const { tensor }), SmallVec::new(), [name].into())
    }

    /// Appends a node and returns its id; `outputs` names its results.
    ///
    /// **Errors**: an input that names no earlier value, or a count of inputs or outputs that the op does not take.
    pub fn push(
        &mut self,
        name: impl Into<String>,
        op: Op,
        inputs: &[Option<ValueId>],
        outputs: &[&str],
    ) -> Result<NodeId, OpError> {
        for input in inputs.iter().flatten() {
            if self.nodes.get(input.node.0 as usize).is_none_or(|node| input.output as usize >= node.outputs.len()) {
                return Err(OpError::new(OpErrorKind::Arity, format!("input {input} is not a value of the graph")));
            }
        }
        op.info().check_arity(inputs, outputs.len())?;
        let outputs = outputs.iter().map(|&output| output.to_owned()).collect();
        Ok(self.append(name.into(), op, inputs.into(), outputs).node)
    }

    /// Appends a node with one result and all inputs given: the short form of [`Graph::push`].
    ///
    /// **Errors**: as [`Graph::push`].
    pub fn op(&mut self, op: Op, inputs: &[ValueId]) -> Result<ValueId, OpError> {
        let name = format!("{}_{}", op.kind().name(), self.nodes.len());
        let inputs: SmallVec<[Option<ValueId>; 4]> = inputs.iter().copied().map(Some).collect();
        Ok(ValueId { node: self.push(name.clone(), op, &inputs, &[&name])?, output: 0 })
    }

    /// Declares a value as an output.
    ///
    /// **Errors**: the value is not one of the graph.
    pub fn output(&mut self, name: impl Into<String>, value: ValueId) -> Result<(), OpError> {
        if self.nodes.get(value.node.0 as usize).is_none_or(|node| value.output as usize >= node.outputs.len()) {
            return Err(OpError::new(OpErrorKind::Arity, format!("output {value} is not a value of the graph")));
        }
        self.id = GraphId::fresh();
        self.outputs.push((name.into(), value));
        Ok(())
    }

    fn append(
        &mut self,
        name: String,
        op: Op,
        inputs: SmallVec<[Option<ValueId>; 4]>,
        outputs: SmallVec<[String; 1]>,
    ) -> ValueId {
        self.id = GraphId::fresh();
        let node = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node { name, op, inputs, outputs });
        ValueId { node, output: 0 }
    }

    /// Identity of this content: equal ids mean equal graphs.
    pub fn id(&self) -> GraphId {
        self.id
    }

    /// The graph's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All nodes, in topological order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node of an id of this graph.
    ///
    /// Panics when the id is another graph's and beyond this one's nodes, as indexing a slice does.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The inputs, in order.
    pub fn inputs(&self) -> &[GraphInput] {
        &self.inputs
    }

    /// The outputs, in order, with their names.
    pub fn outputs(&self) -> &[(String, ValueId)] {
        &self.outputs
    }

    /// The name of a value.
    pub fn value_name(&self, value: ValueId) -> &str {
        &self.node(value.node).outputs[value.output as usize]
    }

    /// The value of that name, searched from the last node backwards.
    pub fn value_named(&self, name: &str) -> Option<ValueId> {
        self.nodes.iter().enumerate().rev().find_map(|(i, node)| {
            let output = node.outputs.iter().position(|output| output == name)?;
            Some(ValueId { node: NodeId(i as u32), output: output as u32 })
        })
    }
}

impl GraphId {
    fn fresh() -> GraphId {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        GraphId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Spec {
    /// A spec of a known shape.
    pub fn known(dtype: DType, dims: &[usize]) -> Spec {
        Spec { dtype, dims: Some(dims.iter().map(|&dim| Dim::Known(dim)).collect()) }
    }
}

impl From<NodeId> for ValueId {
    fn from(node: NodeId) -> ValueId {
        ValueId { node, output: 0 }
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl fmt::Display for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.output {
            0 => write!(f, "{}", self.node),
            output => write!(f, "{}.{output}", self.node),
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.dims {
            Some(dims) => write!(f, "{}{dims}", self.dtype),
            None => write!(f, "{}[..]", self.dtype),
        }
    }
}
