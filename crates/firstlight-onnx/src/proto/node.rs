//! Nodes and their attributes.

use super::{GraphProto, Metadata, Parser, Result, TensorProto, TypeProto};
use firstlight_tensor::wire::{Field, Span, WireError};
use smallvec::SmallVec;

/// One node.
#[derive(Clone, Debug)]
pub struct NodeProto<'a> {
    /// The node's name; often empty.
    pub name: &'a str,
    /// The operator's name.
    pub op_type: &'a str,
    /// The operator's domain; empty and `ai.onnx` mean the same.
    pub domain: &'a str,
    /// The overload of the function that the node calls.
    pub overload: &'a str,
    /// Names of the inputs; empty where an optional one is left out.
    pub inputs: Vec<&'a str>,
    /// Names of the outputs; empty where an optional one is left out.
    pub outputs: Vec<&'a str>,
    /// The attributes.
    pub attributes: Vec<AttributeProto<'a>>,
    /// Free-form key/value pairs.
    pub metadata_props: Metadata<'a>,
    /// The whole message.
    pub body: Span<'a>,
}

/// One named attribute of a node or function.
#[derive(Clone, Debug)]
pub struct AttributeProto<'a> {
    /// The attribute's name.
    pub name: &'a str,
    /// Its value.
    pub value: AttributeValue<'a>,
    /// Absolute offset of the message.
    pub offset: usize,
}

/// An attribute's value, of the kind that its `type` field states.
#[derive(Clone, Debug)]
pub enum AttributeValue<'a> {
    /// FLOAT
    Float(f32),
    /// INT
    Int(i64),
    /// STRING, which need not be text
    String(&'a [u8]),
    /// TENSOR
    Tensor(Box<TensorProto<'a>>),
    /// GRAPH
    Graph(Box<GraphProto<'a>>),
    /// SPARSE_TENSOR
    SparseTensor(Box<SparseTensorProto<'a>>),
    /// TYPE_PROTO
    Type(Box<TypeProto<'a>>),
    /// FLOATS
    Floats(Vec<f32>),
    /// INTS
    Ints(Vec<i64>),
    /// STRINGS
    Strings(Vec<&'a [u8]>),
    /// TENSORS
    Tensors(Vec<TensorProto<'a>>),
    /// GRAPHS
    Graphs(Vec<GraphProto<'a>>),
    /// SPARSE_TENSORS
    SparseTensors(Vec<SparseTensorProto<'a>>),
    /// TYPE_PROTOS
    Types(Vec<TypeProto<'a>>),
    /// The value that the calling node gives to the named attribute of the function around this node, with the kind
    /// that this attribute states (0 where it states none).
    Reference {
        /// Name of the function's attribute.
        name: &'a str,
        /// The stated `AttributeType`.
        kind: i32,
    },
}

impl AttributeValue<'_> {
    /// The kind as ONNX names it.
    pub fn kind(&self) -> &'static str {
        match self {
            AttributeValue::Float(_) => "FLOAT",
            AttributeValue::Int(_) => "INT",
            AttributeValue::String(_) => "STRING",
            AttributeValue::Tensor(_) => "TENSOR",
            AttributeValue::Graph(_) => "GRAPH",
            AttributeValue::SparseTensor(_) => "SPARSE_TENSOR",
            AttributeValue::Type(_) => "TYPE_PROTO",
            AttributeValue::Floats(_) => "FLOATS",
            AttributeValue::Ints(_) => "INTS",
            AttributeValue::Strings(_) => "STRINGS",
            AttributeValue::Tensors(_) => "TENSORS",
            AttributeValue::Graphs(_) => "GRAPHS",
            AttributeValue::SparseTensors(_) => "SPARSE_TENSORS",
            AttributeValue::Types(_) => "TYPE_PROTOS",
            AttributeValue::Reference { .. } => "a reference to a function's attribute",
        }
    }

    /// The kind as an `AttributeType` number.
    pub fn kind_number(&self) -> i32 {
        match self {
            AttributeValue::Float(_) => 1,
            AttributeValue::Int(_) => 2,
            AttributeValue::String(_) => 3,
            AttributeValue::Tensor(_) => 4,
            AttributeValue::Graph(_) => 5,
            AttributeValue::Floats(_) => 6,
            AttributeValue::Ints(_) => 7,
            AttributeValue::Strings(_) => 8,
            AttributeValue::Tensors(_) => 9,
            AttributeValue::Graphs(_) => 10,
            AttributeValue::SparseTensor(_) => 11,
            AttributeValue::SparseTensors(_) => 12,
            AttributeValue::Type(_) => 13,
            AttributeValue::Types(_) => 14,
            AttributeValue::Reference { kind, .. } => *kind,
        }
    }
}

/// A tensor given by its non-zero values and their indices.
#[derive(Clone, Debug)]
pub struct SparseTensorProto<'a> {
    /// The non-zero values, and the tensor's name.
    pub values: TensorProto<'a>,
    /// Their indices, `[n]` linear or `[n, rank]`.
    pub indices: TensorProto<'a>,
    /// The dense dims.
    pub dims: SmallVec<[i64; 4]>,
}

/// Every value field that an attribute message holds; one of them is the value.
#[derive(Default)]
struct Fields<'a> {
    float: Option<f32>,
    int: Option<i64>,
    string: Option<&'a [u8]>,
    tensor: Option<Box<TensorProto<'a>>>,
    graph: Option<Box<GraphProto<'a>>>,
    sparse: Option<Box<SparseTensorProto<'a>>>,
    ty: Option<Box<TypeProto<'a>>>,
    floats: Vec<f32>,
    ints: Vec<i64>,
    strings: Vec<&'a [u8]>,
    tensors: Vec<TensorProto<'a>>,
    graphs: Vec<GraphProto<'a>>,
    sparses: Vec<SparseTensorProto<'a>>,
    types: Vec<TypeProto<'a>>,
}

impl<'a> Fields<'a> {
    /// The `AttributeType` of the one field that is present; `None` for none or several.
    fn only_kind(&self) -> Option<i32> {
        let present = [
            (self.float.is_some(), 1),
            (self.int.is_some(), 2),
            (self.string.is_some(), 3),
            (self.tensor.is_some(), 4),
            (self.graph.is_some(), 5),
            (!self.floats.is_empty(), 6),
            (!self.ints.is_empty(), 7),
            (!self.strings.is_empty(), 8),
            (!self.tensors.is_empty(), 9),
            (!self.graphs.is_empty(), 10),
            (self.sparse.is_some(), 11),
            (!self.sparses.is_empty(), 12),
            (self.ty.is_some(), 13),
            (!self.types.is_empty(), 14),
        ];
        let mut kinds = present.iter().filter(|(is, _)| *is).map(|(_, k)| *k);
        kinds.next().filter(|_| kinds.next().is_none())
    }

    /// The value of the stated kind. Writers leave out zero, so an absent number or string is the format's default.
    fn value(self, kind: i32) -> Option<AttributeValue<'a>> {
        Some(match kind {
            1 => AttributeValue::Float(self.float.unwrap_or(0.0)),
            2 => AttributeValue::Int(self.int.unwrap_or(0)),
            3 => AttributeValue::String(self.string.unwrap_or(b"")),
            4 => AttributeValue::Tensor(self.tensor?),
            5 => AttributeValue::Graph(self.graph?),
            6 => AttributeValue::Floats(self.floats),
            7 => AttributeValue::Ints(self.ints),
            8 => AttributeValue::Strings(self.strings),
            9 => AttributeValue::Tensors(self.tensors),
            10 => AttributeValue::Graphs(self.graphs),
            11 => AttributeValue::SparseTensor(self.sparse?),
            12 => AttributeValue::SparseTensors(self.sparses),
            13 => AttributeValue::Type(self.ty?),
            14 => AttributeValue::Types(self.types),
            _ => return None,
        })
    }
}

impl Parser {
    pub(super) fn node<'a>(&mut self, body: Span<'a>, depth: usize) -> Result<NodeProto<'a>> {
        self.nodes_left =
            self.nodes_left.checked_sub(1).ok_or_else(|| self.over(body.offset, "nodes", self.limits.nodes))?;
        let mut n = NodeProto {
            name: "",
            op_type: "",
            domain: "",
            overload: "",
            inputs: Vec::new(),
            outputs: Vec::new(),
            attributes: Vec::new(),
            metadata_props: Metadata::new(body, 9),
            body,
        };
        let mut r = body.reader();
        while let Some(f) = r.next_field("NodeProto")? {
            match f.number {
                1 => {
                    let name = self.name(f.span("NodeProto.input")?, "NodeProto.input")?;
                    self.push(&mut n.inputs, name, f.offset)?;
                }
                2 => {
                    let name = self.name(f.span("NodeProto.output")?, "NodeProto.output")?;
                    self.push(&mut n.outputs, name, f.offset)?;
                }
                3 => n.name = self.name(f.span("NodeProto.name")?, "NodeProto.name")?,
                4 => n.op_type = self.name(f.span("NodeProto.op_type")?, "NodeProto.op_type")?,
                5 => {
                    let a = self.attribute(f.span("NodeProto.attribute")?, depth)?;
                    self.push(&mut n.attributes, a, f.offset)?;
                }
                7 => n.domain = self.name(f.span("NodeProto.domain")?, "NodeProto.domain")?,
                8 => n.overload = self.name(f.span("NodeProto.overload")?, "NodeProto.overload")?,
                _ => {}
            }
        }
        Ok(n)
    }

    pub(super) fn attribute<'a>(&mut self, body: Span<'a>, depth: usize) -> Result<AttributeProto<'a>> {
        let (mut name, mut reference, mut kind) = ("", "", 0);
        let mut v = Fields::default();
        let mut r = body.reader();
        while let Some(f) = r.next_field("AttributeProto")? {
            match f.number {
                1 => name = self.name(f.span("AttributeProto.name")?, "AttributeProto.name")?,
                20 => kind = f.i32("AttributeProto.type")?,
                21 => {
                    reference = self.name(f.span("AttributeProto.ref_attr_name")?, "AttributeProto.ref_attr_name")?;
                }
                _ => self.attribute_field(f, &mut v, depth)?,
            }
        }
        let value = if reference.is_empty() {
            // Files of the first IR version state no kind.
            let stated = if kind == 0 { v.only_kind().unwrap_or(0) } else { kind };
            let present = v.only_kind();
            let fits = present.is_none_or(|p| p == stated);
            v.value(stated).filter(|_| fits).ok_or_else(|| WireError {
                offset: body.offset,
                what: "AttributeProto.type",
                expected: "a known kind and a value of that kind",
                got: format!("kind {kind} with a value of kind {} in attribute `{name}`", present.unwrap_or(0)),
            })?
        } else {
            AttributeValue::Reference { name: reference, kind }
        };
        Ok(AttributeProto { name, value, offset: body.offset })
    }

    fn attribute_field<'a>(&mut self, f: Field<'a>, v: &mut Fields<'a>, depth: usize) -> Result<()> {
        match f.number {
            2 => v.float = Some(f.f32("AttributeProto.f")?),
            3 => v.int = Some(f.i64("AttributeProto.i")?),
            4 => v.string = Some(f.span("AttributeProto.s")?.bytes),
            5 => v.tensor = Some(Box::new(self.tensor(f.span("AttributeProto.t")?)?)),
            6 => v.graph = Some(Box::new(self.graph(f.span("AttributeProto.g")?, depth)?)),
            7 => f.each_f32("AttributeProto.floats", |x| self.push(&mut v.floats, x, f.offset))?,
            8 => f.each_varint("AttributeProto.ints", |x| self.push(&mut v.ints, x as i64, f.offset))?,
            9 => self.push(&mut v.strings, f.span("AttributeProto.strings")?.bytes, f.offset)?,
            10 => {
                let t = self.tensor(f.span("AttributeProto.tensors")?)?;
                self.push(&mut v.tensors, t, f.offset)?;
            }
            11 => {
                let g = self.graph(f.span("AttributeProto.graphs")?, depth)?;
                self.push(&mut v.graphs, g, f.offset)?;
            }
            14 => v.ty = Some(Box::new(self.type_proto(f.span("AttributeProto.tp")?, depth)?)),
            15 => {
                let t = self.type_proto(f.span("AttributeProto.type_protos")?, depth)?;
                self.push(&mut v.types, t, f.offset)?;
            }
            22 => v.sparse = Some(Box::new(self.sparse_tensor(f.span("AttributeProto.sparse_tensor")?)?)),
            23 => {
                let t = self.sparse_tensor(f.span("AttributeProto.sparse_tensors")?)?;
                self.push(&mut v.sparses, t, f.offset)?;
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn sparse_tensor<'a>(&mut self, body: Span<'a>) -> Result<SparseTensorProto<'a>> {
        let (mut values, mut indices, mut dims) = (None, None, SmallVec::new());
        let mut r = body.reader();
        while let Some(f) = r.next_field("SparseTensorProto")? {
            match f.number {
                1 => values = Some(self.tensor(f.span("SparseTensorProto.values")?)?),
                2 => indices = Some(self.tensor(f.span("SparseTensorProto.indices")?)?),
                3 => f.each_varint("SparseTensorProto.dims", |d| {
                    if dims.len() >= self.limits.rank {
                        return Err(self.over(f.offset, "rank", self.limits.rank));
                    }
                    dims.push(d as i64);
                    Ok(())
                })?,
                _ => {}
            }
        }
        match (values, indices) {
            (Some(values), Some(indices)) => Ok(SparseTensorProto { values, indices, dims }),
            _ => Err(WireError {
                offset: body.offset,
                what: "SparseTensorProto",
                expected: "both values and indices",
                got: "one of them at most".into(),
            }
            .into()),
        }
    }
}
