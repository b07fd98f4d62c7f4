//! Borrowed views of the ONNX messages.
//!
//! Every name is a slice of the file and every weight a range of it; the only allocations are the lists of the views
//! themselves, and those count against [`ProtoLimits::struct_bytes`] so that a small file cannot ask for much memory.
//! Nesting (graphs in attributes, types in types) is bounded by [`ProtoLimits::nesting`]. Fields with no bearing on what
//! a model computes (doc strings, device configurations, training info, quantisation annotations) are skipped unread.

mod node;
mod types;

pub use firstlight_tensor::pb::TensorProto;
pub use node::{AttributeProto, AttributeValue, NodeProto, SparseTensorProto};
pub use types::{DimProto, TensorTypeProto, TypeProto, ValueInfoProto};

use firstlight_tensor::pb::key_value;
use firstlight_tensor::wire::{Span, WireError};
use std::fmt;

/// A whole model.
#[derive(Clone, Debug)]
pub struct ModelProto<'a> {
    /// Version of the file format itself.
    pub ir_version: i64,
    /// Operator sets that the main graph's nodes belong to.
    pub opset_import: Vec<OperatorSetIdProto<'a>>,
    /// Name of the program that wrote the file.
    pub producer_name: &'a str,
    /// Version of the program that wrote the file.
    pub producer_version: &'a str,
    /// Domain of the model.
    pub domain: &'a str,
    /// Version of the model.
    pub model_version: i64,
    /// The main graph.
    pub graph: Option<GraphProto<'a>>,
    /// Functions that nodes may call by name.
    pub functions: Vec<FunctionProto<'a>>,
    /// Free-form key/value pairs.
    pub metadata_props: Metadata<'a>,
}

/// A graph: the model's own, or one inside an attribute.
#[derive(Clone, Debug)]
pub struct GraphProto<'a> {
    /// The graph's name.
    pub name: &'a str,
    /// The nodes as listed, which may not be in topological order.
    pub nodes: Vec<NodeProto<'a>>,
    /// Constants by name.
    pub initializers: Vec<TensorProto<'a>>,
    /// Sparse constants by name of their `values`.
    pub sparse_initializers: Vec<SparseTensorProto<'a>>,
    /// Declared inputs; a name that is also an initializer has that default.
    pub inputs: Vec<ValueInfoProto<'a>>,
    /// Declared outputs.
    pub outputs: Vec<ValueInfoProto<'a>>,
    /// Declared types of values in between.
    pub value_info: Vec<ValueInfoProto<'a>>,
    /// Free-form key/value pairs.
    pub metadata_props: Metadata<'a>,
    /// The whole message.
    pub body: Span<'a>,
}

/// A function that nodes call by domain, name and overload.
#[derive(Clone, Debug)]
pub struct FunctionProto<'a> {
    /// Name, matched with a node's `op_type`.
    pub name: &'a str,
    /// Domain, matched with a node's.
    pub domain: &'a str,
    /// Overload, matched with a node's.
    pub overload: &'a str,
    /// Names of the inputs inside the body.
    pub inputs: Vec<&'a str>,
    /// Names of the outputs inside the body.
    pub outputs: Vec<&'a str>,
    /// Attributes without a default.
    pub attributes: Vec<&'a str>,
    /// Attributes with their default.
    pub attribute_protos: Vec<AttributeProto<'a>>,
    /// The body.
    pub nodes: Vec<NodeProto<'a>>,
    /// Operator sets that the body's nodes belong to.
    pub opset_import: Vec<OperatorSetIdProto<'a>>,
    /// Declared types of values in the body.
    pub value_info: Vec<ValueInfoProto<'a>>,
    /// Free-form key/value pairs.
    pub metadata_props: Metadata<'a>,
}

/// One operator set and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorSetIdProto<'a> {
    /// The domain; empty and `ai.onnx` mean the same.
    pub domain: &'a str,
    /// The version.
    pub version: i64,
}

/// The `metadata_props` of a message, read when asked for.
#[derive(Clone, Copy, Debug)]
pub struct Metadata<'a> {
    body: Span<'a>,
    field: u32,
}

impl<'a> Metadata<'a> {
    fn new(body: Span<'a>, field: u32) -> Self {
        Self { body, field }
    }

    /// The pairs in file order.
    pub fn iter(&self) -> impl Iterator<Item = Result<(&'a str, &'a str), WireError>> + use<'a> {
        let (mut r, number) = (self.body.reader(), self.field);
        std::iter::from_fn(move || {
            loop {
                match r.next_field("metadata_props") {
                    Ok(None) => return None,
                    Ok(Some(f)) if f.number == number => {
                        return Some(f.span("metadata_props").and_then(|s| key_value(s.reader())));
                    }
                    Ok(Some(_)) => {}
                    Err(e) => return Some(Err(e)),
                }
            }
        })
    }
}

/// Bounds on what a file may make the parser do.
#[derive(Clone, Copy, Debug)]
pub struct ProtoLimits {
    /// How deep graphs may lie inside attributes, and types inside types.
    pub nesting: usize,
    /// Nodes of all graphs and functions together.
    pub nodes: usize,
    /// Dims of a tensor or of a declared shape.
    pub rank: usize,
    /// Bytes of one name.
    pub name_bytes: usize,
    /// Bytes of all parsed views together; payloads are not among them.
    pub struct_bytes: usize,
}

impl Default for ProtoLimits {
    fn default() -> Self {
        Self { nesting: 32, nodes: 1_000_000, rank: 64, name_bytes: 4096, struct_bytes: 1 << 30 }
    }
}

/// Why a file could not be read as ONNX messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtoError {
    /// The bytes are not what the format asks for.
    Malformed(WireError),
    /// The bytes may be fine, but a limit forbids them.
    Limit {
        /// Absolute offset of what goes beyond the limit.
        offset: usize,
        /// The limit's name.
        limit: &'static str,
        /// Its value.
        value: usize,
    },
}

impl fmt::Display for ProtoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProtoError::Malformed(e) => e.fmt(f),
            ProtoError::Limit { offset, limit, value } => {
                write!(
                    f,
                    "at byte {offset}: more than the limit `{limit}` = {value} allows; raise it if the file is trusted"
                )
            }
        }
    }
}

impl std::error::Error for ProtoError {}

impl From<WireError> for ProtoError {
    fn from(e: WireError) -> Self {
        ProtoError::Malformed(e)
    }
}

/// What is left of the limits while parsing.
struct Parser {
    limits: ProtoLimits,
    nodes_left: usize,
    struct_bytes_left: usize,
}

type Result<T, E = ProtoError> = std::result::Result<T, E>;

impl Parser {
    fn new(limits: &ProtoLimits) -> Self {
        Self { limits: *limits, nodes_left: limits.nodes, struct_bytes_left: limits.struct_bytes }
    }

    fn over(&self, offset: usize, limit: &'static str, value: usize) -> ProtoError {
        ProtoError::Limit { offset, limit, value }
    }

    /// One level deeper than `depth` (levels left).
    fn deeper(&self, depth: usize, at: Span<'_>) -> Result<usize> {
        depth.checked_sub(1).ok_or_else(|| self.over(at.offset, "nesting", self.limits.nesting))
    }

    fn push<T>(&mut self, list: &mut Vec<T>, item: T, offset: usize) -> Result<()> {
        self.struct_bytes_left = self
            .struct_bytes_left
            .checked_sub(size_of::<T>())
            .ok_or_else(|| self.over(offset, "struct_bytes", self.limits.struct_bytes))?;
        list.push(item);
        Ok(())
    }

    fn name<'a>(&self, s: Span<'a>, what: &'static str) -> Result<&'a str> {
        if s.bytes.len() > self.limits.name_bytes {
            return Err(self.over(s.offset, "name_bytes", self.limits.name_bytes));
        }
        Ok(s.text(what)?)
    }

    fn tensor<'a>(&self, body: Span<'a>) -> Result<TensorProto<'a>> {
        let t = TensorProto::parse(body, self.limits.rank)?;
        if t.name.len() > self.limits.name_bytes {
            return Err(self.over(body.offset, "name_bytes", self.limits.name_bytes));
        }
        Ok(t)
    }

    fn opset<'a>(&self, body: Span<'a>) -> Result<OperatorSetIdProto<'a>> {
        let mut o = OperatorSetIdProto { domain: "", version: 0 };
        let mut r = body.reader();
        while let Some(f) = r.next_field("OperatorSetIdProto")? {
            match f.number {
                1 => o.domain = self.name(f.span("OperatorSetIdProto.domain")?, "OperatorSetIdProto.domain")?,
                2 => o.version = f.i64("OperatorSetIdProto.version")?,
                _ => {}
            }
        }
        Ok(o)
    }

    fn graph<'a>(&mut self, body: Span<'a>, depth: usize) -> Result<GraphProto<'a>> {
        let depth = self.deeper(depth, body)?;
        let mut g = GraphProto {
            name: "",
            nodes: Vec::new(),
            initializers: Vec::new(),
            sparse_initializers: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            value_info: Vec::new(),
            metadata_props: Metadata::new(body, 16),
            body,
        };
        let mut r = body.reader();
        while let Some(f) = r.next_field("GraphProto")? {
            match f.number {
                1 => {
                    let node = self.node(f.span("GraphProto.node")?, depth)?;
                    self.push(&mut g.nodes, node, f.offset)?;
                }
                2 => g.name = self.name(f.span("GraphProto.name")?, "GraphProto.name")?,
                5 => {
                    let t = self.tensor(f.span("GraphProto.initializer")?)?;
                    self.push(&mut g.initializers, t, f.offset)?;
                }
                11..=13 => {
                    let v = self.value_info(f.span("GraphProto.input, output or value_info")?, depth)?;
                    let list = match f.number {
                        11 => &mut g.inputs,
                        12 => &mut g.outputs,
                        _ => &mut g.value_info,
                    };
                    self.push(list, v, f.offset)?;
                }
                15 => {
                    let t = self.sparse_tensor(f.span("GraphProto.sparse_initializer")?)?;
                    self.push(&mut g.sparse_initializers, t, f.offset)?;
                }
                _ => {}
            }
        }
        Ok(g)
    }

    fn function<'a>(&mut self, body: Span<'a>, depth: usize) -> Result<FunctionProto<'a>> {
        let depth = self.deeper(depth, body)?;
        let mut p = FunctionProto {
            name: "",
            domain: "",
            overload: "",
            inputs: Vec::new(),
            outputs: Vec::new(),
            attributes: Vec::new(),
            attribute_protos: Vec::new(),
            nodes: Vec::new(),
            opset_import: Vec::new(),
            value_info: Vec::new(),
            metadata_props: Metadata::new(body, 14),
        };
        let mut r = body.reader();
        while let Some(f) = r.next_field("FunctionProto")? {
            match f.number {
                1 => p.name = self.name(f.span("FunctionProto.name")?, "FunctionProto.name")?,
                4..=6 => {
                    let name = self.name(f.span("FunctionProto")?, "FunctionProto.input, output or attribute")?;
                    let list = match f.number {
                        4 => &mut p.inputs,
                        5 => &mut p.outputs,
                        _ => &mut p.attributes,
                    };
                    self.push(list, name, f.offset)?;
                }
                7 => {
                    let node = self.node(f.span("FunctionProto.node")?, depth)?;
                    self.push(&mut p.nodes, node, f.offset)?;
                }
                9 => {
                    let o = self.opset(f.span("FunctionProto.opset_import")?)?;
                    self.push(&mut p.opset_import, o, f.offset)?;
                }
                10 => p.domain = self.name(f.span("FunctionProto.domain")?, "FunctionProto.domain")?,
                11 => {
                    let a = self.attribute(f.span("FunctionProto.attribute_proto")?, depth)?;
                    self.push(&mut p.attribute_protos, a, f.offset)?;
                }
                12 => {
                    let v = self.value_info(f.span("FunctionProto.value_info")?, depth)?;
                    self.push(&mut p.value_info, v, f.offset)?;
                }
                13 => p.overload = self.name(f.span("FunctionProto.overload")?, "FunctionProto.overload")?,
                _ => {}
            }
        }
        Ok(p)
    }
}

impl<'a> ModelProto<'a> {
    /// Reads a model file.
    ///
    /// **Errors**: [`ProtoError`], naming the byte.
    pub fn parse(bytes: &'a [u8], limits: &ProtoLimits) -> Result<Self> {
        let body = Span::whole(bytes);
        let mut p = Parser::new(limits);
        let mut m = Self {
            ir_version: 0,
            opset_import: Vec::new(),
            producer_name: "",
            producer_version: "",
            domain: "",
            model_version: 0,
            graph: None,
            functions: Vec::new(),
            metadata_props: Metadata::new(body, 14),
        };
        let mut r = body.reader();
        while let Some(f) = r.next_field("ModelProto")? {
            match f.number {
                1 => m.ir_version = f.i64("ModelProto.ir_version")?,
                2 => m.producer_name = p.name(f.span("ModelProto.producer_name")?, "ModelProto.producer_name")?,
                3 => {
                    m.producer_version =
                        p.name(f.span("ModelProto.producer_version")?, "ModelProto.producer_version")?;
                }
                4 => m.domain = p.name(f.span("ModelProto.domain")?, "ModelProto.domain")?,
                5 => m.model_version = f.i64("ModelProto.model_version")?,
                7 => {
                    if m.graph.is_some() {
                        return Err(once(f.offset, "ModelProto.graph").into());
                    }
                    m.graph = Some(p.graph(f.span("ModelProto.graph")?, limits.nesting)?);
                }
                8 => {
                    let o = p.opset(f.span("ModelProto.opset_import")?)?;
                    p.push(&mut m.opset_import, o, f.offset)?;
                }
                25 => {
                    let function = p.function(f.span("ModelProto.functions")?, limits.nesting)?;
                    p.push(&mut m.functions, function, f.offset)?;
                }
                _ => {}
            }
        }
        Ok(m)
    }
}

fn once(offset: usize, what: &'static str) -> WireError {
    WireError { offset, what, expected: "the field once", got: "it twice".into() }
}

#[cfg(test)]
mod tests;
