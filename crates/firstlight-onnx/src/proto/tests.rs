use super::*;
use firstlight_tensor::wire::Writer;

fn parse(bytes: &[u8]) -> Result<ModelProto<'_>> {
    ModelProto::parse(bytes, &ProtoLimits::default())
}

fn with_graph(fill: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    w.message(7, fill);
    w.finish()
}

fn with_attribute(fill: impl FnOnce(&mut Writer)) -> Vec<u8> {
    with_graph(|g| {
        g.message(1, |n| {
            n.message(5, fill);
        });
    })
}

fn attribute(bytes: &[u8]) -> Result<AttributeValue<'_>> {
    Ok(parse(bytes)?.graph.unwrap().nodes.remove(0).attributes.remove(0).value)
}

#[test]
fn reads_every_field_of_a_model() {
    let mut w = Writer::new();
    w.i64(1, 13).text(2, "maker").text(3, "1.0").text(4, "dom").i64(5, 7).text(6, "doc");
    w.message(8, |o| {
        o.text(1, "ai.onnx.ml").i64(2, 5);
    });
    w.message(14, |m| {
        m.text(1, "k").text(2, "v");
    });
    w.message(26, |d| {
        d.text(1, "device configuration");
    });
    w.message(7, |g| {
        g.text(2, "main");
        g.message(1, |n| {
            n.text(1, "x").text(1, "").text(2, "y").text(3, "n0").text(4, "Foo").text(7, "d").text(8, "ov");
            n.message(9, |m| {
                m.text(1, "nk").text(2, "nv");
            });
            n.message(10, |d| {
                d.text(1, "skipped");
            });
        });
        g.message(5, |t| {
            t.i64(1, 2).i64(1, 3).i64(2, 1).text(8, "w").bytes(9, &[1; 24]);
        });
        g.message(11, |v| {
            v.text(1, "x").message(2, |t| {
                t.message(1, |tt| {
                    tt.i64(1, 1).message(2, |s| {
                        s.message(1, |d| {
                            d.text(2, "batch");
                        });
                        s.message(1, |d| {
                            d.i64(1, 4);
                        });
                        s.message(1, |_| {});
                    });
                });
            });
        });
        g.message(12, |v| {
            v.text(1, "y");
        });
        g.message(13, |v| {
            v.text(1, "seq").message(2, |t| {
                t.message(4, |s| {
                    s.message(1, |t| {
                        t.message(9, |o| {
                            o.message(1, |t| {
                                t.message(5, |m| {
                                    m.i64(1, 8).message(2, |t| {
                                        t.message(8, |tt| {
                                            tt.i64(1, 1);
                                        });
                                    });
                                });
                            });
                        });
                    });
                });
            });
        });
    });
    w.message(25, |f| {
        f.text(1, "F").text(10, "d").text(13, "ov").text(4, "a").text(5, "b").text(6, "alpha");
        f.message(7, |n| {
            n.text(4, "Id").message(5, |a| {
                a.text(1, "alpha").text(21, "beta").i64(20, 2);
            });
        });
        f.message(9, |o| {
            o.i64(2, 21);
        });
        f.message(11, |a| {
            a.text(1, "gamma").i64(20, 2).i64(3, 9);
        });
        f.message(12, |v| {
            v.text(1, "a");
        });
    });
    let bytes = w.finish();
    let m = parse(&bytes).unwrap();
    assert_eq!((m.ir_version, m.producer_name, m.producer_version), (13, "maker", "1.0"));
    assert_eq!((m.domain, m.model_version), ("dom", 7));
    assert_eq!(m.opset_import, [OperatorSetIdProto { domain: "ai.onnx.ml", version: 5 }]);
    assert_eq!(m.metadata_props.iter().map(|r| r.unwrap()).collect::<Vec<_>>(), [("k", "v")]);

    let g = m.graph.unwrap();
    let n = &g.nodes[0];
    assert_eq!((g.name, n.name, n.op_type, n.domain, n.overload), ("main", "n0", "Foo", "d", "ov"));
    assert_eq!((&n.inputs[..], &n.outputs[..]), (&["x", ""][..], &["y"][..]));
    assert_eq!(n.metadata_props.iter().map(|r| r.unwrap()).collect::<Vec<_>>(), [("nk", "nv")]);
    let t = &g.initializers[0];
    assert_eq!((t.name, &t.dims[..], t.data_type), ("w", &[2i64, 3][..], 1));
    assert_eq!(&bytes[t.raw_data.unwrap().range()], &[1; 24]);
    let tensor = |elem_type, shape| TensorTypeProto { elem_type, shape };
    let dims = vec![DimProto::Param("batch"), DimProto::Value(4), DimProto::Unset];
    assert_eq!(g.inputs[0].ty, Some(TypeProto::Tensor(tensor(1, Some(dims)))));
    assert_eq!((g.outputs[0].name, &g.outputs[0].ty), ("y", &None));
    let map = TypeProto::Map { key: 8, value: Box::new(TypeProto::SparseTensor(tensor(1, None))) };
    let optional = TypeProto::Optional(Box::new(map));
    assert_eq!(g.value_info[0].ty, Some(TypeProto::Sequence(Box::new(optional))));

    let f = &m.functions[0];
    assert_eq!((f.name, f.domain, f.overload), ("F", "d", "ov"));
    assert_eq!((&f.inputs[..], &f.outputs[..], &f.attributes[..]), (&["a"][..], &["b"][..], &["alpha"][..]));
    assert_eq!(f.opset_import[0].version, 21);
    assert!(matches!(f.attribute_protos[0].value, AttributeValue::Int(9)));
    let reference = &f.nodes[0].attributes[0].value;
    assert!(matches!(reference, AttributeValue::Reference { name: "beta", kind: 2 }));
    assert_eq!(f.value_info.len(), 1);
}

#[test]
fn attribute_kinds() {
    let kind = |fill: &dyn Fn(&mut Writer)| {
        let bytes = with_attribute(fill);
        attribute(&bytes).map(|v| v.kind()).map_err(|e| e.to_string())
    };
    assert_eq!(kind(&|a| _ = a.i64(20, 1).f32(2, 1.0)), Ok("FLOAT"));
    assert_eq!(kind(&|a| _ = a.i64(20, 7).packed_i64(8, &[1, 2]).i64(8, 3)), Ok("INTS"));
    assert_eq!(kind(&|a| _ = a.i64(20, 8).bytes(9, b"\xff")), Ok("STRINGS"));
    assert_eq!(kind(&|a| _ = a.i64(20, 5).message(6, |_| {})), Ok("GRAPH"));
    // Writers leave out zeros and empty lists.
    assert_eq!(kind(&|a| _ = a.i64(20, 2)), Ok("INT"));
    assert_eq!(kind(&|a| _ = a.i64(20, 6)), Ok("FLOATS"));
    // The first IR version states no kind.
    assert_eq!(kind(&|a| _ = a.f32(2, 1.0)), Ok("FLOAT"));
    assert!(kind(&|a| _ = a.text(1, "axis")).unwrap_err().contains("`axis`"));
    assert!(kind(&|a| _ = a.i64(20, 4)).is_err());
    assert!(kind(&|a| _ = a.i64(20, 2).f32(2, 1.0)).unwrap_err().contains("kind 2 with a value of kind 1"));
    assert!(kind(&|a| _ = a.i64(20, 99).i64(3, 1)).is_err());
}

#[test]
fn limits_are_errors_that_name_themselves() {
    let limit = |bytes: &[u8], limits: ProtoLimits| match ModelProto::parse(bytes, &limits).unwrap_err() {
        ProtoError::Limit { limit, .. } => limit,
        other => panic!("{other}"),
    };
    let d = ProtoLimits::default();

    let mut graph = Vec::new();
    for _ in 0..50 {
        let mut w = Writer::new();
        w.message(1, |n| {
            n.message(5, |a| {
                a.i64(20, 5).bytes(6, &graph);
            });
        });
        graph = w.finish();
    }
    let mut w = Writer::new();
    w.bytes(7, &graph);
    let bytes = w.finish();
    assert_eq!(limit(&bytes, d), "nesting");
    assert!(ModelProto::parse(&bytes, &ProtoLimits { nesting: 64, ..d }).is_ok());

    let mut ty = Vec::new();
    for _ in 0..50 {
        let mut w = Writer::new();
        w.message(4, |s| {
            s.bytes(1, &ty);
        });
        ty = w.finish();
    }
    let bytes = with_graph(|g| {
        g.message(11, |v| {
            v.bytes(2, &ty);
        });
    });
    assert_eq!(limit(&bytes, d), "nesting");

    let bytes = with_graph(|g| (0..10).for_each(|_| _ = g.message(1, |_| {})));
    assert_eq!(limit(&bytes, ProtoLimits { nodes: 9, ..d }), "nodes");
    assert_eq!(limit(&bytes, ProtoLimits { struct_bytes: 100, ..d }), "struct_bytes");
    let bytes = with_graph(|g| _ = g.text(2, "a long name"));
    assert_eq!(limit(&bytes, ProtoLimits { name_bytes: 5, ..d }), "name_bytes");
    let bytes = with_graph(|g| _ = g.message(5, |t| _ = t.packed_i64(1, &[1; 65])));
    assert!(parse(&bytes).unwrap_err().to_string().contains("rank limit"));
}

#[test]
fn malformed_input_is_an_error_at_a_byte() {
    let bytes = with_graph(|g| _ = g.message(1, |n| _ = n.bytes(1, b"a\xffb")));
    let e = parse(&bytes).unwrap_err();
    assert_eq!(e.to_string(), "at byte 7: NodeProto.input: expected UTF-8 text, got a byte sequence that is not UTF-8");
    let bytes = with_graph(|g| _ = g.i64(1, 3));
    assert!(parse(&bytes).is_err());
    assert!(parse(b"This is plain text, not a model.").is_err());
    assert!(parse(b"").unwrap().graph.is_none());
}

#[test]
fn truncation_anywhere_is_an_error_or_a_shorter_model_but_never_a_panic() {
    let bytes = with_graph(|g| {
        g.message(1, |n| {
            n.text(1, "x").text(2, "y").text(4, "Conv");
            n.message(5, |a| {
                a.text(1, "pads").i64(20, 7).packed_i64(8, &[1, 1, 1, 1]);
            });
        });
        g.message(5, |t| {
            t.packed_i64(1, &[2]).i64(2, 1).text(8, "w").bytes(9, &[0; 8]);
        });
    });
    for n in 0..bytes.len() {
        _ = parse(&bytes[..n]);
    }
    for i in 0..bytes.len() {
        for bit in 0..8 {
            let mut b = bytes.clone();
            b[i] ^= 1 << bit;
            _ = parse(&b);
        }
    }
}
