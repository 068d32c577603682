//! Any source as Zarr v3.

use std::sync::Arc;

use chunkyard_engine::format::{Source, fetch_chunks};
use chunkyard_engine::labels::Ids;
use chunkyard_engine::view::{ArrayView, Hierarchy, Value, ViewOptions};
use chunkyard_engine::{ErrorKind, Result};
use serde_json::json;

use super::{Copy, plain};
use crate::convert::formats::{golden, sources_by_hand, sources_by_sink};
use crate::convert::naive::{Naive, indices};
use crate::convert::rewrite::{body, labelmap};
use crate::convert::sample::{Sample, dtypes};
use crate::convert::support::{Yard, opened, read};

/// All of a view, in a store.
async fn stored(name: &str, view: &Hierarchy) -> Result<Copy> {
    let copy = Copy::new(name);
    let root = view.value("zarr.json")?.unwrap();
    let Value::Document(root) = root else { panic!("{name}: the root is a chunk") };
    let document: serde_json::Value = serde_json::from_slice(&root).unwrap();
    let members = document["consolidated_metadata"]["metadata"].as_object();
    for path in members.into_iter().flatten().map(|(path, _)| path) {
        let Some(Value::Document(document)) = view.value(&format!("{path}/zarr.json"))? else {
            panic!("{name}: {path} has no document")
        };
        copy.put(&format!("{path}/zarr.json"), document).await;
    }
    for path in view.paths() {
        let array = view.array(path)?;
        let folder = path.trim_start_matches('/').to_owned();
        let folder = if folder.is_empty() { folder } else { format!("{folder}/") };
        let keys = chunkyard_array::ChunkKeys::new(&array.node().spec).unwrap();
        for index in indices(&array.node().grid().unwrap().grid_shape()) {
            let key = format!("{folder}{}", keys.key(&index));
            let Some(Value::Chunk(array, found)) = view.value(&key)? else {
                panic!("{name}: {key} is no chunk")
            };
            assert_eq!(found, index);
            if let Some(bytes) = array.chunk(&index).await? {
                copy.put(&key, bytes).await;
            }
        }
    }
    copy.put("zarr.json", root).await;
    Ok(copy)
}

/// Shows an array of a source and reads it back.
async fn read_shown(name: &str, source: &Arc<dyn Source>, path: &str) -> Result<Naive> {
    let view = Hierarchy::new(source.clone(), plain()).await?;
    let copy = stored(name, &view).await?;
    Ok(read(&copy.open().await, path).await)
}

#[tokio::test]
async fn every_format_and_type_is_the_same_as_zarr() {
    let yard = Yard::directory();
    let mut seen = 0;
    for (number, dtype) in dtypes().into_iter().enumerate() {
        let sample = Sample::new(&[7, 11], &[3, 4], dtype.clone()).sparse(|index| index != [1, 1]);
        for entry in sources_by_hand().chain(sources_by_sink()).filter(|it| (it.holds)(&sample)) {
            let name = format!("{number}-{entry:?}");
            let source = entry.write(&yard, &name, &sample).await;
            let found = read_shown(&name, &source, entry.path()).await;
            let found = found.unwrap_or_else(|error| panic!("{dtype} {name}: {error:#?}"));
            assert!(found == sample.array, "{dtype} {name} differs");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

#[tokio::test]
async fn files_of_other_programs_are_the_same_as_zarr() {
    for (number, (entry, source, path)) in golden().await.into_iter().enumerate() {
        let view = Hierarchy::new(source.clone(), plain()).await.unwrap();
        let array = view.array(path).unwrap();
        let expected = read(&source, path).await;
        let found = whole(&format!("golden-{number}"), &array, path).await;
        assert!(found == expected, "{entry:?} {path} differs");
    }
}

/// One array of a view, read back.
async fn whole(name: &str, array: &ArrayView, path: &str) -> Naive {
    let copy = Copy::new(name);
    let keys = chunkyard_array::ChunkKeys::new(&array.node().spec).unwrap();
    for index in indices(&array.node().grid().unwrap().grid_shape()) {
        if let Some(bytes) = array.chunk(&index).await.unwrap() {
            copy.put(&keys.key(&index), bytes).await;
        }
    }
    copy.put("zarr.json", array.node().spec.render().into()).await;
    assert!(path.starts_with('/'));
    read(&copy.open().await, "/").await
}

#[tokio::test]
async fn chunks_that_other_programs_read_are_handed_out_as_they_are() {
    let yard = Yard::memory();
    let sample = Sample::new(&[9, 9], &[4, 4], "uint16");
    for entry in sources_by_hand().chain(sources_by_sink()) {
        let single = entry.sink.is_some_and(|sink| sink.single);
        if single || !(entry.holds)(&sample) || !["zarr3", "repo"].contains(&entry.format) {
            continue;
        }
        let source = entry.write(&yard, &format!("copied-{entry:?}"), &sample).await;
        let view = Hierarchy::new(source.clone(), plain()).await.unwrap();
        let array = view.array(entry.path()).unwrap();
        let all = indices(&array.node().grid().unwrap().grid_shape());
        let stored = fetch_chunks(&*source, entry.path(), &all).await.unwrap();
        if array.node().spec.same_encoding(&source.dataset().array(entry.path()).unwrap().spec) {
            for (index, stored) in all.iter().zip(stored) {
                assert_eq!(array.chunk(index).await.unwrap(), stored, "{entry:?} {index:?}");
            }
        }
    }
}

#[tokio::test]
async fn labels_are_supervoxels_or_bodies_and_no_codec_of_ours() {
    let source = labelmap("memory://view-labels").await;
    let expected = read(&source, "/seg/s0").await;
    for ids in [Ids::Supervoxels, Ids::Bodies] {
        let view = Hierarchy::new(source.clone(), ViewOptions { ids, ..plain() }).await.unwrap();
        let copy = stored(&format!("labels-{ids:?}"), &view).await.unwrap();
        let text = copy.store.get("seg/s0/zarr.json").await.unwrap().bytes;
        assert!(!String::from_utf8_lossy(&text).contains("chunkyard.label_block"));
        let found = read(&copy.open().await, "/seg/s0").await;
        let body = |cell: &Vec<u8>| {
            let label = u64::from_le_bytes(cell[..].try_into().unwrap());
            if ids == Ids::Bodies { body(label) } else { label }.to_le_bytes().to_vec()
        };
        let wanted: Vec<_> = expected.cells.iter().map(body).collect();
        assert!(found.cells == wanted, "{ids:?}");
    }
}

#[tokio::test]
async fn what_no_key_names_is_not_there() {
    let source = labelmap("memory://view-keys").await;
    let view = Hierarchy::new(source, plain()).await.unwrap();
    for key in [
        "",
        "/zarr.json",
        "../zarr.json",
        "seg/../zarr.json",
        "seg/s0/../s1/c/0/0/0",
        "seg/s0/c/0/0",
        "seg/s0/c/0/0/00",
        "seg/s0/c/99/0/0",
        "seg/s0/c/-1/0/0",
        "seg/s0/c/0/0/0/",
        "seg/s0/c/18446744073709551616/0/0",
        "seg/s0/.zarray",
        "seg/mapping/zarr.json",
        "seg//s0/zarr.json",
        "nothing/zarr.json",
        "state.json",
        "zarr.json/",
    ] {
        assert!(view.value(key).unwrap().is_none(), "{key:?}");
    }
    assert!(view.value("seg/s0/c/0/0/0").unwrap().is_some());
}

#[tokio::test]
async fn an_array_that_cannot_be_shown_says_why_and_hides_no_other() {
    let yard = Yard::memory();
    let store = yard.store("strange");
    let group = json!({"zarr_format": 3, "node_type": "group"}).to_string();
    store.put("zarr.json", vec![group.into()]).await.unwrap();
    for (name, codecs) in
        [("good", json!([{"name": "bytes"}])), ("bad", json!([{"name": "nobody.knows"}]))]
    {
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "chunk_key_encoding": {"name": "default"}, "codecs": codecs,
        });
        store.put(&format!("{name}/zarr.json"), vec![document.to_string().into()]).await.unwrap();
    }
    let view = Hierarchy::new(opened(&yard.at("strange")).await, plain()).await.unwrap();
    let Some(Value::Document(root)) = view.value("zarr.json").unwrap() else { panic!("no root") };
    let root: serde_json::Value = serde_json::from_slice(&root).unwrap();
    let listed = root["consolidated_metadata"]["metadata"].as_object().unwrap();
    assert_eq!(listed.keys().collect::<Vec<_>>(), ["good"]);
    for key in ["bad/zarr.json", "bad/c/0"] {
        let error = view.value(key).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("/bad"), "{error}");
    }
}

#[tokio::test]
async fn large_chunks_are_cut_or_refused() {
    let source = labelmap("memory://view-large").await;
    let options = ViewOptions { bytes_max: 16 * 16 * 16 * 8, ..plain() };
    let view = Hierarchy::new(source.clone(), options).await.unwrap();
    assert!(view.array("/seg/s0").unwrap().chunk(&[0, 0, 0]).await.unwrap().is_some());
    let options = ViewOptions { bytes_max: 100, ..plain() };
    let view = Hierarchy::new(source, options).await.unwrap();
    assert_eq!(view.array("/seg/s0").unwrap_err().kind(), ErrorKind::Unsupported);
}
