use std::sync::Arc;

use chunkyard_array::{ArraySpec, Attributes, Codecs, GroupSpec};
use chunkyard_store::ErrorKind;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::container::model::{ArrayMeta, AttributeValue, DType, FillValue, IndexWidth};
use crate::{Dataset, Node};

fn meta(name: &str, dtype: DType) -> ArrayMeta {
    ArrayMeta {
        name: name.to_owned(),
        dtype,
        shape: vec![10, 7],
        dimension_names: Vec::new(),
        chunk_shape: vec![4, 7],
        fill_value: None,
        deleted: false,
        attributes: Vec::new(),
        index_width: IndexWidth::U16,
    }
}

fn entry(dtype: DType, fill_value: Option<FillValue>) -> Entry {
    Entry { meta: ArrayMeta { fill_value, ..meta("a", dtype) }, attributes: Vec::new() }
}

fn node(spec: &ArraySpec) -> ArrayNode {
    ArrayNode { spec: spec.clone(), sharding: None, edges: Edges::Clipped }
}

fn attributes(json: Value) -> Attributes {
    json.as_object().unwrap().clone()
}

fn list(child: DType) -> DType {
    DType::List { child: Box::new(child) }
}

fn fixed(size: u32, child: DType) -> DType {
    DType::FixedSizeList { child: Box::new(child), size }
}

#[track_caller]
fn there_and_back(entry: &Entry) -> ArrayNode {
    let array = array_of(entry).unwrap();
    assert_eq!(entry_of(&entry.meta.name, &array).unwrap(), *entry);
    assert!(Codecs::new(&array.spec).is_ok(), "{:?}", entry.meta);
    array
}

#[test]
fn every_type_that_zarr_has_keeps_its_name() {
    let float32 = there_and_back(&entry(DType::Float32, None)).spec;
    assert_eq!((float32.shape(), float32.chunk_shape().unwrap()), (&[10, 7][..], &[4, 7][..]));
    assert_eq!(float32.codecs_json().len(), 1);
    for (dtype, name) in [
        (DType::Bool, "bool"),
        (DType::Int8, "int8"),
        (DType::UInt64, "uint64"),
        (DType::Float64, "float64"),
        (DType::String, "string"),
        (DType::Binary, "bytes"),
        (DType::TimestampNs, "numpy.datetime64"),
    ] {
        assert_eq!(there_and_back(&entry(dtype, None)).spec.data_type_name(), name);
    }
    let time = there_and_back(&entry(DType::TimestampNs, None)).spec.dtype().unwrap();
    assert_eq!(time.to_numpy().as_deref(), Some("<M8[ns]"));
}

#[test]
fn a_list_of_fixed_size_is_a_dimension() {
    let mut entry = entry(fixed(3, fixed(2, DType::Int16)), Some(FillValue::Int(-1)));
    entry.meta.dimension_names = vec!["y".into(), "x".into()];
    let spec = there_and_back(&entry).spec;
    assert_eq!(spec.shape(), [10, 7, 3, 2]);
    assert_eq!(spec.chunk_shape().unwrap(), [4, 7, 3, 2]);
    assert_eq!(spec.dimension_names().unwrap()[1..3], [Some("x".into()), None]);
    assert_eq!(spec.attributes()["_chunkyard_list"], "fixed<3,fixed<2,int16>>");
    // Cut along the new dimension, it is an array like others.
    let cut = spec.with_shape(&[10, 7, 3, 1]).unwrap();
    let cut = entry_of("a", &node(&cut)).unwrap();
    assert_eq!((cut.meta.dtype, cut.meta.shape), (DType::Int16, vec![10, 7, 3, 1]));
    assert!(cut.attributes.iter().all(|(key, _)| key != "_chunkyard_list"));
    there_and_back(&self::entry(fixed(0, DType::String), None));
}

#[test]
fn a_list_becomes_bytes_and_keeps_its_type() {
    for dtype in [list(DType::Float32), list(list(DType::String)), fixed(2, list(DType::Bool))] {
        let spec = there_and_back(&entry(dtype, None)).spec;
        assert_eq!(spec.data_type_name(), "bytes");
    }
    let deep = (0..40).fold(DType::Int8, |child, _| list(child));
    assert_eq!(array_of(&entry(deep, None)).unwrap_err().kind(), ErrorKind::Unsupported);
    // A text that is not ours stays unchanged.
    let mut other = entry(DType::Binary, None);
    other.attributes.push(("_chunkyard_list".into(), AttributeValue::String("list<oak>".into())));
    there_and_back(&other);
    other.meta.dtype = list(DType::Int8);
    assert_eq!(array_of(&other).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn types_that_a_container_lacks_are_refused_with_advice() {
    for (dtype, advice) in
        [("float16", "float32 holds"), ("complex64", "two arrays of floats"), ("r24", "which has")]
    {
        let spec = ArraySpec::builder(&[4], &[2], dtype).build().unwrap();
        let error = entry_of("a", &node(&spec)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(advice) && error.to_string().contains(dtype), "{error}");
    }
    let days =
        json!({"name": "numpy.datetime64", "configuration": {"unit": "D", "scale_factor": 1}});
    let spec = ArraySpec::builder(&[4], &[2], days).build().unwrap();
    assert_eq!(entry_of("a", &node(&spec)).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn fill_values_are_cast_as_by_the_peer() {
    use FillValue::{Bool, Float, Int, TimestampNs, UInt};
    let text = |text: &str| FillValue::String(text.to_owned());
    for (dtype, fill, expected) in [
        (DType::UInt8, Int(-1), json!(255)),
        (DType::UInt8, Float(300.5), json!(255)),
        (DType::UInt16, Bool(true), json!(1)),
        (DType::Int16, UInt(65535), json!(-1)),
        (DType::Int16, Bool(true), json!(0)),
        (DType::Int32, Float(-2.5), json!(-2)),
        (DType::Int32, text("7"), json!(0)),
        (DType::UInt64, UInt(u64::MAX), json!(u64::MAX)),
        (DType::Float32, Int(3), json!(3.0)),
        (DType::Float64, Float(f64::NAN), json!("NaN")),
        (DType::Float64, Float(f64::NEG_INFINITY), json!("-Infinity")),
        (DType::Float64, Float(f64::from_bits(0x7ff8_0000_0000_0001)), json!("0x7ff8000000000001")),
        (DType::Float32, Float(-0.0), json!(-0.0)),
        (DType::Bool, Bool(true), json!(true)),
        (DType::TimestampNs, Int(5), json!(5)),
        (DType::TimestampNs, TimestampNs(i64::MIN), json!("NaT")),
        (DType::TimestampNs, UInt(5), json!(0)),
        (DType::String, text("né"), json!("né")),
        (DType::String, Int(5), json!("")),
    ] {
        let entry = entry(dtype, Some(fill));
        let spec = there_and_back(&entry).spec;
        let document: Value = serde_json::from_slice(&spec.render()).unwrap();
        assert_eq!(document["fill_value"].to_string(), expected.to_string(), "{:?}", entry.meta);
    }
    for fill in [Int(0), UInt(0), Float(0.0), Bool(false)] {
        let spec = there_and_back(&entry(DType::UInt8, Some(fill))).spec;
        assert!(spec.attributes().contains_key("_chunkyard_fill"), "that zeros are null is kept");
    }
    there_and_back(&entry(DType::Binary, Some(text("x"))));
    there_and_back(&entry(DType::String, Some(text("\0"))));
    there_and_back(&entry(list(DType::Int8), Some(Int(3))));
    there_and_back(&entry(fixed(2, DType::Int8), Some(Int(3))));
}

#[test]
fn a_zero_fill_of_zarr_makes_no_element_null() {
    for dtype in ["bool", "uint8", "float32", "string", "bytes"] {
        let spec = ArraySpec::builder(&[4], &[2], dtype).build().unwrap();
        assert_eq!(entry_of("a", &node(&spec)).unwrap().meta.fill_value, None, "{dtype}");
    }
    let spec = ArraySpec::builder(&[4], &[2], "float32").fill_value("0x7f800001").build().unwrap();
    assert_eq!(entry_of("a", &node(&spec)).unwrap_err().kind(), ErrorKind::Invalid, "signalling");
    let spec = ArraySpec::builder(&[4], &[2], "bytes").fill_bytes(b"\xff").build().unwrap();
    assert_eq!(entry_of("a", &node(&spec)).unwrap_err().kind(), ErrorKind::Invalid);
    // The fill value has changed since.
    let spec = array_of(&entry(DType::Int8, Some(FillValue::UInt(0)))).unwrap().spec;
    let spec = spec.with_dtype(json!("int8"), json!(7)).unwrap();
    let changed = entry_of("a", &node(&spec)).unwrap();
    assert_eq!(changed, entry(DType::Int8, Some(FillValue::Int(7))));
}

#[test]
fn extents_that_do_not_fit_are_refused() {
    let limit = u64::from(u32::MAX);
    let spec = ArraySpec::builder(&[limit, 1], &[limit, 1], "uint8").build().unwrap();
    assert_eq!(entry_of("a", &node(&spec)).unwrap().meta.shape, [u32::MAX, 1]);
    let error = entry_of("a", &node(&spec.with_shape(&[1, limit + 1]).unwrap())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let said = error.to_string();
    assert!(said.starts_with("the extent of dimension 1: 4294967296 does not fit"), "{said}");
    let wide = spec.with_chunk_shape(&[limit + 1, 1]).unwrap();
    assert!(entry_of("a", &node(&wide)).unwrap_err().to_string().contains("the chunk extent"));
}

#[test]
fn scalars_and_axes_without_length() {
    let mut scalar = entry(DType::Float64, None);
    (scalar.meta.shape, scalar.meta.chunk_shape) = (vec![], vec![]);
    assert!(there_and_back(&scalar).spec.shape().is_empty());
    let mut empty = entry(DType::Float64, None);
    (empty.meta.shape, empty.meta.chunk_shape) = (vec![0, 7], vec![0, 7]);
    let spec = array_of(&empty).unwrap().spec;
    assert_eq!(spec.chunk_shape().unwrap(), [1, 7]);
    let mut wrong = entry(DType::Int8, None);
    wrong.meta.chunk_shape = vec![4];
    assert_eq!(array_of(&wrong).unwrap_err().kind(), ErrorKind::Corrupt);
    wrong.meta.chunk_shape = vec![4, 4];
    wrong.meta.dimension_names = vec!["x".into()];
    assert_eq!(array_of(&wrong).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn attributes_that_a_container_lacks_are_json() {
    let json = json!({
        "bool": true, "int": -5, "uint": u64::MAX, "float": 1.0, "zero": -0.0, "text": "NaN",
        "null": null, "list": [1, "a", null], "object": {"a": {"b": []}}, "": "",
        "json:": 1, "json:list": [], "json:json:x": "y", "json:text": "[1]",
    });
    let stored = attributes::from_json(&attributes(json.clone()), &[]);
    let find = |key: &str| stored.iter().find(|(found, _)| found == key).map(|(_, value)| value);
    assert_eq!(find("int"), Some(&AttributeValue::Int64(-5)));
    assert_eq!(find("uint"), Some(&AttributeValue::UInt64(u64::MAX)));
    assert_eq!(find("float"), Some(&AttributeValue::Float64(1.0)));
    assert_eq!(find("json:null"), Some(&AttributeValue::String("null".into())));
    assert_eq!(find("json:json:text"), Some(&AttributeValue::String("\"[1]\"".into())));
    let (again, non_finite) = attributes::to_json(&stored);
    assert_eq!(Value::Object(again).to_string(), json.to_string());
    assert!(non_finite.is_empty());
}

#[test]
fn text_that_only_looks_like_json_stays_text() {
    let text = |key: &str, value: &str| (key.to_owned(), AttributeValue::String(value.to_owned()));
    let stored = [
        text("json:a", "{"),
        text("json:b", "5"),
        ("json:c".to_owned(), AttributeValue::Int8(1)),
        text("json:d", "[1]"),
        text("d", "taken"),
    ];
    let (found, _) = attributes::to_json(&stored);
    let expected =
        json!({"json:a": "{", "json:b": "5", "json:c": 1, "json:d": "[1]", "d": "taken"});
    assert_eq!(Value::Object(found.clone()), expected);
    let again = attributes::to_json(&attributes::from_json(&found, &[])).0;
    assert_eq!(again, found);
}

#[test]
fn lists_and_bytes_of_later_versions_are_read() {
    use AttributeValue::{Binary, BinaryList, Float32List, Int8List, StringList, UInt8List};
    let stored = [
        ("a".to_owned(), Binary(vec![1, 2, 3])),
        ("b".to_owned(), Int8List(vec![-1, 2])),
        ("c".to_owned(), UInt8List(vec![1])),
        ("d".to_owned(), Float32List(vec![1.5, f32::NAN])),
        ("e".to_owned(), StringList(vec!["x".into()])),
        ("f".to_owned(), BinaryList(vec![vec![], vec![255]])),
    ];
    let (found, non_finite) = attributes::to_json(&stored);
    let expected = json!({
        "a": "AQID", "b": [-1, 2], "c": [1], "d": [1.5, "NaN"], "e": ["x"], "f": ["", "/w=="],
    });
    assert_eq!(Value::Object(found), expected);
    assert_eq!(non_finite, ["/d/1"]);
}

#[test]
fn numbers_that_json_lacks_come_back_as_numbers() {
    let mut entry = entry(DType::Int8, None);
    entry.attributes = vec![
        ("nan".into(), AttributeValue::Float64(f64::NAN)),
        ("a/b~c".into(), AttributeValue::Float64(f64::NEG_INFINITY)),
        ("text".into(), AttributeValue::String("NaN".into())),
    ];
    let spec = there_and_back(&entry).spec;
    assert_eq!(spec.attributes()["nan"], "NaN");
    let document: Value = serde_json::from_slice(&spec.render()).unwrap();
    let listed = &document["chunkyard_non_finite"]["attributes"];
    assert_eq!(listed, &json!(["/nan", "/a~1b~0c"]));
    // Within a list they are text, and the list of their places is kept.
    entry.attributes = vec![("l".into(), AttributeValue::Float64List(vec![f64::NAN]))];
    let spec = array_of(&entry).unwrap().spec;
    let again = array_of(&entry_of("a", &node(&spec)).unwrap()).unwrap().spec;
    assert_eq!(again.render(), spec.render());
}

#[test]
fn other_members_of_a_document_are_kept() {
    let spec = ArraySpec::builder(&[4, 4], &[2, 2], "uint8").build().unwrap();
    let spec = spec.with_dimension_names(Some(&[None, Some(String::new())])).unwrap();
    let mut document: Value = serde_json::from_slice(&spec.render()).unwrap();
    document["units"] = json!({"must_understand": false, "x": "nm"});
    let spec = ArraySpec::parse(document.to_string().as_bytes()).unwrap();
    let entry = entry_of("a", &node(&spec)).unwrap();
    assert_eq!(entry.meta.dimension_names, ["", ""]);
    let again = array_of(&entry).unwrap().spec;
    let found: Value = serde_json::from_slice(&again.render()).unwrap();
    assert_eq!(found["units"], document["units"]);
    assert_eq!(found["dimension_names"], json!([null, ""]));
    assert_eq!(again.attributes().len(), 0);
    document["units"] = json!({"x": "nm"});
    let spec = ArraySpec::parse(document.to_string().as_bytes()).unwrap();
    assert_eq!(entry_of("a", &node(&spec)).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn kept_members_do_not_replace_the_metadata_of_the_file() {
    let mut entry = entry(DType::Int8, None);
    let lies = r#"{"shape": [1], "codecs": [], "attributes": 5, "dimension_names": [null, "x"]}"#;
    entry.attributes =
        vec![("json:_chunkyard_members".into(), AttributeValue::String(lies.into()))];
    let spec = array_of(&entry).unwrap().spec;
    assert_eq!(spec.shape(), [10, 7]);
    assert_eq!(spec.dimension_names().unwrap()[1].as_deref(), Some("x"));
    let lies = r#"{"dimension_names": [null]}"#.to_owned();
    entry.attributes[0].1 = AttributeValue::String(lies);
    assert!(array_of(&entry).is_err());
}

#[test]
fn an_attribute_that_would_be_taken_for_ours_is_refused() {
    let spec = ArraySpec::builder(&[4], &[2], "uint8");
    let spec = spec.attributes(attributes(json!({"_chunkyard_members": {}}))).build().unwrap();
    assert_eq!(entry_of("a", &node(&spec)).unwrap_err().kind(), ErrorKind::Unsupported);
    let spec = spec.with_attributes(attributes(json!({"_chunkyard_members": "x"}))).unwrap();
    assert!(entry_of("a", &node(&spec)).is_ok());
}

fn dataset(nodes: &[(&str, Option<Value>)]) -> Dataset {
    let mut dataset = Dataset::default();
    for (path, group) in nodes {
        let node = match group {
            Some(json) => Node::Group(GroupSpec::new(attributes(json.clone()))),
            None => Node::Array(Arc::new(array_of(&entry(DType::Int8, None)).unwrap())),
        };
        dataset.nodes.insert((*path).to_owned(), node);
    }
    dataset
}

fn names(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.meta.name.as_str()).collect()
}

#[test]
fn groups_are_kept_where_no_array_implies_them() {
    let none = || Some(json!({}));
    let nodes = [
        ("/", none()),
        ("/a", none()),
        ("/a/b", None),
        ("/empty", none()),
        ("/with", Some(json!({"x": 1}))),
        ("/with/x.y z", None),
    ];
    let before = dataset(&nodes);
    let entries = entries_of(&before).unwrap();
    assert_eq!(names(&entries), ["a/b", "empty/", "with/", "with/x.y z"]);
    let after = dataset_of(&entries).unwrap();
    assert!(after.losses.is_empty());
    let render = |dataset: &Dataset| -> Vec<(String, Vec<u8>)> {
        let nodes = dataset.nodes.iter();
        nodes.map(|(path, node)| (path.clone(), node.render().unwrap())).collect()
    };
    assert_eq!(render(&after), render(&before));
    for nodes in [&[("/", Some(json!({"x": 1})))][..], &[("/", none())], &[("/", None)]] {
        let before = dataset(nodes);
        let entries = entries_of(&before).unwrap();
        assert_eq!(names(&entries), [if nodes[0].1.is_some() { "/" } else { "" }]);
        assert_eq!(render(&dataset_of(&entries).unwrap()), render(&before));
    }
    assert_eq!(render(&dataset_of(&[]).unwrap()), render(&dataset(&[("/", none())])));
}

#[test]
fn datasets_whose_paths_clash_are_not_written() {
    for nodes in [
        &[("/a", None), ("/a/b", None)][..],
        &[("/a", None), ("/a/b/c", Some(json!({})))],
        &[("/", None), ("/a", None)],
        &[("/a//b", None)],
        &[("a", None)],
        &[("", None)],
        &[("/a/", None)],
        &[("/..", None)],
    ] {
        let error = entries_of(&dataset(nodes)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{nodes:?}");
    }
}

#[test]
fn names_that_are_not_paths_are_losses_and_the_rest_is_read() {
    let of = |names: &[&str]| {
        let arrays = names
            .iter()
            .map(|name| Entry { meta: meta(name, DType::Int8), attributes: Vec::new() });
        dataset_of(&arrays.collect::<Vec<_>>()).unwrap()
    };
    let found = of(&["a", "a/b", "a/b/c", "a//c", "../x", "", "/y", "z/", "x.y", "ü ~"]);
    let arrays: Vec<&str> = found.arrays().map(|(path, _)| path).collect();
    assert_eq!(arrays, ["/a", "/x.y", "/ü ~"]);
    let mut losses: Vec<&str> = found.losses.iter().map(|loss| loss.name.as_str()).collect();
    losses.sort_unstable();
    assert_eq!(losses, ["/", "/../x", "//y", "/a//c", "/a/b", "/a/b/c", "/z/"]);
    let mut marker = Entry { meta: meta("a/", DType::UInt8), attributes: Vec::new() };
    (marker.meta.shape, marker.meta.chunk_shape) = (vec![], vec![]);
    let array = Entry { meta: meta("a", DType::Int8), attributes: Vec::new() };
    let clash = dataset_of(&[array, marker]).unwrap();
    assert_eq!((clash.arrays().count(), clash.losses.len()), (0, 1));
}

#[test]
fn a_name_that_is_too_deep_is_a_loss_and_makes_no_groups() {
    let of = |name: &str| {
        let mut meta = meta(name, DType::UInt8);
        if name.ends_with('/') {
            (meta.shape, meta.chunk_shape) = (vec![], vec![]);
        }
        dataset_of(&[Entry { meta, attributes: Vec::new() }]).unwrap()
    };
    let deep = vec!["a"; 64].join("/");
    assert_eq!((of(&deep).nodes.len(), of(&deep).losses.len()), (65, 0));
    for name in [format!("a/{deep}"), format!("a/{deep}/"), "a/".repeat(1 << 19), "a".repeat(4097)]
    {
        let found = of(&name);
        assert_eq!((found.nodes.len(), found.losses.len()), (1, 1), "{} bytes", name.len());
    }
    let error = entries_of(&dataset(&[(&format!("/a/{deep}"), None)])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

fn dtypes() -> impl Strategy<Value = DType> {
    use DType::*;
    let leaves = vec![Bool, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64];
    let leaves = [leaves, vec![Float32, Float64, String, Binary, TimestampNs]].concat();
    prop::sample::select(leaves).prop_recursive(3, 6, 1, |inner| {
        prop_oneof![inner.clone().prop_map(list), (0..5u32, inner).prop_map(|(n, c)| fixed(n, c))]
    })
}

fn fills() -> impl Strategy<Value = FillValue> {
    prop_oneof![
        any::<bool>().prop_map(FillValue::Bool),
        prop_oneof![-2..2i64, any::<i64>()].prop_map(FillValue::Int),
        prop_oneof![0..2u64, any::<u64>()].prop_map(FillValue::UInt),
        // Numbers that are exact in 32 bits; others come back rounded.
        any::<f32>().prop_map(|value| FillValue::Float(value.into())),
        ".{0,3}".prop_map(FillValue::String),
        any::<i64>().prop_map(FillValue::TimestampNs),
    ]
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "(json:)?(NaN|[a-z\"/~]{0,4})".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("(json:)?[a-b]", inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn an_entry_comes_back_as_it_was(
        dtype in dtypes(),
        extents in prop::collection::vec((0..100u32, 1..100u32), 0..4),
        fill_value in prop::option::of(fills()),
        named in any::<bool>(),
    ) {
        let (shape, chunk_shape): (Vec<u32>, Vec<u32>) = extents.into_iter().unzip();
        let dimension_names = match named {
            true => (0..shape.len()).map(|axis| format!("d{axis}")).collect(),
            false => Vec::new(),
        };
        let meta = ArrayMeta { dimension_names, shape, chunk_shape, fill_value, ..meta("a", dtype) };
        let entry = Entry { meta, attributes: Vec::new() };
        let array = array_of(&entry).unwrap();
        prop_assert_eq!(entry_of("a", &array).unwrap(), entry);
    }

    #[test]
    fn an_array_comes_back_as_it_was(
        json in prop::collection::vec(("(json:){0,3}[a-c/~]{0,2}", json_values()), 0..6),
        fill in any::<f64>(),
        names in prop::option::of([prop::option::of("[a-b]{0,1}"), prop::option::of("[a-b]")]),
    ) {
        let spec = ArraySpec::builder(&[5, 6], &[2, 2], "float64")
            .fill_bytes(&fill.to_le_bytes())
            .codecs(vec![json!({"name": "bytes", "configuration": {"endian": "little"}})])
            .attributes(json.into_iter().collect())
            .build()
            .unwrap();
        let spec = spec.with_dimension_names(names.as_ref().map(|names| &names[..])).unwrap();
        let again = array_of(&entry_of("a", &node(&spec)).unwrap()).unwrap();
        let text = |spec: &ArraySpec| String::from_utf8(spec.render()).unwrap();
        prop_assert_eq!(text(&again.spec), text(&spec));
    }
}
