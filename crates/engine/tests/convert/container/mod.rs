//! Containers as sources and as targets of conversions.

mod replace;
// Helpers of the tests of the format itself.
#[expect(dead_code, reason = "conversions need a part of it")]
#[path = "../../../../format/tests/container/support.rs"]
mod support;

use chunkyard_array::{ArraySpec, Attributes, GroupSpec};
use chunkyard_engine::format::container::model::AttributeValue;
use chunkyard_engine::format::container::{CompactOptions, Container, ContainerOptions};
use chunkyard_engine::format::{Dataset, Node, Place};
use chunkyard_engine::pipeline::Wishes;
use chunkyard_engine::store::Store;
use serde_json::{Value, json};

use self::support::{directory, furnished};
use crate::convert::support::{Yard, convert, opened};

/// A hierarchy with groups with and without attributes, and arrays at several depths.
async fn hierarchy(store: &Store) {
    let document = |value: Value| -> Attributes { value.as_object().unwrap().clone() };
    let group = |value: Value| GroupSpec::new(document(value)).render();
    let array = |value: Value| {
        let names = [Some("y".to_owned()), None];
        let spec = ArraySpec::builder(&[3, 5], &[2, 2], "float32").attributes(document(value));
        spec.build().unwrap().with_dimension_names(Some(&names)).unwrap().render()
    };
    for (path, document) in [
        ("zarr.json", group(json!({"title": "ä", "list": [1, 2.5, null], "nested": {"a": []}}))),
        ("g/zarr.json", group(json!({}))),
        ("g/empty/zarr.json", group(json!({}))),
        ("g/said/zarr.json", group(json!({"n": -3, "big": 18446744073709551615_u64}))),
        ("g/a/zarr.json", array(json!({"units": "K", "scale": 0.1, "flag": true}))),
        ("g/h/i/zarr.json", array(json!({}))),
        ("g/h/zarr.json", group(json!({}))),
    ] {
        store.put(path, vec![document.into()]).await.unwrap();
    }
}

fn said(node: &Node) -> &Attributes {
    match node {
        Node::Group(group) => group.attributes(),
        Node::Array(array) => array.spec.attributes(),
    }
}

#[tokio::test]
async fn a_hierarchy_comes_back_as_it_was() {
    for yard in Yard::both() {
        hierarchy(&yard.store("source")).await;
        let source = opened(&yard.at("source")).await;
        convert(&source, &yard.at("x.af"), "container", &Wishes::default()).await;
        let container = opened(&yard.at("x.af")).await;
        convert(&container, &yard.at("back"), "zarr3", &Wishes::default()).await;
        let back = opened(&yard.at("back")).await;
        for found in [&container, &back] {
            let (expected, found) = (source.dataset(), found.dataset());
            let paths =
                |dataset: &Dataset| -> Vec<String> { dataset.nodes.keys().cloned().collect() };
            assert_eq!(paths(found), paths(expected));
            for (path, node) in &expected.nodes {
                assert_eq!(said(&found.nodes[path]), said(node), "{path}");
            }
            for (path, array) in expected.arrays() {
                let spec = &found.array(path).unwrap().spec;
                assert_eq!(spec.shape(), array.spec.shape());
                assert_eq!(spec.dimension_names(), array.spec.dimension_names(), "{path}");
            }
        }
    }
}

const TARGET: &str = "x.af";

/// A container with layers, deleted arrays and strings is converted as it is read.
#[tokio::test]
async fn a_container_with_layers_is_a_source() {
    let (temp, store) = directory();
    let container = furnished(&store).await;
    container.delete("c").await.unwrap();
    container.flush().await.unwrap();
    let url = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let source = opened(&url(TARGET)).await;
    convert(&source, &url("y.zarr"), "zarr3", &Wishes::default()).await;
    convert(&opened(&url("y.zarr")).await, &url("z.af"), "container", &Wishes::default()).await;
    let back = Place::within(store.clone(), "z.af").unwrap();
    let back = Container::open(&back, ContainerOptions::default()).await.unwrap();
    let expected = support::contents(&container).await.unwrap();
    assert_eq!(support::contents(&back).await.unwrap(), expected);
    for name in ["a/b", "text"] {
        let stats = back.statistics(name).await.unwrap().unwrap();
        let expected = container.statistics(name).await.unwrap().unwrap();
        assert_eq!((&stats.min, &stats.max), (&expected.min, &expected.max), "{name}");
    }
    // A converted container is a container like any other.
    back.set_attribute("text", "k", AttributeValue::String("v".into())).await.unwrap();
    back.flush().await.unwrap();
    back.compact(&CompactOptions::default()).await.unwrap();
}
