//! Requests that are wrong: each has a status and a reason, and the server goes on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::support::{ask, four_bodies, get, repository};
use crate::harness::Server;

const NODE: &str = "/api/node/main/seg";

async fn refused(server: &Server, method: &str, path: &str, body: impl Into<reqwest::Body>) -> u16 {
    let (status, bytes) = ask(server, method, &format!("{NODE}/{path}"), body).await;
    assert!((400..600).contains(&status), "{method} {path}: {status}");
    if method != "HEAD" {
        let answer: Value = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| panic!("{method} {path}: {}", String::from_utf8_lossy(&bytes)));
        assert!(!answer["error"].as_str().unwrap().is_empty(), "{method} {path}");
    }
    status
}

/// The status of a request that says how long its body is, and has not sent it.
fn declared(server: &Server, method: &str, path: &str, length: usize) -> u16 {
    let host = server.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let head = format!(
        "{method} {NODE}/{path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    std::str::from_utf8(&answer[9..]).unwrap().parse().unwrap()
}

#[tokio::test]
async fn positions_that_there_are_not_are_refused() {
    let (directory, repo) = repository().await;
    four_bodies(&repo).await;
    let server = Server::with(&[("brain", directory.path())], |config| {
        config.limits.answer_bytes_max = 1 << 20;
    });
    for path in [
        "raw/0_1_2/64_64_64/a_b_c",
        "raw/0_1_2/64_64/0_0",
        "raw/0_1_2/0_64_64/0_0_0",
        "raw/0_1_2/-64_64_64/0_0_0",
        "raw/0_1_2/4294967296_1_1/0_0_0",
        "raw/0_1_2/2147483647_2147483647_2147483647/0_0_0",
        "raw/0_1_2/64_64_64/2147483647_0_0",
        "raw/0_1_2/64_64_64/99999999999999999999_0_0",
        // More than an answer may have.
        "raw/0_1_2/64_64_64/0_0_0",
        "raw/0_1_2/1025_1_1/0_0_0?compression=google",
        "raw/0_1_2/16_16_16/0_0_0?compression=zip",
        "raw/0_1_2/16_16_16/0_0_0?scale=3",
        "raw/0_1_2/16_16_16/0_0_0?scale=256",
        "raw/0_1_2/16_16_16/0_0_0?scale=-1",
        "raw/0_1_2/16_16_16/0_0_0?roi=x",
        "raw/0_1/16_16/0_0_0",
        "raw/xy/16_16_1/0_0_0",
        "blocks/16_16_16/1_0_0",
        "blocks/15_16_16/0_0_0",
        "blocks/16_16_16/0_0_0?compression=zip",
        "blocks/16_16_16/2147483632_0_0",
        "blocks/16_16_16/0_0_0?scale=99",
        "specificblocks",
        "specificblocks?blocks=1,2",
        "specificblocks?blocks=1,2,x",
        "specificblocks?blocks=1,2,4294967296",
        "label/1_2",
        "label/1_2_3_4",
        "label/%00",
        "label/1_2_3?scale=9",
        "size/0",
        "size/-1",
        "size/18446744073709551616",
        "sizes",
        "index/x",
        "index/0",
        "supervoxels/0",
        "sparsevol/0",
        "sparsevol/1?minx=a",
        "sparsevol/1?scale=7",
        "listlabels?start=x",
        "listlabels?number=-1",
        "mapping",
        "labels",
        "indices",
        "indices-compressed",
    ] {
        let status = refused(&server, "GET", path, "").await;
        assert!([400, 404].contains(&status), "{path}: {status}");
    }
    for path in [
        "sparsevol/1?format=blocks",
        "sparsevol/1?compression=gzip",
        "mutations",
        "nextlabel",
        "proximity/1,2",
        "index/1?mutid=4",
    ] {
        assert_eq!(refused(&server, "GET", path, "").await, 501, "{path}");
    }
    get(&server, &format!("{NODE}/info"), "").await;
}

#[tokio::test]
async fn bodies_of_requests_that_make_no_sense_are_refused() {
    let (directory, repo) = repository().await;
    four_bodies(&repo).await;
    let server = Server::with(&[("brain", directory.path())], |config| {
        config.limits.body_bytes_max = 1 << 20;
    });
    let deep = "[".repeat(100_000);
    for path in ["labels", "mapping", "sizes", "indices", "indices-compressed"] {
        for body in [
            "", "{", "{}", "[1,", "[-1]", "[1.5]", "[\"1\"]", "[[1,2]]", "null", "[1e99]", &deep,
            "\u{0}",
        ] {
            let status = refused(&server, "GET", path, body.to_owned()).await;
            assert_eq!(status, 400, "{path} {body:.20}");
        }
    }
    for path in ["labels", "sizes"] {
        assert_eq!(declared(&server, "GET", path, 17 << 20), 413, "{path}");
    }
    assert_eq!(refused(&server, "GET", "labels", "[[1,2,99999999999]]").await, 400);
    let many = format!("[{}1]", "1,".repeat(50_000));
    assert_eq!(refused(&server, "GET", "indices", many).await, 400);
    for (path, body, status) in [
        ("merge", "", 400),
        ("merge", "[]", 400),
        ("merge", "[1]", 400),
        ("merge", "[1,1]", 400),
        ("merge", "[0,1]", 404),
        ("merge", "[1,0]", 404),
        ("merge", "[1,99]", 404),
        ("merge", "[99,1]", 404),
        ("merge", "{\"a\":1}", 400),
        ("cleave/1", "[]", 400),
        ("cleave/1", "[1]", 400),
        ("cleave/1", "[2]", 400),
        ("cleave/99", "[1]", 404),
        ("cleave/0", "[1]", 400),
        ("cleave/x", "[1]", 400),
        ("renumber", "[1]", 400),
        ("renumber", "[0,1]", 400),
        ("renumber", "[9,99]", 404),
        ("split-supervoxel/1", "", 400),
        ("split-supervoxel/1?split=x", "", 400),
        ("split-supervoxel/0", "", 400),
        ("split/1", "short", 400),
        ("mappings", "\u{0}", 400),
        ("mappings", "\n\u{7f}", 400),
    ] {
        assert_eq!(refused(&server, "POST", path, body).await, status, "{path} {body:?}");
    }
    // Sparse volumes: a count that is not there, other axes, negative places, lengths that overflow.
    let run = |count: u32, axes: u8, words: &[i32]| {
        let mut out = vec![0, axes, 0, 0, 0, 0, 0, 0];
        out.extend(count.to_le_bytes());
        words.iter().for_each(|word| out.extend(word.to_le_bytes()));
        out
    };
    for body in [
        run(u32::MAX, 3, &[0, 0, 0, 1]),
        run(2, 3, &[0, 0, 0, 1]),
        run(1, 2, &[0, 0, 0, 1]),
        run(1, 3, &[-1, 0, 0, 1]),
        run(1, 3, &[0, 0, 0, -1]),
        run(1, 3, &[0, 0, 0, i32::MAX]),
        run(1, 3, &[i32::MAX, i32::MAX, i32::MAX, i32::MAX]),
        run(0, 3, &[]),
        // All of it.
        run(1, 3, &[0, 0, 0]),
    ] {
        assert_eq!(refused(&server, "POST", "split-supervoxel/1", body).await, 400);
    }
    assert_eq!(declared(&server, "POST", "split-supervoxel/1", 2 << 20), 413);
    // Ids that are taken.
    let one = || run(1, 3, &[0, 0, 0, 1]);
    for query in ["split=2", "remain=3", "split=7&remain=7", "split=0"] {
        let path = format!("split-supervoxel/1?{query}");
        assert_eq!(refused(&server, "POST", &path, one()).await, 400, "{query}");
    }
    for path in ["blocks", "raw/0_1_2/16_16_16/0_0_0", "index/1", "indices", "ingest-supervoxels"] {
        assert_eq!(refused(&server, "POST", path, "").await, 501, "{path}");
    }
    // Edits of nothing still need something to edit.
    for (path, body) in [("mappings", ""), ("renumber", "[]")] {
        let (status, _) = ask(&server, "POST", &format!("/api/node/main/other/{path}"), body).await;
        assert_eq!(status, 404, "{path}");
    }
    // Nothing has changed.
    assert_eq!(get(&server, &format!("{NODE}/mappings"), "").await, b"");
    assert_eq!(get(&server, &format!("{NODE}/sizes"), "[1,2,3,4]").await, b"[4096,4096,4096,4096]");
    assert_eq!(repo.state().await.unwrap().snapshots.len(), 2);
}

#[tokio::test]
async fn other_methods_and_other_paths_are_refused() {
    let (directory, repo) = repository().await;
    four_bodies(&repo).await;
    let server = Server::start(&[("brain", directory.path())]);
    for (method, path) in
        [("POST", "info"), ("PUT", "merge"), ("GET", "merge"), ("DELETE", "index/1")]
    {
        let (status, _) = ask(&server, method, &format!("{NODE}/{path}"), "").await;
        assert_eq!(status, 405, "{method} {path}");
    }
    let (status, _) = ask(&server, "GET", &format!("{NODE}/nothing"), "").await;
    assert_eq!(status, 404);
}
