//! Stores that a real DVID wrote: described, checked, imported with their history, converted, and damaged.

use std::fs;
use std::path::Path;

use chunkyard_test_support::dvid_store;
use serde_json::Value;

use super::support::Scratch;

/// The UUIDs of the versions of a store, parents first.
fn uuids(store: &Path) -> Vec<String> {
    let info: Value =
        serde_json::from_slice(&fs::read(store.join("repos_info.json")).unwrap()).unwrap();
    let repo = info.as_object().unwrap().values().find(|repo| repo.is_object()).unwrap();
    let nodes = repo["DAG"]["Nodes"].as_object().unwrap();
    let mut versions: Vec<(u64, String)> = nodes
        .iter()
        .map(|(uuid, node)| (node["VersionID"].as_u64().unwrap(), uuid.clone()))
        .collect();
    versions.sort_unstable();
    versions.into_iter().map(|(_, uuid)| uuid).collect()
}

fn badger(store: &Path) -> String {
    store.join("data/badger").to_str().unwrap().to_owned()
}

#[test]
fn a_store_is_described_checked_and_imported_with_its_history() {
    let (store, scratch) = (dvid_store("edits"), Scratch::new());
    let (plain, versions) = (badger(store.path()), uuids(store.path()));
    assert_eq!(versions.len(), 3);
    // Recognised without a scheme.
    let info = scratch.json(&["info", &plain]);
    assert_eq!(info["format"], "dvid");
    assert_eq!(info["logs"], true);
    assert_eq!(info["repositories"][0]["versions"].as_array().unwrap().len(), 3);
    assert_eq!(info["labelmaps"][0]["scales"].as_array().unwrap().len(), 4);
    let text = scratch.run(&["info", &plain]).code(0).text();
    assert!(text.contains("labelmap seg"), "{text}");
    let listed = scratch.run(&["ls", &plain]).code(0).text();
    assert!(listed.contains("/seg/s0") || listed.contains("s0"), "{listed}");
    let newest = format!("dvid+badger://{plain}?uuid={}", versions[2]);
    scratch.run(&["verify", &newest]).code(0);

    let made = scratch.json(&["convert", &newest, "brain.repo", "--versions", "all"]);
    assert_eq!(made["versions"].as_array().unwrap().len(), 3);
    assert_eq!(made["damaged"].as_array().unwrap().len(), 0);
    // A coarse block of the last version is not what its fine ones give: DVID did not make it anew.
    let verified = scratch.run(&["labels", "verify", "brain.repo"]).code(5).text();
    assert!(verified.contains("1 problem:") && verified.contains("is not the vote"), "{verified}");
    let snapshot = |at: usize| made["versions"][at]["snapshot"].as_str().unwrap().to_owned();
    let diff = scratch.json(&["labels", "diff", "brain.repo", &snapshot(0), &snapshot(1)]);
    assert!(!diff["mutations"].as_array().unwrap().is_empty());
    // A second import into the same group is refused and changes nothing.
    scratch.run(&["convert", &newest, "brain.repo"]).code(4);
    assert_eq!(scratch.run(&["labels", "verify", "brain.repo"]).code(5).text(), verified);
}

#[test]
fn voxels_are_bodies_unless_supervoxels_are_asked_for() {
    let (store, scratch) = (dvid_store("edits"), Scratch::new());
    let url = format!("dvid+badger://{}?uuid={}", badger(store.path()), uuids(store.path())[1]);
    scratch.run(&["convert", &url, "bodies.zarr", "--array", "/seg/s1"]).code(0);
    scratch.run(&["convert", &url, "sv.zarr", "--array", "/seg/s1", "--supervoxels"]).code(0);
    scratch.run(&["convert", &url, "one.repo"]).code(0);
    scratch
        .run(&["convert", "one.repo", "same.zarr", "--array", "/labels/s1", "--ids", "bodies"])
        .code(0);
    let info = scratch.json(&["info", "bodies.zarr"]);
    let shape = info["arrays"][0]["shape"].as_array().unwrap().iter();
    // A labelmap ends with a whole block of its coarsest scale, which may be behind the array.
    let region: Vec<String> = shape.map(|extent| format!("0:{extent}")).collect();
    let get = |place: &str, path: &str, out: &str| {
        let region = region.join(",");
        scratch.run(&["get", place, path, "-o", out, "--region", &region]).code(0);
        fs::read(scratch.path(out)).unwrap()
    };
    let bodies = get("bodies.zarr", "/seg/s1", "bodies.npy");
    assert!(bodies != get("sv.zarr", "/seg/s1", "sv.npy"));
    assert!(bodies == get("same.zarr", "/labels/s1", "same.npy"));
    let refused = scratch.run(&["convert", &url, "x.zarr", "--versions", "all"]).code(2);
    assert!(refused.stderr.contains("--versions"), "{}", refused.stderr);
}

#[test]
fn a_damaged_block_is_named_and_left_out_only_if_asked_for() {
    let (store, scratch) = (dvid_store("basic"), Scratch::new());
    let directory = store.path().join("data/badger");
    let logs = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let log = logs.filter(|path| path.extension().is_some_and(|end| end == "vlog"));
    let log = log.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(&log).unwrap();
    // The first large values of the log are the blocks that were posted.
    bytes[9_000] ^= 0x40;
    fs::write(&log, bytes).unwrap();
    let url = badger(store.path());
    for target in ["x.zarr", "x.repo"] {
        let failed = scratch.run(&["convert", &url, target]).code(5);
        assert!(failed.stderr.contains("vlog"), "{}", failed.stderr);
    }
    scratch.run(&["ls", "x.zarr"]).code(3);
    let kept = scratch.run(&["convert", &url, "kept.zarr", "--skip-corrupt"]).code(5);
    assert!(kept.stderr.contains("left out"), "{}", kept.stderr);
    scratch.run(&["verify", "kept.zarr"]).code(0);
    let kept = scratch.run(&["convert", &url, "kept.repo", "--skip-corrupt"]).code(5);
    assert!(kept.stderr.contains("left out"), "{}", kept.stderr);
    scratch.run(&["verify", "kept.repo"]).code(0);
}
