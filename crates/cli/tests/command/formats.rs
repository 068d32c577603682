//! `info`, `ls` and `verify` on every format, and Zarr as zarr-python wrote it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::support::{Scratch, data, npy};

/// The golden hierarchies and their arrays.
const GOLDEN: [(&str, &[&str]); 3] = [
    ("v3", &["/deep/sharded", "/deep/start", "/plain", "/scalar"]),
    ("v2", &["/deep/slashes", "/dots"]),
    ("bare", &["/a/b/c"]),
];

fn golden(name: &str) -> PathBuf {
    testdata("zarr").join(name)
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

#[test]
fn hierarchies_by_zarr_python_are_listed_verified_and_converted_to_equal_elements() {
    for (name, arrays) in GOLDEN {
        let scratch = Scratch::new();
        let place = golden(&format!("{name}.zarr"));
        let place = place.to_str().unwrap();
        let listed = scratch.run(&["ls", place]).code(0).text();
        let found: Vec<_> = listed.lines().filter(|line| !line.ends_with('/')).collect();
        assert_eq!(found, arrays);
        let verified = scratch.run(&["verify", place]).code(0).text();
        let checksums = verified.starts_with("sound: ") && verified.lines().count() == 1;
        let none = verified.starts_with("readable: ") && verified.contains("cannot be checked: ");
        assert!(checksums || none, "{verified}");
        scratch.run(&["convert", place, "r", "--to", "repo", "--verify"]).code(0);
        scratch.run(&["convert", place, "x.zarr", "--shards", "none", "--verify"]).code(0);
        for path in arrays {
            let file = format!("{name}{}.npy", path.replace('/', "-"));
            let expected = data(&fs::read(golden(&file)).unwrap()).to_vec();
            assert_eq!(scratch.get(&[path]), expected, "{name} {path}");
            assert_eq!(scratch.elements("x.zarr", path), expected, "{name} {path}");
        }
    }
}

#[test]
fn a_netcdf_file_is_described_verified_and_converted() {
    let scratch = Scratch::new();
    let file = testdata("hdf5/netcdf.nc");
    let file = file.to_str().unwrap();
    let info = scratch.json(&["info", file]);
    assert_eq!((&info["format"], &info["stored-files"]), (&"hdf5".into(), &1.into()));
    let verified = scratch.run(&["verify", file]).code(0).text();
    assert!(verified.starts_with("readable: 9 arrays, 20 stored chunks, 1 object, "), "{verified}");
    scratch.run(&["convert", file, "x.zarr", "--verify"]).code(0);
    assert_eq!(scratch.run(&["ls", file]).text(), scratch.run(&["ls", "x.zarr"]).text());
    let run = scratch.run(&["convert", "x.zarr", "y.nc", "--to", "hdf5"]).code(6);
    assert!(run.stderr.contains("writing hdf5"), "{}", run.stderr);
}

#[test]
fn losses_are_named_and_accepted_one_by_one() {
    let scratch = Scratch::new();
    let file = testdata("hdf5/earliest.h5");
    let file = file.to_str().unwrap();
    let types = ["convert", file, "x.zarr", "--array", "/tree"];
    let run = scratch.run(&types).code(6);
    for part in [
        "attributes: /tree: attribute",
        "links: /tree/broken: ",
        "accept each by its name, with --lossy",
    ] {
        assert!(run.stderr.contains(part), "{part} in {}", run.stderr);
    }
    assert!(!run.stderr.contains("/filters/lzf"), "{}", run.stderr);
    scratch.run(&[&types[..], &["--lossy", "links"]].concat()).code(6);
    let accepted = ["--lossy", "links", "--lossy", "attributes", "--lossy", "types"];
    scratch.run(&[&types[..], &accepted].concat()).code(0);
    assert!(scratch.run(&["ls", "x.zarr"]).text().contains("/tree/group/sub/x\n"));
}

#[test]
fn info_describes_zarr() {
    let scratch = Scratch::new();
    let place = golden("v3.zarr");
    let place = place.to_str().unwrap();
    let info = scratch.json(&["info", place]);
    assert_eq!((&info["format"], &info["stored-files"]), (&"zarr3".into(), &22.into()));
    assert_eq!(info["groups"][0]["attributes"]["nested"], json!({"a": [1, null]}));
    let sharded = &info["arrays"][0];
    assert_eq!((&sharded["path"], &sharded["refs"]), (&"/deep/sharded".into(), &47.into()));
    assert_eq!(sharded["shard-shape"], json!([20, 15]));
    let plain = &info["arrays"][2];
    assert_eq!(plain["attributes"], json!({"units": "K"}));
    assert_eq!((&plain["bytes"], &plain["fill-value"]), (&4292.into(), &"NaN".into()));
    let text = scratch.run(&["info", place]).code(0).text();
    for part in [
        "format   zarr3",
        "in 22 objects (ratio 0.4)",
        "@title   \"golden\"",
        "37 × 29  (y, x)",
        "10 × 10, 10 of 12 stored",
        "shards      20 × 15",
        "@units      \"K\"",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn ls_lists_a_part_and_counts_stored_chunks() {
    let scratch = Scratch::new();
    let place = golden("v3.zarr");
    let place = place.to_str().unwrap();
    let text = scratch.run(&["ls", "-l", place, "/deep"]).code(0).text();
    let sharded = "/deep/sharded  uint16  40 × 30  chunks 5 × 5 in shards 20 × 15  47 chunks stored, \
                   3.0 KiB  bytes+blosc\n";
    assert!(text.starts_with("/deep/         group\n") && text.contains(sharded), "{text}");
    assert_eq!(scratch.run(&["ls", place, "deep/start"]).text(), "/deep/start\n");
    let run = scratch.run(&["ls", place, "/none"]).code(3);
    assert!(run.stderr.contains("hint: `chunkyard ls"), "{}", run.stderr);
    for command in ["ls", "info"] {
        scratch.run(&[command, place, "--tag", "v1"]).code(2);
    }
}

#[test]
fn an_unknown_or_ambiguous_place_is_refused_with_a_list_of_formats() {
    let scratch = Scratch::with_array();
    fs::create_dir(scratch.path("photos")).unwrap();
    scratch.write("photos/1.jpg", b"x");
    fs::copy(golden("v3.zarr/zarr.json"), scratch.path("r/zarr.json")).unwrap();
    for command in ["info", "ls", "verify"] {
        for place in ["photos", "photos/1.jpg", "nothing"] {
            let run = scratch.run(&[command, place]).code(3);
            let tried = format!(
                "{place} is none of these:\n  repo: no state.json\n  zarr3: no zarr.json, .zgroup or \
                 .zarray\n"
            );
            assert!(run.stderr.contains(&tried), "{}", run.stderr);
        }
        let run = scratch.run(&[command, "r"]).code(2);
        let both =
            "r is more than one thing:\n  repo: it has state.json\n  zarr3: it has zarr.json\n";
        assert!(run.stderr.contains(both), "{}", run.stderr);
    }
}

#[test]
fn a_repository_without_its_state_file_is_still_one() {
    let scratch = Scratch::with_array();
    fs::remove_file(scratch.path("r/state.json")).unwrap();
    assert_eq!(scratch.run(&["ls", "r"]).code(0).text(), "/a\n");
    scratch.run(&["verify", "r"]).code(0);
}

#[test]
fn verify_lists_all_damage_and_files_of_no_array() {
    let scratch = Scratch::with_array();
    // Without checksums there is only decoding, and the check says so.
    scratch.run(&["convert", "r", "plain.zarr", "--chunks", "1,1", "--codec", "zstd:3"]).code(0);
    let readable = scratch.run(&["verify", "plain.zarr"]).code(0).text();
    assert!(readable.starts_with("readable: 1 array, 24 "), "{readable}");
    assert!(readable.contains("cannot be checked: 24 chunks without a checksum"), "{readable}");
    let convert = ["convert", "r", "a.zarr", "--chunks", "1,1", "--shards", "2,6"];
    scratch.run(&[&convert[..], &["--codec", "zstd:3+crc32c"]].concat()).code(0);
    assert!(scratch.run(&["verify", "a.zarr"]).code(0).text().starts_with("sound: 1 array, 24 "));
    for (at, file) in ["a.zarr/a/c/0/0", "a.zarr/a/c/1/0"].into_iter().enumerate() {
        let mut bytes = scratch.read(file);
        // A byte of the first chunk, and a byte of an index.
        let victim = if at == 0 { 9 } else { bytes.len() - 9 };
        bytes[victim] ^= 1;
        scratch.write(file, &bytes);
    }
    scratch.write("a.zarr/a/c/7", b"?");
    scratch.write("a.zarr/notes.txt", b"mine");
    let run = scratch.run(&["verify", "a.zarr", "--json"]).code(5);
    let report = run.json();
    assert_eq!((&report["errors"], &report["checked"]["chunks"]), (&2.into(), &11.into()));
    assert_eq!((&report["orphan-files"], &report["orphan-bytes"]), (&2.into(), &5.into()));
    let text = scratch.run(&["verify", "a.zarr"]).code(5).text();
    for part in [
        "error: a/c/0/0: chunk: expected crc32c",
        "in /a chunk [0, 0]",
        "error: a/c/1/0: index of the shard: expected crc32c",
        "note: notes.txt: it belongs to no array",
        "note: a/c/7: it belongs to no array",
        "damaged: 1 array, 11 stored chunks, 1 object, ",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // Existence is checked without decoding; the metadata is sound.
    assert_eq!(
        scratch.run(&["verify", "a.zarr", "--level", "existence", "--json"]).json()["errors"],
        1
    );
    scratch.run(&["verify", "a.zarr", "--level", "metadata"]).code(0);
    // The rest is still described.
    let info = scratch.json(&["info", "a.zarr"]);
    assert_eq!(
        (&info["arrays"][0]["refs"], &info["arrays"][0]["unreadable"]),
        (&12.into(), &1.into())
    );
}

#[test]
fn verify_counts_more_damage_than_it_lists() {
    let scratch = Scratch::with_repo();
    scratch.write("n.npy", &npy("|u1", false, &[150], &[7; 150]));
    scratch.run(&["repo", "set", "r", "/n", "n.npy", "--chunks", "1"]).code(0);
    scratch.run(&["convert", "r", "n.zarr"]).code(0);
    for at in 0..130 {
        scratch.write(&format!("n.zarr/n/c/{at}"), b"rubbish");
    }
    let run = scratch.run(&["verify", "n.zarr"]).code(5);
    assert_eq!(run.text().lines().filter(|line| line.starts_with("error: n/c/")).count(), 100);
    assert!(run.text().contains("and 30 more errors\ndamaged: 1 array, 20 stored chunks"));
    assert!(run.stderr.contains("damaged: 130 errors"), "{}", run.stderr);
}

#[test]
fn broken_metadata_is_corrupt_and_named() {
    let scratch = Scratch::with_array();
    scratch.run(&["convert", "r", "a.zarr"]).code(0);
    scratch.write("a.zarr/zarr.json", b"{\"zarr_format\": 3, ");
    for command in ["info", "ls", "verify"] {
        let run = scratch.run(&[command, "a.zarr"]).code(5);
        assert!(run.stderr.contains("zarr.json is corrupt"), "{}", run.stderr);
    }
}
