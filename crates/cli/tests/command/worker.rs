//! `chunkyard worker` becomes a program of the Python package, or says what is missing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use super::support::Scratch;

/// Runs the command with an interpreter that is a shell script.
fn with_python(script: &str, arguments: &[&str]) -> Output {
    let scratch = Scratch::new();
    scratch.write("python", format!("#!/bin/sh\n{script}\n").as_bytes());
    fs::set_permissions(scratch.path("python"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = scratch.command(arguments);
    command.env("CHUNKYARD_PYTHON", scratch.path("python")).output().unwrap()
}

#[test]
fn arguments_go_to_the_package() {
    let script = r#"[ "$1" = -c ] && exit 0; echo "$@""#;
    let found =
        with_python(script, &["worker", "grpc://host:8002", "--sink", "parquet:a b", "--help"]);
    assert_eq!(found.status.code(), Some(0));
    let text = String::from_utf8(found.stdout).unwrap();
    assert_eq!(text, "-m chunkyard.worker grpc://host:8002 --sink parquet:a b --help\n");
    let found = with_python(script, &["--json", "worker", "grpc://host:8002"]);
    assert_eq!(found.stdout, b"-m chunkyard.worker grpc://host:8002 --json\n");
}

#[test]
fn a_missing_package_is_named() {
    let found = with_python("exit 1", &["worker", "grpc://host:8002"]);
    assert_eq!(found.status.code(), Some(6));
    let text = String::from_utf8(found.stderr).unwrap();
    assert!(text.contains("pip install 'chunkyard[worker]'"), "{text}");
    let scratch = Scratch::new();
    let mut command = scratch.command(&["worker"]);
    let found = command.env("CHUNKYARD_PYTHON", scratch.path("none")).output().unwrap();
    assert_eq!(found.status.code(), Some(6));
    assert!(String::from_utf8(found.stderr).unwrap().contains("CHUNKYARD_PYTHON"));
}
