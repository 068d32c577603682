//! `chunkyard serve`: what it prints, what it refuses, and how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::support::Scratch;

/// Any port that is free, for both.
const FREE: [&str; 4] = ["--http", "127.0.0.1:0", "--flight", "127.0.0.1:0"];

/// A server that runs, and the first line that it printed.
fn start(scratch: &Scratch, arguments: &[&str]) -> (Child, String) {
    let mut command = Command::new(scratch.command(&[]).get_program());
    command.arg("serve").args(arguments).args(FREE).current_dir(scratch.path("."));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

fn tell(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn the_first_line_says_where_and_signals_end_the_server_in_order() {
    let scratch = Scratch::with_array();
    for signal in ["-INT", "-TERM"] {
        let (mut child, line) = start(&scratch, &["r", "other=r", "--json"]);
        let told: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(told["places"], serde_json::json!(["other", "r"]));
        assert!(told["flight"].as_str().unwrap().starts_with("grpc://127.0.0.1:"));
        let address = told["http"].as_str().unwrap().strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
        tell(&child, signal);
        assert!(child.wait().unwrap().success(), "{signal}");
    }
}

#[test]
fn the_first_line_for_people_has_both_urls() {
    let scratch = Scratch::with_repo();
    let (mut child, line) = start(&scratch, &["r"]);
    let (http, flight) = line.trim_end().split_once(' ').unwrap();
    assert!(http.starts_with("http=http://127.0.0.1:") && !http.ends_with(":0"), "{line}");
    assert!(flight.starts_with("flight=grpc://127.0.0.1:") && !flight.ends_with(":0"), "{line}");
    tell(&child, "-TERM");
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_must_not_run_is_refused() {
    let scratch = Scratch::with_repo();
    let refused = |arguments: &[&str], code: i32, reason: &str| {
        let run = scratch.run(&[&["serve"], arguments].concat()).code(code);
        assert!(run.stderr.contains(reason), "{arguments:?}: {}", run.stderr);
    };
    refused(&["r", "--http", "0.0.0.0:0"], 2, "without tokens, http may listen on a loopback");
    refused(&["r", "--flight", "[::]:0"], 2, "without tokens, flight may listen on a loopback");
    refused(&["r", "x/r"], 2, "two places are called \"r\"");
    refused(&["s3://"], 2, "write NAME=PLACE");
    refused(&["a@b=r"], 2, "cannot be the name");
    refused(&["r", "--http", "here"], 2, "invalid socket address");
    refused(&["--config", "none.toml"], 3, "none.toml");
    scratch.write("c.toml", b"[limits]\nconections = 3\n");
    refused(&["--config", "c.toml"], 2, "conections");
    scratch.write("c.toml", b"[[tokens]]\ntoken = \"a b\"\nrole = \"read\"\n");
    refused(&["--config", "c.toml"], 2, "token 1 cannot be sent");
    scratch.write("c.toml", b"[limits]\nrequests = 0\n");
    refused(&["--config", "c.toml"], 2, "limits.requests cannot be 0");
}
