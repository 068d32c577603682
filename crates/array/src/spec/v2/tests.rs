//! Arrays that zarr-python wrote, and metadata as other writers leave it.

use serde_json::{Value, json};

use super::{parse_v2_array, parse_v2_group};
use crate::{ArraySpec, ChunkKeys, Codecs, ElementsBuf, Error, Result, fill_element};

/// Made by `testdata/zarr2/make.py`.
const CASES: &str = include_str!("../../../../../testdata/zarr2/cases.json");

/// An array as zarr-python 2 describes it, with some members replaced.
fn parse(replaced: &Value) -> Result<ArraySpec> {
    let mut zarray = json!({
        "chunks": [2, 3],
        "compressor": {"blocksize": 0, "clevel": 5, "cname": "lz4", "id": "blosc", "shuffle": 1},
        "dtype": "<f8", "fill_value": 0.0, "filters": null, "order": "C", "shape": [4, 6],
        "zarr_format": 2,
    });
    for (key, value) in replaced.as_object().unwrap() {
        zarray[key] = value.clone();
    }
    parse_v2_array(zarray.to_string().as_bytes(), None)
}

fn hex(text: &Value) -> Vec<u8> {
    let digits = text.as_str().unwrap().as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn what_zarr_python_wrote_is_read() {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    assert!(cases.len() > 50);
    for case in cases {
        let name = &case["name"];
        let zattrs = case["zattrs"].as_str().map(str::as_bytes);
        let spec = parse_v2_array(case["zarray"].as_str().unwrap().as_bytes(), zattrs)
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(ArraySpec::parse(&spec.render()).unwrap(), spec, "{name}");
        let codecs = Codecs::new(&spec).unwrap();
        let found = codecs.decode(&hex(&case["chunk"]));
        let found = found.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        match (&found, &case["decoded"]) {
            (ElementsBuf::Fixed(bytes), expected @ Value::String(_)) => {
                assert_eq!(*bytes, hex(expected), "{name}");
                assert_eq!(codecs.fill_element(), hex(&case["fill"]), "{name}");
            }
            (ElementsBuf::Variable { .. }, Value::Array(expected)) => {
                for (index, word) in expected.iter().enumerate() {
                    let found = found.as_ref().get(index);
                    assert_eq!(found, word.as_str().map(str::as_bytes), "{name}");
                }
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn dimensions_and_attributes_are_taken_apart() {
    let zarray = json!({
        "zarr_format": 2, "shape": [4, 6], "chunks": [2, 3], "dtype": "|u1", "fill_value": 0,
        "order": "C", "dimension_separator": "/",
    });
    let parse = |attributes: &str| {
        parse_v2_array(zarray.to_string().as_bytes(), Some(attributes.as_bytes())).unwrap()
    };
    let named = parse(r#"{"b": 1, "_ARRAY_DIMENSIONS": ["y", "x"], "a": NaN}"#);
    assert_eq!(named.dimension_names(), Some(&[Some("y".to_owned()), Some("x".to_owned())][..]));
    assert_eq!(Value::Object(named.attributes().clone()), json!({"b": 1, "a": "NaN"}));
    assert_eq!(named.attributes().keys().collect::<Vec<_>>(), ["b", "a"], "order is kept");
    assert_eq!(ChunkKeys::new(&named).unwrap().key(&[0, 1]), "0/1");
    for other in [r#"["y"]"#, r#"["y", 1]"#, r#""yx""#, "null"] {
        let spec = parse(&format!(r#"{{"_ARRAY_DIMENSIONS": {other}}}"#));
        assert_eq!((spec.dimension_names(), spec.attributes().len()), (None, 1), "{other}");
    }
    let bare = parse_v2_array(zarray.to_string().as_bytes(), None).unwrap();
    assert!(bare.attributes().is_empty() && bare.dimension_names().is_none());
    assert!(parse_v2_array(zarray.to_string().as_bytes(), Some(b"[1]")).is_err());
}

#[test]
fn codecs_come_in_the_order_of_version_3() {
    let names = |replaced: Value| {
        let codecs = parse(&replaced).unwrap_or_else(|e| panic!("{replaced}: {e}")).codecs_json();
        codecs.iter().map(|codec| codec["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(json!({"order": "F"})), ["transpose", "bytes", "blosc"]);
    let shuffled = json!({"filters": [{"id": "shuffle", "elementsize": 8}], "order": "F"});
    assert_eq!(names(shuffled), ["transpose", "bytes", "numcodecs.shuffle", "blosc"]);
    let text = json!({"dtype": "|O", "filters": [{"id": "vlen-utf8"}], "fill_value": null});
    assert_eq!(names(text), ["vlen-utf8", "blosc"], "the compressor is not forgotten");
    let bytes = json!({"dtype": "|O", "filters": [{"id": "vlen-bytes"}], "fill_value": 0,
        "compressor": null});
    assert_eq!(names(bytes), ["vlen-bytes"]);
    let pcodec = json!({"compressor": {"id": "pcodec", "level": 8, "mode_spec": "auto",
        "delta_spec": "auto", "delta_encoding_order": null, "paging_spec": "equal_pages_up_to",
        "equal_pages_up_to": 262_144}});
    assert_eq!(names(pcodec), ["numcodecs.pcodec"]);
    let narrow = parse(&json!({"dtype": "|u1", "compressor": null})).unwrap();
    assert_eq!(narrow.codecs_json(), [json!({"name": "bytes"})]);
}

#[test]
fn what_cannot_be_read_is_named() {
    let filter = |id: &str| json!({"filters": [{"id": id, "dtype": "<f8", "astype": "<f4"}]});
    let compressor = |id: &str| json!({"compressor": {"id": id}});
    let scaled = json!({"id": "fixedscaleoffset", "scale": 0.1, "offset": 0, "dtype": "<f8"});
    for (replaced, named) in [
        (filter("delta"), "delta"),
        (filter("astype"), "astype"),
        (filter("packbits"), "packbits"),
        (filter("quantize"), "quantize"),
        (json!({"filters": [scaled]}), "fixedscaleoffset"),
        (json!({"filters": [{"id": "crc32c", "location": "start"}]}), "crc32c"),
        (
            json!({"filters": [{"id": "zlib", "level": 1}, {"id": "bitround", "keepbits": 3}]}),
            "bitround",
        ),
        (compressor("lzma"), "lzma"),
        (compressor("snappy"), "snappy"),
        (compressor("zfpy"), "zfpy"),
        (json!({"dtype": "|O"}), "|O"),
        (json!({"dtype": "|O", "filters": [{"id": "json2"}]}), "json2"),
        (json!({"dtype": "|O", "filters": [{"id": "vlen-array", "dtype": "<i4"}]}), "vlen-array"),
        (json!({"filters": [{"id": "vlen-utf8"}]}), "vlen-utf8"),
        (json!({"dtype": "<f16"}), "<f16"),
        (json!({"dtype": "|S0"}), "|S0"),
        (json!({"dtype": "<U0"}), "<U0"),
        (json!({"dtype": [["r", "|u1"], ["g", "<f4"]]}), "structured"),
    ] {
        let error = parse(&replaced).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{replaced}: {error:?}");
        assert!(error.to_string().contains(named), "{replaced}: {error}");
    }
}

#[test]
fn contradictions_are_refused() {
    for replaced in [
        json!({"zarr_format": 3}),
        json!({"zarr_format": null}),
        json!({"shape": null}),
        json!({"shape": [4]}),
        json!({"shape": [4, -6]}),
        json!({"chunks": [2, 0]}),
        json!({"chunks": 2}),
        json!({"order": "K"}),
        json!({"dtype": 8}),
        json!({"dtype": null}),
        json!({"filters": 1}),
        json!({"filters": [1]}),
        json!({"filters": [{"elementsize": 4}]}),
        json!({"compressor": "zlib"}),
        json!({"compressor": {"id": "blosc", "shuffle": 7}}),
        json!({"compressor": {"id": "zlib", "level": "x"}}),
        json!({"dimension_separator": "-"}),
        json!({"fill_value": "x"}),
        json!({"fill_value": [1]}),
        json!({"dtype": "|u1", "fill_value": 256}),
        json!({"dtype": "|i1", "fill_value": 0.5}),
        json!({"dtype": "|S2", "fill_value": "YWJj"}),
        json!({"dtype": "|V2", "fill_value": "not base64"}),
    ] {
        let error = parse(&replaced).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{replaced}: {error:?}");
    }
    for text in ["", "[]", "{}", "null", "{\"zarr_format\": 2"] {
        assert!(parse_v2_array(text.as_bytes(), None).is_err());
    }
}

#[test]
fn fill_values_of_any_writer_are_understood() {
    let text =
        |id: &str, fill: Value| json!({"dtype": "|O", "filters": [{"id": id}], "fill_value": fill});
    for (replaced, expected) in [
        (json!({"fill_value": null}), vec![0; 8]),
        (json!({"dtype": "<i4", "fill_value": null}), vec![0; 4]),
        (json!({"dtype": "|b1", "fill_value": null}), vec![0]),
        (json!({"dtype": "|b1", "fill_value": 1}), vec![1]),
        (json!({"dtype": "|b1", "fill_value": true}), vec![1]),
        (json!({"dtype": ">i2", "fill_value": -2.0}), vec![0xfe, 0xff]),
        (json!({"dtype": "<f4", "fill_value": "NaN"}), 0x7fc0_0000u32.to_le_bytes().to_vec()),
        (json!({"fill_value": "-Infinity"}), f64::NEG_INFINITY.to_le_bytes().to_vec()),
        (json!({"fill_value": 1}), 1f64.to_le_bytes().to_vec()),
        (json!({"dtype": "<M8[ns]", "fill_value": i64::MIN}), i64::MIN.to_le_bytes().to_vec()),
        (json!({"dtype": "<M8[ns]", "fill_value": "NaT"}), i64::MIN.to_le_bytes().to_vec()),
        (json!({"dtype": "<M8[ns]", "fill_value": null}), vec![0; 8]),
        (json!({"dtype": "|S5", "fill_value": "YWI="}), b"ab\0\0\0".to_vec()),
        (json!({"dtype": "|S5", "fill_value": ""}), vec![0; 5]),
        (json!({"dtype": "|S5", "fill_value": null}), vec![0; 5]),
        (json!({"dtype": "|S5", "fill_value": 0}), vec![0; 5]),
        (json!({"dtype": "|V2", "fill_value": "AQI="}), vec![1, 2]),
        (json!({"dtype": "<U2", "fill_value": ""}), vec![0; 8]),
        (json!({"dtype": "<U2", "fill_value": 0}), vec![0; 8]),
        (json!({"dtype": "<U2", "fill_value": "a"}), vec![b'a', 0, 0, 0, 0, 0, 0, 0]),
        (json!({"dtype": "<U2", "fill_value": null}), vec![0; 8]),
        (text("vlen-utf8", json!(null)), vec![]),
        (text("vlen-utf8", json!(0)), vec![]),
        (text("vlen-utf8", json!("né")), "né".into()),
        (text("vlen-bytes", json!(null)), vec![]),
        (text("vlen-bytes", json!("AQI=")), vec![1, 2]),
    ] {
        let spec = parse(&replaced).unwrap_or_else(|error| panic!("{replaced}: {error:?}"));
        let found = fill_element(&spec.dtype().unwrap(), &spec.metadata().fill_value).unwrap();
        assert_eq!(found, expected, "{replaced}");
    }
}

#[test]
fn a_dimension_without_extent_has_no_chunks() {
    let empty = parse(&json!({"shape": [0, 6], "chunks": [0, 6]})).unwrap();
    assert_eq!(empty.grid().unwrap().num_chunks(), 0);
}

#[test]
fn a_group_is_its_attributes() {
    let group =
        parse_v2_group(br#"{"zarr_format": 2}"#, Some(br#"{"b": 1, "a": Infinity}"#)).unwrap();
    assert_eq!(Value::Object(group.attributes().clone()), json!({"b": 1, "a": "Infinity"}));
    assert!(parse_v2_group(br#"{"zarr_format": 2}"#, None).unwrap().attributes().is_empty());
    assert!(parse_v2_group(br#"{"zarr_format": 3}"#, None).is_err());
    assert!(parse_v2_group(b"{}", None).is_err());
}
