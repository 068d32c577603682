//! A repository in a bucket: its whole life, and the messages when the bucket cannot be reached.
//!
//! Server, credentials and bucket come from the environment, see `scripts/with-s3-server`.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::export_jobs::{self, EMIT, signal};
use super::support::{Run, Scratch, data, npy};

/// An unused place in the bucket.
fn fresh_url() -> String {
    let bucket = std::env::var("CHUNKYARD_TEST_S3").expect("run `make test-s3`");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("s3://{bucket}/cli-{}-{}", std::process::id(), now.as_nanos())
}

/// Runs with other variables, and demands an answer within seconds.
fn run_in(environment: &[(&str, &str)], arguments: &[&str]) -> Run {
    let started = Instant::now();
    let scratch = Scratch::new();
    let mut command = scratch.command(arguments);
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let elapsed = started.elapsed();
    assert!(elapsed < Duration::from_secs(20), "{arguments:?} took {elapsed:?}");
    Run {
        code: output.status.code().unwrap(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
#[ignore = "needs an S3 server; run by `make test-s3`"]
fn a_repository_lives_in_a_bucket() {
    let (scratch, url) = (Scratch::new(), fresh_url());
    let url = url.as_str();
    scratch.run(&["repo", "init", url]).code(0);
    scratch.run(&["repo", "init", url]).code(4);
    let values: Vec<u8> = (1..=24).collect();
    scratch.write("a.npy", &npy("|u1", false, &[4, 6], &values));
    let set = ["repo", "set", url, "/a", "a.npy", "--chunks", "2,3", "-m", "first"];
    scratch.run(&set).code(0);
    scratch.write("b.npy", &npy("|u1", false, &[1, 2], &[91, 92]));
    let set = ["repo", "set", url, "/a", "b.npy", "--region", "1:2,2:4", "-m", "second"];
    scratch.run(&set).code(0);

    let read = scratch.run(&["repo", "get", url, "/a", "-o", "-", "--region", "1:2,1:5"]).code(0);
    assert!(read.stdout.ends_with(&[8, 91, 92, 11]), "{:?}", read.stdout);
    let log = scratch.run(&["repo", "log", url]).code(0).text();
    assert!(log.contains("first") && log.contains("second"), "{log}");
    scratch.run(&["verify", url, "--level", "bytes"]).code(0);
    scratch.run(&["repo", "expire", url, "--keep-last", "1"]).code(0);
    scratch.run(&["repo", "gc", url, "--min-age", "0s"]).code(0);
    scratch.run(&["verify", url, "--level", "bytes"]).code(0);
    let read = scratch.run(&["repo", "get", url, "/a", "-o", "-", "--region", "1:2,1:5"]).code(0);
    assert!(read.stdout.ends_with(&[8, 91, 92, 11]), "{:?}", read.stdout);
}

#[test]
#[ignore = "needs an S3 server; run by `make test-s3`"]
fn an_empty_place_has_no_dataset() {
    let run = run_in(&[], &["info", &fresh_url()]).code(3);
    assert!(run.stderr.contains("dataset not found"), "{}", run.stderr);
}

#[test]
#[ignore = "needs an S3 server; run by `make test-s3`"]
fn arrays_are_converted_into_a_bucket_and_back_and_linked_there() {
    let (scratch, url) = (Scratch::with_array(), fresh_url());
    let expected = scratch.get(&["/a"]);
    let (zarr, repo) = (format!("{url}/x.zarr"), format!("{url}/repo"));
    let shards = ["--chunks", "1,3", "--shards", "2,6", "--verify"];
    scratch.run(&[&["convert", "r", &zarr], &shards[..]].concat()).code(0);
    let info = scratch.json(&["info", &zarr]);
    assert_eq!(
        (&info["format"], info["arrays"].as_array().map(Vec::len)),
        (&"zarr3".into(), Some(1))
    );
    scratch.run(&["verify", &zarr]).code(0);
    scratch.run(&["convert", "r", &zarr]).code(4);
    scratch.run(&["convert", "r", &zarr, "--overwrite"]).code(6);
    assert_eq!(scratch.elements(&zarr, "/a"), expected);
    scratch.run(&["convert", &zarr, &repo, "--to", "repo", "--verify"]).code(0);
    let get = |place: &str| {
        let run = scratch.run(&["repo", "get", place, "/a", "-o", "-", "--allow", &zarr]).code(0);
        data(&run.stdout).to_vec()
    };
    assert_eq!(get(&repo), expected);
    scratch.run(&["link", &zarr, "linked"]).code(0);
    assert_eq!(get("linked"), expected);
}

#[test]
#[ignore = "needs an S3 server; run by `make test-s3`"]
fn a_missing_bucket_is_named() {
    for arguments in [["repo", "init"].as_slice(), &["info"]] {
        let run = run_in(&[], &[arguments, &["s3://no-such-bucket/x"]].concat()).code(3);
        let said = run.stderr.contains("bucket") && run.stderr.contains("no-such-bucket");
        assert!(said, "{}", run.stderr);
    }
}

#[test]
#[ignore = "needs an S3 server; run by `make test-s3`"]
fn wrong_credentials_are_refused_at_once() {
    let url = fresh_url();
    let wrong = [("AWS_SECRET_ACCESS_KEY", "wrong")];
    for arguments in [["repo", "init"].as_slice(), &["info"]] {
        let run = run_in(&wrong, &[arguments, &[url.as_str()]].concat()).code(1);
        let said = run.stderr.contains("403 Forbidden") && run.stderr.contains("credentials");
        assert!(said && run.stderr.len() < 1000, "{}", run.stderr);
    }
}

/// Needs no server: the endpoint must not answer.
#[test]
fn an_endpoint_that_does_not_answer_is_given_up_soon() {
    let keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
    for endpoint in ["http://127.0.0.1:1", "http://no-such-host.invalid:9000"] {
        let environment = [keys[0], keys[1], ("AWS_ENDPOINT_URL", endpoint)];
        for arguments in [["repo", "init"].as_slice(), &["info"]] {
            let run = run_in(&environment, &[arguments, &["s3://bucket/x"]].concat()).code(1);
            assert!(run.stderr.contains(endpoint), "{}", run.stderr);
        }
    }
}

/// Job, source and target in a bucket; one of two workers is killed.
#[test]
#[ignore = "needs an S3 server; run by `make test-s3`"]
fn a_job_lives_in_a_bucket_and_outlives_its_workers() {
    let (scratch, url) = (Scratch::with_repo(), fresh_url());
    for number in 0..8 {
        let values: Vec<u8> = (0..=255).map(|value: u8| value ^ number).collect();
        scratch.write("a.npy", &npy("|u1", false, &[16, 16], &values));
        scratch
            .run(&["repo", "set", "r", &format!("/a{number}"), "a.npy", "--chunks", "4,4"])
            .code(0);
    }
    for target in ["out.zarr", "out.repo", "out.af"] {
        let (target, job) = (format!("{url}/{target}"), format!("{url}/job-{target}"));
        let lease = ["--task-size", "1", "--lease", "2s"];
        scratch.run(&[&["convert", "r", &target, "--job", &job], &lease[..]].concat()).code(0);
        let worker = scratch.command(&["work", &job, "--quiet"]);
        let mut killed = std::process::Command::new(worker.get_program());
        killed.args(worker.get_args()).current_dir(scratch.path("."));
        drop(worker);
        let mut killed = killed.spawn().unwrap();
        let status = || scratch.run(&["work", &job, "--status", "--json"]).code(0).json();
        while status()["done"] == 0 {}
        killed.kill().unwrap();
        killed.wait().unwrap();
        let done = scratch.run(&["work", &job, "--json"]).code(0).json();
        assert_eq!(done["finished"], true, "{done}");
        assert_eq!((&status()["done"], &status()["free"]), (&8.into(), &0.into()));
        for number in 0..8 {
            let path = format!("/a{number}");
            let get = |place: &str| scratch.run(&["get", place, &path, "-o", "-"]).code(0).stdout;
            assert!(get(&target) == get("r"), "{target} {path} differs");
        }
    }
}

/// Job and target of an export in a bucket; a worker is put to sleep, and wakes up when all is over.
#[test]
#[ignore = "needs an S3 server; run by `make test-s3`"]
fn shards_in_a_bucket_count_once_also_those_of_a_stale_lease() {
    let (scratch, url) = (export_jobs::source(), fresh_url());
    let (target, job) = (format!("{url}/shards"), format!("{url}/job"));
    let share = ["--job", &job, "--task-size", "2MiB", "--lease", "2s", "--json"];
    let make = [&["export-shards", "brain", &target], &EMIT[..], &share].concat();
    let made = scratch.run(&make).code(0).json();
    let work = ["work", &job, "--json"];
    let status = || scratch.run(&["work", &job, "--status", "--json"]).code(0).json();
    let mut command = std::process::Command::new(scratch.command(&[]).get_program());
    command.args(work).current_dir(scratch.path("."));
    let sleeper = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    while status()["done"] == 0 {}
    signal(&sleeper, "-STOP");
    let done = scratch.run(&work).code(0).json();
    assert_eq!(done["finished"], true, "{done}");
    let before = status();
    assert_eq!((&before["done"], &before["free"]), (&made["tasks"], &0.into()), "{before}");
    signal(&sleeper, "-CONT");
    let woken = sleeper.wait_with_output().unwrap();
    assert!(woken.status.success(), "a worker that was given up is no failure");
    let woken: Value = serde_json::from_slice(&woken.stdout).unwrap();
    assert_eq!(woken["finished"], true, "{woken}");
    let after = status();
    assert_eq!((&after["done"], &after["outcome"]), (&before["done"], &before["outcome"]));
    let checked = scratch.run(&["export-shards", "brain", &target, "--check", "--json"]).code(0);
    assert_eq!(checked.json()["missing"], serde_json::json!([]));
}
