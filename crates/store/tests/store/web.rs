//! Reading from a web server, with a small one of our own on a free port.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use chunkyard_store::{Error, ErrorKind, Guard, Kind, Options, Store};

const BODY: &[u8] = b"0123456789";

/// Serves `BODY` at `/data/a b` for as long as the test runs.
fn serve() -> Store {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/data/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            std::thread::spawn(move || answer(connection));
        }
    });
    let mut options = Options::default();
    options.values.insert("retries".into(), "0".into());
    Store::open(&url, &options).unwrap()
}

fn answer(mut connection: TcpStream) -> Option<()> {
    let mut lines = BufReader::new(connection.try_clone().ok()?).lines();
    let request = lines.next()?.ok()?;
    let headers: Vec<String> =
        lines.map_while(|line| line.ok().filter(|line| !line.is_empty())).collect();
    let range = headers.iter().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let (start, end) = value.strip_prefix("bytes=")?.split_once('-')?;
        let known = name.eq_ignore_ascii_case("range");
        known.then_some((start.parse::<usize>().ok()?, end.parse::<usize>().ok()? + 1))
    });
    let path = request.split(' ').nth(1)?;
    let (status, extra, body) = match range {
        _ if path != "/data/a%20b" => ("404 Not Found", String::new(), &b""[..]),
        Some((start, _)) if start >= BODY.len() => {
            ("416 Range Not Satisfiable", String::new(), &b""[..])
        }
        Some((start, end)) => {
            let end = end.min(BODY.len());
            let extra = format!("Content-Range: bytes {start}-{}/{}\r\n", end - 1, BODY.len());
            ("206 Partial Content", extra, &BODY[start..end])
        }
        None => ("200 OK", String::new(), BODY),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"v1\"\r\nConnection: close\r\n{extra}\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes()).ok()?;
    if !request.starts_with("HEAD") {
        connection.write_all(body).ok()?;
    }
    Some(())
}

#[tokio::test]
async fn objects_and_ranges_are_read() {
    let store = serve();
    assert_eq!(store.kind(), Kind::ReadOnly);
    let object = store.get("a b").await.unwrap();
    assert_eq!(object.bytes, BODY);
    assert_eq!(object.meta.etag.as_deref(), Some("\"v1\""));
    assert_eq!(store.head("a b").await.unwrap().size, 10);
    assert_eq!(store.get_ranges("a b", &[7..10, 0..2], None).await.unwrap(), ["789", "01"]);
    assert!(matches!(store.get("other").await, Err(Error::NotFound { .. })));
}

#[tokio::test]
async fn a_range_beyond_the_end_is_corrupt() {
    let store = serve();
    for range in [8..12, 10..12, 50..60] {
        let error = store.get_range("a b", range).await.unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_guard_is_checked_and_silence_does_not_pass_it() {
    let store = serve();
    let guard = |etag: Option<&str>, not_newer_than_ms| Guard {
        etag: etag.map(str::to_owned),
        not_newer_than_ms,
    };
    let same = guard(Some("v1"), None);
    assert_eq!(store.get_ranges("a b", &[0..1, 2..3], Some(&same)).await.unwrap(), ["0", "2"]);
    for changed in [guard(Some("v0"), None), guard(None, Some(i64::MAX))] {
        let error = store.get_ranges("a b", &[0..1, 2..3], Some(&changed)).await.unwrap_err();
        assert!(matches!(error, Error::VirtualSourceChanged { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn nothing_can_be_written_or_listed() {
    let store = serve();
    let errors = [
        store.put("a", vec![]).await.err(),
        store.create("a", "x".into()).await.err(),
        store.delete(&["a".into()]).await.err(),
        store.list("").await.err(),
        store.list_dir("").await.err(),
        store.delete_dir("a").await.err(),
        store.link("a", "b").await.err(),
        store.exchange("a", "b").await.err(),
        store.begin("a").await.err(),
        store.lock("a").await.err(),
    ];
    for error in errors {
        assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Unsupported));
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_store_error() {
    let mut options = Options::default();
    options.values.insert("retries".into(), "0".into());
    let store = Store::open("http://127.0.0.1:1/data", &options).unwrap();
    assert_eq!(store.get("a").await.unwrap_err().kind(), ErrorKind::Store);
}
