//! Documents: which parts are kept, and how they change nodes.

use serde_json::json;

use super::{
    array, array_with, commit, fresh, get, get_json, group, list, reading, refused, set, writing,
};

#[tokio::test]
async fn a_document_comes_back_with_attributes_and_unknown_members() {
    let (repo, keys) = fresh().await;
    let mut written: serde_json::Value = serde_json::from_slice(&array(&[4])).unwrap();
    written["attributes"] = json!({"unit": "K", "nested": {"z": 1, "a": [1.5, null]}});
    written["dimension_names"] = json!(["time"]);
    written["mine"] = json!({"must_understand": false, "x": 1});
    set(&keys, "a/zarr.json", written.to_string()).await;
    let mine = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "mine": {"must_understand": false}});
    set(&keys, "zarr.json", mine.to_string()).await;
    commit(&keys).await.unwrap();
    let keys = reading(&repo).await;
    assert_eq!(get_json(&keys, "a/zarr.json").await.unwrap(), written);
    assert_eq!(get_json(&keys, "zarr.json").await.unwrap(), mine);
}

#[tokio::test]
async fn writing_a_document_replaces_its_attributes_and_members() {
    let (repo, keys) = fresh().await;
    let with = |extra: &str| {
        let mut document =
            json!({"zarr_format": 3, "node_type": "group", "attributes": {extra: 1}});
        document[extra] = json!({"must_understand": false});
        document
    };
    set(&keys, "zarr.json", with("one").to_string()).await;
    commit(&keys).await.unwrap();
    let keys = writing(&repo).await;
    set(&keys, "zarr.json", with("two").to_string()).await;
    assert_eq!(get_json(&keys, "zarr.json").await.unwrap(), with("two"));
    set(&keys, "zarr.json", group(&json!({}))).await;
    assert_eq!(get_json(&keys, "zarr.json").await.unwrap()["attributes"], json!({}));
    set(&keys, "a/zarr.json", array(&[4])).await;
    let attributes = |n: u64| {
        let mut document: serde_json::Value = serde_json::from_slice(&array(&[4])).unwrap();
        document["attributes"] = json!({ "n": n });
        document.to_string()
    };
    set(&keys, "a/zarr.json", attributes(1)).await;
    set(&keys, "a/zarr.json", array(&[4])).await;
    assert_eq!(get_json(&keys, "a/zarr.json").await.unwrap()["attributes"], json!({}));
}

#[tokio::test]
async fn writing_the_same_document_is_no_change() {
    let (repo, keys) = fresh().await;
    let large = group(&json!({ "text": "x".repeat(10_000) }));
    set(&keys, "g/zarr.json", large.clone()).await;
    set(&keys, "a/zarr.json", array(&[4])).await;
    commit(&keys).await.unwrap();
    let keys = writing(&repo).await;
    set(&keys, "g/zarr.json", large).await;
    set(&keys, "a/zarr.json", array(&[4])).await;
    refused(commit(&keys).await, &["nothing to commit"]);
}

#[tokio::test]
async fn consolidated_metadata_are_never_stale() {
    let (_, keys) = fresh().await;
    let document = json!({
        "zarr_format": 3, "node_type": "group", "attributes": {},
        "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {}},
    });
    set(&keys, "zarr.json", document.to_string()).await;
    assert!(get_json(&keys, "zarr.json").await.unwrap().get("consolidated_metadata").is_none());
}

#[tokio::test]
async fn a_group_above_a_node_has_no_document_until_the_commit() {
    let (repo, keys) = fresh().await;
    set(&keys, "g/h/a/zarr.json", array(&[4])).await;
    assert_eq!(list(&keys, "").await, ["g/h/a/zarr.json"]);
    assert_eq!(get(&keys, "g/zarr.json").await, None);
    assert!(keys.set_if_not_exists("g/zarr.json", group(&json!({"n": 1}))).await.unwrap());
    set(&keys, "g/h/a/zarr.json", array(&[6])).await;
    assert_eq!(list(&keys, "").await, ["g/h/a/zarr.json", "g/zarr.json"]);
    commit(&keys).await.unwrap();
    let all = ["g/h/a/zarr.json", "g/h/zarr.json", "g/zarr.json", "zarr.json"];
    assert_eq!(list(&keys, "").await, all, "also in the session that committed");
    let keys = reading(&repo).await;
    assert_eq!(list(&keys, "").await, all);
    assert_eq!(get_json(&keys, "g/zarr.json").await.unwrap()["attributes"]["n"], 1);
}

#[tokio::test]
async fn a_group_whose_document_is_deleted_keeps_what_is_in_it() {
    let (repo, keys) = fresh().await;
    set(&keys, "g/zarr.json", group(&json!({"n": 1}))).await;
    set(&keys, "g/a/zarr.json", array(&[4])).await;
    set(&keys, "g/a/c/0", vec![1]).await;
    commit(&keys).await.unwrap();
    let keys = writing(&repo).await;
    keys.delete("g/zarr.json").await.unwrap();
    assert_eq!(list(&keys, "g").await, ["g/a/c/0", "g/a/zarr.json"]);
    keys.delete("g/a/zarr.json").await.unwrap();
    assert_eq!(list(&keys, "g").await, [""; 0], "the array goes with its chunks");
    assert!(keys.session().node("/g").is_err(), "and the group that nothing implies any more");
    set(&keys, "g/zarr.json", group(&json!({}))).await;
    commit(&keys).await.unwrap();
    let document = get_json(&reading(&repo).await, "g/zarr.json").await.unwrap();
    assert_eq!(document["attributes"], json!({}), "a new group, not the old one");
}

#[tokio::test]
async fn a_document_that_contradicts_the_hierarchy_is_refused() {
    let (_, keys) = fresh().await;
    refused(keys.set("zarr.json", array(&[4])).await, &["root", "group"]);
    set(&keys, "a/zarr.json", array(&[4])).await;
    set(&keys, "a/zarr.json", array_with(&[4], &json!("uint16"))).await;
    set(&keys, "a/c/0", vec![1]).await;
    refused(keys.set("a/zarr.json", array(&[4])).await, &["/a", "chunks"]);
    refused(keys.set("a/zarr.json", group(&json!({}))).await, &["/a", "array with chunks"]);
    refused(keys.set("a/zarr.json", "rubbish".into()).await, &["a/zarr.json"]);
    set(&keys, "g/b/zarr.json", array(&[4])).await;
    refused(keys.set("g/zarr.json", array(&[4])).await, &["/g", "holds other nodes"]);
    keys.delete("a/c/0").await.unwrap();
    set(&keys, "a/zarr.json", group(&json!({}))).await;
    set(&keys, "a/zarr.json", array(&[2])).await;
    set(&keys, "a/c/0", vec![1]).await;
    commit(&keys).await.unwrap();
}

#[tokio::test]
async fn a_smaller_shape_takes_the_chunks_outside_it_away() {
    let (_, keys) = fresh().await;
    set(&keys, "a/zarr.json", array(&[8])).await;
    for n in 0..4u8 {
        set(&keys, &format!("a/c/{n}"), vec![n + 1]).await;
    }
    set(&keys, "a/zarr.json", array(&[3])).await;
    assert_eq!(list(&keys, "a/c").await, ["a/c/0", "a/c/1"]);
    set(&keys, "a/zarr.json", array(&[8])).await;
    assert_eq!(list(&keys, "a/c").await, ["a/c/0", "a/c/1"], "what is gone stays away");
}

#[tokio::test]
async fn large_attributes_are_read_from_their_file() {
    let (repo, keys) = fresh().await;
    let large = json!({ "text": "x".repeat(10_000) });
    set(&keys, "g/zarr.json", group(&large)).await;
    commit(&keys).await.unwrap();
    let keys = reading(&repo).await;
    assert_eq!(get_json(&keys, "g/zarr.json").await.unwrap()["attributes"], large);
    assert!(keys.size("g/zarr.json").await.unwrap().unwrap() > 10_000);
}

#[tokio::test]
async fn attributes_that_are_no_json_come_back_as_zarr_python_wrote_them() {
    let (repo, keys) = fresh().await;
    let document = r#"{"zarr_format": 3, "node_type": "group",
        "attributes": {"missing_value": NaN, "valid": [-Infinity, 1.0], "word": "NaN"}}"#;
    set(&keys, "zarr.json", document).await;
    let mut of_array = String::from_utf8(array(&[4]).to_vec()).unwrap();
    of_array = of_array.replacen('{', r#"{"attributes": {"missing_value": NaN},"#, 1);
    set(&keys, "a/zarr.json", of_array).await;
    commit(&keys).await.unwrap();
    let keys = reading(&repo).await;
    let read = String::from_utf8(get(&keys, "zarr.json").await.unwrap().to_vec()).unwrap();
    for word in ["\"missing_value\": NaN", "-Infinity,", "\"word\": \"NaN\""] {
        assert!(read.contains(word), "{read}");
    }
    assert!(!read.contains("chunkyard"), "{read}");
    let read = String::from_utf8(get(&keys, "a/zarr.json").await.unwrap().to_vec()).unwrap();
    assert!(read.contains("\"missing_value\": NaN"), "{read}");
    assert_eq!(keys.session().attributes("/a").await.unwrap()["missing_value"], "NaN");
}
