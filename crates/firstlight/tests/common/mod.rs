//! Small ONNX models, written field by field.
#![allow(dead_code, unreachable_pub, reason = "each test uses its own part of this file")]

use firstlight::core::wire::Writer;

/// `TensorProto.DataType` numbers.
pub const F32: i64 = 1;
pub const I64: i64 = 7;
pub const BOOL: i64 = 9;

/// A dimension of a declared shape.
#[derive(Clone, Debug)]
pub enum D {
    N(i64),
    Sym(&'static str),
    Any,
}

/// A model in the making.
#[derive(Debug)]
pub struct Model {
    graph: Writer,
}

/// An initializer or a tensor attribute.
#[derive(Clone, Debug, Default)]
pub struct Weight {
    pub name: String,
    pub data_type: i64,
    pub dims: Vec<i64>,
    pub raw: Vec<u8>,
    /// Location, offset and length of an external payload.
    pub external: Option<(String, u64, u64)>,
}

impl Weight {
    pub fn f32(name: &str, dims: &[i64], values: &[f32]) -> Weight {
        let raw = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Weight { name: name.into(), data_type: F32, dims: dims.into(), raw, external: None }
    }

    pub fn i64(name: &str, dims: &[i64], values: &[i64]) -> Weight {
        let raw = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Weight { name: name.into(), data_type: I64, dims: dims.into(), raw, external: None }
    }

    pub fn external(name: &str, dims: &[i64], file: &str, length: u64) -> Weight {
        let external = Some((file.to_owned(), 0, length));
        Weight { name: name.into(), data_type: F32, dims: dims.into(), raw: vec![], external }
    }

    fn write(&self, w: &mut Writer) {
        w.packed_i64(1, &self.dims).i64(2, self.data_type).text(8, &self.name);
        match &self.external {
            None => _ = w.bytes(9, &self.raw),
            Some((location, offset, length)) => {
                for (key, value) in
                    [("location", location.clone()), ("offset", offset.to_string()), ("length", length.to_string())]
                {
                    w.message(13, |e| _ = e.text(1, key).text(2, &value));
                }
                w.i64(14, 1);
            }
        }
    }
}

fn value_info(w: &mut Writer, name: &str, data_type: i64, dims: Option<&[D]>) {
    w.text(1, name).message(2, |ty| {
        ty.message(1, |tensor| {
            tensor.i64(1, data_type);
            let Some(dims) = dims else { return };
            tensor.message(2, |shape| {
                for dim in dims {
                    shape.message(1, |d| match dim {
                        D::N(size) => _ = d.i64(1, *size),
                        D::Sym(name) => _ = d.text(2, name),
                        D::Any => {}
                    });
                }
            });
        });
    });
}

fn write_node(w: &mut Writer, op: &str, name: &str, inputs: &[&str], outputs: &[&str]) {
    inputs.iter().for_each(|input| _ = w.text(1, input));
    outputs.iter().for_each(|output| _ = w.text(2, output));
    w.text(3, name).text(4, op);
}

impl Model {
    pub fn new(name: &str) -> Model {
        let mut graph = Writer::new();
        graph.text(2, name);
        Model { graph }
    }

    pub fn input(mut self, name: &str, data_type: i64, dims: &[D]) -> Model {
        self.graph.message(11, |w| value_info(w, name, data_type, Some(dims)));
        self
    }

    pub fn output(mut self, name: &str, data_type: i64) -> Model {
        self.graph.message(12, |w| value_info(w, name, data_type, None));
        self
    }

    pub fn node(mut self, op: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> Model {
        self.graph.message(1, |w| write_node(w, op, name, inputs, outputs));
        self
    }

    /// A node that `extra` gives attributes (field 5).
    pub fn node_with(
        mut self,
        op: &str,
        name: &str,
        inputs: &[&str],
        outputs: &[&str],
        extra: impl FnOnce(&mut Writer),
    ) -> Model {
        self.graph.message(1, |w| {
            write_node(w, op, name, inputs, outputs);
            extra(w);
        });
        self
    }

    pub fn weight(mut self, weight: &Weight) -> Model {
        self.graph.message(5, |w| weight.write(w));
        self
    }

    pub fn finish(self) -> Vec<u8> {
        let graph = self.graph.finish();
        let mut model = Writer::new();
        model.i64(1, 10).bytes(7, &graph).message(8, |w| _ = w.text(1, "").i64(2, 17));
        model.finish()
    }

    /// The graph alone, to be an attribute.
    pub fn into_graph(self) -> Vec<u8> {
        self.graph.finish()
    }
}

/// Writes an attribute that holds a graph.
pub fn graph_attribute(w: &mut Writer, name: &str, graph: &[u8]) {
    w.message(5, |a| _ = a.text(1, name).bytes(6, graph).i64(20, 5));
}

/// `y = relu(x + w)` over `[N, 4]`.
pub fn add_relu() -> Vec<u8> {
    Model::new("add-relu")
        .input("x", F32, &[D::Sym("N"), D::N(4)])
        .weight(&Weight::f32("w", &[4], &[1., -2., 3., -4.]))
        .node("Add", "add", &["x", "w"], &["sum"])
        .node("Relu", "relu", &["sum"], &["y"])
        .output("y", F32)
        .finish()
}

/// A chain of `n` additions of `w` over `[N, 16]`: `y = x + n w`.
pub fn adds(n: usize) -> Vec<u8> {
    let mut model = Model::new("adds").input("x", F32, &[D::Sym("N"), D::N(16)]).weight(&Weight::f32("w", &[1], &[1.]));
    for i in 0..n {
        let from = if i == 0 { "x".to_owned() } else { format!("v{i}") };
        let to = if i + 1 == n { "y".to_owned() } else { format!("v{}", i + 1) };
        model = model.node("Add", &format!("add{i}"), &[&from, "w"], &[&to]);
    }
    model.output("y", F32).finish()
}
