//! A session as keys and values: each rule by name, and all together against a map.

mod documents;
mod model;
mod ranges;
mod waiting;

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::ArraySpec;
use chunkyard_repo::{Keys, Repository, Session, Version};
use chunkyard_store::{ErrorKind, Result};
use serde_json::{Value, json};

use super::support::{create, memory, reopen, tiny};

/// A fresh repository, and the keys of a session that writes to it.
async fn fresh() -> (Repository, Keys) {
    let repo = create(&memory(), tiny()).await;
    let keys = writing(&repo).await;
    (repo, keys)
}

async fn writing(repo: &Repository) -> Keys {
    Keys::new(repo.writable_session("main").await.unwrap())
}

/// The keys that a fresh reader of the repository sees.
async fn reading(repo: &Repository) -> Keys {
    let repo = reopen(repo.store()).await;
    Keys::new(repo.readonly_session(&Version::Default).await.unwrap())
}

async fn commit(keys: &Keys) -> Result<()> {
    let options = chunkyard_repo::CommitOptions::message("x");
    keys.session().commit(options).await.map(drop)
}

/// The document of an array of bytes with chunks of two elements.
fn array(shape: &[u64]) -> Bytes {
    array_with(shape, &json!("uint8"))
}

fn array_with(shape: &[u64], data_type: &Value) -> Bytes {
    let spec = ArraySpec::builder(shape, &vec![2; shape.len()], data_type.clone()).build();
    spec.unwrap().render().into()
}

fn group(attributes: &Value) -> Bytes {
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes}).to_string().into()
}

async fn set(keys: &Keys, key: &str, value: impl Into<Bytes>) {
    keys.set(key, value.into()).await.unwrap();
}

async fn get(keys: &Keys, key: &str) -> Option<Bytes> {
    keys.get(key, None).await.unwrap()
}

async fn get_json(keys: &Keys, key: &str) -> Option<Value> {
    get(keys, key).await.map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

/// All keys with a prefix, sorted.
async fn list(keys: &Keys, prefix: &str) -> Vec<String> {
    let mut all = keys.list_prefix(prefix).all().await.unwrap();
    all.sort();
    all
}

/// Checks that a call was refused as the caller's mistake, with these words.
fn refused<T: std::fmt::Debug>(result: Result<T>, words: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{text:?} does not say {word:?}");
    }
}

#[tokio::test]
async fn a_fresh_repository_has_no_keys_and_a_group_without_attributes_is_worth_a_commit() {
    let (repo, keys) = fresh().await;
    assert!(keys.is_empty("").await.unwrap());
    assert_eq!(list(&keys, "").await, [""; 0]);
    assert_eq!(get(&keys, "zarr.json").await, None);
    refused(commit(&keys).await, &["nothing to commit"]);
    set(&keys, "zarr.json", group(&json!({}))).await;
    assert_eq!(list(&keys, "").await, ["zarr.json"]);
    commit(&keys).await.unwrap();
    let keys = reading(&repo).await;
    assert_eq!(get_json(&keys, "zarr.json").await.unwrap()["node_type"], "group");
    assert!(!keys.is_empty("").await.unwrap());
}

#[tokio::test]
async fn arrays_and_chunks_are_those_of_the_session() {
    let (repo, keys) = fresh().await;
    set(&keys, "zarr.json", group(&json!({}))).await;
    set(&keys, "a/zarr.json", array(&[4, 4])).await;
    let session: &Arc<Session> = keys.session();
    super::support::write(session, "/a", "0:2,0:4", 7).await.unwrap();
    let expected = ["a/c/0/0", "a/c/0/1", "a/zarr.json", "zarr.json"];
    assert_eq!(list(&keys, "").await, expected);
    let chunk = get(&keys, "a/c/0/0").await.unwrap();
    set(&keys, "a/c/1/1", chunk).await;
    let read = super::support::read_all(session, "/a").await.unwrap();
    assert_eq!(read, [7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 7, 7, 0, 0, 7, 7]);
    commit(&keys).await.unwrap();
    let keys = reading(&repo).await;
    assert_eq!(list(&keys, "a/c/1").await, ["a/c/1/1"]);
    refused(keys.set("a/c/0/0", vec![1].into()).await, &["read-only"]);
}

#[tokio::test]
async fn folders_list_their_names_once() {
    let (_, keys) = fresh().await;
    set(&keys, "zarr.json", group(&json!({}))).await;
    set(&keys, "g/a/zarr.json", array(&[8, 8])).await;
    set(&keys, "ga/zarr.json", array(&[8])).await;
    for key in ["g/a/c/0/0", "g/a/c/0/1", "g/a/c/3/1", "ga/c/0", "g/odd/key", "g/a/odd"] {
        set(&keys, key, vec![1]).await;
    }
    for (folder, expected) in [
        ("", &["g", "ga", "zarr.json"][..]),
        ("g", &["a", "odd"]),
        ("g/", &["a", "odd"]),
        ("g/a", &["c", "odd", "zarr.json"]),
        ("g/a/c", &["0", "3"]),
        ("g/a/c/0", &["0", "1"]),
        ("g/a/c/1", &[]),
        ("g/odd", &["key"]),
        ("nothing", &[]),
    ] {
        assert_eq!(keys.list_dir(folder).await.unwrap(), expected, "{folder}");
        assert_eq!(keys.is_empty(folder).await.unwrap(), expected.is_empty(), "{folder}");
    }
    // A prefix is a text prefix, not a folder.
    assert_eq!(list(&keys, "g/a/c/3").await, ["g/a/c/3/1"]);
    assert_eq!(list(&keys, "ga").await, ["ga/c/0", "ga/zarr.json"]);
    assert_eq!(list(&keys, "g/a/zarr").await, ["g/a/zarr.json"]);
    assert_eq!(list(&keys, "x").await, [""; 0]);
}

#[tokio::test]
async fn the_chunk_key_encoding_of_the_array_names_its_chunks() {
    let (_, keys) = fresh().await;
    for (path, encoding, key) in [
        ("a", json!({"name": "v2"}), "0.1"),
        ("b", json!({"name": "v2", "configuration": {"separator": "/"}}), "0/1"),
        ("c", json!({"name": "default", "configuration": {"separator": "."}}), "c.0.1"),
    ] {
        let spec = ArraySpec::builder(&[4, 4], &[2, 2], "uint8").chunk_key_encoding(encoding);
        set(&keys, &format!("{path}/zarr.json"), spec.build().unwrap().render()).await;
        set(&keys, &format!("{path}/{key}"), vec![1]).await;
        let folder = format!("{path}/");
        assert_eq!(
            list(&keys, &folder).await,
            [format!("{folder}{key}"), format!("{folder}zarr.json")]
        );
        assert!(keys.session().get_chunk(path, &[0, 1]).await.unwrap().is_some());
        let first = key.split('/').next().unwrap();
        assert_eq!(keys.list_dir(path).await.unwrap(), [first, "zarr.json"]);
    }
    let scalar = ArraySpec::builder(&[], &[], "uint8").build().unwrap();
    set(&keys, "s/zarr.json", scalar.render()).await;
    set(&keys, "s/c", vec![1]).await;
    assert_eq!(keys.list_dir("s").await.unwrap(), ["c", "zarr.json"]);
    commit(&keys).await.unwrap();
}

#[tokio::test]
async fn deleting_a_chunk_that_is_not_there_is_no_change() {
    let (repo, keys) = fresh().await;
    set(&keys, "a/zarr.json", array(&[4])).await;
    set(&keys, "a/c/0", vec![1]).await;
    commit(&keys).await.unwrap();
    let keys = writing(&repo).await;
    keys.delete("a/c/1").await.unwrap();
    keys.delete("b/c/1").await.unwrap();
    keys.delete("b/zarr.json").await.unwrap();
    refused(commit(&keys).await, &["nothing to commit"]);
    keys.delete("a/c/0").await.unwrap();
    commit(&keys).await.unwrap();
    assert!(!reading(&repo).await.exists("a/c/0").await.unwrap());
}

#[tokio::test]
async fn a_folder_is_deleted_with_all_that_is_in_it() {
    let (repo, keys) = fresh().await;
    set(&keys, "g/a/zarr.json", array(&[8])).await;
    set(&keys, "ga/zarr.json", array(&[8, 8])).await;
    for key in ["g/a/c/0", "ga/c/0/0", "ga/c/0/1", "ga/c/1/0"] {
        set(&keys, key, vec![1]).await;
    }
    commit(&keys).await.unwrap();
    let keys = writing(&repo).await;
    set(&keys, "g/waits", vec![1]).await;
    set(&keys, "ga/c/0/2", vec![1]).await;
    keys.delete_dir("g").await.unwrap();
    keys.delete_dir("ga/c/0").await.unwrap();
    assert_eq!(list(&keys, "").await, ["ga/c/1/0", "ga/zarr.json", "zarr.json"]);
    commit(&keys).await.unwrap();
    assert_eq!(list(&reading(&repo).await, "").await, ["ga/c/1/0", "ga/zarr.json", "zarr.json"]);
    let keys = writing(&repo).await;
    keys.clear().await.unwrap();
    assert_eq!(list(&keys, "").await, [""; 0]);
    assert!(keys.is_empty("").await.unwrap());
    commit(&keys).await.unwrap();
    assert_eq!(list(&reading(&repo).await, "").await, ["zarr.json"], "a version has a root");
}

#[tokio::test]
async fn sizes_are_known_without_a_chunk_being_read() {
    let (repo, keys) = fresh().await;
    set(&keys, "a/zarr.json", array(&[4])).await;
    set(&keys, "a/c/0", vec![1; 300]).await;
    set(&keys, "a/c/1", vec![1; 5]).await;
    commit(&keys).await.unwrap();
    let keys = writing(&repo).await;
    set(&keys, "a/waits", vec![1; 7]).await;
    for (key, expected) in
        [("a/c/0", Some(300)), ("a/c/1", Some(5)), ("a/waits", Some(7)), ("b", None)]
    {
        assert_eq!(keys.size(key).await.unwrap(), expected, "{key}");
    }
    let document = get(&keys, "a/zarr.json").await.unwrap().len() as u64;
    assert_eq!(keys.size("a/zarr.json").await.unwrap(), Some(document));
    assert_eq!(keys.size_prefix("a/").await.unwrap(), document + 312);
    assert_eq!(keys.size_prefix("a/c/").await.unwrap(), 305);
}

#[tokio::test]
async fn one_of_many_writers_creates_a_missing_key() {
    let (_, keys) = fresh().await;
    set(&keys, "a/zarr.json", array(&[4])).await;
    for key in ["a/c/0", "g/zarr.json", "waits"] {
        let value = |n: u8| {
            if key.ends_with("json") { group(&json!({ "n": n })) } else { vec![n + 1].into() }
        };
        let tries = (0..8).map(|n| keys.set_if_not_exists(key, value(n)));
        let won: Vec<bool> = futures::future::try_join_all(tries).await.unwrap();
        assert_eq!(won.iter().filter(|won| **won).count(), 1, "{key}");
        let winner = won.iter().position(|won| *won).unwrap() as u8;
        let found = get(&keys, key).await.unwrap();
        match serde_json::from_slice::<Value>(&found) {
            Ok(document) => assert_eq!(document["attributes"]["n"], winner),
            Err(_) => assert_eq!(found, value(winner)),
        }
    }
}
