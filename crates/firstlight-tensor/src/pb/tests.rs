use super::*;

fn message(data_type: i32, dims: &[i64], fill: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    w.packed_i64(1, dims).i64(2, data_type.into()).text(8, "t");
    fill(&mut w);
    w.finish()
}

fn read(data_type: i32, dims: &[i64], fill: impl FnOnce(&mut Writer)) -> Result<Tensor, String> {
    read_tensor(&message(data_type, dims, fill)).map(|(_, t)| t).map_err(|e| e.to_string())
}

#[test]
fn every_dtype_round_trips_as_raw_data() {
    for dtype in DType::ALL {
        let tensor = match dtype {
            DType::String => Tensor::from_strings([2, 1], &["", "naïve"]).unwrap(),
            _ => {
                let bytes: Vec<u8> = (0..dtype.size_bytes(5).unwrap() as u8).collect();
                Tensor::new(dtype, [5].into(), bytes.as_slice().into()).unwrap()
            }
        };
        let bytes = write_tensor("x", &tensor).unwrap();
        assert_eq!(read_tensor(&bytes).unwrap(), ("x".to_string(), tensor));
        assert_eq!(dtype_of(onnx_data_type(dtype)), Some(dtype));
    }
    assert_eq!((dtype_of(0), dtype_of(99)), (None, None));
}

#[test]
fn typed_fields() {
    // (data type, dims, field contents, bytes of the tensor)
    type Fill = fn(&mut Writer);
    let cases: &[(i32, &[i64], Fill, &[u8])] = &[
        (1, &[2], |w| _ = w.packed_f32(4, &[1.0, -2.0]), &[0, 0, 128, 63, 0, 0, 0, 192]),
        (14, &[1], |w| _ = w.packed_f32(4, &[1.0, -2.0]), &[0, 0, 128, 63, 0, 0, 0, 192]),
        (11, &[], |w| _ = w.f64(10, 1.0), &[0, 0, 0, 0, 0, 0, 240, 63]),
        (15, &[0], |w| _ = w.packed_f64(10, &[]), &[]),
        (7, &[1], |w| _ = w.packed_i64(7, &[-2]), &[254, 255, 255, 255, 255, 255, 255, 255]),
        (13, &[1], |w| _ = w.u64(11, u64::MAX), &[255; 8]),
        (12, &[1], |w| _ = w.u64(11, 258), &[2, 1, 0, 0]),
        (6, &[2], |w| _ = w.packed_i64(5, &[-1, 7]), &[255, 255, 255, 255, 7, 0, 0, 0]),
        (3, &[2], |w| _ = w.packed_i64(5, &[-1, 7]), &[255, 7]),
        (2, &[1], |w| _ = w.packed_i64(5, &[200]), &[200]),
        (5, &[1], |w| _ = w.packed_i64(5, &[-2]), &[254, 255]),
        (4, &[1], |w| _ = w.packed_i64(5, &[65535]), &[255, 255]),
        (9, &[3], |w| _ = w.packed_i64(5, &[0, 1, 2]), &[0, 1, 1]),
        (10, &[1], |w| _ = w.packed_i64(5, &[0x3c00]), &[0, 0x3c]),
        (16, &[1], |w| _ = w.packed_i64(5, &[0xbf80]), &[0x80, 0xbf]),
        (17, &[2], |w| _ = w.packed_i64(5, &[0x7e, 0xfe]), &[0x7e, 0xfe]),
        (24, &[1], |w| _ = w.packed_i64(5, &[127]), &[127]),
        (21, &[3], |w| _ = w.packed_i64(5, &[0x21, 0x03]), &[0x21, 3]),
        (22, &[2], |w| _ = w.packed_i64(5, &[-1]), &[255]),
        (23, &[1], |w| _ = w.packed_i64(5, &[5]), &[5]),
        (25, &[5], |w| _ = w.packed_i64(5, &[0xe4, 2]), &[0xe4, 2]),
        (27, &[5], |w| _ = w.packed_i64(5, &[1, 2, 63, 0, 33]), &[0x81, 0xf0, 0x03, 0x21]),
        (28, &[1], |w| _ = w.packed_i64(5, &[63]), &[63]),
        (26, &[4], |w| _ = w.packed_i64(5, &[0x1b]), &[0x1b]),
    ];
    for (data_type, dims, fill, bytes) in cases {
        let tensor = read(*data_type, dims, fill).unwrap_or_else(|e| panic!("data type {data_type}: {e}"));
        assert_eq!(tensor.as_bytes(), *bytes, "data type {data_type}");
    }
    let strings = read(8, &[2], |w| _ = w.text(6, "a").text(6, "")).unwrap();
    assert_eq!(strings.strings().unwrap(), ["a", ""]);
}

#[test]
fn contradictions_are_errors() {
    let error = |data_type, dims: &[i64], fill: fn(&mut Writer)| read(data_type, dims, fill).unwrap_err();
    assert!(error(1, &[2], |w| _ = w.packed_f32(4, &[1.0])).contains("takes 2 values"));
    assert!(error(1, &[1], |w| _ = w.packed_i64(7, &[1])).contains("float_data holds 0"));
    assert!(error(1, &[2], |w| _ = w.bytes(9, &[0; 7])).contains("takes 8 bytes, got 7"));
    assert!(error(1, &[-1], |_| ()).contains("negative"));
    assert!(error(1, &[1 << 40, 1 << 40], |_| ()).contains("more than memory"));
    assert!(error(15, &[i64::MAX], |_| ()).contains("more than memory"));
    assert!(error(0, &[], |_| ()).contains("data type 0 is unknown"));
    assert!(error(2, &[1], |w| _ = w.packed_i64(5, &[256])).contains("256, which is no u8"));
    assert!(error(27, &[1], |w| _ = w.packed_i64(5, &[64])).contains("64, which is no f6e2m3"));
    assert!(error(12, &[1], |w| _ = w.u64(11, 1 << 32)).contains("no u32"));
    assert!(error(8, &[2], |w| _ = w.text(6, "a")).contains("string_data holds 1"));
    assert!(error(8, &[1], |w| _ = w.bytes(6, b"\xff")).contains("UTF-8"));
    assert!(error(8, &[1], |w| _ = w.bytes(9, b"a")).contains("raw_data"));
    assert!(error(1, &[0], |w| _ = w.message(3, |_| ())).contains("segment"));
    assert!(error(1, &[0], |w| _ = w.i64(14, 1)).contains("another file"));
    assert!(read_tensor(b"plain text").is_err());
}

#[test]
fn raw_data_stays_in_the_file() {
    let bytes = message(1, &[2], |w| _ = w.bytes(9, &[7; 8]));
    let file = Arc::new(MappedFile::from_vec(bytes));
    let proto = TensorProto::from_bytes(file.as_slice(), MAX_RANK).unwrap();
    let tensor = proto.tensor(Some(&file)).unwrap();
    assert_eq!((tensor.bytes().owned_len(), tensor.as_bytes()), (0, &[7u8; 8][..]));
}

#[test]
fn external_data_entries() {
    let entries = |pairs: &[(&str, &str)]| {
        let bytes = message(1, &[1], |w| {
            w.i64(14, 1);
            for (k, v) in pairs {
                w.message(13, |e| _ = e.text(1, k).text(2, v));
            }
        });
        TensorProto::from_bytes(&bytes, MAX_RANK).unwrap().external_data().map_err(|e| e.to_string())
    };
    let got = entries(&[("location", "w.bin"), ("offset", "4096"), ("length", "8"), ("checksum", "c"), ("z", "")]);
    let expected = ExternalData { location: "w.bin".into(), offset: 4096, length: Some(8), checksum: Some("c".into()) };
    assert_eq!(got, Ok(expected));
    assert!(entries(&[("offset", "1")]).unwrap_err().contains("location"));
    assert!(entries(&[("location", "w"), ("offset", "-1")]).unwrap_err().contains("decimal"));
    assert!(entries(&[("location", "w"), ("length", "99999999999999999999")]).is_err());
}
