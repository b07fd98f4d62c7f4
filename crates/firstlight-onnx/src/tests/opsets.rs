use super::*;

/// The graph of one node at an opset, as text. Inputs are named `x` (f32[2,3]), `v` (f32[3]), `w` (a constant f32[2]).
pub(super) fn one(opset: i64, op: &str, inputs: &[&str], fill: fn(&mut Writer)) -> String {
    let g = G::default().input("x", 1, &[2, 3]).input("v", 1, &[3]).float("w", &[1., 2.]);
    let imported = load_bytes(g.node_with(op, inputs, &["y"], fill).output("y").model(opset), &LoadOptions::default());
    let graph = match imported {
        Ok(imported) => imported.graph,
        Err(e) => return e.to_string(),
    };
    graph.verify().unwrap();
    let text = graph.to_string();
    let lines = text.lines().map(str::trim).filter(|l| l.starts_with('%') && !l.contains("Input"));
    lines.map(|l| l.split(" -> ").next().unwrap_or(l)).collect::<Vec<_>>().join("; ")
}

#[test]
fn axes_attributes_become_inputs() {
    for op in ["Squeeze", "Unsqueeze"] {
        let now = one(13, op, &["x", "w"], |_| ());
        assert_eq!(now, format!("%2 = Const() {{tensor=f32[2]}}; %3 = {op}(%0, %2)"));
        let then = one(11, op, &["x"], |n| attr_ints(n, "axes", &[0]));
        assert_eq!(then, format!("%2 = Const() {{tensor=i64[1]}}; %3 = {op}(%0, %2)"));
    }
    assert_eq!(one(1, "Squeeze", &["x"], |_| ()), "%2 = Squeeze(%0)");
    assert!(one(1, "Unsqueeze", &["x"], |_| ()).contains("`axes` is missing"));
}

#[test]
fn slices_and_pads_and_shapes_that_were_attributes() {
    let slice = one(9, "Slice", &["x"], |n| {
        attr_ints(n, "starts", &[0]);
        attr_ints(n, "ends", &[1]);
        attr_ints(n, "axes", &[1]);
    });
    assert!(slice.ends_with("%5 = Slice(%0, %2, %3, %4)"), "{slice}");
    assert!(one(9, "Slice", &["x"], |n| attr_ints(n, "starts", &[0])).contains("`ends` is missing"));
    assert!(one(9, "Reshape", &["x"], |_| ()).contains("Reshape needs its input 1"));
    let reshape = one(1, "Reshape", &["x"], |n| {
        attr_ints(n, "shape", &[3, 2]);
        attr_ints(n, "consumed_inputs", &[0]);
    });
    assert!(reshape.ends_with("%3 = Reshape(%0, %2) {allow_zero=false}"), "{reshape}");
    assert!(one(14, "Reshape", &["x", "w"], |n| attr_int(n, "allowzero", 1)).contains("allow_zero=true"));
    assert!(one(13, "Reshape", &["x", "w"], |n| attr_int(n, "allowzero", 1)).contains("not one that the op has"));
    let pad = one(2, "Pad", &["x"], |n| attr_ints(n, "pads", &[0, 0, 1, 1]));
    assert_eq!(pad, "%2 = Const() {tensor=i64[4]}; %3 = Pad(%0, %2) {mode=\"constant\"}");
    let pad = one(1, "Pad", &["x"], |n| {
        attr_ints(n, "paddings", &[0, 0, 1, 1]);
        n.message(5, |a| _ = a.text(1, "value").i64(20, 1).f32(2, 2.5));
    });
    assert!(pad.ends_with("%3 = Const() {tensor=f32[]}; %4 = Pad(%0, %2, %3) {mode=\"constant\"}"), "{pad}");
    let wrap = |n: &mut Writer| _ = n.message(5, |a| _ = a.text(1, "mode").i64(20, 3).text(4, "wrap"));
    assert!(one(18, "Pad", &["x", "w"], wrap).contains("mode \"wrap\" is unknown at opset 18"));
    assert!(one(19, "Pad", &["x", "w"], wrap).contains("mode=\"wrap\""));
}

#[test]
fn binary_ops_that_broadcast_at_an_axis() {
    let old = |n: &mut Writer| attr_int(n, "broadcast", 1);
    assert_eq!(one(6, "Add", &["x", "v"], old), "%2 = Add(%0, %1)");
    let lined = one(6, "Add", &["x", "w"], |n| {
        attr_int(n, "broadcast", 1);
        attr_int(n, "axis", 0);
    });
    assert_eq!(
        lined,
        "%2 = Const() {tensor=f32[2]}; %3 = Const() {tensor=i64[1]}; %4 = Unsqueeze(%2, %3); %5 = Add(%0, %4)"
    );
    let misfit = one(6, "Add", &["x", "w"], |n| {
        attr_int(n, "broadcast", 1);
        attr_int(n, "axis", 2);
    });
    assert!(misfit.contains("axis 2 does not line up ranks 2 and 1"), "{misfit}");
    assert!(one(7, "Add", &["x", "v"], old).contains("not one that the op has at opset 7"));
    assert!(one(6, "Add", &["x", "v"], |n| attr_int(n, "broadcast", 2)).contains("should be 0 or 1"));
}

#[test]
fn ops_of_any_number_of_inputs_are_chains() {
    assert_eq!(one(13, "Max", &["x"], |_| ()), "%2 = Identity(%0)");
    assert_eq!(one(8, "Min", &["x", "v"], |_| ()), "%2 = Min(%0, %1)");
    assert_eq!(one(13, "Max", &["x", "v", "x"], |_| ()), "%2 = Max(%0, %1); %3 = Max(%2, %0)");
    assert_eq!(one(1, "Max", &["x", "v"], |n| attr_ints(n, "consumed_inputs", &[0])), "%2 = Max(%0, %1)");
    assert!(one(13, "Max", &[], |_| ()).contains("input 0 is missing"));
    assert!(one(13, "Max", &["x", "", "v"], |_| ()).contains("input 1 is missing"));
}

#[test]
fn splits_of_every_opset() {
    let sizes = |n: &mut Writer| attr_ints(n, "split", &[1]);
    assert_eq!(one(11, "Split", &["x"], sizes), "%2 = Const() {tensor=i64[1]}; %3 = Split(%0, %2) {axis=0}");
    assert_eq!(one(2, "Split", &["x"], |n| attr_int(n, "axis", -1)), "%2 = Split(%0) {axis=-1}");
    let cast = one(1, "Split", &["x", "w"], |_| ());
    assert_eq!(cast, "%2 = Const() {tensor=f32[2]}; %3 = Cast(%2) {to=i64}; %4 = Split(%0, %3) {axis=0}");
    assert!(one(2, "Split", &["x", "w"], |_| ()).contains("one input at this opset"));
    assert!(one(13, "Split", &["x"], sizes).contains("not one that the op has at opset 13"));
    assert_eq!(one(18, "Split", &["x"], |n| attr_int(n, "num_outputs", 1)), "%2 = Split(%0) {axis=0}");
    assert!(one(18, "Split", &["x"], |n| attr_int(n, "num_outputs", 2)).contains("the node has 1 outputs"));
    assert!(one(18, "Split", &["x", "w"], |n| attr_int(n, "num_outputs", 1)).contains("both input `split`"));
}

#[test]
fn constants_of_every_kind() {
    type Fill = fn(&mut Writer);
    let cases: &[(Fill, &str)] = &[
        (|n| _ = n.message(5, |a| _ = a.text(1, "value_float").i64(20, 1).f32(2, 2.5)), "f32[]"),
        (|n| attr_int(n, "value_int", 7), "i64[]"),
        (|n| attr_ints(n, "value_ints", &[1, 2]), "i64[2]"),
        (|n| _ = n.message(5, |a| _ = a.text(1, "value_floats").i64(20, 6).packed_f32(7, &[1.])), "f32[1]"),
        (|n| _ = n.message(5, |a| _ = a.text(1, "value_string").i64(20, 3).text(4, "s")), "string[]"),
        (|n| _ = n.message(5, |a| _ = a.text(1, "value_strings").i64(20, 8).text(9, "s")), "string[1]"),
        (
            |n| {
                n.message(5, |a| {
                    a.text(1, "value").i64(20, 4).message(5, |t| _ = t.i64(2, 11).f64(10, 1.0));
                });
            },
            "f64[]",
        ),
    ];
    for (fill, spec) in cases {
        assert_eq!(one(17, "Constant", &[], *fill), format!("%2 = Const() {{tensor={spec}}}"));
    }
    assert!(one(17, "Constant", &[], |_| ()).contains("one attribute should hold the value, 0 do"));
    assert!(one(11, "Constant", &[], |n| attr_int(n, "value_int", 7)).contains("0 do"));
    let both = one(17, "Constant", &[], |n| {
        attr_int(n, "value_int", 7);
        attr_ints(n, "value_ints", &[7]);
    });
    assert!(both.contains("2 do"), "{both}");
}

fn sparse(dims: &[i64], values: &[f32], indices: &[i64], index_dims: &[i64]) -> Result<Vec<f32>, String> {
    let g = G::default().node_with("Constant", &[], &["y"], |n| {
        n.message(5, |a| {
            a.text(1, "sparse_value").i64(20, 11).message(22, |s| {
                s.message(1, |t| _ = t.i64(1, values.len() as i64).i64(2, 1).packed_f32(4, values));
                s.message(2, |t| _ = t.packed_i64(1, index_dims).i64(2, 7).packed_i64(7, indices));
                s.packed_i64(3, dims);
            });
        });
    });
    let graph = load_bytes(g.output("y").model(17), &LoadOptions::default()).map_err(|e| e.to_string())?.graph;
    let Op::Const(op) = &graph.nodes()[0].op else { panic!("{graph}") };
    Ok(op.tensor.values::<f32>().unwrap().into_owned())
}

#[test]
fn sparse_constants_are_made_dense() {
    assert_eq!(sparse(&[2, 2], &[5., 6.], &[0, 3], &[2]), Ok(vec![5., 0., 0., 6.]));
    assert_eq!(sparse(&[2, 2], &[5., 6.], &[0, 1, 1, 0], &[2, 2]), Ok(vec![0., 5., 6., 0.]));
    assert!(sparse(&[2, 2], &[5.], &[4], &[1]).unwrap_err().contains("index 4 is outside"));
    assert!(sparse(&[2, 2], &[5.], &[0, 2], &[1, 2]).unwrap_err().contains("outside"));
    assert!(sparse(&[2, 2], &[5.], &[-1], &[1]).unwrap_err().contains("negative"));
    assert!(sparse(&[2, 2], &[5.], &[0, 1], &[2]).unwrap_err().contains("do not fit"));
    assert!(sparse(&[1 << 40], &[5.], &[0], &[1]).unwrap_err().contains("folded_bytes"));
}

#[test]
fn softmax_up_to_opset_12_takes_the_tensor_as_a_matrix() {
    assert_eq!(one(13, "Softmax", &["x"], |n| attr_int(n, "axis", 0)), "%2 = Softmax(%0) {axis=0}");
    assert_eq!(one(13, "Softmax", &["x"], |_| ()), "%2 = Softmax(%0) {axis=-1}");
    // Axis 1, the default, is the last one of x.
    assert_eq!(one(12, "Softmax", &["x"], |_| ()), "%2 = Softmax(%0) {axis=-1}");
    assert_eq!(
        one(11, "Softmax", &["x"], |n| attr_int(n, "axis", 0)),
        "%2 = Shape(%0) {start=0}; %3 = Flatten(%0) {axis=0}; %4 = Softmax(%3) {axis=-1}; \
         %5 = Reshape(%4, %2) {allow_zero=true}"
    );
}

#[test]
fn reductions_shapes_and_casts() {
    let mean = one(17, "ReduceMean", &["x"], |n| {
        attr_ints(n, "axes", &[1]);
        attr_int(n, "keepdims", 0);
    });
    let attributes = "{keepdims=false, noop_with_empty_axes=false}";
    assert_eq!(mean, format!("%2 = Const() {{tensor=i64[1]}}; %3 = ReduceMean(%0, %2) {attributes}"));
    let mean = one(18, "ReduceMean", &["x"], |n| attr_int(n, "noop_with_empty_axes", 1));
    assert_eq!(mean, "%2 = ReduceMean(%0) {keepdims=true, noop_with_empty_axes=true}");
    assert!(one(15, "Shape", &["x"], |n| attr_int(n, "start", 1)).starts_with("%2 = Shape(%0) {start=1"));
    assert!(one(14, "Shape", &["x"], |n| attr_int(n, "start", 1)).contains("not one that the op has"));
    assert_eq!(one(13, "Cast", &["x"], |n| attr_int(n, "to", 7)), "%2 = Cast(%0) {to=i64}");
    let named = |n: &mut Writer| _ = n.message(5, |a| _ = a.text(1, "to").i64(20, 3).text(4, "DOUBLE"));
    assert_eq!(one(5, "Cast", &["x"], named), "%2 = Cast(%0) {to=f64}");
    assert!(one(6, "Cast", &["x"], named).contains("`to` should be INT, it is STRING"));
    assert!(one(13, "Cast", &["x"], |n| attr_int(n, "to", 99)).contains("99, which is no element type"));
    assert!(one(19, "Cast", &["x"], |n| attr_int(n, "to", 8)).contains("casts to string are not supported"));
    assert!(one(13, "Cast", &["x"], |_| ()).contains("`to` is missing"));
    assert!(one(9, "ConstantOfShape", &["x"], |_| ()).contains("value=f32[]"));
    assert!(one(17, "LayerNormalization", &["x", "v"], |n| attr_int(n, "stash_type", 10)).contains("stash_type 10"));
    let normalised = one(17, "LayerNormalization", &["x", "v"], |_| ());
    assert!(normalised.starts_with("%2 = LayerNormalization(%0, %1) {axis=-1, epsilon=1e-5"), "{normalised}");
}

#[test]
fn products_windows_and_recurrences() {
    let gemm = one(6, "Gemm", &["x", "x", "v"], |n| {
        attr_int(n, "broadcast", 1);
        attr_int(n, "transB", 1);
    });
    assert!(gemm.contains("trans_a=false, trans_b=true"), "{gemm}");
    assert!(one(7, "Gemm", &["x", "x"], |n| attr_int(n, "broadcast", 1)).contains("not one that the op has"));
    let conv = one(11, "Conv", &["x", "x"], |n| {
        attr_ints(n, "pads", &[1, 2]);
        attr_int(n, "group", 3);
        n.message(5, |a| _ = a.text(1, "auto_pad").i64(20, 3).text(4, "VALID"));
    });
    assert!(conv.contains("group=3") && conv.contains("pads=[1, 2]"), "{conv}");
    let bad = |n: &mut Writer| _ = n.message(5, |a| _ = a.text(1, "auto_pad").i64(20, 3).text(4, "SOME"));
    assert!(one(11, "Conv", &["x", "x"], bad).contains("auto_pad \"SOME\" is unknown"));
    assert!(one(11, "MaxPool", &["x"], |_| ()).contains("`kernel_shape` is missing"));
    let pool = one(9, "MaxPool", &["x"], |n| {
        attr_ints(n, "kernel_shape", &[2]);
        attr_int(n, "ceil_mode", 1);
    });
    assert!(pool.contains("`ceil_mode` (INT) is not one that the op has at opset 9"), "{pool}");
    let lstm = one(14, "LSTM", &["x", "x", "x"], |n| {
        attr_int(n, "hidden_size", 3);
        attr_int(n, "layout", 1);
        n.message(5, |a| _ = a.text(1, "direction").i64(20, 3).text(4, "reverse"));
        n.message(5, |a| _ = a.text(1, "activations").i64(20, 8).text(9, "Relu").text(9, "Tanh").text(9, "Tanh"));
    });
    assert!(lstm.contains("batch_first=true") && lstm.contains("direction=\"reverse\""), "{lstm}");
    let bad = |n: &mut Writer| _ = n.message(5, |a| _ = a.text(1, "activations").i64(20, 8).text(9, "Cubic"));
    assert!(one(14, "LSTM", &["x", "x", "x"], bad).contains("node `LSTM_0` (LSTM)"));
}

#[test]
fn clip_whose_bounds_were_attributes() {
    assert_eq!(one(6, "Clip", &["x"], |_| ()), "%2 = Clip(%0)");
    let both: fn(&mut Writer) = |n| {
        for (name, v) in [("min", 0f32), ("max", 6.)] {
            n.message(5, |a| _ = a.text(1, name).i64(20, 1).f32(2, v));
        }
    };
    assert_eq!(
        one(6, "Clip", &["x"], both),
        "%2 = Const() {tensor=f32[]}; %3 = Const() {tensor=f32[]}; %4 = Clip(%0, %2, %3)"
    );
    let max: fn(&mut Writer) = |n| _ = n.message(5, |a| _ = a.text(1, "max").i64(20, 1).f32(2, 6.));
    assert_eq!(one(10, "Clip", &["x"], max), "%2 = Const() {tensor=f32[]}; %3 = Clip(%0, _, %2)");
    assert!(one(11, "Clip", &["x"], max).contains("not one that the op has at opset 11"));
    assert_eq!(one(11, "Clip", &["x", "", "w"], |_| ()), "%2 = Const() {tensor=f32[2]}; %3 = Clip(%0, _, %2)");
}

#[test]
fn hard_functions_and_their_defaults() {
    assert_eq!(one(1, "HardSigmoid", &["x"], |_| ()), "%2 = HardSigmoid(%0) {alpha=0.2, beta=0.5}");
    let alpha: fn(&mut Writer) = |n| _ = n.message(5, |a| _ = a.text(1, "alpha").i64(20, 1).f32(2, 0.25));
    assert_eq!(one(22, "HardSigmoid", &["x"], alpha), "%2 = HardSigmoid(%0) {alpha=0.25, beta=0.5}");
    assert_eq!(one(14, "HardSwish", &["x"], |_| ()), "%2 = HardSwish(%0)");
    assert!(one(13, "HardSwish", &["x"], |_| ()).contains("14"));
}
