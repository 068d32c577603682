//! `kill -9` at random points of a conversion, again and again.
//!
//! After each kill the target is missing or complete. The same command then makes the same bytes as
//! an undisturbed one, and leaves no other files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::support::{Noise, Scratch, npy};

/// Arrays of the source. Each is at least one pack.
const ARRAYS: u64 = 6;

/// A repository `r` with some arrays of 64 by 64 by `depth` numbers.
fn source(depth: u64) -> Scratch {
    let scratch = Scratch::with_repo();
    let mut noise = Noise(7);
    for number in 0..ARRAYS {
        let values = noise.words(64 * 64 * depth);
        scratch.write("a.npy", &npy("<u4", false, &[64, 64, depth], &values));
        let path = format!("/g/a{number}");
        let set = ["repo", "set", "r", &path, "a.npy", "--chunks", "32,32,32", "--codec", "none"];
        scratch.run(&set).code(0);
    }
    fs::remove_file(scratch.path("a.npy")).unwrap();
    scratch
}

fn spawn(scratch: &Scratch, arguments: &[&str]) -> Child {
    let mut command = Command::new(scratch.command(&[]).get_program());
    command.args(arguments).current_dir(scratch.path(".")).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// All files below a directory, by their paths in it.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
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

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Kills a conversion at a random moment of the time it takes.
fn kill_once(scratch: &Scratch, arguments: &[&str], takes: Duration, noise: &mut Noise) {
    let mut child = spawn(scratch, arguments);
    std::thread::sleep(takes.mul_f64((noise.next() % 1000) as f64 / 1000.0));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Rounds of killing a conversion into plain Zarr; gives the number of packs that were resumed.
fn kill_into_zarr(scratch: &Scratch, options: &[&str], rounds: usize) -> u64 {
    let arguments = |target| [&["convert", "r", target, "--json"][..], options].concat();
    let begun = Instant::now();
    scratch.run(&arguments("whole.zarr")).code(0);
    let takes = begun.elapsed();
    let whole = tree(&scratch.path("whole.zarr"));
    let (mut noise, mut resumed) = (Noise(takes.as_nanos() as u64 | 1), 0);
    for round in 0..rounds {
        // Now and then it is killed twice before it may finish.
        for _ in 0..=round % 3 / 2 {
            kill_once(scratch, &arguments("out.zarr"), takes, &mut noise);
        }
        let complete = scratch.path("out.zarr").exists();
        if complete {
            assert!(tree(&scratch.path("out.zarr")) == whole, "round {round}: looks complete");
            scratch.run(&arguments("out.zarr")).code(4);
        } else {
            let run = scratch.run(&arguments("out.zarr")).code(0);
            resumed += run.json()["outcome"]["resumed"].as_u64().unwrap();
        }
        let found = tree(&scratch.path("out.zarr"));
        assert!(found.keys().eq(whole.keys()), "round {round}: other files");
        assert!(found == whole, "round {round}: other bytes");
        assert_eq!(names(&scratch.path(".")), ["out.zarr", "r", "whole.zarr"], "round {round}");
        fs::remove_dir_all(scratch.path("out.zarr")).unwrap();
    }
    fs::remove_dir_all(scratch.path("whole.zarr")).unwrap();
    resumed
}

fn kill_into_repo(scratch: &Scratch, rounds: usize) {
    let arguments = ["convert", "r", "out.repo", "--chunks", "64,16,32", "--codec", "zstd:1"];
    let begun = Instant::now();
    scratch.run(&arguments).code(0);
    let takes = begun.elapsed();
    let mut noise = Noise(takes.as_nanos() as u64 | 1);
    for round in 0..rounds {
        fs::remove_dir_all(scratch.path("out.repo")).unwrap();
        kill_once(scratch, &arguments, takes, &mut noise);
        let run = scratch.run(&arguments);
        assert!([0, 4].contains(&run.code), "round {round}: {} {}", run.code, run.stderr);
        scratch.run(&["verify", "out.repo", "--level", "bytes"]).code(0);
        for number in 0..ARRAYS {
            let path = format!("/g/a{number}");
            let get = |repo| scratch.run(&["repo", "get", repo, &path, "-o", "-"]).code(0).stdout;
            assert!(get("out.repo") == get("r"), "round {round}: {path} differs");
        }
        // One commit after the first, and no journal.
        let log = scratch.json(&["repo", "log", "out.repo"]);
        let commits = log.as_array().or_else(|| log["snapshots"].as_array()).unwrap().len();
        assert_eq!(commits, 2, "round {round}");
        let journals = scratch.path("out.repo/j");
        assert!(!journals.exists() || names(&journals).is_empty(), "round {round}");
        assert_eq!(names(&scratch.path(".")), ["out.repo", "r"], "round {round}");
    }
}

#[test]
fn killed_into_shards_it_goes_on_to_the_same_bytes() {
    let options = ["--chunks", "16,16,16", "--shards", "64,64,32", "--codec", "zstd:1"];
    kill_into_zarr(&source(64), &options, 15);
}

#[test]
fn killed_into_chunks_it_goes_on_to_the_same_bytes() {
    kill_into_zarr(&source(64), &[], 15);
}

#[test]
fn killed_into_a_repository_it_goes_on_to_one_commit() {
    kill_into_repo(&source(32), 6);
}

/// Long enough for the journal to be written while packs move.
#[test]
#[ignore = "takes minutes"]
fn stress_killed_late_it_does_not_begin_anew() {
    let scratch = source(8192);
    let options = ["--chunks", "32,32,64", "--shards", "64,64,1024", "--codec", "zstd:1"];
    let resumed = kill_into_zarr(&scratch, &options, 12);
    assert!(resumed > 0, "nothing was resumed");
    kill_into_repo(&scratch, 4);
}

#[test]
#[ignore = "takes minutes"]
fn stress_killed_many_times_it_goes_on_to_the_same_bytes() {
    let scratch = source(64);
    kill_into_zarr(&scratch, &["--codec", "gzip:1"], 300);
    kill_into_zarr(&scratch, &["--shards", "64,64,64"], 300);
    kill_into_repo(&scratch, 60);
}
