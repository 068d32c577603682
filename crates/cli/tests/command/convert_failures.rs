//! `convert`: refusals, the files after a failure, and how a second run continues.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use super::support::{Scratch, npy};

/// A scratch directory with `/a` of the repository as `a.zarr`.
fn with_zarr() -> Scratch {
    let scratch = Scratch::with_array();
    scratch.run(&["convert", "r", "a.zarr"]).code(0);
    scratch
}

#[test]
fn mistakes_are_found_before_anything_is_touched() {
    let scratch = with_zarr();
    scratch.write("photo.jpg", b"no array");
    let before = scratch.files_in(".");
    for (code, options, part) in [
        (2, vec!["--chunks", "2,x"], "expected numbers such as 100,100"),
        (2, vec!["--chunks", "2"], "the array has 2"),
        (2, vec!["--chunks", "0,1"], "contains a zero"),
        (2, vec!["--shards", "3,4"], "do not divide shards"),
        (2, vec!["--codec", "brotli"], "known are none, zstd"),
        (2, vec!["--dtype", "float31"], "expected a name such as uint8"),
        (2, vec!["--region", "0:100,:"], "the extent is 4"),
        (2, vec!["--region", "x,:"], "region 'x,:'"),
        (2, vec!["--memory", "2 parsec"], "such as 512MiB"),
        (2, vec!["--memory", "1MiB"], "raise it with --memory"),
        (2, vec!["--threads", "0"], "--threads"),
        (2, vec!["--to", "floppy"], "there are repo, zarr3"),
        (2, vec!["--message", "m"], "are for repositories"),
        (2, vec!["--into", "a//b"], "empty segment"),
        (2, vec!["--branch", "main"], "one version only"),
        (3, vec!["--array", "/none"], "array not found: /none"),
        (6, vec!["--dtype", "string"], "not supported"),
    ] {
        let run = scratch.run(&[&["convert", "a.zarr", "new.zarr"], &options[..]].concat());
        let run = run.code(code);
        assert!(run.stderr.contains(part), "{options:?}: {}", run.stderr);
    }
    for (code, source, target, part) in [
        (3, "nothing", "new.zarr", "nothing is none of these:\n  repo: "),
        (3, "photo.jpg", "new.zarr", "zarr3: no zarr.json"),
        (2, "a.zarr", "new.jpg", "the ending of new.jpg is that of no format"),
        (2, "a.zarr", "gopher://x/new.zarr", "gopher"),
    ] {
        let run = scratch.run(&["convert", source, target]).code(code);
        assert!(run.stderr.contains(part), "{source} {target}: {}", run.stderr);
    }
    assert_eq!(scratch.files_in("."), before);
    assert_eq!(scratch.names(), ["a.npy", "a.zarr", "photo.jpg", "r"]);
}

#[test]
fn an_existing_target_is_replaced_only_with_overwrite() {
    let scratch = with_zarr();
    scratch.write("o.npy", &npy("|u1", false, &[2], &[1, 2]));
    scratch.run(&["repo", "init", "other.repo"]).code(0);
    scratch.run(&["repo", "set", "other.repo", "/a", "o.npy"]).code(0);
    fs::create_dir(scratch.path("photos")).unwrap();
    scratch.write("photos/1.jpg", b"x");
    let before = scratch.files_in(".");
    let overwrite = "nothing was changed; --overwrite replaces it, another name keeps both";
    for (target, options, hint) in [
        ("a.zarr", vec![], overwrite),
        ("r", vec![], overwrite),
        ("photos", vec![], "choose another name"),
        ("photos", vec!["--overwrite"], "choose another name"),
        ("photos", vec!["--to", "repo", "--overwrite"], "choose another name"),
        ("a.npy", vec!["--to", "zarr3", "--overwrite"], "choose another name"),
        ("a.npy", vec!["--to", "repo", "--overwrite"], "choose another name"),
    ] {
        let run = scratch.run(&[&["convert", "other.repo", target], &options[..]].concat()).code(4);
        assert!(run.stderr.contains(hint), "{target} {options:?}: {}", run.stderr);
    }
    assert_eq!(scratch.files_in("."), before);
    // With --overwrite it is replaced. An empty directory counts as nothing.
    scratch.run(&["convert", "other.repo", "a.zarr", "--overwrite"]).code(0);
    assert_eq!(scratch.elements("a.zarr", "/a"), [1, 2]);
    scratch.run(&["convert", "other.repo", "r", "--overwrite"]).code(0);
    assert_eq!(scratch.get(&["/a"]), [1, 2]);
    fs::create_dir(scratch.path("empty")).unwrap();
    scratch.run(&["convert", "other.repo", "empty"]).code(0);
    assert_eq!(scratch.elements("empty", "/a"), [1, 2]);
}

#[test]
fn a_damaged_chunk_is_exit_code_5_and_leaves_the_old_target_as_it_was() {
    let scratch = with_zarr();
    scratch.run(&["convert", "r", "old.zarr"]).code(0);
    let (good, before) = (scratch.read("a.zarr/a/c/1/1"), scratch.files_in("old.zarr"));
    scratch.write("a.zarr/a/c/1/1", &good[..good.len() - 3]);
    for target in [vec!["new.zarr"], vec!["old.zarr", "--overwrite"], vec!["r", "--into", "g"]] {
        let run = scratch.run(&[&["convert", "a.zarr"], &target[..]].concat()).code(5);
        assert!(run.stderr.contains("chunk [1, 1] of /a is corrupt"), "{}", run.stderr);
        assert!(run.stderr.contains("hint: `chunkyard verify a.zarr` lists all damage"));
        assert!(run.stderr.contains("run the same command again to continue"), "{}", run.stderr);
    }
    assert!(!scratch.path("new.zarr").exists());
    assert_eq!(scratch.files_in("old.zarr"), before);
    assert_eq!(scratch.json(&["ls", "r"]).as_array().unwrap().len(), 1);
    scratch.write("a.zarr/a/c/1/1", &good);
    scratch.run(&["convert", "a.zarr", "new.zarr"]).code(0);
    scratch.run(&["convert", "a.zarr", "old.zarr", "--overwrite"]).code(0);
    scratch.run(&["convert", "a.zarr", "r", "--into", "g"]).code(0);
    assert_eq!(scratch.get(&["/g/a"]), scratch.elements("new.zarr", "/a"));
    assert_eq!(scratch.names(), ["a.npy", "a.zarr", "new.zarr", "old.zarr", "r"]);
}

#[test]
fn finished_packs_are_not_repeated_unless_the_options_change() {
    let scratch = Scratch::with_array();
    for at in 0..8 {
        scratch.run(&["repo", "set", "r", &format!("/b{at}"), "a.npy"]).code(0);
    }
    scratch.run(&["convert", "r", "a.zarr"]).code(0);
    let good = scratch.read("a.zarr/b7/c/0/0");
    scratch.write("a.zarr/b7/c/0/0", b"rubbish");
    let convert = ["convert", "a.zarr", "new.zarr", "--threads", "1"];
    scratch.run(&convert).code(5);
    let other = scratch.run(&["convert", "a.zarr", "new.zarr", "--codec", "gzip"]).code(4);
    assert!(other.stderr.contains("an unfinished conversion with another source or other options"));
    assert!(other.stderr.contains("hint: finish the old one with its own options, or begin anew"));
    scratch.write("a.zarr/b7/c/0/0", &good);
    let outcome = scratch.json(&convert)["outcome"].clone();
    assert_eq!(outcome["packs"], 9);
    assert!(outcome["resumed"].as_u64() >= Some(5), "{outcome}");
    assert_eq!(outcome["chunks"], 12);
    scratch.write("a.zarr/b7/c/0/0", b"rubbish");
    scratch.run(&["convert", "a.zarr", "n2.zarr", "--threads", "1"]).code(5);
    scratch.write("a.zarr/b7/c/0/0", &good);
    let outcome = scratch.json(&["convert", "a.zarr", "n2.zarr", "--restart"])["outcome"].clone();
    assert_eq!(outcome["resumed"], 0);
    assert_eq!(scratch.names(), ["a.npy", "a.zarr", "n2.zarr", "new.zarr", "r"]);
}

#[test]
fn ctrl_c_is_exit_code_130_and_says_how_to_continue() {
    let scratch = with_zarr();
    // A conversion that takes long enough to be interrupted, on any machine.
    let mut chunks = 1u64 << 13;
    let output = loop {
        scratch.write("big.npy", &npy("|u1", false, &[chunks], &vec![7; chunks as usize]));
        scratch.run(&["repo", "set", "r", "/big", "big.npy", "--chunks", "1"]).code(0);
        let output = interrupted(&scratch);
        if output.status.code() != Some(0) || chunks > 1 << 17 {
            break output;
        }
        fs::remove_dir_all(scratch.path("new.zarr")).unwrap();
        scratch.run(&["repo", "rm", "r", "/big"]).code(0);
        chunks *= 4;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    let expected = "error: interrupted\nhint: finished work is kept: run the same command again to \
                    continue, or add --restart to begin anew\n";
    assert_eq!(stderr, expected);
    assert!(!scratch.path("new.zarr").exists());
    scratch.run(&["convert", "r", "new.zarr"]).code(0);
    assert_eq!(scratch.names(), ["a.npy", "a.zarr", "big.npy", "new.zarr", "r"]);
}

/// A conversion that gets Ctrl-C once it has begun.
fn interrupted(scratch: &Scratch) -> std::process::Output {
    let child = std::process::Command::new(scratch.command(&[]).get_program())
        .args(["convert", "r", "new.zarr"])
        .current_dir(scratch.path("."))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let staged = scratch.path(".new.zarr.chunkyard/journal/plan");
    let done = scratch.path("new.zarr");
    while !staged.exists() && !done.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    child.wait_with_output().unwrap()
}
