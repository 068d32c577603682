//! Jobs: conversions by several processes, which are killed at random.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::support::{Noise, Scratch, npy};

/// A repository `r` with arrays of numbers.
fn source() -> Scratch {
    let scratch = Scratch::with_repo();
    let mut noise = Noise(11);
    // Each is at least one pack.
    for number in 0..14 {
        let values = noise.words(32 * 32 * 32);
        scratch.write("a.npy", &npy("<u4", false, &[32, 32, 32], &values));
        let path = format!("/g/a{number}");
        scratch.run(&["repo", "set", "r", &path, "a.npy", "--chunks", "16,16,16"]).code(0);
    }
    fs::remove_file(scratch.path("a.npy")).unwrap();
    scratch
}

pub(super) fn spawn(scratch: &Scratch, arguments: &[&str]) -> Child {
    let mut command = Command::new(scratch.command(&[]).get_program());
    command.args(arguments).current_dir(scratch.path(".")).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// All files below a directory, by their paths in it.
pub(super) fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, directory: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found
}

const SHAPES: [&str; 4] = ["--chunks", "16,16,16", "--shards", "32,32,32"];

/// How many steps of tasks there are: the work goes on.
pub(super) fn steps(scratch: &Scratch) -> usize {
    fs::read_dir(scratch.path("job/steps")).map_or(0, |entries| entries.count())
}

#[test]
fn workers_killed_at_random_leave_nothing_but_the_same_bytes() {
    let scratch = source();
    scratch.run(&[&["convert", "r", "whole.zarr"], &SHAPES[..]].concat()).code(0);
    let whole = tree(&scratch.path("whole.zarr"));
    let mut noise = Noise(5);
    for round in 0..4 {
        let job = ["--job", "job", "--task-size", "64KiB"];
        let make = [&["convert", "r", "out.zarr"], &SHAPES[..], &job[..]].concat();
        let made = scratch.run(&[&make[..], &["--json"]].concat()).code(0).json();
        assert!(made["tasks"].as_u64().unwrap() >= 12, "{made}");
        let mut workers: Vec<Child> = (0..2).map(|_| spawn(&scratch, &["work", "job"])).collect();
        for kill in 0..4 {
            // Some steps later, wherever that is; or the job is finished before.
            let (before, wanted) = (steps(&scratch), (noise.next() % 9) as usize);
            while steps(&scratch) < before + wanted && !scratch.path("out.zarr").exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            let worker = &mut workers[kill % 2];
            worker.kill().unwrap();
            worker.wait().unwrap();
            if kill < 2 {
                workers[kill % 2] = spawn(&scratch, &["work", "job"]);
            }
        }
        // Killed processes of this machine are known to be gone: no lease has to pass.
        let done = scratch.run(&["work", "job", "--json"]).code(0).json();
        assert_eq!((&done["finished"], &done["refused"]), (&true.into(), &0.into()), "{round}");
        assert!(tree(&scratch.path("out.zarr")) == whole, "round {round}: other bytes");
        let status = scratch.run(&["work", "job", "--status", "--json"]).code(0).json();
        assert_eq!((&status["done"], &status["free"]), (&made["tasks"], &0.into()), "{status}");
        assert!(!scratch.path(".out.zarr.chunkyard").exists(), "round {round}: work is left");
        fs::remove_dir_all(scratch.path("out.zarr")).unwrap();
        fs::remove_dir_all(scratch.path("job")).unwrap();
    }
}

#[test]
fn a_job_says_what_is_done_and_by_whom() {
    let scratch = source();
    let job = ["--job", "job", "--task-size", "64KiB"];
    let make = [&["convert", "r", "out.zarr"], &SHAPES[..], &job[..]].concat();
    scratch.run(&make).code(0);
    let again = scratch.run(&[&make[..], &["--json"]].concat()).code(0).json();
    assert_eq!(again["new"], false);
    let status = scratch.run(&["work", "job", "--status", "--json"]).code(0).json();
    assert_eq!((&status["kind"], &status["done"]), (&"convert".into(), &0.into()));
    assert_eq!(status["free"], status["tasks"]);
    assert!(!scratch.path("out.zarr").exists(), "visible before the end");
    // A whole worker, then one more for nothing.
    scratch.run(&["work", "job", "--no-wait"]).code(0);
    let status = scratch.run(&["work", "job", "--status"]).code(0).text();
    assert!(status.contains("finished") && status.contains("process"), "{status}");
    let done = scratch.run(&["work", "job", "--json"]).code(0).json();
    assert_eq!((&done["tasks"], &done["finished"]), (&0.into(), &true.into()));
    // Another conversion does not get this job, and neither does another target.
    let other = ["convert", "r", "other.zarr", "--job", "job"];
    let refused = scratch.run(&other).code(4);
    assert!(refused.stderr.contains("job exists already"), "{}", refused.stderr);
    scratch.run(&["convert", "r", "out.zarr", "--job", "job2"]).code(4);
}

#[test]
fn what_cannot_be_a_job_is_refused() {
    let scratch = source();
    scratch.run(&["work", "nothing"]).code(3);
    scratch.run(&["work", "nothing", "--status"]).code(3);
    scratch.run(&["convert", "r", "out.zarr", "--job", "j", "--dry-run"]).code(2);
    scratch.run(&["convert", "r", "out.zarr", "--job", "j", "--skip-corrupt"]).code(2);
    scratch
        .run(&["convert", "r", "out.zarr", "--job", "j", "--lease", "1d", "--lease", "2"])
        .code(2);
    scratch.run(&["convert", "r", "out.zarr", "--task-size", "1MiB"]).code(2);
    assert!(!scratch.path("j").exists() && !scratch.path("out.zarr").exists());
}

#[test]
fn a_source_that_changed_ends_the_workers_and_the_task_says_why() {
    let scratch = source();
    scratch.run(&["convert", "r", "in.zarr", "--chunks", "16,16,16"]).code(0);
    scratch.run(&["convert", "in.zarr", "out.zarr", "--codec", "gzip:1", "--job", "job"]).code(0);
    fs::remove_dir_all(scratch.path("in.zarr")).unwrap();
    scratch.run(&["convert", "r", "in.zarr", "--chunks", "8,16,16"]).code(0);
    let failed = scratch.run(&["work", "job"]).code(4);
    assert!(failed.stderr.contains("has changed"), "{}", failed.stderr);
    let status = scratch.run(&["work", "job", "--status"]).code(0).text();
    assert!(status.contains("failed") && status.contains("has changed"), "{status}");
}
