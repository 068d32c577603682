//! Groups, arrays and attributes of a hierarchy that is changed.

use chunkyard_array::{ArraySpec, Attributes, GroupSpec, Region, Sharding};
use chunkyard_engine::ErrorKind;
use chunkyard_engine::format::zarr3::Zarr3Editor;
use chunkyard_engine::format::{ArrayNode, Dataset, Node};
use chunkyard_engine::pipeline::Wishes;
use futures::TryStreamExt;
use serde_json::{Value, json};

use crate::convert::formats::named;
use crate::convert::sample::Sample;
use crate::convert::support::{Yard, convert, opened};

/// A hierarchy with nothing but a root, named `a`.
pub(super) async fn empty(yard: &Yard) -> Zarr3Editor {
    let root = Node::Group(GroupSpec::new(Attributes::new()));
    Zarr3Editor::create(yard.store("a"), root).await.unwrap()
}

/// An array of bytes.
pub(super) fn spec(shape: &[u64], chunks: &[u64]) -> ArraySpec {
    ArraySpec::builder(shape, chunks, "uint8").build().unwrap()
}

fn attributes(value: Value) -> Attributes {
    value.as_object().unwrap().clone()
}

/// The documents of all nodes.
fn documents(dataset: &Dataset) -> Vec<(String, Vec<u8>)> {
    dataset.nodes.iter().map(|(path, node)| (path.clone(), node.render().unwrap())).collect()
}

/// The editor knows the true state of the store.
async fn is_true(editor: &Zarr3Editor, yard: &Yard) {
    let source = opened(&yard.at("a")).await;
    assert_eq!(documents(&editor.dataset()), documents(source.dataset()));
    let strays: Vec<_> = source.strays().try_collect().await.unwrap();
    assert!(strays.is_empty(), "{strays:?}");
}

#[tokio::test]
async fn nodes_are_created_changed_and_deleted() {
    for yard in Yard::both() {
        let editor = empty(&yard).await;
        let array = editor.create_array("/x/y/a", &spec(&[4], &[2])).await.unwrap();
        array.writer().write_region(&Region::whole(&[4]), vec![1; 4].into()).await.unwrap();
        editor.create_group("/x/g", attributes(json!({"n": 1}))).await.unwrap();
        is_true(&editor, &yard).await;
        let paths: Vec<String> = editor.dataset().nodes.keys().cloned().collect();
        assert_eq!(paths, ["/", "/x", "/x/g", "/x/y", "/x/y/a"]);

        editor.set_attributes("/", attributes(json!({"title": "t"}))).await.unwrap();
        editor.set_attributes("/x/y/a", attributes(json!({"unit": "m"}))).await.unwrap();
        is_true(&editor, &yard).await;
        let array = editor.array("/x/y/a").await.unwrap();
        assert_eq!(array.spec().attributes()["unit"], "m");

        editor.delete("/x/y").await.unwrap();
        is_true(&editor, &yard).await;
        assert!(!editor.dataset().nodes.contains_key("/x/y/a"));
        let left: Vec<_> = yard.store("a").list("x/y").await.unwrap().try_collect().await.unwrap();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[tokio::test]
async fn impossible_changes_are_refused() {
    let yard = Yard::memory();
    let editor = empty(&yard).await;
    editor.create_array("/a", &spec(&[4], &[2])).await.unwrap();
    let kind = |result: chunkyard_engine::Result<()>| result.unwrap_err().kind();
    let none = Attributes::new;
    let again = editor.create_array("/a", &spec(&[4], &[2])).await.map(drop);
    assert_eq!(kind(again), ErrorKind::Conflict);
    assert_eq!(kind(editor.create_group("/a", none()).await), ErrorKind::Conflict);
    assert_eq!(kind(editor.create_group("/a/b", none()).await), ErrorKind::Invalid);
    assert_eq!(kind(editor.create_group("/zarr.json", none()).await), ErrorKind::Invalid);
    assert_eq!(kind(editor.delete("/").await), ErrorKind::Invalid);
    assert_eq!(kind(editor.delete("/b").await), ErrorKind::NotFound);
    assert_eq!(kind(editor.resize("/", &[3]).await), ErrorKind::NotFound);
    assert_eq!(kind(editor.resize("/a", &[3, 3]).await), ErrorKind::Invalid);
    let root = Node::Group(GroupSpec::new(none()));
    let there = Zarr3Editor::create(yard.store("a"), root).await.map(drop);
    assert_eq!(kind(there), ErrorKind::Conflict);
    let nothing = Zarr3Editor::open(yard.store("b")).await.map(drop);
    assert_eq!(kind(nothing), ErrorKind::NotFound);
}

#[tokio::test]
async fn version_2_is_read_and_not_changed() {
    let yard = Yard::memory();
    named("zarr2").write(&yard, "a", &Sample::new(&[4], &[2], "uint8")).await;
    let error = Zarr3Editor::open(yard.store("a")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn an_array_can_be_the_root() {
    let yard = Yard::directory();
    let root = Sample::new(&[5], &[2], "int16");
    let node = ArrayNode::new(&root.spec).unwrap();
    let editor = Zarr3Editor::create(yard.store("a"), Node::Array(node.into())).await.unwrap();
    let array = editor.array("/").await.unwrap();
    array.writer().write_region(&Region::whole(&[5]), vec![7; 10].into()).await.unwrap();
    editor.resize("/", &[3]).await.unwrap();
    is_true(&editor, &yard).await;
    let array = editor.array("/").await.unwrap();
    assert_eq!(&array.reader().read_region(&Region::whole(&[3])).await.unwrap()[..], [7; 6]);
}

#[tokio::test]
async fn elements_cut_off_are_gone_when_the_array_grows_again() {
    for sharded in [false, true] {
        for yard in Yard::both() {
            let editor = empty(&yard).await;
            let mut spec = spec(&[6, 6], &[1, 2]);
            if sharded {
                spec = spec.sharded(&Sharding::new(&[2, 2])).unwrap();
            }
            let array = editor.create_array("/a", &spec).await.unwrap();
            let all = Region::whole(&[6, 6]);
            array.writer().write_region(&all, vec![9; 36].into()).await.unwrap();
            editor.resize("/a", &[4, 6]).await.unwrap();
            is_true(&editor, &yard).await;
            editor.resize("/a", &[6, 6]).await.unwrap();
            let array = editor.array("/a").await.unwrap();
            let read = array.reader().read_region(&all).await.unwrap();
            assert_eq!(&read[..24], [9; 24]);
            assert_eq!(&read[24..], [0; 12]);
        }
    }
}

#[tokio::test]
async fn chunks_of_a_half_deleted_array_do_not_come_back() {
    let yard = Yard::directory();
    let editor = empty(&yard).await;
    let array = editor.create_array("/a", &spec(&[4], &[2])).await.unwrap();
    array.writer().write_region(&Region::whole(&[4]), vec![1; 4].into()).await.unwrap();
    // A deletion that is cut short gets this far.
    yard.store("a").delete(&["a/zarr.json".to_owned()]).await.unwrap();
    let editor = Zarr3Editor::open(yard.store("a")).await.unwrap();
    let array = editor.create_array("/a", &spec(&[4], &[2])).await.unwrap();
    let read = array.reader().read_region(&Region::whole(&[4])).await.unwrap();
    assert_eq!(&read[..], [0; 4]);
}

#[tokio::test]
async fn consolidated_metadata_stays_true() {
    let yard = Yard::directory();
    let source = named("repo").write(&yard, "source", &Sample::new(&[4], &[2], "uint8")).await;
    convert(&source, &yard.at("a"), "zarr3", &Wishes::default()).await;
    let root = || async {
        let bytes = yard.store("a").get("zarr.json").await.unwrap().bytes;
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        document["consolidated_metadata"]["metadata"].as_object().unwrap().clone()
    };
    assert!(root().await.contains_key("group/t"));
    let editor = Zarr3Editor::open(yard.store("a")).await.unwrap();
    editor.create_array("/new/deep/b", &spec(&[4], &[2])).await.unwrap();
    editor.set_attributes("/group", attributes(json!({"n": 1}))).await.unwrap();
    editor.resize("/new/deep/b", &[9]).await.unwrap();
    editor.set_attributes("/", attributes(json!({"m": 2}))).await.unwrap();
    is_true(&editor, &yard).await;
    let found = root().await;
    assert_eq!(found["new/deep/b"]["shape"], json!([9]));
    assert_eq!(found["new/deep"]["node_type"], "group");
    assert_eq!(found["group"]["attributes"]["n"], 1);
    editor.delete("/new").await.unwrap();
    is_true(&editor, &yard).await;
    assert!(root().await.keys().all(|key| !key.starts_with("new")));
}
