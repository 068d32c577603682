//! Which datasets become an array, a table, or a tree.

use std::sync::Arc;

use chunkyard_array::{ArraySpec, Attributes, GroupSpec};
use chunkyard_engine::format::superchunk::{Blz, BlzOptions};
use chunkyard_engine::format::{Place, Source};
use chunkyard_engine::pipeline::Wishes;
use chunkyard_engine::store::Store;
use serde_json::{Value, json};

use crate::convert::naive;
use crate::convert::sample::Sample;
use crate::convert::support::{Yard, convert, opened, options, read};

fn attributes(value: Value) -> Attributes {
    value.as_object().unwrap().clone()
}

/// Writes a hierarchy of plain Zarr.
async fn write(store: &Store, groups: &[(&str, Value)], arrays: &[(&str, ArraySpec)]) {
    for (path, said) in groups {
        let group = GroupSpec::new(attributes(said.clone())).render();
        store.put(&format!("{path}zarr.json"), vec![group.into()]).await.unwrap();
    }
    for (path, spec) in arrays {
        let sample = Sample::of(spec.clone());
        store.put(&format!("{path}zarr.json"), vec![spec.render().into()]).await.unwrap();
        naive::write_chunks(store, path, spec, &sample.array).await;
    }
}

fn spec(shape: &[u64], dtype: &str, name: &str) -> ArraySpec {
    let chunks: Vec<u64> = shape.iter().map(|extent| (*extent).clamp(1, 4)).collect();
    let names: Vec<String> = (0..shape.len()).map(|axis| format!("{name}{axis}")).collect();
    let mut builder = ArraySpec::builder(shape, &chunks, dtype).fill_value(7);
    if !names.is_empty() {
        builder = builder.dimension_names(names);
    }
    builder.attributes(attributes(json!({"unit": name}))).build().unwrap()
}

async fn assert_same(found: &Arc<dyn Source>, expected: &Arc<dyn Source>) {
    let paths = |source: &Arc<dyn Source>| -> Vec<String> {
        source.dataset().nodes.keys().cloned().collect()
    };
    assert_eq!(paths(found), paths(expected));
    for (path, group) in expected.dataset().groups() {
        let other = found.dataset().groups().find(|(at, _)| *at == path).unwrap().1;
        assert_eq!(other.attributes(), group.attributes(), "{path}");
    }
    for (path, array) in expected.dataset().arrays() {
        let other = &found.dataset().array(path).unwrap().spec;
        assert_eq!(other.shape(), array.spec.shape(), "{path}");
        assert_eq!(other.attributes(), array.spec.attributes(), "{path}");
        assert_eq!(other.dimension_names(), array.spec.dimension_names(), "{path}");
        assert_eq!(naive::fill_of(other), naive::fill_of(&array.spec), "{path}");
        assert!(read(found, path).await == read(expected, path).await, "{path}");
    }
}

/// Converts to BLZ and compares the result. Gives the place.
async fn there_and_back(
    yard: &Yard,
    name: &str,
    groups: &[(&str, Value)],
    arrays: &[(&str, ArraySpec)],
) -> Place {
    write(&yard.store(&format!("{name}.zarr")), groups, arrays).await;
    let source = opened(&yard.at(&format!("{name}.zarr"))).await;
    for ending in ["bcolz", "blz"] {
        let target = format!("{name}.{ending}");
        convert(&source, &yard.at(&target), "blz", &Wishes::default()).await;
        assert_same(&opened(&yard.at(&target)).await, &source).await;
    }
    Place::new(&yard.at(&format!("{name}.blz")), &options()).unwrap()
}

#[tokio::test]
async fn an_array_at_the_root_is_an_array() {
    for yard in Yard::both() {
        let place = there_and_back(&yard, "a", &[], &[("", spec(&[9, 3], "int16", "m"))]).await;
        let blz = Blz::open(&place, BlzOptions::default()).await.unwrap();
        assert!(!blz.is_table());
        assert_eq!(blz.len(), 9);
    }
}

#[tokio::test]
async fn arrays_of_one_length_are_a_table_that_grows() {
    for yard in Yard::both() {
        let groups = [("", json!({"title": "t"})), ("p/", json!({}))];
        let arrays = [
            ("p/x/", spec(&[9], "float64", "m")),
            ("p/y/", spec(&[9, 2], "float32", "s")),
            ("n/", spec(&[9], "int32", "k")),
        ];
        let place = there_and_back(&yard, "t", &groups, &arrays).await;
        let blz = Blz::open(&place, BlzOptions::default()).await.unwrap();
        assert!(blz.is_table());
        let names: Vec<_> = blz.columns().iter().map(|column| column.path.to_string()).collect();
        assert_eq!(names, ["/n", "/p/x", "/p/y"]);
        let row = |bytes: usize| vec![1u8; bytes].into();
        blz.append(vec![row(4), row(8), row(8)]).await.unwrap();
        blz.flush().await.unwrap();
        let source = opened(place.url()).await;
        assert_eq!(source.dataset().array("/p/y").unwrap().spec.shape(), [10, 2]);
    }
}

#[tokio::test]
async fn anything_else_is_a_tree_of_arrays() {
    for yard in Yard::both() {
        let groups = [
            ("", json!({"title": "t"})),
            ("meta/", json!({"kept": [1, null]})),
            ("empty/", json!({})),
        ];
        let arrays = [
            ("meta/long name/", spec(&[9], "float64", "m")),
            ("meta/one/", spec(&[], "int64", "s")),
            ("data/", spec(&[5, 2], "int32", "k")),
        ];
        let place = there_and_back(&yard, "h", &groups, &arrays).await;
        let member = Place::within(place.directory().clone(), "data").unwrap();
        let blz = Blz::open(&member, BlzOptions::default()).await.unwrap();
        assert_eq!(blz.len(), 5);
    }
}
