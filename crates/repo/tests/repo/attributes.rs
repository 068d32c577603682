//! User attributes: small ones in the structure file, large ones in a file of their own.

use std::collections::HashSet;

use chunkyard_repo::{Attributes, CommitOptions, Config, Repository, Version};
use futures::TryStreamExt;
use serde_json::{Map, Value, json};

use super::support::{bytes_spec, collect, create, memory, reopen, sound};

fn document(size: usize, seed: u64) -> Map<String, Value> {
    let text = format!("{seed}-").repeat(size / 2).chars().take(size).collect::<String>();
    Map::from_iter([("text".to_owned(), Value::String(text)), ("seed".to_owned(), json!(seed))])
}

async fn files(repo: &Repository) -> usize {
    let listed: Vec<_> = repo.store().list("a").await.unwrap().try_collect().await.unwrap();
    listed.len()
}

async fn place(repo: &Repository, path: &str) -> Option<(String, u64)> {
    let session = repo.readonly_session(&Version::Default).await.unwrap();
    match &session.node(path).unwrap().attributes {
        Attributes::Inline(_) => None,
        Attributes::File(reference) => Some((reference.file.to_string(), reference.row)),
    }
}

#[tokio::test]
async fn large_documents_go_to_a_file_and_equal_ones_are_stored_once() {
    let repo = create(&memory(), Config::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    for (path, size, seed) in
        [("/small", 100, 1), ("/large", 5000, 2), ("/same", 5000, 2), ("/other", 6000, 3)]
    {
        session.create_group(path, document(size, seed)).unwrap();
    }
    session.commit(CommitOptions::message("x")).await.unwrap();
    assert_eq!(files(&repo).await, 1, "one file for all that leave in one commit");
    assert_eq!(place(&repo, "/small").await, None);
    let large = place(&repo, "/large").await.unwrap();
    assert_eq!(place(&repo, "/same").await.as_ref(), Some(&large));
    assert_ne!(place(&repo, "/other").await.as_ref(), Some(&large));

    // Unchanged documents keep pointing at the old file.
    let session = repo.writable_session("main").await.unwrap();
    session.set_attributes("/other", document(7000, 4)).unwrap();
    session.move_node("/large", "/moved").unwrap();
    session.commit(CommitOptions::message("y")).await.unwrap();
    assert_eq!(files(&repo).await, 2);
    assert_eq!(place(&repo, "/moved").await, Some(large));
    let repo = reopen(repo.store()).await;
    let session = repo.readonly_session(&Version::Default).await.unwrap();
    for (path, size, seed) in
        [("/small", 100, 1), ("/moved", 5000, 2), ("/same", 5000, 2), ("/other", 7000, 4)]
    {
        assert_eq!(*session.attributes(path).await.unwrap(), document(size, seed), "{path}");
    }
    collect(&repo).await.unwrap();
    assert_eq!(sound(&repo).await, 0);
}

#[tokio::test]
async fn inline_documents_together_stay_below_a_mebibyte() {
    let repo = create(&memory(), Config::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    for n in 0..400u64 {
        session.create_group(&format!("/g{n}"), document(3000 + n as usize, n)).unwrap();
    }
    session.commit(CommitOptions::message("x")).await.unwrap();
    let repo = reopen(repo.store()).await;
    let session = repo.readonly_session(&Version::Default).await.unwrap();
    let mut inline_bytes = 0;
    let mut seen = HashSet::new();
    for n in 0..400u64 {
        let path = format!("/g{n}");
        let expected = document(3000 + n as usize, n);
        assert_eq!(*session.attributes(&path).await.unwrap(), expected, "{path}");
        match &session.node(&path).unwrap().attributes {
            Attributes::Inline(map) => inline_bytes += serde_json::to_vec(&**map).unwrap().len(),
            Attributes::File(reference) => {
                seen.insert(reference.row);
            }
        }
    }
    assert!(inline_bytes <= 1 << 20, "{inline_bytes}");
    assert!(inline_bytes > 1 << 19, "no more leave than must: {inline_bytes}");
    assert!(seen.len() > 10);
    sound(&repo).await;
}

#[tokio::test]
async fn odd_documents_come_back_as_they_were() {
    let repo = create(&memory(), Config { inline_attrs_max: 40, ..Config::default() }).await;
    let session = repo.writable_session("main").await.unwrap();
    session.create_array("/a", bytes_spec(&[1], &[1])).await.unwrap();
    let documents = [
        json!({}),
        json!({ "": null }),
        json!({ "z": 1, "a": { "nested": [1, 2.5, 1e300, -0.0, "ü\u{0}\"\\"] } }),
        json!({ "big": 18_446_744_073_709_551_615u64, "small": i64::MIN, "sum": 0.30000000000000004 }),
    ];
    for (n, document) in documents.iter().enumerate() {
        let map = document.as_object().unwrap().clone();
        session.create_group(&format!("/g{n}"), map).unwrap();
    }
    session.commit(CommitOptions::message("x")).await.unwrap();
    let repo = reopen(repo.store()).await;
    let session = repo.readonly_session(&Version::Default).await.unwrap();
    for (n, document) in documents.iter().enumerate() {
        let found = session.attributes(&format!("/g{n}")).await.unwrap();
        let text = serde_json::to_string(&*found).unwrap();
        assert_eq!(text, document.to_string(), "the order of keys included");
    }
    sound(&repo).await;
}

/// Attributes of a specification are the node's, and leave the specification without any.
#[tokio::test]
async fn attributes_of_a_specification_become_those_of_the_node() {
    let repo = create(&memory(), Config::default()).await;
    let session = repo.writable_session("main").await.unwrap();
    let spec = bytes_spec(&[4], &[4]).with_attributes(document(10, 1)).unwrap();
    let array = session.create_array("/a", spec).await.unwrap();
    assert!(array.spec().attributes().is_empty());
    session.resize("/a", &[8]).await.unwrap();
    assert_eq!(*session.attributes("/a").await.unwrap(), document(10, 1));
    session.commit(CommitOptions::message("x")).await.unwrap();
    sound(&repo).await;
}
