//! A web server that answers as a test says: soundly, wrongly, or not at all.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// A request as it came in.
#[derive(Debug, Clone)]
pub struct Request {
    /// Path and query.
    pub target: String,
    /// The body, if it had a length.
    pub body: Vec<u8>,
}

/// What the server does about a request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Writes these bytes, head included, and closes the connection.
    Raw(Vec<u8>),
    /// Writes these bytes, and then nothing more for as long as the server lives.
    Silence(Vec<u8>),
}

impl Reply {
    /// A sound answer with a length.
    pub fn whole(status: &str, body: &[u8]) -> Self {
        Self::Raw(
            [head(status, &format!("Content-Length: {}", body.len())), body.to_vec()].concat(),
        )
    }

    /// A sound answer.
    pub fn ok(body: &[u8]) -> Self {
        Self::whole("200 OK", body)
    }

    /// A sound answer in chunks, as a server sends what it does not know the length of.
    pub fn chunked(body: &[u8]) -> Self {
        Self::Raw([head("200 OK", CHUNKED), in_chunks(body), b"0\r\n\r\n".to_vec()].concat())
    }

    /// An answer that promises all of the body and has only its beginning.
    pub fn cut(body: &[u8], at: usize) -> Self {
        let promise = format!("Content-Length: {}", body.len());
        Self::Raw([head("200 OK", &promise), body[..at].to_vec()].concat())
    }

    /// An answer in chunks that breaks off between two of them, without the mark of the end.
    pub fn cut_chunked(body: &[u8], at: usize) -> Self {
        Self::Raw([head("200 OK", CHUNKED), in_chunks(&body[..at])].concat())
    }

    /// An answer that ends where the connection does, as HTTP 1.0 had it.
    pub fn endless(body: &[u8]) -> Self {
        Self::Raw(
            [head("200 OK", "Content-Type: application/octet-stream"), body.to_vec()].concat(),
        )
    }
}

const CHUNKED: &str = "Transfer-Encoding: chunked";

fn head(status: &str, extra: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\n{extra}\r\n\r\n").into_bytes()
}

fn in_chunks(body: &[u8]) -> Vec<u8> {
    let chunk = |part: &[u8]| [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat();
    body.chunks(1000).flat_map(chunk).collect()
}

/// A server on a free port of this machine.
#[derive(Debug)]
pub struct WebServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl WebServer {
    /// Starts a server that answers each request, the n-th from 0, as told. It ends with the process.
    pub fn start(answer: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (answer, seen) = (Arc::new(answer), requests.clone());
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (answer, seen) = (answer.clone(), seen.clone());
                std::thread::spawn(move || serve(connection, &*answer, &seen));
            }
        });
        Self { address, requests }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests since the last call.
    pub fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Answers one request. A client that has gone away is no failure of the server.
fn serve(
    mut connection: TcpStream,
    answer: &(impl Fn(usize, &Request) -> Reply + ?Sized),
    seen: &Mutex<Vec<Request>>,
) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let target = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok()?;
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let request = Request { target, body };
    let number = {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(request.clone());
        seen.len() - 1
    };
    match answer(number, &request) {
        Reply::Raw(bytes) => {
            connection.write_all(&bytes).ok()?;
            connection.shutdown(Shutdown::Write).ok()
        }
        Reply::Silence(bytes) => {
            connection.write_all(&bytes).ok()?;
            loop {
                std::thread::park();
            }
        }
    }
}
