//! Keys that fit nothing yet.

use bytes::Bytes;
use serde_json::json;

use super::{array, commit, fresh, get, get_json, group, list, reading, refused, set, writing};
use chunkyard_repo::Keys;

#[tokio::test]
async fn the_order_of_keys_does_not_matter() {
    let (repo, keys) = fresh().await;
    set(&keys, "g/a/c/1", vec![2]).await;
    set(&keys, "g/a/c/0", vec![1]).await;
    assert_eq!(list(&keys, "").await, ["g/a/c/0", "g/a/c/1"]);
    assert_eq!(get(&keys, "g/a/c/0").await.unwrap(), vec![1]);
    assert!(keys.exists("g/a/c/0").await.unwrap());
    refused(commit(&keys).await, &["g/a/c/0 belongs to no array", "g/a/c/1"]);
    set(&keys, "g/a/zarr.json", array(&[4])).await;
    set(&keys, "g/zarr.json", group(&json!({"n": 1}))).await;
    commit(&keys).await.unwrap();
    let keys = reading(&repo).await;
    assert_eq!(list(&keys, "g/a/").await, ["g/a/c/0", "g/a/c/1", "g/a/zarr.json"]);
    assert_eq!(get(&keys, "g/a/c/1").await.unwrap(), vec![2]);
    assert_eq!(get_json(&keys, "g/zarr.json").await.unwrap()["attributes"]["n"], 1);
}

#[tokio::test]
async fn two_views_of_a_session_see_the_same_keys_waiting() {
    let (_, one) = fresh().await;
    let other = Keys::new(one.session().clone());
    set(&one, "a/c/0", vec![1]).await;
    assert_eq!(get(&other, "a/c/0").await.unwrap(), vec![1]);
    set(&other, "a/zarr.json", array(&[4])).await;
    assert_eq!(one.session().get_chunk("a", &[0]).await.unwrap().unwrap(), vec![1]);
}

#[tokio::test]
async fn a_waiting_key_can_be_deleted_and_the_commit_goes_through() {
    let (_, keys) = fresh().await;
    set(&keys, "zarr.json", group(&json!({}))).await;
    for key in ["x", "y/z", "y/c/0"] {
        set(&keys, key, vec![1]).await;
    }
    keys.delete("x").await.unwrap();
    keys.delete_dir("y").await.unwrap();
    commit(&keys).await.unwrap();
}

#[tokio::test]
async fn a_chunk_outside_the_grid_waits_until_the_array_grows() {
    let (_, keys) = fresh().await;
    set(&keys, "a/zarr.json", array(&[4])).await;
    set(&keys, "a/c/2", vec![3]).await;
    set(&keys, "a/c/0/0", vec![3]).await;
    refused(commit(&keys).await, &["a/c/2 belongs to no chunk of its array: outside", "a/c/0/0"]);
    keys.delete("a/c/0/0").await.unwrap();
    set(&keys, "a/zarr.json", array(&[6])).await;
    assert_eq!(keys.session().get_chunk("a", &[2]).await.unwrap().unwrap(), vec![3]);
    commit(&keys).await.unwrap();
}

#[tokio::test]
async fn an_empty_chunk_waits_in_place_of_the_old_one() {
    let (_, keys) = fresh().await;
    set(&keys, "a/zarr.json", array(&[4])).await;
    set(&keys, "a/c/0", vec![1]).await;
    set(&keys, "a/c/0", Bytes::new()).await;
    assert_eq!(get(&keys, "a/c/0").await, Some(Bytes::new()));
    assert_eq!(list(&keys, "a/c").await, ["a/c/0"]);
    refused(commit(&keys).await, &["a/c/0", "at least one byte"]);
    set(&keys, "a/c/0", vec![2]).await;
    assert_eq!(get(&keys, "a/c/0").await.unwrap(), vec![2]);
    set(&keys, "a/c/1", Bytes::new()).await;
    keys.delete("a/c/1").await.unwrap();
    assert_eq!(get(&keys, "a/c/1").await, None);
    commit(&keys).await.unwrap();
}

#[tokio::test]
async fn a_document_that_does_not_parse_waits_where_there_is_no_node() {
    let (_, keys) = fresh().await;
    set(&keys, "a/zarr.json", "rubbish").await;
    assert_eq!(get(&keys, "a/zarr.json").await.unwrap(), "rubbish");
    refused(commit(&keys).await, &["a/zarr.json is no document"]);
    set(&keys, "a/zarr.json", array(&[4])).await;
    commit(&keys).await.unwrap();
}

/// Chunks of extent 0, for example. It would wait forever, and the commit would be the first to say so.
#[tokio::test]
async fn a_document_of_an_impossible_array_is_refused_at_once() {
    let (_, keys) = fresh().await;
    let mut document: serde_json::Value = serde_json::from_slice(&array(&[4])).unwrap();
    document["chunk_grid"]["configuration"]["chunk_shape"] = json!([0]);
    let empty = Bytes::from(document.to_string());
    refused(keys.set("a/zarr.json", empty).await, &["a/zarr.json", "contains a zero"]);
    assert_eq!(get(&keys, "a/zarr.json").await, None);
    set(&keys, "a/zarr.json", array(&[4])).await;
    commit(&keys).await.unwrap();
}

#[tokio::test]
async fn a_node_inside_an_array_waits_until_the_array_is_gone() {
    let (_, keys) = fresh().await;
    set(&keys, "a/zarr.json", array(&[4])).await;
    set(&keys, "a/b/c/0", vec![1]).await;
    set(&keys, "a/b/zarr.json", array(&[4])).await;
    refused(commit(&keys).await, &["a/b/zarr.json", "lies in an array"]);
    keys.delete("a/zarr.json").await.unwrap();
    assert_eq!(list(&keys, "").await, ["a/b/c/0", "a/b/zarr.json"]);
    commit(&keys).await.unwrap();
}

#[tokio::test]
async fn keys_of_version_2_say_what_reads_them() {
    let (_, keys) = fresh().await;
    set(&keys, "a/.zarray", "{}").await;
    assert_eq!(get(&keys, "a/.zarray").await.unwrap(), "{}");
    refused(commit(&keys).await, &["a/.zarray", "Zarr v3", "chunkyard convert"]);
}

#[tokio::test]
async fn keys_with_invalid_paths_wait_forever() {
    let (_, keys) = fresh().await;
    for key in ["/zarr.json", "a//zarr.json", "../zarr.json", "a/./zarr.json", "/"] {
        set(&keys, key, group(&json!({}))).await;
        assert_eq!(get(&keys, key).await.unwrap(), group(&json!({})));
        refused(commit(&keys).await, &[key]);
        keys.delete(key).await.unwrap();
        assert!(keys.is_empty("").await.unwrap(), "{key}");
    }
}

#[tokio::test]
async fn a_session_is_not_forked_while_keys_wait_and_a_fork_takes_none() {
    let (repo, keys) = fresh().await;
    set(&keys, "a/c/0", vec![1]).await;
    refused(keys.session().fork().await, &["cannot fork", "a/c/0"]);
    set(&keys, "a/zarr.json", array(&[4])).await;
    let fork = keys.session().fork().await.unwrap();
    let fork = Keys::new(repo.open_fork(fork).await.unwrap());
    assert_eq!(list(&fork, "").await, ["a/c/0", "a/zarr.json"], "the root has no document yet");
    refused(fork.set("b/c/0", vec![1].into()).await, &["b/c/0 belongs to no array"]);
    refused(fork.set("b/zarr.json", array(&[4])).await, &["fork"]);
    set(&fork, "a/zarr.json", array(&[4])).await;
    set(&fork, "a/c/1", vec![2]).await;
    let changes = fork.session().into_changes().await.unwrap();
    keys.session().merge(changes).unwrap();
    assert_eq!(get(&keys, "a/c/1").await.unwrap(), vec![2]);
    commit(&keys).await.unwrap();
}

#[tokio::test]
async fn a_key_that_waits_survives_a_rebase_but_not_the_session() {
    let (repo, keys) = fresh().await;
    let other = writing(&repo).await;
    set(&other, "b/zarr.json", array(&[4])).await;
    commit(&other).await.unwrap();
    set(&keys, "a/c/0", vec![1]).await;
    keys.session().rebase(chunkyard_repo::Rebase::default()).await.unwrap();
    assert_eq!(list(&keys, "").await, ["a/c/0", "b/zarr.json", "zarr.json"]);
    assert_eq!(list(&writing(&repo).await, "").await, ["b/zarr.json", "zarr.json"]);
}
