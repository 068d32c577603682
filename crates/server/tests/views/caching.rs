//! Versions, validators, ranges, and how long answers may be kept.

use reqwest::{Method, StatusCode};

use super::{commit, first_chunk, repository};
use crate::harness::Server;

const CHUNK: &str = "group/numbers/c/0/0";

fn header<'a>(response: &'a reqwest::Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_commit_is_seen_at_once_and_older_versions_stay() {
    let place = tempfile::tempdir().unwrap();
    let repository = repository(place.path()).await;
    let older = commit(&repository, 100).await;
    let server = Server::start(&[("numbers", place.path())]);
    let at = async |version: &str| {
        let answer = server.get(&format!("/data/numbers{version}/zarr/{CHUNK}")).await;
        let caching = header(&answer, "cache-control").to_owned();
        let tag = header(&answer, "etag").to_owned();
        (answer.bytes().await.unwrap().to_vec(), caching, tag)
    };
    let branch = at("").await;
    assert_eq!((branch.0.clone(), &*branch.1), (first_chunk(100), "no-cache"));
    let newer = commit(&repository, 500).await;
    for version in ["", "@main"] {
        let (bytes, caching, tag) = at(version).await;
        assert_eq!((bytes, &*caching), (first_chunk(500), "no-cache"), "{version}");
        assert_ne!(tag, branch.2);
    }
    for (version, first) in [(&older, 100), (&newer, 500)] {
        // Twice: once opened by the name, once found by it.
        for _ in 0..2 {
            let (bytes, caching, _) = at(&format!("@{version}")).await;
            assert_eq!(bytes, first_chunk(first));
            assert_eq!(caching, "public, max-age=31536000, immutable");
        }
        let (bytes, caching, _) = at(&format!("@{}", &version[..8])).await;
        assert_eq!((bytes, &*caching), (first_chunk(first), "no-cache"));
    }
    let unknown = server.get(&format!("/data/numbers@absent/zarr/{CHUNK}")).await;
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn tags_of_refs_with_slashes_are_written_with_percents() {
    let place = tempfile::tempdir().unwrap();
    let repository = repository(place.path()).await;
    commit(&repository, 7).await;
    let version = chunkyard_engine::repo::Version::Default;
    repository.create_tag("v1+x", &version, false).await.unwrap();
    let server = Server::start(&[("numbers", place.path())]);
    for name in ["v1+x", "v1%2Bx", "v1%2bx"] {
        let answer = server.get(&format!("/data/numbers@{name}/zarr/{CHUNK}")).await;
        assert_eq!(answer.status(), StatusCode::OK, "{name}");
    }
    // Once: the percent sign of a percent sign is a percent sign.
    let answer = server.get(&format!("/data/numbers@v1%252Bx/zarr/{CHUNK}")).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_a_client_has_is_not_sent_again() {
    let place = tempfile::tempdir().unwrap();
    let repository = repository(place.path()).await;
    commit(&repository, 1).await;
    let server = Server::start(&[("numbers", place.path())]);
    for key in [CHUNK, "zarr.json"] {
        let url = server.at(&format!("/data/numbers/zarr/{key}"));
        let tag = server.client.get(&url).send().await.unwrap().headers()["etag"].clone();
        let tag = tag.to_str().unwrap();
        for (known, status) in [
            (tag.to_owned(), StatusCode::NOT_MODIFIED),
            (format!("\"other\", W/{tag}"), StatusCode::NOT_MODIFIED),
            ("*".to_owned(), StatusCode::NOT_MODIFIED),
            ("\"other\"".to_owned(), StatusCode::OK),
        ] {
            let request = server.client.get(&url).header("if-none-match", &known);
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), status, "{key} {known}");
            assert_eq!(header(&answer, "etag"), tag);
            let empty = answer.bytes().await.unwrap().is_empty();
            assert_eq!(empty, status == StatusCode::NOT_MODIFIED);
        }
    }
}

#[tokio::test]
async fn ranges_are_parts_of_the_content() {
    let place = tempfile::tempdir().unwrap();
    let repository = repository(place.path()).await;
    commit(&repository, 1).await;
    let server = Server::start(&[("numbers", place.path())]);
    let url = server.at(&format!("/data/numbers/zarr/{CHUNK}"));
    let whole = first_chunk(1);
    for (range, expected, said) in [
        ("bytes=2-5", Some(2..6), "bytes 2-5/32"),
        ("bytes=30-", Some(30..32), "bytes 30-31/32"),
        ("bytes=-2", Some(30..32), "bytes 30-31/32"),
        ("bytes=0-999", Some(0..32), "bytes 0-31/32"),
        ("bytes=32-", None, "bytes */32"),
        ("bytes=-0", None, "bytes */32"),
    ] {
        let answer = server.client.get(&url).header("range", range).send().await.unwrap();
        assert_eq!(header(&answer, "content-range"), said, "{range}");
        let status = answer.status();
        let bytes = answer.bytes().await.unwrap();
        match expected {
            Some(range) => {
                assert_eq!(status, StatusCode::PARTIAL_CONTENT);
                assert_eq!(bytes, whole[range]);
            }
            None => {
                assert_eq!(status, StatusCode::RANGE_NOT_SATISFIABLE);
                assert!(bytes.is_empty());
            }
        }
    }
    for range in ["bytes=0-1,4-5", "bytes=5-2", "items=0-1", "nonsense"] {
        let answer = server.client.get(&url).header("range", range).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{range}");
        assert_eq!(answer.bytes().await.unwrap(), whole, "{range}");
    }
    let head = server.client.request(Method::HEAD, &url).send().await.unwrap();
    assert_eq!((head.status(), header(&head, "content-length")), (StatusCode::OK, "32"));
    assert_eq!(header(&head, "accept-ranges"), "bytes");
    assert!(head.bytes().await.unwrap().is_empty());
}

#[tokio::test]
async fn documents_are_compressed_for_those_who_ask_and_chunks_are_not() {
    let place = tempfile::tempdir().unwrap();
    let repository = repository(place.path()).await;
    commit(&repository, 1).await;
    let server = Server::start(&[("numbers", place.path())]);
    let ask = async |key: &str, coding: &str| {
        let url = server.at(&format!("/data/numbers/zarr/{key}"));
        server.client.get(url).header("accept-encoding", coding).send().await.unwrap()
    };
    let packed = ask("zarr.json", "gzip, br").await;
    assert_eq!(header(&packed, "content-encoding"), "gzip");
    assert_eq!(header(&packed, "vary"), "accept-encoding");
    let packed = packed.bytes().await.unwrap();
    let plain = ask("zarr.json", "identity").await;
    assert_eq!(header(&plain, "content-encoding"), "");
    assert_eq!(header(&plain, "vary"), "accept-encoding");
    let plain = plain.bytes().await.unwrap();
    assert_eq!(chunkyard_array::codec::gunzip(&packed, 1 << 20).unwrap(), plain);
    assert_eq!(header(&ask(CHUNK, "gzip").await, "content-encoding"), "");
}

#[tokio::test]
async fn with_tokens_answers_are_kept_by_their_readers_alone() {
    let place = tempfile::tempdir().unwrap();
    let repository = repository(place.path()).await;
    let id = commit(&repository, 1).await;
    let server = Server::with(&[("numbers", place.path())], |config| {
        let token = chunkyard_server::access::Token {
            token: "secret".to_owned(),
            role: chunkyard_server::access::Role::Read,
        };
        config.tokens.push(token);
    });
    let path = format!("/data/numbers@{id}/zarr/{CHUNK}");
    assert_eq!(server.get(&path).await.status(), StatusCode::UNAUTHORIZED);
    let request = server.client.get(server.at(&path)).bearer_auth("secret");
    let answer = request.send().await.unwrap();
    assert_eq!(header(&answer, "cache-control"), "private, max-age=31536000, immutable");
}
