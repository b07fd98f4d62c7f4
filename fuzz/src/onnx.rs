//! Writes ONNX messages: just enough for base models and hostile ones.

use firstlight_tensor::wire::Writer;

pub(crate) const F32: i64 = 1;
pub(crate) const I32: i64 = 6;
pub(crate) const I64: i64 = 7;
pub(crate) const BOOL: i64 = 9;
pub(crate) const F16: i64 = 10;
pub(crate) const F64: i64 = 11;

/// A declared dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) enum D {
    N(i64),
    Name(&'static str),
}

/// A node's attribute.
#[derive(Clone, Debug)]
pub(crate) enum Attr<'a> {
    Int(&'a str, i64),
    Ints(&'a str, &'a [i64]),
    Float(&'a str, f32),
    Text(&'a str, &'a str),
    Texts(&'a str, &'a [String]),
    /// An encoded tensor.
    Tensor(&'a str, Vec<u8>),
    Graph(&'a str, &'a Graph),
    /// The function's attribute of the second name.
    Ref(&'a str, &'a str, i64),
}

/// A graph, or the nodes of a function, in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    w: Writer,
}

impl Graph {
    pub(crate) fn new(name: &str) -> Graph {
        let mut graph = Graph::default();
        graph.w.text(2, name);
        graph
    }

    pub(crate) fn node(&mut self, op: &str, inputs: &[&str], outputs: &[&str], attrs: &[Attr<'_>]) -> &mut Graph {
        self.w.message(1, |w| node(w, "", op, inputs, outputs, attrs));
        self
    }

    pub(crate) fn input(&mut self, name: &str, dtype: i64, dims: &[D]) -> &mut Graph {
        self.w.message(11, |w| value_info(w, name, dtype, dims));
        self
    }

    pub(crate) fn output(&mut self, name: &str, dtype: i64, dims: &[D]) -> &mut Graph {
        self.w.message(12, |w| value_info(w, name, dtype, dims));
        self
    }

    /// A constant of small floats, as raw bytes.
    pub(crate) fn weights(&mut self, name: &str, dims: &[i64]) -> &mut Graph {
        let n = dims.iter().product::<i64>();
        let raw: Vec<u8> = (0..n).flat_map(|i| ((i % 7 - 3) as f32 * 0.1).to_le_bytes()).collect();
        self.tensor(&tensor(name, F32, dims, |w| {
            w.bytes(9, &raw);
        }))
    }

    /// A constant of integers, in the typed field.
    pub(crate) fn ints(&mut self, name: &str, values: &[i64]) -> &mut Graph {
        self.tensor(&tensor(name, I64, &[values.len() as i64], |w| {
            w.packed_i64(7, values);
        }))
    }

    /// A scalar integer, as raw bytes.
    pub(crate) fn int(&mut self, name: &str, value: i64) -> &mut Graph {
        self.tensor(&tensor(name, I64, &[], |w| {
            w.bytes(9, &value.to_le_bytes());
        }))
    }

    /// A constant from an encoded tensor.
    pub(crate) fn tensor(&mut self, encoded: &[u8]) -> &mut Graph {
        self.w.bytes(5, encoded);
        self
    }

    /// The graph as a message.
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.w.clone().finish()
    }
}

/// Fills a NodeProto.
pub(crate) fn node(w: &mut Writer, domain: &str, op: &str, inputs: &[&str], outputs: &[&str], attrs: &[Attr<'_>]) {
    inputs.iter().for_each(|name| {
        w.text(1, name);
    });
    outputs.iter().for_each(|name| {
        w.text(2, name);
    });
    w.text(4, op);
    for attr in attrs {
        w.message(5, |w| attribute(w, attr));
    }
    if !domain.is_empty() {
        w.text(7, domain);
    }
}

fn attribute(w: &mut Writer, attr: &Attr<'_>) {
    match attr {
        Attr::Int(name, value) => w.text(1, name).i64(3, *value).i64(20, 2),
        Attr::Ints(name, values) => w.text(1, name).packed_i64(8, values).i64(20, 7),
        Attr::Float(name, value) => w.text(1, name).f32(2, *value).i64(20, 1),
        Attr::Text(name, value) => w.text(1, name).text(4, value).i64(20, 3),
        Attr::Texts(name, values) => {
            w.text(1, name).i64(20, 8);
            values.iter().fold(w, |w, value| w.text(9, value))
        }
        Attr::Tensor(name, encoded) => w.text(1, name).bytes(5, encoded).i64(20, 4),
        Attr::Graph(name, graph) => w.text(1, name).bytes(6, &graph.encode()).i64(20, 5),
        Attr::Ref(name, of, kind) => w.text(1, name).text(21, of).i64(20, *kind),
    };
}

/// Fills a ValueInfoProto of a tensor.
pub(crate) fn value_info(w: &mut Writer, name: &str, dtype: i64, dims: &[D]) {
    w.text(1, name).message(2, |w| {
        w.message(1, |w| {
            w.i64(1, dtype).message(2, |w| {
                for dim in dims {
                    w.message(1, |w| {
                        match dim {
                            D::N(n) => w.i64(1, *n),
                            D::Name(name) => w.text(2, name),
                        };
                    });
                }
            });
        });
    });
}

/// An encoded TensorProto; `fill` writes its values.
pub(crate) fn tensor(name: &str, dtype: i64, dims: &[i64], fill: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    w.packed_i64(1, dims).i64(2, dtype).text(8, name);
    fill(&mut w);
    w.finish()
}

/// An encoded FunctionProto of the domain `local`.
pub(crate) fn function(
    name: &str,
    inputs: &[&str],
    outputs: &[&str],
    attrs: &[&str],
    fill: impl FnOnce(&mut Writer),
) -> Vec<u8> {
    let mut w = Writer::new();
    w.text(1, name);
    inputs.iter().for_each(|name| {
        w.text(4, name);
    });
    outputs.iter().for_each(|name| {
        w.text(5, name);
    });
    attrs.iter().for_each(|name| {
        w.text(6, name);
    });
    fill(&mut w);
    w.message(9, |w| {
        w.text(1, "").i64(2, 21);
    });
    w.message(9, |w| {
        w.text(1, "local").i64(2, 1);
    });
    w.text(10, "local");
    w.finish()
}

/// An encoded model of opset 21.
pub(crate) fn model(graph: &[u8], functions: &[Vec<u8>]) -> Vec<u8> {
    model_at(21, graph, functions)
}

/// An encoded model of an opset.
pub(crate) fn model_at(opset: i64, graph: &[u8], functions: &[Vec<u8>]) -> Vec<u8> {
    let mut w = Writer::new();
    w.i64(1, 10).text(2, "firstlight-fuzz").bytes(7, graph);
    w.message(8, |w| {
        w.text(1, "").i64(2, opset);
    });
    w.message(8, |w| {
        w.text(1, "local").i64(2, 1);
    });
    functions.iter().for_each(|function| {
        w.bytes(25, function);
    });
    w.finish()
}
