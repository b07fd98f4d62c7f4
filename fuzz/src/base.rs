//! Base models: small, valid, and together touching every part of the importer and every kind of op.

use crate::onnx::{Attr, BOOL, D, F16, F32, F64, Graph, I32, I64, function, model, node, tensor};

/// Name and bytes of every base model.
pub(crate) fn models() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("add", add()),
        ("mlp", mlp()),
        ("conv", conv()),
        ("shapes", shapes()),
        ("attention", attention()),
        ("branch", branch()),
        ("loop", looped()),
        ("functions", functions()),
        ("lstm", lstm()),
        ("data_sized", data_sized()),
        ("encodings", encodings()),
        ("indexing", indexing()),
        ("composed", composed()),
        ("unsorted", unsorted()),
        ("external", external()),
    ]
}

fn finish(graph: &Graph) -> Vec<u8> {
    model(&graph.encode(), &[])
}

fn add() -> Vec<u8> {
    let mut g = Graph::new("add");
    g.input("x", F32, &[D::Name("batch"), D::N(4)]).input("y", F32, &[D::N(4)]).output("z", F32, &[]);
    finish(g.node("Add", &["x", "y"], &["z"], &[]))
}

fn mlp() -> Vec<u8> {
    let mut g = Graph::new("mlp");
    g.input("x", F32, &[D::Name("batch"), D::N(8)]).output("p", F32, &[D::Name("batch"), D::N(3)]);
    g.weights("w1", &[8, 16]).weights("b1", &[16]).weights("w2", &[3, 16]).weights("b2", &[3]);
    g.node("MatMul", &["x", "w1"], &["h0"], &[]);
    g.node("Add", &["h0", "b1"], &["h1"], &[]);
    g.node("Relu", &["h1"], &["h2"], &[]);
    g.node("Gemm", &["h2", "w2", "b2"], &["h3"], &[Attr::Int("transB", 1), Attr::Float("alpha", 0.5)]);
    g.node("Sigmoid", &["h3"], &["h4"], &[]);
    finish(g.node("Softmax", &["h4"], &["p"], &[Attr::Int("axis", -1)]))
}

fn conv() -> Vec<u8> {
    let mut g = Graph::new("conv");
    g.input("x", F32, &[D::N(1), D::N(3), D::N(8), D::N(8)]).output("y", F32, &[]);
    g.weights("w", &[4, 3, 3, 3]).weights("b", &[4]).weights("w1", &[4, 2, 1, 1]).weights("fc", &[4, 5]);
    let attrs = [Attr::Ints("pads", &[1, 1, 1, 1]), Attr::Ints("strides", &[2, 2]), Attr::Ints("dilations", &[1, 1])];
    g.node("Conv", &["x", "w", "b"], &["c"], &attrs);
    g.node("Relu", &["c"], &["r"], &[]);
    let attrs = [Attr::Ints("kernel_shape", &[1, 1]), Attr::Int("group", 2), Attr::Text("auto_pad", "SAME_UPPER")];
    g.node("Conv", &["r", "w1"], &["c1"], &attrs);
    g.node("Add", &["c1", "r"], &["s"], &[]);
    let attrs = [Attr::Ints("kernel_shape", &[2, 2]), Attr::Ints("strides", &[2, 2]), Attr::Int("ceil_mode", 1)];
    g.node("MaxPool", &["s"], &["m"], &attrs);
    g.node("GlobalAveragePool", &["m"], &["a"], &[]);
    g.node("Flatten", &["a"], &["f"], &[Attr::Int("axis", 1)]);
    finish(g.node("MatMul", &["f", "fc"], &["y"], &[]))
}

fn shapes() -> Vec<u8> {
    let mut g = Graph::new("shapes");
    g.input("x", F32, &[D::Name("batch"), D::Name("seq"), D::N(6)]).output("y", F32, &[]).output("n", I64, &[]);
    g.int("zero", 0).ints("one", &[1]).ints("rest", &[2, 3]).ints("starts", &[0]).ints("ends", &[2]);
    g.node("Shape", &["x"], &["s"], &[]);
    g.node("Gather", &["s", "zero"], &["b"], &[Attr::Int("axis", 0)]);
    g.node("Unsqueeze", &["b", "starts"], &["b1"], &[]);
    let minus = tensor("", I64, &[1], |w| {
        w.packed_i64(7, &[-1]);
    });
    g.node("Constant", &[], &["minus"], &[Attr::Tensor("value", minus)]);
    g.node("Concat", &["b1", "minus", "rest"], &["target"], &[Attr::Int("axis", 0)]);
    g.node("Reshape", &["x", "target"], &["r"], &[]);
    g.node("Transpose", &["r"], &["t"], &[Attr::Ints("perm", &[0, 2, 1, 3])]);
    g.node("Slice", &["t", "starts", "ends", "one"], &["u"], &[]);
    g.node("Squeeze", &["u"], &["y"], &[]);
    finish(g.node("Size", &["x"], &["n"], &[]))
}

fn attention() -> Vec<u8> {
    let mut g = Graph::new("attention");
    g.input("x", F32, &[D::N(1), D::Name("seq"), D::N(8)]).input("mask", BOOL, &[D::N(1), D::Name("seq")]);
    g.output("y", F32, &[]).weights("w", &[8, 8]).weights("scale", &[8]).weights("bias", &[8]);
    g.tensor(&tensor("low", F32, &[], |w| {
        w.packed_f32(4, &[-1e9]);
    }));
    g.tensor(&tensor("two", F32, &[], |w| {
        w.f32(4, 2.);
    }));
    g.node(
        "LayerNormalization",
        &["x", "scale", "bias"],
        &["l"],
        &[Attr::Float("epsilon", 1e-5), Attr::Int("axis", -1)],
    );
    g.node("MatMul", &["l", "w"], &["q"], &[]);
    g.node("Transpose", &["q"], &["k"], &[Attr::Ints("perm", &[0, 2, 1])]);
    g.node("MatMul", &["q", "k"], &["a0"], &[]);
    g.node("Where", &["mask", "a0", "low"], &["a1"], &[]);
    g.node("Softmax", &["a1"], &["a2"], &[]);
    g.node("MatMul", &["a2", "q"], &["c"], &[]);
    g.node("Pow", &["c", "two"], &["p"], &[]);
    g.node("ReduceMean", &["p"], &["v"], &[Attr::Int("keepdims", 1)]);
    g.node("Sqrt", &["v"], &["sd"], &[]);
    g.node("Div", &["c", "sd"], &["d"], &[]);
    g.node("Erf", &["d"], &["e"], &[]);
    g.node("Sub", &["e", "x"], &["f"], &[]);
    finish(g.node("Mul", &["f", "two"], &["y"], &[]))
}

fn branch() -> Vec<u8> {
    let mut yes = Graph::new("yes");
    yes.node("Add", &["x", "x"], &["sum"], &[]).output("sum", F32, &[D::N(4)]);
    let mut no = Graph::new("no");
    no.weights("w", &[4]).node("Sub", &["x", "w"], &["t"], &[]).node("Relu", &["t"], &["less"], &[]);
    no.output("less", F32, &[D::N(4)]);
    let mut g = Graph::new("branch");
    g.input("c", BOOL, &[]).input("x", F32, &[D::N(4)]).output("y", F32, &[D::N(4)]);
    g.node("Not", &["c"], &["d"], &[]);
    g.node("If", &["d"], &["y0"], &[Attr::Graph("then_branch", &yes), Attr::Graph("else_branch", &no)]);
    finish(g.node("Identity", &["y0"], &["y"], &[]))
}

fn looped() -> Vec<u8> {
    let mut body = Graph::new("body");
    body.input("i", I64, &[]).input("go", BOOL, &[]).input("s", F32, &[D::N(2)]);
    body.node("Add", &["s", "x"], &["s1"], &[]);
    body.node("Identity", &["go"], &["go1"], &[]);
    body.node("Relu", &["s1"], &["scan"], &[]);
    body.output("go1", BOOL, &[]).output("s1", F32, &[D::N(2)]).output("scan", F32, &[D::N(2)]);
    let mut g = Graph::new("loop");
    g.input("x", F32, &[D::N(2)]).input("n", I64, &[]).output("y", F32, &[]).output("all", F32, &[]);
    g.int("trips", 3).weights("start", &[2]);
    g.tensor(&tensor("yes", BOOL, &[], |w| {
        w.bytes(9, &[1]);
    }));
    g.node("Loop", &["trips", "yes", "start"], &["y", "all0"], &[Attr::Graph("body", &body)]);
    finish(g.node("Identity", &["all0"], &["all"], &[]))
}

fn functions() -> Vec<u8> {
    let inner = function("scaled", &["a"], &["b"], &["axis"], |w| {
        w.message(7, |w| node(w, "", "Softmax", &["a"], &["t"], &[Attr::Ref("axis", "axis", 2)]));
        w.message(7, |w| node(w, "", "Mul", &["t", "a"], &["b"], &[]));
    });
    let outer = function("twice", &["a"], &["b"], &[], |w| {
        w.message(7, |w| node(w, "local", "scaled", &["a"], &["t"], &[Attr::Int("axis", 0)]));
        w.message(7, |w| node(w, "local", "scaled", &["t"], &["b"], &[Attr::Int("axis", -1)]));
    });
    let mut w = firstlight_tensor::wire::Writer::new();
    w.text(2, "functions").message(1, |w| node(w, "local", "twice", &["x"], &["y"], &[]));
    w.message(11, |w| crate::onnx::value_info(w, "x", F32, &[D::N(2), D::N(3)]));
    w.message(12, |w| crate::onnx::value_info(w, "y", F32, &[D::N(2), D::N(3)]));
    model(&w.finish(), &[inner, outer])
}

fn lstm() -> Vec<u8> {
    let mut g = Graph::new("lstm");
    g.input("x", F32, &[D::Name("seq"), D::N(1), D::N(4)]).output("y", F32, &[]).output("h", F32, &[]);
    g.weights("w", &[1, 12, 4]).weights("r", &[1, 12, 3]).weights("b", &[1, 24]);
    let attrs = [Attr::Int("hidden_size", 3), Attr::Text("direction", "forward")];
    finish(g.node("LSTM", &["x", "w", "r", "b"], &["y", "h", "c"], &attrs))
}

fn data_sized() -> Vec<u8> {
    let mut g = Graph::new("data_sized");
    g.input("x", F32, &[D::N(3), D::N(4)]).output("where", I64, &[]).output("y", F32, &[]).output("r", I64, &[]);
    g.int("from", 0).int("to", 6).int("step", 2).ints("dims", &[2, 3, 4]);
    g.node("NonZero", &["x"], &["where"], &[]);
    g.node("Range", &["from", "to", "step"], &["r"], &[]);
    let fill = tensor("", F32, &[1], |w| {
        w.packed_f32(4, &[1.5]);
    });
    g.node("ConstantOfShape", &["dims"], &["ones"], &[Attr::Tensor("value", fill)]);
    g.node("Expand", &["x", "dims"], &["e"], &[]);
    finish(g.node("Add", &["e", "ones"], &["y"], &[]))
}

fn encodings() -> Vec<u8> {
    let mut g = Graph::new("encodings");
    g.input("x", F32, &[D::N(2)]).output("y", F32, &[]);
    g.tensor(&tensor("halves", F16, &[2], |w| {
        w.packed_i64(5, &[0x3c00, 0xc000]);
    }));
    g.tensor(&tensor("flags", BOOL, &[2], |w| {
        w.packed_i64(5, &[1, 0]);
    }));
    g.tensor(&tensor("doubles", F64, &[2], |w| {
        w.packed_f64(10, &[1.5, -2.]);
    }));
    g.tensor(&tensor("words", I32, &[2], |w| {
        w.packed_i64(5, &[3, -4]);
    }));
    g.tensor(&tensor("unpacked", I64, &[2], |w| {
        w.i64(7, 5).i64(7, -6);
    }));
    for (from, to) in [("halves", "h"), ("flags", "f"), ("doubles", "d"), ("words", "w"), ("unpacked", "u")] {
        g.node("Cast", &[from], &[to], &[Attr::Int("to", F32)]);
    }
    g.node("Add", &["h", "f"], &["a"], &[]).node("Mul", &["a", "d"], &["b"], &[]);
    g.node("Add", &["b", "w"], &["c"], &[]).node("Sub", &["c", "u"], &["e"], &[]);
    finish(g.node("Add", &["e", "x"], &["y"], &[]))
}

fn indexing() -> Vec<u8> {
    let mut g = Graph::new("indexing");
    g.input("x", F32, &[D::N(3), D::N(5)]).input("i", I64, &[D::N(2)]).output("y", F32, &[]).output("q", BOOL, &[]);
    g.ints("pads", &[1, 0, 0, 2]).ints("starts", &[-1, 0]).ints("ends", &[-1000, 5]).ints("axes", &[0, -1]);
    g.ints("steps", &[-1, 2]);
    g.tensor(&tensor("at", I64, &[3, 2], |w| {
        w.packed_i64(7, &[0, 1, 2, -1, 0, 0]);
    }));
    g.node("Pad", &["x", "pads"], &["p"], &[Attr::Text("mode", "reflect")]);
    g.node("Slice", &["p", "starts", "ends", "axes", "steps"], &["s"], &[]);
    g.node("Gather", &["s", "i"], &["g"], &[Attr::Int("axis", 1)]);
    g.node("GatherElements", &["x", "at"], &["e"], &[Attr::Int("axis", 1)]);
    g.node("Concat", &["g", "g"], &["y"], &[Attr::Int("axis", -1)]);
    g.node("GreaterOrEqual", &["e", "e"], &["ge"], &[]).node("Equal", &["e", "e"], &["eq"], &[]);
    finish(g.node("And", &["ge", "eq"], &["q"], &[]))
}

/// ONNX ops that the importer builds of others.
fn composed() -> Vec<u8> {
    let mut g = Graph::new("composed");
    g.input("x", F32, &[D::N(1), D::N(2), D::N(3), D::N(3)]).input("i", I64, &[D::N(2), D::N(3)]);
    g.output("y", F32, &[]).output("e", F32, &[]).output("s", F32, &[]).output("up", F32, &[]);
    g.weights("w", &[2, 3]).weights("u", &[2, 3]);
    g.tensor(&tensor("scales", F32, &[4], |w| {
        w.packed_f32(4, &[1., 1., 2., 2.]);
    }));
    g.node("Upsample", &["x", "scales"], &["up"], &[Attr::Text("mode", "linear")]);
    g.node("Sum", &["x", "x", "x"], &["a"], &[]).node("Mean", &["a", "x", "a"], &["b"], &[]);
    g.node("Dropout", &["b"], &["c", "mask"], &[]);
    g.node("LpNormalization", &["c"], &["d"], &[Attr::Int("axis", -1), Attr::Int("p", 1)]);
    g.node("MeanVarianceNormalization", &["d"], &["y"], &[Attr::Ints("axes", &[0, 2, 3])]);
    g.node("EyeLike", &["w"], &["e"], &[Attr::Int("k", -1), Attr::Int("dtype", F32)]);
    finish(g.node("Scatter", &["w", "i", "u"], &["s"], &[Attr::Int("axis", 1)]))
}

fn unsorted() -> Vec<u8> {
    let mut g = Graph::new("unsorted");
    g.input("x", F32, &[D::N(4)]).input("w", F32, &[D::N(4)]).output("y", F32, &[]);
    g.weights("w", &[4]);
    g.node("Relu", &["b"], &["y"], &[]).node("Add", &["a", "w"], &["b"], &[]);
    finish(g.node("Mul", &["x", "w"], &["a"], &[]))
}

fn external() -> Vec<u8> {
    let mut g = Graph::new("external");
    g.input("x", F32, &[D::N(4)]).output("y", F32, &[]);
    g.tensor(&tensor("w", F32, &[4], |w| {
        for (key, value) in [("location", "weights.bin"), ("offset", "0"), ("length", "16")] {
            w.message(13, |w| {
                w.text(1, key).text(2, value);
            });
        }
        w.i64(14, 1);
    }));
    finish(g.node("Add", &["x", "w"], &["y"], &[]))
}
