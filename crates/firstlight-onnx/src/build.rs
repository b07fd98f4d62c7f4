//! Builds the graph: names to values, nodes in order, subgraphs with their captures.
//!
//! Two stacks: [`Level`]s are the graphs being built (the main graph, and inside it the subgraph of the node at hand),
//! [`Frame`]s are scopes of names. A subgraph opens both; an inlined function opens a frame alone, since its nodes land
//! in the caller's graph. A name found in a frame of an outer level is captured down to the level at hand: constants
//! are repeated there, anything else becomes an input of each subgraph on the way.

use crate::Limits;
use crate::attributes::Attributes;
use crate::call::{Functions, Opsets};
use crate::check::Noted;
use crate::error::LoadError;
use crate::node_ctx::NodeCtx;
use crate::ops::{self, NEWEST_OPSET};
use crate::order::order;
use crate::proto::{FunctionProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto};
use crate::spec::{dtype_declared, spec_of};
use crate::survey::{domain_of, is_known, node_name};
use crate::tensors::Tensors;
use firstlight_graph::{Graph, NodeId, Op, OpInfo, Spec, TypeRef, ValueId, declared_dtype};
use firstlight_tensor::pb::dtype_of;
use firstlight_tensor::{CancelToken, DType, Tensor};
use smallvec::SmallVec;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Newest version of the file format that the importer has been checked against.
const NEWEST_IR_VERSION: i64 = 14;

/// Warnings kept; a file that has more has said enough.
const MAX_WARNINGS: usize = 100;

/// A graph being built.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) graph: Graph,
    /// Element types of each node's outputs, as far as they are known.
    dtypes: Vec<SmallVec<[Option<DType>; 1]>>,
    /// Constants of the file in this graph, by the offset of their message.
    constants: HashMap<usize, ValueId>,
    /// Values of the level above that are inputs or repeated constants here.
    captured: HashMap<ValueId, ValueId>,
    /// Values of the level above that are inputs here, in order.
    captures: Vec<ValueId>,
    /// Values that stand for those that could not be imported.
    pub(crate) stand_ins: HashSet<ValueId>,
}

/// A scope of names.
#[derive(Debug)]
pub(crate) struct Frame<'m> {
    /// The level that the frame's nodes land in.
    level: usize,
    values: HashMap<&'m str, Binding<'m>>,
    /// Declared element types of values that the graph's own rules do not tell.
    pub(crate) types: HashMap<&'m str, DType>,
    /// Attributes that the function around these nodes was called with.
    pub(crate) attributes: Rc<Attributes<'m>>,
    pub(crate) opsets: Rc<Opsets>,
    /// Whether names that are not found here may be those of the frame below.
    sees_outer: bool,
    /// What sets names of an inlined function's nodes and values apart.
    pub(crate) prefix: String,
    /// Values of an inlined function that carry the caller's name.
    pub(crate) renamed: HashMap<&'m str, String>,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Binding<'m> {
    /// A value of the frame's level.
    Value(ValueId),
    /// An optional input of a function that the caller leaves out.
    Omitted,
    /// A constant that becomes a node where it is first read.
    Initializer(&'m TensorProto<'m>),
    /// As above, sparse.
    Sparse(&'m SparseTensorProto<'m>),
}

/// A subgraph that has been built.
#[derive(Debug)]
pub(crate) struct Subgraph {
    pub(crate) graph: Graph,
    /// Values of the level above that follow the formal inputs.
    pub(crate) captures: Vec<ValueId>,
    /// Element types of the outputs, where known.
    pub(crate) outputs: Vec<Option<DType>>,
}

/// Names of the model's outputs with their declared specs.
pub(crate) type DeclaredOutputs = Vec<(String, Option<Spec>)>;

/// The state of an import.
#[derive(Debug)]
pub(crate) struct Builder<'m> {
    pub(crate) functions: &'m Functions<'m>,
    pub(crate) tensors: Tensors,
    pub(crate) limits: &'m Limits,
    pub(crate) levels: Vec<Level>,
    pub(crate) frames: Vec<Frame<'m>>,
    /// Functions being inlined, outermost first.
    pub(crate) calls: Vec<String>,
    n_expanded: usize,
    /// Bytes that names of inlined nodes may still take: an eighth of the limit on the parsed structure.
    label_bytes_left: usize,
    /// Operator sets of the model.
    opsets: Rc<Opsets>,
    /// Operator sets of functions called so far.
    function_opsets: HashMap<*const FunctionProto<'m>, Rc<Opsets>>,
    warnings: Vec<String>,
    /// Problems, where the import goes on after them.
    pub(crate) noted: Option<Noted>,
    /// Ends the import.
    pub(crate) cancel: Option<&'m CancelToken>,
}

impl<'m> Builder<'m> {
    pub(crate) fn new(
        model: &'m ModelProto<'m>,
        functions: &'m Functions<'m>,
        tensors: Tensors,
        limits: &'m Limits,
    ) -> Result<Self, LoadError> {
        let opsets = Rc::new(Opsets::of_model(model)?);
        let mut warnings = Vec::new();
        if let Some(version) = opsets.version("ai.onnx").filter(|v| *v > NEWEST_OPSET) {
            warnings
                .push(format!("opset {version} is newer than {NEWEST_OPSET}; its ops are read as of {NEWEST_OPSET}"));
        }
        if model.ir_version > NEWEST_IR_VERSION {
            warnings.push(format!("IR version {} is newer than {NEWEST_IR_VERSION}", model.ir_version));
        }
        Ok(Self {
            functions,
            tensors,
            limits,
            levels: Vec::new(),
            frames: Vec::new(),
            calls: Vec::new(),
            n_expanded: 0,
            label_bytes_left: limits.struct_bytes / 8,
            opsets,
            function_opsets: HashMap::new(),
            warnings,
            noted: None,
            cancel: None,
        })
    }

    pub(crate) fn into_warnings(self) -> Vec<String> {
        self.warnings
    }

    /// Builds the model's own graph.
    pub(crate) fn main_graph(&mut self, proto: &'m GraphProto<'m>) -> Result<(Graph, DeclaredOutputs), LoadError> {
        self.levels.push(Level::new(proto.name));
        let frame = Frame::new(0, self.opsets.clone(), Rc::default(), false, String::new());
        self.frames.push(frame);
        self.declare(proto)?;
        for input in &proto.inputs {
            let value = match self.main_input(input) {
                Ok((spec, default)) => self.graph_input(input.name, spec, default),
                Err(error) => {
                    self.note(error)?;
                    self.stand_in(input.name.to_owned(), dtype_declared(input.ty.as_ref()), None)
                }
            };
            self.bind(input.name, Binding::Value(value));
        }
        self.nodes(&proto.nodes)?;
        let mut outputs = Vec::new();
        for output in &proto.outputs {
            let declared = self.main_output(output);
            match declared {
                Ok(spec) => outputs.push((output.name.to_owned(), spec)),
                Err(error) => self.note(error)?,
            }
        }
        self.frames.pop();
        let level = self.levels.pop().ok_or_else(|| LoadError::Model("the graph was lost".into()))?;
        Ok((level.graph, outputs))
    }

    /// What an input of the main graph is declared as, and its default.
    fn main_input(&mut self, input: &'m ValueInfoProto<'m>) -> Result<(Spec, Option<Tensor>), LoadError> {
        let spec = spec_of("input", input)?;
        // An initializer that is listed as an input is its default.
        let default = match self.binding(input.name).copied() {
            Some(Binding::Initializer(t)) => Some(self.tensors.dense(t)?),
            Some(Binding::Sparse(t)) => Some(self.tensors.sparse(t)?),
            Some(Binding::Value(_) | Binding::Omitted) => return Err(twice(input.name, "an input", "an input")),
            None => None,
        };
        if let Some(default) = default.as_ref().filter(|d| d.dtype() != spec.dtype) {
            let problem = format!("it is declared {}, its initializer holds {}", spec.dtype, default.dtype());
            return Err(LoadError::Model(format!("input `{}`: {problem}", input.name)));
        }
        Ok((spec, default))
    }

    /// Makes a value an output of the main graph; what it is declared as.
    fn main_output(&mut self, output: &'m ValueInfoProto<'m>) -> Result<Option<Spec>, LoadError> {
        let reader = || format!("the graph's output `{}`", output.name);
        let value = self.value(output.name, &reader)?.ok_or_else(|| missing(output.name, reader()))?;
        self.level_mut().graph.output(output.name, value).map_err(|e| LoadError::Model(e.to_string()))?;
        output.ty.as_ref().map(|_| spec_of("output", output)).transpose()
    }

    /// Builds a subgraph of the node at hand. `formals` are the element types of its formal inputs, which a declared
    /// type overrides; `captures` are outer values that it takes in any case.
    pub(crate) fn subgraph(
        &mut self,
        proto: &'m GraphProto<'m>,
        formals: &[Option<DType>],
        captures: &[ValueId],
    ) -> Result<Subgraph, LoadError> {
        let owner = self.frame();
        let (attributes, opsets) = (owner.attributes.clone(), owner.opsets.clone());
        self.check_depth()?;
        self.levels.push(Level::new(proto.name));
        self.frames.push(Frame::new(self.levels.len() - 1, opsets, attributes, true, String::new()));
        self.declare(proto)?;
        for (input, formal) in proto.inputs.iter().zip(formals) {
            if self.binding(input.name).is_some() {
                return Err(twice(input.name, "an input", "an input or initializer"));
            }
            let dtype = dtype_declared(input.ty.as_ref()).or(*formal);
            let dtype = dtype.ok_or_else(|| {
                LoadError::Model(format!("input `{}` of subgraph `{}` has no element type", input.name, proto.name))
            })?;
            let value = self.graph_input(input.name, Spec { dtype, dims: None }, None);
            self.bind(input.name, Binding::Value(value));
        }
        for outer in captures {
            self.capture_input(self.levels.len() - 1, *outer)?;
        }
        self.nodes(&proto.nodes)?;
        let mut outputs = Vec::new();
        for output in &proto.outputs {
            let reader = || format!("output `{}` of subgraph `{}`", output.name, proto.name);
            let value = self.value(output.name, &reader)?.ok_or_else(|| missing(output.name, reader()))?;
            let level = self.level_mut();
            level.graph.output(output.name, value).map_err(|e| LoadError::Model(e.to_string()))?;
            outputs.push(level.dtype(value).or(dtype_declared(output.ty.as_ref())));
        }
        self.frames.pop();
        let level = self.levels.pop().ok_or_else(|| LoadError::Model("the graph was lost".into()))?;
        Ok(Subgraph { graph: level.graph, captures: level.captures, outputs })
    }

    /// Binds a graph's initializers and keeps its declared types.
    fn declare(&mut self, proto: &'m GraphProto<'m>) -> Result<(), LoadError> {
        let dense = proto.initializers.iter().map(|t| (t.name, Binding::Initializer(t)));
        let sparse = proto.sparse_initializers.iter().map(|t| (t.values.name, Binding::Sparse(t)));
        let frame = self.frame_mut();
        for (name, binding) in dense.chain(sparse) {
            if frame.values.insert(name, binding).is_some() {
                return Err(twice(name, "an initializer", "an initializer"));
            }
        }
        self.declare_types(proto.value_info.iter().chain(&proto.outputs));
        Ok(())
    }

    /// Keeps declared types for values whose type does not follow from their op.
    pub(crate) fn declare_types(&mut self, declared: impl Iterator<Item = &'m ValueInfoProto<'m>>) {
        let frame = self.frame_mut();
        for info in declared {
            if let Some(dtype) = dtype_declared(info.ty.as_ref()) {
                frame.types.insert(info.name, dtype);
            }
        }
    }

    /// Imports the nodes of the frame at hand, in topological order.
    pub(crate) fn nodes(&mut self, nodes: &'m [NodeProto<'m>]) -> Result<(), LoadError> {
        let prefix = self.frame().prefix.clone();
        let label = |i: usize| nodes.get(i).map_or(String::new(), |node| format!("{prefix}{}", node_name(node, i)));
        let Some(sorted) = order(nodes, label)? else {
            return nodes.iter().enumerate().try_for_each(|(i, node)| self.node(node, label(i)));
        };
        let whose = self.calls.last().map_or(String::new(), |function| format!(" of function {function}"));
        let warning = format!("the nodes{whose} are not in topological order; they were sorted");
        if self.warnings.len() < MAX_WARNINGS && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
        sorted.into_iter().filter_map(|i| Some((i, nodes.get(i)?))).try_for_each(|(i, node)| self.node(node, label(i)))
    }

    fn node(&mut self, node: &'m NodeProto<'m>, name: String) -> Result<(), LoadError> {
        let depth = self.depth();
        self.import_node(node, name).or_else(|error| self.pass_over(node, error, depth))
    }

    fn import_node(&mut self, node: &'m NodeProto<'m>, name: String) -> Result<(), LoadError> {
        if self.cancel.is_some_and(CancelToken::is_cancelled) {
            return Err(LoadError::Cancelled { node: name });
        }
        self.n_expanded += usize::from(!self.calls.is_empty());
        if self.n_expanded > self.limits.function_expansion {
            let what = format!("node `{name}`");
            return Err(LoadError::Limit { limit: "function_expansion", value: self.limits.function_expansion, what });
        }
        let reader = || format!("node `{name}` ({})", node.op_type);
        let inputs = node.inputs.iter().map(|input| match *input {
            "" => Ok(None),
            input => self.value(input, &reader),
        });
        let inputs = inputs.collect::<Result<SmallVec<[_; 4]>, _>>()?;
        let attributes = Attributes::of_node(node, &self.frame().attributes).map_err(|problem| LoadError::Node {
            node: name.clone(),
            op: node.op_type.into(),
            problem,
        })?;
        let values = if let Some(function) = self.functions.called_by(node) {
            self.call(function, node, &name, &inputs, attributes)?
        } else {
            let domain = domain_of(node.domain);
            let version = self.frame().opsets.version(domain);
            let import = ops::find(domain, node.op_type).filter(|_| is_known(node, &self.frame().opsets)).zip(version);
            let (op, opset) =
                import.ok_or_else(|| LoadError::Model(format!("op {domain}.{} is unknown", node.op_type)))?;
            let mut ctx = NodeCtx::new(self, node, name.clone(), opset, inputs, attributes);
            let values = (op.import)(&mut ctx)?;
            ctx.finish()?;
            values
        };
        for (i, output) in node.outputs.iter().enumerate().filter(|(_, output)| !output.is_empty()) {
            let value = values.get(i).copied().ok_or_else(|| LoadError::Node {
                node: name.clone(),
                op: node.op_type.into(),
                problem: format!("it has no output {i} (`{output}`)"),
            })?;
            match self.frame_mut().values.entry(output) {
                Entry::Vacant(entry) => _ = entry.insert(Binding::Value(value)),
                Entry::Occupied(entry) => {
                    let other = match entry.get() {
                        Binding::Initializer(_) | Binding::Sparse(_) => "an initializer",
                        Binding::Value(_) | Binding::Omitted => "an input",
                    };
                    return Err(twice(output, other, &format!("node `{name}`")));
                }
            }
        }
        Ok(())
    }

    /// The value of a name at the level at hand; `None` for a function's input that the caller leaves out.
    pub(crate) fn value(&mut self, name: &'m str, reader: &dyn Fn() -> String) -> Result<Option<ValueId>, LoadError> {
        let here = self.levels.len().saturating_sub(1);
        for frame in self.frames.iter().rev() {
            let level = frame.level;
            match frame.values.get(name).copied() {
                Some(Binding::Value(value)) => {
                    let down = (level + 1..=here).try_fold(value, |value, level| self.capture(level, value));
                    return down.map(Some);
                }
                Some(Binding::Omitted) => return Ok(None),
                Some(Binding::Initializer(t)) => {
                    let label = format!("{}{}", frame.prefix, t.name);
                    let dtype = dtype_of(t.data_type);
                    return self.file_constant(t.body.offset, label, dtype, |tensors| tensors.dense(t)).map(Some);
                }
                Some(Binding::Sparse(t)) => {
                    let label = format!("{}{}", frame.prefix, t.values.name);
                    let (key, dtype) = (t.values.body.offset, dtype_of(t.values.data_type));
                    return self.file_constant(key, label, dtype, |tensors| tensors.sparse(t)).map(Some);
                }
                None if frame.sees_outer => {}
                None => break,
            }
        }
        Err(missing(name, reader()))
    }

    /// A constant of the file as a node of the graph at hand, made when first asked for.
    fn file_constant(
        &mut self,
        key: usize,
        name: String,
        dtype: Option<DType>,
        read: impl FnOnce(&mut Tensors) -> Result<Tensor, LoadError>,
    ) -> Result<ValueId, LoadError> {
        if let Some(value) = self.level_mut().constants.get(&key) {
            return Ok(*value);
        }
        let value = match read(&mut self.tensors) {
            Ok(tensor) => self.constant(name, tensor),
            Err(error) => {
                self.note(error)?;
                self.stand_in(name, dtype, None)
            }
        };
        self.level_mut().constants.insert(key, value);
        Ok(value)
    }

    /// Takes a value of the level above `level` into it: constants are repeated, others become inputs.
    fn capture(&mut self, level: usize, outer: ValueId) -> Result<ValueId, LoadError> {
        let [.., above, inner] = &mut self.levels[..=level] else {
            return Ok(outer);
        };
        if let Some(value) = inner.captured.get(&outer) {
            return Ok(*value);
        }
        if let Op::Const(constant) = &above.graph.node(outer.node).op {
            let name = above.graph.value_name(outer).to_owned();
            let value = inner.graph.constant(name, constant.tensor.clone());
            inner.dtypes.push(SmallVec::from_iter([Some(constant.tensor.dtype())]));
            inner.captured.insert(outer, value);
            return Ok(value);
        }
        self.capture_input(level, outer)
    }

    /// Makes a value of the level above `level` an input of it.
    fn capture_input(&mut self, level: usize, outer: ValueId) -> Result<ValueId, LoadError> {
        let [.., above, inner] = &mut self.levels[..=level] else {
            return Ok(outer);
        };
        let name = above.graph.value_name(outer).to_owned();
        if above.is_stand_in(outer) {
            let value = inner.stand_in(name, above.dtype(outer), None);
            inner.captured.insert(outer, value);
            inner.captures.push(outer);
            return Ok(value);
        }
        let dtype = above.dtype(outer).ok_or_else(|| {
            let subgraph = inner.graph.name();
            LoadError::Model(format!("the element type of `{name}`, which subgraph `{subgraph}` reads, is unknown"))
        })?;
        let value = inner.input(name, Spec { dtype, dims: None }, None);
        inner.captured.insert(outer, value);
        inner.captures.push(outer);
        Ok(value)
    }

    fn graph_input(&mut self, name: &str, spec: Spec, default: Option<Tensor>) -> ValueId {
        self.level_mut().input(name.to_owned(), spec, default)
    }

    /// Appends a constant to the graph at hand.
    pub(crate) fn constant(&mut self, name: String, tensor: Tensor) -> ValueId {
        let level = self.level_mut();
        level.dtypes.push(SmallVec::from_iter([Some(tensor.dtype())]));
        level.graph.constant(name, tensor)
    }

    /// Appends a node to the graph at hand. `dtypes` are those of its outputs where the op's declaration does not tell.
    pub(crate) fn push(
        &mut self,
        name: &str,
        op: Op,
        inputs: &[Option<ValueId>],
        outputs: &[&str],
        dtypes: &[Option<DType>],
    ) -> Result<NodeId, LoadError> {
        let frame = self.frame();
        let declared: SmallVec<[_; 2]> = outputs.iter().map(|name| frame.types.get(name).copied()).collect();
        let labels: SmallVec<[String; 2]> = outputs.iter().map(|name| frame.value_label(name)).collect();
        let labels: SmallVec<[&str; 2]> = labels.iter().map(String::as_str).collect();
        self.push_labelled(name, op, inputs, &labels, dtypes, &declared)
    }

    /// Appends a node with one result that is not in the file; both have the given name.
    pub(crate) fn push_internal(
        &mut self,
        name: &str,
        op: Op,
        inputs: &[Option<ValueId>],
    ) -> Result<NodeId, LoadError> {
        self.push_labelled(name, op, inputs, &[name], &[], &[])
    }

    fn push_labelled(
        &mut self,
        name: &str,
        op: Op,
        inputs: &[Option<ValueId>],
        labels: &[&str],
        dtypes: &[Option<DType>],
        declared: &[Option<DType>],
    ) -> Result<NodeId, LoadError> {
        // Names grow with the calls that they are inlined through.
        if !self.calls.is_empty() {
            let label_bytes = name.len() + labels.iter().map(|label| label.len()).sum::<usize>();
            self.label_bytes_left = self.label_bytes_left.checked_sub(label_bytes).ok_or_else(|| LoadError::Limit {
                limit: "struct_bytes",
                value: self.limits.struct_bytes,
                what: format!("names of inlined nodes up to `{name}`"),
            })?;
        }
        let level = self.level_mut();
        let info = op.info();
        let input_dtypes: Vec<_> = inputs.iter().map(|input| input.and_then(|value| level.dtype(value))).collect();
        check_types(name, info, &input_dtypes)?;
        let known = (0..labels.len()).map(|i| {
            let told = dtypes.get(i).copied().flatten();
            told.or_else(|| declared_dtype(info, &input_dtypes, i)).or(declared.get(i).copied().flatten())
        });
        let known = known.collect();
        let node = level.graph.push(name, op, inputs, labels).map_err(|e| LoadError::Node {
            node: name.into(),
            op: info.name.into(),
            problem: e.to_string(),
        })?;
        level.dtypes.push(known);
        Ok(node)
    }

    pub(crate) fn opsets_of(&mut self, function: &'m FunctionProto<'m>) -> Rc<Opsets> {
        let known = self.function_opsets.entry(std::ptr::from_ref(function));
        known.or_insert_with(|| Rc::new(self.opsets.of_function(function))).clone()
    }

    pub(crate) fn bind(&mut self, name: &'m str, binding: Binding<'m>) {
        self.frame_mut().values.insert(name, binding);
    }

    fn binding(&self, name: &str) -> Option<&Binding<'m>> {
        self.frame().values.get(name)
    }

    /// How deep subgraphs and calls lie in each other.
    pub(crate) fn check_depth(&self) -> Result<(), LoadError> {
        if self.frames.len() < self.limits.nesting {
            return Ok(());
        }
        let what = format!("in {}", self.calls.last().map_or("a subgraph", String::as_str));
        Err(LoadError::Limit { limit: "nesting", value: self.limits.nesting, what })
    }

    pub(crate) fn level(&self) -> &Level {
        self.levels.last().unwrap_or_else(|| unreachable!("a level is open while nodes are imported"))
    }

    pub(crate) fn level_mut(&mut self) -> &mut Level {
        self.levels.last_mut().unwrap_or_else(|| unreachable!("a level is open while nodes are imported"))
    }

    pub(crate) fn frame(&self) -> &Frame<'m> {
        self.frames.last().unwrap_or_else(|| unreachable!("a frame is open while nodes are imported"))
    }

    pub(crate) fn frame_mut(&mut self) -> &mut Frame<'m> {
        self.frames.last_mut().unwrap_or_else(|| unreachable!("a frame is open while nodes are imported"))
    }
}

impl Level {
    fn new(name: &str) -> Self {
        Self {
            graph: Graph::new(name),
            dtypes: Vec::new(),
            constants: HashMap::new(),
            captured: HashMap::new(),
            captures: Vec::new(),
            stand_ins: HashSet::new(),
        }
    }

    pub(crate) fn input(&mut self, name: String, spec: Spec, default: Option<Tensor>) -> ValueId {
        self.dtypes.push(SmallVec::from_iter([Some(spec.dtype)]));
        self.graph.input(name, spec, default)
    }

    /// Puts what is known of the element type of an input in the place of what its spec says.
    pub(crate) fn forget_dtype(&mut self, value: ValueId, dtype: Option<DType>) {
        if let Some(known) = self.dtypes.get_mut(value.node.0 as usize).and_then(|list| list.first_mut()) {
            *known = dtype;
        }
    }

    /// The element type of a value of the graph, where known.
    pub(crate) fn dtype(&self, value: ValueId) -> Option<DType> {
        self.dtypes.get(value.node.0 as usize)?.get(value.output as usize).copied().flatten()
    }
}

impl<'m> Frame<'m> {
    pub(crate) fn new(
        level: usize,
        opsets: Rc<Opsets>,
        attributes: Rc<Attributes<'m>>,
        sees_outer: bool,
        prefix: String,
    ) -> Self {
        Self {
            level,
            values: HashMap::new(),
            types: HashMap::new(),
            attributes,
            opsets,
            sees_outer,
            prefix,
            renamed: HashMap::new(),
        }
    }

    pub(crate) fn is_bound(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The name that a value has in the graph.
    pub(crate) fn value_label(&self, name: &str) -> String {
        match self.renamed.get(name) {
            Some(label) => label.clone(),
            None if name.is_empty() => String::new(),
            None => format!("{}{name}", self.prefix),
        }
    }
}

/// Checks that an op takes the element types of its inputs, as far as they are known.
fn check_types(node: &str, info: &OpInfo, inputs: &[Option<DType>]) -> Result<(), LoadError> {
    for (i, dtype) in inputs.iter().enumerate() {
        let (Some(dtype), Some(param)) = (dtype, info.input_param(i)) else { continue };
        let TypeRef::Var(var) = param.ty else { continue };
        if info.types.get(usize::from(var)).is_some_and(|var| !var.allowed.contains(dtype)) {
            let problem = format!("elements of {dtype} are not supported as its input {i} ({})", param.name);
            return Err(LoadError::UnsupportedNode { node: node.into(), op: info.name.into(), problem });
        }
    }
    Ok(())
}

fn missing(value: &str, reader: String) -> LoadError {
    LoadError::MissingValue { value: value.into(), reader }
}

fn twice(value: &str, first: &str, second: &str) -> LoadError {
    LoadError::TwoWriters { value: value.into(), writers: [first.into(), second.into()] }
}
