//! What a model file holds, told from its structure alone: no op need be supported, no weight is read.

use crate::call::Functions;
use crate::error::LoadError;
use crate::order::subgraphs;
use crate::proto::{
    AttributeValue, DimProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, SparseTensorProto,
    TensorProto, TypeProto, ValueInfoProto,
};
use crate::spec::dim_of;
use crate::survey::{domain_of, node_name};
use crate::{LoadOptions, ModelMetadata, metadata, open, ops, proto_limits};
use firstlight_tensor::pb::dtype_of;
use firstlight_tensor::wire::Span;
use firstlight_tensor::{DType, SymShape};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// What a model file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// What the file says about itself.
    pub metadata: ModelMetadata,
    /// Name of the main graph.
    pub graph: String,
    /// Size of the model file.
    pub file_bytes: usize,
    /// Inputs of the main graph, initializers that are listed among them included.
    pub inputs: Vec<InspectedValue>,
    /// Outputs of the main graph.
    pub outputs: Vec<InspectedValue>,
    /// Named dimensions, in order of their first occurrence.
    pub symbols: Vec<InspectedSymbol>,
    /// Nodes of the main graph, subgraphs not counted.
    pub nodes: usize,
    /// Ops of all graphs and functions, the most frequent first.
    pub ops: Vec<InspectedOp>,
    /// Functions that the file brings.
    pub functions: Vec<InspectedFunction>,
    /// Tensors of the file: initializers and constants of nodes, largest first.
    pub weights: Vec<InspectedWeight>,
    /// Graphs inside nodes, in file order.
    pub subgraphs: Vec<InspectedSubgraph>,
}

/// An input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedValue {
    /// Its name.
    pub name: String,
    /// Its type as people write it, such as `f32[N,4]`, `f32[..]` without a rank, or `sequence of i64[]`.
    pub ty: String,
    /// Its element type, where it is a tensor of a known one.
    pub dtype: Option<DType>,
    /// Its shape, where it is a tensor of a declared rank.
    pub shape: Option<SymShape>,
    /// Whether an initializer gives it a value when nothing is fed.
    pub has_default: bool,
}

/// A named dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedSymbol {
    /// Its name.
    pub name: String,
    /// Where inputs and outputs of the main graph have it.
    pub places: Vec<InspectedPlace>,
    /// How often declared types of values inside the graphs have it.
    pub inner: usize,
}

/// A dimension of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedPlace {
    /// The input or output.
    pub value: String,
    /// Whether it is an input.
    pub is_input: bool,
    /// The axis, from 0.
    pub axis: usize,
}

/// An op that nodes use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedOp {
    /// Its domain; `ai.onnx` for the standard one.
    pub domain: String,
    /// Its name.
    pub name: String,
    /// Version of the domain's operator set; `None` where the file does not import the domain.
    pub version: Option<i64>,
    /// How many nodes use it, in subgraphs and functions too; a function's body counts once.
    pub count: usize,
    /// Who computes it.
    pub support: OpSupport,
}

/// Who computes an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpSupport {
    /// The importer knows it.
    Supported,
    /// A function of the file.
    Function,
    /// Nobody.
    Unsupported,
}

/// A function of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedFunction {
    /// Its domain; `ai.onnx` for the standard one.
    pub domain: String,
    /// Its name.
    pub name: String,
    /// Its overload; most have none.
    pub overload: String,
    /// Names of its inputs.
    pub inputs: Vec<String>,
    /// Names of its outputs.
    pub outputs: Vec<String>,
    /// Nodes of its body.
    pub nodes: usize,
    /// Nodes of all graphs and functions that call it.
    pub calls: usize,
}

/// A tensor of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedWeight {
    /// Its name; for a node's constant, that of the node and of the attribute.
    pub name: String,
    /// Its element type; `None` for one that ONNX does not name.
    pub dtype: Option<DType>,
    /// Its dims, as written.
    pub dims: Vec<i64>,
    /// Bytes of its elements; of the message, for strings and for dims that make no sense.
    pub bytes: usize,
    /// Where its elements are.
    pub place: WeightPlace,
}

/// Where a weight's elements are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WeightPlace {
    /// In the model file, as they are used; `aligned` when at a multiple of the element size.
    Inline {
        /// Byte of the file.
        offset: usize,
        /// Whether the offset is a multiple of the element size.
        aligned: bool,
    },
    /// In the model file, in a form that has to be decoded into memory.
    Encoded,
    /// In the model file, by values and indices; made dense in memory.
    Sparse,
    /// In another file.
    External {
        /// The file, as the model names it.
        file: String,
        /// Byte of the file.
        offset: u64,
        /// Whether the offset is a multiple of the element size.
        aligned: bool,
    },
}

/// A graph inside a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedSubgraph {
    /// The node, with those around it.
    pub node: String,
    /// Its op.
    pub op: String,
    /// The attribute that holds the graph.
    pub attribute: String,
    /// Nodes of the graph.
    pub nodes: usize,
    /// Names of its formal inputs.
    pub inputs: Vec<String>,
    /// Names of its outputs.
    pub outputs: Vec<String>,
}

/// Tells what a model file holds.
///
/// **Errors**: a file that cannot be read or is no ONNX model; a limit.
pub fn inspect(path: &Path, options: &LoadOptions) -> Result<Inspection, LoadError> {
    inspect_slice(open(path, options)?.as_slice(), options)
}

/// Tells what a model in memory holds.
///
/// **Errors**: as [`inspect`].
pub fn inspect_slice(bytes: &[u8], options: &LoadOptions) -> Result<Inspection, LoadError> {
    let model = ModelProto::parse(bytes, &proto_limits(&options.limits))?;
    let graph = model.graph.as_ref().ok_or_else(LoadError::no_graph)?;
    let mut seen = Seen::new(&model);
    let mut out = Inspection {
        metadata: metadata(&model)?,
        graph: graph.name.to_owned(),
        file_bytes: bytes.len(),
        nodes: graph.nodes.len(),
        ..Inspection::default()
    };
    let mut defaults: HashSet<&str> = graph.initializers.iter().map(|t| t.name).collect();
    defaults.extend(graph.sparse_initializers.iter().map(|t| t.values.name));
    out.inputs = graph.inputs.iter().map(|value| described(value, defaults.contains(value.name))).collect();
    out.outputs = graph.outputs.iter().map(|value| described(value, false)).collect();
    for (values, is_input) in [(&graph.inputs, true), (&graph.outputs, false)] {
        values.iter().for_each(|value| seen.symbols_of(value, Some(is_input)));
    }
    seen.graph(graph, "", &mut out);
    for function in &model.functions {
        seen.opsets = opsets_of(&[&model.opset_import, &function.opset_import]);
        function.value_info.iter().for_each(|value| seen.symbols_of(value, None));
        seen.nodes(&function.nodes, &format!("{}/", function.name), &mut out);
    }
    let calls = std::mem::take(&mut seen.calls);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    out.functions.extend(model.functions.iter().map(|function| InspectedFunction {
        domain: domain_of(function.domain).to_owned(),
        name: function.name.to_owned(),
        overload: function.overload.to_owned(),
        inputs: names(&function.inputs),
        outputs: names(&function.outputs),
        nodes: function.nodes.len(),
        calls: calls.get(&std::ptr::from_ref(function)).copied().unwrap_or(0),
    }));
    out.symbols = seen.symbols;
    out.ops = seen.ops.into_values().collect();
    out.ops.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| (&a.domain, &a.name).cmp(&(&b.domain, &b.name))));
    out.weights.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    Ok(out)
}

/// What has been met so far.
struct Seen<'m> {
    functions: Functions<'m>,
    /// Operator sets of the graph or function at hand.
    opsets: BTreeMap<&'m str, i64>,
    symbols: Vec<InspectedSymbol>,
    /// Places of the symbols in the list.
    places: HashMap<&'m str, usize>,
    ops: BTreeMap<(&'m str, &'m str, Option<i64>), InspectedOp>,
    calls: BTreeMap<*const FunctionProto<'m>, usize>,
}

impl<'m> Seen<'m> {
    fn new(model: &'m ModelProto<'m>) -> Self {
        Self {
            functions: Functions::first_of_each(model),
            opsets: opsets_of(&[&model.opset_import]),
            symbols: vec![],
            places: HashMap::new(),
            ops: BTreeMap::new(),
            calls: BTreeMap::new(),
        }
    }

    fn graph(&mut self, graph: &'m GraphProto<'m>, prefix: &str, out: &mut Inspection) {
        graph.value_info.iter().for_each(|value| self.symbols_of(value, None));
        out.weights.extend(graph.initializers.iter().map(|t| dense(format!("{prefix}{}", t.name), t)));
        out.weights.extend(graph.sparse_initializers.iter().map(|t| sparse(format!("{prefix}{}", t.values.name), t)));
        self.nodes(&graph.nodes, prefix, out);
    }

    fn nodes(&mut self, nodes: &'m [NodeProto<'m>], prefix: &str, out: &mut Inspection) {
        for (i, node) in nodes.iter().enumerate() {
            self.op(node);
            let has_more = node.attributes.iter().any(|attribute| {
                !matches!(
                    attribute.value,
                    AttributeValue::Int(_)
                        | AttributeValue::Ints(_)
                        | AttributeValue::Float(_)
                        | AttributeValue::String(_)
                )
            });
            if !has_more {
                continue;
            }
            let name = format!("{prefix}{}", node_name(node, i));
            for attribute in &node.attributes {
                let label = || format!("{name}.{}", attribute.name);
                match &attribute.value {
                    AttributeValue::Tensor(t) => out.weights.push(dense(label(), t)),
                    AttributeValue::SparseTensor(t) => out.weights.push(sparse(label(), t)),
                    AttributeValue::Tensors(list) => out.weights.extend(list.iter().map(|t| dense(label(), t))),
                    AttributeValue::SparseTensors(list) => out.weights.extend(list.iter().map(|t| sparse(label(), t))),
                    AttributeValue::Graph(graph) => out.subgraphs.push(nested(&name, node, attribute.name, graph)),
                    AttributeValue::Graphs(list) => {
                        out.subgraphs.extend(list.iter().map(|graph| nested(&name, node, attribute.name, graph)));
                    }
                    _ => {}
                }
            }
            subgraphs(node).for_each(|graph| self.graph(graph, &format!("{name}/"), out));
        }
    }

    fn op(&mut self, node: &'m NodeProto<'m>) {
        let domain = domain_of(node.domain);
        let version = self.opsets.get(domain).copied();
        let support = match self.functions.called_by(node) {
            Some(function) => {
                *self.calls.entry(function).or_default() += 1;
                OpSupport::Function
            }
            None => match ops::find(domain, node.op_type) {
                Some(op) if version.is_some_and(|version| version >= op.since) => OpSupport::Supported,
                _ => OpSupport::Unsupported,
            },
        };
        let entry = self.ops.entry((domain, node.op_type, version)).or_insert_with(|| InspectedOp {
            domain: domain.to_owned(),
            name: node.op_type.to_owned(),
            version,
            count: 0,
            support,
        });
        entry.count += 1;
    }

    /// Notes the symbols of a value; `is_input` is `None` for one that is neither input nor output.
    fn symbols_of(&mut self, value: &ValueInfoProto<'m>, is_input: Option<bool>) {
        let Some(TypeProto::Tensor(tensor)) = &value.ty else { return };
        for (axis, dim) in tensor.shape.iter().flatten().enumerate() {
            let DimProto::Param(name) = dim else { continue };
            if name.is_empty() {
                continue;
            }
            let at = *self.places.entry(name).or_insert_with(|| {
                self.symbols.push(InspectedSymbol { name: (*name).to_owned(), places: vec![], inner: 0 });
                self.symbols.len() - 1
            });
            let symbol = &mut self.symbols[at];
            match is_input {
                Some(is_input) => {
                    symbol.places.push(InspectedPlace { value: value.name.to_owned(), is_input, axis });
                }
                None => symbol.inner += 1,
            }
        }
    }
}

fn opsets_of<'m>(lists: &[&'m [OperatorSetIdProto<'m>]]) -> BTreeMap<&'m str, i64> {
    lists.iter().flat_map(|list| list.iter()).map(|set| (domain_of(set.domain), set.version)).collect()
}

fn described(value: &ValueInfoProto<'_>, has_default: bool) -> InspectedValue {
    let tensor = match &value.ty {
        Some(TypeProto::Tensor(tensor)) => Some(tensor),
        _ => None,
    };
    InspectedValue {
        name: value.name.to_owned(),
        ty: value.ty.as_ref().map_or_else(|| "no type".to_owned(), type_text),
        dtype: tensor.and_then(|tensor| dtype_of(tensor.elem_type)),
        shape: tensor.and_then(|tensor| Some(tensor.shape.as_ref()?.iter().map(dim_of).collect())),
        has_default,
    }
}

fn type_text(ty: &TypeProto<'_>) -> String {
    let dtype = |number: i32| dtype_of(number).map_or_else(|| format!("type {number}"), |dtype| dtype.to_string());
    match ty {
        TypeProto::Unset => "no type".to_owned(),
        TypeProto::Opaque => "opaque".to_owned(),
        TypeProto::Sequence(element) => format!("sequence of {}", type_text(element)),
        TypeProto::Optional(element) => format!("optional {}", type_text(element)),
        TypeProto::Map { key, value } => format!("map from {} to {}", dtype(*key), type_text(value)),
        TypeProto::Tensor(tensor) | TypeProto::SparseTensor(tensor) => {
            let dims = tensor.shape.as_ref().map(|dims| dims.iter().map(dim_of).collect::<SymShape>());
            let dims = dims.map_or_else(|| "[..]".to_owned(), |dims| dims.to_string());
            let kind = if matches!(ty, TypeProto::SparseTensor(_)) { "sparse " } else { "" };
            format!("{kind}{}{dims}", dtype(tensor.elem_type))
        }
    }
}

fn dense(name: String, tensor: &TensorProto<'_>) -> InspectedWeight {
    let dtype = dtype_of(tensor.data_type);
    let width = dtype.map_or(1, |dtype| (dtype.bits() / 8).clamp(1, 8));
    let place = match (tensor.is_external.then(|| tensor.external_data()), tensor.raw_data) {
        (Some(Ok(data)), _) => {
            let aligned = data.offset % width as u64 == 0;
            WeightPlace::External { file: data.location, offset: data.offset, aligned }
        }
        (Some(Err(_)), _) => WeightPlace::External { file: String::new(), offset: 0, aligned: false },
        (None, Some(Span { offset, .. })) => WeightPlace::Inline { offset, aligned: offset % width == 0 },
        (None, None) => WeightPlace::Encoded,
    };
    let bytes = tensor.n_bytes().ok().flatten().unwrap_or(tensor.body.bytes.len());
    InspectedWeight { name, dtype, dims: tensor.dims.to_vec(), bytes, place }
}

fn sparse(name: String, tensor: &SparseTensorProto<'_>) -> InspectedWeight {
    let values = dense(String::new(), &tensor.values);
    let bytes = tensor.indices.n_bytes().ok().flatten().unwrap_or(0).saturating_add(values.bytes);
    InspectedWeight { name, dtype: values.dtype, dims: tensor.dims.to_vec(), bytes, place: WeightPlace::Sparse }
}

fn nested(name: &str, node: &NodeProto<'_>, attribute: &str, graph: &GraphProto<'_>) -> InspectedSubgraph {
    let names = |values: &[ValueInfoProto<'_>]| values.iter().map(|value| value.name.to_owned()).collect();
    InspectedSubgraph {
        node: name.to_owned(),
        op: node.op_type.to_owned(),
        attribute: attribute.to_owned(),
        nodes: graph.nodes.len(),
        inputs: names(&graph.inputs),
        outputs: names(&graph.outputs),
    }
}
