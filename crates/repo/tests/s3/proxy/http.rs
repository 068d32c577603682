//! The little HTTP/1.1 that passing requests on needs.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

const END: &[u8] = b"\r\n\r\n";

/// A request with its body.
pub(super) struct Request {
    /// Request line and headers, without the headers about the connection and without the empty
    /// line.
    head: String,
    body: Vec<u8>,
}

impl Request {
    /// The next request of a connection; nothing when the client has closed it.
    pub(super) fn read(client: &mut TcpStream) -> io::Result<Option<Self>> {
        let mut input = BufReader::new(client);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if input.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            if line == "\r\n" {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            if !name.eq_ignore_ascii_case("connection") {
                head.push_str(&line);
            }
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body)?;
        Ok(Some(Self { head, body }))
    }

    /// Method and path.
    pub(super) fn line(&self) -> String {
        self.head.split(' ').take(2).collect::<Vec<_>>().join(" ")
    }

    /// Sends it to the server and returns the whole reply.
    pub(super) fn forward(&self, server: &str) -> io::Result<Vec<u8>> {
        let mut server = TcpStream::connect(server)?;
        server.set_nodelay(true)?;
        let mut message = format!("{}Connection: close\r\n\r\n", self.head).into_bytes();
        message.extend_from_slice(&self.body);
        server.write_all(&message)?;
        let mut reply = Vec::new();
        server.read_to_end(&mut reply)?;
        Ok(reply)
    }
}

/// A reply of a service in trouble.
pub(super) fn answer(status: u16) -> String {
    let (reason, code) = match status {
        429 => ("Too Many Requests", "TooManyRequests"),
        503 => ("Slow Down", "SlowDown"),
        _ => ("Internal Server Error", "InternalError"),
    };
    let body = format!("<Error><Code>{code}</Code></Error>");
    let length = body.len();
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Where to cut a reply: in the middle of its body, or of its head if that is all.
pub(super) fn middle(reply: &[u8]) -> usize {
    let end = reply.windows(END.len()).position(|window| window == END);
    let body = end.map_or(reply.len(), |at| at + END.len());
    if body == reply.len() { body / 2 } else { body + (reply.len() - body) / 2 }
}
