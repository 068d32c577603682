//! Containers as sources and as targets of conversions.

mod replace;
// Helpers of the tests of the format itself.
#[expect(dead_code, reason = "conversions need a part of it")]
#[path = "../../../../format/tests/container/support.rs"]
mod support;

use chunkyard_array::{ArraySpec, Attributes, GroupSpec};
use chunkyard_engine::ErrorKind;
use chunkyard_engine::format::container::model::AttributeValue;
use chunkyard_engine::format::container::{CompactOptions, Container, ContainerOptions};
use chunkyard_engine::format::{Dataset, Node, Place};
use chunkyard_engine::pipeline::Wishes;
use chunkyard_engine::store::Store;
use serde_json::{Value, json};

use self::support::{directory, furnished};
use crate::convert::sample::{Sample, dtypes};
use crate::convert::support::{From, To, Yard, convert, opened, read_back, try_convert, zarray};

/// Wishes for chunks of a shape and a codec.
fn wishes(chunks: &[u64], codec: &str) -> Wishes {
    Wishes {
        chunks: Some(chunks.to_vec()),
        codec: Some(codec.to_owned()),
        shards: Some(None),
        ..Wishes::default()
    }
}

/// A chunk shape other than this.
fn others(chunks: &[u64]) -> Vec<u64> {
    chunks.iter().map(|extent| extent * 2 / 3 + 1).collect()
}

/// From every format into a container, and from there into every format.
async fn there_and_on(yard: &Yard, sample: &Sample, label: &str) {
    let chunks = sample.spec.chunk_shape().unwrap().to_vec();
    for from in From::ALL {
        if from == From::Zarr2 && zarray(sample).is_none() {
            continue;
        }
        let name = format!("{label}-{from:?}");
        let source = from.write(yard, &name, sample).await;
        for (number, (shape, codec)) in
            [(chunks.clone(), "zstd:1"), (others(&chunks), "blosc:lz4:5")].into_iter().enumerate()
        {
            let target = format!("{name}-{number}.af");
            convert(&source, &yard.at(&target), "container", &wishes(&shape, codec)).await;
            assert!(read_back(yard, &target).await == sample.array, "{target} differs");
            if from != From::Zarr3 {
                continue;
            }
            let container = opened(&yard.at(&target)).await;
            for to in To::ALL {
                for (number, shape) in [chunks.clone(), others(&chunks)].into_iter().enumerate() {
                    let on = format!("{target}-{to:?}-{number}");
                    convert(&container, &yard.at(&on), to.format(), &to.wishes(&shape)).await;
                    assert!(read_back(yard, &on).await == sample.array, "{on} differs");
                }
            }
            let again = format!("{name}-{number}-again.af");
            convert(&container, &yard.at(&again), "container", &Wishes::default()).await;
            assert!(read_back(yard, &again).await == sample.array, "{again} differs");
        }
    }
}

#[tokio::test]
async fn everything_goes_into_a_container_and_on() {
    for yard in Yard::both() {
        there_and_on(&yard, &Sample::new(&[13, 11, 7], &[4, 4, 3], "int32"), "t").await;
    }
}

#[tokio::test]
async fn odd_shapes_go_into_a_container_and_on() {
    for (label, shape, chunks) in [
        ("0d", &[][..], &[][..]),
        ("prime", &[101], &[7]),
        ("four", &[5, 3, 7, 2], &[2, 3, 4, 1]),
        ("empty", &[0, 5], &[2, 3]),
        ("nothing", &[0], &[1]),
        ("larger", &[3, 5], &[16, 16]),
        ("single", &[3, 4], &[1, 1]),
    ] {
        there_and_on(&Yard::memory(), &Sample::new(shape, chunks, "uint16"), label).await;
    }
}

#[tokio::test]
async fn every_data_type_goes_into_a_container_and_on_or_is_refused() {
    let mut refused = Vec::new();
    for dtype in dtypes() {
        let label = dtype.get("name").unwrap_or(&dtype).as_str().unwrap().to_owned();
        let yard = Yard::memory();
        let sample = Sample::new(&[7, 11], &[3, 4], dtype).sparse(|index| index != [1, 1]);
        let source = From::Zarr3.write(&yard, "source", &sample).await;
        match try_convert(&source, &yard.at("x.af"), "container", &Wishes::default()).await {
            Ok(_) => there_and_on(&yard, &sample, &label).await,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{label}: {error:?}");
                assert!(yard.store("").list_dir("").await.unwrap().objects.is_empty(), "{label}");
                refused.push(label);
            }
        }
    }
    // Types of numbers, strings and bytes that a container has.
    for kept in ["bool", "int8", "int64", "uint64", "float32", "float64", "string", "bytes"] {
        assert!(!refused.iter().any(|label| label == kept), "{refused:?}");
    }
}

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
