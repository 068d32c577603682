//! Exports: what is written, what is refused, and the walk of docs/export.md.

use std::path::Path;

use super::support::{Scratch, npy};

/// Labels in a volume of 70 × 80 × 200 voxels; the blocks from x = 128 on are all 0.
fn volume() -> Vec<u8> {
    let label = |n: u64| match n % 200 {
        128.. => 0,
        x => 1 + x / 16 + n / 200 / 80,
    };
    let labels: Vec<u8> = (0..70 * 80 * 200u64).flat_map(|n| label(n).to_le_bytes()).collect();
    npy("<u8", false, &[70, 80, 200], &labels)
}

fn imported() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("segmentation.npy", &volume());
    scratch.run(&["labels", "import", "brain", "segmentation.npy"]).code(0);
    scratch
}

#[test]
fn a_version_is_exported_resumed_and_checked() {
    let scratch = imported();
    scratch.run(&["repo", "tag", "brain", "create", "v1"]).code(0);
    scratch.run(&["labels", "merge-bodies", "brain", "1", "2"]).code(0);
    let export =
        ["export-shards", "brain", "out", "--version", "v1", "--emit", "arrow,precomputed"];
    let first = scratch.json(&export);
    // Eight of the sixteen blocks hold anything; the others are not stored.
    assert_eq!((&first["scales"][0]["blocks"], &first["resumed"]), (&8.into(), &0.into()));
    assert_eq!(first["scales"][0]["shards"], 1);
    let again = scratch.json(&export);
    assert_eq!(again["resumed"], again["total"]["shards"]);
    let checked = scratch.json(&[&export[..], &["--check"]].concat());
    assert_eq!(checked["present"], checked["expected"]);

    // The bodies of that version, the largest first, for a viewer to list.
    let read =
        |path: &str| -> serde_json::Value { serde_json::from_slice(&scratch.read(path)).unwrap() };
    assert_eq!(read("out/info")["segment_properties"], "segment_properties");
    let listed = read("out/segment_properties/info");
    let ids = listed["inline"]["ids"].as_array().unwrap();
    let voxels = &listed["inline"]["properties"][0];
    assert_eq!((ids.len(), &voxels["data_type"]), (77, &"float32".into()));
    let of = |body: &str| {
        voxels["values"][ids.iter().position(|id| id == body).unwrap()].as_u64().unwrap()
    };
    assert_eq!([of("1"), of("2"), of("8")], [1, 2, 8].map(|columns| columns * 16 * 80));
    assert!(voxels["values"][0].as_u64() >= voxels["values"][76].as_u64());
    assert!(listed.get("chunkyard_left_out").is_none(), "{listed}");

    let other =
        scratch.run(&["export-shards", "brain", "out", "--emit", "arrow,precomputed"]).code(2);
    assert!(other.stderr.contains("another export"), "{}", other.stderr);
    let shard = scratch.path("out/s0/0_0_0.arrow");
    let mut bytes = std::fs::read(&shard).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&shard, bytes).unwrap();
    let damaged = scratch.run(&[&export[..], &["--check"]].concat()).code(5);
    assert!(damaged.text().contains("damaged: s0/0_0_0.arrow"), "{}", damaged.text());
}

#[test]
fn what_cannot_be_exported_is_refused_and_nothing_is_written() {
    let scratch = imported();
    scratch.write("float.npy", &npy("<f4", false, &[8, 8, 8], &[0; 2048]));
    scratch.write("bad.json", b"{\"type\": \"segmentation\"}");
    scratch.run(&["set", "floats.zarr", "/", "float.npy"]);
    for (code, arguments) in [
        (2, vec!["brain", "out", "--spec", "bad.json"]),
        (1, vec!["brain", "out", "--spec", "none.json"]),
        (2, vec!["brain", "out", "--codec", "gzip"]),
        (2, vec!["brain", "out", "--codec", "keep", "--strip-labels"]),
        (2, vec!["brain", "out", "--factor", "1,2"]),
        (2, vec!["brain", "out", "--factor", "1,0,1"]),
        (2, vec!["brain", "out", "--scales", "0"]),
        (2, vec!["brain", "out", "--batch", "0"]),
        (3, vec!["brain", "out", "--version", "none"]),
        (3, vec!["brain", "out", "--array", "/none"]),
        (3, vec!["none", "out"]),
        (2, vec!["brain", "brain/out"]),
        (2, vec!["brain", "out", "--check"]),
    ] {
        let arguments = [vec!["export-shards"], arguments].concat();
        let run = scratch.run(&arguments);
        assert_eq!(run.code, code, "{arguments:?}: {}", run.stderr);
        assert!(!scratch.path("out").exists(), "{arguments:?}");
    }
}

#[test]
fn a_corrupt_block_fails_the_export_and_leaves_no_shard_of_it() {
    let scratch = imported();
    let from =
        ["convert", "brain", "copy.zarr", "--array", "/labels/s0", "--codec", "label_block+zstd:3"];
    scratch.run(&from).code(0);
    let mut chunks = scratch.files_in("copy.zarr");
    chunks.retain(|(path, _)| path.to_string_lossy().contains("/c/"));
    let (path, mut bytes) = chunks.swap_remove(0);
    let middle = bytes.len() / 2;
    bytes.truncate(middle);
    std::fs::write(path, bytes).unwrap();
    let run = scratch.run(&["export-shards", "copy.zarr", "out"]).code(5);
    assert!(run.stderr.contains("chunk"), "{}", run.stderr);
    let out = scratch.path("out/s0");
    let left = std::fs::read_dir(out).map(|files| files.count()).unwrap_or(0);
    assert_eq!(left, 0);
}

/// Runs each command of the walk, in order, in one directory.
#[test]
fn the_walk_works_as_it_is_written() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/export.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let scratch = Scratch::new();
    scratch.write("segmentation.npy", &volume());
    let mut count = 0;
    for line in guide.lines().filter_map(|line| line.strip_prefix("$ chunkyard ")) {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        scratch.run(&arguments).code(0);
        count += 1;
    }
    assert_eq!(count, 11);
}
