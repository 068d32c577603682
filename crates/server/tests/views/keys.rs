//! What keys name, and that nothing else is ever read.

use chunkyard_array::{ArraySpec, Region, Sharding};
use chunkyard_engine::repo::CommitOptions;
use reqwest::StatusCode;
use serde_json::Value;

use super::{commit, repository};
use crate::harness::Server;

#[tokio::test]
async fn a_hierarchy_has_documents_and_stored_chunks() {
    let place = tempfile::tempdir().unwrap();
    let repository = repository(place.path()).await;
    commit(&repository, 1).await;
    let server = Server::start(&[("numbers", place.path())]);
    let json = async |key: &str| -> Value {
        let answer = server.get(&format!("/data/numbers/zarr/{key}")).await;
        assert_eq!(answer.status(), StatusCode::OK, "{key}");
        assert_eq!(answer.headers()["content-type"], "application/json");
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    };
    let root = json("zarr.json").await;
    let array = json("group/numbers/zarr.json").await;
    assert_eq!(root["consolidated_metadata"]["metadata"]["group/numbers"], array);
    assert_eq!(json("group/zarr.json").await["node_type"], "group");
    assert_eq!(array["shape"], serde_json::json!([8, 6]));
    // Never written: no such key, which is the fill value in Zarr.
    let missing = server.get("/data/numbers/zarr/group/numbers/c/1/1").await;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    let listed: Value =
        serde_json::from_slice(&server.get("/data").await.bytes().await.unwrap()).unwrap();
    assert_eq!(listed["data"][0]["zarr"], "/data/numbers/zarr/");
}

#[tokio::test]
async fn strange_keys_and_names_are_not_there() {
    let yard = tempfile::tempdir().unwrap();
    std::fs::write(yard.path().join("secret"), "secret").unwrap();
    let place = yard.path().join("place");
    let repository = repository(&place).await;
    commit(&repository, 1).await;
    let server = Server::start(&[("numbers", &place)]);
    let address = server.url.trim_start_matches("http://").to_owned();
    for path in [
        "/data/numbers/zarr/",
        "/data/numbers/zarr/../../secret",
        "/data/numbers/zarr/%2e%2e/%2e%2e/secret",
        "/data/numbers/zarr/..%2f..%2fsecret",
        "/data/numbers/zarr/%2e%2e%2fsecret",
        "/data/numbers/zarr//etc/passwd",
        "/data/numbers/zarr/%2fetc%2fpasswd",
        "/data/numbers/zarr/state.json",
        "/data/numbers/zarr/group/../group/zarr.json",
        "/data/numbers/zarr/group/numbers/c/0/0/../0",
        "/data/numbers/zarr/group/numbers/c/0/0%00",
        "/data/numbers/zarr/group/numbers/c/00/0",
        "/data/numbers/zarr/group/numbers/c/9/9",
        "/data/numbers/zarr/group/numbers/.zarray",
        "/data/numbers/precomputed/../../secret",
        "/data/numbers/precomputed/group/numbers/%2e%2e/0-4_0-4_0-1",
        "/data/numbers/elsewhere/zarr.json",
        "/data/absent/zarr/zarr.json",
        "/data/..%2fplace/zarr/zarr.json",
        "/data/../place/zarr/zarr.json",
        "/data/numbers@..%2f..%2fsecret/zarr/zarr.json",
        "/data/numbers@/zarr/zarr.json",
        "/data/@main/zarr/zarr.json",
        "/data/numbers/zarr/%ff%fe",
    ] {
        let (status, body) = raw(&address, path).await;
        assert!([400, 404].contains(&status), "{path}: {status} {body}");
        assert!(!body.contains("secret\n") && !body.ends_with("secret"), "{path}: {body}");
    }
    let (status, _) = raw(&address, "/data/numbers/zarr/zarr.json").await;
    assert_eq!(status, 200);
}

/// The answer to a path that no client may change on its way.
async fn raw(address: &str, path: &str) -> (u16, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned();
    (status, body)
}

#[tokio::test]
async fn shards_of_a_repository_are_read_in_parts() {
    let place = tempfile::tempdir().unwrap();
    let repository = repository(place.path()).await;
    let session = repository.writable_session("main").await.unwrap();
    let spec = ArraySpec::builder(&[64, 64], &[8, 8], "uint32").build().unwrap();
    let spec = spec.sharded(&Sharding::new(&[64, 64])).unwrap();
    let array = session.create_array("/shards", spec).await.unwrap();
    let values: Vec<u8> = (0..64 * 64u32).flat_map(u32::to_le_bytes).collect();
    array.write_region(&Region::whole(&[64, 64]), values.into()).await.unwrap();
    session.commit(CommitOptions::message("a shard")).await.unwrap();
    let server = Server::start(&[("shards", place.path())]);
    let url = server.at("/data/shards/zarr/shards/c/0/0");
    let whole = server.client.get(&url).send().await.unwrap();
    let tag = whole.headers()["etag"].clone();
    let whole = whole.bytes().await.unwrap();
    for (first, last) in [(0, 15), (100, 4000), (whole.len() - 20, whole.len() - 1)] {
        let range = format!("bytes={first}-{last}");
        let answer = server.client.get(&url).header("range", range).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::PARTIAL_CONTENT);
        assert_eq!(answer.headers()["etag"], tag);
        assert_eq!(answer.bytes().await.unwrap(), whole[first..=last]);
    }
    let head = server.client.head(&url).send().await.unwrap();
    assert_eq!(head.headers()["content-length"], whole.len().to_string().as_str());
    assert_eq!(head.headers()["etag"], tag);
}

#[tokio::test]
async fn values_larger_than_an_answer_may_be_are_refused_with_the_reason() {
    let place = tempfile::tempdir().unwrap();
    let repository = repository(place.path()).await;
    commit(&repository, 1).await;
    let server = Server::with(&[("numbers", place.path())], |config| {
        config.limits.answer_bytes_max = 16;
    });
    let answer = server.get("/data/numbers/zarr/group/numbers/c/0/0").await;
    assert_eq!(answer.status(), StatusCode::NOT_IMPLEMENTED);
    let reason: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert!(reason["error"].as_str().unwrap().contains("32 bytes"), "{reason}");
}

#[tokio::test]
async fn what_is_no_repository_is_opened_again_when_it_changed() {
    let place = tempfile::tempdir().unwrap();
    let spec = ArraySpec::builder(&[4], &[4], "uint8")
        .codecs(vec![serde_json::json!({"name": "bytes"})])
        .build()
        .unwrap();
    std::fs::write(place.path().join("zarr.json"), spec.render()).unwrap();
    std::fs::create_dir(place.path().join("c")).unwrap();
    std::fs::write(place.path().join("c/0"), [1, 2, 3, 4]).unwrap();
    let server = Server::start(&[("plain", place.path())]);
    let read = async || {
        let answer = server.get("/data/plain/zarr/c/0").await;
        assert_eq!(answer.headers()["cache-control"], "no-cache");
        answer.bytes().await.unwrap().to_vec()
    };
    assert_eq!(read().await, [1, 2, 3, 4]);
    std::fs::write(place.path().join("c/0"), [5, 6, 7, 8]).unwrap();
    // It is looked at again after seconds, however often it is asked for.
    while read().await != [5, 6, 7, 8] {
        tokio::task::yield_now().await;
    }
}
