//! The demonstration.

use std::fs;

use super::support::Scratch;

#[test]
fn the_demo_runs_twice_and_shows_everything() {
    let scratch = Scratch::new();
    for _ in 0..2 {
        let text = scratch.run(&["demo"]).code(0).text();
        for part in [
            "observations of winter",
            "ben is refused",
            "/air/temperature: both changed chunks [0, 0, 0]",
            "goes on top of anna's",
            "main as of winter   90 days",
            "main now           360 days",
            "alice merged body 2 into 1",
            "~ body 1: 184320 → 368640 voxels",
            "demo-repo-shards: ",
            "sound: ",
            "tag: v1",
            "calibration",
            "chunkyard repo log demo-repo --all",
            "npx http-server demo-repo-shards --cors",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
    scratch.run(&["verify", "demo-repo", "--level", "bytes"]).code(0);
    // Neuroglancer reads `info` first.
    let info: serde_json::Value =
        serde_json::from_slice(&scratch.read("demo-repo-shards/info")).unwrap();
    assert_eq!(info["scales"][0]["size"], serde_json::json!([160, 96, 64]));
    let export = ["export-shards", "demo-repo", "demo-repo-shards", "--array", "/cells"];
    let check = [&export[..], &["--emit", "arrow,precomputed", "--check"]].concat();
    scratch.run(&check).code(0);
}

#[test]
fn the_demo_as_json_is_one_document() {
    let scratch = Scratch::new();
    let told = scratch.json(&["demo", "d"]);
    assert_eq!(told["conflict"][0]["kind"], "chunk");
    assert_eq!(told["readings"][0]["days"], 90);
    assert_eq!(told["bodies"]["vanished"][0]["body"], 2);
    assert_eq!(told["verify"]["findings"], serde_json::json!([]));
}

#[test]
fn the_demo_leaves_other_directories_alone() {
    let scratch = Scratch::with_array();
    let before = scratch.files();
    scratch.run(&["demo", "r"]).code(4);
    assert_eq!(scratch.files(), before);
    fs::create_dir(scratch.path("photos")).unwrap();
    scratch.write("photos/cat.jpg", b"meow");
    let run = scratch.run(&["demo", "photos"]).code(4);
    assert!(run.stderr.contains("name another directory"), "{}", run.stderr);
    assert_eq!(scratch.read("photos/cat.jpg"), b"meow");
    fs::create_dir(scratch.path("other-shards")).unwrap();
    scratch.write("other-shards/cat.jpg", b"meow");
    let run = scratch.run(&["demo", "other"]).code(4);
    assert!(run.stderr.contains("name another directory"), "{}", run.stderr);
    assert_eq!(scratch.read("other-shards/cat.jpg"), b"meow");
    assert!(!scratch.path("other").exists());
}
