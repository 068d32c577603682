//! Clients that are slow, many, rude or gone: the server stays, and keeps nothing of them.

use chunkyard_server::metrics::Gauge;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::Server;

const ASK: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// What the server says until it ends the connection; it may do so in the middle of what we say.
async fn all(stream: &mut TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    drop(stream.read_to_end(&mut said).await);
    said
}

/// The status of an answer.
fn status(answer: &[u8]) -> u16 {
    let text = String::from_utf8_lossy(answer);
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("no answer of HTTP: {text:?}"))
}

/// Nothing is left of any client, and the server answers.
async fn sound(server: &Server) {
    for gauge in [Gauge::Requests, Gauge::Waiting, Gauge::Http, Gauge::Flight] {
        server.until(gauge, 0).await;
    }
    let mut stream = server.connect().await;
    stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").await.unwrap();
    assert_eq!(status(&all(&mut stream).await), 200);
    server.until(Gauge::Http, 0).await;
}

#[tokio::test]
async fn heads_that_do_not_come_end_their_connection() {
    let server = Server::with(&[], |config| config.limits.header_seconds = 1);
    let mut silent = Vec::new();
    let heads: [&[u8]; 4] =
        [b"", b"G", b"GET /healthz HTTP/1.1\r\nhost: loc", &ASK[..ASK.len() - 1]];
    for head in heads.repeat(5) {
        let mut stream = server.connect().await;
        stream.write_all(head).await.unwrap();
        silent.push(stream);
    }
    server.until(Gauge::Http, 0).await;
    for mut stream in silent {
        let said = all(&mut stream).await;
        assert!(said.is_empty() || status(&said) == 408, "{said:?}");
    }
    // One that says its head in time may say its body later, but not for ever.
    sound(&server).await;
}

#[tokio::test]
async fn bodies_that_do_not_come_are_given_up() {
    let server = Server::with(&[], |config| config.limits.request_seconds = 1);
    let mut stream = server.connect().await;
    let head = b"POST /data/x/none HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nhalf";
    stream.write_all(head).await.unwrap();
    // Refused at once or after the time: the connection ends, since the rest of the body would be taken for a head.
    assert!((400..500).contains(&status(&all(&mut stream).await)));
    sound(&server).await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_cut_off() {
    let server = Server::with(&[], |config| config.limits.stall_seconds = 1);
    let mut stream = server.connect().await;
    // Requests are sent and no answer is read, until all buffers between are full; then the server ends it.
    let asks = ASK.repeat(1000);
    while stream.write_all(&asks).await.is_ok() {}
    drop(stream);
    sound(&server).await;
}

#[tokio::test]
async fn connections_above_the_limit_wait_for_their_turn() {
    let server = Server::with(&[], |config| config.limits.connections = 8);
    let mut streams = Vec::new();
    for _ in 0..40 {
        let mut stream = server.connect().await;
        stream.write_all(ASK).await.unwrap();
        streams.push(stream);
    }
    for mut stream in streams {
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(status(&answer), 200);
        assert!(server.state.metrics().now(Gauge::Http) <= 8);
    }
    sound(&server).await;
}

#[tokio::test]
async fn clients_that_leave_are_forgotten() {
    let server = Server::start(&[]);
    for round in 0..60_usize {
        let mut stream = server.connect().await;
        stream.write_all(&ASK[..round.min(ASK.len())]).await.unwrap();
        if round % 3 == 0 {
            // A reset instead of an end.
            stream.set_zero_linger().unwrap();
        }
        drop(stream);
        let (_, flight) = server.flight.split_once("://").unwrap();
        let mut stream = TcpStream::connect(flight).await.unwrap();
        stream.write_all(&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..round % 24]).await.unwrap();
    }
    sound(&server).await;
}

#[tokio::test]
async fn rude_requests_are_refused() {
    let server = Server::start(&[]);
    let long = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "a".repeat(1 << 20));
    let heavy = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "a".repeat(1 << 20));
    let many = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(1000));
    let requests: [&[u8]; 16] = [
        b"\0\0\0\0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /\0 HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET / HTTP/7.1\r\nhost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a b\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\n bad: fold\r\n\r\n",
        b"GET ../../etc/passwd HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET /../../etc/passwd HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        b"GET /data/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        long.as_bytes(),
        heavy.as_bytes(),
        many.as_bytes(),
    ];
    for request in requests {
        let mut stream = server.connect().await;
        // The server may have refused before it has heard everything, and then the answer may be lost with the connection.
        let heard = stream.write_all(request).await.is_ok();
        let answer = all(&mut stream).await;
        let said = String::from_utf8_lossy(&request[..request.len().min(60)]);
        if heard && request.len() < 1000 {
            assert!((400..500).contains(&status(&answer)), "{said:?}");
        }
        assert!(!String::from_utf8_lossy(&answer).contains("root:"), "{said:?}");
    }
    sound(&server).await;
}

#[tokio::test]
async fn a_grpc_listener_shrugs_off_what_is_no_grpc() {
    let server = Server::start(&[]);
    let (_, flight) = server.flight.split_once("://").unwrap();
    for said in [ASK, b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"] {
        let mut stream = TcpStream::connect(flight).await.unwrap();
        stream.write_all(said).await.unwrap();
        all(&mut stream).await;
    }
    sound(&server).await;
}
