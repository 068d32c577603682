use serde_json::{Value, json};

use super::{ArraySpec, Attributes, GroupSpec};
use crate::Error;

fn document() -> Value {
    json!({
        "made_by": {"must_understand": false, "version": [1, 2]},
        "attributes": {"zulu": 1, "alpha": {"deep": [1.5, null, "x"]}, "tenth": 0.1},
        "codecs": ["bytes", {"name": "crc32c", "configuration": {}}],
        "fill_value": 0,
        "chunk_key_encoding": {"name": "default"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        "data_type": {"name": "uint8", "configuration": {}},
        "dimension_names": ["y", null],
        "shape": [4, 5],
        "zarr_format": 3,
        "node_type": "array",
    })
}

fn spec_of(document: &Value) -> crate::Result<ArraySpec> {
    ArraySpec::parse(document.to_string().as_bytes())
}

#[test]
fn everything_in_a_document_is_written_back() {
    let spec = spec_of(&document()).unwrap();
    let rendered: Value = serde_json::from_slice(&spec.render()).unwrap();
    assert_eq!(rendered, document());
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&rendered["attributes"]), ["zulu", "alpha", "tenth"], "order is kept");
    assert_eq!(keys(&rendered)[..3], ["zarr_format", "node_type", "shape"]);
    assert_eq!(ArraySpec::parse(&spec.render()).unwrap(), spec);
}

#[test]
fn equal_metadata_in_any_order_gives_equal_bytes() {
    let members: Vec<_> = document().as_object().unwrap().clone().into_iter().collect();
    let reversed: Value = Value::Object(members.into_iter().rev().collect());
    let (a, b) = (spec_of(&document()).unwrap(), spec_of(&reversed).unwrap());
    assert_eq!(a, b);
    assert_eq!(a.render(), b.render());
}

#[test]
fn floats_survive_to_the_last_bit() {
    let hard = "0.1234567890123456789e-300";
    let json = format!(r#"{{"zarr_format":3,"node_type":"group","attributes":{{"x":{hard}}}}}"#);
    let spec = GroupSpec::parse(json.as_bytes()).unwrap();
    assert_eq!(spec.attributes()["x"].as_f64(), hard.parse().ok());
    assert_eq!(GroupSpec::parse(&spec.render()).unwrap(), spec);
}

#[test]
fn the_typed_view_tells_what_the_document_says() {
    let spec = spec_of(&document()).unwrap();
    assert_eq!(spec.shape(), [4, 5]);
    assert_eq!(spec.chunk_shape(), Some(&[2, 3][..]));
    assert_eq!(spec.grid().unwrap().grid_shape(), [2, 2]);
    assert_eq!(spec.data_type_name(), "uint8");
    assert_eq!(spec.dimension_names(), Some(&[Some("y".to_owned()), None][..]));
    assert_eq!(spec.attributes().len(), 3);
    assert!(spec.check_understood().is_ok());
}

#[test]
fn members_that_must_be_understood_are_kept_but_reported() {
    let mut document = document();
    document["novelty"] = json!({"value": 1});
    let spec = spec_of(&document).unwrap();
    let error = spec.check_understood().unwrap_err();
    assert!(error.to_string().contains("novelty"), "{error}");
}

#[test]
fn contradictions_are_refused() {
    for (key, value) in [
        ("zarr_format", json!(2)),
        ("node_type", json!("group")),
        ("shape", json!([4])),
        ("shape", json!([4, -1])),
        ("chunk_grid", json!({"name": "regular", "configuration": {"chunk_shape": [2, 0]}})),
        ("chunk_grid", json!({"name": "regular", "configuration": {"chunk_shape": [2]}})),
        ("chunk_grid", json!("regular")),
        ("dimension_names", json!(["y"])),
        ("codecs", json!([])),
    ] {
        let mut document = document();
        document[key] = value.clone();
        assert!(spec_of(&document).is_err(), "{key}: {value}");
    }
    for json in ["", "[]", "{}", "{\"zarr_format\": 3", "\u{0}"] {
        assert!(ArraySpec::parse(json.as_bytes()).is_err());
        assert!(GroupSpec::parse(json.as_bytes()).is_err());
    }
}

#[test]
fn grids_that_are_not_regular_are_carried_along() {
    let mut document = document();
    document["chunk_grid"] =
        json!({"name": "rectangular", "configuration": {"chunk_shape": [[2], 5]}});
    let spec = spec_of(&document).unwrap();
    assert_eq!(spec.chunk_shape(), None);
    assert!(spec.grid().is_err());
}

#[test]
fn attributes_and_shape_can_be_replaced() {
    let spec = spec_of(&document()).unwrap();
    let resized = spec.with_shape(&[0, 9]).unwrap();
    assert_eq!(resized.shape(), [0, 9]);
    assert!(resized.same_encoding(&spec) && resized != spec);
    assert!(spec.with_shape(&[4]).is_err());
    let bare = spec.with_attributes(Attributes::new()).unwrap();
    assert!(bare.attributes().is_empty());
    assert!(!String::from_utf8(bare.render()).unwrap().contains("attributes"));
    assert_eq!(spec.with_attributes(spec.attributes().clone()).unwrap(), spec);
}

#[test]
fn spellings_of_one_encoding_are_the_same_encoding() {
    let shard = |crc: Value| {
        let index = json!(["bytes", crc]);
        json!([{"name": "sharding_indexed", "configuration": {
            "chunk_shape": [1, 3], "codecs": ["bytes", crc], "index_codecs": index}}])
    };
    let (name, object) = (json!("crc32c"), json!({"name": "crc32c"}));
    let empty = json!({"configuration": {}, "name": "crc32c"});
    let spellings = [&name, &object, &empty].map(|crc| [json!(["bytes", crc]), shard(crc.clone())]);
    let with = |key: &str, value: &Value| {
        let mut document = document();
        document[key] = value.clone();
        spec_of(&document).unwrap()
    };
    for one in &spellings {
        for other in &spellings {
            for (a, b) in one.iter().zip(other) {
                assert!(with("codecs", a).same_encoding(&with("codecs", b)), "{a} {b}");
            }
        }
        assert!(!with("codecs", &one[0]).same_encoding(&with("codecs", &one[1])));
    }
    let uint8 = with("data_type", &json!("uint8"));
    assert!(uint8.same_encoding(&spec_of(&document()).unwrap()));
    for (key, value) in [
        ("codecs", json!(["bytes"])),
        ("codecs", json!(["bytes", "crc32c", "crc32c"])),
        ("codecs", json!(["bytes", {"name": "crc32c", "must_understand": false}])),
        ("codecs", json!(["bytes", {"name": "crc32c", "configuration": {"a": 1}}])),
        ("data_type", json!("int8")),
        ("fill_value", json!(1)),
        ("chunk_grid", json!({"name": "regular", "configuration": {"chunk_shape": [2, 4]}})),
    ] {
        assert!(!with(key, &value).same_encoding(&uint8), "{key}: {value}");
    }
    let (zero, minus) = (with("fill_value", &json!(0.0)), with("fill_value", &json!(-0.0)));
    assert!(!zero.same_encoding(&minus), "chunks left out of a shard would change their sign");
}

#[test]
fn an_array_is_built_with_defaults() {
    for dtype in ["bool", "int8", "float64", "complex64", "r16", "string", "bytes", "bfloat16"] {
        let spec = ArraySpec::builder(&[4, 4], &[2, 2], dtype)
            .dimension_names(["y", "x"])
            .build()
            .unwrap_or_else(|error| panic!("{dtype}: {error}"));
        assert_eq!(spec.data_type_name(), dtype);
        assert!(crate::Codecs::new(&spec).is_ok(), "{dtype}");
    }
    let scalar = ArraySpec::builder(&[], &[], "float32").fill_value("NaN").build().unwrap();
    assert_eq!(scalar.grid().unwrap().num_chunks(), 1);
    assert!(ArraySpec::builder(&[4], &[2], "uint8").fill_value(256).build().is_err());
    assert!(ArraySpec::builder(&[4], &[0], "uint8").build().is_err());
    assert!(ArraySpec::builder(&[4], &[2], "nonsense").build().is_err());
}

#[test]
fn a_group_keeps_what_it_does_not_know() {
    let json = json!({
        "node_type": "group", "zarr_format": 3, "attributes": {"b": 1, "a": 2},
        "consolidated_metadata": null,
    });
    let spec = GroupSpec::parse(json.to_string().as_bytes()).unwrap();
    let rendered: Value = serde_json::from_slice(&spec.render()).unwrap();
    assert_eq!(rendered, json);
    let other = spec.with_attributes(Attributes::new());
    assert!(other.attributes().is_empty());
    assert_eq!(
        GroupSpec::parse(&GroupSpec::new(Attributes::new()).render()).unwrap(),
        GroupSpec::new(Attributes::new())
    );
}

#[test]
fn a_fill_value_of_megabytes_is_refused_before_it_becomes_a_list_of_numbers() {
    let large = ArraySpec::builder(&[1], &[1], "r16777216").fill_bytes(&vec![0; 2 << 20]).build();
    assert!(matches!(large, Err(Error::Unsupported { .. })), "{large:?}");
    let small = ArraySpec::builder(&[1], &[1], "r32").fill_bytes(&[1, 2, 3, 4]).build();
    assert_eq!(serde_json::json!(small.unwrap().metadata().fill_value), json!([1, 2, 3, 4]));
}
