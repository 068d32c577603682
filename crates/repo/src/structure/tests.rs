//! No document loses anything on its way through the columns.

use std::sync::Arc;

use chunkyard_array::ArraySpec;
use chunkyard_store::{Error, Result};
use serde_json::{Map, Value, json};

use super::{SnapshotLabel, parse, render};
use crate::config::Compat;
use crate::node::{Node, NodeKind};
use crate::tree::Tree;

const LABEL: SnapshotLabel<'static> = SnapshotLabel {
    snapshot_id: "s",
    parent_snapshot_id: Some("p"),
    timestamp_ms: 7,
    message: "a message",
    change_file: None,
    branch: Some("main"),
};

fn usual() -> Value {
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": [10, 0],
        "data_type": "float64",
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [4, 1] } },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "fill_value": 0.0,
        "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
    })
}

fn with(key: &str, value: Value) -> Value {
    let mut document = usual();
    document[key] = value;
    document
}

fn tree_of(document: &Value) -> Result<Tree> {
    let spec = ArraySpec::parse(document.to_string().as_bytes())?;
    let mut tree = Tree::with_root()?;
    let kind = NodeKind::Array(spec.into());
    let node = Node::new(tree.take_id()?, "/a", kind, Map::new())?;
    tree.put(Arc::new(node));
    Ok(tree)
}

fn round_trip(document: &Value) -> Value {
    let tree = tree_of(document).unwrap();
    let sealed = render(&tree, "d", &LABEL, Compat::Wide).unwrap();
    let (parsed, footer) = parse("s/x", "d", &sealed.bytes).unwrap();
    assert_eq!(footer.key_value("message"), Some("a message"));
    assert_eq!(parsed.next_id(), tree.next_id());
    let node = parsed.get("/a").unwrap();
    assert_eq!(**node, **tree.get("/a").unwrap());
    serde_json::from_slice(&node.array().unwrap().render()).unwrap()
}

#[test]
fn odd_documents_come_back_as_they_were() {
    let documents = [
        usual(),
        with("fill_value", json!("NaN")),
        with("fill_value", json!("0x7ff8000000000001")),
        with("fill_value", json!("-Infinity")),
        with("fill_value", json!(-0.0)),
        with("dimension_names", json!(["x", null])),
        with("dimension_names", json!([null, null])),
        with("storage_transformers", json!([])),
        with("extension", json!({ "must_understand": false, "anything": [1, { "a": null }] })),
        with("chunk_key_encoding", json!({ "name": "v2", "configuration": { "separator": "." } })),
        with(
            "codecs",
            json!([
                { "name": "transpose", "configuration": { "order": [1, 0] } },
                { "name": "bytes", "configuration": { "endian": "big" } },
                { "name": "crc32c" },
            ]),
        ),
    ];
    for document in documents {
        let spec = ArraySpec::parse(document.to_string().as_bytes()).unwrap();
        let expected: Value = serde_json::from_slice(&spec.render()).unwrap();
        assert_eq!(round_trip(&document), expected, "{document}");
    }
}

#[test]
fn a_data_type_that_is_an_object_comes_back() {
    let data_type = json!({
        "name": "numpy.datetime64",
        "configuration": { "unit": "s", "scale_factor": 10 },
    });
    let mut document = with("data_type", data_type.clone());
    document["fill_value"] = json!("NaT");
    assert_eq!(round_trip(&document)["data_type"], data_type);
}

#[test]
fn strict_mode_refuses_what_the_columns_cannot_hold() {
    let odd = with("extension", json!({ "must_understand": false }));
    assert!(render(&tree_of(&odd).unwrap(), "d", &LABEL, Compat::Draft).is_err());
    let long = with("shape", json!([70_000, 1]));
    let error = render(&tree_of(&long).unwrap(), "d", &LABEL, Compat::Draft).unwrap_err();
    assert!(matches!(error, Error::ValueDoesNotFit { value: 70_000, .. }), "{error}");
}

#[test]
fn a_file_of_another_dataset_or_without_a_root_is_refused() {
    let tree = tree_of(&usual()).unwrap();
    let sealed = render(&tree, "d", &LABEL, Compat::Wide).unwrap();
    let error = parse("s/x", "other", &sealed.bytes).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    let mut rootless = tree.clone();
    rootless.remove("/");
    let sealed = render(&rootless, "d", &LABEL, Compat::Wide).unwrap();
    assert!(matches!(parse("s/x", "d", &sealed.bytes).unwrap_err(), Error::Corrupt { .. }));
}

#[test]
fn two_nodes_with_one_handle_are_refused() {
    let mut tree = tree_of(&usual()).unwrap();
    let twin = Node::group(tree.get("/a").unwrap().id, "/b").unwrap();
    tree.put(Arc::new(twin));
    let sealed = render(&tree, "d", &LABEL, Compat::Wide).unwrap();
    let error = parse("s/x", "d", &sealed.bytes).unwrap_err();
    assert!(error.to_string().contains("unique ids"), "{error}");
}

/// Anything but a whole file is an error, and no length in it makes the parser panic.
#[test]
fn cut_and_damaged_files_never_panic() {
    let sealed = render(&tree_of(&usual()).unwrap(), "d", &LABEL, Compat::Wide).unwrap();
    for length in 0..sealed.bytes.len() {
        assert!(parse("s/x", "d", &sealed.bytes.slice(..length)).is_err(), "{length} bytes");
    }
    for at in 0..sealed.bytes.len() {
        let mut bytes = sealed.bytes.to_vec();
        bytes[at] ^= 0x55;
        // The checksum of the whole file is compared by the caller; here only panics matter.
        let _parsed = parse("s/x", "d", &bytes.into());
    }
}
