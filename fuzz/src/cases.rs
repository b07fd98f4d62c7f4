//! The op table's named cases as ONNX models of one node, so that every op is reached by mutated files.
//!
//! Attributes go over by name and type; [`node_of`] holds what ONNX calls or encodes otherwise than the graph.

use crate::onnx::{Attr, D, Graph, model_at};
use firstlight_graph::ops::nn::resampling::Coordinates;
use firstlight_graph::{AttrValue, Case, Op, OpKind};
use firstlight_onnx::NEWEST_OPSET;
use firstlight_tensor::Tensor;
use firstlight_tensor::pb::{onnx_data_type, write_tensor};

/// The models of one op's cases.
#[derive(Debug)]
pub(crate) struct OpModels {
    pub(crate) kind: OpKind,
    /// Name and bytes.
    pub(crate) models: Vec<(String, Vec<u8>)>,
}

/// A node in ONNX's terms.
struct OnnxNode {
    name: &'static str,
    opset: i64,
    attributes: Vec<(&'static str, AttrValue)>,
    /// An attribute that lists words; its length may be 0.
    words: (&'static str, Vec<String>),
}

/// For each op that has cases with a form in ONNX: each of them twice, with inputs that a caller may set and with
/// constant ones.
pub(crate) fn models() -> Vec<OpModels> {
    let of = |kind: OpKind| {
        let cases = (kind.info().cases)();
        let models = cases.iter().filter_map(|case| Some((case, node_of(&case.op, case)?)));
        let both = |(case, node): (&Case, OnnxNode)| {
            [("fed", true), ("constant", false)]
                .map(|(how, is_fed)| (format!("{}/{}/{how}", kind.name(), case.name), encode(case, &node, is_fed)))
        };
        OpModels { kind, models: models.flat_map(both).collect() }
    };
    OpKind::ALL.iter().map(|&kind| of(kind)).filter(|op| !op.models.is_empty()).collect()
}

/// The node that ONNX has for an op; `None` for what only passes make.
fn node_of(op: &Op, case: &Case) -> Option<OnnxNode> {
    let mut node =
        OnnxNode { name: op.info().name, opset: NEWEST_OPSET, attributes: op.def().attributes(), words: ("", vec![]) };
    let text = |is: bool, yes: &str, no: &str| AttrValue::Text(if is { yes } else { no }.into());
    match op {
        Op::BatchNormalization(op) => {
            // Only early opsets have the attribute.
            node.opset = if op.spatial { NEWEST_OPSET } else { 8 };
            node.attributes.retain(|(name, _)| *name != "spatial" || !op.spatial);
        }
        Op::BitShift(op) => node.attributes = vec![("direction", text(op.right, "RIGHT", "LEFT"))],
        Op::Const(_) | Op::Elementwise(_) | Op::Fused(_) | Op::If(_) | Op::Input(_) | Op::Loop(_) => return None,
        Op::Gelu(op) => node.attributes = vec![("approximate", text(op.tanh, "tanh", "none"))],
        Op::Gemm(_) => {
            node.rename("trans_a", "transA");
            node.rename("trans_b", "transB");
        }
        Op::IsInf(_) => {
            node.rename("negative", "detect_negative");
            node.rename("positive", "detect_positive");
        }
        Op::LSTM(op) => {
            node.rename("batch_first", "layout");
            node.attributes.retain(|(name, _)| *name != "activations");
            let word = |text: String| text.split('(').next().unwrap_or_default().to_owned();
            node.words = ("activations", op.activations.iter().map(|f| word(f.to_string())).collect());
        }
        Op::MatMul(op) if op.transpose_b => return None,
        Op::Reshape(_) => node.rename("allow_zero", "allowzero"),
        Op::Resize(op) if op.coordinates == Coordinates::TfHalfPixelForNn => {
            // Only early opsets have the mode, and they lack three of the attributes.
            node.opset = 12;
            let later = ["antialias", "axes", "keep_aspect_ratio_policy"];
            node.attributes.retain(|(name, _)| !later.contains(name));
        }
        Op::ReverseSequence(op) => {
            let (batch, time) = if op.batch_first { (0, 1) } else { (1, 0) };
            node.attributes = vec![("batch_axis", AttrValue::Int(batch)), ("time_axis", AttrValue::Int(time))];
        }
        Op::Split(_) if case.inputs.len() < 2 => {
            node.attributes.push(("num_outputs", AttrValue::Int(case.outputs.len() as i64)));
        }
        _ => {}
    }
    Some(node)
}

impl OnnxNode {
    fn rename(&mut self, from: &str, to: &'static str) {
        self.attributes.iter_mut().filter(|(name, _)| *name == from).for_each(|(name, _)| *name = to);
    }

    /// The attributes as they are encoded; empty lists are left out.
    fn encoded(&self) -> Vec<Attr<'_>> {
        let mut all = vec![];
        for (name, value) in &self.attributes {
            all.push(match value {
                AttrValue::Bool(v) => Attr::Int(name, (*v).into()),
                AttrValue::Int(v) => Attr::Int(name, *v),
                AttrValue::Float(v) => Attr::Float(name, *v),
                AttrValue::Ints(v) if v.is_empty() => continue,
                AttrValue::Ints(v) => Attr::Ints(name, v),
                AttrValue::Text(v) => Attr::Text(name, v),
                AttrValue::DType(v) => Attr::Int(name, onnx_data_type(*v).into()),
                AttrValue::Tensor(v) => Attr::Tensor(name, encoded("", v)),
                AttrValue::Graph => continue,
            });
        }
        if !self.words.1.is_empty() {
            all.push(Attr::Texts(self.words.0, &self.words.1));
        }
        all
    }
}

/// A case's tensor as a message. Panics when its strings are no text, which is a mistake in the case.
fn encoded(name: &str, tensor: &Tensor) -> Vec<u8> {
    write_tensor(name, tensor).unwrap_or_else(|error| panic!("{error}"))
}

fn encode(case: &Case, given: &OnnxNode, is_fed: bool) -> Vec<u8> {
    let mut graph = Graph::new("case");
    let dims = |dims: &[usize]| dims.iter().map(|&dim| D::N(dim as i64)).collect::<Vec<_>>();
    let mut inputs = vec![];
    for (i, input) in case.inputs.iter().enumerate() {
        inputs.push(input.as_ref().map_or_else(String::new, |_| format!("in{i}")));
        let Some(tensor) = input else { continue };
        if is_fed {
            graph.input(&inputs[i], onnx_data_type(tensor.dtype()).into(), &dims(tensor.shape()));
        }
        // A fed input's default: what it is fed with.
        graph.tensor(&encoded(&inputs[i], tensor));
    }
    let outputs: Vec<String> = (0..case.outputs.len()).map(|i| format!("out{i}")).collect();
    for (name, tensor) in outputs.iter().zip(&case.outputs) {
        graph.output(name, onnx_data_type(tensor.dtype()).into(), &dims(tensor.shape()));
    }
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
    graph.node(given.name, &inputs, &outputs, &given.encoded());
    model_at(given.opset, &graph.encode(), &[])
}
