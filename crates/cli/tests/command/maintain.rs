//! Expire, gc, optimise, repack.

use super::support::{Scratch, npy};

/// A repository whose array was replaced several times.
fn busy() -> Scratch {
    let scratch = Scratch::with_repo();
    for version in 0..6u32 {
        let seed = |at: u32| (at.wrapping_mul(2_654_435_761) ^ version.wrapping_mul(97)) >> 11;
        let values: Vec<u8> = (0..40_000).map(|at| seed(at) as u8).collect();
        scratch.write("v.npy", &npy("|u1", false, &[200, 200], &values));
        let chunks: &[&str] = if version == 0 { &["--chunks", "50,50"] } else { &[] };
        let set: Vec<_> =
            ["repo", "set", "r", "/a", "v.npy"].iter().chain(chunks).copied().collect();
        scratch.run(&set).code(0);
    }
    scratch
}

#[test]
fn expire_and_gc_shrink_the_repository_and_keep_the_tip() {
    let scratch = busy();
    let before = scratch.get(&["/a"]);
    let size = |scratch: &Scratch| scratch.json(&["info", "r"])["stored-bytes"].as_u64().unwrap();
    let large = size(&scratch);
    let expired = scratch.json(&["repo", "expire", "r", "--keep-last", "1"]);
    assert_eq!(expired["snapshots"].as_array().unwrap().len(), 6);
    let dry = scratch.json(&["repo", "gc", "r", "--min-age", "0s", "--dry-run"]);
    assert_eq!(dry["dry-run"], true);
    assert!(dry["files"].as_u64() > Some(0));
    let young = scratch.json(&["repo", "gc", "r"]);
    assert_eq!(young["files"], 0, "all files are younger than a day");
    let collected = scratch.json(&["repo", "gc", "r", "--min-age", "0s"]);
    assert_eq!(collected["files"], dry["files"]);
    assert!(size(&scratch) < large * 2 / 3);
    assert_eq!(scratch.get(&["/a"]), before);
    scratch.run(&["verify", "r", "--level", "bytes"]).code(0);
}

#[test]
fn expire_wants_a_limit_and_a_time_it_can_read() {
    let scratch = busy();
    scratch.run(&["repo", "expire", "r"]).code(2);
    scratch.run(&["repo", "expire", "r", "--older-than", "soon"]).code(2);
    let run = scratch.run(&["repo", "expire", "r", "--older-than", "30d"]).code(0);
    assert!(run.stderr.contains("0 snapshots expired"), "{}", run.stderr);
    let expired = scratch.json(&["repo", "expire", "r", "--older-than", "0s"]);
    assert_eq!(expired["snapshots"].as_array().unwrap().len(), 6);
}

#[test]
fn optimise_and_repack_change_no_value() {
    let scratch = busy();
    scratch.write("one.npy", &npy("|u1", false, &[50, 50], &[3; 2500]));
    scratch.run(&["repo", "set", "r", "/a", "one.npy", "--region", "0:50,0:50"]).code(0);
    let before = scratch.get(&["/a"]);
    let report = scratch.json(&["repo", "optimise", "r"]);
    assert!(report["entries-before"].as_u64() >= report["entries-after"].as_u64());
    scratch.json(&["repo", "repack", "r", "--branch", "main", "--live-share", "1.0"]);
    scratch.run(&["repo", "repack", "r", "--live-share", "2"]).code(2);
    assert_eq!(scratch.get(&["/a"]), before);
    scratch.run(&["verify", "r", "--level", "bytes"]).code(0);
}
