//! Pipes, sockets and directories in place of files, and impossible names: an error, at once.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::support::{Run, Scratch, npy};

/// Long enough for any command here; a command that waits for a pipe waits forever.
const PATIENCE: Duration = Duration::from_secs(120);

#[track_caller]
fn at_once(scratch: &Scratch, arguments: &[&str]) -> Run {
    let output = scratch.command(arguments).timeout(PATIENCE).output().unwrap();
    let code = output.status.code();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = code.unwrap_or_else(|| panic!("{arguments:?} hangs: {stderr}"));
    Run { code, stdout: output.stdout, stderr }
}

/// Puts a pipe where a file is.
fn pipe(scratch: &Scratch, name: &str) {
    fs::remove_file(scratch.path(name)).ok();
    assert!(Command::new("mkfifo").arg(scratch.path(name)).status().unwrap().success());
}

/// Demands that a command names the pipe in its way.
#[track_caller]
fn stopped(scratch: &Scratch, arguments: &[&str], name: &str) {
    let run = at_once(scratch, arguments).code(5);
    let said = format!("{}{}", run.text(), run.stderr);
    assert!(said.contains("a named pipe") && said.contains(name), "{arguments:?}: {said}");
}

#[test]
fn a_pipe_in_a_zarr_hierarchy_stops_its_readers_at_once() {
    let scratch = Scratch::with_array();
    scratch.run(&["convert", "r", "x.zarr"]).code(0);
    pipe(&scratch, "x.zarr/a/c/1/0");
    stopped(&scratch, &["convert", "x.zarr", "y.zarr"], "c/1/0");
    stopped(&scratch, &["verify", "x.zarr"], "c/1/0");
    stopped(&scratch, &["link", "x.zarr", "l"], "c/1/0");
    pipe(&scratch, "x.zarr/zarr.json");
    stopped(&scratch, &["info", "x.zarr"], "zarr.json");
    stopped(&scratch, &["ls", "x.zarr"], "zarr.json");
}

#[test]
fn a_pipe_in_a_repository_stops_its_readers_and_writers_at_once() {
    let scratch = Scratch::with_array();
    for directory in ["s", "i"] {
        let file = fs::read_dir(scratch.path("r").join(directory)).unwrap().next().unwrap();
        let name = format!("r/{directory}/{}", file.unwrap().file_name().to_str().unwrap());
        let kept = scratch.read(&name);
        pipe(&scratch, &name);
        at_once(&scratch, &["verify", "r", "--level", "bytes"]).code(5);
        fs::remove_file(scratch.path(&name)).unwrap();
        scratch.write(&name, &kept);
    }
    pipe(&scratch, "r/state.json");
    for command in [
        &["info", "r"][..],
        &["repo", "log", "r"],
        &["repo", "gc", "r"],
        &["repo", "init", "r"],
        &["repo", "set", "r", "/a", "a.npy", "-m", "x"],
    ] {
        stopped(&scratch, command, "state.json");
    }
}

#[test]
fn a_pipe_in_the_place_of_a_container_or_of_superchunks_is_named() {
    let scratch = Scratch::new();
    scratch.write("a.npy", &npy("|u1", false, &[40], &[7; 40]));
    scratch.run(&["af", "create", "x.af"]).code(0);
    scratch.run(&["af", "set", "x.af", "a", "a.npy"]).code(0);
    scratch.run(&["af", "set", "x.af", "b", "a.npy"]).code(0);
    fs::rename(scratch.path("x.1.af"), scratch.path("kept")).unwrap();
    pipe(&scratch, "x.1.af");
    stopped(&scratch, &["af", "ls", "x.af"], "x.1.af");
    fs::remove_file(scratch.path("x.1.af")).unwrap();
    std::os::unix::fs::symlink("nowhere", scratch.path("x.1.af")).unwrap();
    let run = at_once(&scratch, &["af", "get", "x.af", "b", "-o", "-"]).code(5);
    assert!(run.stderr.contains("a link that leads nowhere"), "{}", run.stderr);
    fs::remove_file(scratch.path("x.1.af")).unwrap();
    fs::rename(scratch.path("kept"), scratch.path("x.1.af")).unwrap();
    scratch.run(&["af", "get", "x.af", "b", "-o", "-"]).code(0);
    pipe(&scratch, "x.af");
    stopped(&scratch, &["af", "ls", "x.af"], "x.af");
    scratch.run(&["blz", "append", "t.blz", "a.npy", "--create", "--chunklen", "4"]).code(0);
    let file = fs::read_dir(scratch.path("t.blz/data")).unwrap().next().unwrap().unwrap();
    let name = format!("t.blz/data/{}", file.file_name().to_str().unwrap());
    pipe(&scratch, &name);
    stopped(&scratch, &["blz", "get", "t.blz"], &name);
}

#[test]
fn a_place_that_is_no_file_and_no_directory_is_exit_code_2() {
    let scratch = Scratch::with_array();
    for name in ["p", "p.h5", "p.zarr", "p.af", "p.blp"] {
        pipe(&scratch, name);
        for command in [&["info", name][..], &["convert", name, "x.zarr"], &["convert", "r", name]]
        {
            let run = at_once(&scratch, command).code(2);
            assert!(run.stderr.contains(&format!("{name} is a named pipe")), "{}", run.stderr);
        }
    }
    at_once(&scratch, &["info", "/dev/null"]).code(2);
}

#[test]
fn a_pipe_is_an_input_like_any_other() {
    let scratch = Scratch::with_array();
    let values = npy("|u1", false, &[4, 6], &[9; 24]);
    let mut set = scratch.command(&["repo", "set", "r", "/a", "/dev/stdin", "-m", "x"]);
    set.write_stdin(values).timeout(PATIENCE).assert().success();
    assert_eq!(scratch.get(&["/a"]), [9; 24]);
    fs::create_dir(scratch.path("d")).unwrap();
    for command in
        [&["repo", "set", "r", "/b", "d", "-m", "x"][..], &["blz", "append", "t", "d", "--create"]]
    {
        let run = scratch.run(command).code(2);
        assert!(run.stderr.contains("d is a directory"), "{}", run.stderr);
    }
}

#[test]
fn a_repository_is_not_created_at_a_file() {
    let scratch = Scratch::new();
    scratch.write("file", b"x");
    for place in ["file", "file/r"] {
        let run = scratch.run(&["repo", "init", place]).code(2);
        assert!(run.stderr.contains("file is a file"), "{}", run.stderr);
        assert!(!run.stderr.contains("os error"), "{}", run.stderr);
    }
    assert_eq!(scratch.read("file"), b"x");
}

#[test]
fn a_repository_whose_data_is_apart_is_named_by_its_own_place() {
    let scratch = Scratch::new();
    let data = scratch.path("data").to_str().unwrap().to_owned();
    let here = scratch.path("r").to_str().unwrap().to_owned();
    let run = scratch.run(&["repo", "init", "r", "--store-root", &data]).code(0);
    assert!(run.stderr.contains(&format!("created {here} ")), "{}", run.stderr);
    assert!(run.stderr.contains(&format!("--allow {data}")), "{}", run.stderr);
    let info = scratch.json(&["info", "r", "--allow", &data]);
    assert_eq!(info["url"], here.as_str());
}

#[test]
fn a_name_that_is_too_long_is_refused_before_anything_is_written() {
    let scratch = Scratch::with_array();
    let long = "n".repeat(300);
    scratch.run(&["repo", "set", "r", &format!("/{long}"), "a.npy", "-m", "x"]).code(0);
    for target in ["x.zarr", "x.blz", &format!("{long}.zarr")] {
        let run = scratch.run(&["convert", "r", target]).code(2);
        assert!(
            run.stderr.contains("300 bytes") || run.stderr.contains("too long"),
            "{}",
            run.stderr
        );
        assert!(!run.stderr.contains("--restart"), "{}", run.stderr);
    }
    scratch.run(&["repo", "init", &long]).code(2);
    assert_eq!(scratch.names(), ["a.npy", "r"]);
}
