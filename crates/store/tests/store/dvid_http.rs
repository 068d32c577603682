//! A DVID server that answers as one did, and one that does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use chunkyard_store::dvid_http::{Asked, BlockName, DvidBackend, DvidClient, Instance};
use chunkyard_store::{Backend, ChunkRef, Error, ErrorKind, Fetcher, Kind, Options, Result, Store};
use chunkyard_test_support::dvid::Recorded;
use chunkyard_test_support::web::{Reply, Request, WebServer};
use futures::TryStreamExt;
use url::Url;

/// A server that answers by `answer`, and its blocks.
fn serve(
    options: &[(&str, &str)],
    answer: impl Fn(&Recorded, usize, &Request) -> Reply + Send + Sync + 'static,
) -> (WebServer, DvidBackend) {
    let recorded = Recorded::open("basic");
    let (uuid, data) = (recorded.uuid.as_str().into(), recorded.data.as_str().into());
    let server = WebServer::start(move |number, request| answer(&recorded, number, request));
    let url = Url::parse(&format!("http://{}", server.address())).unwrap();
    let values = options.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let client = DvidClient::new(&url, &Options { values, ..Options::default() }).unwrap();
    let instance =
        Instance { uuid, data, block_shape: [64; 3], record_bytes_max: 1 << 20, joined: false };
    (server, DvidBackend::new(client, instance))
}

/// The names of all places for blocks at scale 0, stored or not.
fn names() -> Vec<Arc<str>> {
    let name = |n: i32| BlockName { scale: 0, zyx: [n / 12, n / 4 % 3, n % 4] };
    (0..60).map(|n| name(n).to_string().into()).collect()
}

/// What DVID has there.
fn expected(names: &[Arc<str>]) -> Vec<Option<Bytes>> {
    let records = Recorded::open("basic").records(0);
    let bytes = |name: &Arc<str>| {
        let record = records.get(&BlockName::parse(name).unwrap().xyz())?;
        Some(Bytes::copy_from_slice(&record[16..]))
    };
    names.iter().map(bytes).collect()
}

async fn read(backend: &DvidBackend) -> Result<Vec<Option<Bytes>>> {
    let store = Store::from_backend("dvid", Arc::new(backend.clone()));
    let refs: Vec<_> = names().into_iter().map(|path| ChunkRef::Whole { path }).collect();
    Fetcher::within(&store).fetch(&refs.iter().collect::<Vec<_>>()).await
}

const ONCE: &[(&str, &str)] = &[("retries", "0")];

#[tokio::test]
async fn many_blocks_are_few_requests_and_absent_ones_are_known() {
    let (server, backend) = serve(ONCE, |recorded, _, request| recorded.reply(request));
    let found = read(&backend).await.unwrap();
    assert_eq!(found, expected(&names()));
    assert!(found.iter().any(Option::is_none) && found.iter().any(Option::is_some));
    assert_eq!(server.take_requests().len(), 2, "60 blocks, 32 to a request");

    assert_eq!(backend.kind(), Kind::ReadOnly);
    let (there, bytes) = names().into_iter().zip(found).find(|(_, bytes)| bytes.is_some()).unwrap();
    let bytes = bytes.unwrap();
    assert_eq!(backend.get(&there).await.unwrap().bytes, bytes);
    assert_eq!(backend.head(&there).await.unwrap().size, bytes.len() as u64);
    let parts = backend.get_ranges(&there, &[2..5, 0..1], None).await.unwrap();
    assert_eq!(parts, [bytes.slice(2..5), bytes.slice(0..1)]);
    assert!(backend.get_ranges(&there, &[0..1, 0..1 << 40], None).await.is_err());
    for absent in ["s0/0_0_99", "zarr.json"] {
        let error = backend.get(absent).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{absent}: {error}");
    }
    assert_eq!(backend.get("../x").await.unwrap_err().kind(), ErrorKind::Invalid);
    for error in [
        backend.put("s0/0_0_0", vec![]).await.unwrap_err(),
        backend.delete(&["s0/0_0_0".into()]).await.unwrap_err(),
        backend.list_dir("").await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

#[tokio::test]
async fn an_answer_with_a_length_is_complete_too() {
    let (_server, backend) =
        serve(ONCE, |recorded, _, request| Reply::ok(&recorded.body(request).unwrap()));
    assert_eq!(read(&backend).await.unwrap(), expected(&names()));
}

#[tokio::test]
async fn an_answer_that_is_cut_anywhere_is_never_taken_for_complete() {
    // Between two records the rest looks like blocks that are not stored.
    let records = Recorded::open("basic").records(0);
    let first = records[&[1, 0, 0]].len();
    for (place, at) in [("nothing", 0), ("a record", first), ("half a record", first + 100)] {
        for chunked in [false, true] {
            let (_server, backend) = serve(ONCE, move |recorded, _, request| {
                let body = recorded.body(request).unwrap();
                match chunked {
                    true => Reply::cut_chunked(&body, at),
                    false => Reply::cut(&body, at),
                }
            });
            let error = read(&backend).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Store, "{place}, chunked {chunked}: {error}");
        }
    }
}

#[tokio::test]
async fn an_answer_whose_end_is_the_end_of_the_connection_is_refused() {
    let (_server, backend) =
        serve(&[], |recorded, _, request| Reply::endless(&recorded.body(request).unwrap()));
    let error = read(&backend).await.unwrap_err();
    assert!(causes(&error).contains("neither a length nor an end mark"), "{}", causes(&error));
}

#[tokio::test]
async fn after_a_broken_answer_only_the_rest_is_asked_for() {
    let (server, backend) = serve(&[("retries", "1")], |recorded, number, request| {
        let records = recorded.blocks(&request.target);
        match number {
            0 => Reply::cut(&records.concat(), records[..3].concat().len() + 50),
            _ => recorded.reply(request),
        }
    });
    // With a hole, so that it is no box.
    let names: Vec<Arc<str>> = names().into_iter().skip(1).step_by(2).collect();
    assert_eq!(backend.get_all(&names).await.unwrap(), expected(&names));
    let asked: Vec<usize> = server
        .take_requests()
        .iter()
        .map(|request| request.target.split('&').next().unwrap().split(',').count() / 3)
        .collect();
    assert_eq!(asked, [30, 27]);
}

#[tokio::test]
async fn a_box_goes_on_after_each_broken_answer_too() {
    // Every answer is cut one record later than the last: each attempt brings something new.
    let (server, backend) = serve(&[("retries", "1")], |recorded, number, request| {
        let records = recorded.blocks(&request.target);
        match number {
            0..4 => Reply::cut_chunked(&records.concat(), records[..=number].concat().len()),
            _ => recorded.reply(request),
        }
    });
    let start = [0, 0, 0];
    let found = backend.blocks(0, Asked::Box { start, size: [5, 3, 4] });
    let found: Vec<([i32; 3], Bytes)> = found.try_collect().await.unwrap();
    assert_eq!(found.len(), Recorded::open("basic").records(0).len());
    assert_eq!(server.take_requests().len(), 5);
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again() {
    for status in ["503 Service Unavailable", "500 Internal Server Error", "429 Too Many Requests"]
    {
        let (_server, backend) =
            serve(&[("retries", "2")], move |recorded, number, request| match number {
                0 => Reply::whole(status, b"busy"),
                1 => Reply::Raw(Vec::new()),
                _ => recorded.reply(request),
            });
        let name = names()[1].clone();
        let expected = expected(std::slice::from_ref(&name));
        assert_eq!(backend.get_all(&[name]).await.unwrap(), expected, "{status}");
    }
    let (server, backend) =
        serve(&[("retries", "2")], |_, _, _| Reply::whole("503 Service Unavailable", b"busy"));
    let error = backend.get("s0/0_0_0").await.unwrap_err();
    assert!(
        causes(&error).contains("503") && causes(&error).contains("busy"),
        "{}",
        causes(&error)
    );
    assert_eq!(server.take_requests().len(), 3);
}

#[tokio::test]
async fn a_refusal_is_passed_on_in_the_words_of_the_server_and_not_repeated() {
    let (server, backend) = serve(&[], |_, _, _| {
        Reply::whole("400 Bad Request", b"found multiple kv for key\n(/api/node).")
    });
    let error = backend.get("s0/0_0_0").await.unwrap_err();
    assert!(causes(&error).contains("found multiple kv for key (/api/node)"), "{}", causes(&error));
    assert_eq!(server.take_requests().len(), 1);
}

/// An answer with more or other things than were asked for.
type Bend = fn(&Recorded, &str) -> Vec<u8>;

#[tokio::test]
async fn whatever_was_not_asked_for_is_corrupt() {
    let bends: [(&str, Bend); 8] = [
        ("a block more", |recorded, target| {
            let far = recorded.records(0).into_iter().find(|([_, _, z], _)| *z == 4);
            let (_, other) = far.unwrap();
            [recorded.blocks(target).concat(), other].concat()
        }),
        ("a block twice", |recorded, target| {
            let blocks = recorded.blocks(target);
            [blocks.concat(), blocks[0].clone()].concat()
        }),
        ("another scale", |recorded, _| {
            let mut blocks: Vec<_> = recorded.records(1).into_iter().collect();
            blocks.sort();
            blocks.into_iter().flat_map(|(_, record)| record).collect()
        }),
        ("axes turned round", |recorded, target| {
            let mut body = recorded.blocks(target).concat();
            body[..12].rotate_left(4);
            body
        }),
        ("bytes behind", |recorded, target| [&recorded.blocks(target).concat()[..], b"x"].concat()),
        ("words behind", |recorded, target| {
            [&recorded.blocks(target).concat()[..], b"unable to GET data: found multiple kv"]
                .concat()
        }),
        ("a length beyond the limit", |recorded, target| {
            let mut body = recorded.blocks(target).concat();
            body[12..16].copy_from_slice(&((1 << 20) + 1u32).to_le_bytes());
            body
        }),
        ("a record without bytes", |recorded, target| {
            let mut body = recorded.blocks(target)[0].clone();
            body[12..16].fill(0);
            body.truncate(16);
            body
        }),
    ];
    for (what, bend) in bends {
        let (server, backend) = serve(&[], move |recorded, _, request| {
            Reply::chunked(&bend(recorded, &request.target))
        });
        let names: Vec<Arc<str>> = names().into_iter().take(24).collect();
        let error = backend.get_all(&names).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
        assert!(error.to_string().contains("/api/node/"), "{what}: {error}");
        assert_eq!(server.take_requests().len(), 1, "{what} would be the same again");
    }
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let timeout = [("timeout", "50ms"), ("retries", "0")];
    let (_server, backend) = serve(&timeout, |_, _, _| Reply::Silence(Vec::new()));
    assert_eq!(read(&backend).await.unwrap_err().kind(), ErrorKind::Store);
    // Silence in the middle of an answer.
    let (_server, backend) = serve(&timeout, |recorded, _, request| {
        let Reply::Raw(mut bytes) = recorded.reply(request) else { unreachable!() };
        bytes.truncate(bytes.len() / 2);
        Reply::Silence(bytes)
    });
    assert_eq!(read(&backend).await.unwrap_err().kind(), ErrorKind::Store);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = Arc::new(AtomicUsize::new(0));
    let count = elsewhere.clone();
    let other = WebServer::start(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        Reply::ok(b"")
    });
    let to = format!("http://{}/", other.address());
    let (_server, backend) = serve(&[], move |_, _, _| {
        let head = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
        Reply::Raw(head.into_bytes())
    });
    let error = read(&backend).await.unwrap_err();
    assert!(causes(&error).contains("not followed"), "{}", causes(&error));
    assert_eq!(elsewhere.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_web_page_and_packed_answers_are_refused() {
    for (extra, words) in
        [("Content-Type: text/html; charset=utf-8", "web page"), ("Content-Encoding: gzip", "gzip")]
    {
        let (_server, backend) = serve(&[], move |_, _, _| {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{extra}\r\n\r\n");
            Reply::Raw(head.into_bytes())
        });
        let error = read(&backend).await.unwrap_err();
        assert!(causes(&error).contains(words), "{}", causes(&error));
    }
}

#[tokio::test]
async fn blocks_of_a_joined_version_are_asked_for_by_boxes_alone() {
    let (server, backend) = serve(ONCE, |recorded, _, request| recorded.reply(request));
    let instance = Instance { joined: true, ..backend.instance().clone() };
    let joined = DvidBackend::new(backend.client().clone(), instance);
    let names: Vec<Arc<str>> = names().into_iter().skip(1).step_by(2).collect();
    assert_eq!(joined.get_all(&names).await.unwrap(), expected(&names));
    let requests = server.take_requests();
    assert!(requests.iter().all(|request| request.target.contains("/blocks/64_64_64/")));
    assert_eq!(requests.len(), names.len());
}

#[tokio::test]
async fn boxes_are_probed_for_any_block() {
    let (_server, backend) = serve(ONCE, |recorded, _, request| recorded.reply(request));
    assert!(backend.is_occupied(0, [0, 0, 0], [5, 3, 4]).await.unwrap());
    assert!(!backend.is_occupied(0, [0, 0, 0], [1, 1, 1]).await.unwrap());
    let (_server, broken) = serve(ONCE, |_, _, _| Reply::cut_chunked(b"", 0));
    assert!(broken.is_occupied(0, [0, 0, 0], [1, 1, 1]).await.is_err(), "silence is not absence");
}

#[tokio::test]
async fn indices_go_on_where_they_broke_off() {
    let (server, backend) = serve(&[("retries", "1")], |recorded, number, request| {
        let body = recorded.body(request).unwrap();
        match number {
            0 => Reply::cut(&body, body.len() / 2),
            _ => Reply::chunked(&body),
        }
    });
    let recorded = Recorded::open("basic");
    let mut labels: Vec<u64> = recorded.labels().iter().map(|(label, _)| *label).collect();
    labels.push(999_999_999_999);
    let found: Vec<_> = backend.indices(labels.clone()).unwrap().try_collect().await.unwrap();
    let records = recorded.indices();
    for ((label, value), asked) in found.iter().zip(&labels) {
        assert_eq!(label, asked);
        let stored = &records[label][16..];
        assert_eq!(value.as_deref().unwrap_or_default(), stored);
    }
    assert_eq!(found.len(), labels.len());
    assert_eq!(found.last().unwrap().1, None);
    assert_eq!(server.take_requests().len(), 2);

    let (_server, failing) = serve(&[], |recorded, _, request| {
        let body = recorded.body(request).unwrap();
        Reply::chunked(&[&body[..], &[0; 16]].concat())
    });
    let failed = failing.indices(labels[..2].to_vec()).unwrap().try_collect::<Vec<_>>().await;
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn labels_go_on_where_they_broke_off() {
    let (_server, backend) = serve(&[("retries", "1")], |recorded, number, request| {
        let body = recorded.body(request).unwrap();
        match number {
            0 => Reply::cut(&body, 16 * 100 + 3),
            _ => Reply::chunked(&body),
        }
    });
    let found: Vec<_> = backend.labels(0, true).try_collect().await.unwrap();
    let expected = Recorded::open("basic").labels();
    assert_eq!(found, expected.into_iter().map(|(l, n)| (l, Some(n))).collect::<Vec<_>>());

    let (_server, failing) = serve(&[], |recorded, _, request| {
        Reply::chunked(&[&recorded.body(request).unwrap()[..], &[0; 32]].concat())
    });
    let failed: Result<Vec<_>> = failing.labels(0, false).try_collect().await;
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn a_mapping_is_asked_for_again_only_before_it_began() {
    let mapping = || Recorded::open("edits").file("mappings.bin");
    let (_server, backend) = serve(&[("retries", "1")], move |_, number, _| match number {
        0 => Reply::whole("503 Service Unavailable", b""),
        1 => Reply::chunked(&mapping()),
        _ => Reply::cut(&mapping(), 160),
    });
    let whole: Vec<_> = backend.mapping().try_collect().await.unwrap();
    assert_eq!(whole.len(), 832 / 16);
    let cut: Result<Vec<_>> = backend.mapping().try_collect().await;
    assert_eq!(cut.unwrap_err().kind(), ErrorKind::Store);
    // Servers that know no binary form answer with text.
    let (_server, backend) =
        serve(ONCE, |_, _, _| Reply::chunked(&Recorded::open("edits").file("mappings.txt")));
    let mut text: Vec<(u64, u64)> = backend.mapping().try_collect().await.unwrap();
    let mut whole = whole;
    text.sort_unstable();
    whole.sort_unstable();
    assert_eq!(text, whole);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_store_error() {
    let url = Url::parse("http://127.0.0.1:1").unwrap();
    let client = DvidClient::new(&url, &Options::default()).unwrap();
    let error = client.get(&client.url(&["api"], ""), None, 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store);
    let (_server, backend) = serve(&[], |_, _, _| Reply::ok(b"12345678901"));
    let client = backend.client();
    let error = client.get(&client.url(&["api"], ""), None, 10).await.unwrap_err();
    assert!(causes(&error).contains("more than 10 bytes"), "{}", causes(&error));
}

/// An error with all its causes.
fn causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
